"""How much less a document counts the lower it is ranked: the discounts of DCG, as parameters.

Ranks r count from 0 here. A number alpha from -1 to 1 bends NDCG's own curve c(r) = 1 / log2(2 + r), as in Figure 5 of
SoftRank (Taylor et al. 2008, section 4.7). In a query of N rows

    alpha =  1    c(r)
    alpha =  0    the straight line between its ends, from c(0) = 1 to c(N - 1)
    alpha = -1    its mirror image 1 + c(N - 1) - c(N - 1 - r), which stays high and drops late
    between       (1 - |alpha|) x the line + |alpha| x the curve on that side

Documents that are not among the rows, which only the best possible ranking counts, are discounted by c. A tuple is any
falling discount by rank, 0 beyond its end. "log2" is c itself.

>>> discount_of(0.0, np.arange(3), np.full(3, 3))
array([1.  , 0.75, 0.5 ])
>>> discount_of((1, 0.5), np.arange(3), np.full(3, 3))
array([1. , 0.5, 0. ])
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.errors import UsageError

__all__ = ["Discount", "alpha_of", "base_discount", "checked_discount", "discount_of"]

Discount: TypeAlias = str | float | tuple[float, ...]


def checked_discount(discount: Discount, name: str) -> Discount:
    """The discount, a list or array as a tuple; raises if it is none, naming the measure or objective `name`."""
    if isinstance(discount, str):
        if discount != "log2":
            raise UsageError(f"{name}(discount={discount!r}): 'log2', a number from -1 to 1, or a tuple by rank")
        return discount
    if np.ndim(discount) == 0:
        if not -1 <= float(discount) <= 1:  # type: ignore[arg-type]
            raise UsageError(f"{name}(discount={discount!r}): a number bends the discount from -1 to 1")
        return float(discount)  # type: ignore[arg-type]
    values = np.asarray(discount, np.float64)
    if values.ndim != 1 or not np.isfinite(values).all() or not len(values) or values[0] <= 0 or values.min() < 0:
        raise UsageError(f"{name}: a discount by rank is a list of finite numbers, not below 0, the first above 0")
    if (np.diff(values) > 0).any():
        raise UsageError(f"{name}: a discount by rank may not rise")
    return tuple(int(value) if value.is_integer() else value for value in values.tolist())


def alpha_of(discount: Discount) -> float | None:
    """How far the discount is bent; None where it is given by rank."""
    return None if isinstance(discount, tuple) else 1.0 if isinstance(discount, str) else float(discount)


def discount_of(discount: Discount, rank: Ints, size: Ints, cutoff: int | None = None) -> Floats:
    """The discount of each rank (from 0) in a query of `size` documents, 0 from the cut-off on."""
    alpha = alpha_of(discount)
    if alpha is None:
        by_rank = np.asarray(discount, np.float64)
        out = np.where(rank < len(by_rank), by_rank[np.minimum(rank, len(by_rank) - 1)], 0.0)
    else:
        out = _bent(alpha, rank, size)
    return np.where(rank < (np.inf if cutoff is None else cutoff), out, 0.0)


def base_discount(base: float, rank: Ints) -> Floats:
    """1 at ranks (from 0) up to the base-th, then 1 / log of the rank from 1, to this base (Jarvelin & Kekalainen).

    >>> base_discount(10, np.array([0, 8, 9, 99]))      # ranks 1, 9, 10 and 100
    array([1. , 1. , 1. , 0.5])
    """
    out: Floats = 1 / np.maximum(np.log2(rank + 1.0) / np.log2(base), 1.0)
    return out


def _bent(alpha: float, rank: Ints, size: Ints) -> Floats:
    curve, end = 1 / np.log2(2.0 + rank), 1 / np.log2(1.0 + np.maximum(size, 1))
    line = 1 - (1 - end) * rank / np.maximum(size - 1, 1)
    bend = curve if alpha >= 0 else 1 + end - 1 / np.log2(2.0 + np.maximum(size - 1 - rank, 0))
    out: Floats = np.where(rank < size, (1 - abs(alpha)) * line + abs(alpha) * bend, curve)
    return out
