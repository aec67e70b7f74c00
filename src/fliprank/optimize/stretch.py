"""Parameters as a gradient method should see them: those that are positive without an upper bound by their logarithm.

A weight of 0.05 beside one of 5, or a mu of 2000: what counts is the factor, not the difference. So the descent takes
steps in log w, and the penalty that holds parameters to their defaults is of log (w / default). What falls to the
floor of 1e-4 of its default is 0 (or at its lower bound).

>>> from fliprank.models.parameters import Parameters
>>> stretch = Stretch.of(Parameters.of({"mu": (2000.0, 0.0, np.inf), "b": (0.75, 0.0, 1.0)}))
>>> stretch.inner(np.array([1000.0, 0.5])).round(4).tolist()
[6.9078, 0.5]
>>> stretch.outer(np.array([np.log(500), 0.5])).round(9).tolist()
[500.0, 0.5]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats
from fliprank.models.parameters import Parameters
from fliprank.optimize.metric import GAIN, Metric, thread_map

__all__ = ["Stretch", "climb", "descend"]

FLOOR, CEILING = 1e-4, 1e4
"""How far below and above its default a parameter that is moved by factors may go."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """The map between the free parameters and what a descent moves; `centre`, `low` and `high` are of the latter."""

    logarithmic: NDArray[np.bool_]
    least: Floats
    floor: Floats
    centre: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, params: Parameters) -> Stretch:
        """The map for these parameters; their defaults are the centre."""
        default, low, high = params.at(params.default).free_values, params.free_lower, params.free_upper
        logarithmic = (low >= 0) & np.isinf(high) & (default > 0)
        floor = np.maximum(low, FLOOR * default)
        raw = cls(logarithmic, low, floor, default, low, high)
        high = np.where(logarithmic, CEILING * default, high)
        return cls(logarithmic, low, floor, raw.inner(default), raw.inner(low), raw.inner(high))

    def inner(self, values: Floats) -> Floats:
        """What the descent sees of these free parameters."""
        seen = np.where(self.logarithmic, np.maximum(values, self.floor), 1.0)
        return np.where(self.logarithmic, np.log(seen), values)

    def outer(self, seen: Floats) -> Floats:
        """The free parameters that the descent is at."""
        values = np.exp(np.where(self.logarithmic, seen, 0.0))
        return np.where(self.logarithmic, np.where(values <= self.floor * (1 + 1e-9), self.least, values), seen)


def descend(
    function: Callable[[Floats], tuple[float, Floats]], params: Parameters, pull: float, epochs: int = 100
) -> tuple[float, Floats]:
    """(cost, free parameters) after L-BFGS from the present values; `function` gives the cost and its gradient."""
    from scipy.optimize import minimize

    stretch = Stretch.of(params)

    def seen_cost(seen: Floats) -> tuple[float, Floats]:
        away, values = seen - stretch.centre, stretch.outer(seen)
        cost, gradient = function(values)
        slope = np.where(stretch.logarithmic, gradient * np.maximum(values, stretch.floor), gradient)
        return cost + pull * float(away @ away), slope + 2 * pull * away

    end = minimize(
        seen_cost,
        stretch.inner(params.free_values),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(stretch.low, stretch.high, strict=True)),
        options={"maxiter": epochs},
    )
    return float(end.fun), stretch.outer(end.x)


def climb(metric: Metric, pull: float = 0.0, samples: int = 6, epochs: int = 6) -> Floats:
    """The free parameters after line searches on the measure itself, from where the model is.

    Taylor et al. 2006, section 2.2, with two changes: steps are taken in what a descent sees, and each coordinate
    starts from where the one before it ended. `samples` points to either side of it reach half way between two bounds,
    or a factor of e; the reach is halved after an epoch without gain. The middle of equally good neighbours is taken.
    As in a descent, `pull` holds parameters to their defaults.
    """
    stretch = Stretch.of(metric.model.params)
    seen = stretch.inner(metric.model.params.free_values)
    with np.errstate(invalid="ignore"):
        between = (stretch.high - stretch.low) / 2
    reach = np.where(stretch.logarithmic | ~np.isfinite(between), 1.0, between)
    steps = np.linspace(-1, 1, 2 * samples + 1)[:, None]

    def worth(seen: Floats) -> float:
        away = seen - stretch.centre
        return metric.at(stretch.outer(seen)) - pull * float(away @ away)

    best = worth(seen)
    with thread_map() as each:

        def search(seen: Floats, best: float, along: Floats) -> tuple[Floats, float]:
            """(where, value) of the best point on a line, if it is better than `best`."""
            points = np.clip(seen + steps * along, stretch.low, stretch.high)
            found = np.array(list(each(worth, points)))
            if found.max() <= best + GAIN:
                return seen, best
            return points[_middle_of_best(found)], float(found.max())

        for _ in range(epochs):
            begun, value = seen, best
            for along in np.diag(reach):
                seen, best = search(seen, best, along)
            if np.count_nonzero(seen - begun) > 1:  # the promising direction
                seen, best = search(seen, best, seen - begun)
            if best <= value + GAIN:
                reach = reach / 2
    return stretch.outer(seen)


def _middle_of_best(found: Floats) -> int:
    """The middle of the longest row of neighbours that share the best value.

    >>> _middle_of_best(np.array([1.0, 3, 2, 3, 3, 3, 0]))
    4
    """
    good = np.concatenate([[False], found >= found.max() - GAIN, [False]])
    begin, end = np.flatnonzero(~good[:-1] & good[1:]), np.flatnonzero(good[:-1] & ~good[1:])
    longest = int(np.argmax(end - begin))
    return int(begin[longest] + end[longest] - 1) // 2
