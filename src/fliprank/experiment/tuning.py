"""Tune a ranking function of a few parameters: by gradient on a smooth objective, and on the measure itself.

Several ways are tried: objectives, how firmly parameters are held to their defaults, whether the measure is climbed at
the end, and leaving the defaults alone. What comes out is a mean of them, each counting as cross-validation over the
training queries speaks for it. The honest figure comes from a second cross-validation around all of that (nested, by
query), or from test queries that nothing here looks at.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.experiment.fits import Fits, Note
from fliprank.experiment.parameter_settings import ParameterSettings
from fliprank.experiment.ranges import Range, as_good_ranges
from fliprank.experiment.recipes import AS_IT_IS, Recipe, Recipes, folds_of
from fliprank.experiment.training import DEFAULT_MEASURE
from fliprank.measures import Measure, parse_measure
from fliprank.models import Model
from fliprank.objectives import parse_objective

__all__ = ["HOLDS", "CrossValidated", "Tuned", "cross_validate", "prepare", "recipes_for", "tune"]

HOLDS, CLIMBING = (0.03, 0.3, 3.0), 0.3
"""How firmly gradients, and line searches, hold parameters to their defaults, in queries (`Recipe.pull`)."""

INNER = 3
"""Folds of the inner cross-validation, where one is nested in another."""

SOFT = {"AP": "softap", "RR": "softrr"}
"""The smooth objective that is nearest to a measure, where that is not softndcg."""


@dataclass(frozen=True, eq=False)
class Tuned:
    """The tuned model beside the one that it began as; what each recipe counts, and how it did on held-out folds."""

    model: Model
    default: Model
    measure: Measure
    rows: Candidates
    weights: dict[Recipe, float]
    tried: dict[Recipe, float] = field(default_factory=dict)

    def ranges(self, confidence: float = 0.95) -> dict[str, Range]:
        """For each free parameter the values that are statistically as good as the tuned one."""
        return as_good_ranges(self.model, self.rows, self.measure, confidence)

    def interval(self, name: str, confidence: float = 0.95) -> tuple[float, float]:
        """The values of one parameter that are statistically as good as the tuned one."""
        found = self.ranges(confidence)
        if name not in found:
            raise UsageError(f"no free parameter is called {name!r}; there are {', '.join(found)}")
        return found[name].low, found[name].high


def tune(
    model: Model,
    rows: Candidates,
    *,
    measure: str | Measure = DEFAULT_MEASURE,
    settings: ParameterSettings | None = None,
    recipes: Recipes | None = None,
    folds: int = 5,
    starts: int = 2,
    seed: int = 0,
    jobs: int | None = None,
    note: Note | None = None,
) -> Tuned:
    """The model with parameters set from the judgements of `rows`: a mean of recipes, weighed by held-out folds.

    `settings` fixes, bounds or shares parameters. Gradients start from the defaults and `starts` - 1 random points.
    With one recipe, or where weights are given, there is nothing to weigh, and nothing is held out.
    """
    chosen = parse_measure(measure)
    work = Fits(prepare(model, rows, settings), rows, chosen, starts, seed, jobs, note)
    ways = recipes_for(chosen) if recipes is None else recipes
    found = work.blend(ways, np.arange(rows.queries), folds, ("weighing ways", "the last fits"))
    tried = {way: chosen.aggregate(values) for way, values in found.held_out.items()}
    return Tuned(found.model, work.model, chosen, rows, found.weights, tried)


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """Scores of every row by a model that did not see its query, and by the defaults; what counted in each fold."""

    default: Floats
    tuned: Floats
    weights: tuple[dict[Recipe, float], ...]


def cross_validate(
    model: Model,
    rows: Candidates,
    *,
    measure: str | Measure = DEFAULT_MEASURE,
    settings: ParameterSettings | None = None,
    recipes: Recipes | None = None,
    folds: int = 5,
    starts: int = 2,
    seed: int = 0,
    jobs: int | None = None,
    note: Note | None = None,
) -> CrossValidated:
    """What `tune` is worth on queries it does not see: each fold is ranked by a model tuned on the others alone.

    Nested: recipes are weighed anew for each fold, by cross-validation (of three folds) within the others.
    """
    chosen = parse_measure(measure)
    work = Fits(prepare(model, rows, settings), rows, chosen, starts, seed, jobs, note)
    ways = recipes_for(chosen) if recipes is None else recipes
    tuned, weights = np.empty(len(rows)), []
    owner = rows.query_of_rows()
    for number, held in enumerate(folds_of(rows.queries, folds, seed)):
        seen, what = np.setdiff1d(np.arange(rows.queries), held), f"fold {number + 1} of {folds}"
        found = work.blend(ways, seen, INNER, (what, what))
        tuned[np.isin(owner, held)] = found.model.score(rows.select(np.sort(held)))
        weights.append(found.weights)
    return CrossValidated(work.model.score(rows), tuned, tuple(weights))


def prepare(model: Model, rows: Candidates, settings: ParameterSettings | None = None) -> Model:
    """The model that knows these rows' fields and features, with its parameters arranged as asked."""
    if not len(rows):
        raise InputError("there are no rows to tune on")
    ready = model if model.ready and model.params.names else model.prepared(rows, 0)
    arranged = ready.at((settings or ParameterSettings()).apply(ready.params))
    if not arranged.params.free_names:
        raise UsageError("every parameter is fixed: there is nothing to tune")
    return arranged


def recipes_for(measure: Measure, method: str = "auto", objective: str | None = None) -> tuple[Recipe, ...]:
    """The ways to try: the defaults as they are, and others.

    `method`: "gradient" down two objectives (or the one named), each with all holds; "line" searches on the measure
    itself; "auto" both, and line searches from where a gradient ended.
    """
    soft = SOFT.get(type(measure).__name__, "softndcg") + "(sigma=0.3)"
    objectives = ("ranknet", soft) if objective is None else (str(parse_objective(objective)),)
    gradients = [Recipe(each, hold) for each in objectives for hold in HOLDS]
    climbs = [Recipe(each, CLIMBING, climb=True) for each in objectives]
    line = [Recipe("", CLIMBING, climb=True)]
    ways = {"auto": [*line, *gradients, *climbs], "gradient": gradients, "line": line}
    if method not in ways:
        raise UsageError(f"unknown method {method!r}; there are {', '.join(ways)}")
    return (AS_IT_IS, *ways[method])
