"""The cost that gradient methods go down: an objective of scores, and how far weights are from their defaults."""

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
    """objective (its sign turned where it is to be maximised) + l2 x the squared distance of weights from default.

    What counts as a weight, the model says (`held`); biases are not held. The objective sees the scores times `scale`:
    a model that can't stretch its scores itself, such as BM25F, would be too sure or too unsure of its order for it.
    """

    model: Model
    candidates: Candidates
    objective: Objective
    l2: float = 0.0
    scale: float = 1.0

    def value_and_grad(self, values: Floats, batch: Candidates | None = None) -> tuple[float, Floats]:
        """The cost at these free parameters, and its gradient; on a `batch` of the queries, or on all."""
        model, rows = self.model.at(self.model.params.with_free(values)), self.candidates if batch is None else batch
        value, by_score = self.objective.value_and_grad(self.scale * model.score(rows), rows)
        gradient = model.params.pull_free(model.pullback(rows, self.scale * by_score))
        sign = -1.0 if self.objective.maximise else 1.0
        away = values - self.centre
        pull = self.l2 * self.held * away
        return sign * value + float(pull @ away), sign * gradient + 2 * pull

    @cached_property
    def held(self) -> Floats:
        """How firmly each free parameter is held: 1 for a weight, 0 for a bias."""
        return np.minimum(self.model.params.pull_free(self.model.held), 1.0)

    @cached_property
    def centre(self) -> Floats:
        """The default of each free parameter."""
        return self.model.params.at(self.model.params.default).free_values
