"""The two-layer net: f(x) = b3 + sum_j w32_j tanh(b2_j + sum_k w21_jk x_k) (nested ranker, section 2.1).

`Network` is the net of the standardised features; a `Stack` puts the same net on top of its parts' scores and features,
and its gradient goes on to the parts (Taylor et al. 2006, equation 15). Arithmetic is float64 throughout, so that
gradients are exact to rounding. Rows are read once, as many at a time as fit the cache, and tanh is written so that the
compiler can vectorise it.

>>> from fliprank.data.candidates import Candidates
>>> rows = Candidates.of([1, 0], features=[[3.0], [1.0]], feature_names=["bm25"])
>>> model = Network(hidden=2).prepared(rows, rng=7)
>>> model.params.names
('w21.1.bm25', 'w21.2.bm25', 'b2.1', 'b2.2', 'w32.1', 'w32.2', 'b3')
>>> model.at([1, -1, 0, 0.5, 2, 1, 0]).score(rows).round(6).tolist()     # first: 2 tanh(1) + tanh(0.5 - 1)
[1.061071, -0.61804]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Matrix
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.models.base import register, row_gradient
from fliprank.models.folder import Record
from fliprank.models.standardised import TILE, StandardisedModel, add_rows, chunks_of, load_tile, tile_width

__all__ = ["Inputs", "Network", "net_initial", "net_names", "net_penalties", "net_pullback", "net_scores", "tanh"]

MOST_PARAMETERS = 4_000_000
BLAS_PRODUCTS = 1 << 18
"""Multiplications up to which BLAS starts no threads of its own, which would be in the way of ours."""


class Inputs(NamedTuple):
    """The inputs of a net: the scores of a stack's parts, one line per part, then raw features; the mean of each."""

    outputs: Floats
    features: Matrix
    mean: Floats


class Layers(NamedTuple):
    """The weights as kernels take them: w21 per raw unit of the inputs, with b2 as the next column.

    Kernels work on 2 nodes and 4 inputs at a time: weights of 0 fill up what is missing.
    """

    w21: Floats
    w32: Floats
    b3: float


@register
@dataclass(frozen=True, eq=False)
class Network(StandardisedModel):
    """Two layers: `hidden` nodes with tanh, one linear output. Parameters: w21 (node by node), b2, w32, b3."""

    kind: ClassVar[str] = "network"
    summary: ClassVar[str] = "a two-layer net of the features"
    scales_freely: ClassVar[bool] = True
    hidden: int = 10

    def __post_init__(self) -> None:
        if self.hidden == 0:
            raise UsageError("a network with no hidden nodes is a linear model: use Linear()")
        if not isinstance(self.hidden, int) or self.hidden < 0:
            raise UsageError(f"hidden must be a number of nodes, not {self.hidden!r}")

    def parameter_names(self, features: tuple[str, ...]) -> list[str]:
        return net_names(self.hidden, features)

    def initial(self, rng: np.random.Generator) -> Floats:
        return net_initial(rng, self.hidden, len(self.fitted_scaler()))

    @property
    def penalty_weights(self) -> Floats:
        return net_penalties(self.hidden, len(self.params))

    def _inputs(self, candidates: Candidates) -> Inputs:
        scaler = self.fitted_scaler()
        return Inputs(np.empty((0, len(candidates))), scaler.matrix(candidates), scaler.mean)

    def score(self, candidates: Candidates) -> Floats:
        return net_scores(self._inputs(candidates), self.fitted_scaler().scale, self.hidden, self.params.values)

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        given, inputs, scale = row_gradient(candidates, dscores), self._inputs(candidates), self.fitted_scaler().scale
        return net_pullback(inputs, scale, self.hidden, self.params.values, given)[0]

    def structure(self) -> dict[str, Any]:
        return {"hidden": self.hidden, **super().structure()}

    @classmethod
    def restore(cls, structure: Record) -> Self:
        return cls(hidden=structure.integer("hidden"))._restored(structure)


def net_names(hidden: int, inputs: Sequence[str]) -> list[str]:
    """The names of a net's parameters: w21 node by node, b2, w32, b3."""
    if hidden * (len(inputs) + 2) > MOST_PARAMETERS:
        raise UsageError(f"{hidden} nodes for {len(inputs)} inputs: over {MOST_PARAMETERS:,} parameters")
    nodes = range(1, hidden + 1)
    first = [f"w21.{j}.{name}" for j in nodes for name in inputs]
    return [*first, *(f"b2.{j}" for j in nodes), *(f"w32.{j}" for j in nodes), "b3"]


def net_initial(rng: np.random.Generator, hidden: int, inputs: int) -> Floats:
    """Random near zero: what reaches a node has unit variance, so that none is saturated; outputs are about 0.1."""
    first = rng.normal(0.0, 1.0 / np.sqrt(inputs), hidden * inputs)
    second = rng.normal(0.0, 0.1 / np.sqrt(hidden), hidden)
    return np.concatenate([first, np.zeros(hidden), second, [0.0]])


def net_penalties(hidden: int, count: int) -> Floats:
    """The `penalty_weights` of a net of `count` parameters: 1 for weights, 0 for the biases b2 and b3."""
    weights = np.ones(count)
    weights[-2 * hidden - 1 : -hidden - 1] = weights[-1:] = 0.0
    return weights


def net_scores(inputs: Inputs, scale: Floats, hidden: int, values: Floats) -> Floats:
    """The net's value for each row; `scale` is 1 / standard deviation of each input."""
    out, layers = np.empty(len(inputs.features)), _layers(scale, hidden, values)
    chunks = chunks_of(len(out))
    if chunks == 1:
        _score_rows(inputs, layers, 0, len(out), out)
    else:
        _score_chunks(inputs, layers, chunks, out)
    return out


def net_pullback(inputs: Inputs, scale: Floats, hidden: int, values: Floats, dscores: Floats) -> tuple[Floats, Floats]:
    """The gradient by the net's parameters, and that by the scores of a stack's parts."""
    layers, by_outputs, count = _layers(scale, hidden, values), np.empty(inputs.outputs.shape), len(scale)
    parts = np.zeros((chunks_of(len(dscores)), layers.w21.shape[0], layers.w21.shape[1] + 1))
    if len(parts) == 1:
        _pull_rows(inputs, layers, dscores, 0, len(dscores), parts[0], by_outputs)
    else:
        _pull_chunks(inputs, layers, dscores, parts, by_outputs)
    total = parts.sum(axis=0)[:hidden]
    by_values = [(total[:, :count] * scale).ravel(), total[:, count], total[:, -1], [dscores.sum()]]
    return np.concatenate(by_values), by_outputs


def _layers(scale: Floats, hidden: int, values: Floats) -> Layers:
    count = len(scale)
    w21 = np.zeros((hidden + hidden % 2, count + 4 - count % 4))
    np.multiply(values[: -2 * hidden - 1].reshape(hidden, -1), scale, out=w21[:hidden, :count])
    w21[:hidden, count] = values[-2 * hidden - 1 : -hidden - 1]
    return Layers(w21, values[-hidden - 1 : -1].copy(), float(values[-1]))


@kernel
def tanh(values: Floats) -> None:
    """tanh in place, to 7e-16 of its value: the continued fraction at a quarter of the argument, doubled twice.

    With tanh(y) = p / q, tanh(2y) = 2 p q / (p^2 + q^2): the only division is the last, and no step branches, so that
    the loop runs in vector registers, where calls to a library's tanh would not.
    """
    for i in range(len(values)):
        y = 0.25 * min(max(values[i], -20.0), 20.0)
        s = y * y
        p = y * (34459425.0 + s * (4729725.0 + s * (135135.0 + s * (990.0 + s))))
        q = 34459425.0 + s * (16216200.0 + s * (945945.0 + s * (13860.0 + s * 45.0)))
        p, q = 2.0 * p * q, p * p + q * q
        values[i] = 2.0 * p * q / (p * p + q * q)


@kernel
def _nodes(inputs: Inputs, w21: Floats, start: int, stop: int, tile: Floats, nodes: Floats) -> None:
    """Set `nodes` to the values of the hidden nodes for rows start:stop."""
    count = len(inputs.outputs)
    for p in range(count):
        for row in range(start, stop):
            tile[p, row - start] = inputs.outputs[p, row] - inputs.mean[p]
    load_tile(inputs.features, inputs.mean[count:], start, stop, tile[count:])
    nodes[:] = 0.0
    for j in range(0, w21.shape[0], 2):
        node, next_node = nodes[j], nodes[j + 1]
        for k in range(0, w21.shape[1], 4):
            t0, t1, t2, t3 = tile[k], tile[k + 1], tile[k + 2], tile[k + 3]
            v0, v1, v2, v3 = w21[j, k], w21[j, k + 1], w21[j, k + 2], w21[j, k + 3]
            w0, w1, w2, w3 = w21[j + 1, k], w21[j + 1, k + 1], w21[j + 1, k + 2], w21[j + 1, k + 3]
            for r in range(len(node)):
                x0, x1, x2, x3 = t0[r], t1[r], t2[r], t3[r]
                node[r] += (v0 * x0 + v1 * x1) + (v2 * x2 + v3 * x3)
                next_node[r] += (w0 * x0 + w1 * x1) + (w2 * x2 + w3 * x3)
    tanh(nodes.reshape(-1))


@kernel
def _score_rows(inputs: Inputs, layers: Layers, start: int, stop: int, out: Floats) -> None:
    w21 = layers.w21
    tile = np.ones((w21.shape[1], tile_width(stop - start)))  # the row below the inputs: b2 multiplies it
    nodes = np.empty((w21.shape[0], tile.shape[1]))
    for low in range(start, stop, TILE):
        high = min(low + TILE, stop)
        _nodes(inputs, w21, low, high, tile, nodes)
        out[low:high] = layers.b3
        add_rows(layers.w32, nodes, out[low:high])


@parallel_kernel
def _score_chunks(inputs: Inputs, layers: Layers, chunks: int, out: Floats) -> None:
    rows = len(out)
    for c in prange(chunks):
        _score_rows(inputs, layers, rows * c // chunks, rows * (c + 1) // chunks, out)


@kernel
def _pull_rows(
    inputs: Inputs, layers: Layers, dscores: Floats, start: int, stop: int, total: Floats, by_outputs: Floats
) -> None:
    """Add to `total` (one line per node) the gradient of rows start:stop by w21, b2 and, in the last column, w32.

    Set `by_outputs` of these rows to the gradient by the scores of a stack's parts.
    """
    w21, w32 = layers.w21, layers.w32
    tile = np.ones((w21.shape[1], tile_width(stop - start)))  # the row below the inputs: b2 multiplies it
    nodes = np.empty((w21.shape[0], tile.shape[1]))
    given, product = np.zeros(tile.shape[1]), np.empty(w21.shape)
    step = max(1, BLAS_PRODUCTS // max(1, tile.size))
    for low in range(start, stop, TILE):
        high = min(low + TILE, stop)
        _nodes(inputs, w21, low, high, tile, nodes)
        for r in range(len(given)):  # columns beyond the last row are left over from an earlier block: 0 for them
            given[r] = dscores[low + r] if low + r < high else 0.0
        for j in range(len(w32)):
            node, weight, through = nodes[j], w32[j], 0.0
            for r in range(len(given)):
                value = node[r]
                through += given[r] * value
                node[r] = given[r] * weight * (1.0 - value * value)
            total[j, -1] += through
        for j in range(0, len(w32), step):
            np.dot(nodes[j : j + step], tile.T, product[j : j + step])
        for j in range(len(w32)):
            for k in range(w21.shape[1]):
                total[j, k] += product[j, k]
        for p in range(len(by_outputs)):
            line = by_outputs[p, low:high]
            line[:] = 0.0
            for j in range(len(w32)):
                node, weight = nodes[j], w21[j, p]
                for r in range(len(line)):
                    line[r] += node[r] * weight


@parallel_kernel
def _pull_chunks(inputs: Inputs, layers: Layers, dscores: Floats, parts: Floats, by_outputs: Floats) -> None:
    rows, chunks = len(dscores), len(parts)
    for c in prange(chunks):
        start, stop = rows * c // chunks, rows * (c + 1) // chunks
        _pull_rows(inputs, layers, dscores, start, stop, parts[c], by_outputs)
