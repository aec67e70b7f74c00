"""All that a method may ask of the data: the objective and its gradient, the measure, exact trajectories, single steps.

A `Problem` is made of shards, each of them some queries with all their rows. It sums what the shards tell, so that a
method can't know where rows are: in memory, in one shard or in several, or elsewhere (see `shards.py`). Value and
gradient are sums over queries; the measure is taken of the values of all queries, in their order; the steps of all
queries along a line are merged. None of this depends on where one shard ends and the next begins.

>>> from fliprank.data.candidates import Candidates
>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[5, 0.3], [9, 0.1], [4, 0.2]])
>>> problem = Problem.of(Linear().prepared(rows, 0).at([0, 1, 0.5]), rows, parse_measure("RR"))
>>> problem.measure_at(np.array([0, 1, 0.5])), problem.line(np.array([0, 1, 0.5]), np.array([0, 0, 1.0]))(2.0)
(0.5, 1.0)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.errors import UsageError
from fliprank.landscape.direction import reach
from fliprank.landscape.step_function import StepFunction, step_function
from fliprank.landscape.steps import join_steps
from fliprank.measures import Measure, parse_measure
from fliprank.models.base import Model
from fliprank.models.parameters import Parameters
from fliprank.objectives.base import Objective
from fliprank.optimize import file_shards  # noqa: F401 (makes windows of files known to `shards_of`)
from fliprank.optimize.pairs import Pairs
from fliprank.optimize.scored import Scored
from fliprank.optimize.shard import (
    alike_of,
    bent_steps,
    gradient_of,
    measure_along,
    measure_of,
    moved_scores,
    scores_of,
    slope_of,
    spread_of,
    steps_of,
    value_and_grad_of,
    value_of,
)
from fliprank.optimize.shards import Kept, Shards, shards_of
from fliprank.optimize.space import Space, stepped, widths_of
from fliprank.parallel import one_thread

__all__ = ["GAIN", "Place", "Problem"]

GAIN = 1e-12
"""The least gain of a measure that counts."""

NO_ORDER = 10.0
"""What it costs more that all scores are equal: knowing nothing may cost less than being wrong, but ranks nothing."""

DIVERGED = 1e100
"""A parameter beyond this is on its way to infinity."""

REACH = 2.0
"""How many widths of a parameter a line along which scores are not linear goes to either side."""


@dataclass(frozen=True, eq=False)
class Place:
    """A point of the search: its free values, the scores that each shard keeps, the measure (larger is better)."""

    values: Floats
    scores: Kept
    measure: float


class _Forward(NamedTuple):
    """The objective's value, and what its gradient is made of: how many queries have scores in units of a spread."""

    value: float
    along_scores: float
    spread: float
    counted: int
    kept: tuple[Kept, ...]


@dataclass(frozen=True, eq=False)
class Problem:
    """A model to fit to rows by an objective, a measure, or both.

    With `spread`, the objective sees scores in units of their own spread (the standard deviation of a query's scores,
    averaged over queries): a model that can't stretch its scores at will, such as BM25F or a language model, would be
    too sure or too unsure of its order, and an objective such as RankNet would set its parameters to change that.
    `scored` counts the documents that were scored to answer.

    The scores behind the last answer on all queries are kept: a method that has just asked for the cost somewhere is
    told the measure there without scoring again.
    """

    model: Model
    shards: Shards
    measure: Measure
    objective: Objective | None = None
    spread: bool = False
    scored: Scored = field(default_factory=Scored)
    _latest: dict[str, tuple[bytes, Kept]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls,
        model: Model,
        rows: Any,
        measure: Measure | str,
        objective: Objective | None = None,
        *,
        spread: bool = False,
    ) -> Problem:
        """The problem of these rows, or of a list of shards; row numbers of an objective count through all shards."""
        return cls(model, shards_of(rows, objective), parse_measure(measure), objective, spread)

    @property
    def params(self) -> Parameters:
        """The parameters to fit, with the values to start from."""
        return self.model.params

    @property
    def queries(self) -> int:
        """How many queries there are."""
        return self.shards.queries

    def space(self, *, factors: bool = False, prior: float = 0.0) -> Space:
        """The space that a method searches."""
        return Space.of(self.params, self.model.penalty_weights, factors=factors, prior=prior)

    def at(self, values: Floats) -> Model:
        """The model with these free parameters."""
        return self.model.at(self.params.with_free(values))

    def random_start(self, rng: np.random.Generator) -> Floats:
        """Free parameters to start anew from."""
        return self.model.initialised(rng).params.free_values

    def select(self, queries: Ints) -> Problem:
        """The problem of some of the queries (numbers that rise)."""
        return replace(self, shards=self.shards.select(queries))

    def with_objective(self, objective: Objective) -> Problem:
        """The same rows under another objective, of which nothing is given by row."""
        return replace(self, shards=self.shards.with_objective(objective), objective=objective)

    # The objective

    def value_and_grad(
        self, values: Floats, queries: Ints | None = None, progress: float = 1.0
    ) -> tuple[float, Floats]:
        """The cost at these free parameters, to be made small, and its gradient: the mean over all or some queries.

        `progress`, from 0 to 1, is how far the training has come, for objectives that change on the way.
        """
        shards = self.shards if queries is None else self.shards.select(queries)
        return self._value_and_grad(shards, values, progress)

    def value(self, values: Floats) -> float:
        """The cost alone: it spares the way back through the model, which takes as long as the way there."""
        return self._sign * self._forward(self.shards, self.at(values), values, 1.0).value

    def _value_and_grad(self, shards: Shards, values: Floats, progress: float) -> tuple[float, Floats]:
        sign, model = self._sign, self.at(values)
        if not self.spread:
            self.scored.add(shards.rows)
            told, scores = shards.tell_and_keep(value_and_grad_of, model, progress, shards.queries)
            self._note(shards, values, scores)
            return sign * sum(value for value, _ in told), sign * np.sum([gradient for _, gradient in told], axis=0)
        found = self._forward(shards, model, values, progress)
        units = (found.along_scores, found.spread, found.counted)
        return sign * found.value, sign * np.sum(shards.tell(gradient_of, model, *units, kept=found.kept), axis=0)

    @property
    def _sign(self) -> float:
        return -1.0 if self._objective().maximise else 1.0

    def _forward(self, shards: Shards, model: Model, values: Floats, progress: float) -> _Forward:
        self.scored.add(shards.rows)
        scores = shards.keep(scores_of, model)
        self._note(shards, values, scores)
        if not self.spread:
            told, by_score = shards.tell_and_keep(value_of, progress, shards.queries, None, kept=(scores,))
            return _Forward(sum(each.value for each in told), 0.0, 1.0, 0, ())
        spreads, moments = shards.tell_and_keep(spread_of, kept=(scores,))
        counted = sum(each.queries for each in spreads)
        spread = sum(each.total for each in spreads) / counted if counted else 1.0
        told, by_score = shards.tell_and_keep(value_of, progress, shards.queries, spread, kept=(scores,))
        value, along_scores = (sum(column) for column in zip(*told, strict=True))
        value += 0.0 if counted else self._sign * NO_ORDER
        return _Forward(value, along_scores, spread, counted, (scores, moments, by_score))

    def _note(self, shards: Shards, values: Floats, scores: Kept) -> None:
        """Remember the scores behind an answer on all queries."""
        if shards.queries == self.queries:
            self._latest["scores"] = (values.tobytes(), scores)

    def _objective(self) -> Objective:
        if self.objective is None:
            raise UsageError("this problem has no objective to descend, only a measure")
        return self.objective

    # The measure

    def measure_at(self, values: Floats) -> float:
        """The measure at these free parameters, its sign turned where smaller is better."""
        return self.place(values).measure

    def per_query(self, values: Floats) -> Floats:
        """The measure of each query."""
        return self._per_query(self._scores(values))

    def _scores(self, values: Floats) -> Kept:
        self.scored.add(self.shards.rows)
        at, scores = self._latest.get("scores", (b"", ()))
        if at == values.tobytes() and scores:
            return scores
        return self.shards.keep(scores_of, self.at(values))

    def _per_query(self, scores: Kept) -> Floats:
        return _joined(self.shards.tell(measure_of, self.measure, kept=(scores,)))

    def _signed(self, per_query: Floats) -> float:
        return self.measure.sign * self.measure.aggregate(per_query)

    def place(self, values: Floats) -> Place:
        """These free parameters, with scores and measure."""
        scores = self._scores(values)
        return Place(values, scores, self._signed(self._per_query(scores)))

    def line(self, values: Floats, direction: Floats) -> Callable[[float], float]:
        """The measure at values + x direction as a function of x."""
        model = self.at(values)
        if not model.linear_along(direction):
            return lambda x: self.measure_at(stepped(self.params, values, direction, x))
        kept = (self._scores(values), self.shards.tell_and_keep(slope_of, model, direction)[1])

        def at(x: float) -> float:
            self.scored.add(self.shards.rows)
            return self._signed(_joined(self.shards.tell(measure_along, self.measure, x, kept=kept)))

        return at

    def ranks_nothing(self, place: Place) -> bool:
        """Whether all scores of each query tie: what the measure says there is the order of ties, not the model's."""
        alike = self.shards.tell(alike_of, kept=(place.scores,))
        return any(each.several for each in alike) and all(each.all for each in alike)

    # The exact trajectory

    def trajectory(
        self, place: Place, direction: Floats, *, resolution: float, flat: bool = False
    ) -> StepFunction | None:
        """The measure along values + x direction, as far as bounds allow.

        Exact where scores are linear in x; else bracketed to `resolution`, a part of the line, which then ends two
        widths from here. None where no document can overtake another, since all scores of a query rise alike, unless
        `flat` lines are wanted too.
        """
        low, high = reach(self.params, place.values, direction)
        model = self.at(place.values)
        linear = model.linear_along(direction)
        if not linear:
            moving = direction != 0
            room = float((REACH * widths_of(model.params, 1.0)[moving] / np.abs(direction[moving])).min())
            low, high = max(low, -room), min(high, room)
        if not low < high:
            return None
        self.scored.add(self.shards.rows)
        if not linear:
            found = self.shards.tell(bent_steps, model, direction, self.measure, low, high, resolution)
            steps, width = [own for own, _ in found], found[0][1]
        else:
            alike, slopes = self.shards.tell_and_keep(slope_of, model, direction)
            if not flat and all(alike):
                return None
            kept, width = (place.scores, slopes), 0.0
            steps = self.shards.tell(steps_of, self.measure, low, high, kept=kept)
        return step_function(join_steps(steps), self.measure, low, high, resolution=width)

    def moved(self, place: Place, direction: Floats, x: float) -> Place:
        """The place x further along. Scores that are linear there go along, and are not computed again."""
        values, model = stepped(self.params, place.values, direction, x), self.at(place.values)
        if not model.linear_along(direction):
            return self.place(values)
        scores = self.shards.keep(moved_scores, model, direction, x, kept=(place.scores,))
        self.scored.add(self.shards.rows)
        return Place(values, scores, self._signed(self._per_query(scores)))

    # Single steps

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs that RankNet learns from, over all shards."""
        return Pairs.of(self.model, self.shards, self.scored)

    def query_steps(self, values: Floats, order: Ints, rate: float, progress: float = 1.0) -> tuple[Floats, float]:
        """The free values after a step of `rate` down the gradient of each query in turn, and the mean cost met.

        The cost is infinite where the rate is so large that values grow without end.
        """
        lower, upper, total = self.params.free_lower, self.params.free_upper, 0.0
        with one_thread():  # for one query at a time, other threads would only be woken in vain
            for query in order.tolist():
                value, gradient = self._value_and_grad(self.shards.single(query), values, progress)
                values = np.clip(values - rate * gradient, lower, upper)
                total += value
                if not (np.abs(values) < DIVERGED).all():
                    return values, float("inf")
        return values, total / max(len(order), 1)


def _joined(parts: list[Floats]) -> Floats:
    """What shards told of their queries, as of all queries."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
