"""Models as features of one model, trained together (Taylor et al. 2006, equations 14 to 16).

The score is a weighted sum of the parts' scores, or with `hidden` nodes a two-layer net of them (SoftRank, section
4.2). The gradient goes through to the parts' own parameters. In a sum the first part's weight is fixed at 1, since only
the order of scores counts; the others start at 0. The paper's rankers are stacks: see `taylor2006.py`.

>>> from fliprank.data.candidates import Candidates
>>> rows = Candidates.of([1, 0], features=[[4.0, 1.0], [1.0, 3.0]], feature_names=["pagerank", "depth"])
>>> model = Stack(Feature("pagerank", transform="saturate"), Feature("depth")).prepared(rows, 0)
>>> model.params.names, model.params.free_names
(('pagerank.k', 'pagerank.weight', 'depth.weight'), ('pagerank.k', 'depth.weight'))
>>> model.at([2.5, 1.0, -0.1]).score(rows).round(6).tolist()                  # the first: 4 / (4 + 2.5) - 0.1
[0.515385, -0.014286]
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, frozen
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.models.base import UNKNOWN, Model, Seed, build, describe, register, row_gradient
from fliprank.models.document_feature import Feature
from fliprank.models.folder import Record
from fliprank.models.linear import Linear
from fliprank.models.network import Inputs, net_initial, net_names, net_penalties, net_pullback, net_scores
from fliprank.models.parameters import Parameters
from fliprank.models.scaler import Scaler
from fliprank.models.stack_names import joined, unique

__all__ = ["AllFeatures", "Stack"]

DEEPEST = 16


@dataclass(frozen=True, eq=False)
class AllFeatures:
    """All features of the rows, standardised, each with a weight of its own: a part of a `Stack`, not a model."""

    kind: ClassVar[str] = "all_features"
    linear: Linear = field(default_factory=Linear)


Part = Model | AllFeatures


@register
@dataclass(frozen=True, eq=False, init=False)
class Stack(Model):
    """Parts (models, and at most one `AllFeatures()`) under a weighted sum, or under a net with `hidden` nodes.

    Parameters: those of the parts, by their own names (where two parts have the same, the part's kind goes before it),
    then `KIND.weight` or `FEATURE.weight` for each part and `w.FEATURE` for each of the features; of a net, those of
    `Network`. `weights` fixes weights of a sum: `weights={"pagerank": 0.5}`.
    """

    kind: ClassVar[str] = "stack"
    summary: ClassVar[str] = "a weighted sum, or a net, of other models and of features"
    parts: tuple[Part, ...]
    hidden: int
    weights: Mapping[str, float]
    spread: tuple[Floats, Floats] | None
    """Of a net: mean and 1 / standard deviation of each part's scores on the training rows."""
    _latest: tuple[weakref.ref[Candidates] | None, Floats] = field(repr=False)

    def __init__(self, *parts: Part, hidden: int = 0, weights: Mapping[str, float] | None = None) -> None:
        if not parts or not all(isinstance(part, Part) for part in parts):
            raise UsageError("a stack is made of models: Stack(BM25F(), Feature('pagerank', transform='log'))")
        if sum(isinstance(part, AllFeatures) for part in parts) > 1:
            raise UsageError("a stack has all features once: AllFeatures() is given twice")
        if not isinstance(hidden, int) or hidden < 0:
            raise UsageError(f"hidden must be a number of nodes, not {hidden!r}")
        if weights and hidden:
            raise UsageError("a net has no weights by part to fix")
        object.__setattr__(self, "_latest", (None, np.empty(0)))
        settings = {"parts": parts, "hidden": hidden, "weights": dict(weights or {}), "spread": None, "params": UNKNOWN}
        for name, value in settings.items():
            object.__setattr__(self, name, value)
        if not hidden and all(isinstance(part, Model) and part.params is not UNKNOWN for part in parts):
            object.__setattr__(self, "params", self._own_parameters())

    def _with(self, **changes: Any) -> Self:
        other = copy.copy(self)
        object.__setattr__(other, "_latest", (None, np.empty(0)))
        other.__dict__.pop("models", None)
        for name, value in changes.items():
            object.__setattr__(other, name, value)
        return other

    def at(self, values: ArrayLike | Parameters) -> Self:
        return self._with(params=self.params_at(values))

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """What the parts read, together."""
        return frozenset().union(*((part if isinstance(part, Model) else part.linear).needs for part in self.parts))

    @property
    def ready(self) -> bool:
        parts = all((part if isinstance(part, Model) else part.linear).ready for part in self.parts)
        return parts and self.params is not UNKNOWN and (not self.hidden or self.spread is not None)

    @property
    def scales_freely(self) -> bool:  # type: ignore[override]
        return self.hidden > 0

    @cached_property
    def models(self) -> list[Model]:
        """The parts that are models, with the values of their parameters in this stack."""
        parts = [part for part in self.parts if isinstance(part, Model)]
        if self.params is UNKNOWN:
            return parts
        cuts = np.cumsum([0, *(len(part.params) for part in parts)])
        return [part.at(self.params.values[cuts[i] : cuts[i + 1]]) for i, part in enumerate(parts)]

    @property
    def scaler(self) -> Scaler | None:
        """The scaler of the features, if they are a part."""
        return next((part.linear.scaler for part in self.parts if isinstance(part, AllFeatures)), None)

    @property
    def _inner(self) -> int:
        """How many parameters are the parts' own; those of the sum or net come after them."""
        return sum(len(part.params) for part in self.parts if isinstance(part, Model))

    def prepared(self, train: Candidates, rng: Seed) -> Self:
        """With each part prepared on these rows; the parts' parameters are kept, a net's weights are random.

        A stack that is ready stays as it is.
        """
        chance, models = np.random.default_rng(rng), iter(self.models)
        parts = tuple(
            next(models).prepared(train, chance)
            if isinstance(part, Model)
            else AllFeatures(part.linear.prepared(train, chance))
            for part in self.parts
        )
        return self if self.ready else self._with(parts=parts)._assembled()._ready_net(train, chance)

    def _own_parameters(self) -> Parameters:
        """The parameters of its parts, then those of what is on top."""
        models = [part for part in self.parts if isinstance(part, Model)]
        return joined([part.kind for part in models], [part.params for part in models], self._top())

    def _assembled(self) -> Self:
        """With its own parameters, as they were before if their names are the same."""
        params = self._own_parameters()
        return self if self.params.names == params.names else self._with(params=params)

    def _ready_net(self, train: Candidates, rng: np.random.Generator) -> Self:
        if not self.hidden:
            return self
        outputs = self._part_scores(train)
        deviation = outputs.std(axis=1)
        scale = np.divide(1.0, deviation, out=np.ones(len(deviation)), where=deviation > 0)
        first = self.params.values.copy()
        first[self._inner :] = self.initial(rng)[self._inner :]
        params = self.params.with_free(self.params.at(first).free_values)
        return self._with(spread=(outputs.mean(axis=1), scale), params=params)

    def _labels(self) -> list[str]:
        """What the parts are called as inputs of the sum or net: by their kind, or by their feature."""
        parts = [part for part in self.parts if isinstance(part, Model)]
        return unique([part.name if isinstance(part, Feature) else part.kind for part in parts])

    def _top(self) -> Parameters:
        scaler = self.scaler
        labels, features = self._labels(), () if scaler is None else scaler.names
        if self.hidden:
            names = net_names(self.hidden, [*(f"{n}.part" if n in features else n for n in labels), *features])
            return Parameters(tuple(names), np.zeros(len(names)))
        table = {f"{name}.weight": float(self.weights.get(name, i == 0)) for i, name in enumerate(labels)}
        if unknown := self.weights.keys() - set(labels):
            raise UsageError(f"weights: no part is called {min(unknown)!r}; there are {', '.join(labels)}")
        params = Parameters.of(table | {f"w.{name}": 0.0 for name in features})
        return params.fix([f"{name}.weight" for i, name in enumerate(labels) if i == 0 or name in self.weights])

    def initial(self, rng: np.random.Generator) -> Floats:
        """Parts as they start themselves; weights at random, a net's as those of `Network`."""
        inner = [part.initial(rng) for part in self.parts if isinstance(part, Model)]
        count, parts = len(self.params) - self._inner, len(inner)
        if self.hidden:
            return np.concatenate([*inner, net_initial(rng, self.hidden, (count - 1) // self.hidden - 2)])
        top = rng.normal(0.0, 0.5, count)
        top[parts:] *= 0.2 / np.sqrt(max(1, count - parts))
        start = np.concatenate([*inner, self.params.default[self._inner :] + top])
        clipped: Floats = np.clip(start, self.params.lower, self.params.upper)
        return clipped

    @property
    def penalty_weights(self) -> Floats:
        """As each part says; on top 1 for weights, 0 for the biases of a net."""
        inner = [part.penalty_weights for part in self.parts if isinstance(part, Model)]
        count = len(self.params) - self._inner
        return np.concatenate([*inner, net_penalties(self.hidden, count) if self.hidden else np.ones(count)])

    def _outputs(self, candidates: Candidates) -> Floats:
        """The parts' scores, one line per part. The latest are kept, since a gradient follows upon the scores."""
        if not self.ready:
            raise UsageError("this stack is not ready: train it, or call prepared(train, rng)")
        rows, latest = self._latest
        if rows is None or rows() is not candidates:
            latest = self._part_scores(candidates)
            object.__setattr__(self, "_latest", (weakref.ref(candidates), latest))
        return latest

    def _part_scores(self, candidates: Candidates) -> Floats:
        lines = [model.score(candidates) for model in self.models]
        return np.array(lines) if lines else np.empty((0, len(candidates)))

    def _feature_weights(self) -> Floats:
        return self.params.values[len(self.params) - (0 if self.scaler is None else len(self.scaler)) :]

    def _linear(self, weights: Floats) -> Linear | None:
        """The features' share of a sum, with these weights."""
        part = next((part for part in self.parts if isinstance(part, AllFeatures)), None)
        return None if part is None else part.linear.at([0.0, *weights])

    def _sum(self, candidates: Candidates, outputs: Floats, weights: Floats) -> Floats:
        total, features = np.zeros(len(candidates)), self._linear(weights[len(outputs) :])
        for weight, line in zip(weights, outputs, strict=False):
            if weight != 0.0:
                total += weight * line
        return total if features is None else total + features.score(candidates)

    def terms(self) -> list[tuple[float, Model]]:
        """Of a sum: the weight and the model of each part; all features are one linear model."""
        if self.hidden:
            raise UsageError("this stack is a net of its parts, not a sum")
        features = self._linear(self._feature_weights())
        weights = self.params.values[self._inner :].tolist()
        parts: list[tuple[float, Model]] = list(zip(weights, self.models, strict=False))
        return parts if features is None else [*parts, (1.0, features)]

    def net_inputs(self, candidates: Candidates, outputs: Floats) -> tuple[Inputs, Floats]:
        """The inputs of a net where the parts score `outputs`, and 1 / standard deviation of each."""
        assert self.spread is not None
        scaler = self.scaler
        every = [self.spread] if scaler is None else [self.spread, (scaler.mean, scaler.scale)]
        mean, scale = (np.concatenate(column) for column in zip(*every, strict=True))
        features = np.empty((len(candidates), 0)) if scaler is None else scaler.matrix(candidates)
        return Inputs(outputs, frozen(features, np.float32), frozen(mean, np.float64)), scale

    def score(self, candidates: Candidates) -> Floats:
        outputs, top = self._outputs(candidates), self.params.values[self._inner :]
        if not self.hidden:
            return self._sum(candidates, outputs, top)
        return net_scores(*self.net_inputs(candidates, outputs), self.hidden, top)

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        given, outputs, values = row_gradient(candidates, dscores), self._outputs(candidates), self.params.values
        if self.hidden:
            inputs, scale = self.net_inputs(candidates, outputs)
            by_top, by_output = net_pullback(inputs, scale, self.hidden, values[self._inner :], given)
            top = [by_top]
        else:
            top, linear = [np.array([(line * given).sum() for line in outputs])], self._linear(self._feature_weights())
            top += [] if linear is None else [linear.pullback(candidates, given)[1:]]
            by_output = values[self._inner : self._inner + len(outputs), None] * given
        inner = [
            m.pullback(candidates, line) if len(m.params) else np.empty(0)
            for m, line in zip(self.models, by_output, strict=True)
        ]
        return np.concatenate([*inner, *top])

    def linear_along(self, direction: ArrayLike) -> bool:
        """True where only weights of a sum move."""
        return not self.hidden and not self.params.direction(direction)[: self._inner].any()

    def slope(self, candidates: Candidates, direction: ArrayLike) -> Floats:
        if not self.linear_along(direction):
            raise UsageError("the scores of this stack are linear along the weights of a sum only")
        return self._sum(candidates, self._outputs(candidates), self.params.direction(direction)[self._inner :])

    def structure(self) -> dict[str, Any]:
        parts = [
            describe(p) if isinstance(p, Model) else {"kind": p.kind, "structure": p.linear.structure()}
            for p in self.parts
        ]
        if self.spread is None:
            return {"parts": parts}
        inputs = zip(self._labels(), *(column.tolist() for column in self.spread), strict=True)
        return {
            "parts": parts,
            "hidden": self.hidden,
            "inputs": [{"name": n, "mean": m, "scale": s} for n, m, s in inputs],
        }

    @classmethod
    def restore(cls, structure: Record) -> Self:
        if structure.place.count("parts[") > DEEPEST:
            structure.fail("parts", f"stacks in stacks to a depth of {DEEPEST}")
        parts: list[Part] = []
        for record in structure.records("parts"):
            features = record.data.get("kind") == AllFeatures.kind
            parts.append(AllFeatures(Linear.restore(record.record("structure"))) if features else build(record))
        model = cls(*parts, hidden=structure.integer("hidden") if structure.has("hidden") else 0)
        if not model.hidden:
            return model._assembled()
        inputs = structure.records("inputs")
        mean, scale = (np.array([entry.number(key) for entry in inputs]) for key in ("mean", "scale"))
        if len(inputs) != len(model._labels()):
            structure.fail("inputs", f"{len(model._labels())} of them, one for each part")
        return model._with(spread=(mean, scale))._assembled()
