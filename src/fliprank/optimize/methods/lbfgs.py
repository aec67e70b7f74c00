"""L-BFGS on the whole training set (SciPy's L-BFGS-B); an epoch is one of its iterations.

It wants a cost whose gradient is its own: every objective but LambdaRank, whose gradient belongs to no function (Taylor
et al. 2008, section 2.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fliprank.arrays import Floats
from fliprank.optimize.fit import Recorder
from fliprank.optimize.methods.base import Journal, Method, register
from fliprank.optimize.problem import Problem
from fliprank.parallel import one_blas_thread

__all__ = ["Lbfgs"]


@register("lbfgs")
@dataclass(frozen=True)
class Lbfgs(Method):
    """`l2` is the strength of the prior: cost + l2 x squared distance from the defaults, in search coordinates.

    It has converged where a step lowers the cost by less than `tolerance`, relative to the cost.
    """

    converges: ClassVar[bool] = True
    swept: ClassVar[Mapping[str, tuple[Any, ...]]] = {"l2": (1e-3, 1e-2, 1e-1)}
    epochs: int = 100
    l2: float = 1e-3
    tolerance: float = 2e-9

    def run(self, problem: Problem, recorder: Recorder, rng: np.random.Generator) -> None:
        from scipy.optimize import minimize

        space, start = problem.space(factors=True, prior=self.l2), problem.params.free_values
        journal, latest = Journal(recorder, 1 + len(start)), dict[bytes, float]()
        begun: dict[bytes, Floats] = {}  # SciPy asks for the start again, which the first epoch has told

        def function(point: Floats) -> tuple[float, Floats]:
            values = space.from_search(point)

            def answer() -> Floats:
                cost, gradient = problem.value_and_grad(values, progress=min(1.0, recorder.done / max(self.epochs, 1)))
                held, pull = space.prior_cost(values)
                return np.concatenate([[cost + held], space.pull(values, gradient) + pull])

            found = begun.pop(point.tobytes(), None)
            if found is None:
                found = journal.ask(answer)
            latest[point.tobytes()] = float(found[0])
            return float(found[0]), found[1:]

        def callback(point: Floats) -> None:
            cost = latest.get(point.tobytes(), float("nan"))
            latest.clear()
            if not recorder.epoch(space.from_search(point), cost, journal=journal.state()):
                raise StopIteration

        first = space.to_search(start)
        cost, gradient = function(first)
        begun[first.tobytes()] = np.concatenate([[cost], gradient])
        if recorder.epoch(start, cost, journal=journal.state()) and self.epochs:
            options = {"jac": True, "method": "L-BFGS-B", "bounds": list(zip(space.low, space.high, strict=True))}
            limits = {"maxiter": self.epochs, "ftol": self.tolerance}
            with one_blas_thread():
                result = minimize(function, first, callback=callback, options=limits, **options)
            if result.status == 0:
                recorder.stopped = "converged"
