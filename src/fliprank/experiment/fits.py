"""How the fits of a tuning are made: by gradient down a smooth objective, by line searches on the measure, or by both.

A fit looks at the rows that matter: the judged ones, the top of the ranking as it is, and some at random. What it comes
to may bring others up that it did not see; then these are added and it goes on, until the top holds no stranger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.order import order_rows
from fliprank.experiment.recipes import Recipe, Recipes, folds_of, weigh
from fliprank.measures import Measure
from fliprank.models import Model
from fliprank.models.parameters import Parameters
from fliprank.objectives import parse_objective
from fliprank.optimize.cost import Cost
from fliprank.optimize.metric import Metric
from fliprank.optimize.stretch import Stretch, climb, descend
from fliprank.parallel import run_parallel

__all__ = ["Blend", "Fits", "Note"]

TOP, DEEP, MORE = 20, 200, 100
"""Rows of a query that fits look at beside the judged ones: its first ranks (twice the cut-off of the measure, from TOP
to DEEP), and gradients so many at random of the rest."""

ROUNDS = 4
"""A fit goes on while rows that it did not see come up among the first ranks, at most so many rounds."""

MANY = 40
"""Free parameters from which on line searches, one for each of them an epoch, are left to who asks for nothing else."""

Note = Callable[[str, int, int], None]
"""Called with (what is done, how many fits of it are done, how many there are)."""

Mask = NDArray[np.bool_]


class Blend(NamedTuple):
    """A model with the mean of the parameters that some recipes came to; their values on held-out queries, if known."""

    model: Model
    weights: dict[Recipe, float]
    held_out: dict[Recipe, Floats]


@dataclass(frozen=True, eq=False)
class Fits:
    """Fits of one model on parts of one set of queries."""

    model: Model
    rows: Candidates
    measure: Measure
    starts: int = 2
    seed: int = 0
    jobs: int | None = None
    note: Note | None = None

    def blend(self, recipes: Recipes, queries: Ints, folds: int, what: tuple[str, str]) -> Blend:
        """The mean of what the recipes come to on these queries, each counting as `folds` of the queries say."""
        found: dict[Recipe, Floats] = {}
        if isinstance(recipes, Mapping) or len(recipes) == 1:
            weights = dict(recipes) if isinstance(recipes, Mapping) else {recipes[0]: 1.0}
        else:
            quick = [recipe for recipe in recipes if not recipe.climb]
            many = len(self.model.params.free_names) > MANY and any(recipe.objective for recipe in quick)
            found = self.held_out(quick if many else recipes, queries, folds, what[0])
            weights = weigh(found, self.measure)
        parts = self.all([(recipe, queries) for recipe in weights], what[1])
        return Blend(self.mean_of(parts, list(weights.values()), queries), weights, found)

    def mean_of(self, parts: Sequence[Model], weights: Sequence[float], queries: Ints) -> Model:
        """The mean of the parameters, as a descent sees them: of logarithms, where what counts is the factor.

        Of nets it may be nonsense: what is worse on its own queries than each of its parts is no mean of them.
        """
        if len(parts) == 1:
            return parts[0]
        stretch, rows = Stretch.of(self.model.params), self.rows.take(self.best).select(queries)
        ends = np.array([stretch.inner(part.params.free_values) for part in parts])
        mean = self.model.at(self.model.params.with_free(stretch.outer(np.average(ends, axis=0, weights=weights))))
        worth = [Metric(part, rows, self.measure).at(part.params.free_values) for part in (mean, *parts)]
        return mean if worth[0] >= min(worth[1:]) else parts[int(np.argmax(worth[1:]))]

    def held_out(
        self, recipes: Sequence[Recipe], queries: Ints, folds: int, what: str = "weighing ways"
    ) -> dict[Recipe, Floats]:
        """The measure of each of these queries by each recipe, fitted without the query's fold."""
        parts = folds_of(len(queries), min(folds, len(queries)), self.seed + 1)
        work = [(recipe, np.delete(queries, part)) for part in parts for recipe in recipes]
        models = iter(self.all(work, what))
        values: dict[Recipe, list[Floats]] = {recipe: [] for recipe in recipes}
        for part in parts:
            held = self.rows.select(queries[part])
            for recipe in recipes:
                values[recipe].append(self.measure.per_query(next(models).score(held), held))
        return {recipe: np.concatenate(each) for recipe, each in values.items()}

    def all(self, work: Sequence[tuple[Recipe, Ints]], what: str) -> list[Model]:
        """A model for each recipe and set of queries; a climb goes on from where its gradient ended."""
        slopes = list({(replace(recipe, climb=False), queries.tobytes()): queries for recipe, queries in work}.items())
        climbing = [(recipe, queries) for recipe, queries in work if recipe.climb]
        done = [0]

        def told() -> None:
            done[0] += 1
            if self.note is not None:
                self.note(what, done[0], len(slopes) + len(climbing))

        def slope_of(recipe: Recipe, queries: Ints) -> Model:
            return after[replace(recipe, climb=False), queries.tobytes()]

        ends = run_parallel([partial(self._descend, key[0], queries) for key, queries in slopes], self.jobs, told)
        after = dict(zip((key for key, _ in slopes), ends, strict=True))
        climbs = [partial(self._climb, slope_of(recipe, queries), recipe.pull, queries) for recipe, queries in climbing]
        tops = iter(run_parallel(climbs, self.jobs, told))
        return [next(tops) if recipe.climb else slope_of(recipe, queries) for recipe, queries in work]

    def _descend(self, recipe: Recipe, queries: Ints) -> Model:
        """Down the objective from several starts to the end with the least cost."""
        if not recipe.objective:
            return self.model
        objective, starts = parse_objective(recipe.objective), _starts(self.model.params, self.starts, self.seed)

        def fit(model: Model, rows: Candidates, first: bool) -> Model:
            cost = Cost(model, rows, objective, spread=True)
            begins = [model.params.with_free(start) for start in starts] if first else [model.params]
            ends = [descend(cost.value_and_grad, begin, recipe.pull / len(queries)) for begin in begins]
            return model.at(model.params.with_free(min(ends, key=lambda end: end[0])[1]))

        return self._until_no_stranger(fit, self.model, self.few, queries)

    def _climb(self, begun: Model, pull: float, queries: Ints) -> Model:
        """Up the measure itself, by line searches: of the rows that were not judged, only the first ranks count."""

        def fit(model: Model, rows: Candidates, first: bool) -> Model:
            return model.at(model.params.with_free(climb(Metric(model, rows, self.measure), pull / len(queries))))

        return self._until_no_stranger(fit, begun, self.best | (self._ranks(begun) < self.top), queries)

    def _until_no_stranger(
        self, fit: Callable[[Model, Candidates, bool], Model], model: Model, seen: Mask, queries: Ints
    ) -> Model:
        """Fit, add the rows that come up, and go on from there."""
        mine = np.zeros(self.rows.queries, bool)
        mine[queries] = True
        own = np.repeat(mine, self.rows.sizes)
        for number in range(ROUNDS):
            model = fit(model, self.rows.take(seen & own).select(queries), number == 0)
            rank = self._ranks(model)
            if not (own & ~seen & (rank < self.top // 2)).any():
                break
            seen = seen | (rank < self.top)
        return model

    def _ranks(self, model: Model) -> Ints:
        """The rank of each row in its query, from 0."""
        rank = np.empty(len(self.rows), np.int64)
        order = order_rows(model.score(self.rows), self.rows.offsets, self.rows.docids)
        rank[order] = np.arange(len(self.rows)) - np.repeat(self.rows.offsets[:-1], self.rows.sizes)
        return rank

    @property
    def top(self) -> int:
        """How many first ranks of a query a fit looks at."""
        return DEEP if self.measure.depth is None else min(max(TOP, 2 * self.measure.depth), DEEP)

    @cached_property
    def best(self) -> Mask:
        """The judged rows and those of the first ranks."""
        return ~np.isnan(self.rows.labels) | (self._ranks(self.model) < self.top)

    @cached_property
    def few(self) -> Mask:
        """The rows that a gradient looks at first: these, and some at random."""
        below = np.maximum(self.rows.sizes - self.top, 1)[self.rows.query_of_rows()]
        return self.best | (np.random.default_rng(self.seed).random(len(self.rows)) < MORE / below)


def _starts(params: Parameters, count: int, seed: int) -> list[Floats]:
    """The values as they are, and random ones: anywhere between two bounds, else some factor away."""
    rng, first = np.random.default_rng(seed), params.free_values
    low, high = params.free_lower, params.free_upper
    within = np.isfinite(low) & np.isfinite(high)
    out = [first]
    for _ in range(count - 1):
        factor = (first + (first == 0) * 0.3) * np.exp(rng.normal(0.0, 0.7, len(first)))
        inside = np.where(within, low, 0) + rng.random(len(first)) * np.where(within, high - low, 0)
        out.append(np.clip(np.where(within, inside, factor), low, high))
    return out
