"""Gradient-boosted trees: score = the sum over trees of the value of the leaf that a row falls into.

LightGBM grows them (extra `gbm`); `train` grows them to any objective (`experiment/growing.py`). In model.json they are
plain lines, one per node, that a person can read, and a kernel here computes the scores: LightGBM is not needed to
rank, and no file in its own format is trusted. Trees have no parameters for a method to move. A feature that is not a
number (NaN) goes to the side of a split that LightGBM chose for it.

>>> nodes = [{"feature": "bm25", "at_most": 7.5, "above": 2}, {"value": -1.0}, {"value": 0.5}]
>>> rows = Candidates.of([0, 1], features=[[7.0], [8.0]], feature_names=["bm25"])
>>> Trees(forest=Forest.of([nodes])).score(rows).tolist()
[-1.0, 0.5]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fliprank.arrays import Floats, Int32s, Ints, Matrix, frozen
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, MissingExtraError, UsageError
from fliprank.kernels import parallel_kernel, prange
from fliprank.models.base import Model, register
from fliprank.models.feature_subset import feature_places, pick_features
from fliprank.models.folder import Record
from fliprank.models.scaler import feature_matrix

__all__ = ["Forest", "Trees"]

Push = Callable[[Floats], tuple[Floats, Floats]]
"""From the scores of the training rows to the gradient that the next tree descends, and a curvature above 0."""

Node = Mapping[str, Any]


LEAF = -1
"""Stands in the place of a feature where a node is a leaf."""

MISSING = {"": 0, "at_most": 1, "above": 2}
"""Where a row goes whose feature is NaN: nowhere (an error), where small numbers go, where large numbers go."""

AT_MOST = MISSING["at_most"]


class Sprout(NamedTuple):
    """A new tree, and the scores of the training rows with it."""

    tree: Forest
    scores: Floats


class Nodes(NamedTuple):
    """All nodes of all trees; tree t begins at `roots[t]`.

    From a node, a row goes on to the next node if its `feature` is at most `number`, else to the node `above`, counted
    from the first node of the first tree. `missing` says where a row goes whose feature is NaN. The `feature` of a leaf
    is LEAF, and `number` is its value.
    """

    roots: Ints
    feature: Int32s
    number: Floats
    above: Int32s
    missing: Int32s


@dataclass(frozen=True, eq=False, repr=False)
class Forest:
    """The nodes of all trees, whose features are numbers of `names`."""

    names: tuple[str, ...]
    nodes: Nodes

    def __len__(self) -> int:
        """How many trees there are."""
        return len(self.nodes.roots)

    @classmethod
    def of(cls, trees: Iterable[Sequence[Node]]) -> Forest:
        """From nodes as in model.json, {"feature", "at_most", "above"} or {"value"}; raises if they are not trees.

        A row whose feature is NaN goes where "missing" says, "at_most" or "above"; without that it can't be scored.
        """
        roots: list[int] = []
        feature: list[int] = []
        number: list[float] = []
        above: list[int] = []
        missing: list[int] = []
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
                missing.append(MISSING[node.get("missing", "")])
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
            frozen(np.array(missing, np.int32), np.int32),
        )
        return cls(tuple(places), nodes)

    @classmethod
    def joined(cls, forests: Sequence[Forest], share: float = 1.0) -> Forest:
        """The forest whose scores are `share` times the sum of those of others: all their trees."""
        return cls.of(
            [{**node, "value": share * node["value"]} if "value" in node else node for node in tree]
            for forest in forests
            for tree in forest.trees()
        )

    def score(self, candidates: Candidates) -> Floats:
        """The sum over trees of the value of each row's leaf."""
        columns = np.array(feature_places(candidates, self.names), np.int64)
        if not len(columns):
            return _leaf_sums(np.empty((len(candidates), 0), np.float32), columns, self.nodes)
        missing = _missing(candidates)
        if missing.any():
            refused = self.nodes.feature[(self.nodes.missing == MISSING[""]) & (self.nodes.feature != LEAF)]
            if missing[columns[refused]].any():
                feature_matrix(pick_features(candidates, self.names))  # raises, and says which
        return _leaf_sums(_features(candidates), columns, self.nodes)

    def trees(self) -> list[list[dict[str, Any]]]:
        """The nodes as `of` takes them."""
        roots, feature, number, above, missing = (array.tolist() for array in self.nodes)
        words = {code: word for word, code in MISSING.items()}
        ends = [*roots[1:], len(number)]
        return [
            [
                {"value": number[i]}
                if feature[i] == LEAF
                else {"feature": self.names[feature[i]], "at_most": number[i], "above": above[i] - first}
                | ({"missing": words[missing[i]]} if missing[i] else {})
                for i in range(first, end)
            ]
            for first, end in zip(roots, ends, strict=True)
        ]


@register
@dataclass(frozen=True, eq=False)
class Trees(Model):
    """Boosted trees. The fields say how to grow them; `settings` has any other parameters of LightGBM.

    `leaves` per tree, the learning `rate`, and `leaf_rows`, the least number of rows in a leaf: where these are None,
    `train` chooses them on validation queries. There are at most `rounds` trees (500 with validation queries, 100
    without), and no more are grown when the last `patience` of them gained nothing.
    """

    kind: ClassVar[str] = "trees"
    summary: ClassVar[str] = "gradient-boosted trees of the features, grown by LightGBM"
    needs: ClassVar[frozenset[str]] = frozenset({"features"})
    rounds: int | None = None
    leaves: int | None = None
    rate: float | None = None
    leaf_rows: int | None = None
    patience: int = 50
    settings: dict[str, Any] = field(default_factory=dict)
    forest: Forest | None = field(default=None, kw_only=True)

    @property
    def ready(self) -> bool:
        return self.forest is not None

    def __repr__(self) -> str:
        return super().__repr__() if self.forest is None else f"Trees({len(self.forest):,} trees)"

    def sprouts(self, train: Candidates, push: Push | None = None, seed: int = 0, threads: int = 0) -> Iterator[Sprout]:
        """One new tree after the other, without end until LightGBM finds nothing to split.

        Each descends what `push` says at the scores of the trees so far, which are 0 at first; without it, the cost of
        LightGBM's own lambdarank, where unlabelled rows count as label 0.
        """
        lightgbm = import_lightgbm()
        least = 20 if self.leaf_rows is None else self.leaf_rows
        if len(train) < 2 * least:
            return
        options = {
            "objective": "lambdarank" if push is None else "none", "num_leaves": self.leaves or 31,
            "learning_rate": self.rate or 0.1, "min_data_in_leaf": least,
            "seed": seed, "deterministic": True, "force_row_wise": True, "verbosity": -1, "num_threads": threads,
            "use_missing": bool(_missing(train).any()), **self.settings,
        }  # fmt: skip
        booster = lightgbm.Booster(options, _dataset(lightgbm, train, labelled=push is None))
        scores, number = np.zeros(len(train)), 0

        def step() -> bool:
            """Grow one tree; returns whether there was nothing to split."""
            try:
                return bool(booster.update() if push is None else booster.update(fobj=lambda *_: push(scores)))
            except lightgbm.basic.LightGBMError as error:
                if "num_features()) > (0)" in str(error):  # all features are constant
                    return True
                raise

        while not step():
            (tree,) = booster.dump_model(start_iteration=number, num_iteration=1)["tree_info"]
            forest, number = Forest.of([_preorder(tree["tree_structure"], train.feature_names)]), number + 1
            scores = scores + forest.score(train)
            yield Sprout(forest, scores)

    def score(self, candidates: Candidates) -> Floats:
        return self._forest().score(candidates)

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        raise UsageError("trees have no parameters to move: they are grown, by train(Trees(), train, valid)")

    def _forest(self) -> Forest:
        if self.forest is None:
            raise UsageError("these trees are not grown yet: call train(Trees(), train, valid)")
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
    split = {"feature": node.text("feature"), "at_most": node.number("at_most"), "above": node.integer("above")}
    if not node.has("missing"):
        return split
    if node.text("missing") not in MISSING:
        node.fail("missing", "'at_most' or 'above'")
    return split | {"missing": node.text("missing")}


def import_lightgbm() -> Any:
    """The module; raises an error that names the extra if it is not installed."""
    try:
        import lightgbm
    except ImportError:
        raise MissingExtraError("lightgbm", "gbm") from None
    return lightgbm


def _features(rows: Candidates) -> Matrix:
    """The features, which may be NaN but not infinite, as of all candidates."""
    return feature_matrix(rows) if rows.features is None else rows.features


def _missing(rows: Candidates) -> NDArray[np.bool_]:
    """Which features are NaN in some row; looked up once."""
    if "features with NaN" not in rows.memo:
        rows.memo["features with NaN"] = np.isnan(_features(rows)).any(axis=0)
    out: NDArray[np.bool_] = rows.memo["features with NaN"]
    return out


def _dataset(lightgbm: Any, rows: Candidates, labelled: bool) -> Any:
    """The rows as LightGBM takes them; queries without rows are left out, since it has no empty groups."""
    labels, sizes = np.nan_to_num(rows.labels), rows.sizes
    if labelled and (wrong := (labels < 0) | (labels != np.floor(labels))).any():
        raise InputError(f"LightGBM takes labels 0, 1, 2, ...; there is a label {labels[wrong][0]:g}")
    names = [f"f{k}" for k in range(len(rows.feature_names))]  # LightGBM does not allow every name that we do
    return lightgbm.Dataset(
        _features(rows), labels, group=sizes[sizes > 0], feature_name=names, params={"verbosity": -1}
    )


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
        if node.get("missing_type", "None") != "None":
            out[-1]["missing"] = "at_most" if node["default_left"] else "above"
        waiting.append((node["right_child"], len(out) - 1))
        waiting.append((node["left_child"], -1))
    return out


@parallel_kernel
def _leaf_sums(features: Matrix, columns: Ints, nodes: Nodes) -> Floats:
    rows, (roots, feature, number, above, missing) = len(features), nodes
    out = np.zeros(rows)
    chunks = (rows + 63) // 64
    for c in prange(chunks):
        for t in range(len(roots)):  # one tree at a time: its nodes stay in the cache for all rows of the chunk
            for row in range(64 * c, min(64 * c + 64, rows)):
                node = roots[t]
                while feature[node] != LEAF:
                    value = features[row, columns[feature[node]]]
                    below = value <= number[node] or (missing[node] == AT_MOST and np.isnan(value))
                    node = node + 1 if below else np.int64(above[node])
                out[row] += number[node]
    return out
