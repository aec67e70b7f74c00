"""The expected discount of a noisy rank, on a curve that may be bent (SoftRank, section 4.7, Figure 5).

The curves themselves are those of the hard measure: `measures/discounts.py`.
"""

from __future__ import annotations

import numpy as np

from fliprank.kernels import kernel
from fliprank.objectives.contests import Contests
from fliprank.objectives.exponential_sum import Sum, expected_by_nodes

__all__ = ["expected_on_curve"]


@kernel
def expected_on_curve(
    alpha: float, size: int, contests: Contests, count: int, sure: tuple[int, int], curve: Sum, want: bool
) -> float:
    """E[discount] on the curve bent by alpha, of a document that surely loses to `sure[0]` others and beats `sure[1]`.

    The line needs no more than the expected rank. The mirrored curve discounts the number of documents that j beats,
    which is a sum of contests just as its rank is. `pi` is reversed in that case; `slope` is by the pi given.
    """
    end, bend, pi, slope = 1.0 / np.log2(size + 1.0), abs(alpha), contests.pi, contests.slope
    line = (1.0 - bend) * (1.0 - end) / max(size - 1, 1)
    rank = float(sure[0])
    for i in range(count):
        rank += pi[i]
    expected = 1.0 - bend - line * rank
    if alpha < 0.0:
        for i in range(count):
            pi[i] = 1.0 - pi[i]
        # Among the contests is j's own, which now counts as one that j wins.
        expected += bend * (1.0 + end - expected_by_nodes(pi, count, sure[1] - 1, curve, slope, want))
    elif alpha > 0.0:
        expected += bend * expected_by_nodes(pi, count, sure[0], curve, slope, want)
    else:
        slope[:count] = 0.0
    for i in range(count):  # twice reversed for the mirrored curve: it is subtracted, and by 1 - pi
        slope[i] = bend * slope[i] - line
    return float(expected)
