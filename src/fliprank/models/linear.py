"""The linear model: score = bias + w . x, x the standardised features (the single-layer net of Taylor et al. 2006).

>>> from fliprank.data.candidates import Candidates
>>> rows = Candidates.of([1, 0, 0], features=[[9, 0.1], [5, 0.3], [4, 0.2]], feature_names=["bm25", "pagerank"])
>>> model = Linear().prepared(rows, rng=7).at([0, 2, 1])
>>> model.score(rows).round(6).tolist()
[1.552715, 0.298925, -1.85164]
>>> bias, weights = model.raw_weights()
>>> round(bias, 4), weights.round(4).tolist()
(-8.0044, [0.9258, 12.2474])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Matrix
from fliprank.data.candidates import Candidates
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.models.base import register, row_gradient
from fliprank.models.folder import Record
from fliprank.models.standardised import TILE, StandardisedModel, add_rows, chunks_of, load_tile, tile_width

__all__ = ["Linear"]

FEW = 8
"""Columns that are sooner read one by one than with all others."""


@register
@dataclass(frozen=True, eq=False)
class Linear(StandardisedModel):
    """score = bias + sum_k w_k (x_k - mean_k) scale_k"""

    kind: ClassVar[str] = "linear"
    linear_in_params: ClassVar[bool] = True

    def parameter_names(self, features: tuple[str, ...]) -> list[str]:
        return ["bias", *(f"w.{feature}" for feature in features)]

    def initial(self, rng: np.random.Generator) -> Floats:
        """No bias; weights so small that scores are of the order of 0.1."""
        count = len(self._scaler())
        return np.concatenate([[0.0], rng.normal(0.0, 0.1 / np.sqrt(count), count)])

    def score(self, candidates: Candidates) -> Floats:
        scaler, values = self._scaler(), self.params.values
        return _scores(scaler.matrix(candidates), scaler.mean, values[1:] * scaler.scale, values[0])

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        scaler, given = self._scaler(), row_gradient(candidates, dscores)
        weights = _gradient(scaler.matrix(candidates), scaler.mean, given) * scaler.scale
        return np.concatenate([[given.sum()], weights])

    def slope(self, candidates: Candidates, direction: ArrayLike) -> Floats:
        """How fast each score rises along a direction of the free vector; few weights: only their columns are read."""
        full = self.params.direction(direction)
        moved = np.flatnonzero(full[1:])
        if len(moved) > FEW:
            return super().slope(candidates, direction)
        scaler = self._scaler()
        matrix, out = scaler.matrix(candidates), np.full(len(candidates), full[0])
        for k in moved:
            out += full[1 + k] * scaler.scale[k] * (matrix[:, k].astype(np.float64) - scaler.mean[k])
        return out

    def raw_weights(self) -> tuple[float, Floats]:
        """(bias, weights) for features in their own units: score = bias + sum_k weights_k x_k."""
        scaler = self._scaler()
        weights = self.params.values[1:] * scaler.scale
        return float(self.params.values[0] - weights @ scaler.mean), weights

    @classmethod
    def restore(cls, structure: Record) -> Self:
        return cls()._restored(structure)


def _scores(features: Matrix, mean: Floats, weights: Floats, bias: float) -> Floats:
    out, chunks = np.empty(len(features)), chunks_of(len(features))
    if chunks == 1:
        _score_rows(features, mean, weights, bias, 0, len(features), out)
    else:
        _score_chunks(features, mean, weights, bias, chunks, out)
    return out


def _gradient(features: Matrix, mean: Floats, dscores: Floats) -> Floats:
    parts = np.zeros((chunks_of(len(features)), features.shape[1]))
    if len(parts) == 1:
        _pull_rows(features, mean, dscores, 0, len(features), parts[0])
    else:
        _pull_chunks(features, mean, dscores, parts)
    total: Floats = parts.sum(axis=0)
    return total


@kernel
def _score_rows(
    features: Matrix, mean: Floats, weights: Floats, bias: float, start: int, stop: int, out: Floats
) -> None:
    tile = np.empty((len(mean), tile_width(stop - start)))
    for low in range(start, stop, TILE):
        high = min(low + TILE, stop)
        load_tile(features, mean, low, high, tile)
        out[low:high] = bias
        add_rows(weights, tile, out[low:high])


@parallel_kernel
def _score_chunks(features: Matrix, mean: Floats, weights: Floats, bias: float, chunks: int, out: Floats) -> None:
    rows = len(features)
    for c in prange(chunks):
        _score_rows(features, mean, weights, bias, rows * c // chunks, rows * (c + 1) // chunks, out)


@kernel
def _pull_rows(features: Matrix, mean: Floats, dscores: Floats, start: int, stop: int, total: Floats) -> None:
    for row in range(start, stop):
        for k in range(len(mean)):
            total[k] += dscores[row] * (features[row, k] - mean[k])


@parallel_kernel
def _pull_chunks(features: Matrix, mean: Floats, dscores: Floats, parts: Floats) -> None:
    rows, chunks = len(features), len(parts)
    for c in prange(chunks):
        _pull_rows(features, mean, dscores, rows * c // chunks, rows * (c + 1) // chunks, parts[c])
