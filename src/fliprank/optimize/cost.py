"""The cost that gradient methods go down: an objective of a model's scores, and how large its weights are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.models.base import Model
from fliprank.objectives.base import Objective

__all__ = ["Cost"]


@dataclass(frozen=True, eq=False)
class Cost:
    """objective (its sign turned where it is to be maximised) + l2 x the squared weights, over the free parameters.

    Weights are the parameters whose names begin with w; biases are not held small.
    """

    model: Model
    candidates: Candidates
    objective: Objective
    l2: float = 0.0

    def value_and_grad(self, values: Floats, batch: Candidates | None = None) -> tuple[float, Floats]:
        """The cost at these free parameters, and its gradient; on a `batch` of the queries, or on all."""
        model, rows = self.model.at(self.model.params.with_free(values)), self.candidates if batch is None else batch
        value, by_score = self.objective.value_and_grad(model.score(rows), rows)
        gradient = model.params.pull_free(model.pullback(rows, by_score))
        sign = -1.0 if self.objective.maximise else 1.0
        held = self.l2 * self.held * values
        return sign * value + float(held @ values), sign * gradient + 2 * held

    @cached_property
    def held(self) -> Floats:
        """1 for each free parameter that is a weight, else 0."""
        params = self.model.params
        weight = np.array([name.startswith("w") for name in params.names], np.float64)
        return np.minimum(params.pull_free(weight), 1.0)
