"""Some queries with all their rows, and all that a problem may ask of them.

A question is a function of a shard and of a few small things (a model, a direction, a spread). What it tells, such as a
value or a gradient, goes back to who asked; what it keeps, such as a score per row, stays where the rows are, and the
next question gets it again. A question changes nothing, so that it may be asked again, here or on another machine.

All shards of a problem share one spread of scores, and each gives its share of the value and of the gradient: so an
evaluation is made in steps, between which the problem adds up what the shards told.

>>> from fliprank.models import Linear
>>> from fliprank.objectives import RankNet
>>> rows = Candidates.of([1, 0, 0, 1], group=[2, 2], features=[[2.0], [0.0], [3.0], [1.0]])
>>> shard, model = Shard(rows, RankNet()), Linear().prepared(rows, 0).at([0.0, 1.0])
>>> scores = scores_of(shard, model)
>>> spread_of(shard, scores)[0], round(value_of(shard, 1.0, 2, None, scores)[0].value, 4)
(Spread(total=1.7888543819998317, queries=2), 1.049)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.csr import span_indices
from fliprank.errors import UsageError
from fliprank.kernels import parallel_kernel, prange
from fliprank.landscape.model_trajectory import model_steps
from fliprank.landscape.steps import Steps, find_steps
from fliprank.landscape.sweep import Line
from fliprank.measures import Measure
from fliprank.models.base import Model
from fliprank.objectives.base import Objective

__all__ = [
    "Alike",
    "Moments",
    "Shard",
    "Spread",
    "Valued",
    "alike_of",
    "all_alike",
    "bent_steps",
    "gradient_of",
    "measure_along",
    "measure_of",
    "moved_scores",
    "scores_of",
    "slope_of",
    "spread_of",
    "steps_of",
    "value_and_grad_of",
    "value_of",
]

ROUNDING = 1e-13
"""A standard deviation of scores below this, relative to their size, is rounding."""

MOST_SLOPES = 1 << 28
"""Bytes of slopes that are kept from one epoch to the next."""


class Slope(NamedTuple):
    """How fast the score of each row rises, and the parts of the model that this is of, which are known by identity."""

    by_row: Floats
    of: tuple[Any, ...]


class Shard:
    """Some queries in memory, with all that is kept about them between two questions."""

    def __init__(self, rows: Candidates, objective: Objective | None = None, most_slopes: int = MOST_SLOPES) -> None:
        self.rows, self.objective, self.most_slopes = rows, objective, most_slopes
        self.slopes: dict[tuple[Any, ...], Slope] = {}

    def part(self, queries: Ints) -> Shard:
        """The shard of some of its queries (numbers that rise)."""
        if len(queries) == self.rows.queries:
            return self
        objective = self.objective
        if objective is not None:
            objective = objective.take(span_indices(self.rows.offsets, queries))
        return Shard(self.rows.select(queries), objective, self.most_slopes)

    def slope(self, model: Model, direction: Floats) -> Floats:
        """How fast scores rise along a direction. Where that is the same everywhere, it is kept for single axes."""
        parts = model.all_but_values
        key = (direction.tobytes(), *map(id, parts))
        if (known := self.slopes.get(key)) is not None:
            return known.by_row
        found = model.slope(self.rows, direction)
        room = (len(self.slopes) + 1) * 8 * len(self.rows) <= self.most_slopes
        if room and model.linear_in_params and np.count_nonzero(direction) == 1:
            self.slopes[key] = Slope(found, parts)
        return found


# The objective


class Spread(NamedTuple):
    """The sum of the standard deviations of scores over queries that have any, and how many these are."""

    total: float
    queries: int


class Moments(NamedTuple):
    """Mean and standard deviation of each query's scores, and whether the latter is more than rounding."""

    mean: Floats
    deviation: Floats
    counted: NDArray[np.bool_]


class Valued(NamedTuple):
    """A shard's share of the value, and of its change as all scores grow."""

    value: float
    along_scores: float


def scores_of(shard: Shard, model: Model) -> Floats:
    """Keeps the score of each row."""
    return model.score(shard.rows)


def spread_of(shard: Shard, scores: Floats) -> tuple[Spread, Moments]:
    """Tells how far apart the scores of a query are; keeps the moments of each query."""
    mean, deviation = _moments(scores, shard.rows.offsets)
    counted = deviation > ROUNDING * np.abs(mean)
    return Spread(float(deviation[counted].sum()), int(counted.sum())), Moments(mean, deviation, counted)


def value_of(
    shard: Shard, progress: float, queries: int, spread: float | None, scores: Floats
) -> tuple[Valued, Floats]:
    """Tells the shard's share of the value, `queries` being those of all shards; keeps its gradient by the scores.

    With `spread`, the objective sees scores in units of it.
    """
    value, by_score = _share(shard, progress, queries, scores if spread in (None, 1.0) else scores / spread)
    # Not by BLAS, which wakes other threads for some ten thousand rows and then waits for them.
    return Valued(value, 0.0 if spread is None else float(np.einsum("i,i", by_score, scores))), by_score


def gradient_of(
    shard: Shard,
    model: Model,
    along_scores: float,
    spread: float,
    queries: int,
    scores: Floats,
    moments: Moments,
    by_score: Floats,
) -> Floats:
    """Tells the gradient by the free parameters.

    `by_score` is by scores in units of the spread, and is turned into that by the scores themselves first, unless none
    of the `queries` has a spread.
    """
    if queries:
        rows = shard.rows
        inverse = np.maximum(rows.sizes, 1) * moments.deviation * queries
        inverse = np.divide(along_scores / spread, inverse, out=np.zeros(rows.queries), where=moments.counted)
        by_score = _unscaled(frozen(by_score, np.float64), scores, rows.offsets, moments.mean, inverse, spread)
    return model.params.pull_free(model.pullback(shard.rows, by_score))


def value_and_grad_of(shard: Shard, model: Model, progress: float, queries: int) -> tuple[tuple[float, Floats], Floats]:
    """Tells the shard's share of the value and its gradient at once, where no spread is shared; keeps the scores."""
    scores = model.score(shard.rows)
    value, by_score = _share(shard, progress, queries, scores)
    return (value, model.params.pull_free(model.pullback(shard.rows, by_score))), scores


def _share(shard: Shard, progress: float, queries: int, scores: Floats) -> tuple[float, Floats]:
    """The value and its gradient by scores, each times the share that this shard has of all queries."""
    if shard.objective is None:
        raise UsageError("these rows have no objective to descend, only a measure")
    share = shard.rows.queries / queries
    value, by_score = shard.objective.at(progress).value_and_grad(scores, shard.rows)
    return value * share, by_score * share if share != 1.0 else by_score


# The measure


class Alike(NamedTuple):
    """Whether all rows of each query have the same number, and whether any query has two rows."""

    all: bool
    several: bool


def measure_of(shard: Shard, measure: Measure, scores: Floats) -> Floats:
    """Tells the measure of each query."""
    return measure.per_query(scores, shard.rows)


def measure_along(shard: Shard, measure: Measure, x: float, scores: Floats, slope: Floats) -> Floats:
    """Tells the measure of each query x further along a line."""
    return measure.per_query(scores + x * slope, shard.rows)


def alike_of(shard: Shard, scores: Floats) -> Alike:
    """Tells whether all scores of each query tie."""
    several = bool((shard.rows.sizes > 1).any())
    return Alike(not several or all_alike(scores, shard.rows), several)


def all_alike(numbers: Floats, rows: Candidates) -> bool:
    """Whether all rows of each query have the same number, such as a score or a slope."""
    same = np.diff(numbers, prepend=numbers[:1]) == 0
    same[rows.offsets[:-1][rows.sizes > 0]] = True
    return bool(same.all())


# Lines


def slope_of(shard: Shard, model: Model, direction: Floats) -> tuple[bool, Floats]:
    """Tells whether all scores of a query rise alike along a direction; keeps how fast each rises."""
    slope = shard.slope(model, direction)
    return all_alike(slope, shard.rows), slope


def steps_of(shard: Shard, measure: Measure, low: float, high: float, scores: Floats, slope: Floats) -> Steps:
    """Tells the steps of each query along a line on which scores are linear."""
    return find_steps(Line(scores, slope, low, high), shard.rows, measure)


def bent_steps(
    shard: Shard, model: Model, direction: Floats, measure: Measure, low: float, high: float, resolution: float
) -> tuple[Steps, float]:
    """Tells the steps along a line on which scores are not linear, and the width of the cells looked at."""
    return model_steps(model, shard.rows, direction, measure, low, high, resolution)


def moved_scores(shard: Shard, model: Model, direction: Floats, x: float, scores: Floats) -> Floats:
    """Keeps the scores x further along a line on which they are linear."""
    return scores + x * shard.slope(model, direction)


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
