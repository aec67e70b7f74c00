"""The papers' own procedures: RankNet pair by pair (Taylor et al. 2006, 2.4), and query by query (SoftRank, 4.5).

Both are stochastic gradient descent with a rate that falls when an epoch did not help. Neither holds weights small; the
validation trick (2006, 2.5) is the recorder's: the epoch is chosen by the measure on validation queries. What is random
in an epoch depends on the seed and its number only, and what the rate is, on the trail: a resumed run is the same run.

>>> from fliprank.data.candidates import Candidates
>>> from fliprank.measures import parse_measure
>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[9, 0.1], [5, 0.3], [4, 0.2]])
>>> recorder = Recorder(Linear().prepared(rows, 0), rows, None, parse_measure("RR"))
>>> Taylor2006(epochs=2, rate=0.1).run(recorder, RankNet(), np.random.default_rng(0))
>>> [round(epoch.objective, 4) for epoch in recorder.trail]             # the sum of log(1 + e^Y) over both pairs
[1.3509, 0.787, 0.5336]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

import numba
import numpy as np

from fliprank.arrays import Floats, Int32s, Ints, Matrix
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.kernels import kernel
from fliprank.models.base import Model
from fliprank.models.linear import Linear
from fliprank.models.network import Network, tanh
from fliprank.models.parameters import Parameters
from fliprank.objectives.base import Objective
from fliprank.objectives.gains import labels_of
from fliprank.objectives.ranknet import RankNet
from fliprank.optimize.cost import Cost
from fliprank.optimize.fit import Epoch, Recorder

__all__ = ["PRESETS", "Taylor2006", "Taylor2008"]

BLOCK = 1 << 18
"""Pairs that a kernel takes at a time: between blocks, Ctrl-C is heard."""

Steps = Callable[[Floats, Ints, float], Floats]
"""From these free values, a step for each pair in this order, at this rate: the new values."""


@dataclass(frozen=True)
class Taylor2006:
    """A step of `rate` down the gradient of RankNet's cost for each pair, pairs in a new random order each epoch.

    The rate is multiplied by `factor` each time an epoch ends at a higher total cost than the epoch before; the paper
    says that it is reduced, not by how much. The trail's objective is that total, the sum over all pairs.

    Pairs are those of different labels, or the objective's own `pairs`; an unjudged row counts as label 0, and the
    paper draws few of them: `subsample(rows, rng, "average", at_most=None)`. Pairs and their order take 16 bytes each.
    """

    epochs: int = 24
    rate: float = 0.001
    factor: float = 0.5

    def __post_init__(self) -> None:
        _check_settings(self.epochs, self.rate, self.factor)

    def run(self, recorder: Recorder, objective: Objective, rng: np.random.Generator) -> None:
        """Go down from the model's parameters, or from where the recorder's checkpoint is."""
        if not isinstance(objective, RankNet):
            raise UsageError(f"taylor2006 goes down RankNet's cost, pair by pair: not {objective}")
        model, train, total = recorder.model, recorder.train, replace(objective, normalise="none")

        def cost(values: Floats) -> float:
            scores = model.at(model.params.with_free(values)).score(train)
            return float(total.per_query(scores, train).sum())

        values, seed = _start(recorder, rng)
        if not recorder.trail and not recorder.epoch(values, cost(values), seed=seed):
            return
        pairs = _pairs(train) if objective.pairs is None else objective.pairs.astype(np.int32)
        if not len(pairs):
            raise InputError("no query has two rows of different labels: there is no pair to learn from")
        steps = _steps(model, train, pairs, 1.0 - objective.target)
        for epoch in range(len(recorder.trail), self.epochs + 1):
            rate = self.rate * self.factor ** _increases(recorder.trail)
            values = steps(values, np.random.default_rng([int(seed[0]), epoch]).permutation(len(pairs)), rate)
            if not recorder.epoch(values, cost(values), rate, seed=seed):
                return


@dataclass(frozen=True)
class Taylor2008:
    """A step of `rate` down the gradient of each query's objective, queries in a new random order each epoch.

    After an epoch whose measure on training rows did not rise above the best since the last start, the rate is
    multiplied by `factor`; after `patience` such epochs in a row, weights start anew at random and at the first rate.
    The paper's measure is nDCG(dcg='exp-log2')@10; here it is the recorder's. The paper draws unjudged rows by
    `subsample(rows, rng)`, and chooses `rate` from 1e-1 to 1e-7, like sigma, on validation queries.

    The trail's objective is the mean cost of the queries, each as the epoch came to it. The queries' own candidates
    take as much memory again as the training set.
    """

    epochs: int = 128
    rate: float = 0.01
    factor: float = 0.8
    patience: int = 16

    def __post_init__(self) -> None:
        _check_settings(self.epochs, self.rate, self.factor)
        if self.patience < 1:
            raise UsageError(f"patience is a number of epochs from 1, not {self.patience}")

    def run(self, recorder: Recorder, objective: Objective, rng: np.random.Generator) -> None:
        """Go down from the model's parameters, or from where the recorder's checkpoint is."""
        if getattr(objective, "pairs", None) is not None:
            raise UsageError("taylor2008 takes one query at a time: it can't use pairs that are given by row")
        model, train = recorder.model, recorder.train
        values, seed = _start(recorder, rng)
        if not recorder.trail:
            value, _ = Cost(model, train, objective).value_and_grad(values)
            if not recorder.epoch(values, value, seed=seed):
                return
        costs = [Cost(model, train.select([query]), objective) for query in range(train.queries)]
        for epoch in range(len(recorder.trail), self.epochs + 1):
            rate, begins_anew = self._pace(recorder.trail, recorder.measure.sign)
            if begins_anew:
                values = model.initialised(np.random.default_rng([int(seed[0]), epoch, 1])).params.free_values
            order = np.random.default_rng([int(seed[0]), epoch]).permutation(train.queries)
            with _one_thread():
                values, mean = _query_steps(model.params, [costs[query] for query in order], values, rate)
            if not recorder.epoch(values, mean, rate, seed=seed):
                return

    def _pace(self, trail: Sequence[Epoch], sign: float) -> tuple[float, bool]:
        """The rate of the epoch after these, and whether it begins from new weights."""
        rate, best, idle = self.rate, -np.inf, 0
        for epoch in trail:
            if idle == self.patience:
                rate, best, idle = self.rate, -np.inf, 0
            if sign * epoch.train > best:
                best, idle = sign * epoch.train, 0
            else:
                rate, idle = rate * self.factor, idle + 1
        return (self.rate, True) if idle == self.patience else (rate, False)


PRESETS: dict[str, type[Taylor2006] | type[Taylor2008]] = {"taylor2006": Taylor2006, "taylor2008": Taylor2008}
"""The procedures by name."""


def _check_settings(epochs: int, rate: float, factor: float) -> None:
    if epochs < 0:
        raise UsageError(f"epochs is a number from 0, not {epochs}")
    if not 0 < rate < np.inf:
        raise UsageError(f"the rate is above 0, not {rate}")
    if not 0 < factor <= 1:
        raise UsageError(f"the rate is reduced by a factor above 0 and at most 1, not {factor}")


def _start(recorder: Recorder, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """(free values, seed) to begin with, or to go on from."""
    state = recorder.state
    if "seed" not in state:
        return recorder.model.params.free_values, np.array([float(rng.integers(2**52))])
    return state["values"], state["seed"]


def _increases(trail: Sequence[Epoch]) -> int:
    """How many epochs ended at a higher objective than the one before."""
    return sum(after.objective > before.objective for before, after in pairwise(trail))


def _query_steps(params: Parameters, costs: list[Cost], values: Floats, rate: float) -> tuple[Floats, float]:
    """The free values after a step for each query in turn, and the mean of the costs met on the way."""
    lower, upper, total = params.free_lower, params.free_upper, 0.0
    for cost in costs:
        value, gradient = cost.value_and_grad(values)
        values = np.clip(values - rate * gradient, lower, upper)
        total += value
    return values, total / max(len(costs), 1)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Kernels run a query a task: for one query at a time, other threads would only be woken in vain."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(threads)


def _pairs(train: Candidates) -> Int32s:
    """(preferred, other): all pairs of rows of one query whose labels differ."""
    return _enumerate_pairs(labels_of(train), train.offsets)


@kernel
def _enumerate_pairs(labels: Floats, offsets: Ints) -> Int32s:
    count = 0
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(offsets[q], offsets[q + 1]):
                count += labels[i] > labels[j]
    pairs, end = np.empty((count, 2), np.int32), 0
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(offsets[q], offsets[q + 1]):
                if labels[i] > labels[j]:
                    pairs[end, 0], pairs[end, 1] = i, j
                    end += 1
    return pairs


def _steps(model: Model, train: Candidates, pairs: Int32s, doubt: float) -> Steps:
    """How to take the steps: by a kernel for a linear model or a network that is free in all its parameters."""
    params = model.params
    each_on_its_own = np.array_equal(params.slots, np.arange(len(params)))
    unbounded = np.isneginf(params.lower).all() and np.isposinf(params.upper).all()
    if type(model) in (Linear, Network) and each_on_its_own and unbounded:
        assert isinstance(model, Linear | Network)
        return _kernel_steps(model, train, pairs, doubt)
    return _model_steps(model, train, pairs, doubt)


def _kernel_steps(model: Linear | Network, train: Candidates, pairs: Int32s, doubt: float) -> Steps:
    scaler = model.scaler
    assert scaler is not None
    features, count = scaler.matrix(train), len(scaler)

    def steps(values: Floats, order: Ints, rate: float) -> Floats:
        moved = np.array(values)
        for block in np.array_split(order, -(-len(order) // BLOCK)):
            given = (features, scaler.scale, pairs, block, rate, doubt)
            if isinstance(model, Linear):
                _step_linear(*given, moved[1:])
            else:
                w21, (b2, w32) = moved[: model.hidden * count], moved[model.hidden * count : -1].reshape(2, -1)
                _step_network(*given, scaler.mean, w21.reshape(-1, count), b2, w32)
        return moved

    return steps


def _model_steps(model: Model, train: Candidates, pairs: Int32s, doubt: float) -> Steps:
    """The same for any model, by its own score and pullback on the query of each pair."""
    queries = [train.select([query]) for query in range(train.queries)]
    query_of = np.searchsorted(train.offsets, pairs[:, 0], "right") - 1
    within = pairs - train.offsets[query_of][:, None]
    params = model.params
    lower, upper = params.free_lower, params.free_upper

    def steps(values: Floats, order: Ints, rate: float) -> Floats:
        for pair in order:
            rows, (preferred, other) = queries[query_of[pair]], within[pair]
            at = model.at(params.with_free(values))
            scores, pull = at.score(rows), np.zeros(len(rows))
            slope = 1.0 / (1.0 + np.exp(min(scores[preferred] - scores[other], 700.0))) - doubt
            pull[preferred], pull[other] = -slope, slope
            values = np.clip(values - rate * params.pull_free(at.pullback(rows, pull)), lower, upper)
        return values

    return steps


@kernel
def _step_linear(
    features: Matrix, scale: Floats, pairs: Int32s, order: Ints, rate: float, doubt: float, weights: Floats
) -> None:
    """A step for each pair; the bias, and the mean of each feature, cancel in the difference of two scores."""
    apart = np.empty(len(weights))
    for pair in order:
        preferred, other = features[pairs[pair, 0]], features[pairs[pair, 1]]
        for k in range(len(apart)):
            apart[k] = (np.float64(other[k]) - np.float64(preferred[k])) * scale[k]
        gap, _ = _products(weights, apart, apart)
        step = rate * (1.0 / (1.0 + np.exp(-gap)) - doubt)
        for k in range(len(apart)):
            weights[k] -= step * apart[k]


@kernel
def _step_network(
    features: Matrix,
    scale: Floats,
    pairs: Int32s,
    order: Ints,
    rate: float,
    doubt: float,
    mean: Floats,
    w21: Floats,
    b2: Floats,
    w32: Floats,
) -> None:
    """A step for each pair, rows 1 (preferred) and 2; b3 cancels in the difference of two scores."""
    x1, x2, hidden = np.empty(len(mean)), np.empty(len(mean)), len(w32)
    nodes = np.empty(2 * hidden)  # those of row 1, then those of row 2
    for pair in order:
        row1, row2 = features[pairs[pair, 0]], features[pairs[pair, 1]]
        for k in range(len(mean)):
            x1[k] = (np.float64(row1[k]) - mean[k]) * scale[k]
            x2[k] = (np.float64(row2[k]) - mean[k]) * scale[k]
        for j in range(hidden):
            reach1, reach2 = _products(w21[j], x1, x2)
            nodes[j], nodes[hidden + j] = b2[j] + reach1, b2[j] + reach2
        tanh(nodes)
        gap = 0.0
        for j in range(hidden):
            gap += w32[j] * (nodes[hidden + j] - nodes[j])
        step = rate * (1.0 / (1.0 + np.exp(-gap)) - doubt)
        for j in range(hidden):
            node1, node2, line = nodes[j], nodes[hidden + j], w21[j]
            up, down = step * w32[j] * (1.0 - node1 * node1), step * w32[j] * (1.0 - node2 * node2)
            for k in range(len(mean)):
                line[k] += up * x1[k] - down * x2[k]
            b2[j] += up - down
            w32[j] -= step * (node2 - node1)


@kernel
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
