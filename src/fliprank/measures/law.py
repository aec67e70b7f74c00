"""The law of flips: what a measure pays for a document, and how that changes when two neighbours swap.

Every rank-based measure here is, for one query, a sum over its judged documents:

    value = sum over documents of  gain x discount(rank) x weight(documents above)

where the weight is 1 (DCG, precision, recall, RBP), one more than the number of relevant documents above (average
precision), 1 only if exactly m relevant ones stand above (reciprocal rank and success: m = 0; search length:
m = n - 1), or the chance that the user got past them (ERR). A flip of the documents at ranks r and r + 1 leaves all
other documents' terms as they were and changes the value by

    (gain of the lower - gain of the upper) x (discount(r) - discount(r + 1)) x weight(documents above rank r)

which is Assertion 1 of Robertson & Zaragoza 2007 in numbers: only a good flip is rewarded, only a bad one penalised,
and a measure ignores a flip just where its discount or weight is flat. The exact search rests on this line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Int32s, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.kernels import kernel, parallel_kernel, prange

__all__ = ["NO_LIMIT", "Above", "Law", "Ranks", "by_rank", "law_flips", "law_values", "tied_values"]

NO_LIMIT = np.iinfo(np.int64).max


class Above(IntEnum):
    """How documents above weigh; a number m >= 0 instead means: 1 where exactly m relevant ones stand above."""

    ANY = -1
    COUNT = -2
    SURVIVAL = -3


class Ranks(IntEnum):
    """What a rank counts: all documents, the judged ones, or 1 + the judged non-relevant ones above (bpref)."""

    ALL = 0
    JUDGED = 1
    NONRELEVANT = 2


@dataclass(frozen=True, eq=False)
class Law:
    """A measure on given judgements: gain of each judged entry, discount by rank, and what stands above.

    `discount[r - 1]` holds for rank r, 0 beyond its end or beyond the query's `limit`; an empty `discount` falls
    linearly from `limit` at rank 1. `relevant` counts the documents of each query that have any gain, ranked or not.
    """

    gain: NDArray[Any]
    discount: NDArray[Any]
    relevant: NDArray[Any]
    limit: NDArray[Any] = None  # type: ignore[assignment]
    above: int = Above.ANY
    ranks: int = Ranks.ALL

    def __post_init__(self) -> None:
        if self.limit is None:
            object.__setattr__(self, "limit", np.full(len(self.relevant), NO_LIMIT))
        for name, dtype in (("gain", float), ("discount", float), ("limit", np.int64), ("relevant", np.int64)):
            object.__setattr__(self, name, frozen(getattr(self, name), dtype))
        object.__setattr__(self, "above", int(self.above))
        object.__setattr__(self, "ranks", int(self.ranks))


def by_rank(candidates: Candidates, cutoff: int | None, discount: Callable[[Floats], Floats]) -> Floats:
    """A discount as a table over ranks 1, 2, ...: as deep as the cut-off, or as the longest query."""
    longest = int(candidates.sizes.max(initial=0))
    return discount(np.arange(1.0, (longest if cutoff is None else min(cutoff, longest)) + 1))


@kernel
def discount_at(discount: Floats, limit: int, rank: int) -> float:
    """The discount of a rank (from 1)."""
    if rank > limit:
        return 0.0
    if len(discount) == 0:
        return float(limit - rank + 1)
    return discount[rank - 1] if rank <= len(discount) else 0.0


@kernel
def weight_of(above: int, relevant_above: int, survival: float) -> float:
    """The weight of what stands above."""
    if above == -1:
        return 1.0
    if above == -2:
        return 1.0 + relevant_above
    if above == -3:
        return survival
    return 1.0 if relevant_above == above else 0.0


@parallel_kernel
def law_values(
    start: Ints,
    count: Ints,
    entry: Ints,
    rank: Ints,
    gain: Floats,
    discount: Floats,
    limit: Ints,
    above: int,
    ranks: int,
) -> Floats:
    """The value of each query, from a ranking of its judged entries."""
    out = np.zeros(len(count))
    for q in prange(len(count)):
        total, relevant, nonrelevant, survival = 0.0, 0, 0, 1.0
        for i in range(count[q]):
            at = start[q] + i
            own = gain[entry[at]]
            if own == 0.0:
                nonrelevant += 1
                continue
            place = rank[at]
            if ranks == 1:
                place = i + 1
            elif ranks == 2:
                place = nonrelevant + 1
            total += own * discount_at(discount, limit[q], place) * weight_of(above, relevant, survival)
            relevant += 1
            survival *= 1.0 - own
        out[q] = total
    return out


@parallel_kernel
def law_flips(
    order: Ints,
    offsets: Ints,
    entry_of_row: Int32s,
    gain: Floats,
    discount: Floats,
    limit: Ints,
    above: int,
    ranks: int,
) -> Floats:
    """At `offsets[q] + r - 1` the change of query q's value when its documents at ranks r and r + 1 swap."""
    out = np.zeros(len(order))
    for q in prange(len(offsets) - 1):
        relevant, nonrelevant, judged, survival = 0, 0, 0, 1.0
        for i in range(offsets[q], offsets[q + 1] - 1):
            upper, lower = entry_of_row[order[i]], entry_of_row[order[i + 1]]
            own = gain[upper] if upper >= 0 else 0.0
            other = gain[lower] if lower >= 0 else 0.0
            place = i - offsets[q] + 1
            if ranks > 0:
                place = judged + 1 if ranks == 1 else nonrelevant + 1
            if own != other and (ranks == 0 or (upper >= 0 and lower >= 0)):
                drop = discount_at(discount, limit[q], place) - discount_at(discount, limit[q], place + 1)
                out[i] = (other - own) * drop * weight_of(above, relevant, survival)
            if upper >= 0:
                judged += 1
                if own == 0.0:
                    nonrelevant += 1
                else:
                    relevant += 1
                    survival *= 1.0 - own
    return out


@parallel_kernel
def tied_values(
    offsets: Ints, scores: Floats, order: Ints, entry_of_row: Int32s, gain: Floats, cumulated: Floats, above: int
) -> Floats:
    """Values where documents of equal score share their ranks, as scikit-learn has it.

    A sum of gains gets the mean discount over the ranks of the tie (`cumulated[r]` is the discount of ranks up to r);
    average precision takes precision at the last rank of the tie.
    """
    out = np.zeros(len(offsets) - 1)
    for q in prange(len(offsets) - 1):
        total, relevant, i, end = 0.0, 0, offsets[q], offsets[q + 1]
        while i < end:
            j, gains = i, 0.0
            while j < end and scores[order[j]] == scores[order[i]]:
                e = entry_of_row[order[j]]
                if e >= 0 and gain[e] != 0.0:
                    gains += gain[e]
                    relevant += 1
                j += 1
            first, last = i - offsets[q], j - offsets[q]
            if above == -1:
                first_sum = cumulated[min(first, len(cumulated) - 1)]
                total += gains * (cumulated[min(last, len(cumulated) - 1)] - first_sum) / (last - first)
            else:
                total += gains * relevant / last
            i = j
        out[q] = total
    return out
