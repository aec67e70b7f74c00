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
from typing import ClassVar, NamedTuple, Self

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
"""Up to this many columns are read faster one by one than with all the others."""


class Weighted(NamedTuple):
    """Raw features, the mean of each, and their weights per raw unit."""

    features: Matrix
    mean: Floats
    weights: Floats
    bias: float


@register
@dataclass(frozen=True, eq=False)
class Linear(StandardisedModel):
    """score = bias + sum_k w_k (x_k - mean_k) scale_k"""

    kind: ClassVar[str] = "linear"
    summary: ClassVar[str] = "a weight per feature"
    linear_in_params: ClassVar[bool] = True
    scales_freely: ClassVar[bool] = True

    def parameter_names(self, features: tuple[str, ...]) -> list[str]:
        return ["bias", *(f"w.{feature}" for feature in features)]

    def initial(self, rng: np.random.Generator) -> Floats:
        """No bias; weights so small that scores are of the order of 0.1."""
        count = len(self.fitted_scaler())
        return np.concatenate([[0.0], rng.normal(0.0, 0.1 / np.sqrt(count), count)])

    @property
    def penalty_weights(self) -> Floats:
        """All but the bias."""
        return np.arange(len(self.params)).clip(0, 1).astype(np.float64)

    def score(self, candidates: Candidates) -> Floats:
        scaler, values = self.fitted_scaler(), self.params.values
        rows = Weighted(scaler.matrix(candidates), scaler.mean, values[1:] * scaler.scale, float(values[0]))
        out, chunks = np.empty(len(candidates)), chunks_of(len(candidates))
        if chunks == 1:
            _score_rows(rows, 0, len(out), out)
        else:
            _score_chunks(rows, chunks, out)
        return out

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        scaler, given = self.fitted_scaler(), row_gradient(candidates, dscores)
        features, parts = scaler.matrix(candidates), np.zeros((chunks_of(len(given)), len(scaler)))
        if len(parts) == 1:
            _pull_rows(features, scaler.mean, given, 0, len(given), parts[0])
        else:
            _pull_chunks(features, scaler.mean, given, parts)
        return np.concatenate([[given.sum()], parts.sum(axis=0) * scaler.scale])

    def slope(self, candidates: Candidates, direction: ArrayLike) -> Floats:
        """How fast each score rises along a direction of the free vector; if few weights move, few columns are read."""
        full = self.params.direction(direction)
        moved = np.flatnonzero(full[1:])
        if len(moved) > FEW:
            return super().slope(candidates, direction)
        scaler = self.fitted_scaler()
        matrix, out = scaler.matrix(candidates), np.full(len(candidates), full[0])
        for k in moved:
            out += full[1 + k] * scaler.scale[k] * (matrix[:, k].astype(np.float64) - scaler.mean[k])
        return out

    def raw_weights(self) -> tuple[float, Floats]:
        """(bias, weights) for features in their own units: score = bias + sum_k weights_k x_k."""
        scaler = self.fitted_scaler()
        weights = self.params.values[1:] * scaler.scale
        return float(self.params.values[0] - weights @ scaler.mean), weights

    @classmethod
    def restore(cls, structure: Record) -> Self:
        return cls()._restored(structure)


@kernel
def _score_rows(rows: Weighted, start: int, stop: int, out: Floats) -> None:
    tile = np.empty((len(rows.mean), tile_width(stop - start)))
    for low in range(start, stop, TILE):
        high = min(low + TILE, stop)
        load_tile(rows.features, rows.mean, low, high, tile)
        out[low:high] = rows.bias
        add_rows(rows.weights, tile, out[low:high])


@parallel_kernel
def _score_chunks(rows: Weighted, chunks: int, out: Floats) -> None:
    count = len(out)
    for c in prange(chunks):
        _score_rows(rows, count * c // chunks, count * (c + 1) // chunks, out)


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
