"""Candidates with features, for the tests of models."""

from __future__ import annotations

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.models import Model

SIZES = (1.0, 1e30, 1e-30, 0.0, 1e3)
"""What features are multiplied by: huge, tiny and constant ones among them."""


def random_rows(rng: np.random.Generator, rows: int, features: int) -> Candidates:
    matrix = rng.normal(rng.normal(size=features), 1.0, (rows, features)) * np.resize(SIZES, features)
    return Candidates.of(rng.integers(0, 3, rows), features=matrix, feature_names=[f"f{k}" for k in range(features)])


def finite_differences(model: Model, rows: Candidates, dscores: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """The gradient of dscores . scores by central differences of fourth order."""
    out, values = np.empty(len(model.params)), model.params.values
    for i in range(len(values)):
        unit = np.zeros(len(values))
        unit[i] = step

        def moved(times: float, unit: np.ndarray = unit) -> float:
            return float(dscores @ model.at(values + times * unit).score(rows))

        out[i] = (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * step)
    return out
