"""How one fit of a tuning is made: by gradient down a smooth objective, by line searches on the measure, or by both.

A fit looks at the rows that matter: the judged ones, the top of the ranking as it is, and some at random. What it comes
to may bring others up that it did not see; then these are added and it goes on, until the top holds no stranger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.order import order_rows
from fliprank.errors import UsageError
from fliprank.experiment.side_by_side import side_by_side
from fliprank.measures import Measure
from fliprank.models import Model
from fliprank.models.parameters import Parameters
from fliprank.objectives import parse_objective
from fliprank.optimize.cost import Cost
from fliprank.optimize.metric import Metric
from fliprank.optimize.stretch import climb, descend

__all__ = ["AS_IT_IS", "Fits", "Note", "Recipe", "choose", "folds_of"]

TOP, MORE = 20, 100
"""Rows of a query that fits look at beside the judged ones: its first ranks, and so many at random of the rest."""

STRANGERS, ROUNDS = 10, 4
"""A fit goes on while rows that it did not see are among the first STRANGERS of a query; at most so many rounds."""

Note = Callable[[str, int, int], None]
"""Called with (what is done, how many fits of it are done, how many there are)."""


@dataclass(frozen=True)
class Recipe:
    """A way to tune: an objective ("": none), how firmly it holds parameters to their defaults, climb at the end?"""

    objective: str = ""
    pull: float = 0.0
    climb: bool = False

    def __str__(self) -> str:
        if not self.objective and not self.climb:
            return "leave the defaults"
        held = f", held to the defaults by {self.pull:g}" if self.pull else ""
        parts = [self.objective + held] if self.objective else []
        return " then ".join([*parts, *(["line searches on the measure"] if self.climb else [])])


AS_IT_IS = Recipe()


def folds_of(queries: int, folds: int, seed: int) -> list[Ints]:
    """The numbers of the queries of each fold, at random."""
    if not 2 <= folds <= queries:
        raise UsageError(f"{folds} folds of {queries} queries: there are at least 2, each with a query")
    return [np.sort(part) for part in np.array_split(np.random.default_rng(seed).permutation(queries), folds)]


def choose(held_out: Mapping[Recipe, Floats], measure: Measure) -> Recipe:
    """The recipe that is best on held-out queries; to leave the defaults, it must be so by a standard error.

    Of several ways one does well by luck. Equals go to the first, which is the simplest.
    """
    sign = -1.0 if measure.smaller_is_better else 1.0
    values = {recipe: sign * measure.paired(found) for recipe, found in held_out.items()}
    best = max(values, key=lambda recipe: round(float(values[recipe].mean()), 12))
    if AS_IT_IS not in values or best == AS_IT_IS:
        return best
    gap = values[best] - values[AS_IT_IS]
    return best if gap.mean() > gap.std(ddof=1) / np.sqrt(len(gap)) else AS_IT_IS


Mask = NDArray[np.bool_]


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

    def held_out(
        self, recipes: Sequence[Recipe], queries: Ints, folds: int, what: str = "choosing"
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

        def slope_of(recipe: Recipe, queries: Ints) -> tuple[Model, Mask]:
            return after[replace(recipe, climb=False), queries.tobytes()]

        ends = side_by_side([partial(self._descend, key[0], queries) for key, queries in slopes], self.jobs, told)
        after = dict(zip((key for key, _ in slopes), ends, strict=True))
        climbs = [partial(self._climb, *slope_of(recipe, queries), queries) for recipe, queries in climbing]
        tops = iter(side_by_side(climbs, self.jobs, told))
        return [next(tops) if recipe.climb else slope_of(recipe, queries)[0] for recipe, queries in work]

    def _descend(self, recipe: Recipe, queries: Ints) -> tuple[Model, Mask]:
        """Down the objective from several starts to the end with the least cost; and the rows that were looked at."""
        if not recipe.objective:
            return self.model, self.few
        objective, starts = parse_objective(recipe.objective), _starts(self.model.params, self.starts, self.seed)

        def fit(model: Model, rows: Candidates, first: bool) -> Model:
            cost = Cost(model, rows, objective, scale=self.scale)
            begins = [model.params.with_free(start) for start in starts] if first else [model.params]
            ends = [descend(cost.value_and_grad, begin, recipe.pull) for begin in begins]
            return model.at(model.params.with_free(min(ends, key=lambda end: end[0])[1]))

        return self._until_no_stranger(fit, self.model, self.few, queries)

    def _climb(self, begun: Model, seen: Mask, queries: Ints) -> Model:
        """Up the measure itself, by line searches."""

        def fit(model: Model, rows: Candidates, first: bool) -> Model:
            return model.at(model.params.with_free(climb(Metric(model, rows, self.measure))))

        return self._until_no_stranger(fit, begun, seen, queries)[0]

    def _until_no_stranger(
        self, fit: Callable[[Model, Candidates, bool], Model], model: Model, seen: Mask, queries: Ints
    ) -> tuple[Model, Mask]:
        """Fit, add the rows that come up, and go on from there; the model and the rows that it has seen."""
        mine = np.zeros(self.rows.queries, bool)
        mine[queries] = True
        own = np.repeat(mine, self.rows.sizes)
        for number in range(ROUNDS):
            model = fit(model, self.rows.take(seen & own).select(queries), number == 0)
            rank = self._ranks(model)
            if not (own & ~seen & (rank < STRANGERS)).any():
                break
            seen = seen | (rank < TOP)
        return model, seen

    def _ranks(self, model: Model) -> Ints:
        """The rank of each row in its query, from 0."""
        rank = np.empty(len(self.rows), np.int64)
        order = order_rows(model.score(self.rows), self.rows.offsets, self.rows.docids)
        rank[order] = np.arange(len(self.rows)) - np.repeat(self.rows.offsets[:-1], self.rows.sizes)
        return rank

    @cached_property
    def few(self) -> Mask:
        """The rows that a fit looks at first."""
        below = np.maximum(self.rows.sizes - TOP, 1)[self.rows.query_of_rows()]
        drawn = np.random.default_rng(self.seed).random(len(self.rows)) < MORE / below
        return ~np.isnan(self.rows.labels) | (self._ranks(self.model) < TOP) | drawn

    @cached_property
    def scale(self) -> float:
        """What brings the scores of a query to a spread of 1."""
        rows = self.rows.take(self.few)
        scores, owner, sizes = self.model.score(rows), rows.query_of_rows(), np.maximum(rows.sizes, 1)
        mean = np.bincount(owner, scores, rows.queries) / sizes
        spread = np.sqrt(np.bincount(owner, (scores - mean[owner]) ** 2, rows.queries) / sizes)
        return 1.0 / (float(spread[spread > 0].mean()) if (spread > 0).any() else 1.0)


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
