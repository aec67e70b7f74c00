"""Standardisation: features of zero mean and unit standard deviation over the training rows (SoftRank, section 4.5).

The scaler is saved with the model. Models never make a standardised copy of the features: they subtract the mean from
one block of rows at a time, in float64, and multiply their weights by the scale. A feature that is constant in training
has scale 0: whatever value it takes later, it does not count.

>>> rows = Candidates.of([1, 0, 0, 1], features=[[1, 7], [3, 7], [5, 7], [7, 7]], feature_names=["bm25", "constant"])
>>> scaler = Scaler.of(rows)
>>> scaler.mean.tolist(), scaler.scale.round(6).tolist()
([4.0, 7.0], [0.447214, 0.0])
>>> scaler.standardised(rows)[0].round(6).tolist()
[-1.341641, 0.0]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fliprank.arrays import Floats, Matrix, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.scattered import ScatteredRows, block_rows, powers
from fliprank.errors import InputError

__all__ = ["Scaler", "feature_matrix"]


@dataclass(frozen=True, eq=False)
class Scaler:
    """Mean and 1 / standard deviation of each feature; the scale of a constant feature is 0."""

    names: tuple[str, ...]
    mean: Floats
    scale: Floats

    def __post_init__(self) -> None:
        for name in ("mean", "scale"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float64))

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def of(cls, train: Candidates | ScatteredRows) -> Scaler:
        """Measured on these rows."""
        names = train.feature_names
        if isinstance(train, ScatteredRows):
            train.check_features(check_features)
            _check_names(names, len(train))
            return cls._from(names, *train.statistics())
        features = feature_matrix(train)
        _check_names(names, len(features))
        # Relative to the first row, so that the mean and deviation of a constant feature are exact.
        first = features[0].astype(np.float64)
        mean = first + _mean(features, first, 1)
        deviation = np.sqrt(_mean(features, mean, 2))
        return cls._from(names, mean, deviation)

    @classmethod
    def _from(cls, names: tuple[str, ...], mean: Floats, deviation: Floats) -> Scaler:
        return cls(names, mean, np.divide(1.0, deviation, out=np.zeros(len(mean)), where=deviation > 0))

    def matrix(self, candidates: Candidates) -> Matrix:
        """The raw features of these candidates, after checking that they are this scaler's features and all finite."""
        features = feature_matrix(candidates)
        if candidates.feature_names != self.names:
            raise _difference(self.names, candidates.feature_names)
        return features

    def check(self, rows: Candidates | ScatteredRows) -> None:
        """Raise if rows have other features than these, or some that are not finite."""
        if isinstance(rows, Candidates):
            self.matrix(rows)
        elif rows.feature_names != self.names:
            raise _difference(self.names, rows.feature_names)
        else:
            rows.check_features(check_features)

    def standardised(self, candidates: Candidates) -> Floats:
        """(x - mean) * scale: what a model sees."""
        out: Floats = (self.matrix(candidates) - self.mean) * self.scale
        return out


def feature_matrix(candidates: Candidates) -> Matrix:
    """The features of these candidates; raises if there are none, or if one is not a finite number."""
    features = candidates.features
    if features is None:
        raise InputError("these candidates have no features", hint="read them from a feature file, or give features=")
    if "features are numbers" not in candidates.memo:
        _check_numbers(features, candidates)
        candidates.memo["features are numbers"] = True
    return features


def check_features(part: Candidates) -> None:
    """Raise if some of these candidates' features are not finite numbers."""
    feature_matrix(part)


def _check_names(names: tuple[str, ...], rows: int) -> None:
    if not names or not rows:
        raise InputError(f"nothing to learn from: {rows} rows of {len(names)} features")
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"two features are called {twice!r}")


def _mean(features: Matrix, origin: Floats, power: int) -> Floats:
    """The mean of (x - origin)^power, added up in the blocks that `ScatteredRows` adds up, too."""
    total, block = np.zeros(features.shape[1]), block_rows(features.shape[1])
    for start in range(0, len(features), block):
        total += powers(features[start : start + block], origin, power)
    mean: Floats = total / len(features)
    return mean


def _check_numbers(features: Matrix, candidates: Candidates) -> None:
    names = candidates.feature_names
    bad, block = np.zeros(features.shape[1], np.int64), block_rows(features.shape[1])
    for start in range(0, len(features), block):
        fine = np.isfinite(features[start : start + block])
        if not fine.all():
            bad += (~fine).sum(axis=0)
    if bad.any():
        worst = [f"{names[k]} in {bad[k]:,} of {len(features):,} rows" for k in np.flatnonzero(bad)[:5]]
        more = int((bad > 0).sum()) - len(worst)
        said = "; ".join(worst) + (f"; and {more} more features" if more else "")
        k = int(np.flatnonzero(bad)[0])
        row = int(np.isfinite(features[:, k]).argmin())
        query = candidates.qids[int(np.searchsorted(candidates.offsets, row, "right")) - 1]
        said += f"; the first is {names[k]} in row {row} (query {query})"
        hint = "fill them in, drop these features, or take trees, which need no value: Trees()"
        raise InputError(f"features that are not finite numbers: {said}", hint=hint)


def _difference(expected: tuple[str, ...], found: tuple[str, ...]) -> InputError:
    """The error for feature names that are not the expected ones."""
    if len(expected) != len(found):
        return InputError(
            f"the model was trained on {len(expected)} features, these candidates have {len(found)}",
            hint=f"if the file is sparse: --n-features {len(expected)}, or read_letor(..., n_features={len(expected)})",
        )
    missing = [name for name in expected if name not in set(found)]
    if missing:
        return InputError(f"the model was trained on features that these candidates lack: {', '.join(missing[:5])}")
    k = next(k for k, name in enumerate(expected) if found[k] != name)
    return InputError(
        f"the features stand in another order: feature {k + 1} is {found[k]}, the model expects {expected[k]}"
    )
