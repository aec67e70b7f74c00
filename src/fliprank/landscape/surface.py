"""A measure or an objective over a grid of two parameters: the surfaces of Taylor et al. 2006, section 4.1, Figure 1.

>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[5, 0.3], [9, 0.1], [4, 0.2]])
>>> found = surface(Linear().prepared(rows, 0), rows, ("w.1", "w.2"), "RR", x=[0, 3], y=[-1, 1])
>>> found.values.round(3).tolist(), found.best
([[0.333, 0.5], [1.0, 0.5]], (0.0, 1.0, 1.0))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.landscape.batch import values_at
from fliprank.landscape.direction import direction_of, finite_reach, slot_of
from fliprank.measures import Measure, parse_measure
from fliprank.models.base import Model
from fliprank.objectives import Objective, parse_objective

__all__ = ["Surface", "surface"]

POINTS = 41


@dataclass(frozen=True, eq=False)
class Surface:
    """`values[j, i]` is what `of` names where the two parameters are `x[i]` and `y[j]`."""

    parameters: tuple[str, str]
    x: Floats
    y: Floats
    values: Floats
    of: str
    larger_is_better: bool
    queries: int

    @property
    def best(self) -> tuple[float, float, float]:
        """(x, y, value) of the best point of the grid."""
        signed = self.values if self.larger_is_better else -self.values
        j, i = np.unravel_index(int(np.nanargmax(signed)), signed.shape)
        return float(self.x[i]), float(self.y[j]), float(self.values[j, i])


def surface(
    model: Model,
    candidates: Candidates,
    parameters: tuple[str, str],
    of: str | Measure | Objective = "nDCG(dcg='exp-log2')@10",
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
) -> Surface:
    """A measure or an objective on these rows, at all values `x` of the first parameter and `y` of the second.

    By default 41 values between the bounds, or where there are none to twice the value's size on either side.
    """
    if len(parameters) != 2 or slot_of(model.params, parameters[0]) == slot_of(model.params, parameters[1]):
        raise UsageError(f"a surface is over two parameters that move on their own, not {' and '.join(parameters)}")
    chosen = _parsed(of)
    columns, rows = (_values(model, name, given) for name, given in zip(parameters, (x, y), strict=True))
    scores = _scores(model, candidates, parameters)
    ys, xs = (grid.ravel() for grid in np.meshgrid(rows, columns, indexing="ij"))
    if isinstance(chosen, Measure):
        values = values_at(lambda i: scores(xs[i], ys[i]), len(xs), candidates, chosen)
        better = not chosen.smaller_is_better
    else:
        each = (chosen.per_query(scores(a, b), candidates) for a, b in zip(xs, ys, strict=True))
        values, better = np.array([value.mean() for value in each]), chosen.maximise
    shaped = values.reshape(len(rows), len(columns))
    return Surface(parameters, columns, rows, shaped, str(chosen), better, candidates.queries)


def _parsed(of: str | Measure | Objective) -> Measure | Objective:
    """A measure or an objective, by its name."""
    if isinstance(of, (Measure, Objective)):
        return of
    try:
        return parse_measure(of)
    except UsageError as error:
        try:
            return parse_objective(of)
        except UsageError:
            raise error from None


def _values(model: Model, name: str, given: ArrayLike | None) -> Floats:
    """The values of a parameter on the grid, checked against its bounds."""
    params, slot = model.params, slot_of(model.params, name)
    if given is None:
        ends = finite_reach(params, params.free_values, direction_of(params, name))
        return float(params.free_values[slot]) + np.linspace(ends[0], ends[1], POINTS)
    values: Floats = np.asarray(given, np.float64).reshape(-1)
    low, high = float(params.free_lower[slot]), float(params.free_upper[slot])
    if not len(values) or not (np.isfinite(values) & (low <= values) & (values <= high)).all():
        raise UsageError(f"{name} has values from {low:g} to {high:g}; the grid was given others")
    return values


def _scores(model: Model, candidates: Candidates, parameters: tuple[str, str]) -> Callable[[float, float], Floats]:
    """Scores at two values: without asking the model again, where it is linear in them."""
    params, along = model.params, [direction_of(model.params, name) for name in parameters]
    start = [float(params.free_values[slot_of(params, name)]) for name in parameters]
    if all(model.linear_along(direction) for direction in (*along, along[0] + along[1])):
        base = model.score(candidates)
        u, v = (model.slope(candidates, direction) for direction in along)
        return lambda x, y: base + (x - start[0]) * u + (y - start[1]) * v
    still = params.free_values * (along[0] + along[1] == 0)
    return lambda x, y: model.at(params.with_free(still + x * along[0] + y * along[1])).score(candidates)
