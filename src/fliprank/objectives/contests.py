"""Pairwise contests: the probability that one noisy score beats another (SoftRank, sections 3.1 and 3.2, eq. 9).

Scores are means of Gaussians. Document i beats document j with probability pi = Phi((s_i - s_j) / sd), sd^2 the sum of
the two variances. With the scores in order, the contests that are not sure lie side by side around j: those above have
won, those below have lost, and neither needs to be looked at.
"""

from __future__ import annotations

import math

from fliprank.arrays import Floats
from fliprank.kernels import kernel
from fliprank.objectives.kernels import fast_kernel
from fliprank.objectives.smooth import NORMAL_REACH, normal

__all__ = ["contested", "hold_contests"]


@kernel
def contested(ranked: Floats, variance: Floats, widest: float, j: int) -> tuple[int, int]:
    """(first, last): places first to last - 1 of `ranked` (falling scores) are not sure to win or lose against place j.

    `variance` holds one value a place, or one for all; `widest` is the largest.
    """
    own = variance[j] if len(variance) > 1 else variance[0]
    reach = NORMAL_REACH * math.sqrt(own + widest)
    return _first_below(ranked, ranked[j] + reach, 0, j), _first_below(ranked, ranked[j] - reach, j, len(ranked))


@kernel
def _first_below(ranked: Floats, bound: float, low: int, high: int) -> int:
    """The first place from `low` to `high` whose score is not above `bound`; by halving."""
    while low < high:
        middle = (low + high) // 2
        if ranked[middle] > bound:
            low = middle + 1
        else:
            high = middle
    return low


@fast_kernel
def hold_contests(ranked: Floats, variance: Floats, first: int, last: int, j: int, pi: Floats, density: Floats) -> int:
    """Fill pi[k] with the probability that place first + k beats place j, up to place last - 1; how many there are.

    density[k] is the derivative of pi[k] with respect to its score, and the negative of that with respect to j's. The
    document itself is among them and never wins, which changes nothing.
    """
    own, scores = ranked[j], ranked[first:last]
    if len(variance) == 1:
        scale = 1.0 / math.sqrt(2.0 * variance[0])
        for i in range(len(scores)):
            pi[i], slope = normal((scores[i] - own) * scale)
            density[i] = slope * scale
    else:
        noise, noises = variance[j], variance[first:last]
        for i in range(len(scores)):
            inverse = 1.0 / math.sqrt(noises[i] + noise)
            pi[i], slope = normal((scores[i] - own) * inverse)
            density[i] = slope * inverse
    pi[j - first], density[j - first] = 0.0, 0.0
    return len(scores)
