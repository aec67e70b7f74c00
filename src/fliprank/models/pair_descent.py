"""Pair-by-pair descent (Taylor et al. 2006, section 2.4): one step down RankNet's cost per pair, in kernels.

A pair is two rows of one query, of which the first is preferred. With Y = score(other) - score(preferred), its cost is
log(1 + e^Y) - (1 - target) Y, where `target` is the probability that the preferred row should rank above the other one
(equation 1; the paper takes it as 1). A step moves the free parameters by -rate x gradient and clips them to their
bounds; shared parameters move together, fixed ones stay.

Every model is seen as a stack: parts (text functions and curves), standardised features, and on top a weighted sum or a
net. The kernels compute with the pair's two rows only, so what they do depends on these rows and the parameters alone,
to the last bit. Any other kind of model takes its steps by its own `score` and `pullback`, thousands of times slower.

>>> from fliprank.models.linear import Linear
>>> rows = Candidates.of([1, 0], features=[[3.0], [1.0]], feature_names=["bm25"])
>>> steps = pair_steps(Linear().prepared(rows, 0), rows, [[0, 1]], targets=1.0)
>>> steps(np.array([0.0, 0.5]), np.array([0]), 0.1).round(6).tolist()     # w + 0.1 x 2 / (1 + e^(0.5 x 2))
[0.0, 0.553788]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Int32s, Ints, Matrix, frozen
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.kernels import inlined_kernel, kernel
from fliprank.models.base import Model
from fliprank.models.bm25 import BM25, BM25F, bm25_pull, bm25_scores
from fliprank.models.bm25_sum import BM25Sum, sum_pull, sum_scores
from fliprank.models.document_feature import Feature, curve, pull_curve
from fliprank.models.feature_subset import FeatureSubset, pick_features
from fliprank.models.language_model import TwoStageLM, language_pull, language_scores
from fliprank.models.linear import Linear
from fliprank.models.network import Network, tanh
from fliprank.models.parameters import Parameters
from fliprank.models.row_function import LANGUAGE, SATURATING, SUMMED, RowFunction
from fliprank.models.scaler import Scaler
from fliprank.models.stack import Stack
from fliprank.models.term_rows import Lines, Place, hstack_lines, no_lines

__all__ = ["PairSteps", "model_steps", "pair_steps"]

BLOCK = 1 << 18
"""Pairs that a kernel takes at a time: between blocks, Ctrl-C is heard."""

PairSteps = Callable[[Floats, Ints, float], Floats]
"""(free values, order of the pairs, rate) -> the free values after one step for each pair in this order."""

RowPart = BM25 | BM25F | BM25Sum | TwoStageLM | Feature


class Rows(NamedTuple):
    """The rows' data. An input of the sum or net is (x - mean) scale, where x is a part's score or, then, a feature."""

    lines: Lines
    curves: Floats
    features: Matrix
    mean: Floats
    scale: Floats


class Parts(NamedTuple):
    """The parts, one entry each. Part p computes with entries `cuts[p]:cuts[p + 1]` of theta.

    An entry of theta is the parameter, or constant, at its `places`. `column` is the first of a text function's columns
    of fields, or the column of a curve; `moves` is 0 where all of a part's parameters are fixed.
    """

    kind: Ints
    cuts: Ints
    places: Ints
    weight: Ints
    column: Ints
    fields: Ints
    moves: Ints


class Top(NamedTuple):
    """Where the parameters of the sum or net begin, and how many hidden nodes there are: none is a sum."""

    first: int
    hidden: int


class Moves(NamedTuple):
    """How parameters may move: within bounds, which meet where one is fixed; a follower as its driver does."""

    lower: Floats
    upper: Floats
    followers: Ints
    drivers: Ints


class Pairs(NamedTuple):
    """(preferred, other), and 1 - target: one for each pair, or one for all."""

    rows: Int32s
    doubt: Floats


class Work(NamedTuple):
    """Where a step is computed. `gradient` is that of Y by the values; `inputs` and `by_score` are a pair, one per row.

    `inputs` are those of the sum or net, `by_score` is the gradient of Y by the parts' scores.
    """

    gradient: Floats
    theta: Floats
    inputs: tuple[Floats, Floats]
    by_score: tuple[Floats, Floats]
    nodes: Floats
    scratch: Floats


class Plan(NamedTuple):
    """A model as the kernels see it; the constants stand after its parameters."""

    rows: Rows
    parts: Parts
    top: Top
    constants: Floats


def pair_steps(model: Model, candidates: Candidates, pairs: ArrayLike, targets: ArrayLike = 1.0) -> PairSteps:
    """How `model` takes steps on `pairs`, rows (preferred, other) of `candidates`.

    `targets`: the probability that the preferred row should rank above the other, one per pair or one for all.
    """
    checked = _checked_pairs(candidates, pairs, targets)
    if not model.ready:
        raise UsageError(f"this {model.kind} model is not ready for steps: call prepared(train, rng) first")
    plan = _plan(model, candidates)
    if plan is None:
        return model_steps(model, candidates, pairs, targets)
    return _kernel_steps(model.params, plan, checked)


def model_steps(model: Model, candidates: Candidates, pairs: ArrayLike, targets: ArrayLike = 1.0) -> PairSteps:
    """The same steps for any model, by its own score and pullback on the query of each pair."""
    rows, doubt = _checked_pairs(candidates, pairs, targets)
    query_of = np.searchsorted(candidates.offsets, rows[:, 0], "right") - 1
    within = rows - candidates.offsets[query_of][:, None]
    queries = {query: candidates.select([query]) for query in np.unique(query_of).tolist()}
    params, doubts = model.params, np.broadcast_to(doubt, len(rows))
    lower, upper = params.free_lower, params.free_upper

    def steps(values: Floats, order: Ints, rate: float) -> Floats:
        for pair in order:
            query, (preferred, other) = queries[int(query_of[pair])], within[pair]
            there = model.at(params.with_free(values))
            scores, pull = there.score(query), np.zeros(len(query))
            slope = 1.0 / (1.0 + np.exp(min(scores[preferred] - scores[other], 700.0))) - doubts[pair]
            pull[preferred], pull[other] = -slope, slope
            values = np.clip(values - rate * params.pull_free(there.pullback(query, pull)), lower, upper)
        return values

    return steps


def _checked_pairs(candidates: Candidates, pairs: ArrayLike, targets: ArrayLike) -> Pairs:
    rows, target = np.asarray(pairs), np.asarray(targets, np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2 or not np.issubdtype(rows.dtype, np.integer):
        raise UsageError(f"pairs: expected rows (preferred, other), got {rows.dtype} of shape {rows.shape}")
    if len(rows) and not 0 <= rows.min() <= rows.max() < len(candidates):
        raise UsageError(f"pairs: rows from {rows.min()} to {rows.max()}, but there are {len(candidates)} rows")
    first, second = (np.searchsorted(candidates.offsets, rows[:, side], "right") for side in (0, 1))
    if (apart := first != second).any():
        raise UsageError(f"pairs: rows {rows[int(apart.argmax())].tolist()} belong to different queries")
    if target.shape not in ((), (len(rows),)):
        raise UsageError(f"targets: expected one probability, or one for each of {len(rows)} pairs, got {target.shape}")
    if not ((target >= 0) & (target <= 1)).all():
        raise UsageError("targets: a probability is a number from 0 to 1")
    return Pairs(frozen(rows, np.int32), frozen(1.0 - np.atleast_1d(target), np.float64))


def _kernel_steps(params: Parameters, plan: Plan, pairs: Pairs) -> PairSteps:
    """`first` is the parameter that stands for each free value; others that share it follow."""
    free = np.flatnonzero(params.free)
    first = free[np.unique(params.slots[free], return_index=True)[1]]
    followers = np.setdiff1d(free, first)
    lower, upper = params.values.copy(), params.values.copy()
    lower[first], upper[first] = params.free_lower, params.free_upper
    lower[followers], upper[followers] = -np.inf, np.inf
    moves = Moves(frozen(lower, np.float64), frozen(upper, np.float64), followers, first[params.slots[followers]])

    def steps(values: Floats, order: Ints, rate: float) -> Floats:
        every = np.concatenate([params.with_free(values).values, plan.constants])
        given = frozen(order, np.int64)
        if len(given) and not 0 <= given.min() <= given.max() < len(pairs.rows):
            raise UsageError(f"order: pairs from {given.min()} to {given.max()}, but there are {len(pairs.rows)}")
        for start in range(0, len(given), BLOCK):
            _take_steps(plan.rows, plan.parts, plan.top, moves, pairs, given[start : start + BLOCK], float(rate), every)
        moved: Floats = every[first]
        return moved

    return steps


def _plan(model: Model, candidates: Candidates) -> Plan | None:
    """The model as a stack; None for a kind that kernels do not know."""
    if type(model) is FeatureSubset:
        return _plan(model.model, pick_features(candidates, model.features))
    if type(model) is Linear:
        return _planned(model, [], model.fitted_scaler(), candidates, Top(1, 0))
    if type(model) is Network:
        return _planned(model, [], model.fitted_scaler(), candidates, Top(0, model.hidden))
    if isinstance(model, RowPart) and _known(model):
        return _planned(model, [model], None, candidates, None)
    if type(model) is Stack and all(_known(part) for part in model.models):
        parts = [part for part in model.models if isinstance(part, RowPart)]
        top = Top(sum(len(part.params) for part in parts), model.hidden)
        return _planned(model, parts, model.scaler, candidates, top)
    return None


def _known(model: Model) -> bool:
    """Whether kernels know this very kind of part: a subclass may compute something else."""
    return type(model) in (BM25, BM25F, BM25Sum, TwoStageLM, Feature)


def _planned(
    model: Model, parts: Sequence[RowPart], scaler: Scaler | None, candidates: Candidates, top: Top | None
) -> Plan:
    """The plan of these parts and features; without `top`, of one part alone: its weight is the last constant, 1."""
    functions = [part.row_function(candidates) for part in parts]
    table, constants = _part_table(model.params, parts, functions)
    mean, scale = (np.zeros(len(parts)), np.ones(len(parts)))
    if isinstance(model, Stack) and model.spread is not None:
        mean, scale = model.spread
    features: Matrix = np.empty((len(candidates), 0), np.float32)
    if scaler is not None:
        features = scaler.matrix(candidates)
        mean, scale = np.concatenate([mean, scaler.mean]), np.concatenate([scale, scaler.scale])
    texts = [function.lines for function in functions if function.lines is not None]
    curves = [function.column for function in functions if function.column is not None]
    rows = Rows(
        hstack_lines(texts) if texts else no_lines(),
        frozen(np.stack(curves, axis=1) if curves else np.empty((0, 0)), np.float64),
        frozen(features, np.float32),
        frozen(mean, np.float64),
        frozen(scale, np.float64),
    )
    last = len(model.params) + len(constants) - 1
    return Plan(rows, table, Top(last, 0) if top is None else top, constants)


def _part_table(params: Parameters, parts: Sequence[RowPart], functions: Sequence[RowFunction]) -> tuple[Parts, Floats]:
    """The table of the parts, whose parameters are the first of `params`, and all constants: theirs, then 1."""
    places, constants, first, end = [np.empty(0, np.int64)], [np.empty(0)], 0, len(params)
    for part, function in zip(parts, functions, strict=True):
        own = len(part.params)
        places.append(np.where(function.places < own, first + function.places, end + function.places - own))
        constants.append(function.constants)
        first, end = first + own, end + len(function.constants)
    text = np.array([function.lines is not None for function in functions], bool)
    fields = np.array([0 if function.lines is None else function.lines.tf.shape[1] for function in functions], np.int64)
    columns: dict[str, ArrayLike] = {
        "kind": [function.kind for function in functions],
        "cuts": np.cumsum([len(own) for own in places]),
        "places": np.concatenate(places),
        "weight": np.cumsum(text) - 1,
        "column": np.where(text, np.cumsum(fields) - fields, np.cumsum(~text) - 1),
        "fields": fields,
        "moves": [params.free[own[own < len(params)]].any() for own in places[1:]],
    }
    table = Parts(**{name: frozen(column, np.int64) for name, column in columns.items()})
    return table, np.concatenate([*constants, np.ones(1)])


@kernel
def _take_steps(
    rows: Rows, parts: Parts, top: Top, moves: Moves, pairs: Pairs, order: Ints, rate: float, values: Floats
) -> None:
    """One step for each pair in this order; `values` are the parameters, then the constants."""
    count, inputs, entries = len(parts.kind), len(rows.mean), len(parts.places)
    work = Work(
        np.zeros(len(values)), np.empty(entries), (np.empty(inputs), np.empty(inputs)),
        (np.empty(count), np.empty(count)), np.empty(2 * top.hidden), np.empty(4 * entries + 4),
    )  # fmt: skip
    for pair in order:
        row1, row2 = int(pairs.rows[pair, 0]), int(pairs.rows[pair, 1])
        doubt = pairs.doubt[pair] if len(pairs.doubt) > 1 else pairs.doubt[0]
        if count:
            for entry in range(entries):
                work.theta[entry] = values[parts.places[entry]]
            _score_parts(rows, parts, work, row1, work.inputs[0])
            _score_parts(rows, parts, work, row2, work.inputs[1])
        gap = (
            _through_net(rows, top, row1, row2, values, work)
            if top.hidden
            else _through_sum(rows, top, row1, row2, values, work)
        )
        if count:
            for entry in range(entries):
                work.gradient[parts.places[entry]] = 0.0
            _pull_parts(rows, parts, work, row1, work.by_score[0])
            _pull_parts(rows, parts, work, row2, work.by_score[1])
        _move(moves, rate * (1.0 / (1.0 + np.exp(-gap)) - doubt), work.gradient, values)


@inlined_kernel
def _score_parts(rows: Rows, parts: Parts, work: Work, row: int, out: Floats) -> None:
    """Set the first of `out` to the parts' scores of this row."""
    for p in range(len(parts.kind)):
        kind, place = parts.kind[p], Place(parts.cuts[p], parts.weight[p], parts.column[p], parts.fields[p])
        if kind == SATURATING:
            bm25_scores(rows.lines, place, work.theta, row, row + 1, work.scratch, out[p : p + 1])
        elif kind == SUMMED:
            sum_scores(rows.lines, place, work.theta, row, row + 1, work.scratch, out[p : p + 1])
        elif kind == LANGUAGE:
            language_scores(rows.lines, place, work.theta, row, row + 1, work.scratch, out[p : p + 1])
        else:
            out[p] = curve(kind, rows.curves[row, place.column], work.theta, place.theta)


@inlined_kernel
def _pull_parts(rows: Rows, parts: Parts, work: Work, row: int, by_score: Floats) -> None:
    """Add to the gradient what this row's parts contribute, where `by_score` is the gradient by their scores."""
    for p in range(len(parts.kind)):
        if not parts.moves[p]:
            continue
        kind, place = parts.kind[p], Place(parts.cuts[p], parts.weight[p], parts.column[p], parts.fields[p])
        entries = parts.cuts[p + 1] - place.theta
        pulled, scratch, given = work.scratch[:entries], work.scratch[entries:], by_score[p : p + 1]
        pulled[:] = 0.0
        if kind == SATURATING:
            bm25_pull(rows.lines, place, work.theta, row, row + 1, given, scratch, pulled)
        elif kind == SUMMED:
            sum_pull(rows.lines, place, work.theta, row, row + 1, given, scratch, pulled)
        elif kind == LANGUAGE:
            language_pull(rows.lines, place, work.theta, row, row + 1, given, scratch, pulled)
        else:
            pull_curve(kind, rows.curves[row, place.column], work.theta, place.theta, given[0], pulled)
        for entry in range(entries):
            work.gradient[parts.places[place.theta + entry]] += pulled[entry]


@inlined_kernel
def _through_sum(rows: Rows, top: Top, row1: int, row2: int, values: Floats, work: Work) -> float:
    """Y, and its gradient by the weights and by the parts' scores. The mean of a feature cancels, as does a bias."""
    (x1, x2), (by_score1, by_score2), inputs = work.inputs, work.by_score, len(rows.mean)
    weights, apart = values[top.first : top.first + inputs], work.gradient[top.first : top.first + inputs]
    count = len(by_score1)
    for p in range(count):
        apart[p] = x2[p] - x1[p]
        by_score1[p], by_score2[p] = -weights[p], weights[p]
    line1, line2 = rows.features[row1], rows.features[row2]
    scale, apart_features = rows.scale[count:], apart[count:]
    for k in range(len(scale)):
        apart_features[k] = (np.float64(line2[k]) - np.float64(line1[k])) * scale[k]
    return _products(weights, apart, apart)[0]


@inlined_kernel
def _through_net(rows: Rows, top: Top, row1: int, row2: int, values: Floats, work: Work) -> float:
    """Y, and its gradient by the net's weights and by the parts' scores; b3 cancels."""
    (x1, x2), (by_score1, by_score2), nodes = work.inputs, work.by_score, work.nodes
    inputs, hidden = len(rows.mean), top.hidden
    b2 = top.first + hidden * inputs
    w32 = b2 + hidden
    _standardise(rows, row1, x1)
    _standardise(rows, row2, x2)
    for j in range(hidden):
        first = top.first + j * inputs
        reach1, reach2 = _products(values[first : first + inputs], x1, x2)
        nodes[j], nodes[hidden + j] = values[b2 + j] + reach1, values[b2 + j] + reach2
    tanh(nodes)
    gap = 0.0
    by_score1[:] = 0.0
    by_score2[:] = 0.0
    for j in range(hidden):
        first, node1, node2, weight = top.first + j * inputs, nodes[j], nodes[hidden + j], values[w32 + j]
        rise1, rise2 = weight * (1.0 - node1 * node1), weight * (1.0 - node2 * node2)
        gap += weight * (node2 - node1)
        work.gradient[w32 + j], work.gradient[b2 + j] = node2 - node1, rise2 - rise1
        by_weights, weights = work.gradient[first : first + inputs], values[first : first + inputs]
        for k in range(inputs):
            by_weights[k] = rise2 * x2[k] - rise1 * x1[k]
        for p in range(len(by_score1)):
            by_score1[p] -= rise1 * weights[p] * rows.scale[p]
            by_score2[p] += rise2 * weights[p] * rows.scale[p]
    return gap


@inlined_kernel
def _standardise(rows: Rows, row: int, x: Floats) -> None:
    """Turn the parts' scores, which `x` begins with, and the row's features into the inputs of a net."""
    line, count = rows.features[row], len(x) - rows.features.shape[1]
    for p in range(count):
        x[p] = (x[p] - rows.mean[p]) * rows.scale[p]
    mean, scale, features = rows.mean[count:], rows.scale[count:], x[count:]
    for k in range(len(features)):
        features[k] = (np.float64(line[k]) - mean[k]) * scale[k]


@inlined_kernel
def _move(moves: Moves, step: float, gradient: Floats, values: Floats) -> None:
    """values - step x gradient, within bounds; those that share a value move by the sum of their gradients."""
    lower, upper = moves.lower, moves.upper
    for i in range(len(moves.followers)):
        gradient[moves.drivers[i]] += gradient[moves.followers[i]]
    for i in range(len(lower)):
        moved = values[i] - step * gradient[i]
        values[i] = lower[i] if moved < lower[i] else upper[i] if moved > upper[i] else moved
    for i in range(len(moves.followers)):
        values[moves.followers[i]] = values[moves.drivers[i]]
        gradient[moves.drivers[i]] = 0.0  # that of a bias is not set again


@inlined_kernel
def _products(weights: Floats, x1: Floats, x2: Floats) -> tuple[float, float]:
    """(weights . x1, weights . x2), each as four sums side by side: none waits for the one before it."""
    a0, a1, a2, a3 = 0.0, 0.0, 0.0, 0.0
    b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0
    even = len(weights) // 4 * 4
    for k in range(0, even, 4):
        w0, w1, w2, w3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        a0, a1, a2, a3 = a0 + w0 * x1[k], a1 + w1 * x1[k + 1], a2 + w2 * x1[k + 2], a3 + w3 * x1[k + 3]
        b0, b1, b2, b3 = b0 + w0 * x2[k], b1 + w1 * x2[k + 1], b2 + w2 * x2[k + 2], b3 + w3 * x2[k + 3]
    for k in range(even, len(weights)):
        a0, b0 = a0 + weights[k] * x1[k], b0 + weights[k] * x2[k]
    return (a0 + a1) + (a2 + a3), (b0 + b1) + (b2 + b3)
