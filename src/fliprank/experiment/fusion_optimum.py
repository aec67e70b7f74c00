"""The best weights for the training queries themselves: exact ascents from the best points of a coarse grid.

What `fuse` adopts is settled on held-out queries. This is the other figure, that a search without validation is after:
the highest value that any weights give on these very queries. One weight is one exact line, and its optimum is global.
With more lists, all points of a lattice are measured, and from the best of them and from the weights as they are, exact
line searches climb along axes, pairs and random directions: no point of the lattice is better than what is found.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.experiment.trials import Running, Trial, run_trial
from fliprank.experiment.weight_curve import weight_curve
from fliprank.measures import Measure, parse_measure
from fliprank.models.fusion import Fusion
from fliprank.optimize.methods import Exact
from fliprank.parallel import run_parallel

__all__ = ["Optimum", "exact_optimum", "lattice"]

MOST_POINTS = 300
"""Points of the lattice: as fine as this allows."""

CLIMBS = 8
"""The best points of the lattice from which to climb."""

DIRECTIONS = "axes+pairs+random"
"""A ridge may run between the axes, where two weights gain together and none of them alone."""


class Optimum(NamedTuple):
    """The fusion that is best on some queries, and the measure there."""

    model: Fusion
    value: float


def lattice(count: int, parts: int) -> Floats:
    """All weights of `count` lists that are multiples of 1 / parts and add up to 1, one per row.

    >>> lattice(2, 4).tolist()
    [[0.0, 1.0], [0.25, 0.75], [0.5, 0.5], [0.75, 0.25], [1.0, 0.0]]
    """
    # Stars and bars: where the bars stand between `parts` stars says how many go to each list.
    bars = np.array(list(combinations(range(parts + count - 1), count - 1)), np.int64).reshape(-1, count - 1)
    ends = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), parts + count - 1)])
    return (np.diff(ends, axis=1) - 1) / parts


def exact_optimum(model: Fusion, rows: Candidates, measure: str | Measure, seed: int = 0) -> Optimum:
    """The best weights on these rows that exact searches find; of two lists, the best there are.

    k and tie stay as they are. Raises where the fusion has no weights.
    """
    chosen = parse_measure(measure)
    curve = weight_curve(model, rows, chosen)
    if curve is not None:
        # At the ends many documents tie: their order is that of the tie rule, which may be kinder than either side.
        every = [Optimum(_with_share(model, x), 0.0) for x in (curve.best_point("widest"), 0.0, 1.0)]
        known = [each._replace(value=chosen.value(each.model.score(rows), rows)) for each in every]
        return max(known, key=lambda each: chosen.sign * each.value)
    if model.rule.weights != "each":
        raise UsageError(f"{model.engine} has no weights of lists to search")
    count = len(model.lists)
    parts = max(p for p in range(1, 101) if p == 1 or comb(p + count - 1, count - 1) <= MOST_POINTS)
    points = np.vstack([model.weights / max(model.weights.sum(), 1e-12), np.eye(count), lattice(count, parts)])
    others = model.params.values[count:]
    at = [model.at([*point, *others]) for point in points]
    values = np.array([chosen.sign * chosen.value(each.score(rows), rows) for each in at])
    best = np.argsort(-values, kind="stable")[:CLIMBS]
    starts = [at[i] for i in dict.fromkeys([0, *best.tolist()])]
    fits = run_parallel([partial(_climb, start, rows, chosen, seed + n) for n, start in enumerate(starts)])
    top = max(fits, key=lambda each: chosen.sign * each.value)
    return Optimum(top.model.canonical(), top.value)


def _with_share(model: Fusion, x: float) -> Fusion:
    """Two lists, the second with the share x."""
    weights = [x] if model.rule.weights == "share" else [1.0 - x, x]
    return model.at([*weights, *model.params.values[len(weights) :]])


def _climb(start: Fusion, rows: Candidates, measure: Measure, seed: int) -> Optimum:
    """Where exact line searches lead from here."""
    method = Exact(directions=DIRECTIONS, patience=2)
    fit = run_trial(Trial(None, (method,)), start, rows, None, measure, Running(seed=seed))
    assert fit is not None
    assert isinstance(fit.model, Fusion)
    return Optimum(fit.model, measure.value(fit.model.score(rows), rows))
