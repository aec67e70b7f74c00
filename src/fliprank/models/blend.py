"""A blend: the weighted sum of the scores of models that are trained already, each brought to the same spread.

A part's scores are standardised by their mean and standard deviation over the training rows, which travel inside. The
parts are frozen: the parameters are the weights alone, none below 0. So scores are linear in all parameters, and exact
line searches find the best weights (`experiment/blending.py`). A `Stack` is for parts that are trained together: its
parameters include theirs, the unit of its scores is that of the first part, and no part can be left out.

>>> from fliprank.models.linear import Linear
>>> rows = Candidates.of([1, 0], features=[[9.0, 2.0], [7.0, 4.0]], feature_names=["bm25", "clicks"])
>>> one, other = (Linear().prepared(rows, 0).at(values) for values in ([5, 1, 0], [0, 0, 100]))
>>> model = Blend([one, other]).prepared(rows, 0)
>>> model.params.names, model.params.values.tolist(), model.score(rows).tolist()
(('linear.1.weight', 'linear.2.weight'), [0.5, 0.5], [0.0, 0.0])
>>> model.at([1, 0.5]).score(rows).tolist()
[0.5, -0.5]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, frozen
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.models.base import Model, Seed, build, describe, register, row_gradient
from fliprank.models.folder import Record
from fliprank.models.parameter_rows import from_rows, to_rows
from fliprank.models.parameters import Parameters
from fliprank.models.stack import DEEPEST
from fliprank.models.stack_names import unique

__all__ = ["Blend"]

ROUNDING = 1e-13
"""A standard deviation of scores below this, relative to their size, is rounding: the part ranks nothing."""

LATEST = "scores of the parts of a blend"
"""Where a `Candidates` keeps the standardised scores of the parts of the latest blend that scored it."""


@register
@dataclass(frozen=True, eq=False)
class Blend(Model):
    """score = sum over parts of weight x (score of the part - mean) x scale

    `spread` has the mean and 1 / standard deviation of each part's scores on the training rows; `train` trains the
    parts that are not ready, measures it and sets the weights. The parameters are called `KIND.weight`.
    """

    kind: ClassVar[str] = "blend"
    summary: ClassVar[str] = "a weighted sum of trained models, brought to the same spread"
    linear_in_params: ClassVar[bool] = True
    scales_freely: ClassVar[bool] = True
    parts: tuple[Model, ...]
    spread: tuple[Floats, Floats] | None = None

    def __init__(
        self,
        parts: Sequence[Model],
        *,
        spread: tuple[Floats, Floats] | None = None,
        params: Parameters | None = None,
    ) -> None:
        if not parts or not all(isinstance(part, Model) for part in parts):
            raise UsageError("a blend is made of models: Blend([Linear(), Network(), Trees()])")
        object.__setattr__(self, "parts", parts if isinstance(parts, tuple) else tuple(parts))
        object.__setattr__(self, "spread", spread)
        even = Parameters.of({f"{label}.weight": (1.0 / len(parts), 0.0, inf) for label in self.labels})
        object.__setattr__(self, "params", even if params is None else params)

    @property
    def labels(self) -> list[str]:
        """What the parts are called: their kinds, with a number where two are of the same kind."""
        return unique([part.kind for part in self.parts])

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """What the parts read, together."""
        return frozenset[str]().union(*(part.needs for part in self.parts))

    @property
    def ready(self) -> bool:
        return self.spread is not None and all(part.ready for part in self.parts)

    def prepared(self, train: Candidates, rng: Seed) -> Self:
        """With the spread of each part's scores on these rows, unless it is known; the parts must be trained."""
        if self.ready:
            return self
        if untrained := [part.kind for part in self.parts if not part.ready]:
            raise UsageError(
                f"a part of this blend is not trained ({untrained[0]}): call train(Blend([...]), rows, valid)"
            )
        if not len(train):
            raise InputError("there are no rows to measure the spread of scores on")
        scores = np.array([part.score(train) for part in self.parts])
        deviation = scores.std(axis=1)
        scale = np.divide(
            1.0, deviation, out=np.zeros(len(scores)), where=deviation > ROUNDING * np.abs(scores).max(axis=1)
        )
        return replace(self, spread=(scores.mean(axis=1), scale))

    def initial(self, rng: np.random.Generator) -> Floats:
        """Weights at random that add up to 1."""
        return rng.dirichlet(np.ones(len(self.parts)))

    def lines(self, candidates: Candidates) -> Floats:
        """The standardised scores of the parts, one line per part; kept for the next weights."""
        if not self.ready or self.spread is None:
            raise UsageError("this blend is not ready: train it, or call prepared(train, rng) with trained parts")
        parts, spread, lines = candidates.memo.get(LATEST, (None, None, None))
        if parts is not self.parts or spread is not self.spread:
            mean, scale = self.spread
            scores = [part.score(candidates) for part in self.parts]
            lines = frozen([(s - m) * f for s, m, f in zip(scores, mean, scale, strict=True)], np.float64)
            candidates.memo[LATEST] = (self.parts, self.spread, lines)
        out: Floats = lines
        return out

    def score(self, candidates: Candidates) -> Floats:
        total = np.zeros(len(candidates))
        for weight, line in zip(self.params.values, self.lines(candidates), strict=True):
            if weight != 0.0:
                total += weight * line
        return total

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        given = row_gradient(candidates, dscores)
        return np.array([(line * given).sum() for line in self.lines(candidates)])

    def weighted(self, weights: ArrayLike) -> Model:
        """With these weights, which are made to add up to 1; parts of weight 0 are left out, a single one is itself."""
        values = np.asarray(weights, np.float64)
        if (
            values.shape != (len(self.parts),)
            or not np.isfinite(values).all()
            or (values < 0).any()
            or not values.any()
        ):
            raise UsageError(f"weights of a blend: {len(self.parts)} numbers from 0, not all of them 0, not {values}")
        kept = np.flatnonzero(values)
        if len(kept) == 1:
            return self.parts[int(kept[0])]
        spread = None if self.spread is None else (self.spread[0][kept], self.spread[1][kept])
        few = Blend([self.parts[k] for k in kept], spread=spread)
        return few.at(values[kept] / values.sum())

    def structure(self) -> dict[str, Any]:
        assert self.spread is not None
        columns = zip(self.parts, *(column.tolist() for column in self.spread), strict=True)
        return {
            "parts": [
                {"mean": mean, "scale": scale, **describe(part), "parameters": to_rows(part.params, most=inf)[0]}
                for part, mean, scale in columns
            ]
        }

    @classmethod
    def restore(cls, structure: Record) -> Self:
        if structure.place.count("parts[") > DEEPEST:
            structure.fail("parts", f"blends in blends to a depth of {DEEPEST}")
        records = structure.records("parts")
        models = [build(record) for record in records]
        parts = [
            model.at(from_rows(record, model.params.names, {})) for model, record in zip(models, records, strict=True)
        ]
        mean, scale = (np.array([record.number(key) for record in records]) for key in ("mean", "scale"))
        for record in records:
            if record.number("scale") < 0:
                record.fail("scale", "a number that is not negative")
        return cls(parts, spread=(mean, scale))
