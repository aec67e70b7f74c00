"""SciPy's Powell: Brent's search along a set of directions that follows the steps taken; an epoch is one round.

Robertson & Zaragoza 2007, section 4.2: useful for some twenty parameters, at the price of very many evaluations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fliprank.arrays import Floats
from fliprank.optimize.fit import Recorder
from fliprank.optimize.methods.base import Journal, Method, check, register
from fliprank.optimize.problem import Problem
from fliprank.optimize.space import widths_of

__all__ = ["Powell"]


@register("powell")
@dataclass(frozen=True)
class Powell(Method):
    """The unit of each parameter is its width (`widths_of`)."""

    direct: ClassVar[bool] = True
    own_stop: ClassVar[bool] = True
    epochs: int = 24
    span: float = 1.0
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        check(self.epochs >= 1 and self.tolerance > 0, "epochs is a number from 1, and tolerance above 0")

    def run(self, problem: Problem, recorder: Recorder, rng: np.random.Generator) -> None:
        from scipy.optimize import minimize

        params, start, journal = problem.params, problem.params.free_values, Journal(recorder, 1)
        width, lower, upper = widths_of(params, self.span), params.free_lower, params.free_upper

        def values_of(point: Floats) -> Floats:
            return np.clip(start + width * point, lower, upper)

        def measure(values: Floats) -> float:
            return float(journal.ask(lambda: np.array([problem.measure_at(values)]))[0])

        def callback(intermediate_result: Any) -> None:
            values = values_of(intermediate_result.x)
            found = measure(values)
            if not recorder.epoch(values, found, journal=journal.state()):
                raise StopIteration

        first = measure(start)
        if recorder.epoch(start, first, journal=journal.state()):
            result = minimize(
                lambda point: -measure(values_of(point)),
                np.zeros(len(start)),
                method="Powell",
                bounds=list(zip((lower - start) / width, (upper - start) / width, strict=True)),
                callback=callback,
                options={"maxiter": self.epochs, "ftol": self.tolerance, "xtol": self.tolerance},
            )
            if result.status == 0:
                recorder.stopped = "converged"
