"""Coordinate descent on RankNet's cost, summed over all pairs, as Metzler 2007 prints it (section 2.2).

One parameter after the other is moved down its own partial derivative to where the cost along it is least. The paper
does not say how far a step goes: here the line is searched by Brent's method, from where the parameter is towards
where the derivative says that the cost falls, as far as its width (`widths_of`) or bound.

>>> from fliprank.data.candidates import Candidates
>>> from fliprank.models import Linear
>>> from fliprank.objectives import RankNet
>>> rows = Candidates.of([1, 0, 0], features=[[9, 0.1], [5, 0.3], [4, 0.2]])
>>> problem = Problem.of(Linear().prepared(rows, 0), rows, "RR", RankNet())
>>> recorder = Recorder(problem)
>>> Metzler2007(epochs=1).run(problem, recorder, np.random.default_rng(0))
>>> [round(epoch.objective, 2) for epoch in recorder.trail]             # the sum of log(1 + e^Y) over both pairs
[1.35, 0.04]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fliprank.arrays import Floats
from fliprank.errors import UsageError
from fliprank.objectives import RankNet
from fliprank.optimize.fit import Recorder
from fliprank.optimize.methods.base import Method, check, register
from fliprank.optimize.problem import Problem
from fliprank.optimize.space import widths_of

__all__ = ["Metzler2007"]

ROUNDING = 1e-12
"""What a cost may change by rounding, relative to its size: a bias, which cancels, must not follow it."""


@register("metzler2007")
@dataclass(frozen=True)
class Metzler2007(Method):
    """It ends after `epochs` rounds, or after one that lowers the cost by less than `tolerance` of it."""

    own_stop: ClassVar[bool] = True
    as_printed: ClassVar[bool] = True
    epochs: int = 50
    tolerance: float = 1e-6
    samples: int = 25
    """Values that Brent's method may ask for per line."""

    def __post_init__(self) -> None:
        check(self.epochs >= 1 and self.tolerance > 0, "epochs is a number from 1, and tolerance above 0")
        check(self.samples >= 2, f"samples is a number from 2, not {self.samples}")

    def check(self, problem: Problem) -> None:
        if not isinstance(problem.objective, RankNet):
            raise UsageError(f"{self.name} descends RankNet's cost, one parameter at a time: not {problem.objective}")

    def run(self, problem: Problem, recorder: Recorder, rng: np.random.Generator) -> None:
        self.check(problem)
        assert isinstance(problem.objective, RankNet)
        summed = problem.with_objective(replace(problem.objective, normalise="none"))

        values = recorder.begin(values=problem.params.free_values)["values"]
        if not recorder.trail and not recorder.epoch(values, _cost(summed, values)):
            return
        while len(recorder.trail) <= self.epochs:
            before = found = recorder.trail[-1].objective
            for slot in range(len(values)):
                values, found = self._along(summed, values, found, slot)
            if not recorder.epoch(values, found):
                return
            if before - found <= self.tolerance * abs(before):
                recorder.stopped = "converged"
                return

    def _along(self, summed: Problem, values: Floats, found: float, slot: int) -> tuple[Floats, float]:
        """(values, cost) after the search along one parameter."""
        from scipy.optimize import minimize_scalar

        params, downwards = summed.params, -summed.queries * float(summed.value_and_grad(values)[1][slot])
        bound = params.free_upper[slot] if downwards > 0 else params.free_lower[slot]
        # A line without an end is searched piece by piece: the width is that of where the parameter is now.
        width = widths_of(params.with_free(values), 1.0)[slot]
        room = min(width, abs(float(bound) - float(values[slot])))
        if abs(downwards) * room <= ROUNDING * abs(found):
            return values, found

        def moved(x: float) -> Floats:
            out = values.copy()
            out[slot] = np.clip(values[slot] + np.sign(downwards) * x, params.free_lower[slot], params.free_upper[slot])
            return out

        options = {"maxiter": self.samples, "xatol": 1e-4 * room}
        result = minimize_scalar(
            lambda x: _cost(summed, moved(x)), bounds=(0.0, room), method="bounded", options=options
        )
        tried = [(float(result.fun), float(result.x)), (_cost(summed, moved(room)), room)]
        least, x = min(tried)
        return (moved(x), least) if least < found - ROUNDING * abs(found) else (values, found)


def _cost(summed: Problem, values: Floats) -> float:
    """The sum over queries."""
    return summed.value(values) * summed.queries
