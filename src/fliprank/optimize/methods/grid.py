"""The full grid over up to three parameters: the ground truth of small rankers (Taylor et al. 2006, section 4.1).

>>> from fliprank.data.candidates import Candidates
>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[5, 0.3], [9, 0.1], [4, 0.2]])
>>> model = Linear().prepared(rows, 0)
>>> problem = Problem.of(model.at(model.params.fix("bias")), rows, "RR")
>>> recorder, grid = Recorder(problem), Grid(values={"w.1": [0, 1], "w.2": [0, 1, 2]})
>>> grid.run(problem, recorder, np.random.default_rng(0))
>>> grid.measures(problem, recorder).tolist()
[[1.0, 1.0, 1.0], [0.5, 1.0, 1.0]]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import ClassVar

import numpy as np

from fliprank.arrays import Floats
from fliprank.errors import UsageError
from fliprank.landscape.direction import slot_of
from fliprank.models.parameters import Parameters
from fliprank.optimize.fit import Recorder
from fliprank.optimize.methods.base import Method, check, register
from fliprank.optimize.problem import Problem
from fliprank.optimize.space import box_of
from fliprank.parallel import thread_map

__all__ = ["Grid"]

MOST_PARAMETERS = 3


@register("grid")
@dataclass(frozen=True)
class Grid(Method):
    """`steps` values of each free parameter from bound to bound, or as far to either side as `span` says (`box_of`).

    `values` gives those of some parameters. An epoch is one value of the first parameter with all of the others; it
    ends at the best point so far on training queries, the first of several.
    """

    direct: ClassVar[bool] = True
    global_search: ClassVar[bool] = True
    own_stop: ClassVar[bool] = True
    steps: int = 21
    span: float = 1.0
    values: Mapping[str, Sequence[float]] | None = None

    def __post_init__(self) -> None:
        check(self.steps >= 2, f"steps is a number from 2, not {self.steps}")

    def check(self, problem: Problem) -> None:
        self.axes(problem.params)

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

    def measures(self, problem: Problem, recorder: Recorder) -> Floats:
        """The measure at each point of the grid, in the order of `axes`; NaN for points that were not reached."""
        shape = [len(axis) for axis in self.axes(problem.params)]
        found = recorder.state.get("found", np.empty(0))
        out = np.full(prod(shape), np.nan)
        out[: len(found)] = problem.measure.sign * found
        return out.reshape(shape)

    def run(self, problem: Problem, recorder: Recorder, rng: np.random.Generator) -> None:
        axes, state = self.axes(problem.params), recorder.begin(values=problem.params.free_values, found=np.empty(0))
        best, known = state["values"], state["found"]
        # Where the start is no point of the grid it counts all the same: the trail begins there.
        top = recorder.trail[-1].objective if recorder.trail else problem.measure_at(best)
        if not recorder.trail and not recorder.epoch(best, top, found=known):
            return
        others = np.array(list(product(*axes[1:])))
        with thread_map() as mapper:
            for value in axes[0][len(recorder.trail) - 1 :]:
                points = np.column_stack([np.full(len(others), value), others])
                found = np.array(list(mapper(problem.measure_at, points)))
                if found.max() > top:
                    top, best = float(found.max()), points[found.argmax()]
                known = np.concatenate([known, found])
                if not recorder.epoch(best, top, found=known):
                    return
