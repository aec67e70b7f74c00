"""The full grid over up to three parameters: the ground truth of small rankers (Taylor et al. 2006, section 4.1).

>>> from fliprank.data.candidates import Candidates
>>> from fliprank.measures import parse_measure
>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[5, 0.3], [9, 0.1], [4, 0.2]])
>>> model = Linear().prepared(rows, 0)
>>> recorder = Recorder(model.at(model.params.fix("bias")), rows, None, parse_measure("RR"))
>>> grid = Grid(values={"w.1": [0, 1], "w.2": [0, 1, 2]})
>>> grid.run(recorder, None, np.random.default_rng(0))
>>> grid.surface(recorder).values.tolist()
[[1.0, 1.0, 1.0], [0.5, 1.0, 1.0]]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from fliprank.arrays import Floats
from fliprank.errors import UsageError
from fliprank.landscape.direction import slot_of
from fliprank.models.parameters import Parameters
from fliprank.objectives.base import Objective
from fliprank.optimize.fit import Recorder
from fliprank.optimize.metric import Metric, box_of, thread_map

__all__ = ["Grid", "Surface"]

MOST_PARAMETERS = 3


@dataclass(frozen=True, eq=False)
class Surface:
    """The measure at each point of a grid: `values[i, j, ...]` at `axes[0][i]`, `axes[1][j]`, ...; NaN: not yet."""

    names: tuple[str, ...]
    axes: tuple[Floats, ...]
    values: Floats


@dataclass(frozen=True)
class Grid:
    """`steps` values of each free parameter from bound to bound, or as far to either side as `span` says (`box_of`).

    `values` gives those of some parameters themselves. An epoch is one value of the first parameter with all of the
    others; it ends at the best point so far on training queries, the first of several.
    """

    steps: int = 21
    span: float = 1.0
    values: Mapping[str, Sequence[float]] | None = None

    def __post_init__(self) -> None:
        if self.steps < 2:
            raise UsageError(f"steps is a number from 2, not {self.steps}")

    def axes(self, params: Parameters) -> tuple[Floats, ...]:
        """The values of each free parameter."""
        count = len(params.free_names)
        if not 1 <= count <= MOST_PARAMETERS:
            raise UsageError(f"a full grid is for 1 to {MOST_PARAMETERS} free parameters, not {count}: fix the others")
        low, high = box_of(params, self.span)
        axes = [np.linspace(low[i], high[i], self.steps) for i in range(count)]
        for name, given in (self.values or {}).items():
            slot, axis = slot_of(params, name), np.asarray(given, np.float64)
            within = (axis >= params.free_lower[slot]) & (axis <= params.free_upper[slot])
            if axis.ndim != 1 or not len(axis) or not within.all():
                raise UsageError(f"the grid's values of {name} are one or more numbers within its bounds, not {given}")
            axes[slot] = axis
        return tuple(axes)

    def surface(self, recorder: Recorder) -> Surface:
        """What a run found at each point, as far as it got."""
        params = recorder.model.params
        axes, size = self.axes(params), len(recorder.state.get("surface", ()))
        values = np.full(prod(map(len, axes)), np.nan)
        values[:size] = recorder.state.get("surface", values[:0])
        return Surface(params.free_names, axes, values.reshape([len(axis) for axis in axes]))

    def run(self, recorder: Recorder, objective: Objective | None, rng: np.random.Generator) -> None:
        """Evaluate every point, or those that the recorder's checkpoint lacks. The objective is not used."""
        metric, params = Metric.of(recorder), recorder.model.params
        axes = self.axes(params)
        best = recorder.state.get("values", params.free_values)
        known = recorder.state.get("surface", np.empty(0))
        # Where the start is no point of the grid it counts all the same: the trail begins there.
        top = recorder.trail[-1].objective if recorder.trail else metric.at(best)
        if not recorder.trail and not recorder.epoch(best, top, surface=known):
            return
        others = np.stack(np.meshgrid(*axes[1:], indexing="ij"), -1).reshape(-1, len(axes) - 1)
        with thread_map() as mapper:
            for value in axes[0][len(recorder.trail) - 1 :]:
                points = np.column_stack([np.full(len(others), value), others])
                found = np.array(list(mapper(metric.at, points)))
                if found.max() > top:
                    top, best = float(found.max()), points[found.argmax()]
                known = np.concatenate([known, metric.sign * found])
                if not recorder.epoch(best, top, surface=known):
                    return
