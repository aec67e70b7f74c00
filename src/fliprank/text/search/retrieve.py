"""Retrieval over the whole index, by any model: the documents that match a query, their statistics, the best of them.

The documents that have some term of a query (or all of them) are candidates like any others: a model scores them with
`score(candidates)`. Queries go in batches that fit in memory. `Bm25` has a faster way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from fliprank.arrays import Floats, Int32s, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.ids import Ids
from fliprank.data.order import order_rows
from fliprank.data.trec import Run
from fliprank.errors import InputError, UsageError
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.text.search.bm25 import BLOCK, Bm25, next_block, postings_of
from fliprank.text.search.gather_statistics import statistics
from fliprank.text.search.queries import Queries, QueriesLike, analyse, read_queries

if TYPE_CHECKING:
    from fliprank.text.index import Index, Progress

__all__ = ["Bm25", "Scorer", "matching", "named_rows", "rows_of", "search", "top"]

ROOM = 1 << 26
"""Frequencies (terms x fields of all rows) that a batch of queries may have."""


class Scorer(Protocol):
    """Any model: gives each row a score."""

    def score(self, candidates: Candidates) -> Floats:
        """One score a row."""


def search(
    index: Index,
    asked: QueriesLike,
    model: Scorer | Bm25 | None = None,
    *,
    depth: int = 1000,
    match: Literal["or", "and"] = "or",
    progress: Progress | None = None,
) -> Run:
    """See `Index.search`."""
    queries = analyse(index, read_queries(asked))
    offsets, documents, scores = top(index, queries, model or Bm25(), depth, match, progress)
    return Run(offsets, queries.qids, index.docids.take(documents), scores, getattr(model, "name", "bm25"))


def top(
    index: Index,
    queries: Queries,
    model: Scorer | Bm25,
    depth: int,
    match: Literal["or", "and"] = "or",
    progress: Progress | None = None,
) -> tuple[Ints, Ints, Floats]:
    """The best `depth` documents of each query: (offsets by query, documents by number, scores), best first."""
    if match not in ("or", "and") or depth < 1:
        raise UsageError(f"match must be 'or' or 'and' and depth at least 1, not {match!r} and {depth}")
    if isinstance(model, Bm25):
        return model.top(index, queries, depth, match == "and")
    sizes, found, scored, done = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)], 0
    for part, offsets, documents in _batches(index, queries, match):
        rows = rows_of(index, part, offsets, documents)
        scores = np.asarray(model.score(rows), np.float64)
        if scores.shape != (len(rows),) or np.isnan(scores).any():
            raise InputError(f"the model gave {scores.shape} scores for {len(rows)} rows, or one that is NaN")
        order = order_rows(scores, offsets, rows.docids)
        order = order[np.arange(len(order)) - np.repeat(offsets[:-1], np.diff(offsets)) < depth]
        sizes.append(np.minimum(np.diff(offsets), depth))
        found.append(documents[order])
        scored.append(scores[order])
        done += len(part)
        if progress is not None:
            progress("searching", done)
    return bounds(np.concatenate(sizes)), np.concatenate(found), np.concatenate(scored)


def rows_of(index: Index, queries: Queries, offsets: Ints, documents: Ints, labels: Floats | None = None) -> Candidates:
    """Candidates of these documents (by number), with term statistics and the index's columns; unjudged by default."""
    columns = index.column_matrix
    return Candidates(
        offsets,
        np.full(len(documents), np.nan) if labels is None else labels,
        queries.qids,
        index.docids.take(documents),
        None if columns is None else columns[documents],
        tuple(index.columns),
        statistics(index, queries, offsets, documents),
    )


def named_rows(index: Index, asked: QueriesLike, documents: Mapping[str, Sequence[str]]) -> Candidates:
    """Candidates of documents named by their ids, by query id; queries in the order of `asked`."""
    texts = read_queries(asked)
    if unknown := next((qid for qid in documents if qid not in texts), None):
        raise InputError("documents of a query that is not among the queries", query=unknown)
    queries = analyse(index, texts)
    offsets = bounds(np.array([len(documents.get(qid, ())) for qid in texts]))
    ids = Ids.of([docid for qid in texts for docid in documents.get(qid, ())])
    number = index.numbers_of(ids)
    if (number < 0).any():
        row = int((number < 0).argmax())
        query = queries.qids[int(np.searchsorted(offsets, row, "right")) - 1]
        raise InputError(f"document {ids[row]} is not in the index", query=query)
    return rows_of(index, queries, offsets, number).validated()


def matching(index: Index, queries: Queries, match: Literal["or", "and"]) -> tuple[Ints, Ints]:
    """The documents with some, or with all, terms of each query: (offsets by query, documents by number, ascending)."""
    sizes = _match(queries.offsets, queries.number, index.starts, index.docs, match == "and", _NONE, _NOTHING)
    offsets = bounds(sizes)
    documents = np.empty(offsets[-1], np.int32)
    _match(queries.offsets, queries.number, index.starts, index.docs, match == "and", offsets, documents)
    return offsets, documents.astype(np.int64)


def _batches(index: Index, queries: Queries, match: Literal["or", "and"]) -> Iterator[tuple[Queries, Ints, Ints]]:
    """Queries with the documents that match them, as many at a time as there is room for."""
    postings = np.where(queries.number < 0, 0, index.starts[queries.number + 1] - index.starts[queries.number])
    before = np.concatenate([[0], np.cumsum(postings)])[queries.offsets]
    most = np.minimum(np.diff(before), index.documents)
    cost = np.cumsum(most * queries.sizes * len(index.fields))
    first = 0
    while first < len(queries):
        spent = cost[first - 1] if first else 0
        end = max(first + 1, int(np.searchsorted(cost, spent + ROOM, "right")))
        part = _part(queries, first, end)
        yield part, *matching(index, part, match)
        first = end


def _part(queries: Queries, first: int, end: int) -> Queries:
    chosen, terms = np.arange(first, end), slice(queries.offsets[first], queries.offsets[end])
    offsets = queries.offsets[first : end + 1] - queries.offsets[first]
    return Queries(
        queries.qids.take(chosen),
        offsets,
        queries.terms.take(np.arange(terms.start, terms.stop)),
        queries.number[terms],
        queries.count[terms],
    )


_NONE, _NOTHING = np.empty(0, np.int64), np.empty(0, np.int32)


@kernel
def _match_one(number: Ints, starts: Ints, docs: Int32s, every_term: bool, out: Int32s) -> int:
    """How many documents match a query; written to `out` where that has room."""
    at, end, _ = postings_of(number, starts)
    met, need, size = np.zeros(BLOCK, np.int32), len(number) if every_term else 1, 0
    while True:
        base = next_block(at, end, docs)
        if base < 0:
            return size
        for t in range(len(at)):
            i = at[t]
            while i < end[t] and docs[i] < base + BLOCK:
                met[docs[i] - base] += 1
                i += 1
            at[t] = i
        for j in range(BLOCK):
            if met[j] >= need:
                if len(out) > 0:
                    out[size] = base + j
                size += 1
            met[j] = 0


@parallel_kernel
def _match(
    offsets: Ints, number: Ints, starts: Ints, docs: Int32s, every_term: bool, out_offsets: Ints, out: Int32s
) -> Ints:
    """How many documents match each query; written to `out` where there are `out_offsets`."""
    sizes = np.zeros(len(offsets) - 1, np.int64)
    for q in prange(len(offsets) - 1):
        low, high = (out_offsets[q], out_offsets[q + 1]) if len(out_offsets) > 0 else (0, 0)
        sizes[q] = _match_one(number[offsets[q] : offsets[q + 1]], starts, docs, every_term, out[low:high])
    return sizes
