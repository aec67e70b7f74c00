"""The measure over the whole range of a weight, exactly, and the weights that are statistically as good as the best.

A weighted sum is linear in its weights: from all weight on the other lists (0) to all weight on this one (1) is one
line, along which the measure is a step function that is known whole. Its maximum no grid can exceed. Queries are a
sample: a weight is as good if (measure there - measure at the best weight) over queries is not below 0 by more than
chance would have it, for the weight where chance does most (randomisation test, max-T), and so is every weight between
it and the best one.
"""

from __future__ import annotations

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.kernels import kernel
from fliprank.landscape.model_trajectory import ModelTrajectory, trajectory
from fliprank.landscape.step_function import StepFunction
from fliprank.landscape.steps import Steps
from fliprank.measures import Measure
from fliprank.models.fusion import Fusion
from fliprank.optimize.ranges import Range, as_good_ranges
from fliprank.parallel import one_blas_thread

__all__ = ["as_good_range", "share_curve", "weight_at", "weight_curve", "weight_ranges"]

POINTS, FLIPS = 128, 1000
"""Points of a line, and random signs, from which is found what chance does."""

ROUNDING = 1e-12
ALL = slice(None)


def weight_curve(model: Fusion, rows: Candidates, measure: str | Measure) -> ModelTrajectory | None:
    """The measure for every weight of the second list from 0 to 1, the first having the rest; None of other fusions.

    It is exact: a step function that is known whole, whose maximum no grid can exceed.
    """
    return share_curve(model, rows, measure, 1) if len(model.lists) == 2 else None


def weight_at(model: Fusion) -> float | None:
    """Where a fusion of two lists stands on the curve of its weight; None where all weights are 0."""
    total = float(model.weights.sum())
    return float(model.weights[1]) / total if len(model.weights) == 2 and total > 0 else None


def share_curve(model: Fusion, rows: Candidates, measure: str | Measure, place: int) -> ModelTrajectory | None:
    """The measure for every share of one list from 0 to 1, other lists having the rest in their proportions.

    Where they have no weight at all, they have the rest in equal parts. None where scores are not linear in weights.
    """
    if model.rule.combine != "sum" or model.rule.weights == "none":
        return None
    if model.rule.weights == "share":
        start, sign = model.at([1.0 - place, *model.params.values[1:]]), 2.0 * place - 1.0
        return trajectory(start, rows, {model.rule.share: sign}, measure, 0.0, 1.0)
    others = np.where(np.arange(len(model.lists)) == place, 0.0, model.weights)
    if others.sum() == 0:
        others = np.where(np.arange(len(model.lists)) == place, 0.0, 1.0)
    others = others / others.sum()
    names = [f"weight.{name}" for name in model.lists]
    start = model.at(model.params.replace(dict(zip(names, others.tolist(), strict=True))))
    direction = {name: -float(by) for name, by in zip(names, others, strict=True)} | {names[place]: 1.0}
    return trajectory(start, rows, direction, measure, 0.0, 1.0)


def as_good_range(path: StepFunction, confidence: float = 0.95, seed: int = 0) -> Range:
    """The stretch of the line around its best point that no test tells from it, for all its points at once."""
    steps, best = path.steps, path.best_point("widest")
    at_best = path.measure.paired(path.per_query(best))

    def gaps(values: Floats, owner: Ints | slice) -> Floats:
        return np.nan_to_num(path.measure.sign * (path.measure.paired(values) - at_best[..., owner]))

    order = np.argsort(steps.x, kind="stable")
    owner = steps.query()[order]
    before, after, first = gaps(steps.before()[order], owner), gaps(steps.value[order], owner), gaps(steps.first, ALL)
    # Sum and sum of squares of the gaps after each step: they change by what the gap of one query changes.
    total = first.sum() + np.concatenate([[0.0], np.cumsum(after - before)])
    square = (first**2).sum() + np.concatenate([[0.0], np.cumsum(after**2 - before**2)])
    edges = np.concatenate([[path.low], steps.x[order], [path.high]])
    wide = edges[1:] > edges[:-1]  # where several queries step at one place, only what holds after the last is a value
    low, high, total, square = edges[:-1][wide], edges[1:][wide], total[wide], square[wide]
    chosen = np.unique(np.linspace(0, len(low) - 1, POINTS).round().astype(np.int64))
    table = gaps(_values_at(((low + high) / 2)[chosen], steps), ALL)
    behind = -total > _most_by_chance(table, confidence, seed) * np.sqrt(np.maximum(square, 0.0)) + ROUNDING
    here, worse = int(np.searchsorted(high, best)), np.flatnonzero(behind)
    left, right = worse[worse < here], worse[worse > here]
    ends = (low[left[-1] + 1] if len(left) else path.low), (high[right[0] - 1] if len(right) else path.high)
    return Range(float(ends[0]), float(ends[1]))


@kernel
def _values_at(points: Floats, steps: Steps) -> Floats:
    """The value of each query (columns) at each of these points, which rise."""
    out = np.empty((len(points), len(steps.first)))
    for q in range(len(steps.first)):
        value, i = steps.first[q], steps.begin[q]
        for p in range(len(points)):
            while i < steps.begin[q + 1] and steps.x[i] <= points[p]:
                value = steps.value[i]
                i += 1
            out[p, q] = value
    return out


def _most_by_chance(table: Floats, confidence: float, seed: int) -> float:
    """How large the largest |sum| / root of the sum of squares of all rows is with random signs, at most so often.

    As in the randomisation test with max-T (`significance.max_t`), the sign of a query is flipped in all rows at once.
    The best point was picked, so that all others are below it: one threshold for all of them takes account of that.
    """
    size = np.sqrt((table**2).sum(axis=1))
    unit = table[size > ROUNDING] / size[size > ROUNDING, None]
    if not len(unit):
        return 0.0
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (table.shape[1], FLIPS))
    with one_blas_thread():
        largest = np.abs(unit @ signs).max(axis=0)
    return float(np.quantile(largest, confidence))


def weight_ranges(model: Fusion, rows: Candidates, measure: Measure) -> dict[str, Range]:
    """By parameter, the weights that are as good as the best on their line: of a list its share of all weight.

    Exact for weighted sums; other combinations are looked at value by value, all other parameters as they are.
    """
    if model.rule.weights == "none" or model.rule.combine != "sum":
        return as_good_ranges(model, rows, measure)
    share = model.rule.weights == "share"
    places = {model.rule.share: 1} if share else {f"weight.{name}": at for at, name in enumerate(model.lists)}
    curves = {name: share_curve(model, rows, measure, at) for name, at in places.items()}
    return {name: as_good_range(curve) for name, curve in curves.items() if curve is not None}
