"""Discounts as sums of exponentials: D(r) = sum of a_m z_m^r with a_m > 0 and 0 < z_m < 1, to a relative tolerance.

A completely monotone discount is such a sum of many terms; a few suffice for the ranks of one query. Then the expected
discount is the same sum of generating functions, E[D(r)] = sum of a_m E[z_m^r], and no rank distribution is needed.

Non-negative least squares on a fine grid of exponents finds a long sum; projecting it onto its M main components over
the query's ranks (the z form a diagonal matrix, whose compression has z_m as eigenvalues and a_m as squares) shortens
it. For 1/log2(2 + r) and 1e-6, M is 9 for 64 documents and 15 for 2048.

>>> short = exponential_sum("log2", 64, 1e-6)
>>> r = np.arange(64)
>>> len(short.z), bool(abs((short.z ** r[:, None]) @ short.weight * np.log2(2 + r) - 1).max() < 1e-6)
(9, True)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.csr import bounds
from fliprank.errors import UsageError
from fliprank.kernels import kernel
from fliprank.objectives.kernels import fast_kernel

__all__ = ["CURVES", "Nodes", "Sum", "checked_tol", "expected_by_nodes", "exponential_sum", "nodes_of", "sum_of"]

CURVES: dict[str, Callable[[Floats], Floats]] = {
    "log2": lambda r: 1 / np.log2(2.0 + r),
    "reciprocal": lambda r: 1 / (1.0 + r),
}
"""Completely monotone functions of the rank, from 0."""

STEEPEST = 6.0
"""No z is below e^-6, so that a factor 1 - pi (1 - z) can be divided out again: it keeps 13 digits."""

TOGETHER = 3
"""Kernels take this many nodes at a time, with one division for all of them."""


class Sum(NamedTuple):
    """sum of weight x z^r, the largest z first; nodes of weight 0 fill it up to a multiple of three.

    Terms below `least` do not count within the tolerance.
    """

    z: Floats
    weight: Floats
    least: float


@lru_cache(maxsize=256)
def exponential_sum(curve: str, size: int, tol: float) -> Sum:
    """The shortest sum found that equals the curve, for ranks from 0 to size - 1, to a relative error below `tol`."""
    least = 1e-3 * tol * float(CURVES[curve](np.array(size - 1.0)))
    if curve == "reciprocal" and size <= 16:
        return _sum(*_gauss_legendre((size + 1) // 2), least)
    middle = np.geomspace(1, max(size - 1, 1), 200).round()
    rank = np.unique(np.concatenate([np.arange(min(size, 64)), middle[middle < size]]))
    rate = np.geomspace(0.03 / size, STEEPEST, int(10 * np.log2(8 * size)))
    discount = CURVES[curve](rank)[:, None]
    weight, _ = nnls(np.exp(-np.outer(rank, rate)) / discount, np.ones(len(rank)), maxiter=100 * len(rate))
    b, z = np.sqrt(weight[weight > 0]), np.exp(-rate[weight > 0])
    components = np.linalg.svd(z ** rank[:, None] * b / discount, full_matrices=False)[2]
    best, least = (z, b * b), np.inf
    for count in range(1, len(components) + 1):
        basis = components[:count]
        short, turn = np.linalg.eigh((basis * z) @ basis.T)
        short, share = np.clip(short, z.min(), z.max()), (turn.T @ (basis @ b)) ** 2
        error = float(np.abs((short ** rank[:, None]) @ share / discount[:, 0] - 1).max())
        if error < least:
            best, least = (short, share), error
        if error < tol and (count % TOGETHER == 0 or count == len(components)):
            break
    return _sum(*best, least)


def checked_tol(name: str, tol: float) -> None:
    """Raises if no sum of exponentials can keep this tolerance."""
    if not 1e-9 <= tol <= 0.01:
        raise UsageError(f"{name}(tol={tol!r}): tol is from 1e-9 to 0.01")


def _gauss_legendre(count: int) -> tuple[Floats, Floats]:
    """1 / (1 + r) is the integral of z^r from 0 to 1; `count` nodes are exact for r < 2 count."""
    x, weight = np.polynomial.legendre.leggauss(count)
    return (x + 1) / 2, weight / 2


def _sum(z: Floats, weight: Floats, least: float) -> Sum:
    falling, lack = np.argsort(-z), -len(z) % TOGETHER
    padded = np.pad(z[falling], (0, lack), constant_values=1.0), np.pad(weight[falling], (0, lack))
    return Sum(frozen(padded[0], np.float64), frozen(padded[1], np.float64), least)


class Nodes(NamedTuple):
    """The sums for queries of several sizes, end to end: query q has nodes `first[q]` to `last[q] - 1`."""

    first: Ints
    last: Ints
    z: Floats
    weight: Floats
    least: Floats


@kernel
def sum_of(nodes: Nodes, q: int) -> Sum:
    """The sum of query q."""
    first, last = nodes.first[q], nodes.last[q]
    return Sum(nodes.z[first:last], nodes.weight[first:last], nodes.least[q])


def nodes_of(curve: str, sizes: Ints, tol: float) -> Nodes:
    """One sum per power of two that the sizes need."""
    powers = np.maximum(np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.int64), 3)
    kinds, which = np.unique(powers, return_inverse=True)
    sums = [exponential_sum(curve, 1 << int(power), tol) for power in kinds]
    limits = bounds(np.array([len(s.z) for s in sums], np.int64))
    return Nodes(
        frozen(limits[:-1][which], np.int64),
        frozen(limits[1:][which], np.int64),
        frozen(np.concatenate([np.empty(0), *(s.z for s in sums)]), np.float64),
        frozen(np.concatenate([np.empty(0), *(s.weight for s in sums)]), np.float64),
        frozen(np.array([s.least for s in sums] or [0.0])[which], np.float64),
    )


NEGLIGIBLE = 1e-17


@fast_kernel
def expected_by_nodes(pi: Floats, count: int, sure: int, curve: Sum, slope: Floats, want: bool) -> float:
    """sum of weight_m x the product over contests of 1 - pi (1 - z_m): E[D(rank)] of a document that `sure` others
    beat for certain and that loses contest i < count with probability pi[i].

    Where wanted, slope[i] becomes its derivative with respect to pi[i], by dividing factor i out of the products.
    """
    total, z, weight = 0.0, curve.z, curve.weight
    if want:
        slope[:count] = 0.0
    for m in range(0, len(z), 3):
        a0, a1, a2 = weight[m] * z[m] ** sure, weight[m + 1] * z[m + 1] ** sure, weight[m + 2] * z[m + 2] ** sure
        if a0 + a1 + a2 < NEGLIGIBLE:
            continue
        w0, w1, w2 = 1.0 - z[m], 1.0 - z[m + 1], 1.0 - z[m + 2]
        p0, p1, p2 = 1.0, 1.0, 1.0
        for i in range(count):
            p0 *= 1.0 - pi[i] * w0
            p1 *= 1.0 - pi[i] * w1
            p2 *= 1.0 - pi[i] * w2
        a0, a1, a2 = a0 * p0, a1 * p1, a2 * p2
        total += a0 + a1 + a2
        if want and a0 + a1 + a2 >= NEGLIGIBLE:
            a0, a1, a2 = a0 * w0, a1 * w1, a2 * w2
            for i in range(count):
                f0, f1, f2 = 1.0 - pi[i] * w0, 1.0 - pi[i] * w1, 1.0 - pi[i] * w2
                slope[i] -= ((a0 * f1 + a1 * f0) * f2 + a2 * (f0 * f1)) / (f0 * f1 * f2)
    return total
