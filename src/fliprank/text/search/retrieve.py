"""Retrieval over the whole index, by any model: the documents that match a query, their statistics, the best of them.

The documents that have some term of a query (or all of them) are candidates like any others: a model scores them with
`score(candidates)`. Queries are processed in batches that fit in memory. BM25, BM25F and the sum of BM25 have a faster
way (`bm25.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, Protocol

import numpy as np

from fliprank.arrays import Floats, Int32s, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds, positions
from fliprank.data.ids import Ids
from fliprank.data.order import order_rows
from fliprank.data.trec import Run
from fliprank.errors import InputError, UsageError
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.models.base import Model
from fliprank.models.bm25 import BM25
from fliprank.text.index_arrays import IndexArrays, Postings, Progress
from fliprank.text.search.bm25 import BLOCK, bm25_top, has_fast_path, next_block, start_postings
from fliprank.text.search.gather_statistics import statistics
from fliprank.text.search.queries import Queries, QueriesLike, analyse, read_queries

__all__ = ["Scorer", "matching", "named_rows", "numbers_of_rows", "rows_of", "search", "top"]

ROOM = 1 << 26
"""Frequencies (terms x fields of all rows) that a batch of queries may have."""


class Scorer(Protocol):
    """Any model: gives each row a score."""

    def score(self, candidates: Candidates) -> Floats:
        """One score per row."""


class HasDocuments(Protocol):
    """Knows documents by their ids."""

    def numbers_of(self, docids: Ids) -> Ints:
        """The number of each document; -1 where there is none."""


def search(
    index: IndexArrays,
    queries: QueriesLike,
    model: Scorer | None = None,
    *,
    depth: int = 1000,
    match: Literal["or", "and"] = "or",
    progress: Progress | None = None,
) -> Run:
    """See `Index.search`."""
    asked = analyse(index, read_queries(queries))
    offsets, documents, scores = top(index, asked, model, depth, match, progress)
    return Run(offsets, asked.qids, index.docids.take(documents), scores, getattr(model, "name", "bm25"))


def top(
    index: IndexArrays,
    queries: Queries,
    model: Scorer | None,
    depth: int,
    match: Literal["or", "and"] = "or",
    progress: Progress | None = None,
) -> tuple[Ints, Ints, Floats]:
    """The best `depth` documents of each query: (offsets per query, documents by number, scores), best first."""
    if match not in ("or", "and") or depth < 1:
        raise UsageError(f"match must be 'or' or 'and' and depth at least 1, not {match!r} and {depth}")
    model = BM25() if model is None else model
    if isinstance(model, Model) and not model.ready:  # without rows, it learns average lengths from the collection
        model = model.prepared(rows_of(index, analyse(index, {}), np.zeros(1, np.int64), np.empty(0, np.int64)), 0)
    if has_fast_path(model):
        return bm25_top(index, queries, model, depth, match == "and")
    sizes, found, scored, done = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)], 0
    for part, offsets, documents in _batches(index, queries, match):
        rows = rows_of(index, part, offsets, documents)
        scores = np.asarray(model.score(rows), np.float64)
        if scores.shape != (len(rows),) or np.isnan(scores).any():
            raise InputError(f"the model gave {scores.shape} scores for {len(rows)} rows, or a score that is NaN")
        best = order_rows(scores, offsets, rows.docids)[positions(offsets) < depth]
        sizes.append(np.minimum(np.diff(offsets), depth))
        found.append(documents[best])
        scored.append(scores[best])
        done += len(part)
        if progress is not None:
            progress("searching", done)
    return bounds(np.concatenate(sizes)), np.concatenate(found), np.concatenate(scored)


def rows_of(
    index: IndexArrays, queries: Queries, offsets: Ints, documents: Ints, labels: Floats | None = None
) -> Candidates:
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


def named_rows(index: IndexArrays, queries: QueriesLike, documents: Mapping[str, Sequence[str]]) -> Candidates:
    """See `Index.rows`."""
    texts = read_queries(queries)
    if unknown := next((qid for qid in documents if qid not in texts), None):
        raise InputError("documents of a query that is not among the queries", query=unknown)
    asked = analyse(index, texts)
    offsets = bounds(np.array([len(documents.get(qid, ())) for qid in texts]))
    ids = Ids.of([docid for qid in texts for docid in documents.get(qid, ())])
    return rows_of(index, asked, offsets, numbers_of_rows(index, asked.qids, offsets, ids)).validated()


def numbers_of_rows(index: HasDocuments, qids: Ids, offsets: Ints, docids: Ids) -> Ints:
    """The number of each row's document; raises if the index does not have it."""
    numbers = index.numbers_of(docids)
    if (numbers < 0).any():
        row = int((numbers < 0).argmax())
        query = qids[int(np.searchsorted(offsets, row, "right")) - 1]
        raise InputError(f"document {docids[row]} is not in the index", query=query)
    return numbers


def matching(index: IndexArrays, queries: Queries, match: Literal["or", "and"]) -> tuple[Ints, Ints]:
    """The documents with some or with all terms of each query: (offsets per query, documents by number, ascending)."""
    given = queries.offsets, queries.number, index.postings, match == "and"
    offsets = bounds(_match(*given, np.zeros(len(queries) + 1, np.int64), np.empty(0, np.int32)))
    documents = np.empty(offsets[-1], np.int32)
    _match(*given, offsets, documents)
    return offsets, documents.astype(np.int64)


def _batches(index: IndexArrays, queries: Queries, match: Literal["or", "and"]) -> Iterator[tuple[Queries, Ints, Ints]]:
    """Queries with the documents that match them, as many at a time as there is room for."""
    most = np.minimum(queries.postings, index.documents)
    cost = np.cumsum(most * queries.sizes * len(index.fields))
    first = 0
    while first < len(queries):
        spent = cost[first - 1] if first else 0
        end = max(first + 1, int(np.searchsorted(cost, spent + ROOM, "right")))
        part = queries.span(first, end)
        yield part, *matching(index, part, match)
        first = end


@kernel
def _match_one(number: Ints, postings: Postings, every_term: bool, out: Int32s) -> int:
    """How many documents match a query; they are written to `out` if it has room."""
    docs, (cursors, _) = postings.docs, start_postings(number, postings.starts)
    met, need, size = np.zeros(BLOCK, np.int32), len(number) if every_term else 1, 0
    while True:
        base = next_block(cursors, docs)
        if base < 0:
            return size
        for t in range(len(number)):
            i = cursors.at[t]
            while i < cursors.end[t] and docs[i] < base + BLOCK:
                met[docs[i] - base] += 1
                i += 1
            cursors.at[t] = i
        for j in range(BLOCK):
            if met[j] >= need:
                if len(out) > 0:
                    out[size] = base + j
                size += 1
            met[j] = 0


@parallel_kernel
def _match(offsets: Ints, number: Ints, postings: Postings, every_term: bool, out_offsets: Ints, out: Int32s) -> Ints:
    """How many documents match each query q; they are written to `out[out_offsets[q] : out_offsets[q + 1]]`, if any."""
    sizes = np.zeros(len(offsets) - 1, np.int64)
    for q in prange(len(offsets) - 1):
        room = out[out_offsets[q] : out_offsets[q + 1]]
        sizes[q] = _match_one(number[offsets[q] : offsets[q + 1]], postings, every_term, room)
    return sizes
