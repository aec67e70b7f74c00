"""All that a method may ask of the data: the objective and its gradient, the measure, exact trajectories, single steps.

A `Problem` is made of shards, each of them some queries with all their rows. It sums what the shards answer, so that a
method can't tell where rows are: here all in memory, in one shard or in several. Value and gradient are sums over
queries; the measure is taken of the values of all queries, in their order; the steps of all queries along a line are
merged. None of this depends on where one shard ends and the next begins.

>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[5, 0.3], [9, 0.1], [4, 0.2]])
>>> problem = Problem.of(Linear().prepared(rows, 0).at([0, 1, 0.5]), rows, parse_measure("RR"))
>>> problem.measure_at(np.array([0, 1, 0.5])), problem.line(np.array([0, 1, 0.5]), np.array([0, 0, 1.0]))(2.0)
(0.5, 1.0)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.landscape.direction import reach
from fliprank.landscape.model_trajectory import model_steps
from fliprank.landscape.step_function import StepFunction, step_function
from fliprank.landscape.steps import Steps, find_steps, join_steps
from fliprank.landscape.sweep import Line
from fliprank.measures import Measure, parse_measure
from fliprank.models.base import Model
from fliprank.models.parameters import Parameters
from fliprank.objectives.base import Objective
from fliprank.optimize.pairs import Pairs
from fliprank.optimize.scored import Scored
from fliprank.optimize.shard import Evaluation, Shard
from fliprank.optimize.space import Space, stepped, widths_of
from fliprank.parallel import one_thread

__all__ = ["GAIN", "Place", "Problem", "all_alike"]

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
    """A point of the search: its free values, the scores of each shard there, and the measure (larger is better)."""

    values: Floats
    scores: tuple[Floats, ...]
    measure: float


class _Forward(NamedTuple):
    """The objective's value, and what its gradient is made of: how many queries have scores in units of a spread."""

    value: float
    work: list[Evaluation]
    spread: float
    counted: int


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
    shards: tuple[Shard, ...]
    measure: Measure
    objective: Objective | None = None
    spread: bool = False
    scored: Scored = field(default_factory=Scored)
    _latest: dict[str, tuple[bytes, tuple[Floats, ...]]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls,
        model: Model,
        rows: Candidates | Sequence[Candidates],
        measure: Measure | str,
        objective: Objective | None = None,
        *,
        spread: bool = False,
    ) -> Problem:
        """The problem of these rows, or of a list of shards; row numbers of an objective count through all shards."""
        parts, begin, shards = [rows] if isinstance(rows, Candidates) else list(rows), 0, list[Shard]()
        for part in parts:
            own = objective
            if objective is not None and len(parts) > 1:
                own = objective.take(np.arange(begin, begin + len(part)))
            shards.append(Shard(part, own))
            begin += len(part)
        return cls(model, tuple(shards), parse_measure(measure), objective, spread)

    @property
    def params(self) -> Parameters:
        """The parameters to fit, with the values to start from."""
        return self.model.params

    @cached_property
    def queries(self) -> int:
        """How many queries there are."""
        return sum(shard.rows.queries for shard in self.shards)

    @cached_property
    def _first(self) -> Ints:
        """The number of the first query of each shard."""
        return np.cumsum([0, *(shard.rows.queries for shard in self.shards)])

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
        return replace(self, shards=tuple(self._parts(queries)))

    def with_objective(self, objective: Objective) -> Problem:
        """The same rows under another objective, of which nothing is given by row."""
        shards = tuple(Shard(shard.rows, objective) for shard in self.shards)
        return replace(self, shards=shards, objective=objective)

    def _parts(self, queries: Ints) -> list[Shard]:
        if len(queries) == self.queries:
            return list(self.shards)
        cuts = np.searchsorted(queries, self._first)
        owned = [queries[cuts[s] : cuts[s + 1]] - self._first[s] for s in range(len(self.shards))]
        return [shard.part(own) for shard, own in zip(self.shards, owned, strict=True) if len(own)]

    # The objective

    def value_and_grad(
        self, values: Floats, queries: Ints | None = None, progress: float = 1.0
    ) -> tuple[float, Floats]:
        """The cost at these free parameters, to be made small, and its gradient: the mean over all or some queries.

        `progress`, from 0 to 1, is how far the training has come, for objectives that change on the way.
        """
        parts = list(self.shards) if queries is None else self._parts(queries)
        return self._value_and_grad(parts, values, progress)

    def value(self, values: Floats) -> float:
        """The cost alone: it spares the way back through the model, which takes as long as the way there."""
        return self._sign * self._forward(list(self.shards), values, 1.0).value

    def _value_and_grad(self, parts: list[Shard], values: Floats, progress: float) -> tuple[float, Floats]:
        found = self._forward(parts, values, progress)
        if found.counted:
            along = sum(each.along_scores() for each in found.work)
            for each in found.work:
                each.in_units(along, found.spread, found.counted)
        gradient = np.sum([each.pull() for each in found.work], axis=0)
        return self._sign * found.value, self._sign * gradient

    @property
    def _sign(self) -> float:
        return -1.0 if self._objective().maximise else 1.0

    def _forward(self, parts: list[Shard], values: Floats, progress: float) -> _Forward:
        objective = self._objective()
        self.scored.add(sum(len(part.rows) for part in parts))
        model = self.at(values)
        total = sum(part.rows.queries for part in parts)
        work = [Evaluation(part, model, (part.objective or objective).at(progress)) for part in parts]
        shares = [part.rows.queries / total for part in parts]
        if total == self.queries:
            self._latest["scores"] = (values.tobytes(), tuple(each.scores for each in work))
        if not self.spread:
            return _Forward(sum(each.evaluate(share) for each, share in zip(work, shares, strict=True)), work, 1.0, 0)
        spreads = [each.spread() for each in work]
        counted = sum(each.queries for each in spreads)
        spread = sum(each.total for each in spreads) / counted if counted else 1.0
        value = sum(each.evaluate(share, spread) for each, share in zip(work, shares, strict=True))
        return _Forward(value + (0.0 if counted else self._sign * NO_ORDER), work, spread, counted)

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

    def _scores(self, values: Floats) -> tuple[Floats, ...]:
        self.scored.add(self._rows)
        at, scores = self._latest.get("scores", (b"", ()))
        if at == values.tobytes() and scores:
            return scores
        model = self.at(values)
        return tuple(model.score(shard.rows) for shard in self.shards)

    def _per_query(self, scores: Sequence[Floats]) -> Floats:
        parts = [self.measure.per_query(own, shard.rows) for own, shard in zip(scores, self.shards, strict=True)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    @cached_property
    def _rows(self) -> int:
        """How many documents there are."""
        return sum(len(shard.rows) for shard in self.shards)

    def _signed(self, scores: Sequence[Floats]) -> float:
        return self.measure.sign * self.measure.aggregate(self._per_query(scores))

    def place(self, values: Floats) -> Place:
        """These free parameters, with scores and measure."""
        scores = self._scores(values)
        return Place(values, scores, self._signed(scores))

    def line(self, values: Floats, direction: Floats) -> Callable[[float], float]:
        """The measure at values + x direction as a function of x."""
        model = self.at(values)
        if not model.linear_along(direction):
            return lambda x: self.measure_at(stepped(self.params, values, direction, x))
        scores = self._scores(values)
        slopes = [shard.slope(model, direction) for shard in self.shards]

        def at(x: float) -> float:
            self.scored.add(self._rows)
            return self._signed([base + x * slope for base, slope in zip(scores, slopes, strict=True)])

        return at

    def ranks_nothing(self, place: Place) -> bool:
        """Whether all scores of each query tie: what the measure says there is the order of ties, not the model's."""
        if not any((shard.rows.sizes > 1).any() for shard in self.shards):
            return False
        return all(all_alike(own, shard.rows) for own, shard in zip(place.scores, self.shards, strict=True))

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
        self.scored.add(self._rows)
        steps, width = list[Steps](), 0.0
        if linear:
            slopes = [shard.slope(model, direction) for shard in self.shards]
            alike = (all_alike(slope, shard.rows) for slope, shard in zip(slopes, self.shards, strict=True))
            if not flat and all(alike):
                return None
            for shard, base, slope in zip(self.shards, place.scores, slopes, strict=True):
                steps.append(find_steps(Line(base, slope, low, high), shard.rows, self.measure))
        else:
            for shard in self.shards:
                found, width = model_steps(model, shard.rows, direction, self.measure, low, high, resolution)
                steps.append(found)
        return step_function(join_steps(steps), self.measure, low, high, resolution=width)

    def moved(self, place: Place, direction: Floats, x: float) -> Place:
        """The place x further along. Scores that are linear there go along, and are not computed again."""
        values, model = stepped(self.params, place.values, direction, x), self.at(place.values)
        if not model.linear_along(direction):
            return self.place(values)
        scores = tuple(
            base + x * shard.slope(model, direction) for base, shard in zip(place.scores, self.shards, strict=True)
        )
        self.scored.add(self._rows)
        return Place(values, scores, self._signed(scores))

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
        owner = np.searchsorted(self._first, order, "right") - 1
        with one_thread():  # for one query at a time, other threads would only be woken in vain
            for shard, query in zip(owner.tolist(), order.tolist(), strict=True):
                single = self.shards[shard].query(query - int(self._first[shard]))
                value, gradient = self._value_and_grad([single], values, progress)
                values = np.clip(values - rate * gradient, lower, upper)
                total += value
                if not (np.abs(values) < DIVERGED).all():
                    return values, float("inf")
        return values, total / max(len(order), 1)


def all_alike(numbers: Floats, rows: Candidates) -> bool:
    """Whether all rows of each query have the same number, such as a score or a slope."""
    same = np.diff(numbers, prepend=numbers[:1]) == 0
    same[rows.offsets[:-1][rows.sizes > 0]] = True
    return bool(same.all())
