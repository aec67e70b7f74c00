"""Triples of query, document and number, as qrels and runs hold them: grouped by query, checked, from any source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Bytes, Floats, Int32s, Ints
from fliprank.data.candidates import column_ids
from fliprank.data.columns import is_space
from fliprank.data.csr import bounds, span_indices
from fliprank.data.files import StrPath
from fliprank.data.ids import Ids, compare_ids, factorize, find_duplicates
from fliprank.errors import InputError
from fliprank.kernels import kernel, parallel_kernel, prange

__all__ = ["check_shape", "examples", "first_unfit", "from_frame", "from_mapping", "grouped", "line_at", "to_dict"]


def line_at(buffer: Bytes, position: int) -> int:
    return 1 + int(np.count_nonzero(buffer[:position] == 10))


def grouped(qid: Ids, docid: Ids, numbers: Floats, path: StrPath | None = None) -> tuple[Ints, Ids, Ids, Floats]:
    """Rows brought together by query, queries in order of appearance; a document may occur once in a query.

    Works on stretches of rows of one query: where each query is one stretch, no row moves.
    """
    stretches = np.flatnonzero(_changes(*qid.arrays))
    limits = np.append(stretches, len(qid))
    query, first = factorize(qid.take(stretches))
    offsets = bounds(np.bincount(query, np.diff(limits), len(first)).astype(np.int64))
    if len(first) < len(stretches):
        rows = span_indices(limits, np.argsort(query, kind="stable"))
        docid, numbers = docid.take(rows), numbers[rows]
    qids = qid.take(stretches[first])
    _check_unique(qids, docid, offsets, path)
    return offsets, qids, docid, numbers


def _check_unique(qids: Ids, docids: Ids, offsets: Ints, path: StrPath | None = None) -> None:
    """Raise at the first document that its query has already."""
    twice = find_duplicates(docids, offsets)
    if (twice >= 0).any():
        query = int(np.where(twice >= 0, docids.start[twice], np.iinfo(np.int64).max).argmin())
        row = int(twice[query])
        line = None if path is None else line_at(docids.buffer, int(docids.start[row]))
        raise InputError(f"document {docids[row]} occurs twice", path=path, line=line, query=qids[query])


def check_shape(offsets: Ints, qids: Ids, docids: Ids, numbers: Floats) -> None:
    if len(offsets) != len(qids) + 1 or offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise InputError(f"offsets must rise from 0 in {len(qids)} steps, one for each query id")
    if not offsets[-1] == len(docids) == len(numbers):
        raise InputError(f"{len(docids)} document ids, {len(numbers)} numbers for {offsets[-1]} rows")


def from_mapping(mapping: Mapping[Any, Mapping[Any, float]], kind: str) -> tuple[Ints, Ids, Ids, Floats]:
    qids, inner = Ids.of(mapping), list(mapping.values())
    sizes = np.fromiter(map(len, inner), np.int64, len(inner))
    docids, offsets = Ids.of(chain.from_iterable(inner)), bounds(sizes)
    values = [value for each in inner for value in each.values()]
    numbers = _finite(values, kind, qids.take(np.repeat(np.arange(len(sizes)), sizes)), docids)
    if (twice := int(find_duplicates(qids, np.array([0, len(qids)]))[0])) >= 0:
        raise InputError("the query occurs twice", query=qids[twice])
    _check_unique(qids, docids, offsets)
    return offsets, qids, docids, numbers


def from_frame(frame: Any, kinds: Sequence[str]) -> tuple[Ints, Ids, Ids, Floats]:
    columns = [str(name) for name in frame.columns]
    names = []
    for choices in (("qid", "query_id"), ("docid", "doc_id"), kinds):
        names += [name for name in choices if name in columns][:1]
        if not names or names[-1] not in choices:
            raise InputError(f"the frame has no column {' or '.join(choices)}", hint=f"it has {', '.join(columns)}")
    qid, docid = (column_ids(frame, name) for name in names[:2])
    return grouped(qid, docid, _finite(frame[names[2]].to_numpy(), names[2], qid, docid))


def _finite(values: Any, kind: str, qid: Ids, docid: Ids) -> Floats:
    """`values`, one for each pair of query and document, as finite numbers."""
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"a {kind} is not a number: {error}") from error
    if not (finite := np.isfinite(numbers)).all():
        row = int(finite.argmin())
        raise InputError(f"{kind} {numbers[row]} of document {docid[row]} is not a finite number", query=qid[row])
    return numbers


def to_dict(offsets: Ints, qids: Ids, docids: Ids, numbers: Floats) -> dict[str, dict[str, float]]:
    documents, values = docids.compact().tolist(), numbers.tolist()
    return {
        qid: dict(zip(documents[a:b], values[a:b], strict=True))
        for qid, (a, b) in zip(qids.compact().tolist(), pairwise(offsets.tolist()), strict=True)
    }


def examples(ids: Ids) -> str:
    shown = [ids[i] for i in range(min(3, len(ids)))]
    return (", ".join(shown) + (", ..." if len(ids) > 3 else "")) or "none"


@parallel_kernel
def _changes(buffer: Bytes, start: Ints, length: Int32s) -> NDArray[np.bool_]:
    """Whether each id differs from the one before it."""
    out = np.ones(len(start), np.bool_)
    for i in prange(1, len(start)):
        out[i] = compare_ids(buffer, start[i - 1], length[i - 1], start[i], length[i]) != 0
    return out


@kernel
def first_unfit(buffer: Bytes, start: Ints, length: Int32s) -> int:
    """The first id that is empty or has white space, or -1."""
    for i in range(len(start)):
        unfit = length[i] == 0
        for b in range(start[i], start[i] + length[i]):
            unfit = unfit or is_space(buffer[b])
        if unfit:
            return i
    return -1
