"""SoftAP and SoftRR: average precision and reciprocal rank of a noisy ranking, smooth in the scores.

SoftRank (section 3) leaves them open: they depend on which documents stand above, not only on how many. Let A relevant
and B other documents beat a relevant document j; given the contests both are sums of coin flips. With G_A(z) = E[z^A],

    1 / (1 + r) = sum of a_m z_m^r                        (Gauss-Legendre for few documents, `exponential_sum` for more)
    E[(1 + A) / (1 + A + B)] = sum of a_m (z G_A(z))' G_B(z) at z_m           precision at the rank of j
    P(A = 0) E[1 / (1 + B)] = G_A(0) x sum of a_m G_B(z_m)                    j first of the relevant, and its 1 / rank

>>> from fliprank.data.candidates import Candidates
>>> rows = Candidates.of([1, 0, 1])
>>> round(SoftAP(sigma=0.01).value_and_grad([3, 2, 1], rows)[0], 9)         # (1/1 + 2/3) / 2: next to no noise
0.833333333
>>> round(SoftRR(sigma=0.5).value_and_grad([0, 0, -9], rows)[0], 9)         # at rank 1 or 2, with equal chances
0.75
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.objectives.base import Objective, register
from fliprank.objectives.contests import contested, hold_contests
from fliprank.objectives.exponential_sum import Nodes, checked_tol, expected_by_nodes, nodes_of
from fliprank.objectives.gains import informative, labels_of
from fliprank.objectives.kernels import fast_kernel
from fliprank.objectives.noisy_ranking import checked_sigma, gather, noisy_ranking, pull_apart, tasks_of

__all__ = ["SoftAP", "SoftRR"]


@dataclass(frozen=True, eq=False)
class SoftReciprocal(Objective):
    """A soft measure that pays relevant documents by 1 / rank and by the relevant ones above."""

    maximise: ClassVar[bool] = True
    first_only: ClassVar[bool]
    sigma: float | Floats = 0.1
    rel: float = 1
    tol: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sigma", checked_sigma(self.name, self.sigma))
        checked_tol(self.name, self.tol)

    def evaluate(self, scores: Floats, candidates: Candidates, share: Floats) -> tuple[Floats, Floats]:
        key = (type(self), *(getattr(self, f.name) for f in fields(self) if f.name != "sigma"))
        if key not in candidates.memo:
            candidates.memo[key] = self._plan(candidates)
        plan: tuple[Floats, Floats, Nodes] = candidates.memo[key]
        relevant, worth, nodes = plan
        ranking, tasks = noisy_ranking(scores, self.sigma, candidates), tasks_of(candidates)
        noisy = (ranking.score, ranking.variance, relevant[ranking.order], worth, candidates.offsets, share)
        found, pulls = _precisions(*noisy, *tasks.arrays, *nodes.arrays, self.first_only)
        values, pull = gather(found, pulls, tasks, candidates)
        return values, ranking.by_row(pull)

    def _plan(self, candidates: Candidates) -> tuple[Floats, Floats, Nodes]:
        """Which rows are relevant, what each is worth by query, and the nodes; the same for any noise."""
        relevant = (labels_of(candidates) >= self.rel).astype(np.float64)
        count = np.maximum(candidates.judgements.count(self.rel), 1)
        worth = informative(relevant, candidates.offsets) / (1 if self.first_only else count)
        nodes = nodes_of("reciprocal", candidates.sizes, self.tol)
        return frozen(relevant, np.float64), frozen(worth, np.float64), nodes


@register
@dataclass(frozen=True, eq=False)
class SoftAP(SoftReciprocal):
    """The expected average precision of a ranking whose scores have Gaussian noise `sigma`.

    Relevant are labels of at least `rel`. Exact to the relative tolerance `tol`, in O(R N M) for R relevant documents.
    """

    name: ClassVar[str] = "softap"
    first_only: ClassVar[bool] = False


@register
@dataclass(frozen=True, eq=False)
class SoftRR(SoftReciprocal):
    """The expected 1 / rank of the first relevant document of a ranking whose scores have Gaussian noise `sigma`.

    Relevant are labels of at least `rel`. Exact to the relative tolerance `tol`, in O(R N M) for R relevant documents.
    """

    name: ClassVar[str] = "softrr"
    first_only: ClassVar[bool] = True


@parallel_kernel
def _precisions(
    ranked: Floats,
    variance: Floats,
    relevant: Floats,
    worth: Floats,
    offsets: Ints,
    share: Floats,
    query: Ints,
    start: Ints,
    end: Ints,
    room: Ints,
    first_node: Ints,
    last_node: Ints,
    z: Floats,
    weight: Floats,
    first_only: bool,
) -> tuple[Floats, Floats]:
    """Each task's sum over relevant documents, and its pull at each place of the query's ranking."""
    found, pulls = np.zeros(len(query)), np.zeros(room[-1])
    for task in prange(len(query)):
        q = query[task]
        low, high = offsets[q], offsets[q + 1]
        size, want, good = high - low, share[q] != 0.0, relevant[low:high]
        if worth[q] == 0.0:
            continue
        scores, noise = ranked[low:high], variance[low:high] if len(variance) > 1 else variance
        widest, pull = noise.max(), pulls[room[task] : room[task + 1]]
        nodes = (z[first_node[q] : last_node[q]], weight[first_node[q] : last_node[q]])
        pi, density, slope = np.empty(size), np.empty(size), np.empty(size)
        above_good = np.cumsum(good)
        for j in range(start[task], end[task]):
            if good[j] == 0.0:
                continue
            above, below = contested(scores, noise, widest, j)
            sure_good = int(above_good[above] - good[above])
            if first_only and sure_good > 0:
                continue
            count = hold_contests(scores, noise, above, below, j, pi, density)
            if first_only:
                expected = _expected_reciprocal(pi, good[above:below], count, above, *nodes, slope, want)
            else:
                expected = _expected_precision(pi, good[above:below], count, above, sure_good, *nodes, slope, want)
            found[task] += worth[q] * expected
            if want:
                pull_apart(worth[q] * share[q], slope, density, count, above, j, pull)
    return found, pulls


@fast_kernel
def _expected_precision(
    pi: Floats,
    good: Floats,
    count: int,
    sure: int,
    sure_good: int,
    z: Floats,
    weight: Floats,
    slope: Floats,
    want: bool,
) -> float:
    """E[(1 + A) / (1 + A + B)]. With f = 1 - pi (1 - z), (z G_A)' G_B is the product of all f, times
    1 + z x the sum over relevant of pi / f; those who are sure to win add z^sure and, the relevant, 1 each."""
    total = 0.0
    slope[:count] = 0.0
    for m in range(len(z)):
        w, product, ratio = 1.0 - z[m], weight[m] * z[m] ** sure, 0.0
        if product * (1.0 + count + sure_good) < 1e-17:
            continue
        for i in range(count):
            f = 1.0 - pi[i] * w
            product *= f
            ratio += good[i] * pi[i] / f
        more = 1.0 + sure_good + z[m] * ratio
        total += product * more
        if want and product * more > 1e-17:
            for i in range(count):
                f = 1.0 - pi[i] * w
                slope[i] += product * (good[i] * z[m] - w * more * f) / (f * f)
    return total


@kernel
def _expected_reciprocal(
    pi: Floats, good: Floats, count: int, sure: int, z: Floats, weight: Floats, slope: Floats, want: bool
) -> float:
    """P(A = 0) E[1 / (1 + B)]; no relevant document is sure to win.

    A relevant opponent's factor 1 - pi may be 0, so that it can't be divided out: products before and after it."""
    others, by_other, n = np.empty(count), np.empty(count), 0
    none = 1.0
    for i in range(count):
        if good[i] != 0.0:
            slope[i] = none  # the product of those before
            none *= 1.0 - pi[i]
        else:
            others[n] = pi[i]
            n += 1
    reciprocal = expected_by_nodes(others, n, sure, z, weight, by_other, want)
    after = 1.0
    for i in range(count - 1, -1, -1):
        if good[i] != 0.0:
            slope[i] *= -after * reciprocal
            after *= 1.0 - pi[i]
        else:
            n -= 1
            slope[i] = by_other[n] * none
    return none * reciprocal
