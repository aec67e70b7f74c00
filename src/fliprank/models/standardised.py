"""Models of standardised features: what the linear model and the network have in common.

Rows are processed in chunks whose number depends on the number of rows alone, so that sums are the same with any
number of threads. Within a chunk, `load_tile` brings some rows at a time into the cache: centred, in float64 and
transposed, so that kernels add up many rows at once, each in the same order of features. Equal rows then have equal
scores, to the last bit, in any set of candidates: a library's matrix product does not promise that.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from fliprank.arrays import Floats, Matrix
from fliprank.data.candidates import Candidates
from fliprank.data.scattered import ScatteredRows
from fliprank.errors import UsageError
from fliprank.kernels import kernel
from fliprank.models.base import Model, Seed
from fliprank.models.folder import Record
from fliprank.models.parameters import Parameters
from fliprank.models.scaler import Scaler

__all__ = ["TILE", "StandardisedModel", "add_rows", "chunks_of", "load_tile", "tile_width"]

CHUNK = 4096
MOST_CHUNKS = 64
TILE = 128
"""Rows at a time."""


@dataclass(frozen=True, eq=False)
class StandardisedModel(Model):
    """A model of features. It is prepared on its training rows, and from then on takes the same features only."""

    needs: ClassVar[frozenset[str]] = frozenset({"features"})
    prepared_in_parts: ClassVar[bool] = True
    scaler: Scaler | None = field(default=None, kw_only=True)

    def prepared(self, train: Candidates | ScatteredRows, rng: Seed) -> Self:
        """With the scaler of these training rows and small random weights, unless it has them."""
        if self.scaler is not None:
            self.scaler.check(train)  # rows with other features are an error now
            return self
        return self._scaled(Scaler.of(train)).initialised(rng)

    @property
    def ready(self) -> bool:
        return self.scaler is not None

    @abstractmethod
    def parameter_names(self, features: tuple[str, ...]) -> list[str]:
        """The parameters of a model of these features."""

    def _scaled(self, scaler: Scaler) -> Self:
        names = tuple(self.parameter_names(scaler.names))
        return replace(self, scaler=scaler, params=Parameters(names, np.zeros(len(names))))

    def fitted_scaler(self) -> Scaler:
        """The scaler; raises if the model has seen no rows yet."""
        if self.scaler is None:
            raise UsageError(f"this {self.kind} model knows no features yet: train it, or call prepared(train, rng)")
        return self.scaler

    def structure(self) -> dict[str, Any]:
        scaler = self.fitted_scaler()
        columns = zip(scaler.names, scaler.mean.tolist(), scaler.scale.tolist(), strict=True)
        return {"features": [{"name": name, "mean": mean, "scale": scale} for name, mean, scale in columns]}

    def _restored(self, structure: Record) -> Self:
        """This model with the features of `structure`."""
        features = structure.records("features")
        names = tuple(feature.text("name") for feature in features)
        for feature in features:
            if feature.number("scale") < 0:
                feature.fail("scale", "a number that is not negative")
        mean, scale = ([feature.number(key) for feature in features] for key in ("mean", "scale"))
        return self._scaled(Scaler(names, np.array(mean, np.float64), np.array(scale, np.float64)))


def chunks_of(rows: int) -> int:
    """The number of chunks in which this many rows are processed."""
    return max(1, min(MOST_CHUNKS, rows // CHUNK))


@kernel
def tile_width(rows: int) -> int:
    """How many columns a tile for at most this many rows needs."""
    return min(TILE, rows)


@kernel
def load_tile(features: Matrix, mean: Floats, start: int, stop: int, tile: Floats) -> None:
    """Write rows start:stop, less the mean, to the columns of `tile`; a feature is then one contiguous row of it."""
    even = start + (stop - start) // 8 * 8
    for low in range(start, even, 8):  # eight rows at a time: what is read of them stays in the nearest cache
        column = low - start
        for k in range(len(mean)):
            line, middle = tile[k], mean[k]
            for i in range(8):
                line[column + i] = np.float64(features[low + i, k]) - middle
    for row in range(even, stop):
        for k in range(len(mean)):
            tile[k, row - start] = np.float64(features[row, k]) - mean[k]


@kernel
def add_rows(weights: Floats, tile: Floats, out: Floats) -> None:
    """Add to each of `out` the weighted sum of its column of `tile`, four rows of the tile at a time."""
    even = len(weights) // 4 * 4
    for k in range(0, even, 4):
        t0, t1, t2, t3 = tile[k], tile[k + 1], tile[k + 2], tile[k + 3]
        w0, w1, w2, w3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for r in range(len(out)):
            out[r] += (w0 * t0[r] + w1 * t1[r]) + (w2 * t2[r] + w3 * t3[r])
    for k in range(even, len(weights)):
        t0, w0 = tile[k], weights[k]
        for r in range(len(out)):
            out[r] += w0 * t0[r]
