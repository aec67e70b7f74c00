"""Rows on their way through a cascade: the best of each query, found without sorting the rest.

>>> rows = Candidates.of([0, 0, 0, 0], group=[3, 1])
>>> select_rows(rows, np.array([1.0, 3.0, 2.0, 5.0]), 2)          # rows of the two best; the best score below them
(array([1, 2, 3]), array([1., 0.]))
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Bytes, Floats, Int32s, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds, positions
from fliprank.data.order import NO_IDS, order_rows, sort_rows
from fliprank.kernels import kernel, parallel_kernel, prange

__all__ = ["bare_rows", "lifted", "rank_scores", "select_rows", "top_rows"]


def top_rows(offsets: Ints, size: int) -> Ints:
    """The places of the first `size` rows of each query.

    >>> top_rows(np.array([0, 3, 4]), 2)
    array([0, 1, 3])
    """
    return np.flatnonzero(positions(offsets) < size)


def bare_rows(candidates: Candidates, rows: Ints, sizes: Ints) -> Candidates:
    """Some rows, `sizes[q]` of query q, with all that models look at; unlike `take`, without what measures need.

    Row numbers must rise, so that ties without document ids are settled as among all rows; `memo["rows"]` has them.
    """
    few = Candidates(
        bounds(sizes),
        candidates.labels[rows],
        candidates.qids,
        None if candidates.docids is None else candidates.docids.take(rows),
        None if candidates.features is None else candidates.features[rows],
        candidates.feature_names,
        None if candidates.terms is None else candidates.terms.take(np.arange(candidates.queries), rows),
        lists=None if candidates.lists is None else candidates.lists.take(np.arange(candidates.queries), rows),
    )
    few.memo["rows"] = rows
    if "features are numbers" in candidates.memo:
        few.memo["features are numbers"] = True
    return few


def rank_scores(candidates: Candidates, order: Ints) -> Floats:
    """Minus the rank of each row, where `order` has the rows query by query, best first."""
    out = np.empty(len(candidates))
    out[order] = -1.0 - positions(candidates.offsets)
    return out


class _Scored(NamedTuple):
    """Scores, their bits, and the packed document ids that settle ties."""

    scores: Floats
    bits: NDArray[np.uint64]
    buffer: Bytes
    start: Ints
    length: Int32s


def select_rows(candidates: Candidates, scores: Floats, size: int) -> tuple[Ints, Floats]:
    """The rows of the `size` best documents of each query, by row number; the best score below them, 0 if none is."""
    ids = NO_IDS if candidates.docids is None else candidates.docids
    kept = bounds(np.minimum(candidates.sizes, size))
    values = frozen(scores, np.float64)
    scored = _Scored(values, values.view(np.uint64), *ids.arrays)
    return _select_rows(scored, candidates.offsets, frozen(kept, np.int64))


def lifted(few: Candidates, scores: Floats, best_below: Floats) -> Floats:
    """New scores in the same order, all above `best_below` of their query, 1 apart (more if scores are huge)."""
    place = rank_scores(few, order_rows(scores, few.offsets, few.docids)) + np.repeat(few.sizes, few.sizes) + 1.0
    step = np.maximum(1.0, np.abs(best_below) * 2.0**-40)
    out: Floats = np.repeat(best_below, few.sizes) + place * np.repeat(step, few.sizes)
    return out


@parallel_kernel
def _select_rows(scored: _Scored, offsets: Ints, kept: Ints) -> tuple[Ints, Floats]:
    scores = scored.scores
    rows, best_below = np.empty(kept[-1], np.int64), np.zeros(len(offsets) - 1)
    for q in prange(len(offsets) - 1):
        low, high, count = offsets[q], offsets[q + 1], kept[q + 1] - kept[q]
        out = rows[kept[q] : kept[q + 1]]
        if count == high - low:
            for i in range(count):
                out[i] = low + i
            continue
        limit = _largest(scores[low:high].copy(), count)
        above, equal, below = 0, 0, -np.inf
        for row in range(low, high):
            above += scores[row] > limit
            equal += scores[row] == limit
            below = max(below, scores[row] if scores[row] < limit else -np.inf)
        if above + equal == count:
            best_below[q] = below
            at = 0
            for row in range(low, high):
                if scores[row] >= limit:
                    out[at] = row
                    at += 1
        else:  # some of the rows with equal scores are kept, by the rule for ties
            best_below[q] = limit
            ranked = np.empty(high - low, np.int64)
            sort_rows(low, high, scores, scored.bits, scored.buffer, scored.start, scored.length, ranked)
            out[:] = ranked[:count]
            out.sort()
    return rows, best_below


@kernel
def _largest(values: Floats, count: int) -> float:
    """The `count`-th largest of `values`, by quickselect, which changes their order."""
    low, high, target = 0, len(values) - 1, count - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i, j = i + 1, j - 1
        if target <= j:
            high = j
        elif target >= i:
            low = i
        else:
            break
    return float(values[target])
