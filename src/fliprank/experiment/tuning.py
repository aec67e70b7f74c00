"""Tune a ranking function of a few parameters: by gradient on a smooth objective, or on the measure itself.

Several recipes are tried: objectives, strengths of the prior towards the defaults, and keeping the defaults. Which of
them does best on held-out queries is for the most part luck, and what won by luck is no better on other queries. So
none is chosen: the result is the mean of their parameters, weighted by cross-validation over the training queries.

The same fits give the honest figure. Each fold of the queries is ranked by the mean of the fits that did not see it,
with weights that come from the other folds: no label of a fold has a part in how it is ranked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.experiment.elsewhere import ELSEWHERE, Chain
from fliprank.experiment.parameter_settings import ParameterSettings
from fliprank.experiment.proving import Prover
from fliprank.experiment.recipes import Recipes, in_words, recipes_for, weigh
from fliprank.experiment.row_pool import RowPool
from fliprank.experiment.splits import folds_of
from fliprank.experiment.training import prepared
from fliprank.experiment.trials import KEEP_DEFAULTS, Progress, Trial, fit_once
from fliprank.measures import Measure, parse_measure
from fliprank.models import Model
from fliprank.models.registry import make_model
from fliprank.objectives import Objective
from fliprank.optimize.fit import Epoch, Fit, Tried
from fliprank.optimize.methods import Method
from fliprank.optimize.shard import all_alike
from fliprank.optimize.space import Space
from fliprank.parallel import run_parallel

__all__ = ["Tuner", "tune"]

ROUNDS = 4
"""A fit goes on while rows that it did not see come up among the first ranks, at most so many rounds."""


@checked
def tune(
    model: Model | str,
    rows: Candidates,
    *,
    measure: str | Measure = DEFAULT_MEASURE,
    parameters: ParameterSettings | None = None,
    method: str | Method = "auto",
    objective: str | Objective | None = None,
    recipes: Recipes | None = None,
    folds: int | None = 5,
    restarts: int = 1,
    seed: int = 0,
    jobs: int | None = None,
    progress: Progress | None = None,
    test: Candidates | None = None,
    reported: Sequence[str | Measure] = ("AP", "RR"),
    adopt: str = "proven",
    **settings: Any,
) -> Fit:
    """The model with parameters set from the judgements of `rows`: a mean of recipes, weighted by cross-validation.

    `model` may be a name; "auto" tunes every text function and takes the one that is worth its parameters. `method`,
    `objective` and `settings` narrow the recipes down (`recipes_for`). `parameters` fixes, bounds or shares parameters.
    Gradients start from the defaults and `restarts` - 1 random points. `held_out` of the result has the scores that
    prove it; with `folds=None` nothing is held out, and all recipes that move parameters count alike.

    `proof` of the result compares it with the defaults, on `test` rows too if given, by `reported` measures too; its
    `model` is the tuned function if the verdict says so (`adopt`: "proven", "always" or "never"), else the defaults.
    """
    prover = Prover(test, tuple(reported), adopt)
    chosen = parse_measure(measure)
    known = recipes_for(chosen, method, objective, **settings) if recipes is None else recipes
    if model == "auto":
        from fliprank.experiment.model_choice import choose_and_tune

        options: dict[str, Any] = {"recipes": known, "parameters": parameters, "restarts": restarts, "jobs": jobs}
        fit = choose_and_tune(rows, measure=chosen, folds=folds, seed=seed, progress=progress, **options)
        return replace(fit, prover=prover)
    made = make_model(model, rows) if isinstance(model, str) else model
    tuner = Tuner.of(made, rows, chosen, parameters, restarts, seed, jobs, progress)
    found = tuner.blend(known, folds)
    values = [chosen.value(each.score(rows), rows) for each in (tuner.model, found.model)]
    trail = tuple(Epoch(number, float("nan"), value, float("nan")) for number, value in enumerate(values))
    path = np.array([each.params.free_values for each in (tuner.model, found.model)])
    told = {"measure": str(chosen), "folds": folds, "restarts": restarts, "seed": seed}
    stopped = "all recipes done" if found.weights != {KEEP_DEFAULTS: 1.0} else "no recipe is better than the defaults"
    fit = Fit(found.model, trail[-1], trail, stopped, told, path, tuner.model, chosen, found.tried(chosen), rows)
    return replace(fit, held_out=found.scores, prover=prover)


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """What each recipe gave on each query that it did not see; scores of all rows by blends that did not see them."""

    values: dict[Trial, Floats]
    scores: Floats


@dataclass(frozen=True, eq=False)
class _Blend:
    """A model with the mean of the parameters of some recipes; what is known of held-out queries."""

    model: Model
    weights: dict[Trial, float]
    held: _HeldOut | None

    @property
    def scores(self) -> Floats | None:
        return None if self.held is None else self.held.scores

    def tried(self, measure: Measure) -> tuple[Tried, ...]:
        """The recipes with their values and weights."""
        known = {} if self.held is None else self.held.values
        every = {trial: measure.aggregate(values) for trial, values in known.items()}
        every = every or dict.fromkeys(self.weights, float("nan"))
        return tuple(Tried(in_words(trial), value, self.weights.get(trial, 0.0)) for trial, value in every.items())


@dataclass(frozen=True, eq=False)
class Tuner:
    """Fits of one model on one set of queries, and on parts of it."""

    model: Model
    pool: RowPool
    measure: Measure
    restarts: int = 1
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
        restarts: int = 1,
        seed: int = 0,
        jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Tuner:
        ready = prepared(model, rows, parameters)
        return cls(ready, RowPool.of(ready, rows, measure, seed), measure, restarts, seed, jobs, progress)

    def blend(self, recipes: Recipes, folds: int | None) -> _Blend:
        """The mean of what the recipes come to, weighted by `folds` of the queries."""
        fits, pool = self.fits_of_all(list(recipes))
        held, count = None, 0 if folds is None else min(folds, self.pool.rows.queries)
        if count > 1:
            held = self.hold_out(recipes, pool, count)
        if held is not None and not isinstance(recipes, Mapping):
            weights = weigh(held.values, self.measure)
        else:
            moving = [recipe for recipe in recipes if recipe.methods] or list(recipes)
            weights = dict(recipes) if isinstance(recipes, Mapping) else dict.fromkeys(moving, 1 / len(moving))
        model = self.mean_of([fits[recipe] for recipe in weights], list(weights.values()), pool.for_searches)
        return _Blend(model, weights, held)

    def fits_of_all(self, recipes: Sequence[Trial]) -> tuple[dict[Trial, Model], RowPool]:
        """Each recipe's fit to all queries, and the rows with those that the fits brought to the top."""
        pool, fits = self.pool, dict[Trial, Model]()
        # Of recipes that differ in their prior alone, the last has the weakest and goes furthest from the defaults.
        furthest = {(r.objective, tuple(map(type, r.methods))): r for r in recipes if r.methods}.values()
        for _ in range(ROUNDS):
            rows = (pool.for_gradients, pool.for_searches)
            fits = self._in_parallel(_chains(recipes), [rows], "fitting", fits)[0]
            wider = pool.with_top_of(fits[recipe] for recipe in furthest)
            if wider is None:
                break
            pool = wider
        return fits, pool

    def hold_out(self, recipes: Recipes, pool: RowPool, folds: int) -> _HeldOut:
        """Fits without each fold in turn, and what they give on it. They start from the defaults: none saw the fold."""
        rows, every = self.pool.rows, np.arange(self.pool.rows.queries)
        parts = folds_of(rows.queries, folds, self.seed)
        kept = [np.delete(every, part) for part in parts]
        seen = [(pool.for_gradients.select(some), pool.for_searches.select(some)) for some in kept]
        fits = self._in_parallel(_chains(list(recipes)), seen, "cross-validation")
        values = {recipe: np.empty(rows.queries) for recipe in recipes}
        for part, own in zip(parts, fits, strict=True):
            held = pool.for_gradients.select(part)
            for recipe in recipes:
                values[recipe][part] = self.measure.per_query(own[recipe].score(held), held)
        scores, owner = np.empty(len(rows)), rows.query_of_rows()
        for part, some, own, (_, few) in zip(parts, kept, fits, seen, strict=True):
            known = {recipe: found[some] for recipe, found in values.items()}
            weights = dict(recipes) if isinstance(recipes, Mapping) else weigh(known, self.measure)
            mean = self.mean_of([own[recipe] for recipe in weights], list(weights.values()), few)
            scores[np.isin(owner, part)] = mean.score(rows.select(part))
        return _HeldOut(values, scores)

    def mean_of(self, parts: Sequence[Model], weights: Sequence[float], rows: Candidates) -> Model:
        """The mean of the parameters: of logarithms, where what counts is the factor.

        Of nets it may be nonsense: a mean that is worse on its own rows than each of its parts is not taken.
        """
        if len(parts) == 1:
            return parts[0]
        space = Space.of(self.model.params, factors=True)
        ends = np.array([space.to_search(part.params.free_values) for part in parts])
        values = space.from_search(np.average(ends, axis=0, weights=weights))
        mean = self.model.at(self.model.params.with_free(values))
        worth = [self.measure.sign * self.measure.value(part.score(rows), rows) for part in (mean, *parts)]
        return mean if worth[0] >= min(worth[1:]) else parts[int(np.argmax(worth[1:]))]

    def _in_parallel(
        self,
        chains: Sequence[Sequence[Trial]],
        sets: Sequence[tuple[Candidates, Candidates]],
        what: str,
        begun: Mapping[Trial, Model] | None = None,
    ) -> list[dict[Trial, Model]]:
        """The fits of every chain to every set of rows (for gradients, for searches), going on from those `begun`."""
        total, done, lock = len(sets) * sum(map(len, chains)), [0], Lock()

        def report() -> None:
            with lock:
                done[0] += 1
                if self.progress is not None:
                    self.progress(what, done[0], total, None)

        if (away := ELSEWHERE.get()) is not None:
            work = [Chain(chain, *rows, begun or {}) for rows in sets for chain in chains]
            found = iter(away.run_chains(work, self.model, self.measure, self.restarts, self.seed, report))
        else:
            tasks = [partial(self.chain, chain, *rows, begun or {}, report) for rows in sets for chain in chains]
            found = iter(run_parallel(tasks, self.jobs))
        return [{trial: end for _ in chains for trial, end in next(found).items()} for _ in sets]

    def chain(
        self,
        chain: Sequence[Trial],
        rows: Candidates,
        few: Candidates,
        begun: Mapping[Trial, Model],
        report: Any,
    ) -> dict[Trial, Model]:
        """Recipes one after the other: one that differs from the last in its prior alone starts where that ended."""
        ends, parts = dict[Trial, Model](), dict[tuple[Method, ...], Model]()
        last: Model | None = None
        for trial in chain:
            end = self.model
            for number, method in enumerate(trial.methods):
                key = trial.methods[: number + 1]
                if key not in parts:
                    warm = method.converges and number == 0
                    start = (begun.get(trial) if len(trial.methods) == 1 else None) or last if warm else None
                    parts[key] = self._fit(method, trial.objective, start, end, few if method.direct else rows)
                    last = parts[key] if warm else last
                end = parts[key]
            ends[trial] = end
            report()
        return ends

    def _fit(
        self, method: Method, objective: Objective | None, warm: Model | None, model: Model, rows: Candidates
    ) -> Model:
        """One method, from `warm`, or from `model` and, if that is as it was given, from random starts too."""
        if method.has_prior:
            method = method.with_prior(getattr(method, "l2") / rows.queries)  # noqa: B009
        fresh = warm is None and model is self.model and not method.direct and not method.as_printed
        rng = np.random.default_rng(self.seed)
        starts = [warm or model, *(model.initialised(rng) for _ in range(self.restarts - 1) if fresh)]
        ends = [fit_once(method, objective, start, rows, self.measure, self.seed) for start in starts]
        end = min(ends, key=lambda each: each[0])[1]
        # Where all scores tie, a measure is that of the tie rule: never a gain.
        return model if all_alike(end.score(rows), rows) else end


def _chains(recipes: Sequence[Trial]) -> list[list[Trial]]:
    """Recipes by what they descend: chains that can run at the same time."""
    found: dict[Objective | None, list[Trial]] = {}
    for recipe in recipes:
        found.setdefault(recipe.objective, []).append(recipe)
    return list(found.values())
