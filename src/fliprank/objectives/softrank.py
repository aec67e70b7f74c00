"""SoftRank: measures of a noisy ranking, smooth in the scores (SoftRank, section 3).

Each score is the mean of a Gaussian; the rank of a document then has a distribution, and the measure an expectation:
the sum over documents of gain x E[discount(rank)] (eqs. 14 and 15). By default that expectation is taken without the
rank distribution, as a sum of generating functions (`exponential_sum.py`), in O(N^2 M) with M about 10 to 20, and less
the smaller the noise. The paper's recursion, its normal approximation and Sinkhorn scaling are other `method`s.

>>> from fliprank.data.candidates import Candidates
>>> value, gradient = SoftNDCG(sigma=0.5).value_and_grad([0.0, 0.5], Candidates.of([1, 0]))
>>> round(value, 6), gradient.round(6)      # pi = Phi(0.5 / sqrt(0.5)) = 0.76025; 1 - pi + pi / log2(3)
(0.719414, array([ 0.162166, -0.162166]))
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.kernels import parallel_kernel, prange
from fliprank.objectives.base import Objective, one_of, register
from fliprank.objectives.contests import contested, hold_contests
from fliprank.objectives.discounts import Discount, alpha_of, checked_discount, discount_of, expected_on_curve
from fliprank.objectives.exponential_sum import Nodes, checked_tol, nodes_of
from fliprank.objectives.gains import GAINS, gain_of, ideal_gains, informative, labels_of
from fliprank.objectives.noisy_ranking import checked_sigma, gather, noisy_ranking, pull_apart, tasks_of
from fliprank.objectives.rank_binomial import expected_by_normal, expected_by_recursion, near_the_edge
from fliprank.objectives.sinkhorn import sinkhorn_values

__all__ = ["METHODS", "SoftMeasure", "SoftNDCG", "SoftP", "SoftRecall"]

METHODS = ("generating", "recursion", "normal", "sinkhorn")
GENERATING, NORMAL_METHOD = METHODS.index("generating"), METHODS.index("normal")


@dataclass(frozen=True, eq=False)
class Plan:
    """What does not depend on scores.

    `worth[i]` is the gain of row i over the best that its query could collect; `discount[offsets[q] + r]` that of rank
    r, 0 from rank `depth[q]`. Without a curve as a sum of exponentials there are no nodes.
    """

    worth: Floats
    discount: Floats
    depth: Ints
    nodes: Nodes


@dataclass(frozen=True, eq=False)
class SoftMeasure(Objective):
    """An expected sum of gain x discount over noisy ranks. Subclasses give `worth` and `by_rank`.

    `sigma` is the noise of the scores, one number for all or one a row. `method` is "generating" (exact to the relative
    tolerance `tol`; with a cut-off, or a discount given by rank, the recursion kept to as many ranks), "recursion"
    (exact), "normal" (approximate) or "sinkhorn" (rank distributions made consistent with each other).
    """

    maximise: ClassVar[bool] = True
    cutoff: int | None = None
    sigma: float | Floats = 0.1
    method: str = "generating"
    tol: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sigma", checked_sigma(self.name, self.sigma))
        one_of(self, "method", *METHODS)
        checked_tol(self.name, self.tol)

    @abstractmethod
    def worth(self, candidates: Candidates) -> Floats:
        """The gain of each row, over the best that its query could collect; 0 throughout a query that tells nothing."""

    @abstractmethod
    def by_rank(self) -> tuple[Discount, int | None]:
        """The discount, and the cut-off that is not in it."""

    def evaluate(self, scores: Floats, candidates: Candidates, share: Floats) -> tuple[Floats, Floats]:
        plan, offsets = self.plan(candidates), candidates.offsets
        ranking = noisy_ranking(scores, self.sigma, candidates)
        noisy = (ranking.score, ranking.variance, plan.worth[ranking.order], offsets, share)
        if self.method == "sinkhorn":
            values, pull = sinkhorn_values(*noisy, plan.discount)
            return values, ranking.by_row(pull)
        method = METHODS.index(self.method)
        if method == GENERATING and not len(plan.nodes.z):
            method = METHODS.index("recursion")
        tasks = tasks_of(candidates)
        curve = (method, alpha_of(self.by_rank()[0]) or 0.0, plan.discount, plan.depth)
        found, pulls = _expectations(*noisy, *tasks.arrays, *curve, *plan.nodes.arrays)
        values, pull = gather(found, pulls, tasks, candidates)
        return values, ranking.by_row(pull)

    def plan(self, candidates: Candidates) -> Plan:
        """Worked out once for these candidates; it holds for any noise."""
        key = (type(self), *(getattr(self, f.name) for f in fields(self) if f.name != "sigma"))
        if key not in candidates.memo:
            candidates.memo[key] = self._plan(candidates)
        plan: Plan = candidates.memo[key]
        return plan

    def _plan(self, candidates: Candidates) -> Plan:
        discount, cutoff = self.by_rank()
        sizes, query = candidates.sizes, candidates.query_of_rows()
        rank = np.arange(len(candidates)) - candidates.offsets[query]
        table = discount_of(discount, rank, sizes[query], cutoff)
        depth = np.bincount(query, table > 0, minlength=candidates.queries)
        smooth = self.method == "generating" and cutoff is None and alpha_of(discount) is not None
        nodes = nodes_of("log2", sizes, self.tol) if smooth else nodes_of("log2", sizes[:0], self.tol)
        worth = frozen(self.worth(candidates), np.float64)
        return Plan(worth, frozen(table, np.float64), frozen(depth, np.int64), nodes)


@parallel_kernel
def _expectations(
    ranked: Floats,
    variance: Floats,
    worth: Floats,
    offsets: Ints,
    share: Floats,
    query: Ints,
    start: Ints,
    end: Ints,
    room: Ints,
    method: int,
    alpha: float,
    discount: Floats,
    depths: Ints,
    first_node: Ints,
    last_node: Ints,
    z: Floats,
    weight: Floats,
) -> tuple[Floats, Floats]:
    """Each task's sum of worth x E[discount], and its pull at each place of the query's ranking."""
    found, pulls = np.zeros(len(query)), np.zeros(room[-1])
    for task in prange(len(query)):
        q = query[task]
        low, high = offsets[q], offsets[q + 1]
        size, want, depth, by_rank = high - low, share[q] != 0.0, depths[q], discount[low:high]
        scores, noise = ranked[low:high], variance[low:high] if len(variance) > 1 else variance
        widest, pull = noise.max(), pulls[room[task] : room[task + 1]]
        pi, density, slope = np.empty(size), np.empty(size), np.empty(size)
        history = np.empty((0 if method == GENERATING else (size + 1 if want else 1), depth + 1))
        for j in range(start[task], end[task]):
            own = worth[low + j]
            above, below = (0, 0) if own == 0.0 else contested(scores, noise, widest, j)
            if own == 0.0 or (method != GENERATING and above >= depth):
                continue
            count = hold_contests(scores, noise, above, below, j, pi, density)
            if method == GENERATING:
                sums = (z[first_node[q] : last_node[q]], weight[first_node[q] : last_node[q]])
                expected = expected_on_curve(alpha, size, pi, count, above, size - below, *sums, slope, want)
            elif method == NORMAL_METHOD and not near_the_edge(j, size, count):
                expected = expected_by_normal(pi, count, above, by_rank, depth, slope, want)
            else:
                expected = expected_by_recursion(pi, count, above, by_rank, depth, history, slope, want)
            found[task] += own * expected
            if want:
                pull_apart(own * share[q], slope, density, count, above, j, pull)
    return found, pulls


@register
@dataclass(frozen=True, eq=False)
class SoftNDCG(SoftMeasure):
    """The expected NDCG of a ranking whose scores have Gaussian noise `sigma`.

    `gain` is "exp" (2^l - 1), "linear" (l) or "exp0" (the paper's 2^l); `discount` is "log2", a number from -1 to 1
    that bends it, or a tuple by rank (see `discounts.py`). Under a discount that falls faster and faster (below 0) or
    is cut off it can exceed 1 a little, as ranks in this model are independent of each other.
    """

    name: ClassVar[str] = "softndcg"
    gain: str = "exp"
    discount: str | float | tuple[float, ...] = "log2"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "gain", *GAINS)
        object.__setattr__(self, "discount", checked_discount(self.discount, self.name))

    def by_rank(self) -> tuple[Discount, int | None]:
        return self.discount, self.cutoff

    def worth(self, candidates: Candidates) -> Floats:
        gains, query, rank = ideal_gains(candidates, lambda labels: gain_of(labels, self.gain))
        paid = gains * discount_of(self.discount, rank, candidates.sizes[query], self.cutoff)
        best = np.bincount(query, paid, minlength=candidates.queries)
        own = gain_of(labels_of(candidates), self.gain)
        scale = informative(own, candidates.offsets) / np.where(best > 0, best, 1.0)
        return own * scale[candidates.query_of_rows()]


@register
@dataclass(frozen=True, eq=False)
class SoftP(SoftMeasure):
    """The expected share of relevant documents (label at least `rel`) among the first `cutoff` of a noisy ranking.

    Ranks in this model are independent of each other: where many relevant documents tie around the cut-off, it can
    exceed 1 (with `method="sinkhorn"` it can't).
    """

    name: ClassVar[str] = "softp"
    rel: float = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cutoff is None:
            raise UsageError(f"{self.name} needs a cut-off, such as {self.name}@10")

    def by_rank(self) -> tuple[Discount, int | None]:
        return (1.0,) * int(self.cutoff or 1), None

    def worth(self, candidates: Candidates) -> Floats:
        relevant = (labels_of(candidates) >= self.rel).astype(np.float64)
        scale = informative(relevant, candidates.offsets) / self._base(candidates)
        return relevant * scale[candidates.query_of_rows()]

    def _base(self, candidates: Candidates) -> Floats:
        return np.full(candidates.queries, float(self.cutoff or 1))


@register
@dataclass(frozen=True, eq=False)
class SoftRecall(SoftP):
    """The expected share of the query's relevant documents that are among the first `cutoff` of a noisy ranking."""

    name: ClassVar[str] = "softrecall"

    def _base(self, candidates: Candidates) -> Floats:
        return np.maximum(candidates.judgements.count(self.rel), 1).astype(np.float64)
