"""Tune a ranking function of a few parameters: by gradient on a smooth objective, and on the measure itself.

Several recipes are tried: objectives, strengths of the prior towards the defaults, whether the measure is climbed at
the end, and keeping the defaults. Which of them does best on held-out queries is for the most part luck, and what won
by luck is no better on other queries. So none is chosen: the result is the mean of their parameters, weighted by
cross-validation over the training queries. The honest figure comes from a second cross-validation around all of that
(nested, by query), or from test queries that nothing here looks at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import UsageError
from fliprank.experiment.parameter_settings import ParameterSettings
from fliprank.experiment.row_pool import RowPool
from fliprank.experiment.training import prepared
from fliprank.experiment.trials import KEEP_DEFAULTS, Progress, Running, Trial, fit_once, run_trial
from fliprank.measures import Measure, parse_measure
from fliprank.models import Model
from fliprank.objectives import Objective, parse_objective
from fliprank.optimize.fit import Epoch, Fit, Tried
from fliprank.optimize.methods import Lbfgs, Method, Sampled, make_method
from fliprank.optimize.problem import all_alike
from fliprank.optimize.space import Space
from fliprank.parallel import run_parallel

__all__ = [
    "PRIOR_STRENGTHS",
    "CrossValidated",
    "Recipes",
    "cross_validate",
    "folds_of",
    "in_words",
    "optimal",
    "recipes_for",
    "tune",
    "tune_by_recipes",
    "weigh",
]

PRIOR_STRENGTHS, PRIOR_OF_SEARCHES = (0.03, 0.3, 3.0), 0.3
"""How strongly gradients, and line searches, are pulled to the defaults: a prior worth so many queries."""

INNER = 3
"""Folds of the inner cross-validation, where one is nested in another."""

LEAST = 0.02
"""The least weight of a recipe among several."""

MANY = 40
"""Free parameters from which on line searches, one per parameter and epoch, are left out unless asked for."""

SOFT = {"AP": "softap", "RR": "softrr"}
"""The smooth objective that is nearest to a measure, if that is not nDCG. For nDCG it is the paper's own, `softrank`,
which trains as well as the true expectation (docs/softrank.md) and is faster for queries of some dozens of rows."""

Recipes = Sequence[Trial] | Mapping[Trial, float]
"""The trials that compete, `l2` of their methods in queries; where they come with weights, nothing is held out."""


def tune(
    model: Model,
    rows: Candidates,
    *,
    measure: str | Measure = DEFAULT_MEASURE,
    parameters: ParameterSettings | None = None,
    method: str | Method = "auto",
    objective: str | Objective | None = None,
    recipes: Recipes | None = None,
    folds: int = 5,
    restarts: int = 2,
    seed: int = 0,
    jobs: int | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Fit:
    """The model with parameters set from the judgements of `rows`: a mean of recipes, weighted by cross-validation.

    `method`, `objective` and `settings` narrow the recipes down (`recipes_for`). `parameters` fixes, bounds or shares
    parameters. Gradients start from the defaults and `restarts` - 1 random points.
    """
    chosen = parse_measure(measure)
    known = recipes_for(chosen, method, objective, **settings) if recipes is None else recipes
    options: dict[str, Any] = {"parameters": parameters, "restarts": restarts, "seed": seed, "jobs": jobs}
    return tune_by_recipes(model, rows, chosen, known, folds, progress=progress, **options)[0]


def tune_by_recipes(
    model: Model, rows: Candidates, measure: Measure, recipes: Recipes, folds: int, **options: Any
) -> tuple[Fit, dict[Trial, float]]:
    """The fit, and the weights of the recipes, with which it can be done again on more rows."""
    tuner = _Tuner.of(model, rows, measure, **options)
    found = tuner.blend(recipes, np.arange(rows.queries), folds, "weighing recipes", "the last fits")
    values = [measure.value(each.score(rows), rows) for each in (tuner.model, found.model)]
    trail = tuple(Epoch(number, float("nan"), value, float("nan")) for number, value in enumerate(values))
    path = np.array([each.params.free_values for each in (tuner.model, found.model)])
    settings = {"measure": str(measure), "folds": folds, "restarts": tuner.restarts, "seed": tuner.seed}
    stopped = "all recipes done" if found.weights != {KEEP_DEFAULTS: 1.0} else "no recipe is better than the defaults"
    tried = found.tried(measure)
    fit = Fit(found.model, trail[-1], trail, stopped, settings, path, tuner.model, measure, tried, rows)
    return fit, found.weights


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """Scores of every row by a model that did not see its query, and by the defaults; the weights in each fold."""

    default: Floats
    tuned: Floats
    weights: tuple[dict[Trial, float], ...]


def cross_validate(
    model: Model,
    rows: Candidates,
    *,
    measure: str | Measure = DEFAULT_MEASURE,
    parameters: ParameterSettings | None = None,
    method: str | Method = "auto",
    objective: str | Objective | None = None,
    recipes: Recipes | None = None,
    folds: int = 5,
    restarts: int = 2,
    seed: int = 0,
    jobs: int | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> CrossValidated:
    """What `tune` is worth on queries it does not see: each fold is ranked by a model tuned on the others alone.

    Nested: recipes are weighted anew for each fold, by cross-validation (of three folds) within the others.
    """
    chosen = parse_measure(measure)
    tuner = _Tuner.of(model, rows, chosen, parameters, restarts, seed, jobs, progress)
    known = recipes_for(chosen, method, objective, **settings) if recipes is None else recipes
    scores, weights, owner = np.empty(len(rows)), list[dict[Trial, float]](), rows.query_of_rows()
    for number, held in enumerate(folds_of(rows.queries, folds, seed)):
        seen, what = np.setdiff1d(np.arange(rows.queries), held), f"fold {number + 1} of {folds}"
        found = tuner.blend(known, seen, INNER, what, what)
        scores[np.isin(owner, held)] = found.model.score(rows.select(held))
        weights.append(found.weights)
    return CrossValidated(tuner.model.score(rows), scores, tuple(weights))


def optimal(model: Model, rows: Candidates, measure: str | Measure = DEFAULT_MEASURE, *, seed: int = 0) -> Fit:
    """The best parameters on these very rows: an upper bound to compare with (Metzler 2007, Table 1), never a result.

    By sampled line searches from the defaults and from a random point, without a prior.
    """
    chosen, ready = parse_measure(measure), prepared(model, rows)
    search = Sampled(restarts=2)
    fit = run_trial(Trial(None, (search,)), ready, rows, None, chosen, Running(seed=seed))
    assert fit is not None
    return replace(fit, settings={"reference": f"optimal on these rows: an upper bound of {chosen}, not a result"})


def recipes_for(
    measure: Measure, method: str | Method = "auto", objective: str | Objective | None = None, **settings: Any
) -> tuple[Trial, ...]:
    """The recipes that compete: keeping the defaults, and others. `l2` of their methods counts in queries.

    "auto": L-BFGS down two objectives (or the one named) with every prior strength, sampled line searches on the
    measure, and both together. Any other method by its name: that one, with every prior strength if it has a prior
    and none is given.
    """
    soft = SOFT.get(type(measure).__name__, "softrank") + "(sigma=0.3)"
    given = None if objective is None else parse_objective(objective)
    objectives = (parse_objective("ranknet"), parse_objective(soft)) if given is None else (given,)
    climb = Sampled(l2=PRIOR_OF_SEARCHES)
    if method == "auto" and not settings:
        gradients = [Trial(each, (Lbfgs(l2=l2),)) for each in objectives for l2 in PRIOR_STRENGTHS]
        both = [Trial(each, (Lbfgs(l2=PRIOR_OF_SEARCHES), climb)) for each in objectives]
        return (KEEP_DEFAULTS, Trial(None, (climb,)), *gradients, *both)
    made = make_method(method, objectives[0], **settings)
    open_prior = isinstance(method, str) and "l2" not in settings and made.has_prior
    strengths = ((PRIOR_OF_SEARCHES,) if made.direct else PRIOR_STRENGTHS) if open_prior else ()
    methods = [made.with_prior(strength) for strength in strengths] or [made]
    aims = (given,) if made.direct else objectives
    return (KEEP_DEFAULTS, *(Trial(aim, (each,)) for aim in aims for each in methods))


def folds_of(queries: int, folds: int, seed: int) -> list[Ints]:
    """The numbers of the queries of each fold, at random."""
    if not 2 <= folds <= queries:
        raise UsageError(f"{folds} folds of {queries} queries: there are at least 2, each with a query")
    return [np.sort(part) for part in np.array_split(np.random.default_rng(seed).permutation(queries), folds)]


def weigh(held_out: Mapping[Trial, Floats], measure: Measure) -> dict[Trial, float]:
    """The weight of each recipe: exp(-z^2 / 2), where z is how far it is behind the best on held-out queries.

    In standard errors of the paired difference. Those with less than LEAST of the whole are left out.
    """
    values = np.array([measure.sign * measure.paired(found) for found in held_out.values()])
    values = values[:, ~np.isnan(values).any(axis=0)]
    if not values.size:
        return {next(iter(held_out)): 1.0}
    behind = values[np.argmax(values.mean(axis=1).round(12))] - values
    error = behind.std(axis=1, ddof=1) / np.sqrt(values.shape[1]) if values.shape[1] > 1 else np.zeros(len(values))
    z = np.divide(behind.mean(axis=1), error, out=np.where(behind.mean(axis=1) > 0, np.inf, 0.0), where=error > 0)
    weights = np.exp(-0.5 * z**2)
    weights[weights < LEAST * weights.sum()] = 0.0
    weights /= weights.sum()
    return {recipe: float(weight) for recipe, weight in zip(held_out, weights, strict=True) if weight > 0}


def in_words(recipe: Trial) -> str:
    """A recipe for people, with its prior in queries.

    >>> in_words(Trial(parse_objective("ranknet"), (Lbfgs(l2=0.3), Sampled(l2=0.3))))
    'ranknet by lbfgs, then sampled, prior worth 0.3 queries'
    """
    priors = {getattr(method, "l2") for method in recipe.methods if method.has_prior} - {0.0}  # noqa: B009
    bare = replace(recipe, methods=tuple(m.with_prior(getattr(type(m), "l2", 0.0)) for m in recipe.methods))
    return f"{bare}" + (f", prior worth {' and '.join(f'{p:g}' for p in sorted(priors))} queries" if priors else "")


@dataclass(frozen=True, eq=False)
class _Blend:
    """A model with the mean of the parameters of some recipes; their values on held-out queries, if known."""

    model: Model
    weights: dict[Trial, float]
    held_out: dict[Trial, Floats]

    def tried(self, measure: Measure) -> tuple[Tried, ...]:
        """The recipes with their values and weights."""
        known = {trial: measure.aggregate(values) for trial, values in self.held_out.items()}
        every = known or dict.fromkeys(self.weights, float("nan"))
        return tuple(Tried(in_words(trial), value, self.weights.get(trial, 0.0)) for trial, value in every.items())


@dataclass(frozen=True, eq=False)
class _Tuner:
    """Fits of one model on parts of one set of queries."""

    model: Model
    pool: RowPool
    restarts: int = 2
    seed: int = 0
    jobs: int | None = None
    progress: Progress | None = None

    @classmethod
    def of(
        cls,
        model: Model,
        rows: Candidates,
        measure: Measure,
        parameters: ParameterSettings | None = None,
        restarts: int = 2,
        seed: int = 0,
        jobs: int | None = None,
        progress: Progress | None = None,
    ) -> _Tuner:
        ready = prepared(model, rows, parameters)
        return cls(ready, RowPool(ready, rows, measure, seed), restarts, seed, jobs, progress)

    @property
    def rows(self) -> Candidates:
        return self.pool.rows

    @property
    def measure(self) -> Measure:
        return self.pool.measure

    def blend(self, recipes: Recipes, queries: Ints, folds: int, weighing: str, fitting: str) -> _Blend:
        """The mean of what the recipes come to on these queries, weighted by `folds` of the queries."""
        found: dict[Trial, Floats] = {}
        if isinstance(recipes, Mapping) or len(recipes) == 1:
            weights = dict(recipes) if isinstance(recipes, Mapping) else {recipes[0]: 1.0}
        else:
            quick = [recipe for recipe in recipes if not any(method.direct for method in recipe.methods)]
            many = len(self.model.params.free_names) > MANY and len(quick) > 1
            found = self._held_out(quick if many else recipes, queries, folds, weighing)
            weights = weigh(found, self.measure)
        parts = self._fits([(recipe, queries) for recipe in weights], fitting)
        return _Blend(self.mean_of(parts, list(weights.values()), queries), weights, found)

    def mean_of(self, parts: Sequence[Model], weights: Sequence[float], queries: Ints) -> Model:
        """The mean of the parameters: of logarithms, where what counts is the factor.

        Of nets it may be nonsense: a mean that is worse on its own queries than each of its parts is not taken.
        """
        if len(parts) == 1:
            return parts[0]
        space = Space.of(self.model.params, factors=True)
        rows = self.rows.take(self.pool.best).select(queries)
        ends = np.array([space.to_search(part.params.free_values) for part in parts])
        values = space.from_search(np.average(ends, axis=0, weights=weights))
        mean = self.model.at(self.model.params.with_free(values))
        worth = [self.measure.sign * self.measure.value(part.score(rows), rows) for part in (mean, *parts)]
        return mean if worth[0] >= min(worth[1:]) else parts[int(np.argmax(worth[1:]))]

    def _held_out(self, recipes: Sequence[Trial], queries: Ints, folds: int, what: str) -> dict[Trial, Floats]:
        """The measure of each of these queries by each recipe, fitted without the query's fold."""
        parts = folds_of(len(queries), min(folds, len(queries)), self.seed + 1)
        work = [(recipe, np.delete(queries, part)) for part in parts for recipe in recipes]
        models = iter(self._fits(work, what))
        values: dict[Trial, list[Floats]] = {recipe: [] for recipe in recipes}
        for part in parts:
            held = self.rows.select(queries[part])
            for recipe in recipes:
                values[recipe].append(self.measure.per_query(next(models).score(held), held))
        return {recipe: np.concatenate(each) for recipe, each in values.items()}

    def _fits(self, work: Sequence[tuple[Trial, Ints]], what: str) -> list[Model]:
        """A model for each recipe and set of queries; recipes that begin alike share their first method's fit."""
        known: dict[tuple[Trial, bytes], Model] = {}
        depth = max((len(recipe.methods) for recipe, _ in work), default=0)
        counted = [(trial, queries, n + 1) for trial, queries in work for n in range(len(trial.methods))]
        total = len({(trial.objective, trial.methods[:n], queries.tobytes()) for trial, queries, n in counted})
        done = [0]

        def report() -> None:
            done[0] += 1
            if self.progress is not None:
                self.progress(what, done[0], total, None)

        for count in range(1, depth + 1):
            begun = {
                (replace(recipe, methods=recipe.methods[:count]), queries.tobytes()): queries
                for recipe, queries in work
                if len(recipe.methods) >= count
            }
            tasks = [
                partial(self._fit, key[0], known.get((replace(key[0], methods=key[0].methods[:-1]), key[1])), queries)
                for key, queries in begun.items()
            ]
            known |= dict(zip(begun, run_parallel(tasks, self.jobs, report), strict=True))
        return [known.get((recipe, queries.tobytes()), self.model) for recipe, queries in work]

    def _fit(self, recipe: Trial, begun: Model | None, queries: Ints) -> Model:
        """The last method of a recipe, from where those before it ended; gradients from several starts."""
        method = recipe.methods[-1]
        if method.has_prior:
            method = method.with_prior(getattr(method, "l2") / len(queries))  # noqa: B009
        fresh = begun is None and not method.direct and not method.as_printed

        def fit(model: Model, rows: Candidates, first: bool) -> Model:
            rng, count = np.random.default_rng(self.seed), self.restarts if fresh and first else 1
            starts = [model, *(model.initialised(rng) for _ in range(count - 1))]
            ends = [fit_once(method, recipe.objective, start, rows, self.measure, self.seed) for start in starts]
            return min(ends, key=lambda end: end[0])[1]

        end = self.pool.refit_until_top_was_seen(fit, begun or self.model, queries, gradient=not method.direct)
        # Where all scores tie, a measure is that of the tie rule: never a gain.
        return (begun or self.model) if all_alike(end.score(self.rows), self.rows) else end
