"""Some queries in memory, and one evaluation of the objective on them.

All shards of a problem share one spread of scores, and each gives its share of the value and of the gradient: so an
evaluation is made in steps, between which the problem adds up what the shards found.

>>> from fliprank.models import Linear
>>> from fliprank.objectives import RankNet
>>> rows = Candidates.of([1, 0, 0, 1], group=[2, 2], features=[[2.0], [0.0], [3.0], [1.0]])
>>> work = Evaluation(Shard(rows), Linear().prepared(rows, 0).at([0.0, 1.0]), RankNet())
>>> work.spread(), round(work.evaluate(share=1.0), 4)
(Spread(total=1.7888543819998317, queries=2), 1.049)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.csr import span_indices
from fliprank.kernels import parallel_kernel, prange
from fliprank.models.base import Model
from fliprank.objectives.base import Objective

__all__ = ["Evaluation", "Shard", "Spread"]

ROUNDING = 1e-13
"""A standard deviation of scores below this, relative to their size, is rounding."""

MOST_SLOPES = 1 << 28
"""Bytes of slopes that are kept from one epoch to the next."""


class Spread(NamedTuple):
    """The sum of the standard deviations of scores over queries that have any, and how many these are."""

    total: float
    queries: int


class Shard:
    """Some queries in memory, with all that is kept about them between two questions."""

    def __init__(self, rows: Candidates, objective: Objective | None = None) -> None:
        self.rows, self.objective = rows, objective
        self.slopes: dict[bytes, Floats] = {}
        self.single: dict[int, Shard] = {}

    def part(self, queries: Ints) -> Shard:
        """The shard of some of its queries (numbers that rise)."""
        if len(queries) == self.rows.queries:
            return self
        objective = self.objective
        if objective is not None:
            objective = objective.take(span_indices(self.rows.offsets, queries))
        return Shard(self.rows.select(queries), objective)

    def query(self, number: int) -> Shard:
        """The shard of one query, which is kept."""
        if number not in self.single:
            self.single[number] = self.part(np.array([number]))
        return self.single[number]

    def slope(self, model: Model, direction: Floats) -> Floats:
        """How fast scores rise along a direction. Where that is the same everywhere, it is kept for single axes."""
        key = direction.tobytes()
        if key in self.slopes:
            return self.slopes[key]
        found = model.slope(self.rows, direction)
        room = (len(self.slopes) + 1) * 8 * len(self.rows) <= MOST_SLOPES
        if room and model.linear_in_params and np.count_nonzero(direction) == 1:
            self.slopes[key] = found
        return found


class Evaluation:
    """One evaluation of the objective on one shard, in three steps, since all shards share one spread of scores."""

    def __init__(self, shard: Shard, model: Model, objective: Objective) -> None:
        self.rows, self.model, self.objective = shard.rows, model, objective
        self.scores = model.score(shard.rows)

    def spread(self) -> Spread:
        """How far apart the scores of a query are."""
        self.mean, self.deviation = _moments(self.scores, self.rows.offsets)
        self.counted = self.deviation > ROUNDING * np.abs(self.mean)
        return Spread(float(self.deviation[self.counted].sum()), int(self.counted.sum()))

    def evaluate(self, share: float, spread: float = 1.0) -> float:
        """The shard's share of the value, of scores in units of `spread`."""
        value, by_score = self.objective.value_and_grad(
            self.scores / spread if spread != 1.0 else self.scores, self.rows
        )
        self.by_score = by_score * share if share != 1.0 else by_score
        return value * share

    def along_scores(self) -> float:
        """The change of the value as all scores grow."""
        # Not by BLAS, which wakes other threads for some ten thousand rows and then waits for them.
        return float(np.einsum("i,i", self.by_score, self.scores))

    def in_units(self, along_scores: float, spread: float, queries: int) -> None:
        """Turn the gradient by scores in units of the spread into that by the scores themselves."""
        inverse = np.maximum(self.rows.sizes, 1) * self.deviation * queries
        inverse = np.divide(along_scores / spread, inverse, out=np.zeros(self.rows.queries), where=self.counted)
        given = frozen(self.by_score, np.float64)
        self.by_score = _unscaled(given, self.scores, self.rows.offsets, self.mean, inverse, spread)

    def pull(self) -> Floats:
        """The gradient by the free parameters."""
        return self.model.params.pull_free(self.model.pullback(self.rows, self.by_score))


@parallel_kernel
def _moments(scores: Floats, offsets: Ints) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each query's scores."""
    mean, deviation = np.zeros(len(offsets) - 1), np.zeros(len(offsets) - 1)
    for q in prange(len(mean)):
        start, stop = offsets[q], offsets[q + 1]
        total, square = 0.0, 0.0
        for row in range(start, stop):
            total += scores[row]
        mean[q] = total / max(stop - start, 1)
        for row in range(start, stop):
            square += (scores[row] - mean[q]) ** 2
        deviation[q] = np.sqrt(square / max(stop - start, 1))
    return mean, deviation


@parallel_kernel
def _unscaled(by_score: Floats, scores: Floats, offsets: Ints, mean: Floats, fall: Floats, spread: float) -> Floats:
    """(by_score - fall (score - mean)) / spread, with `mean` and `fall` of each query."""
    out = np.empty(len(scores))
    for q in prange(len(mean)):
        for row in range(offsets[q], offsets[q + 1]):
            out[row] = (by_score[row] - fall[q] * (scores[row] - mean[q])) / spread
    return out
