"""Ways to tune, and how much each of several counts.

Which way does best on held-out queries is for the most part luck, and what won by luck is no better on other queries.
So no way is chosen: all count that the queries do not tell from the best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.errors import UsageError
from fliprank.measures import Measure

__all__ = ["AS_IT_IS", "Recipe", "Recipes", "folds_of", "weigh"]

LEAST = 0.02
"""The least weight of a recipe among several."""


@dataclass(frozen=True)
class Recipe:
    """A way to tune: an objective ("": none), how firmly parameters are held to their defaults, climb at the end?

    `pull` is in queries: with 1, the defaults weigh as one query does against all that there are, by objective or
    measure + the squared distance from the defaults (of logarithms, where factors count).
    """

    objective: str = ""
    pull: float = 0.0
    climb: bool = False

    def __str__(self) -> str:
        if not self.objective and not self.climb:
            return "leave the defaults"
        parts = [*filter(None, [self.objective]), *(["line searches on the measure"] if self.climb else [])]
        return " then ".join(parts) + (f", held to the defaults by {self.pull:g}" if self.pull else "")


AS_IT_IS = Recipe()

Recipes = Sequence[Recipe] | Mapping[Recipe, float]
"""The ways to tune; where they come with weights, held-out queries need not tell these."""


def folds_of(queries: int, folds: int, seed: int) -> list[Ints]:
    """The numbers of the queries of each fold, at random."""
    if not 2 <= folds <= queries:
        raise UsageError(f"{folds} folds of {queries} queries: there are at least 2, each with a query")
    return [np.sort(part) for part in np.array_split(np.random.default_rng(seed).permutation(queries), folds)]


def weigh(held_out: Mapping[Recipe, Floats], measure: Measure) -> dict[Recipe, float]:
    """How much each recipe counts: exp(-z^2 / 2), where z is how far it is behind the best on held-out queries.

    In standard errors of the paired difference. Those with less than LEAST of the whole are left out.
    """
    sign = measure.sign
    values = np.array([sign * measure.paired(found) for found in held_out.values()])
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
