"""The rank of a document as a sum of coin flips: Rank-Binomial recursion and its normal approximation.

Document j is beaten by document i with probability pi_ij; its rank counts the documents that beat it. SoftRank's
recursion (section 3.2, eqs. 11 and 12) adds one contest after the other; here it runs on expectations, back from the
last contest, so that a forward pass over the probabilities then gives every derivative at once (reverse mode) in place
of eq. (18). Section 3.6's normal distribution with the same mean and variance stands in for it where a document is not
near the top or the bottom.
"""

from __future__ import annotations

import math

import numpy as np

from fliprank.arrays import Floats
from fliprank.kernels import kernel
from fliprank.objectives.contests import Contests
from fliprank.objectives.kernels import fast_kernel
from fliprank.objectives.smooth import normal

__all__ = ["expected_by_normal", "expected_by_recursion", "near_the_edge", "normal_ranks", "rank_binomial"]

EDGE = 10
"""How many documents at the top and the bottom keep the recursion when the others are taken as normal."""


@fast_kernel
def rank_binomial(pi: Floats, count: int, out: Floats) -> None:
    """out[r], r < count: the probability that r of the contests are lost, one of which (its own) can't be."""
    out[:count] = 0.0
    out[0] = 1.0
    seen = 0
    for i in range(count):
        won = pi[i]
        if won > 0.0:
            seen += 1
            for r in range(seen, 0, -1):
                out[r] = out[r] * (1.0 - won) + out[r - 1] * won
            out[0] *= 1.0 - won


@fast_kernel
def expected_by_recursion(
    contests: Contests, count: int, sure: int, discount: Floats, depth: int, history: Floats, want: bool
) -> float:
    """E[discount(sure + contests lost)], exactly; the discount is 0 from rank `depth`.

    history[i, r] is what is still expected after i contests with r lost: history[count] is the discount itself. If
    wanted, slope[i] = sum over r of P(r lost before contest i) x (history[i + 1, r + 1] - history[i + 1, r]).
    `history` has one row more than there are contests (one is enough without gradient) and `depth` + 1 columns.
    """
    pi, slope, width = contests.pi, contests.slope, min(depth - sure, count)
    if want:
        slope[:count] = 0.0
    if width <= 0:
        return 0.0
    end = count if want else 0
    for r in range(width):
        history[end, r] = discount[sure + r]
    history[end, width] = 0.0
    for i in range(count - 1, -1, -1):
        won, lost, reached = pi[i], 1.0 - pi[i], min(i + 1, width)
        if want:
            for r in range(reached):
                history[i, r] = history[i + 1, r] * lost + history[i + 1, r + 1] * won
            history[i, width] = 0.0
        else:
            for r in range(reached):
                history[0, r] = history[0, r] * lost + history[0, r + 1] * won
    value = history[0, 0]
    if want:
        chance = np.zeros(width + 1)
        chance[0] = 1.0
        for i in range(count):
            won, lost, rise = pi[i], 1.0 - pi[i], 0.0
            reached = min(i + 1, width)
            for r in range(reached):
                rise += chance[r] * (history[i + 1, r + 1] - history[i + 1, r])
            slope[i] = rise
            for r in range(min(i + 1, width - 1), 0, -1):
                chance[r] = chance[r] * lost + chance[r - 1] * won
            chance[0] *= lost
    return float(value)


@kernel
def near_the_edge(j: int, size: int, count: int) -> bool:
    """Whether place j needs the recursion: near top or bottom, or with few contests that are not sure."""
    return bool(min(j, size - 1 - j) < EDGE or count <= 2 * EDGE)


@kernel
def _moments(pi: Floats, count: int, sure: int) -> tuple[float, float, int, int]:
    """Mean and variance of the rank, and the ranks beyond which the normal distribution leaves nothing."""
    mean, variance = float(sure), 0.0
    for i in range(count):
        mean += pi[i]
        variance += pi[i] * (1.0 - pi[i])
    reach = 7.0 * math.sqrt(variance)
    return mean, variance, max(int(mean - reach), sure), min(int(mean + reach) + 2, sure + count - 1)


@kernel
def normal_ranks(pi: Floats, count: int, sure: int, out: Floats) -> None:
    """out[r]: the probability of rank r when it is normal with the contests' mean and variance, rounded."""
    mean, variance, low, high = _moments(pi, count, sure)
    out[:] = 0.0
    before = 1.0
    for r in range(low, high + 1):
        after = normal((mean - r - 0.5) / math.sqrt(variance))[0] if r < high else 0.0
        out[r] = before - after
        before = after


@kernel
def expected_by_normal(contests: Contests, count: int, sure: int, discount: Floats, depth: int, want: bool) -> float:
    """E[discount] when the rank is normal with the contests' mean and variance, rounded to a whole rank.

    With m, v that mean and variance, P(rank >= r) = Phi((m - r + 1/2) / sqrt v), and E[discount] = discount(0) + sum
    of (discount(r) - discount(r - 1)) P(rank >= r): a function of m and v, whose derivatives by pi are 1 and 1 - 2 pi.
    """
    pi, slope = contests.pi, contests.slope
    mean, variance, low, high = _moments(pi, count, sure)
    spread = math.sqrt(variance)
    value, by_mean, by_variance = discount[low] if low < depth else 0.0, 0.0, 0.0
    for r in range(low + 1, min(high, depth) + 1):
        drop = (discount[r] if r < depth else 0.0) - discount[r - 1]
        x = (mean - r + 0.5) / spread
        chance, density = normal(x)
        value += drop * chance
        by_mean += drop * density / spread
        by_variance -= drop * density * x / (2.0 * variance)
    if want:
        for i in range(count):
            slope[i] = by_mean + by_variance * (1.0 - 2.0 * pi[i])
    return float(value)
