"""BM25, BM25F and the sum of BM25 over a whole index, straight from the postings: the fast path of these models.

Each query is one task. The scores of a block of documents at a time gather in an array that fits the cache; the best
are selected. The formula is the model's own (`scaled_weights`, `saturated`; `norms`, `curved`), so the scores are
those of `model.score`.
Ties are broken by document id, descending. Documents with a score of 0 are not returned.

>>> from fliprank.models import BM25
>>> from fliprank.text.index import Index
>>> index = Index.build([{"_id": "a", "t": "red shoe"}, {"_id": "b", "t": "red red"}, {"_id": "c", "t": "sky"}])
>>> index.search({"q": "red"}, BM25()).to_dict()
{'q': {'b': 0.278..., 'a': 0.197...}}
"""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

import numpy as np

from fliprank.arrays import Floats, Int32s, Ints
from fliprank.data.csr import bounds
from fliprank.errors import UsageError
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.models.bm25 import BM25, BM25F, saturated
from fliprank.models.bm25_sum import EACH, BM25Sum, curved
from fliprank.text.index_arrays import IndexArrays, Postings
from fliprank.text.search.queries import Queries
from fliprank.text.search.selection import select, sort_best

__all__ = ["BLOCK", "Cursors", "bm25_top", "has_fast_path", "next_block", "start_postings"]

BLOCK, GROUP = 1 << 14, 16
"""Documents whose scores gather at a time; documents of a group are looked at together, and mostly skipped."""
LEAST = 5e-324
"""The smallest score above 0."""


class QueryTerms(NamedTuple):
    """Query q owns the terms `offsets[q]:offsets[q + 1]`; `weight` is idf x count."""

    offsets: Ints
    number: Ints
    weight: Floats


class Scoring(NamedTuple):
    """The model: f is the sum over fields of `scaled` (documents x fields) x tf; one column stands for all fields.

    Of a sum of BM25, `scaled` is k beta, and `w` and `a` of each field are not empty.
    """

    scaled: Floats
    k: float
    w: Floats
    a: Floats


class Ranked(NamedTuple):
    """The best documents of query q, best first, from `offsets[q]` on; there is room until `offsets[q + 1]`."""

    offsets: Ints
    documents: Int32s
    scores: Floats


class Cursors(NamedTuple):
    """For each term of a query, the next posting and the end of its postings."""

    at: Ints
    end: Ints


def has_fast_path(model: object) -> TypeGuard[BM25 | BM25F | BM25Sum]:
    """Whether this is one of the models here, and no subclass that scores otherwise."""
    return isinstance(model, BM25 | BM25F | BM25Sum) and type(model).score in (BM25.score, BM25Sum.score)


def bm25_top(
    index: IndexArrays, queries: Queries, model: BM25 | BM25F | BM25Sum, depth: int, every_term: bool = False
) -> tuple[Ints, Ints, Floats]:
    """The best documents with a score above 0: (offsets per query, documents by number, scores), best first."""
    room = bounds(np.minimum(queries.postings, depth))
    out = Ranked(room, np.empty(room[-1], np.int32), np.empty(room[-1]))
    terms = QueryTerms(queries.offsets, queries.number, queries.idf * queries.count)
    sizes = _rank(terms, index.postings, _scoring(index, model), index.rank, every_term, out)
    offsets = bounds(sizes)
    kept = np.arange(offsets[-1]) + np.repeat(room[:-1] - offsets[:-1], sizes)
    return offsets, out.documents[kept].astype(np.int64), out.scores[kept]


def _scoring(index: IndexArrays, model: BM25 | BM25F | BM25Sum) -> Scoring:
    model.params.check_bounds()  # so that scores are never negative
    names = model.fields or ()
    if unknown := [name for name in names if name not in index.fields]:
        raise UsageError(f"the model needs the field {unknown[0]!r}, but the index has {', '.join(index.fields)}")
    columns = [index.fields.index(name) for name in names]
    length = index.length[:, columns].astype(np.float64)
    if isinstance(model, BM25Sum):
        values = model.params.values.reshape(-1, EACH)
        norms, w, a = np.ones((index.documents, len(index.fields))), *np.zeros((2, len(index.fields)))
        norms[:, columns], w[columns], a[columns] = model.norms(length), values[:, 0], values[:, -1]
        return Scoring(norms, 0.0, w, a)
    scaled = model.scaled_weights(length.sum(1, keepdims=True) if model.joined else length)
    if scaled.shape[1] > 1 or len(columns) < len(index.fields):
        every = np.zeros((index.documents, len(index.fields)))
        every[:, columns] = scaled
        scaled = every
    return Scoring(scaled, model.params["k"], np.empty(0), np.empty(0))


@kernel
def _gather(gathered: Floats, base: int, i: int, end: int, weight: float, postings: Postings, by: Scoring) -> int:
    """Add the scores of a term to those of the block at `base`; returns the first posting beyond the block."""
    (_, docs, tf), (scaled, k, w, a), limit, fields = postings, by, base + BLOCK, postings.tf.shape[1]
    if len(w) > 0:
        while i < end and docs[i] < limit:
            total = 0.0
            for s in range(fields):
                if tf[i, s] > 0:
                    x = curved(np.float64(tf[i, s]), a[s])
                    total += w[s] * x / (x + scaled[docs[i], s])
            gathered[docs[i] - base] += weight * total
            i += 1
    elif scaled.shape[1] > 1:
        while i < end and docs[i] < limit:
            f = 0.0
            for s in range(fields):
                f += scaled[docs[i], s] * tf[i, s]
            gathered[docs[i] - base] += saturated(weight, f, k)
            i += 1
    elif fields > 1:
        whole = scaled.reshape(-1)
        while i < end and docs[i] < limit:
            count = 0.0
            for s in range(fields):
                count += tf[i, s]
            gathered[docs[i] - base] += saturated(weight, whole[docs[i]] * count, k)
            i += 1
    else:
        whole, counts = scaled.reshape(-1), tf.reshape(-1)
        while i < end and docs[i] < limit:
            gathered[docs[i] - base] += saturated(weight, whole[docs[i]] * counts[i], k)
            i += 1
    return i


@kernel
def start_postings(number: Ints, starts: Ints) -> tuple[Cursors, bool]:
    """Cursors at the first postings of a query's terms; whether some term has none."""
    at, end, missing = np.zeros(len(number), np.int64), np.zeros(len(number), np.int64), False
    for t in range(len(number)):
        if number[t] >= 0:
            at[t], end[t] = starts[number[t]], starts[number[t] + 1]
        else:
            missing = True
    return Cursors(at, end), missing


@kernel
def next_block(cursors: Cursors, docs: Int32s) -> int:
    """The first document of the next block in which some term has a posting; -1 at the end."""
    block = np.int64(-1)
    for t in range(len(cursors.at)):
        if cursors.at[t] < cursors.end[t]:
            own = np.int64(docs[cursors.at[t]]) // BLOCK
            block = own if block < 0 else min(block, own)
    return int(block * BLOCK if block >= 0 else block)


@kernel
def _rank_one(
    number: Ints, weight: Floats, postings: Postings, by: Scoring, rank: Int32s, every_term: bool, out: Ranked
) -> int:
    """Write the best documents of a query, best first, to the room there is; returns how many there are.

    Scores that can still be among the best go to a list of some times the length needed; when it is full, the best are
    selected, and the bar for further scores rises.
    """
    docs, terms, depth, size, bar = postings.docs, len(number), len(out.scores), 0, LEAST
    cursors, missing = start_postings(number, postings.starts)
    if depth == 0 or (every_term and missing):
        return 0
    length = 4 * depth + 64
    scores, documents = np.empty(length), np.empty(length, np.int32)
    gathered, met = np.zeros(BLOCK), np.zeros(BLOCK if every_term else 1, np.int64)
    while True:
        base = next_block(cursors, docs)
        if base < 0:
            break
        for t in range(terms):
            first = cursors.at[t]
            cursors.at[t] = _gather(gathered, base, first, cursors.end[t], weight[t], postings, by)
            if every_term:
                for i in range(first, cursors.at[t]):
                    met[docs[i] - base] += 1
        for group in range(0, BLOCK, GROUP):
            highest = 0.0
            for j in range(GROUP):
                highest = max(highest, gathered[group + j])
            if highest < bar:
                continue
            for j in range(group, group + GROUP):
                if gathered[j] >= bar and (not every_term or met[j] == terms):
                    scores[size], documents[size] = gathered[j], base + j
                    size += 1
                    if size == length:
                        select(scores, documents, size, depth - 1, rank)
                        size, bar = depth, scores[depth - 1]
        gathered[:] = 0.0
        met[:] = 0
    if size > depth:
        select(scores, documents, size, depth - 1, rank)
        size = depth
    sort_best(scores, documents, size, rank)
    for i in range(size):
        out.scores[i], out.documents[i] = scores[i], documents[i]
    return size


@parallel_kernel
def _rank(terms: QueryTerms, postings: Postings, by: Scoring, rank: Int32s, every_term: bool, out: Ranked) -> Ints:
    """Write the best documents of each query; returns how many there are."""
    sizes = np.zeros(len(terms.offsets) - 1, np.int64)
    for q in prange(len(sizes)):
        own, room = slice(terms.offsets[q], terms.offsets[q + 1]), slice(out.offsets[q], out.offsets[q + 1])
        part = Ranked(out.offsets, out.documents[room], out.scores[room])
        sizes[q] = _rank_one(terms.number[own], terms.weight[own], postings, by, rank, every_term, part)
    return sizes
