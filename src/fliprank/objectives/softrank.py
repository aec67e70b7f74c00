"""SoftRank's own SoftNDCG: each document's contests taken as independent of each other (Taylor et al. 2008, section 3).

Each score is the mean of a Gaussian. Document j loses to document i with probability pi_ij, and its rank is taken as a
sum of N - 1 independent coin flips (section 3.2). The measure is the sum over documents of gain x E[discount(rank)]
(eqs. 14 and 15). It differs from the expectation over noisy rankings, `softndcg`, because the contests of a document
share its score: docs/softrank.md compares the two.

>>> from fliprank.data.candidates import Candidates
>>> rows = Candidates.of([1, 0, 0])
>>> round(SoftRank(sigma=1.0).value_and_grad([0, 0, 0], rows)[0], 6)     # ranks 0, 1, 2 with chances 1/4, 1/2, 1/4
0.690465
>>> from fliprank.objectives.softndcg import SoftNDCG
>>> round(SoftNDCG(sigma=1.0).value_and_grad([0, 0, 0], rows)[0], 6)     # in a ranking: 1/3 each
0.71031
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar, NamedTuple

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.kernels import parallel_kernel, prange
from fliprank.measures.discounts import alpha_of
from fliprank.objectives.base import one_of, register
from fliprank.objectives.contests import Contests, contested, hold_contests, pull_apart
from fliprank.objectives.discounts import expected_on_curve
from fliprank.objectives.exponential_sum import Nodes, sum_of
from fliprank.objectives.many_pairs import check_room, warn_of_pairs
from fliprank.objectives.noisy_ranking import Noisy, Tasks, by_row, gather, noisy_ranking, tasks_of
from fliprank.objectives.rank_binomial import expected_by_normal, expected_by_recursion, near_the_edge
from fliprank.objectives.sinkhorn import sinkhorn_values
from fliprank.objectives.softndcg import SoftNDCG

__all__ = ["METHODS", "SoftRank"]

METHODS = ("generating", "recursion", "normal", "sinkhorn")


class Way(IntEnum):
    """How the expected discount of one document is computed."""

    GENERATING = 0
    RECURSION = 1
    NORMAL = 2


@register
@dataclass(frozen=True, eq=False)
class SoftRank(SoftNDCG):
    """SoftRank's SoftNDCG: the expected NDCG if each document met each other one with noise drawn anew.

    `method` is "generating" (generating functions, O(N^2 M), exact to the relative tolerance `tol`; with a cut-off, or
    a discount given by rank, the recursion kept to as many ranks), "recursion" (section 3.2, O(N^3)), "normal" (section
    3.6, approximate) or "sinkhorn" (rank distributions made consistent with each other). Other parameters are those of
    `softndcg`. Under a discount that falls faster and faster (below 0) or is cut off it can exceed 1 a little, as ranks
    in this model are independent of each other.
    """

    name: ClassVar[str] = "softrank"
    method: str = field(default="generating", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "method", *METHODS)

    def evaluate(self, scores: Floats, candidates: Candidates, share: Floats) -> tuple[Floats, Floats]:
        largest = int(candidates.sizes.max(initial=0))
        warn_of_pairs(self.name, candidates, sum(n * n for n in candidates.sizes.tolist()))
        columns = largest if self.cutoff is None else min(self.cutoff, largest)
        if self.method in ("sinkhorn", "recursion"):
            check_room(f"{self}: a table of {largest:,} rows by {columns:,} ranks", 8 * largest * columns)
        plan = self.plan(candidates)
        noisy, order = noisy_ranking(scores, self.noise, plan.worth, candidates, share)
        if self.method == "sinkhorn":
            values, pull, converged = sinkhorn_values(noisy, plan.payment.discount)
            if not converged.all():
                query = candidates.qids[int((~converged).argmax())]
                warnings.warn(
                    f"{self}: Sinkhorn scaling did not converge for {(~converged).sum()} of {len(converged)} queries "
                    f"(the first is {query}); use a smaller sigma, or another method",
                    RuntimeWarning,
                    stacklevel=2,
                )
            return values, by_row(pull, order)
        way = Way[self.method.upper()]
        smooth = way == Way.GENERATING and self.cutoff is None and alpha_of(self.discount) is not None
        way = Way.RECURSION if way == Way.GENERATING and not smooth else way
        discounts = Discounts(int(way), plan.payment.alpha, plan.payment.discount, plan.payment.depth)
        tasks = tasks_of(candidates, "contests", lambda sizes: sizes * sizes // 65_536)
        values, pull = gather(*_expectations(noisy, tasks, discounts, plan.nodes), tasks, candidates)
        return values, by_row(pull, order)


class Discounts(NamedTuple):
    """Which way to go, and the discount: its bend, its table by rank, and from which rank it is 0."""

    way: int
    alpha: float
    by_rank: Floats
    depth: Ints


@parallel_kernel
def _expectations(noisy: Noisy, tasks: Tasks, discounts: Discounts, nodes: Nodes) -> tuple[Floats, Floats]:
    """Each task's sum of worth x E[discount], and its gradient at each place of the query's ranking."""
    found, pulls, way = np.zeros(len(tasks.query)), np.zeros(tasks.room[-1]), discounts.way
    for task in prange(len(tasks.query)):
        q = tasks.query[task]
        low, high = noisy.offsets[q], noisy.offsets[q + 1]
        size, want, depth, by_rank = high - low, noisy.share[q] != 0.0, discounts.depth[q], discounts.by_rank[low:high]
        scores, sigma = noisy.score[low:high], noisy.sigma[low:high] if len(noisy.sigma) > 1 else noisy.sigma
        widest, pull = sigma.max() if size else 0.0, pulls[tasks.room[task] : tasks.room[task + 1]]
        contests, curve = Contests(np.empty(size), np.empty(size), np.empty(size)), sum_of(nodes, q)
        history = np.empty((0 if way == Way.GENERATING else (size + 1 if want else 1), depth + 1))
        for j in range(
            size * tasks.part[task] // tasks.parts[task], size * (tasks.part[task] + 1) // tasks.parts[task]
        ):
            own = noisy.worth[low + j]
            above, below = (0, 0) if own == 0.0 else contested(scores, sigma, widest, j)
            if own == 0.0 or (way != Way.GENERATING and above >= depth):
                continue
            count = hold_contests(scores, sigma, above, below, j, contests)
            if way == Way.GENERATING:
                expected = expected_on_curve(discounts.alpha, size, contests, count, (above, size - below), curve, want)
            elif way == Way.NORMAL and not near_the_edge(j, size, count):
                expected = expected_by_normal(contests, count, above, by_rank, depth, want)
            else:
                expected = expected_by_recursion(contests, count, above, by_rank, depth, history, want)
            found[task] += own * expected
            if want:
                pull_apart(own * noisy.share[q], contests, count, above, j, pull)
    return found, pulls
