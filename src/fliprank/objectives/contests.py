"""Pairwise contests: the probability that one noisy score beats another (SoftRank, sections 3.1 and 3.2, eq. 9).

Scores are means of Gaussians. Document i beats document j with probability pi = Phi((s_i - s_j) / sd), sd^2 the sum of
the two variances. With the scores in order, the contests that are open lie side by side around j: documents above them
have surely won, documents below have surely lost, and neither needs to be looked at.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from fliprank.arrays import Floats
from fliprank.kernels import kernel
from fliprank.objectives.kernels import fast_kernel
from fliprank.objectives.smooth import NORMAL_REACH, normal

__all__ = ["Contests", "contested", "hold_contests", "pull_apart"]


class Contests(NamedTuple):
    """The open contests of document j, one per entry: the probability pi to lose it, the derivative of pi by the
    opponent's score (by j's own score it is the negative), and the derivative of what is expected by pi."""

    pi: Floats
    density: Floats
    slope: Floats


@kernel
def contested(ranked: Floats, sigma: Floats, widest: float, j: int) -> tuple[int, int]:
    """(first, last): the contests of place j with places first to last - 1 of `ranked` (falling scores) are open.

    `sigma` holds one value per place, or one for all; `widest` is the largest. Differences of scores are compared, as
    sums would lose a small sigma beside large scores.
    """
    reach = NORMAL_REACH * math.hypot(sigma[j] if len(sigma) > 1 else sigma[0], widest)
    first, high = 0, j
    while first < high:
        middle = (first + high) // 2
        if ranked[middle] - ranked[j] > reach:
            first = middle + 1
        else:
            high = middle
    last, high = j + 1, len(ranked)
    while last < high:
        middle = (last + high) // 2
        if ranked[j] - ranked[middle] <= reach:
            last = middle + 1
        else:
            high = middle
    return first, last


@fast_kernel
def hold_contests(ranked: Floats, sigma: Floats, first: int, last: int, j: int, contests: Contests) -> int:
    """Fill in the contests of place j with places first to last - 1, and return how many there are.

    The document itself is among them and never wins, which changes nothing.
    """
    own, scores, pi, density = ranked[j], ranked[first:last], contests.pi, contests.density
    if len(sigma) == 1:
        scale = 1.0 / (math.sqrt(2.0) * sigma[0])
        for i in range(len(scores)):
            pi[i], slope = normal((scores[i] - own) * scale)
            density[i] = slope * scale
    else:
        noise, noises = sigma[j] * sigma[j], sigma[first:last]
        for i in range(len(scores)):
            inverse = 1.0 / math.sqrt(noises[i] * noises[i] + noise)
            pi[i], slope = normal((scores[i] - own) * inverse)
            density[i] = slope * inverse
    pi[j - first], density[j - first] = 0.0, 0.0
    return len(scores)


@fast_kernel
def pull_apart(factor: float, contests: Contests, count: int, above: int, j: int, pull: Floats) -> None:
    """Add factor x the derivatives by the scores of place j's contests, the first of them with place `above`."""
    total, around, slope, density = 0.0, pull[above : above + count], contests.slope, contests.density
    for i in range(count):
        push = factor * slope[i] * density[i]
        around[i] += push
        total += push
    pull[j] -= total
