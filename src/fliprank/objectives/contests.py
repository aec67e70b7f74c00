"""Pairwise contests: the probability that one noisy score beats another (SoftRank, sections 3.1 and 3.2, eq. 9).

Scores are means of Gaussians. Document i beats document j with probability pi = Phi((s_i - s_j) / sd), sd^2 the sum of
the two variances. With the scores in order, the contests that are not sure lie side by side around j: those above have
won, those below have lost, and neither needs to be looked at.
"""

from __future__ import annotations

import math

from fliprank.arrays import Floats
from fliprank.kernels import kernel
from fliprank.objectives.tables import NORMAL_REACH, lookup

__all__ = ["contested", "hold_contests"]

REACH = NORMAL_REACH - 1e-6
"""A little inside the table's end, so that rounding stays within it."""


@kernel
def contested(ranked: Floats, variance: Floats, widest: float, j: int) -> tuple[int, int]:
    """(first, last): places first to last - 1 of `ranked` (falling scores) are not sure to win or lose against place j.

    `variance` holds one value a place, or one for all; `widest` is the largest.
    """
    own = variance[j] if len(variance) > 1 else variance[0]
    reach = REACH * math.sqrt(own + widest)
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


@kernel
def hold_contests(
    ranked: Floats, variance: Floats, first: int, last: int, j: int, normal: Floats, pi: Floats, density: Floats
) -> int:
    """Fill pi[k] with the probability that the k-th of places first to last - 1 but j beats j; how many there are.

    density[k] is the derivative of pi[k] with respect to its score, and the negative of that with respect to j's.
    """
    shared, own, count = len(variance) == 1, ranked[j], 0
    scale = 1.0 / math.sqrt(2.0 * variance[0])
    for i in range(first, last):
        if i == j:
            continue
        if not shared:
            scale = 1.0 / math.sqrt(variance[i] + variance[j])
        x = min(max((ranked[i] - own) * scale, -7.0), 7.0)
        probability, slope = lookup(normal, 7.0, x)
        pi[count], density[count] = probability, slope * scale
        count += 1
    return count
