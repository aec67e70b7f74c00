"""The two-layer net: f(x) = b3 + sum_j w32_j tanh(b2_j + sum_k w21_jk x_k) (nested ranker, section 2.1).

x are the standardised features. Arithmetic is float64 throughout: gradients are exact to rounding, and since BLAS on
blocks in the cache and a tanh that the compiler can vectorise do the work, it costs little more than reading the rows.

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
from fliprank.models.features import FeatureModel, centre, chunks_of
from fliprank.models.folder import Record

__all__ = ["Network"]

MOST_HIDDEN = 4096
BLOCK_ROWS = 256
BLOCK_PRODUCTS = 1 << 18
"""Multiplications for a block of rows: up to here BLAS starts no threads of its own."""


@register
@dataclass(frozen=True, eq=False)
class Network(FeatureModel):
    """Two layers: `hidden` nodes with tanh, one linear output. Parameters: w21 (node by node), b2, w32, b3."""

    kind: ClassVar[str] = "network"
    hidden: int = 10

    def __post_init__(self) -> None:
        if self.hidden == 0:
            raise UsageError("a network with no hidden nodes is a linear model: use Linear()")
        if not 0 < self.hidden <= MOST_HIDDEN:
            raise UsageError(f"hidden must be a number of nodes from 1 to {MOST_HIDDEN}, not {self.hidden}")

    def parameter_names(self, features: tuple[str, ...]) -> list[str]:
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
        """(w21 in units of the raw features, with b2 as last column; w32; b3)"""
        scaler, values, nodes = self._scaler(), self.params.values, self.hidden
        first = np.empty((nodes, len(scaler) + 1))
        np.multiply(values[: -2 * nodes - 1].reshape(nodes, -1), scaler.scale, out=first[:, :-1])
        first[:, -1] = values[-2 * nodes - 1 : -nodes - 1]
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
        features, (w21, w32, _) = scaler.matrix(candidates), self._layers()
        parts = np.zeros((chunks_of(len(features)), self.hidden, len(scaler) + 2))
        if len(parts) == 1:
            _pull_rows(features, scaler.mean, w21, w32, given, 0, len(features), parts[0])
        else:
            _pull_chunks(features, scaler.mean, w21, w32, given, parts)
        total = parts.sum(axis=0)
        return np.concatenate([(total[:, :-2] * scaler.scale).ravel(), total[:, -2], total[:, -1], [given.sum()]])

    def structure(self) -> dict[str, Any]:
        return {"hidden": self.hidden, **super().structure()}

    @classmethod
    def restore(cls, structure: Record) -> Self:
        hidden = structure.integer("hidden")
        if not 0 < hidden <= MOST_HIDDEN:
            structure.fail("hidden", f"a number of nodes from 1 to {MOST_HIDDEN}")
        return cls(hidden=hidden)._restored(structure)


@kernel
def _tanh(values: Floats) -> None:
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
def _blocks(w21: Floats, rows: int) -> tuple[Floats, Floats]:
    """Room for a block of at most this many rows: (features and a last column of 1, which b2 multiplies; nodes)."""
    size = max(1, min(rows, BLOCK_ROWS, max(16, BLOCK_PRODUCTS // w21.size)))
    return np.ones((size, w21.shape[1])), np.empty((size, w21.shape[0]))


@kernel
def _score_rows(
    features: Matrix, mean: Floats, w21: Floats, w32: Floats, b3: float, start: int, stop: int, out: Floats
) -> None:
    block, nodes = _blocks(w21, stop - start)
    for low in range(start, stop, len(block)):
        high = min(low + len(block), stop)
        centre(features, mean, low, high, block)
        np.dot(block[: high - low], w21.T, nodes[: high - low])
        _tanh(nodes[: high - low].reshape(-1))
        for row in range(low, high):
            total = b3
            for j in range(len(w32)):
                total += w32[j] * nodes[row - low, j]
            out[row] = total


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
    """Add to `total` (nodes x (features, b2, w32)) the gradient of rows start:stop."""
    block, nodes = _blocks(w21, stop - start)
    product = np.empty(w21.shape)
    for low in range(start, stop, len(block)):
        high = min(low + len(block), stop)
        centre(features, mean, low, high, block)
        np.dot(block[: high - low], w21.T, nodes[: high - low])
        _tanh(nodes[: high - low].reshape(-1))
        for row in range(high - low):
            given = dscores[low + row]
            for j in range(len(w32)):
                node = nodes[row, j]
                total[j, -1] += given * node
                nodes[row, j] = given * w32[j] * (1.0 - node * node)
        np.dot(nodes[: high - low].T, block[: high - low], product)
        total[:, :-1] += product


@parallel_kernel
def _pull_chunks(features: Matrix, mean: Floats, w21: Floats, w32: Floats, dscores: Floats, parts: Floats) -> None:
    rows, chunks = len(features), len(parts)
    for c in prange(chunks):
        _pull_rows(features, mean, w21, w32, dscores, rows * c // chunks, rows * (c + 1) // chunks, parts[c])
