"""Adam (Kingma & Ba 2015) on mini-batches of queries, in a new random order each epoch; it takes any objective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fliprank.arrays import Floats
from fliprank.optimize.fit import Recorder
from fliprank.optimize.methods.base import Method, chance, register, seed_of
from fliprank.optimize.problem import Problem

__all__ = ["Adam"]


@register("adam")
@dataclass(frozen=True)
class Adam(Method):
    """The rate falls to 0 along a cosine.

    An epoch ends at the mean of the parameters on the way (exponential, with `memory` per step), which goes to and fro
    less. There are `batch` queries per step, or fewer, so that an epoch has at least eight steps.
    """

    order_matters: ClassVar[bool] = True
    swept: ClassVar[Mapping[str, tuple[Any, ...]]] = {"l2": (1e-3, 1e-2, 1e-1)}
    epochs: int = 60
    rate: float = 0.03
    batch: int = 32
    l2: float = 1e-3
    memory: float = 0.98

    def run(self, problem: Problem, recorder: Recorder, rng: np.random.Generator) -> None:
        space, seed = problem.space(factors=True, prior=self.l2), seed_of(recorder, rng)
        first = space.to_search(problem.params.free_values)
        state = recorder.begin(smooth=first, point=first, mean=np.zeros(len(first)), square=np.zeros(len(first)))
        smooth, point, mean, square = (state[name] for name in ("smooth", "point", "mean", "square"))
        kept: dict[str, Floats] = {"smooth": smooth, "point": point, "mean": mean, "square": square, "seed": seed}
        if not recorder.trail:
            values = space.from_search(first)
            cost = problem.value_and_grad(values, progress=0.0)[0] + space.prior_cost(values)[0]
            if not recorder.epoch(problem.params.free_values, cost, **kept):
                return
        steps = min(problem.queries, max(8, -(-problem.queries // self.batch)))
        for epoch in range(len(recorder.trail), self.epochs + 1):
            order, total = chance(seed, epoch).permutation(problem.queries), 0.0
            for step, chosen in enumerate(np.array_split(order, steps)):
                values = space.from_search(point)
                cost, gradient = problem.value_and_grad(values, np.sort(chosen), progress=epoch / self.epochs)
                held, pull = space.prior_cost(values)
                slope = space.pull(values, gradient) + pull
                total += (cost + held) * len(chosen) / problem.queries
                count = (epoch - 1) * steps + step + 1
                rate = self.rate * 0.5 * (1 + np.cos(np.pi * count / (self.epochs * steps + 1)))
                mean = 0.9 * mean + 0.1 * slope
                square = 0.999 * square + 0.001 * slope**2
                move = (mean / (1 - 0.9**count)) / (np.sqrt(square / (1 - 0.999**count)) + 1e-8)
                point = np.clip(point - rate * move, space.low, space.high)
                keep = min(self.memory, count / (count + 1))
                smooth = keep * smooth + (1 - keep) * point
            kept |= {"smooth": smooth, "point": point, "mean": mean, "square": square}
            if not recorder.epoch(space.from_search(smooth), total, float(rate), **kept):
                return
