"""The two-layer net: f(x) = b3 + sum_j w32_j tanh(b2_j + sum_k w21_jk x_k) (nested ranker, section 2.1).

x are the standardised features. Arithmetic is float64 throughout, so that gradients are exact to rounding. Rows are
read once, as many at a time as fit the cache, and tanh is one that the compiler can vectorise.

>>> from fliprank.data.candidates import Candidates
>>> rows = Candidates.of([1, 0], features=[[3.0], [1.0]], feature_names=["bm25"])
>>> model = Network(hidden=2).prepared(rows, rng=7)
>>> model.params.names
('w21.1.bm25', 'w21.2.bm25', 'b2.1', 'b2.2', 'w32.1', 'w32.2', 'b3')
>>> model.at([1, -1, 0, 0.5, 2, 1, 0]).score(rows).round(6).tolist()     # first: 2 tanh(1) + tanh(0.5 - 1)
[1.061071, -0.61804]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Matrix
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.models.base import register, row_gradient
from fliprank.models.folder import Record
from fliprank.models.standardised import TILE, StandardisedModel, add_rows, chunks_of, load_tile, tile_width

__all__ = ["Network", "tanh"]

MOST_PARAMETERS = 4_000_000
BLAS_PRODUCTS = 1 << 18
"""Multiplications up to which BLAS starts no threads of its own, which would be in the way of ours."""


@register
@dataclass(frozen=True, eq=False)
class Network(StandardisedModel):
    """Two layers: `hidden` nodes with tanh, one linear output. Parameters: w21 (node by node), b2, w32, b3."""

    kind: ClassVar[str] = "network"
    hidden: int = 10

    def __post_init__(self) -> None:
        if self.hidden == 0:
            raise UsageError("a network with no hidden nodes is a linear model: use Linear()")
        if not isinstance(self.hidden, int) or self.hidden < 0:
            raise UsageError(f"hidden must be a number of nodes, not {self.hidden!r}")

    def parameter_names(self, features: tuple[str, ...]) -> list[str]:
        if self.hidden * (len(features) + 2) > MOST_PARAMETERS:
            raise UsageError(f"{self.hidden} nodes for {len(features)} features: over {MOST_PARAMETERS:,} parameters")
        nodes = range(1, self.hidden + 1)
        first = [f"w21.{j}.{feature}" for j in nodes for feature in features]
        return [*first, *(f"b2.{j}" for j in nodes), *(f"w32.{j}" for j in nodes), "b3"]

    def initial(self, rng: np.random.Generator) -> Floats:
        """Random near zero: what reaches a node has unit variance, so that none is saturated; outputs are about 0.1."""
        count, nodes = len(self._scaler()), self.hidden
        first = rng.normal(0.0, 1.0 / np.sqrt(count), nodes * count)
        second = rng.normal(0.0, 0.1 / np.sqrt(nodes), nodes)
        return np.concatenate([first, np.zeros(nodes), second, [0.0]])

    def _layers(self) -> tuple[Floats, Floats, np.float64]:
        """(w21 in units of the raw features, with b2 as the next column; w32; b3), as the kernels take them.

        They work on 2 nodes and 4 features at a time: weights of 0 fill up what is missing.
        """
        scaler, values, nodes = self._scaler(), self.params.values, self.hidden
        first = np.zeros((nodes + nodes % 2, len(scaler) + 4 - len(scaler) % 4))
        np.multiply(values[: -2 * nodes - 1].reshape(nodes, -1), scaler.scale, out=first[:nodes, : len(scaler)])
        first[:nodes, len(scaler)] = values[-2 * nodes - 1 : -nodes - 1]
        return first, values[-nodes - 1 : -1], values[-1]

    def score(self, candidates: Candidates) -> Floats:
        features, mean = self._scaler().matrix(candidates), self._scaler().mean
        out, chunks = np.empty(len(features)), chunks_of(len(features))
        if chunks == 1:
            _score_rows(features, mean, *self._layers(), 0, len(features), out)
        else:
            _score_chunks(features, mean, *self._layers(), chunks, out)
        return out

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        scaler, given = self._scaler(), row_gradient(candidates, dscores)
        features, (w21, w32, _), count = scaler.matrix(candidates), self._layers(), len(scaler)
        parts = np.zeros((chunks_of(len(features)), w21.shape[0], w21.shape[1] + 1))
        if len(parts) == 1:
            _pull_rows(features, scaler.mean, w21, w32, given, 0, len(features), parts[0])
        else:
            _pull_chunks(features, scaler.mean, w21, w32, given, parts)
        total = parts.sum(axis=0)[: self.hidden]
        return np.concatenate([(total[:, :count] * scaler.scale).ravel(), total[:, count], total[:, -1], [given.sum()]])

    def structure(self) -> dict[str, Any]:
        return {"hidden": self.hidden, **super().structure()}

    @classmethod
    def restore(cls, structure: Record) -> Self:
        return cls(hidden=structure.integer("hidden"))._restored(structure)


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
def _nodes(features: Matrix, mean: Floats, w21: Floats, start: int, stop: int, tile: Floats, nodes: Floats) -> None:
    """Set `nodes` to the values of the hidden nodes for rows start:stop."""
    load_tile(features, mean, start, stop, tile)
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
def _score_rows(
    features: Matrix, mean: Floats, w21: Floats, w32: Floats, b3: float, start: int, stop: int, out: Floats
) -> None:
    tile = np.ones((w21.shape[1], tile_width(stop - start)))  # the row below the features: b2 multiplies it
    nodes = np.empty((w21.shape[0], tile.shape[1]))
    for low in range(start, stop, TILE):
        high = min(low + TILE, stop)
        _nodes(features, mean, w21, low, high, tile, nodes)
        out[low:high] = b3
        add_rows(w32, nodes, out[low:high])


@parallel_kernel
def _score_chunks(
    features: Matrix, mean: Floats, w21: Floats, w32: Floats, b3: float, chunks: int, out: Floats
) -> None:
    rows = len(features)
    for c in prange(chunks):
        _score_rows(features, mean, w21, w32, b3, rows * c // chunks, rows * (c + 1) // chunks, out)


@kernel
def _pull_rows(
    features: Matrix, mean: Floats, w21: Floats, w32: Floats, dscores: Floats, start: int, stop: int, total: Floats
) -> None:
    """Add to `total`, a row a node, the gradient of rows start:stop by w21 and b2 and, in the last column, w32."""
    tile = np.ones((w21.shape[1], tile_width(stop - start)))  # the row below the features: b2 multiplies it
    nodes = np.empty((w21.shape[0], tile.shape[1]))
    given, product = np.zeros(tile.shape[1]), np.empty(w21.shape)
    step = max(1, BLAS_PRODUCTS // max(1, tile.size))
    for low in range(start, stop, TILE):
        high = min(low + TILE, stop)
        _nodes(features, mean, w21, low, high, tile, nodes)
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


@parallel_kernel
def _pull_chunks(features: Matrix, mean: Floats, w21: Floats, w32: Floats, dscores: Floats, parts: Floats) -> None:
    rows, chunks = len(features), len(parts)
    for c in prange(chunks):
        _pull_rows(features, mean, w21, w32, dscores, rows * c // chunks, rows * (c + 1) // chunks, parts[c])
