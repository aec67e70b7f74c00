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
from typing import ClassVar, NamedTuple

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
from fliprank.objectives.many_pairs import warn_of_pairs
from fliprank.objectives.smooth import softplus

__all__ = ["LambdaRank"]

FIRST = 0
"""`Law.above` of a measure that pays the first relevant document only: none stands above it."""

ANY, COUNT = int(Above.ANY), int(Above.COUNT)


@register
@dataclass(frozen=True, eq=False)
class LambdaRank(Objective):
    """The cost of pairs in the wrong order, each weighted by what the measure would change if the two swapped ranks.

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
        warn_of_pairs(self.name, candidates)
        return _lambdas(*self._weighed_by(scores, candidates), share, self.sigma)

    def curvature(self, scores: Floats, candidates: Candidates, gradient: Floats) -> Floats:
        """The sum over the pairs of a document of |change| sigma^2 rho (1 - rho), rho = 1 / (1 + e^(s1 - s2))."""
        return _bends(*self._weighed_by(scores, candidates), self.sigma)

    def _weighed_by(self, scores: Floats, candidates: Candidates) -> tuple[Rows, Swaps]:
        """The ranking at these scores, and what swaps in it change."""
        law = self.target().law_for(candidates)
        if law.ranks != Ranks.ALL or law.above not in (Above.ANY, Above.COUNT, FIRST):
            raise UsageError(f"lambdarank can't weigh pairs by {self.target()}: a swap changes other documents' ranks")
        order = order_rows(scores, candidates.offsets, candidates.docids)
        rows = Rows(scores, labels_of(candidates), order, candidates.offsets, candidates.judgements.entry_of_row)
        return rows, Swaps(law.gain, law.discount, law.begin, law.limit, law.above)


@lru_cache
def _measure(name: str, cutoff: int | None) -> RankMeasure:
    measure = parse_measure(name)
    if not isinstance(measure, RankMeasure):
        raise UsageError(f"lambdarank can't weigh pairs by {measure}: its value is not a sum over ranks")
    return measure if cutoff is None else measure @ cutoff


class Rows(NamedTuple):
    """All rows, in ranked order within each query; `entry` is the judgement of each row, -1 if there is none."""

    score: Floats
    label: Floats
    order: Ints
    offsets: Ints
    entry: Int32s


class Swaps(NamedTuple):
    """What a swap's change depends on: the `Law` of the measure."""

    gain: Floats
    discount: Floats
    begin: Ints
    limit: Ints
    above: int


class Prefixes(NamedTuple):
    """By rank, from 0: the discount, and the relevant documents and their discounts up to there; and the ranks of the
    first two relevant documents."""

    at: Floats
    relevant: Ints
    collected: Floats
    first: int
    second: int


@parallel_kernel
def _lambdas(rows: Rows, swaps: Swaps, share: Floats, sigma: float) -> tuple[Floats, Floats]:
    """The cost of each query, and share x its gradient."""
    offsets = rows.offsets
    values, gradient = np.zeros(len(offsets) - 1), np.zeros(len(rows.score))
    for q in prange(len(offsets) - 1):
        ranked = rows.order[offsets[q] : offsets[q + 1]]
        size = len(ranked)
        own, label, score, pull = _gains(rows, swaps, ranked), rows.label[ranked], rows.score[ranked], np.zeros(size)
        prefixes = _prefixes(own, swaps.discount[swaps.begin[q] :], swaps.limit[q])
        deep = _deepest(prefixes)
        others, change, gap = np.empty(size, np.int64), np.empty(size), np.empty(size)
        for a in range(deep):
            count = 0
            for b in range(a + 1, size):  # without a branch, which half the pairs would mispredict
                others[count] = b
                count += label[a] != label[b]
            for k in range(count):
                b = others[k]
                up = 1.0 - 2.0 * (label[a] < label[b])
                change[k] = up * abs(_swap_change(swaps.above, own, prefixes, a, b))
                gap[k] = up * sigma * (score[b] - score[a])
            values[q] += _weighed(change, gap, count)
            for k in range(count):
                pull[others[k]] += gap[k]
                pull[a] -= gap[k]
        for r in range(size):
            gradient[ranked[r]] = pull[r] * sigma * share[q]
    return values, gradient


@parallel_kernel
def _bends(rows: Rows, swaps: Swaps, sigma: float) -> Floats:
    """The second derivative by each score of the sum of all queries' costs, the changes held fixed."""
    offsets = rows.offsets
    out = np.zeros(len(rows.score))
    for q in prange(len(offsets) - 1):
        ranked = rows.order[offsets[q] : offsets[q + 1]]
        own = _gains(rows, swaps, ranked)
        prefixes = _prefixes(own, swaps.discount[swaps.begin[q] :], swaps.limit[q])
        for a in range(_deepest(prefixes)):
            for b in range(a + 1, len(ranked)):
                first, second = ranked[a], ranked[b]
                if rows.label[first] != rows.label[second]:
                    slope = softplus(sigma * (rows.score[second] - rows.score[first]))[1]
                    change = abs(_swap_change(swaps.above, own, prefixes, a, b))
                    bend = change * sigma * sigma * slope * (1.0 - slope)
                    out[first] += bend
                    out[second] += bend
    return out


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
def _gains(rows: Rows, swaps: Swaps, ranked: Ints) -> Floats:
    """The gains of a query's documents, in ranked order."""
    own = np.zeros(len(ranked))
    for r in range(len(ranked)):
        if rows.entry[ranked[r]] >= 0:
            own[r] = swaps.gain[rows.entry[ranked[r]]]
    return own


@kernel
def _deepest(prefixes: Prefixes) -> int:
    """How many ranks there are down to the last that pays: below it, no swap changes anything."""
    deep = 0
    for r in range(len(prefixes.at)):
        if prefixes.at[r] != 0.0:
            deep = r + 1
    return deep


@kernel
def _prefixes(own: Floats, discount: Floats, limit: int) -> Prefixes:
    """What the change of a swap is read from, for documents with these gains in ranked order."""
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
    return Prefixes(at, relevant, collected, first, second)


@kernel
def _swap_change(above: int, own: Floats, prefixes: Prefixes, a: int, b: int) -> float:
    """The change of the measure if the documents at ranks a < b swapped them.

    A sum of gains changes by (gain of the lower - gain of the upper) x (discount above - discount below). Average
    precision: the relevant one of the two moves, and each relevant one between them has one more or one fewer above it.
    Reciprocal rank: only the first relevant document counts.
    """
    at, upper, lower = prefixes.at, own[a], own[b]
    if above == ANY:
        return float((lower - upper) * (at[a] - at[b]))
    if (upper != 0.0) == (lower != 0.0):
        return 0.0
    rises = lower != 0.0
    if above == COUNT:
        top, between = prefixes.relevant[a] + (1.0 if rises else 0.0), prefixes.collected[b - 1] - prefixes.collected[a]
        change = (upper + lower) * (top * at[a] + between - prefixes.relevant[b] * at[b])
        return float(change if rises else -change)
    if prefixes.first < a:
        return 0.0
    if rises:
        return float(lower * (at[a] - (at[prefixes.first] if prefixes.first < len(own) else 0.0)))
    return float(upper * (at[min(b, prefixes.second)] - at[a]))
