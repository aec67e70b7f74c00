"""The cost that gradient methods go down: an objective of scores, and how far weights are from their defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.models.base import Model
from fliprank.objectives.base import Objective

__all__ = ["Cost", "in_units_of_spread"]

ROUNDING = 1e-13
NO_ORDER = 10.0
"""What scores that are all alike cost more: to know nothing may cost less than to be wrong, but ranks nothing."""


@dataclass(frozen=True, eq=False)
class Cost:
    """objective (its sign turned where it is to be maximised) + l2 x the squared distance of weights from default.

    What counts as a weight, the model says (`held`); biases are not held. With `spread`, the objective sees scores in
    units of their own spread: a model that can't stretch its scores at will, such as BM25F or a language model, would
    be too sure or too unsure of its order, and an objective such as RankNet would set parameters to make it less sure.
    """

    model: Model
    candidates: Candidates
    objective: Objective
    l2: float = 0.0
    spread: bool = False

    def value_and_grad(self, values: Floats, batch: Candidates | None = None) -> tuple[float, Floats]:
        """The cost at these free parameters, and its gradient; on a `batch` of the queries, or on all."""
        model, rows = self.model.at(self.model.params.with_free(values)), self.candidates if batch is None else batch
        scores, sign = model.score(rows), -1.0 if self.objective.maximise else 1.0
        if self.spread:
            value, by_score = in_units_of_spread(self.objective.value_and_grad, scores, rows, sign * NO_ORDER)
        else:
            value, by_score = self.objective.value_and_grad(scores, rows)
        gradient = model.params.pull_free(model.pullback(rows, by_score))
        away = values - self.centre
        pull = self.l2 * self.penalty_weights * away
        return sign * value + float(pull @ away), sign * gradient + 2 * pull

    @cached_property
    def penalty_weights(self) -> Floats:
        """How firmly each free parameter is held: 1 for a weight, 0 for a bias."""
        return np.minimum(self.model.params.pull_free(self.model.penalty_weights), 1.0)

    @cached_property
    def centre(self) -> Floats:
        """The default of each free parameter."""
        return self.model.params.at(self.model.params.default).free_values


def in_units_of_spread(
    evaluate: Callable[[Floats, Candidates], tuple[float, Floats]], scores: Floats, rows: Candidates, alike: float
) -> tuple[float, Floats]:
    """(value, gradient) of an objective of scores / spread, with respect to the scores.

    The spread is the standard deviation of a query's scores, on average over the queries where it is not 0. Where it
    is 0 in all of them, the value is that of the scores as they are, and `alike`.
    """
    owner, sizes = rows.query_of_rows(), np.maximum(rows.sizes, 1)
    away = scores - (np.bincount(owner, scores, rows.queries) / sizes)[owner]
    deviation = np.sqrt(np.bincount(owner, away**2, rows.queries) / sizes)
    counted = deviation > ROUNDING * float(np.abs(scores).max(initial=0.0))
    if not counted.any():
        value, by_score = evaluate(scores, rows)
        return value + alike, by_score
    spread = float(deviation[counted].mean())
    value, by_scaled = evaluate(scores / spread, rows)
    inverse = np.divide(1.0, sizes * deviation, out=np.zeros(rows.queries), where=counted) / counted.sum()
    return value, (by_scaled - float(by_scaled @ scores) / spread * away * inverse[owner]) / spread
