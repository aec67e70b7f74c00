"""A measure or an objective over a grid of parameters: the surfaces of Taylor et al. 2006, section 4.1, Figure 1.

>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[5, 0.3], [9, 0.1], [4, 0.2]])
>>> model = Linear().prepared(rows, 0)
>>> found = surface(model, rows, ("w.1", "w.2"), "RR", {"w.1": [0, 3], "w.2": [-1, 1]})
>>> found.values.round(3).tolist(), found.best
([[0.333, 1.0], [0.5, 0.5]], (0.0, 1.0, 1.0))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import UsageError, printable
from fliprank.landscape.batch import values_at
from fliprank.landscape.direction import direction_of, finite_reach, slot_of
from fliprank.measures import Measure, parse_measure
from fliprank.models.base import Model
from fliprank.objectives import Objective, parse_objective

__all__ = ["Surface", "surface"]

POINTS = {1: 201, 2: 41, 3: 15}
"""Values of each parameter on a grid over so many parameters."""


@dataclass(frozen=True, eq=False, repr=False)
class Surface:
    """`values[i, j, ...]` is what `of` names where the parameters are `axes[0][i]`, `axes[1][j]`, ...

    NaN where it was not evaluated.
    """

    parameters: tuple[str, ...]
    axes: tuple[Floats, ...]
    values: Floats
    of: str
    larger_is_better: bool
    queries: int

    def __repr__(self) -> str:
        *place, value = self.best
        at = ", ".join(f"{name} = {x:.4g}" for name, x in zip(self.parameters, place, strict=True))
        size = " x ".join(str(len(axis)) for axis in self.axes)
        return printable(f"Surface of {self.of}, {size} points, {self.queries:,} queries: best {value:.4f} at {at}")

    @property
    def best(self) -> tuple[float, ...]:
        """The best point of the grid, a number per parameter, and its value."""
        signed = self.values if self.larger_is_better else -self.values
        place = np.unravel_index(int(np.nanargmax(signed)), signed.shape)
        return *(float(axis[i]) for axis, i in zip(self.axes, place, strict=True)), float(self.values[place])


def surface(
    model: Model,
    candidates: Candidates,
    parameters: str | Sequence[str],
    measure: str | Measure | Objective = DEFAULT_MEASURE,
    values: Mapping[str, ArrayLike] | None = None,
) -> Surface:
    """A measure or an objective on these rows, at all combinations of values of one to three parameters.

    `values` gives those of some parameters. By default they are evenly spaced between the bounds, or where there are
    none to twice the value's size on either side: 201 of one parameter, 41 of two, 15 of three.
    """
    names, given = (parameters,) if isinstance(parameters, str) else tuple(parameters), dict(values or {})
    if not 1 <= len(names) <= 3 or len({slot_of(model.params, name) for name in names}) < len(names):
        raise UsageError(f"a surface is over one to three parameters that move on their own, not {', '.join(names)}")
    if unknown := sorted(given.keys() - set(names)):
        raise UsageError(f"values were given for {', '.join(unknown)}, but the surface is over {', '.join(names)}")
    chosen, scores = _parsed(measure), _scores(model, candidates, names)
    axes = tuple(_values(model, name, given.get(name), POINTS[len(names)]) for name in names)
    points = np.stack([grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")], axis=1)
    if isinstance(chosen, Measure):
        found = values_at(lambda i: scores(points[i]), len(points), candidates, chosen)
        better = not chosen.smaller_is_better
    else:
        found = np.array([chosen.per_query(scores(point), candidates).mean() for point in points])
        better = chosen.maximise
    shaped = found.reshape([len(axis) for axis in axes])
    return Surface(names, axes, shaped, str(chosen), better, candidates.queries)


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


def _values(model: Model, name: str, given: ArrayLike | None, points: int) -> Floats:
    """The values of a parameter on the grid, checked against its bounds."""
    params, slot = model.params, slot_of(model.params, name)
    if given is None:
        ends = finite_reach(params, params.free_values, direction_of(params, name))
        return float(params.free_values[slot]) + np.linspace(ends[0], ends[1], points)
    values: Floats = np.asarray(given, np.float64).reshape(-1)
    low, high = float(params.free_lower[slot]), float(params.free_upper[slot])
    if not len(values) or not (np.isfinite(values) & (low <= values) & (values <= high)).all():
        raise UsageError(f"{name} takes numbers from {low:g} to {high:g}: the grid was given others, or none")
    return values


def _scores(model: Model, candidates: Candidates, names: Sequence[str]) -> Callable[[Floats], Floats]:
    """Scores at given values of the parameters; if they are linear in these, without asking the model again."""
    params, along = model.params, np.array([direction_of(model.params, name) for name in names])
    start = params.free_values[[slot_of(params, name) for name in names]]
    if all(model.linear_along(direction) for direction in (*along, along.sum(axis=0))):
        base, slopes = model.score(candidates), [model.slope(candidates, direction) for direction in along]

        def linear(point: Floats) -> Floats:
            scores = base.copy()
            for slope, step in zip(slopes, point - start, strict=True):
                scores += step * slope
            return scores

        return linear
    still = params.free_values * (along.sum(axis=0) == 0)
    return lambda point: model.at(params.with_free(still + point @ along)).score(candidates)
