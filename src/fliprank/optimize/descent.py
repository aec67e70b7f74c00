"""Gradient descent for today: L-BFGS on the whole training set, or Adam on mini-batches of queries.

L-BFGS wants a cost whose gradient is its own: all objectives but LambdaRank, whose gradient belongs to no function
(Taylor et al. 2008, section 2.4). Adam takes any. Both stop early on validation queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.objectives.base import Objective
from fliprank.optimize.cost import Cost
from fliprank.optimize.fit import Recorder

__all__ = ["Adam", "Lbfgs"]


@dataclass(frozen=True)
class Lbfgs:
    """SciPy's L-BFGS-B; an epoch is one of its iterations. It sees parameters in units of their defaults."""

    epochs: int = 100
    l2: float = 1e-3

    def run(self, recorder: Recorder, objective: Objective, rng: np.random.Generator) -> None:
        """Go down from the model's parameters, or from where the recorder's checkpoint is."""
        from scipy.optimize import minimize

        params = recorder.model.params
        cost, scale = Cost(recorder.model, recorder.train, objective, self.l2), params.free_scale
        latest: dict[bytes, float] = {}

        def function(scaled: Floats) -> tuple[float, Floats]:
            value, gradient = cost.value_and_grad(scaled * scale)
            latest[scaled.tobytes()] = value
            return value, gradient * scale

        def callback(scaled: Floats) -> None:
            value = latest.get(scaled.tobytes(), float("nan"))
            latest.clear()
            if not recorder.epoch(scaled * scale, value):
                raise StopIteration

        start = recorder.state.get("values", params.free_values)
        left = self.epochs - max(len(recorder.trail) - 1, 0)
        if not recorder.trail and not recorder.epoch(start, cost.value_and_grad(start)[0]):
            return
        limits = list(zip(params.free_lower / scale, params.free_upper / scale, strict=True))
        options = {"jac": True, "method": "L-BFGS-B", "bounds": limits, "options": {"maxiter": left}}
        result = minimize(function, start / scale, callback=callback, **options)
        if result.status == 0:
            recorder.stopped = "converged"


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma & Ba 2015) on mini-batches of queries, in a new random order each epoch; the rate falls to 0.

    An epoch ends at the mean of the parameters on the way (exponential, `memory` a step), which goes to and fro less.
    `batch` queries a step, or fewer, so that an epoch has at least eight steps.
    """

    epochs: int = 60
    rate: float = 0.03
    batch: int = 32
    l2: float = 1e-3
    memory: float = 0.98

    def run(self, recorder: Recorder, objective: Objective, rng: np.random.Generator) -> None:
        """Go down from the model's parameters, or from where the recorder's checkpoint is."""
        if getattr(objective, "pairs", None) is not None:
            raise UsageError("adam takes some queries at a time: a choice of pairs, by row numbers, needs lbfgs")
        params, train = recorder.model.params, recorder.train
        start, cost = params.free_values, Cost(recorder.model, train, objective, self.l2)
        smooth, values, mean, square, seeds = (
            recorder.state.get(name, first)
            for name, first in (
                ("values", start),
                ("current", start),
                ("mean", np.zeros(len(start))),
                ("square", np.zeros(len(start))),
                ("seed", np.array([float(rng.integers(2**52))])),
            )
        )
        if not recorder.trail:
            value, _ = cost.value_and_grad(values)
            recorder.epoch(smooth, value, current=values, mean=mean, square=square, seed=seeds)
        steps = min(train.queries, max(8, -(-train.queries // self.batch)))
        for epoch in range(len(recorder.trail), self.epochs + 1):
            # Each epoch's order depends on the seed and its number only, so that a resumed run is the same run.
            order = np.random.default_rng([int(seeds[0]), epoch]).permutation(train.queries)
            total = 0.0
            for step, chosen in enumerate(np.array_split(order, steps)):
                value, gradient = cost.value_and_grad(values, _batch(train, chosen))
                total += value * len(chosen) / train.queries
                count = (epoch - 1) * steps + step + 1
                rate = self.rate * 0.5 * (1 + np.cos(np.pi * count / (self.epochs * steps + 1)))
                mean = 0.9 * mean + 0.1 * gradient
                square = 0.999 * square + 0.001 * gradient**2
                move = (mean / (1 - 0.9**count)) / (np.sqrt(square / (1 - 0.999**count)) + 1e-8)
                values = np.clip(values - rate * params.free_scale * move, params.free_lower, params.free_upper)
                keep = min(self.memory, count / (count + 1))
                smooth = keep * smooth + (1 - keep) * values
            if not recorder.epoch(smooth, total, float(rate), current=values, mean=mean, square=square, seed=seeds):
                return


def _batch(train: Candidates, queries: Ints) -> Candidates:
    """Some queries of the training set; all of them is the set itself, whose memo is kept."""
    return train if len(queries) == train.queries else train.select(np.sort(queries))
