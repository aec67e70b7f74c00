"""What learning-to-rank plug-ins can compute: a weight per feature, hidden nodes with tanh, trees, curves, summed up.

Linear models, nets, trees, blends, stacks and subsets of features all come down to one `Additive`:

    score = bias + linear . z + w32 . tanh(b2 + w21 z) + sum of trees + sum of curves,   z = (x - mean) * scale

over the features that count; those of weight 0, and those that were constant in training, are left out. A cascade is a
list of them. An engine says which of these sums it takes, and writes them in its own format.

>>> from fliprank.data.candidates import Candidates
>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0], features=[[9.0, 2.0, 7.0], [7.0, 4.0, 7.0]], feature_names=["bm25", "clicks", "year"])
>>> found = additive(Linear().prepared(rows, 0).at([0.5, 2, 1, 3]))
>>> found.features, found.dropped, found.linear.tolist(), found.bias
(('bm25', 'clicks'), ('year',), [2.0, 1.0], 0.5)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fliprank.arrays import Floats
from fliprank.models import Blend, Cascade, Feature, FeatureSubset, Linear, Model, Network, Stack, Trees
from fliprank.models.trees import Node

__all__ = ["Additive", "Curve", "Stage", "UnfitError", "additive", "fold_tree", "stages_of", "unfit"]

T = TypeVar("T")

LIFT = 64.0
"""Standard deviations of all features together below which a lifted linear score is positive."""


class UnfitError(Exception):
    """Why a model is no sum that an engine could compute, in words for a person."""


class Curve(NamedTuple):
    """A weight, and the curve of one feature that it multiplies."""

    weight: float
    feature: Feature


@dataclass(frozen=True, eq=False)
class Additive:
    """score = bias + linear . z + w32 . tanh(b2 + w21 z) + trees + curves, with z = (x - mean) * scale."""

    features: tuple[str, ...]
    dropped: tuple[str, ...]
    bias: float
    mean: Floats
    scale: Floats
    linear: Floats
    w21: Floats
    b2: Floats
    w32: Floats
    trees: tuple[list[dict[str, Any]], ...]
    curves: tuple[Curve, ...]

    @property
    def kinds(self) -> frozenset[str]:
        """What is summed up: "linear", "net", "trees", "curves"."""
        there = {"linear": self.linear.any(), "net": len(self.w32), "trees": self.trees, "curves": self.curves}
        return frozenset(kind for kind, some in there.items() if some)

    @property
    def deviation(self) -> Floats:
        """1 / scale: the standard deviation of each feature over the training rows."""
        return np.asarray(1.0 / self.scale, np.float64)

    def raw(self) -> tuple[float, Floats]:
        """(bias, weights) of a linear one, for features in their own units."""
        weights = self.linear * self.scale
        return self.bias - float(weights @ self.mean), weights

    def lift(self) -> float:
        """A constant that makes all scores positive: of trees exactly, of standardised features up to 64 deviations.

        float32 still tells scores apart that differ by a few millionths of it.
        """
        least = sum(min(float(node["value"]) for node in tree if "value" in node) for tree in self.trees)
        return LIFT * float(np.abs(self.linear).sum()) - least + 1.0

    def routes_missing(self) -> bool:
        """Whether some split says where a row goes that has no value."""
        return any("missing" in node for tree in self.trees for node in tree)

    def lost(self, constant: bool = False) -> tuple[str, ...]:
        """What every export says that was dropped: features, and the constant that does not change the order."""
        out = list[str]()
        if self.dropped:
            out.append(f"Features that do not count are left out: {', '.join(self.dropped)}.")
        if constant and self.bias:
            out.append(f"The constant {self.bias:.6g} is dropped: scores are lower by it, in the same order.")
        return tuple(out)


class Stage(NamedTuple):
    """How many documents a stage sees (None: not a cascade), and its function."""

    size: int | None
    function: Additive


def stages_of(model: Model) -> list[Stage]:
    """The stages of a cascade, or the one function that any other model is; raises `UnfitError` with the reason."""
    if isinstance(model, Cascade):
        return [Stage(size, additive(stage)) for stage, size in zip(model.stages, model.sizes, strict=True)]
    return [Stage(None, additive(model))]


def unfit(model: Model, refuse: Callable[[Additive], str | None]) -> str | None:
    """Why a model, or a stage of it, can't be exported; `refuse` says it of sums that an engine does not take.

    A fusion of lists is another kind of model, of which there is nothing to say.
    """
    if "lists" in model.needs:
        return ""
    try:
        reasons = (refuse(stage.function) for stage in stages_of(model))
        return next((reason for reason in reasons if reason is not None), None)
    except UnfitError as error:
        return str(error)


def additive(model: Model) -> Additive:
    """The sum that a model is; raises `UnfitError` with the reason if it is none."""
    parts = list(_parts(model, 1.0))
    names = _features(parts)
    places = {name: place for place, name in enumerate(names)}
    mean, scale = _units(parts, places)
    linear, bias = np.zeros(len(names)), sum(part.bias for part in parts)
    nodes = list[tuple[Floats, float, float]]()
    for part in parts:
        at = [places[name] for name in part.names]
        middle, unit = mean[at], scale[at]
        for j in range(len(part.w32)):  # in the units of all parts
            row = np.zeros(len(names))
            row[at] = _per(part.w21[j], unit)
            nodes.append((row, float(part.b2[j] + part.w21[j] @ (middle - part.mean)), float(part.w32[j])))
        linear[at] += _per(part.linear, unit)
        bias += float(part.linear @ (middle - part.mean))
    trees = tuple(tree for part in parts for tree in part.trees)
    curves = tuple(curve for part in parts for curve in part.curves)
    whole = Additive(
        tuple(names), (), float(bias), mean, scale, linear,
        np.array([node[0] for node in nodes]).reshape(len(nodes), len(names)),
        np.array([node[1] for node in nodes]), np.array([node[2] for node in nodes]), trees, curves,
    )  # fmt: skip
    return _without_idle_features(whole)


def _per(weights: Floats, unit: Floats) -> Floats:
    """Weights per raw unit as weights per `unit`; a feature that is constant in training has none."""
    return np.divide(weights, unit, out=np.zeros(len(weights)), where=unit > 0)


def _without_idle_features(whole: Additive) -> Additive:
    """The same function without hidden nodes and features that do not count; raises if nothing is left."""
    loud = whole.w32 != 0
    whole = replace(whole, w21=whole.w21[loud], b2=whole.b2[loud], w32=whole.w32[loud])
    used = {node["feature"] for tree in whole.trees for node in tree if "feature" in node}
    used |= {curve.feature.name for curve in whole.curves}
    counts = (whole.linear != 0) | (whole.w21 != 0).any(axis=0) | np.array([n in used for n in whole.features], bool)
    if not counts.any():
        raise UnfitError("all its weights are 0: it ranks nothing")
    names = np.array(whole.features, object)
    return replace(
        whole,
        features=tuple(names[counts]),
        dropped=tuple(names[~counts]),
        mean=whole.mean[counts],
        scale=np.where(whole.scale[counts] > 0, whole.scale[counts], 1.0),
        linear=whole.linear[counts],
        w21=whole.w21[:, counts],
    )


class _Part(NamedTuple):
    """One term of the sum, in its own features: weights per raw unit of x - mean."""

    names: tuple[str, ...]
    mean: Floats
    scale: Floats
    bias: float
    linear: Floats
    w21: Floats
    b2: Floats
    w32: Floats
    trees: list[list[dict[str, Any]]]
    curves: list[Curve]


def _part(names: Sequence[str] = (), mean: Any = None, scale: Any = None, bias: float = 0.0, **given: Any) -> _Part:
    count = len(names)
    whole: dict[str, Any] = {
        "linear": np.zeros(count),
        "w21": np.zeros((0, count)),
        "b2": np.zeros(0),
        "w32": np.zeros(0),
    }
    whole |= {"trees": [], "curves": [], **given}
    middle, unit = np.zeros(count) if mean is None else mean, np.zeros(count) if scale is None else scale
    return _Part(tuple(names), middle, unit, bias, **whole)


def _parts(model: Model, factor: float) -> Iterator[_Part]:
    """The terms of `factor` times the score of a model."""
    if isinstance(model, FeatureSubset):
        yield from _parts(model.model, factor)
    elif isinstance(model, Linear):
        scaler, values = model.fitted_scaler(), factor * model.params.values
        yield _part(scaler.names, scaler.mean, scaler.scale, float(values[0]), linear=values[1:] * scaler.scale)
    elif isinstance(model, Network):
        yield _net(model, factor)
    elif isinstance(model, Trees):
        trees = [] if model.forest is None else model.forest.trees()
        scaled = [[{**n, "value": factor * n["value"]} if "value" in n else n for n in tree] for tree in trees]
        yield _part(() if model.forest is None else model.forest.names, trees=scaled)
    elif isinstance(model, Feature):
        yield _feature(model, factor)
    elif isinstance(model, Blend) and model.spread is not None:
        for part, weight, mean, scale in zip(model.parts, model.params.values, *model.spread, strict=True):
            if share := factor * float(weight * scale):
                yield _part(bias=-share * float(mean))
                yield from _parts(part, share)
    elif isinstance(model, Stack) and not model.hidden:
        for weight, each in model.terms():
            if weight:
                yield from _parts(each, factor * weight)
    else:
        raise UnfitError(_reason(model))


def _net(model: Network, factor: float) -> _Part:
    scaler, hidden, values = model.fitted_scaler(), model.hidden, model.params.values
    w21 = values[: -2 * hidden - 1].reshape(hidden, -1) * scaler.scale
    b2, w32 = values[-2 * hidden - 1 : -hidden - 1], factor * values[-hidden - 1 : -1]
    return _part(scaler.names, scaler.mean, scaler.scale, factor * float(values[-1]), w21=w21, b2=b2, w32=w32)


def _feature(model: Feature, factor: float) -> _Part:
    if model.transform == "none":
        return _part((model.name,), scale=np.ones(1), linear=np.array([factor]))
    return _part((model.name,), curves=[Curve(factor, model)])


def _reason(model: Model) -> str:
    if "terms" in model.needs:
        return f"{model.kind} reads term statistics, which are no features of a plug-in; export it to an engine's own"
    if isinstance(model, Stack):
        return "a net on top of other models is no sum"
    if isinstance(model, Cascade):
        return "a cascade within another model"
    return f"a {model.kind} model is no sum of linear models, nets, trees and curves"


def _features(parts: Sequence[_Part]) -> list[str]:
    """The names of all features, in the order in which parts have them."""
    return list(dict.fromkeys(name for part in parts for name in part.names))


def _units(parts: Sequence[_Part], places: dict[str, int]) -> tuple[Floats, Floats]:
    """Mean and scale of each feature, from the first part that has them; 0 where none has."""
    mean, scale = np.zeros(len(places)), np.zeros(len(places))
    for part in parts:
        for name, middle, unit in zip(part.names, part.mean, part.scale, strict=True):
            if scale[places[name]] == 0 and unit > 0:
                mean[places[name]], scale[places[name]] = middle, unit
    return mean, scale


def fold_tree(tree: Sequence[Node], leaf: Callable[[int, float], T], split: Callable[[int, Node, T, T], T]) -> T:
    """What a tree becomes, from its leaves up: `split` is given the place of a node, the node and its two branches.

    The first branch is that of values up to the node's number. Nodes stand before their branches, so going backwards
    meets branches first, however deep a tree is.

    >>> nodes = [{"feature": "bm25", "at_most": 7.5, "above": 2}, {"value": -1.0}, {"value": 0.5}]
    >>> fold_tree(nodes, lambda i, v: f"{v}", lambda i, n, low, high: f"({low} or {high} at {n['at_most']})")
    '(-1.0 or 0.5 at 7.5)'
    """
    made = dict[int, T]()
    for place in range(len(tree) - 1, -1, -1):
        node = tree[place]
        made[place] = (
            leaf(place, float(node["value"]))
            if "value" in node
            else split(place, node, made.pop(place + 1), made.pop(int(node["above"])))
        )
    return made[0]
