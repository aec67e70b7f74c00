"""Features for many weak signals: hundreds of named columns for each row, from an index (docs/features.md).

Every kind of `feature_kinds.py` for each field and for all fields joined, beside the numbers that documents and queries
bring with them: the rankers with hundreds of parameters of Taylor 2006 (section 5) on any collection, for `train`.

>>> from fliprank.text.index import Index
>>> index = Index.build([{"_id": "a", "title": "Red shoes", "text": "Shoes, all red."}, {"_id": "b", "title": "Sky"}])
>>> asked = {"q": "red shoe"}
>>> rows = features(index, index.candidates(asked), asked, select=["*.tf.sum", "*.phrase"])
>>> dict(zip(rows.feature_names, rows.features[0].tolist()))
{'title.tf.sum': 2.0, 'title.phrase': 1.0, 'text.tf.sum': 2.0, 'text.phrase': 0.0, 'all.tf.sum': 4.0, 'all.phrase': 1.0}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.ids import Ids, match
from fliprank.errors import InputError, UsageError
from fliprank.text.build.builder import pack
from fliprank.text.features.kinds import POSITION_KINDS, QUERY_KINDS, TERM_KINDS, streams
from fliprank.text.features.matrix import Words, fill_matrix
from fliprank.text.search.queries import Queries, QueriesLike, analyse, read_queries
from fliprank.text.words import WordCounter

if TYPE_CHECKING:
    from fliprank.text.index import Index
    from fliprank.text.search.candidates import QrelsLike

__all__ = ["feature_names", "feature_rows", "features"]


def features(
    index: Index, candidates: Candidates, queries: QueriesLike, *, select: Sequence[str] | None = None
) -> Candidates:
    """The same rows, with a column for each feature after those of the documents (PageRank, URL depth, ...).

    `select` takes features by name: patterns such as "title.*" or "*.bm25*"; columns of the documents are always kept.
    A column that has the name of a feature already is replaced. An index without positions has no features of order;
    `memo["notes"]` of the rows says so.
    """
    if candidates.docids is None:
        raise UsageError("features needs candidates with document ids")
    notes = list(candidates.memo.get("notes", ()))
    if not index.positions:
        notes.append(f"the index has no positions: {len(POSITION_KINDS)} kinds of features are left out")
    names = _selected(feature_names(index), select)
    documents = _numbers(index, candidates)
    asked = _analysed(index, candidates, queries)
    held, columns = _columns(index, candidates, documents, names)
    out = np.zeros((len(candidates), len(held) + len(names)), np.float32)
    for place, column in enumerate(columns):
        out[:, place] = column
    where = {name: len(held) + place for place, name in enumerate(names)}
    for place, kind in enumerate(QUERY_KINDS):
        if kind.name in where:
            out[:, where[kind.name]] = np.repeat(asked.own[:, place], candidates.sizes)
    kinds, fields = [*TERM_KINDS, *POSITION_KINDS], streams(index.fields)
    wanted = np.array([[where.get(f"{field}.{kind.name}", -1) for kind in kinds] for field in fields], np.int64)
    fill_matrix(index, asked.words, candidates.query_of_rows(), documents, wanted, out)
    rows = replace(candidates, features=out, feature_names=(*held, *names))
    rows.memo["notes"] = tuple(notes)
    return rows


def feature_rows(
    index: Index,
    queries: QueriesLike,
    qrels: QrelsLike | None = None,
    *,
    select: Sequence[str] | None = None,
    **options: Any,
) -> Candidates:
    """From raw text to rows to train on: candidates (`options` as of `Index.pool`) and their features."""
    return features(index, index.candidates(queries, qrels, **options), queries, select=select)


def feature_names(index: Index) -> tuple[str, ...]:
    """The names of all features that this index can give, in the order of their columns."""
    kinds = TERM_KINDS + (POSITION_KINDS if index.positions else ())
    by_field = (f"{stream}.{kind.name}" for stream in streams(index.fields) for kind in kinds)
    return (*(kind.name for kind in QUERY_KINDS), *by_field)


def _selected(names: tuple[str, ...], patterns: Sequence[str] | None) -> tuple[str, ...]:
    if patterns is None:
        return names
    wanted = [patterns] if isinstance(patterns, str) else list(patterns)
    if bad := next((p for p in wanted if not any(fnmatchcase(name, p) for name in names)), None):
        some = ", ".join(names[:: max(1, len(names) // 5)])
        raise UsageError(f"no feature is called {bad!r}; there are {len(names)}, such as {some}")
    return tuple(name for name in names if any(fnmatchcase(name, p) for p in wanted))


def _numbers(index: Index, candidates: Candidates) -> Ints:
    """The number of each row's document."""
    assert candidates.docids is not None
    ends = np.array([0, len(candidates)]), np.array([0, index.documents])
    documents = match(candidates.docids, ends[0], index.docids, ends[1], np.zeros(1, np.int64))
    if (documents < 0).any():
        row = int((documents < 0).argmax())
        query = candidates.qids[int(np.searchsorted(candidates.offsets, row, "right")) - 1]
        raise InputError(f"document {candidates.docids[row]} is not in the index", query=query)
    return documents


@dataclass(frozen=True, eq=False)
class _Questions:
    words: Words
    own: Floats


def _analysed(index: Index, candidates: Candidates, asked: QueriesLike) -> _Questions:
    """The queries of the candidates, in their order."""
    texts, qids = read_queries(asked), candidates.qids.tolist()
    if absent := next((qid for qid in qids if qid not in texts), None):
        raise InputError(
            "no text for this query of the candidates", query=absent, hint=f"{len(texts)} queries were given"
        )
    wanted = {qid: texts[qid] for qid in qids}
    queries = analyse(index, wanted)
    known, width = queries.number >= 0, len(index.fields) + 1
    df, cf = np.zeros((len(known), width)), np.zeros((len(known), width))
    numbers = queries.number[known]
    df[known, :-1], df[known, -1] = index.field_df[numbers], index.starts[numbers + 1] - index.starts[numbers]
    cf[known, :-1] = index.cf[numbers]
    cf[:, -1] = cf[:, :-1].sum(1)
    tokens = np.append(index.field_tokens, index.field_tokens.sum())
    idf = np.log1p((index.documents - df + 0.5) / (df + 0.5))
    words, sequence = _sequence(index, wanted, queries)
    sizes = np.add.reduceat(np.append(known, 0), queries.offsets[:-1]) * (queries.sizes > 0)
    own = np.stack([queries.sizes, np.diff(words), sizes], axis=1).astype(np.float64)
    terms = frozen(queries.offsets, np.int64), frozen(queries.number, np.int64), frozen(queries.count, np.float64)
    by_field = frozen(idf.T, np.float64), frozen((cf / np.maximum(tokens, 1)).T, np.float64)
    return _Questions(Words(*terms, *by_field, frozen(words, np.int64), frozen(sequence, np.int64)), own)


def _sequence(index: Index, texts: Mapping[str, str], queries: Queries) -> tuple[Ints, Ints]:
    """The words of each query in order, each as the number of its term among those of the query: (offsets, numbers)."""
    counter = WordCounter(index.analyzer, 1)
    buffer, _, length = pack(pl.Series(index.analyzer.plain(texts.values()), dtype=pl.String))
    [chunk] = counter.count(buffer, bounds(length.astype(np.int64)))
    counter.close()
    words, [numbers] = counter.unite()
    stems = Ids.of(index.analyzer.stems(words.tolist())).take(numbers[chunk.stream])
    offsets = bounds(chunk.counts.astype(np.int64))
    place = match(stems, offsets, queries.terms, queries.offsets, np.arange(len(queries)))
    return offsets, place - np.repeat(queries.offsets[:-1], chunk.counts)


def _columns(
    index: Index, candidates: Candidates, documents: Ints, names: tuple[str, ...]
) -> tuple[list[str], list[NDArray[Any]]]:
    """The columns that are kept: of the candidates, and of the index where they lack them."""
    found: dict[str, NDArray[Any]] = {}
    if candidates.features is not None:
        found |= dict(zip(candidates.feature_names, candidates.features.T, strict=True))
    for name, column in index.columns.items():
        if name not in found:
            found[name] = np.nan_to_num(column[documents])
    kept = [name for name in found if name not in set(names)]
    return kept, [found[name] for name in kept]
