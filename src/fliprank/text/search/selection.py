"""The best of a list of scores and documents, in place: quickselect and quicksort; ties by `rank`, both descending."""

from __future__ import annotations

import numpy as np

from fliprank.arrays import Floats, Int32s
from fliprank.kernels import kernel

__all__ = ["select", "sort_best"]


@kernel
def better_one(score_a: float, a: int, score_b: float, b: int, rank: Int32s) -> bool:
    return score_a > score_b or (score_a == score_b and rank[a] > rank[b])


@kernel
def swap(scores: Floats, documents: Int32s, i: int, j: int) -> None:
    scores[i], scores[j] = scores[j], scores[i]
    documents[i], documents[j] = documents[j], documents[i]


@kernel
def partition(scores: Floats, documents: Int32s, low: int, high: int, rank: Int32s) -> int:
    """Partition `low:high` around one of its entries, better ones before it and worse ones after; returns its place."""
    swap(scores, documents, (low + high) // 2, high - 1)
    pivot, which, at = scores[high - 1], documents[high - 1], low
    for i in range(low, high - 1):
        score, document = scores[i], documents[i]
        better = score > pivot
        if score == pivot:
            better = rank[document] > rank[which]
        # Swapped in any case: a branch would be mispredicted every other time.
        scores[i], documents[i] = scores[at], documents[at]
        scores[at], documents[at] = score, document
        at += better
    swap(scores, documents, at, high - 1)
    return at


@kernel
def select(scores: Floats, documents: Int32s, size: int, best: int, rank: Int32s) -> None:
    """Bring the best `best` of `size` entries to the front."""
    low, high = 0, size
    while high - low > 1:
        at = partition(scores, documents, low, high, rank)
        if at == best:
            return
        if at < best:
            low = at + 1
        else:
            high = at


@kernel
def sort_best(scores: Floats, documents: Int32s, size: int, rank: Int32s) -> None:
    """Sort, best first: partitions, the smaller one first, then insertion."""
    stack, depth = np.empty((64, 2), np.int64), 1
    stack[0, 0], stack[0, 1] = 0, size
    while depth > 0:
        depth -= 1
        low, high = stack[depth, 0], stack[depth, 1]
        while high - low > 16:
            at = partition(scores, documents, low, high, rank)
            if at - low < high - at - 1:
                stack[depth, 0], stack[depth, 1] = at + 1, high
                high = at
            else:
                stack[depth, 0], stack[depth, 1] = low, at
                low = at + 1
            depth += 1
    for i in range(1, size):
        score, document, at = scores[i], documents[i], i
        while at > 0 and better_one(score, document, scores[at - 1], documents[at - 1], rank):
            scores[at], documents[at] = scores[at - 1], documents[at - 1]
            at -= 1
        scores[at], documents[at] = score, document
