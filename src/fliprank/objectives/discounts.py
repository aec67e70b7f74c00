"""How a rank is discounted in training, which need not be the discount of the test (SoftRank, section 4.7, Figure 5).

"log2" is NDCG's own curve, c(r) = 1 / log2(2 + r), ranks r from 0. A number alpha from -1 to 1 bends it: for N rows

    alpha =  1    c(r)
    alpha =  0    the straight line between its ends, from c(0) = 1 to c(N - 1)
    alpha = -1    its mirror image 1 + c(N - 1) - c(N - 1 - r), which stays high and drops late
    between       (1 - |alpha|) x the line + |alpha| x the curve on that side

so that the curves run from the mirror image (top) through the line to NDCG's (bottom), as in Figure 5. Documents that
are not among the rows, which only the best possible ranking counts, are discounted by c. A tuple is any discount
by rank that does not rise, 0 beyond its end.

>>> discount_of(0.0, np.arange(3), np.full(3, 3))
array([1.  , 0.75, 0.5 ])
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.errors import UsageError
from fliprank.kernels import kernel
from fliprank.objectives.contests import Contests
from fliprank.objectives.exponential_sum import Sum, expected_by_nodes

__all__ = ["Discount", "alpha_of", "checked_discount", "discount_of", "expected_on_curve"]

Discount: TypeAlias = str | float | tuple[float, ...]


def checked_discount(discount: Discount, objective: str) -> Discount:
    """The discount, a list or array as a tuple; raises if it can't be used."""
    if isinstance(discount, str):
        if discount != "log2":
            raise UsageError(f"{objective}(discount={discount!r}): 'log2', a number from -1 to 1, or a tuple by rank")
        return discount
    if np.ndim(discount) == 0:
        if not -1 <= float(discount) <= 1:  # type: ignore[arg-type]
            raise UsageError(f"{objective}(discount={discount!r}): a number bends the discount from -1 to 1")
        return float(discount)  # type: ignore[arg-type]
    values = np.asarray(discount, np.float64)
    if values.ndim != 1 or not np.isfinite(values).all() or not len(values) or values[0] <= 0 or values.min() < 0:
        raise UsageError(f"{objective}: a discount by rank is a list of finite numbers, not below 0, the first above 0")
    if (np.diff(values) > 0).any():
        raise UsageError(f"{objective}: a discount by rank may not rise")
    return tuple(values.tolist())


def alpha_of(discount: Discount) -> float | None:
    """How far the discount is bent; None if it is given by rank."""
    return None if isinstance(discount, tuple) else 1.0 if discount == "log2" else float(discount)


def discount_of(discount: Discount, rank: Ints, size: Ints, cutoff: int | None = None) -> Floats:
    """The discount of each rank (from 0) in a query of `size` documents, 0 from the cut-off."""
    alpha = alpha_of(discount)
    if alpha is None:
        by_rank = np.asarray(discount)
        out = np.where(rank < len(by_rank), by_rank[np.minimum(rank, len(by_rank) - 1)], 0.0)
    else:
        out = _bent(alpha, rank, size)
    return np.where(rank < (np.inf if cutoff is None else cutoff), out, 0.0)


def _bent(alpha: float, rank: Ints, size: Ints) -> Floats:
    curve, end = 1 / np.log2(2.0 + rank), 1 / np.log2(1.0 + np.maximum(size, 1))
    line = 1 - (1 - end) * rank / np.maximum(size - 1, 1)
    bend = curve if alpha >= 0 else 1 + end - 1 / np.log2(2.0 + np.maximum(size - 1 - rank, 0))
    out: Floats = np.where(rank < size, (1 - abs(alpha)) * line + abs(alpha) * bend, curve)
    return out


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
