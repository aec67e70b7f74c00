"""The basic ranker: BM25 over all fields as one text, or BM25F, straight from the postings, a query a task.

The scores of a block of documents at a time gather in an array that fits the cache; the best are selected. Ties go by
document id, descending. With `weights` it is BM25F (Taylor 2006, eqs 3-6): fields are weighted and normalised each by
its own length before saturation. The models of `fliprank.models` are the ones to tune; this one finds candidates.

>>> from fliprank.text.index import Index
>>> index = Index.build([{"_id": "a", "t": "red shoe"}, {"_id": "b", "t": "red red"}, {"_id": "c", "t": "sky"}])
>>> index.search({"q": "red"}, Bm25(k=1.2, b=0.75)).to_dict()
{'q': {'b': 0.278..., 'a': 0.197...}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Int32s, Ints
from fliprank.errors import UsageError
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.text.search.gather_statistics import idf
from fliprank.text.search.queries import Queries
from fliprank.text.search.selection import select, sort_best

if TYPE_CHECKING:
    from fliprank.text.index import Index

__all__ = ["Bm25"]

BLOCK, GROUP = 1 << 14, 16
"""Documents whose scores gather at a time; those of a group are looked at together, and mostly passed over."""
LEAST = 5e-324


@dataclass(frozen=True)
class Bm25:
    """`k` is the saturation, `b` the length normalisation: of all fields together, or with `weights` of each field."""

    k: float = 1.2
    b: float = 0.75
    weights: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if not (0 <= self.k < np.inf and 0 <= self.b <= 1):
            raise UsageError(f"BM25 needs k from 0 on and b from 0 to 1, not k = {self.k}, b = {self.b}")
        if any(not 0 <= w < np.inf for w in (self.weights or {}).values()):
            raise UsageError(f"field weights must be numbers from 0 on: {dict(self.weights or {})}")

    def top(self, index: Index, queries: Queries, depth: int, every_term: bool = False) -> tuple[Ints, Ints, Floats]:
        """The best documents that score above 0: (offsets by query, documents by number, scores), best first."""
        norm, weights = self._norms(index)
        most = _most(queries.offsets, queries.number, index.starts, depth)
        room = np.concatenate([[0], np.cumsum(most)])
        documents, scores = np.empty(room[-1], np.int32), np.empty(room[-1])
        weight = idf(index, queries) * queries.count
        postings = index.starts, index.docs, index.tf
        terms = queries.offsets, queries.number, weight
        sizes = _rank(*terms, *postings, norm, weights, self.k, index.rank, every_term, room, documents, scores)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        if offsets[-1] < room[-1]:
            kept = np.arange(offsets[-1]) + np.repeat(room[:-1] - offsets[:-1], sizes)
            documents, scores = documents[kept], scores[kept]
        return offsets, documents.astype(np.int64), scores

    def _norms(self, index: Index) -> tuple[Floats, Floats]:
        """The lengths' part of the formula, and the weights of fields.

        With n = 1 - b + b length / average: k n by document for all fields together, as tf / n saturates by
        tf / (k n + tf); with weights 1 / n by document and field. One field needs no weight.
        """
        if self.weights is None:
            length, weights = index.length.sum(1, dtype=np.float64)[:, None], np.ones(len(index.fields))
        else:
            if unknown := self.weights.keys() - set(index.fields):
                raise UsageError(f"no field {min(unknown)!r} in the index, which has {', '.join(index.fields)}")
            length = index.length.astype(np.float64)
            weights = np.array([float(self.weights.get(name, 0.0)) for name in index.fields])
        mean = length.mean(0)
        n = 1.0 - self.b + self.b * length / np.where(mean > 0, mean, 1.0)
        if length.shape[1] == 1:
            with np.errstate(divide="ignore", invalid="ignore"):
                return self.k * n / (weights[0] if self.weights else 1.0), weights
        return 1.0 / np.maximum(n, 1e-12), weights


@kernel
def _most(offsets: Ints, number: Ints, starts: Ints, depth: int) -> Ints:
    """How many results a query can have: no more than its terms have postings."""
    out = np.zeros(len(offsets) - 1, np.int64)
    for q in range(len(out)):
        for t in range(offsets[q], offsets[q + 1]):
            if number[t] >= 0:
                out[q] += starts[number[t] + 1] - starts[number[t]]
        out[q] = min(out[q], depth)
    return out


@kernel
def _gather(
    gathered: Floats,
    base: int,
    i: int,
    end: int,
    weight: float,
    docs: Int32s,
    tf: NDArray[np.uint16],
    norm: Floats,
    field_weights: Floats,
    k: float,
) -> int:
    """Add the scores of a term to those of the block at `base`; the first posting beyond it."""
    limit, fields = base + BLOCK, tf.shape[1]
    if norm.shape[1] > 1:
        while i < end and docs[i] < limit:
            x = 0.0
            for f in range(fields):
                x += field_weights[f] * tf[i, f] * norm[docs[i], f]
            gathered[docs[i] - base] += weight * (x / (k + x)) if x > 0.0 else 0.0
            i += 1
    elif fields > 1:
        whole = norm.reshape(-1)
        while i < end and docs[i] < limit:
            x = 0.0
            for f in range(fields):
                x += tf[i, f]
            gathered[docs[i] - base] += weight * (x / (whole[docs[i]] + x))
            i += 1
    else:
        whole, counts = norm.reshape(-1), tf.reshape(-1)
        while i < end and docs[i] < limit:
            x = np.float64(counts[i])
            gathered[docs[i] - base] += weight * (x / (whole[docs[i]] + x))
            i += 1
    return i


@kernel
def postings_of(number: Ints, starts: Ints) -> tuple[Ints, Ints, bool]:
    """(first posting, end of the postings) of each term of a query; whether some term has none."""
    at, end, missing = np.zeros(len(number), np.int64), np.zeros(len(number), np.int64), False
    for t in range(len(number)):
        if number[t] >= 0:
            at[t], end[t] = starts[number[t]], starts[number[t] + 1]
        else:
            missing = True
    return at, end, missing


@kernel
def next_block(at: Ints, end: Ints, docs: Int32s) -> int:
    """The first document of the next block in which some term has a posting; -1 at the end."""
    block = np.int64(-1)
    for t in range(len(at)):
        if at[t] < end[t]:
            own = np.int64(docs[at[t]]) // BLOCK
            block = own if block < 0 else min(block, own)
    return int(block * BLOCK if block >= 0 else block)


@kernel
def _rank_one(
    number: Ints,
    weight: Floats,
    starts: Ints,
    docs: Int32s,
    tf: NDArray[np.uint16],
    norm: Floats,
    field_weights: Floats,
    k: float,
    rank: Int32s,
    every_term: bool,
    out_documents: Int32s,
    out_scores: Floats,
) -> int:
    """Write the best documents of a query, best first, to the room there is; how many there are.

    Scores above the least that can still be among the best go to a list of some times the length needed; when it is
    full, the best are selected, and the bar rises.
    """
    terms, depth, size, bar = len(number), len(out_scores), 0, LEAST
    at, end, missing = postings_of(number, starts)
    if depth == 0 or (every_term and missing):
        return 0
    length = 4 * depth + 64
    scores, documents = np.empty(length), np.empty(length, np.int32)
    gathered, met = np.zeros(BLOCK), np.zeros(BLOCK if every_term else 1, np.int64)
    while True:
        base = next_block(at, end, docs)
        if base < 0:
            break
        for t in range(terms):
            first = at[t]
            at[t] = _gather(gathered, base, first, end[t], weight[t], docs, tf, norm, field_weights, k)
            if every_term:
                for i in range(first, at[t]):
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
        out_scores[i], out_documents[i] = scores[i], documents[i]
    return size


@parallel_kernel
def _rank(
    offsets: Ints,
    number: Ints,
    weight: Floats,
    starts: Ints,
    docs: Int32s,
    tf: NDArray[np.uint16],
    norm: Floats,
    field_weights: Floats,
    k: float,
    rank: Int32s,
    every_term: bool,
    room: Ints,
    out_documents: Int32s,
    out_scores: Floats,
) -> Ints:
    """Write the best documents of query q from `room[q]` on; how many there are."""
    sizes = np.zeros(len(offsets) - 1, np.int64)
    for q in prange(len(offsets) - 1):
        a, b, low, high = offsets[q], offsets[q + 1], room[q], room[q + 1]
        sizes[q] = _rank_one(
            number[a:b], weight[a:b], starts, docs, tf, norm, field_weights, k, rank, every_term,
            out_documents[low:high], out_scores[low:high],
        )  # fmt: skip
    return sizes
