"""LambdaRank: RankNet's pull on each pair, times the measure's change if the two swapped (SoftRank, section 2.4).

Eq. (7) as printed pushes wrongly ordered pairs the wrong way; this is the gradient that its authors mean. The change is
that of `fliprank.measures`, exactly, at any two ranks: NDCG, AP, RR, P@k and their kin, with or without a cut-off.

>>> from fliprank.data.candidates import Candidates
>>> cost, gradient = LambdaRank().value_and_grad([1.0, 0.0], Candidates.of([0, 1]))
>>> round(cost, 6), gradient.round(6)       # (1 - 1/log2 3) x log(1 + e), and x 1 / (1 + 1/e)
(0.484686, array([ 0.269812, -0.269812]))
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from fliprank.arrays import Floats, Int32s, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.order import order_rows
from fliprank.errors import UsageError
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.measures.base import Measure, RankMeasure
from fliprank.measures.law import Above, Ranks, discount_at
from fliprank.measures.names import parse_measure
from fliprank.objectives.base import Objective, register
from fliprank.objectives.gains import labels_of
from fliprank.objectives.kernels import fast_kernel
from fliprank.objectives.smooth import softplus

__all__ = ["LambdaRank"]


@register
@dataclass(frozen=True, eq=False)
class LambdaRank(Objective):
    """The cost of pairs in the wrong order, each weighed by what the measure would change if the two swapped ranks.

    Sum over pairs of different labels of |change| x log(1 + e^(-sigma (s1 - s2))), the changes held fixed at the
    current ranks: the gradient is exact for this cost as long as no two documents swap. `sigma` scales the scores.
    """

    name: ClassVar[str] = "lambdarank"
    maximise: ClassVar[bool] = False
    measure: str = "nDCG(dcg='exp-log2')"
    cutoff: int | None = None
    sigma: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.measure, Measure):
            object.__setattr__(self, "measure", str(self.measure))
        if not 0 < self.sigma < np.inf:
            raise UsageError(f"lambdarank(sigma={self.sigma!r}): sigma is above 0")
        self.target()

    def target(self) -> RankMeasure:
        """The measure whose changes weigh the pairs."""
        return _measure(self.measure, self.cutoff)

    def evaluate(self, scores: Floats, candidates: Candidates, share: Floats) -> tuple[Floats, Floats]:
        law = self.target().law_for(candidates)
        if law.ranks != Ranks.ALL or law.above not in (Above.ANY, Above.COUNT, 0):
            raise UsageError(f"lambdarank can't weigh pairs by {self.target()}: a swap changes other documents' ranks")
        order = order_rows(scores, candidates.offsets, candidates.docids)
        labels, entries = labels_of(candidates), candidates.judgements.entry_of_row
        of_law = (law.gain, law.discount, law.limit, law.above)
        return _lambdas(scores, labels, order, candidates.offsets, entries, *of_law, share, self.sigma)


@lru_cache
def _measure(name: str, cutoff: int | None) -> RankMeasure:
    measure = parse_measure(name)
    if not isinstance(measure, RankMeasure):
        raise UsageError(f"lambdarank can't weigh pairs by {measure}: its value is no sum over ranks")
    return measure if cutoff is None else measure @ cutoff


@parallel_kernel
def _lambdas(
    scores: Floats,
    labels: Floats,
    order: Ints,
    offsets: Ints,
    entry_of_row: Int32s,
    gain: Floats,
    discount: Floats,
    limit: Ints,
    above: int,
    share: Floats,
    sigma: float,
) -> tuple[Floats, Floats]:
    values, gradient = np.zeros(len(offsets) - 1), np.zeros(len(scores))
    for q in prange(len(offsets) - 1):
        rows = order[offsets[q] : offsets[q + 1]]
        size = len(rows)
        own, label, score, pull = np.zeros(size), labels[rows], scores[rows], np.zeros(size)
        for r in range(size):
            if entry_of_row[rows[r]] >= 0:
                own[r] = gain[entry_of_row[rows[r]]]
        at, relevant, collected, first, second = _prefixes(own, discount, limit[q])
        # Below the last rank that pays, no swap changes anything.
        deep = 0
        for r in range(size):
            if at[r] != 0.0:
                deep = r + 1
        others, change, gap = np.empty(size, np.int64), np.empty(size), np.empty(size)
        for a in range(deep):
            count = 0
            for b in range(a + 1, size):  # without a branch, which half the pairs would mispredict
                others[count] = b
                count += label[a] != label[b]
            for k in range(count):
                b = others[k]
                between = collected[b - 1] - collected[a]
                counts = (relevant[a], relevant[b])
                heads = (at[a], at[a])
                if first >= a:
                    heads = (at[first] if first < size else 0.0, at[min(b, second)])
                up = 1.0 - 2.0 * (label[a] < label[b])
                change[k] = up * abs(swap_change(above, own[a], own[b], at[a], at[b], counts, between, heads))
                gap[k] = up * sigma * (score[b] - score[a])
            values[q] += _weighed(change, gap, count)
            for k in range(count):
                pull[others[k]] += gap[k]
                pull[a] -= gap[k]
        for r in range(size):
            gradient[rows[r]] = pull[r] * sigma * share[q]
    return values, gradient


@fast_kernel
def _weighed(change: Floats, gap: Floats, count: int) -> float:
    """The sum of |change| x log(1 + e^gap); each gap becomes change x its slope."""
    total = 0.0
    for k in range(count):
        cost, slope = softplus(gap[k])
        total += abs(change[k]) * cost
        gap[k] = change[k] * slope
    return total


@kernel
def _prefixes(own: Floats, discount: Floats, limit: int) -> tuple[Floats, Ints, Floats, int, int]:
    """What a swap's change is read off: the discount at each rank (from 0), relevant documents and their discounts up
    to there, and the ranks of the first two relevant ones."""
    size = len(own)
    at, relevant, collected = np.zeros(size), np.zeros(size, np.int64), np.zeros(size)
    count, total, first, second = 0, 0.0, size, size
    for r in range(size):
        at[r] = discount_at(discount, limit, r + 1)
        if own[r] != 0.0:
            count += 1
            total += at[r]
            if count == 1:
                first = r
            elif count == 2:
                second = r
        relevant[r], collected[r] = count, total
    return at, relevant, collected, first, second


@kernel
def swap_change(
    above: int,
    upper: float,
    lower: float,
    at_upper: float,
    at_lower: float,
    relevant: tuple[int, int],
    between: float,
    heads: tuple[float, float],
) -> float:
    """The change of the measure if two documents, gains `upper` and `lower`, swapped their ranks.

    A sum of gains: (gain of the lower - gain of the upper) x (discount above - discount below). Average precision: the
    relevant one of the two moves, and each relevant one `between` has one more or one fewer above it; `relevant`
    counts those down to either rank. Reciprocal rank: only the first relevant document counts; `heads` are its
    discount now, and that of the first one once the upper has fallen (both that of the upper where it stands above).
    """
    if above == -1:
        return (lower - upper) * (at_upper - at_lower)
    if (upper != 0.0) == (lower != 0.0):
        return 0.0
    rises = lower != 0.0
    if above == -2:
        top = relevant[0] + (1.0 if rises else 0.0)
        change = (upper + lower) * (top * at_upper + between - relevant[1] * at_lower)
        return change if rises else -change
    return lower * (at_upper - heads[0]) if rises else upper * (heads[1] - at_upper)
