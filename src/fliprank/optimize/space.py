"""The free parameters as a method moves them: logarithms where factors count, bounds, units, and a prior.

A weight of 0.05 beside one of 5, or a mu of 2000: what counts is the factor, not the difference. With `factors`, a
parameter that is positive without an upper bound is moved by its logarithm; what falls to the floor of 1e-4 of its
default is 0 (or at its lower bound). Other parameters are moved in units of their default, or as they are where that
is 0 or where two bounds give the scale. The prior pulls every parameter to its default by the squared distance in these
coordinates, as firmly as the model says (`penalty_weights`).

>>> from fliprank.models.parameters import Parameters
>>> space = Space.of(Parameters.of({"mu": (2000.0, 0.0, np.inf), "b": (0.75, 0.0, 1.0)}), factors=True, prior=0.5)
>>> space.to_search(np.array([1000.0, 0.5])).round(4).tolist()
[6.9078, 0.5]
>>> space.from_search(np.array([np.log(500), 0.5])).round(9).tolist()
[500.0, 0.5]
>>> round(space.prior_cost(np.array([1000.0, 0.75]))[0], 6)                             # 0.5 log(1/2)^2
0.240227
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats
from fliprank.errors import UsageError
from fliprank.models.parameters import Parameters

__all__ = ["Space", "box_of", "stepped", "widths_of"]

FLOOR, CEILING = 1e-4, 1e4
"""How far below and above its default a parameter that is moved by factors may go."""


@dataclass(frozen=True, eq=False)
class Space:
    """The map between free parameters and search coordinates; `default`, `low` and `high` are search coordinates.

    `by_factor` says which parameters are moved by their logarithm, `unit` by what the others are divided, `prior` how
    strongly each is pulled to its default.
    """

    by_factor: NDArray[np.bool_]
    unit: Floats
    least: Floats
    floor: Floats
    default: Floats
    low: Floats
    high: Floats
    prior: Floats

    @classmethod
    def of(
        cls, params: Parameters, penalty_weights: Floats | None = None, *, factors: bool = False, prior: float = 0.0
    ) -> Space:
        """The space of these parameters. `penalty_weights`, one per parameter, say how firmly the prior holds each."""
        default, low, high = params.at(params.default).free_values, params.free_lower, params.free_upper
        by_factor = (low >= 0) & np.isinf(high) & (default > 0) & factors
        unit = np.where(by_factor | (np.isfinite(low) & np.isfinite(high)), 1.0, params.free_scale)
        floor = np.where(by_factor, np.maximum(low, FLOOR * default), 0.0)
        weights = np.ones(len(params)) if penalty_weights is None else penalty_weights
        held = prior * params.pull_free(weights) / params.pull_free(np.ones(len(params)))
        plain = cls(by_factor, unit, low, floor, default, low, high, held)
        ends = plain.to_search(low), plain.to_search(np.where(by_factor, CEILING * default, high))
        return cls(by_factor, unit, low, floor, plain.to_search(default), *ends, held)

    def to_search(self, values: Floats) -> Floats:
        """The search coordinates of these free parameters."""
        logs = np.log(np.where(self.by_factor, np.maximum(values, self.floor), 1.0))
        return np.where(self.by_factor, logs, values / self.unit)

    def from_search(self, point: Floats) -> Floats:
        """The free parameters at these search coordinates."""
        values = np.exp(np.where(self.by_factor, point, 0.0))
        least = np.where(values <= self.floor * (1 + 1e-9), self.least, values)
        return np.where(self.by_factor, least, point * self.unit)

    def pull(self, values: Floats, gradient: Floats) -> Floats:
        """The gradient by search coordinates, from that by the free parameters, which are at `values`."""
        return gradient * np.where(self.by_factor, np.maximum(values, self.floor), self.unit)

    def prior_cost(self, values: Floats) -> tuple[float, Floats]:
        """What the prior costs at these free parameters, and its gradient by search coordinates."""
        away = self.to_search(values) - self.default
        pull = self.prior * away
        return float(pull @ away), 2 * pull


def stepped(params: Parameters, values: Floats, direction: Floats, x: float) -> Floats:
    """The free values x further along a direction, kept within bounds where rounding would lead past one."""
    moved = np.clip(values + x * direction, params.free_lower, params.free_upper)
    return np.where(direction == 0, values, moved)


def widths_of(params: Parameters, span: float) -> Floats:
    """How far a search goes to either side at first: half the way between bounds, times `span`.

    Where a parameter has no two bounds: its value or 1, whichever is larger, times `span`.

    >>> widths_of(Parameters.of({"k": (1.2, 0, np.inf), "b": (0.7, 0, 1), "w": 0.1}), 1.0).tolist()
    [1.2, 0.5, 1.0]
    """
    if not 0 < span < np.inf:
        raise UsageError(f"span is a number above 0, not {span}")
    between = (params.free_upper - params.free_lower) / 2
    return span * np.where(np.isfinite(between), between, np.maximum(1.0, np.abs(params.free_values)))


def box_of(params: Parameters, span: float) -> tuple[Floats, Floats]:
    """(lowest, highest) free values to look at: the bounds, or where there is none, a width away from the value."""
    values, width = params.free_values, widths_of(params, span)
    lower, upper = params.free_lower, params.free_upper
    low, high = (np.where(np.isfinite(end), end, values + side * width) for end, side in ((lower, -1), (upper, 1)))
    return low, high
