"""Scores of a model with one feature replaced, for each of many features: what `importance` asks for.

Any model can be asked again with a changed column. For trees that would walk every tree once per feature; here each row
walks a tree once, and again only for features on its path. Of a linear model, the sums of the terms before and after
each feature are shared by all. Rows that are alike but for the feature tie exactly without it, as they must: a
difference of scores would leave its rounding error behind, and rank them by that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fliprank.arrays import Floats, Ints, Matrix, frozen
from fliprank.data.candidates import Candidates
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.models.base import Model
from fliprank.models.blend import Blend
from fliprank.models.feature_subset import FeatureSubset, feature_places, pick_features
from fliprank.models.linear import Linear
from fliprank.models.trees import AT_MOST, LEAF, Forest, Nodes, Trees

__all__ = ["Without", "column_of", "query_means", "without_field", "without_of"]

MOST_AT_ONCE = 1 << 25
"""Scores of trees that are held at a time."""

Without = Callable[[int], Floats]
"""The scores where one feature, by its number, is replaced."""

Column = Callable[[int], Matrix]
"""What a feature is replaced by: a value for each row."""


def without_of(model: Model, rows: Candidates, column: Column) -> Without:
    """The scores of a model on `rows` where `column(k)` stands in the place of feature k."""
    if isinstance(model, Blend):
        return _of_blend(model, rows, column)
    if isinstance(model, FeatureSubset):
        return _of_subset(model, rows, column)
    if isinstance(model, Trees) and model.forest is not None:
        return _of_forest(model.forest, rows, column)
    if isinstance(model, Linear):
        return _of_linear(model, rows, column)
    assert rows.features is not None
    work, original = rows.features.copy(), rows.features

    def scores(k: int) -> Floats:
        work[:, k] = column(k)
        found = model.score(replace(rows, features=work))
        work[:, k] = original[:, k]
        return found

    return scores


def _of_blend(model: Blend, rows: Candidates, column: Column) -> Without:
    model.lines(rows)  # raises if it is not ready
    assert model.spread is not None
    kept = [
        (weight, without_of(part, rows, column), mean, scale)
        for weight, part, mean, scale in zip(model.params.values, model.parts, *model.spread, strict=True)
        if weight != 0.0
    ]

    def scores(k: int) -> Floats:
        total = np.zeros(len(rows))
        for weight, without, mean, scale in kept:
            total += weight * ((without(k) - mean) * scale)
        return total

    return scores


def _of_subset(model: FeatureSubset, rows: Candidates, column: Column) -> Without:
    places = feature_places(rows, model.features)
    inner = without_of(model.model, pick_features(rows, model.features), lambda k: column(places[k]))
    own, known = {place: k for k, place in enumerate(places)}, model.score(rows)
    return lambda k: inner(own[k]) if k in own else known


def _of_linear(model: Linear, rows: Candidates, column: Column) -> Without:
    scaler = model.fitted_scaler()
    features, weights = scaler.matrix(rows), model.params.values[1:] * scaler.scale
    bias, count = float(model.params.values[0]), len(weights)

    def made(first: int, last: int) -> Floats:
        replaced = frozen(np.stack([column(k) for k in range(first, last)], axis=1), np.float32)
        return _linear_without(features, replaced, first, scaler.mean, frozen(weights, np.float64), bias)

    return _in_groups(made, count, len(rows))


def _in_groups(made: Callable[[int, int], Floats], count: int, rows: int) -> Without:
    """Column k of what `made(first, last)` makes of some features at once, as many as memory allows."""
    group = max(1, MOST_AT_ONCE // max(1, rows))
    at_hand: dict[int, Floats] = {}

    def scores(k: int) -> Floats:
        first = k // group * group
        if first not in at_hand:
            at_hand.clear()
            at_hand[first] = made(first, min(first + group, count))
        return np.ascontiguousarray(at_hand[first][:, k - first])

    return scores


@parallel_kernel
def _linear_without(
    features: Matrix, replaced: Matrix, first: int, mean: Floats, weights: Floats, bias: float
) -> Floats:
    """Rows x features from `first` on: bias + (terms before) + (the replaced term) + (terms after)."""
    rows, count = replaced.shape
    out = np.empty((rows, count))
    for row in prange(rows):
        last = first + count
        after = 0.0
        for k in range(len(weights) - 1, last - 1, -1):
            after += weights[k] * (np.float64(features[row, k]) - mean[k])
        for k in range(last - 1, first - 1, -1):
            out[row, k - first] = after
            after += weights[k] * (np.float64(features[row, k]) - mean[k])
        before = bias
        for k in range(first):
            before += weights[k] * (np.float64(features[row, k]) - mean[k])
        for k in range(first, last):
            out[row, k - first] += before + weights[k] * (np.float64(replaced[row, k - first]) - mean[k])
            before += weights[k] * (np.float64(features[row, k]) - mean[k])
    return out


def _of_forest(forest: Forest, rows: Candidates, column: Column) -> Without:
    known = forest.score(rows)
    places = feature_places(rows, forest.names)
    own = {place: f for f, place in enumerate(places)}
    if not places:
        return lambda k: known
    assert rows.features is not None
    columns = frozen(rows.features[:, places], np.float32)

    def made(first: int, last: int) -> Floats:
        replaced = frozen(np.stack([column(place) for place in places[first:last]], axis=1), np.float32)
        return _forest_without(columns, replaced, first, forest.nodes)

    without = _in_groups(made, len(places), len(rows))
    return lambda k: without(own[k]) if k in own else known


@parallel_kernel
def _forest_without(features: Matrix, replaced: Matrix, first: int, nodes: Nodes) -> Floats:
    """Rows x features from `first` on: the sum over trees, added up in their order, with that feature replaced."""
    rows, count = replaced.shape
    out = np.zeros((rows, count))
    chunks = (rows + 63) // 64
    for c in prange(chunks):
        path, other = np.empty(count, np.int64), np.empty(count)
        met = np.full(count, -1, np.int64)
        for t in range(len(nodes.roots)):
            for row in range(64 * c, min(64 * c + 64, rows)):
                found = 0
                node = nodes.roots[t]
                while nodes.feature[node] != LEAF:
                    f = nodes.feature[node] - first
                    if 0 <= f < count and met[f] != t * 64 + row % 64:
                        met[f] = t * 64 + row % 64
                        path[found] = f
                        found += 1
                    node = _next(nodes, node, features[row, nodes.feature[node]])
                value = nodes.number[node]
                for i in range(found):
                    leaf = _leaf(nodes, t, features[row], path[i] + first, replaced[row, path[i]])
                    other[i] = out[row, path[i]] + leaf
                for f in range(count):
                    out[row, f] += value
                for i in range(found):
                    out[row, path[i]] = other[i]
    return out


@kernel
def _next(nodes: Nodes, node: int, value: float) -> int:
    below = value <= nodes.number[node] or (nodes.missing[node] == AT_MOST and np.isnan(value))
    return node + 1 if below else np.int64(nodes.above[node])  # type: ignore[return-value]


@kernel
def _leaf(nodes: Nodes, tree: int, features: Matrix, changed: int, value: float) -> float:
    """The value of the leaf that a row falls into if one of its features is changed."""
    node = nodes.roots[tree]
    while nodes.feature[node] != LEAF:
        f = nodes.feature[node]
        node = _next(nodes, node, value if f == changed else features[f])
    return nodes.number[node]  # type: ignore[no-any-return]


def without_field(rows: Candidates, field: int) -> Candidates:
    """The rows where no term stands in a field, and its length, by which models divide, is the mean of the query."""
    assert rows.terms is not None
    tf, length = rows.terms.tf.copy(), rows.terms.length.copy()
    tf[:, field] = 0.0
    length[:, field] = query_means(length[:, field].astype(np.float64), rows.offsets)
    return replace(rows, terms=replace(rows.terms, tf=tf, length=length))


def column_of(features: Matrix, offsets: Ints) -> Column:
    """What features are replaced by: the mean of the query; the mean of all rows if no query has two values of it.

    A mean over rows leaves out those where the feature is NaN. Sums are taken in float64.
    """

    def column(k: int) -> Matrix:
        values = features[:, k].astype(np.float64)
        means = query_means(values, offsets)
        if np.array_equal(means.astype(np.float32), features[:, k], equal_nan=True) and len(values):
            known = values[~np.isnan(values)]
            means = np.full(len(values), known.mean() if len(known) else np.nan)
        return means.astype(np.float32)

    return column


@kernel
def query_means(values: Floats, offsets: Ints) -> Floats:
    """For each row the mean over the rows of its query that are not NaN; NaN if all are."""
    out = np.full(len(values), np.nan)
    for q in range(len(offsets) - 1):
        total, count, origin = 0.0, 0, np.nan
        for row in range(offsets[q], offsets[q + 1]):
            if not np.isnan(values[row]):
                origin = values[row] if count == 0 else origin
                total += values[row] - origin  # relative to the first, so that the mean of equal values is exact
                count += 1
        if count:
            out[offsets[q] : offsets[q + 1]] = origin + total / count
    return out
