"""Features for many weak signals: hundreds of named columns per row, from an index (docs/features.md).

Every kind of `kinds.py` for each field and for all fields joined, next to the numbers that documents and queries bring
with them: the rankers with hundreds of parameters of Taylor 2006 (section 5) on any collection, for `train`.

>>> from fliprank.text.index import Index
>>> index = Index.build([{"_id": "a", "title": "Red shoes", "text": "Shoes, all red."}, {"_id": "b", "title": "Sky"}])
>>> queries = {"q": "red shoe"}
>>> rows = features(index, index.candidates(queries), queries, select=["*.tf.sum", "*.phrase"])
>>> dict(zip(rows.feature_names, rows.features[0].tolist()))
{'title.tf.sum': 2.0, 'title.phrase': 1.0, 'text.tf.sum': 2.0, 'text.phrase': 0.0, 'all.tf.sum': 4.0, 'all.phrase': 1.0}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Ints, frozen
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.text.features.kinds import POSITION_KINDS, QUERY_KINDS, TERM_KINDS, streams
from fliprank.text.features.matrix import Words, fill_matrix
from fliprank.text.index_arrays import IndexArrays
from fliprank.text.search.candidates import QrelsLike, find_candidates
from fliprank.text.search.queries import Queries, QueriesLike, analyse, idf_of, read_queries
from fliprank.text.search.retrieve import numbers_of_rows

__all__ = ["feature_names", "feature_rows", "features"]


@checked
def features(
    index: IndexArrays, candidates: Candidates, queries: QueriesLike, *, select: str | Sequence[str] | None = None
) -> Candidates:
    """The same rows, with one column per feature after those of the documents (PageRank, URL depth, ...).

    `select` chooses features by name, with patterns such as "title.*" or "*.bm25*"; columns of the documents are always
    kept. A column that already has the name of a feature is replaced. An index without positions has no features of
    term order; `memo["notes"]` of the rows says so.
    """
    if candidates.docids is None:
        raise UsageError("features needs candidates with document ids")
    notes = list(candidates.memo.get("notes", ()))
    if not index.positions:
        notes.append(f"the index has no positions: {len(POSITION_KINDS)} kinds of features are left out")
    names = _selected(feature_names(index), select)
    documents = numbers_of_rows(index, candidates.qids, candidates.offsets, candidates.docids)
    asked = _analysed(index, candidates, queries)
    kept, columns = _columns(index, candidates, documents, names)
    out = np.zeros((len(candidates), len(kept) + len(names)), np.float32)
    for place, column in enumerate(columns):
        out[:, place] = column
    where = {name: len(kept) + place for place, name in enumerate(names)}
    for kind, values in zip(QUERY_KINDS, _of_queries(asked), strict=True):
        if kind.name in where:
            out[:, where[kind.name]] = np.repeat(values, candidates.sizes)
    kinds, fields = [*TERM_KINDS, *POSITION_KINDS], streams(index.fields)
    wanted = np.array([[where.get(f"{field}.{kind.name}", -1) for kind in kinds] for field in fields], np.int64)
    fill_matrix(index, _words(index, asked), candidates.query_of_rows(), documents, wanted, out)
    rows = replace(candidates, features=out, feature_names=(*kept, *names))
    rows.memo["notes"] = tuple(notes)
    return rows


@checked
def feature_rows(
    index: IndexArrays,
    queries: QueriesLike,
    qrels: QrelsLike | None = None,
    *,
    select: str | Sequence[str] | None = None,
    **options: Any,
) -> Candidates:
    """From raw text to rows to train on: candidates (`options` as of `Index.pool`) with their features."""
    return features(index, find_candidates(index, queries, qrels, **options), queries, select=select)


@checked
def feature_names(index: IndexArrays) -> tuple[str, ...]:
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


def _analysed(index: IndexArrays, candidates: Candidates, queries: QueriesLike) -> Queries:
    """The queries of the candidates, in their order."""
    texts, qids = read_queries(queries), candidates.qids.tolist()
    if absent := next((qid for qid in qids if qid not in texts), None):
        hint = f"{len(texts)} queries were given"
        raise InputError("no text for this query of the candidates", query=absent, hint=hint)
    return analyse(index, {qid: texts[qid] for qid in qids})


def _of_queries(queries: Queries) -> tuple[Ints, Ints, Ints]:
    """The values of `QUERY_KINDS`, one per query."""
    known = np.bincount(np.repeat(np.arange(len(queries)), queries.sizes)[queries.number >= 0], minlength=len(queries))
    return queries.sizes, np.diff(queries.word_offsets), known


def _words(index: IndexArrays, queries: Queries) -> Words:
    """The queries as kernels read them, with idf and share of the collection for each field and for all joined."""
    known, width = queries.number >= 0, len(index.fields)
    df, cf = np.zeros((len(known), width + 1)), np.zeros((len(known), width + 1))
    df[known, :width], df[:, width] = index.field_df[queries.number[known]], queries.df
    cf[known, :width] = index.cf[queries.number[known]]
    cf[:, width] = cf[:, :width].sum(1)
    tokens = np.append(index.field_tokens, index.field_tokens.sum())
    by_field: tuple[Floats, ...] = idf_of(df, index.documents).T, (cf / np.maximum(tokens, 1)).T
    ints = (
        frozen(each, np.int64) for each in (queries.offsets, queries.number, queries.word_offsets, queries.sequence)
    )
    return Words(*ints, *(frozen(each, np.float64) for each in (queries.count, *by_field)))


def _columns(
    index: IndexArrays, candidates: Candidates, documents: Ints, names: tuple[str, ...]
) -> tuple[list[str], list[NDArray[Any]]]:
    """The columns that are kept: those of the candidates, and those of the index that the candidates lack."""
    found: dict[str, NDArray[Any]] = {}
    if candidates.features is not None:
        found |= dict(zip(candidates.feature_names, candidates.features.T, strict=True))
    for name, column in index.columns.items():
        if name not in found:
            found[name] = np.nan_to_num(column[documents])
    kept = [name for name in found if name not in set(names)]
    return kept, [found[name] for name in kept]
