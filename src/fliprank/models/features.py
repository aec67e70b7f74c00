"""Models of standardised features: what the linear model and the network have in common.

Rows are worked on in chunks that depend on their number alone, not on that of the threads, so that sums are the same on
every machine. Within a chunk a block of rows at a time is centred into float64, small enough for the cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from fliprank.arrays import Floats, Matrix
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.kernels import kernel
from fliprank.models.base import Model, Seed
from fliprank.models.folder import Record
from fliprank.models.parameters import Parameters
from fliprank.models.standardise import Scaler

__all__ = ["FeatureModel", "centre", "chunks_of"]

CHUNK = 4096
MOST_CHUNKS = 64


@dataclass(frozen=True, eq=False)
class FeatureModel(Model):
    """A model of features. It is prepared on its training rows, and from then on takes the same features only."""

    scaler: Scaler | None = field(default=None, kw_only=True)

    def prepared(self, train: Candidates, rng: Seed) -> Self:
        """With the scaler of these training rows, and small random weights."""
        return self._scaled(Scaler.of(train)).initialised(rng)

    @property
    def ready(self) -> bool:
        return self.scaler is not None

    def parameter_names(self, features: tuple[str, ...]) -> list[str]:
        """The parameters of a model of these features."""
        raise NotImplementedError

    def _scaled(self, scaler: Scaler) -> Self:
        names = tuple(self.parameter_names(scaler.names))
        same = self.params.names == names  # keep what was fixed or shared
        params = self.params if same else Parameters(names, np.zeros(len(names)))
        return replace(self, scaler=scaler, params=params)

    def _scaler(self) -> Scaler:
        if self.scaler is None:
            raise UsageError(f"this {self.kind} model knows no features yet: train it, or call prepared(train, rng)")
        return self.scaler

    def structure(self) -> dict[str, Any]:
        scaler = self._scaler()
        columns = zip(scaler.names, scaler.mean.tolist(), scaler.scale.tolist(), strict=True)
        return {"features": [{"name": name, "mean": mean, "scale": scale} for name, mean, scale in columns]}

    def _restored(self, structure: Record) -> Self:
        """This model with the features of `structure`."""
        features = structure.records("features")
        names = tuple(feature.text("name") for feature in features)
        for i, feature in enumerate(features):
            if feature.number("scale") < 0:
                feature.fail("scale", "a number that is not negative")
            if names[i] in names[:i]:
                feature.fail("name", "a name that no other feature has")
        mean, scale = ([feature.number(key) for feature in features] for key in ("mean", "scale"))
        return self._scaled(Scaler(names, np.array(mean, np.float64), np.array(scale, np.float64)))


def chunks_of(rows: int) -> int:
    """How many chunks this many rows are worked on in."""
    return max(1, min(MOST_CHUNKS, rows // CHUNK))


@kernel
def centre(features: Matrix, mean: Floats, start: int, stop: int, block: Floats) -> None:
    """Write rows start:stop, less the mean, to the first columns of `block`."""
    for row in range(start, stop):
        for k in range(len(mean)):
            block[row - start, k] = np.float64(features[row, k]) - mean[k]
