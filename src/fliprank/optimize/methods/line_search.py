"""Searches of one line that only ask for values: by evenly spaced samples, by golden section, by Brent's method.

Each takes a function of x, the ends of the line and the settings of the ascent, and gives (x, value) of the best that
it met. The upper end is always looked at: the end of a promising direction is what its coordinates found together.

>>> from types import SimpleNamespace
>>> settings = SimpleNamespace(samples=5, prefer="widest")
>>> sampled(lambda x: float(x > 0), -1.0, 1.0, settings)
(0.5, 1.0)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fliprank.arrays import Floats

__all__ = ["SEARCHES", "golden", "sampled"]

GOLDEN = (np.sqrt(5.0) - 1) / 2
SAME = 1e-12

Function = Callable[[float], float]


def sampled(line: Function, low: float, high: float, settings: Any) -> tuple[float, float]:
    """`samples` points from -1 to 1, those beyond the ends moved to them."""
    points = np.clip(np.linspace(-1, 1, settings.samples), low, high)
    once, place = np.unique(points, return_inverse=True)
    values = np.array([line(float(x)) for x in once])[place]
    best = _middle_of_best(values) if settings.prefer == "widest" else _nearest_of_best(points, values)
    return float(points[best]), float(values[best])


def _middle_of_best(values: Floats) -> int:
    """The middle of the longest row of neighbours that share the best value.

    >>> _middle_of_best(np.array([1.0, 3, 2, 3, 3, 3, 0]))
    4
    """
    good = np.concatenate([[False], values >= values.max() - SAME, [False]])
    begin, end = np.flatnonzero(~good[:-1] & good[1:]), np.flatnonzero(good[:-1] & ~good[1:])
    longest = int(np.argmax(end - begin))
    return int(begin[longest] + end[longest] - 1) // 2


def _nearest_of_best(points: Floats, values: Floats) -> int:
    """The point nearest to 0 among those with the best value."""
    good = np.flatnonzero(values == values.max())
    return int(good[np.argmin(np.abs(points[good]))])


def golden(line: Function, low: float, high: float, settings: Any) -> tuple[float, float]:
    """Golden section: each of `samples` values makes the bracket smaller."""
    tried = [(line(high), high)]
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = line(left), line(right)
    tried += [(at_left, left), (at_right, right)]
    for _ in range(settings.samples - 3):
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = line(left)
            tried.append((at_left, left))
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = line(right)
            tried.append((at_right, right))
    value, x = max(tried, key=lambda one: (one[0], -abs(one[1])))
    return float(x), value


def brent(line: Function, low: float, high: float, settings: Any) -> tuple[float, float]:
    """SciPy's bounded Brent search: at most `samples` values."""
    from scipy.optimize import minimize_scalar

    if not low < high:
        return low, line(low)
    options = {"maxiter": settings.samples, "xatol": 1e-6 * (high - low)}
    result = minimize_scalar(lambda x: -line(float(x)), bounds=(low, high), method="bounded", options=options)
    tried = [(-float(result.fun), float(result.x)), (line(high), high)]
    value, x = max(tried, key=lambda one: one[0])
    return x, value


SEARCHES: dict[str, Callable[[Function, float, float, Any], tuple[float, float]]] = {
    "sampled": sampled,
    "golden": golden,
    "brent": brent,
}
