"""Smooth functions by table, value and slope at once: a row of Taylor coefficients every 1/16.

Within half a step of a row's middle six powers leave an error below 1e-11, and one look-up gives both what a contest is
won with and how that changes: several times faster than libm's erfc and exp, and free of their branches.

>>> value, slope = lookup(NORMAL, NORMAL_REACH, 0.5)
>>> round(value, 12), round(slope, 12)          # the normal distribution function and its density
(0.691462461274, 0.352065326764)
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import erfc, expit

from fliprank.arrays import Floats, frozen
from fliprank.kernels import kernel

__all__ = ["LOGISTIC", "LOGISTIC_REACH", "NORMAL", "NORMAL_REACH", "lookup", "softplus"]

STEP = 1 / 16
POWERS = 7

NORMAL_REACH = 7.0
"""A contest between scores further apart, in standard deviations of their difference, is sure to within 1.3e-12."""

LOGISTIC_REACH = 36.0
"""Beyond this log(1 + e^x) is x or 0 to within 3e-16."""


def _middles(reach: float) -> Floats:
    return np.arange(-round(reach / STEP), round(reach / STEP) + 1) * STEP


def _normal() -> Floats:
    """Taylor coefficients of the normal distribution function: its k-th derivative is (-1)^(k-1) He_(k-1) density."""
    x = _middles(NORMAL_REACH)
    density = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    columns, factorial, before, hermite = [erfc(-x / np.sqrt(2)) / 2], 1.0, np.zeros_like(x), np.ones_like(x)
    for k in range(1, POWERS):
        factorial *= k
        columns.append((-1) ** (k - 1) * hermite * density / factorial)
        before, hermite = hermite, x * hermite - (k - 1) * before
    return np.stack(columns, axis=1)


def _logistic() -> Floats:
    """Taylor coefficients of log(1 + e^x): its derivatives are polynomials in p = 1 / (1 + e^-x), as p' = p (1 - p)."""
    x = _middles(LOGISTIC_REACH)
    p, factorial, derivative = expit(x), 1.0, Polynomial([0.0, 1.0])
    columns = [np.logaddexp(0.0, x)]
    for k in range(1, POWERS):
        factorial *= k
        columns.append(derivative(p) / factorial)
        derivative = derivative.deriv() * Polynomial([0.0, 1.0, -1.0])
    return np.stack(columns, axis=1)


NORMAL: Floats = frozen(_normal(), np.float64)
LOGISTIC: Floats = frozen(_logistic(), np.float64)


@kernel
def lookup(table: Floats, reach: float, x: float) -> tuple[float, float]:
    """The value and the slope at x, -reach <= x <= reach."""
    k = np.int32((x + reach) * 16.0 + 0.5)
    d = x + reach - k * 0.0625
    c1, c2, c3 = table[k, 1], table[k, 2], table[k, 3]
    c4, c5, c6 = table[k, 4], table[k, 5], table[k, 6]
    value = table[k, 0] + d * (c1 + d * (c2 + d * (c3 + d * (c4 + d * (c5 + d * c6)))))
    slope = c1 + d * (2 * c2 + d * (3 * c3 + d * (4 * c4 + d * (5 * c5 + d * (6 * c6)))))
    return value, slope


@kernel
def softplus(table: Floats, x: float) -> tuple[float, float]:
    """log(1 + e^x) and its slope 1 / (1 + e^-x), for any x."""
    if x > 36.0:
        return x, 1.0
    if x < -36.0:
        return np.exp(x), np.exp(x)
    return lookup(table, 36.0, x)
