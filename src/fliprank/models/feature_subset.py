"""A model of some of the features: `FeatureSubset(Linear(), ["bm25*", "pagerank"])`.

The early stages of a cascade see every document and must be cheap: they get the features that cost little, later
stages get all of them. A star in a name stands for any letters; the training rows settle which features match it.

>>> from fliprank.models.linear import Linear
>>> rows = Candidates.of([1, 0], features=[[9, 5, 1], [7, 6, 0]], feature_names=["bm25.title", "clicks", "bm25.body"])
>>> model = FeatureSubset(Linear(), ["bm25.*"]).prepared(rows, rng=0)
>>> model.features, model.params.names
(('bm25.title', 'bm25.body'), ('bias', 'w.bm25.title', 'w.bm25.body'))
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.scattered import PickedFeatures, ScatteredRows
from fliprank.errors import InputError, UsageError
from fliprank.models.base import Model, Seed, build, describe, register
from fliprank.models.folder import Record
from fliprank.models.parameters import Parameters

__all__ = ["FeatureSubset", "feature_places", "matching_features", "pick_features"]


@register
@dataclass(frozen=True, eq=False)
class FeatureSubset(Model):
    """`model`, which is shown the `features` of these names only. Its parameters are those of `model`."""

    kind: ClassVar[str] = "feature_subset"
    summary: ClassVar[str] = "a model that is shown some of the features"
    model: Model
    features: tuple[str, ...]

    def __init__(self, model: Model, features: str | Iterable[str], *, params: Parameters | None = None) -> None:
        names = (features,) if isinstance(features, str) else tuple(features)
        if model.kind in ("feature_subset", "cascade"):
            raise UsageError(f"features of a {model.kind} model: give them to the models inside")
        if not names:
            raise UsageError("a subset of no features: name some")
        object.__setattr__(self, "model", model if params is None else model.at(params))
        object.__setattr__(self, "features", names)
        object.__setattr__(self, "params", self.model.params)

    def prepared(self, train: Candidates | ScatteredRows, rng: Seed) -> Self:
        known = self.ready and set(self.features) <= set(train.feature_names)
        names = self.features if known else matching_features(self.features, train.feature_names)
        if isinstance(train, ScatteredRows):
            few: Any = PickedFeatures(train, names)
            return type(self)(self.model.prepared(few, rng), names)
        return type(self)(self.model.prepared(pick_features(train, names), rng), names)

    @property
    def all_but_values(self) -> tuple[Any, ...]:
        return (type(self), self.features, *self.model.all_but_values)

    @property
    def prepared_in_parts(self) -> bool:  # type: ignore[override]
        return self.model.prepared_in_parts

    @property
    def ready(self) -> bool:
        return self.model.ready

    def initial(self, rng: np.random.Generator) -> Floats:
        return self.model.initial(rng)

    @property
    def penalty_weights(self) -> Floats:
        return self.model.penalty_weights

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return self.model.needs

    def linear_along(self, direction: ArrayLike) -> bool:
        return self.model.linear_along(direction)

    @property
    def linear_in_params(self) -> bool:  # type: ignore[override]
        return self.model.linear_in_params

    @property
    def scales_freely(self) -> bool:  # type: ignore[override]
        return self.model.scales_freely

    def score(self, candidates: Candidates) -> Floats:
        return self.model.score(pick_features(candidates, self.features))

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        return self.model.pullback(pick_features(candidates, self.features), dscores)

    def structure(self) -> dict[str, Any]:
        return {"features": [{"name": name} for name in self.features], "model": describe(self.model)}

    @classmethod
    def restore(cls, structure: Record) -> Self:
        inner = structure.record("model")
        if inner.text("kind") in ("feature_subset", "cascade"):  # before it is built: nesting has an end
            inner.fail("kind", "a model that is no feature_subset and no cascade")
        return cls(build(inner), [feature.text("name") for feature in structure.records("features")])


def pick_features(candidates: Candidates, names: tuple[str, ...]) -> Candidates:
    """The same rows with these features only; built once per `Candidates`, and kept in its memo."""
    if names == candidates.feature_names:
        return candidates
    key = ("features", names)
    picked: Candidates | None = candidates.memo.get(key)
    if picked is None:
        places = feature_places(candidates, names)
        assert candidates.features is not None
        columns = candidates.features[:, places]
        picked = replace(candidates, features=columns, feature_names=names)
        candidates.memo[key] = picked  # rows in files forget it when their window ends, perhaps in another thread
    return picked


def feature_places(candidates: Candidates, names: tuple[str, ...]) -> list[int]:
    """Which columns of the features these are; raises if some are not there."""
    place = {name: k for k, name in enumerate(candidates.feature_names)}
    if missing := [name for name in names if name not in place]:
        raise InputError(f"the model was trained on features that these candidates lack: {', '.join(missing[:5])}")
    return [place[name] for name in names]


def matching_features(patterns: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of `names` that are named, or match a pattern, in their own order; each pattern must match some."""
    found = set()
    for pattern in patterns:
        letters = re.compile(".*".join(map(re.escape, pattern.split("*"))))
        named = {pattern} & set(names) or {name for name in names if letters.fullmatch(name)}
        if not named:
            raise InputError(f"no feature is called {pattern!r}", hint=f"there are {', '.join(names[:8])}, ...")
        found |= named
    return tuple(name for name in names if name in found)
