"""Gradient-boosted trees: score = the sum over trees of the value of the leaf that a row falls into.

LightGBM grows them (extra `gbm`), by a call of its own: `Trees(...).grown(train, valid)`. In model.json they are plain
lines, one per node, that a person can read, and a kernel here computes the scores: LightGBM is not needed to rank, and
no file in its own format is trusted. Trees may be a stage of a cascade; they have no parameters for a method to move.

>>> nodes = [{"feature": "bm25", "at_most": 7.5, "above": 2}, {"value": -1.0}, {"value": 0.5}]
>>> rows = Candidates.of([0, 1], features=[[7.0], [8.0]], feature_names=["bm25"])
>>> Trees(forest=Forest.of([nodes])).score(rows).tolist()
[-1.0, 0.5]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

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


LEAF = -1
"""Stands in the place of a feature where a node is a leaf."""


class Nodes(NamedTuple):
    """All nodes of all trees; tree t begins at `roots[t]`.

    From a node, a row goes on to the next node if its `feature` is at most `number`, else to the node `above`, counted
    from the first node of the first tree. The `feature` of a leaf is LEAF, and `number` is its value.
    """

    roots: Ints
    feature: Int32s
    number: Floats
    above: Int32s


@dataclass(frozen=True, eq=False)
class Forest:
    """The nodes of all trees, whose features are numbers of `names`."""

    names: tuple[str, ...]
    nodes: Nodes

    def __len__(self) -> int:
        """How many trees there are."""
        return len(self.nodes.roots)

    @classmethod
    def of(cls, trees: Iterable[Sequence[Node]]) -> Forest:
        """From nodes as in model.json, {"feature", "at_most", "above"} or {"value"}; raises if they are not trees."""
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
                feature.append(LEAF if leaf else places.setdefault(str(node["feature"]), len(places)))
                above.append(0 if leaf else first + int(node["above"]))
                if leaf:
                    continue
                if not i + 1 < int(node["above"]) < count:  # forward only, so that every path ends
                    raise InputError(f"tree {t}, node {i}: 'above' is {node['above']}, not a node after {i + 1}")
                entered[i + 1] += 1
                entered[int(node["above"])] += 1
            if not count or feature[-1] != LEAF or entered.max() > 1:
                raise InputError(f"tree {t} is no tree: a path in it has no end, or two paths meet")
        nodes = Nodes(
            frozen(np.array(roots, np.int64), np.int64),
            frozen(np.array(feature, np.int32), np.int32),
            frozen(np.array(number, np.float64), np.float64),
            frozen(np.array(above, np.int32), np.int32),
        )
        return cls(tuple(places), nodes)

    def trees(self) -> list[list[dict[str, Any]]]:
        """The nodes as `of` takes them."""
        roots, feature, number, above = (array.tolist() for array in self.nodes)
        ends = [*roots[1:], len(number)]
        return [
            [
                {"value": number[i]}
                if feature[i] == LEAF
                else {"feature": self.names[feature[i]], "at_most": number[i], "above": above[i] - first}
                for i in range(first, end)
            ]
            for first, end in zip(roots, ends, strict=True)
        ]


@register
@dataclass(frozen=True, eq=False)
class Trees(Model):
    """A LightGBM ranker. The fields say how to grow it; `settings` has any other parameters of LightGBM."""

    kind: ClassVar[str] = "trees"
    summary: ClassVar[str] = "gradient-boosted trees of the features, grown by LightGBM"
    needs: ClassVar[frozenset[str]] = frozenset({"features"})
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
        """Grown on `train` (unlabelled rows count as label 0), with the number of trees that is best on `valid`.

        `judge` gives the measure of the scores of `valid`, where larger is better; without it, LightGBM's own nDCG@10
        decides.
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
        return _leaf_sums(rows, forest.nodes)

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
    """A node from a file, with its parts checked."""
    if node.has("value"):
        return {"value": node.number("value")}
    return {"feature": node.text("feature"), "at_most": node.number("at_most"), "above": node.integer("above")}


def _dataset(lightgbm: Any, rows: Candidates) -> Any:
    """The rows as LightGBM takes them; queries without rows are left out, since it has no empty groups."""
    labels, sizes = np.nan_to_num(rows.labels), rows.sizes
    if (wrong := (labels < 0) | (labels != np.floor(labels))).any():
        raise InputError(f"LightGBM takes labels 0, 1, 2, ...; there is a label {labels[wrong][0]:g}")
    names = [f"f{k}" for k in range(len(rows.feature_names))]  # LightGBM does not allow every name that we do
    return lightgbm.Dataset(feature_matrix(rows), labels, group=sizes[sizes > 0], feature_name=names)


def _preorder(root: dict[str, Any], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The nodes of one of LightGBM's trees: each is followed by the branch where its feature is at most the number."""
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
def _leaf_sums(features: Matrix, nodes: Nodes) -> Floats:
    rows, (roots, feature, number, above) = len(features), nodes
    out = np.zeros(rows)
    chunks = (rows + 63) // 64
    for c in prange(chunks):
        for t in range(len(roots)):  # one tree at a time: its nodes stay in the cache for all rows of the chunk
            for row in range(64 * c, min(64 * c + 64, rows)):
                node = roots[t]
                while feature[node] != LEAF:
                    node = node + 1 if features[row, feature[node]] <= number[node] else np.int64(above[node])
                out[row] += number[node]
    return out
