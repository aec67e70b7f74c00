"""Gradient-boosted trees: score = the sum over trees of the value of the leaf that a row falls into.

LightGBM grows them (extra `gbm`), by a call of its own: `Trees(...).grown(train, valid)`. They are kept as plain rows
of model.json, one a node, that a person can read, and scored by a kernel here: LightGBM is not needed to rank, and no
file of its own format is trusted. A stage of a cascade may be one; it has no parameters for an optimizer to move.

>>> nodes = [{"feature": "bm25", "at_most": 7.5, "above": 2}, {"value": -1.0}, {"value": 0.5}]
>>> rows = Candidates.of([0, 1], features=[[7.0], [8.0]], feature_names=["bm25"])
>>> Trees(forest=Forest.of([nodes])).score(rows).tolist()
[-1.0, 0.5]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Int32s, Ints, Matrix, frozen
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, MissingExtraError, UsageError
from fliprank.kernels import parallel_kernel, prange
from fliprank.models.base import Model, register
from fliprank.models.feature_subset import pick_features
from fliprank.models.folder import Record
from fliprank.models.scaler import feature_matrix

__all__ = ["Forest", "Trees"]

Judge = Callable[[Floats], float]
Node = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Forest:
    """All nodes of all trees. `feature` is -1 for a leaf; a row goes to the next node, or, above `number`, to `above`.

    For a leaf `number` is its value. `above` counts from the first node of all; tree t begins at `roots[t]`.
    """

    names: tuple[str, ...]
    roots: Ints
    feature: Int32s
    number: Floats
    above: Int32s

    @classmethod
    def of(cls, trees: Iterable[Sequence[Node]]) -> Forest:
        """From nodes as model.json has them: {"feature", "at_most", "above"} or {"value"}; checked to be trees."""
        roots: list[int] = []
        feature: list[int] = []
        number: list[float] = []
        above: list[int] = []
        places: dict[str, int] = {}
        for t, tree in enumerate(trees):
            first, count = len(number), len(tree)
            roots.append(first)
            entered = np.zeros(max(count, 1), np.int64)
            entered[0] = 1
            for i, node in enumerate(tree):
                if not entered[i]:
                    raise InputError(f"tree {t}: nothing leads to node {i}")
                leaf = "value" in node
                number.append(float(node["value" if leaf else "at_most"]))
                feature.append(-1 if leaf else places.setdefault(str(node["feature"]), len(places)))
                above.append(0 if leaf else first + int(node["above"]))
                if leaf:
                    continue
                if not i + 1 < int(node["above"]) < count:  # forward only: a row's way ends
                    raise InputError(f"tree {t}, node {i}: 'above' is {node['above']}, not a node after {i + 1}")
                entered[i + 1] += 1
                entered[int(node["above"])] += 1
            if not count or feature[-1] >= 0 or entered.max() > 1:
                raise InputError(f"tree {t} is no tree: a way in it has no end, or two ways meet")
        return cls(
            tuple(places),
            frozen(np.array(roots, np.int64), np.int64),
            frozen(np.array(feature, np.int32), np.int32),
            frozen(np.array(number, np.float64), np.float64),
            frozen(np.array(above, np.int32), np.int32),
        )

    def trees(self) -> list[list[dict[str, Any]]]:
        """The nodes as `of` takes them."""
        ends = [*self.roots.tolist()[1:], len(self.number)]
        feature, number, above = self.feature.tolist(), self.number.tolist(), self.above.tolist()
        return [
            [
                {"value": number[i]}
                if feature[i] < 0
                else {"feature": self.names[feature[i]], "at_most": number[i], "above": above[i] - first}
                for i in range(first, end)
            ]
            for first, end in zip(self.roots.tolist(), ends, strict=True)
        ]


@register
@dataclass(frozen=True, eq=False)
class Trees(Model):
    """A LightGBM ranker. The fields are how to grow it; `settings` are any others of LightGBM's own parameters."""

    kind: ClassVar[str] = "trees"
    rounds: int = 500
    leaves: int = 31
    rate: float = 0.1
    patience: int = 50
    settings: dict[str, Any] = field(default_factory=dict)
    forest: Forest | None = field(default=None, kw_only=True)

    @property
    def ready(self) -> bool:
        return self.forest is not None

    def grown(
        self, train: Candidates, valid: Candidates | None = None, judge: Judge | None = None, seed: int = 0
    ) -> Self:
        """Grown on `train` (unlabelled rows count as label 0), with as many trees as are best on `valid`.

        `judge` gives the measure of scores of `valid`, higher is better; without it LightGBM's own nDCG@10 decides.
        """
        try:
            import lightgbm
        except ImportError:
            raise MissingExtraError("lightgbm", "gbm") from None
        options = {
            "objective": "lambdarank", "num_leaves": self.leaves, "learning_rate": self.rate, "seed": seed,
            "deterministic": True, "force_row_wise": True, "verbosity": -1, "use_missing": False, "eval_at": [10],
            "metric": "ndcg" if judge is None else "none", **self.settings,
        }  # fmt: skip
        told: dict[str, Any] = {}
        if valid is not None:
            told = {
                "valid_sets": [_dataset(lightgbm, valid)],
                "callbacks": [lightgbm.early_stopping(self.patience, verbose=False)],
            }
        if valid is not None and judge is not None:
            judged = judge
            told["feval"] = lambda scores, _: ("measure", judged(np.asarray(scores, np.float64)), True)
        booster = lightgbm.train(options, _dataset(lightgbm, train), self.rounds, **told)
        trees = booster.dump_model(num_iteration=booster.best_iteration or None)["tree_info"]
        names = train.feature_names
        return replace(self, forest=Forest.of([_preorder(tree["tree_structure"], names) for tree in trees]))

    def score(self, candidates: Candidates) -> Floats:
        forest = self._forest()
        rows = (
            feature_matrix(pick_features(candidates, forest.names))
            if forest.names
            else np.empty((len(candidates), 0), np.float32)
        )
        return _leaf_sums(rows, forest.roots, forest.feature, forest.number, forest.above)

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        raise UsageError(
            "trees have no parameters to move: they are grown by LightGBM, with Trees(...).grown(train, valid)"
        )

    def _forest(self) -> Forest:
        if self.forest is None:
            raise UsageError("these trees are not grown yet: call grown(train, valid)")
        return self.forest

    def structure(self) -> dict[str, Any]:
        return {"trees": [{"nodes": tree} for tree in self._forest().trees()]}

    @classmethod
    def restore(cls, structure: Record) -> Self:
        trees = [[_checked(node) for node in tree.records("nodes")] for tree in structure.records("trees")]
        return cls(forest=Forest.of(trees))


def _checked(node: Record) -> Node:
    """A node of a file."""
    if node.has("value"):
        return {"value": node.number("value")}
    return {"feature": node.text("feature"), "at_most": node.number("at_most"), "above": node.integer("above")}


def _dataset(lightgbm: Any, rows: Candidates) -> Any:
    """Queries without rows are left out: LightGBM's groups have none."""
    labels, sizes = np.nan_to_num(rows.labels), rows.sizes
    if (wrong := (labels < 0) | (labels != np.floor(labels))).any():
        raise InputError(f"LightGBM takes labels 0, 1, 2, ...; there is a label {labels[wrong][0]:g}")
    names = [f"f{k}" for k in range(len(rows.feature_names))]  # its own names allow less than ours
    return lightgbm.Dataset(feature_matrix(rows), labels, group=sizes[sizes > 0], feature_name=names)


def _preorder(root: dict[str, Any], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The nodes of one of LightGBM's trees: each is followed by the part where its feature is at most the number."""
    out: list[dict[str, Any]] = []
    waiting: list[tuple[dict[str, Any], int]] = [(root, -1)]
    while waiting:
        node, parent = waiting.pop()
        if parent >= 0:
            out[parent]["above"] = len(out)
        if "split_feature" not in node:
            out.append({"value": float(node["leaf_value"])})
            continue
        if node["decision_type"] != "<=":
            raise UsageError("trees with categorical features can't be kept: give numeric ones")
        out.append({"feature": names[node["split_feature"]], "at_most": float(node["threshold"])})
        waiting.append((node["right_child"], len(out) - 1))
        waiting.append((node["left_child"], -1))
    return out


@parallel_kernel
def _leaf_sums(features: Matrix, roots: Ints, feature: Int32s, number: Floats, above: Int32s) -> Floats:
    rows = len(features)
    out = np.zeros(rows)
    chunks = (rows + 63) // 64
    for c in prange(chunks):
        for t in range(len(roots)):  # a tree at a time: its nodes stay in the cache for some rows
            for row in range(64 * c, min(64 * c + 64, rows)):
                node = roots[t]
                while feature[node] >= 0:
                    node = node + 1 if features[row, feature[node]] <= number[node] else np.int64(above[node])
                out[row] += number[node]
    return out
