"""Ways to tune that compete, and how far each counts: by what it gave on queries that it did not see.

>>> from fliprank.measures import nDCG
>>> recipes = recipes_for(nDCG(10))
>>> print(*map(in_words, recipes), sep="\\n")
keep the defaults
ranknet by lbfgs, prior worth 1 queries
ranknet by lbfgs, prior worth 0.2 queries
ranknet by lbfgs, prior worth 0.04 queries
softrank(sigma=0.3) by lbfgs, prior worth 1 queries
softrank(sigma=0.3) by lbfgs, prior worth 0.2 queries
softrank(sigma=0.3) by lbfgs, prior worth 0.04 queries
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.experiment.trials import KEEP_DEFAULTS, Trial
from fliprank.measures import Measure
from fliprank.objectives import Objective, parse_objective
from fliprank.optimize.methods import Lbfgs, Method, make_method

__all__ = ["PRIOR_STRENGTHS", "Recipes", "in_words", "recipes_for", "weigh"]

PRIOR_STRENGTHS, PRIOR_OF_SEARCHES = (1.0, 0.2, 0.04), 0.3
"""How strongly gradients, and line searches, are pulled to the defaults: a prior worth so many queries."""

TOLERANCE = 1e-6
"""A gradient has come to an end where a step lowers the cost by less than this, relative to the cost."""

LEAST = 0.02
"""The least weight of a recipe among several."""

SOFT = {"AP": "softap", "RR": "softrr"}
"""The smooth objective that is nearest to a measure, if that is not nDCG. For nDCG it is the paper's own, `softrank`,
which trains as well as the true expectation (docs/softrank.md) and is faster for queries of some dozens of rows."""

Recipes = Sequence[Trial] | Mapping[Trial, float]
"""The trials that compete, `l2` of their methods in queries; where they come with weights, nothing is held out."""


def recipes_for(
    measure: Measure, method: str | Method = "auto", objective: str | Objective | None = None, **settings: Any
) -> tuple[Trial, ...]:
    """The recipes that compete: keeping the defaults, and others. `l2` of their methods counts in queries.

    "auto": L-BFGS down two objectives (or the one named) with every prior strength. Any other method by its name: that
    one, with every prior strength if it has a prior and none is given.
    """
    soft = SOFT.get(type(measure).__name__, "softrank") + "(sigma=0.3)"
    given = None if objective is None else parse_objective(objective)
    objectives = (parse_objective("ranknet"), parse_objective(soft)) if given is None else (given,)
    if method == "auto" and not settings:
        methods: list[Method] = [Lbfgs(l2=l2, tolerance=TOLERANCE) for l2 in PRIOR_STRENGTHS]
        return (KEEP_DEFAULTS, *(Trial(each, (one,)) for each in objectives for one in methods))
    made = make_method(method, objectives[0], **settings)
    open_prior = isinstance(method, str) and "l2" not in settings and made.has_prior
    strengths = ((PRIOR_OF_SEARCHES,) if made.direct else PRIOR_STRENGTHS) if open_prior else ()
    methods = [made.with_prior(strength) for strength in strengths] or [made]
    aims = (given,) if made.direct else objectives
    return (KEEP_DEFAULTS, *(Trial(aim, (each,)) for aim in aims for each in methods))


def weigh(held_out: Mapping[Trial, Floats], measure: Measure) -> dict[Trial, float]:
    """The weight of each recipe: exp(-2 z^2), where z is how far it is behind the best on held-out queries.

    In standard errors of the paired difference: one of them behind counts an eighth. Those with less than LEAST of the
    whole are left out.
    """
    values = np.array([measure.sign * measure.paired(found) for found in held_out.values()])
    values = values[:, ~np.isnan(values).any(axis=0)]
    if not values.size:
        return {next(iter(held_out)): 1.0}
    behind = values[np.argmax(values.mean(axis=1).round(12))] - values
    error = behind.std(axis=1, ddof=1) / np.sqrt(values.shape[1]) if values.shape[1] > 1 else np.zeros(len(values))
    z = np.divide(behind.mean(axis=1), error, out=np.where(behind.mean(axis=1) > 0, np.inf, 0.0), where=error > 0)
    weights = np.exp(-2.0 * z**2)
    weights[weights < LEAST * weights.sum()] = 0.0
    weights /= weights.sum()
    return {recipe: float(weight) for recipe, weight in zip(held_out, weights, strict=True) if weight > 0}


def in_words(recipe: Trial) -> str:
    """A recipe for people, with its prior in queries.

    >>> in_words(Trial(parse_objective("ranknet"), (Lbfgs(l2=0.3), make_method("sampled", l2=0.3))))
    'ranknet by lbfgs, then sampled, prior worth 0.3 queries'
    """
    priors = {getattr(method, "l2") for method in recipe.methods if method.has_prior} - {0.0}  # noqa: B009
    plain = (m.with_prior(getattr(type(m), "l2", 0.0)) for m in recipe.methods)
    bare = replace(recipe, methods=tuple(replace(m, tolerance=2e-9) if isinstance(m, Lbfgs) else m for m in plain))
    return f"{bare}" + (f", prior worth {' and '.join(f'{p:g}' for p in sorted(priors))} queries" if priors else "")
