"""Trees: LightGBM grows them, our kernel scores as it does, and files that are no trees are refused."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.candidates import Candidates
from fliprank.data.letor import read_letor, write_letor
from fliprank.errors import InputError, UsageError
from fliprank.models import load_model
from fliprank.models.trees import Forest, Trees, _preorder

lightgbm = pytest.importorskip("lightgbm")
FEATURES = 6


def rows(seed: int, queries: int = 60) -> Candidates:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(15 * queries, FEATURES)).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = 0.0
    labels = np.clip(np.round(x[:, 0] * x[:, 1] + 0.3 * rng.normal(size=len(x))), 0, 4)
    labels[rng.random(len(x)) < 0.1] = np.nan
    names = [f"f {k}:" for k in range(FEATURES)]  # names that LightGBM itself would not take
    return Candidates.of(labels, group=[15] * queries, features=x, feature_names=names)


def test_scores_are_lightgbm_s_own(tmp_path: Path) -> None:
    train, test = rows(0), rows(1)
    data = lightgbm.Dataset(train.features, np.nan_to_num(train.labels), group=train.sizes)
    booster = lightgbm.train({"objective": "lambdarank", "verbosity": -1, "use_missing": False}, data, 40)
    nodes = [_preorder(tree["tree_structure"], train.feature_names) for tree in booster.dump_model()["tree_info"]]
    model = Trees(forest=Forest.of(nodes))
    np.testing.assert_allclose(model.score(test), booster.predict(test.features), rtol=1e-12, atol=1e-13)
    assert model.forest is not None
    assert model.forest.trees() == nodes
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").score(test), model.score(test))
    assert not [path for path in (tmp_path / "m").iterdir() if path.name != "model.json"]


def test_trees_one_by_one_are_those_that_lightgbm_grows_at_once() -> None:
    train, test = rows(0), rows(1)
    settings = {"num_leaves": 7, "learning_rate": 0.2, "min_data_in_leaf": 30, "seed": 3, "deterministic": True}
    settings |= {"objective": "lambdarank", "verbosity": -1, "use_missing": False, "force_row_wise": True}
    data = lightgbm.Dataset(train.features, np.nan_to_num(train.labels), group=train.sizes)
    booster = lightgbm.train(settings, data, 12)
    sprouts = list(islice(Trees(leaves=7, rate=0.2, leaf_rows=30).sprouts(train, seed=3), 12))
    model = Trees(forest=Forest.joined([sprout.tree for sprout in sprouts]))
    np.testing.assert_allclose(model.score(test), booster.predict(test.features), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(model.score(train), sprouts[-1].scores, rtol=1e-12, atol=1e-13)
    half = Forest.joined([sprout.tree for sprout in sprouts], 0.5)
    np.testing.assert_allclose(half.score(test), 0.5 * model.score(test), rtol=1e-12, atol=1e-13)


def test_a_leaf_is_minus_the_rate_times_the_gradients_over_the_curvatures_of_its_rows() -> None:
    train, rng = rows(0), np.random.default_rng(7)
    pushes = [(rng.normal(size=len(train)), rng.uniform(0.5, 2.0, len(train))) for _ in range(3)]
    seen: list[np.ndarray] = []

    def push(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen.append(scores)
        return pushes[len(seen) - 1]

    before = np.zeros(len(train))
    for (tree, scores), (gradient, curvature) in zip(
        Trees(leaves=5, rate=0.3).sprouts(train, push), pushes, strict=False
    ):
        np.testing.assert_array_equal(seen[-1], before)
        own = tree.score(train)
        for value in np.unique(own):
            leaf = own == value
            assert leaf.sum() >= 20
            assert value == pytest.approx(-0.3 * gradient[leaf].sum() / curvature[leaf].sum(), rel=1e-5, abs=1e-6)
        assert len(np.unique(own)) == 5
        before = scores
        if len(seen) == len(pushes):
            break


def test_the_same_seed_gives_the_same_trees() -> None:
    half = Trees(settings={"feature_fraction": 0.5})
    a, b, c = (list(islice(half.sprouts(rows(0), seed=seed), 5))[-1].scores for seed in (3, 3, 4))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_a_missing_feature_goes_where_lightgbm_sends_it(tmp_path: Path) -> None:
    whole, test = rows(0), rows(1)
    rng = np.random.default_rng(2)
    holes = [np.where(rng.random(r.features.shape) < 0.3, np.nan, r.features) for r in (whole, test)]
    for x in holes:
        x[:, 5] = 0.5
        x[:9, 5] = -1.0
    train, other = (replace(r, features=x) for r, x in zip((whole, test), holes, strict=True))
    settings = {"objective": "lambdarank", "verbosity": -1, "num_leaves": 15, "deterministic": True, "seed": 0}
    data = lightgbm.Dataset(train.features, np.nan_to_num(train.labels), group=train.sizes)
    booster = lightgbm.train({**settings, "min_data_in_leaf": 5, "force_row_wise": True}, data, 20)
    sprouts = islice(Trees(leaves=15, leaf_rows=5).sprouts(train), 20)
    model = Trees(forest=Forest.joined([sprout.tree for sprout in sprouts]))
    np.testing.assert_allclose(model.score(other), booster.predict(other.features), rtol=1e-12, atol=1e-13)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").score(other), model.score(other))
    told = (tmp_path / "m" / "model.json").read_text()
    assert {'"missing": "at_most"' in told, '"missing": "above"' in told} == {True}
    (tmp_path / "m" / "model.json").write_text(told.replace('"missing": "above"', '"missing": "left"', 1))
    with pytest.raises(InputError, match=r"missing: expected 'at_most' or 'above', found 'left'"):
        load_model(tmp_path / "m")


def test_a_missing_feature_is_refused_where_training_knew_none() -> None:
    train = rows(0)
    (sprout,) = islice(Trees(leaves=2).sprouts(train), 1)
    used = train.feature_names.index(*sprout.tree.names)
    for column in (used, 5 - used):
        x = rows(1).features.copy()
        x[4, column] = np.nan
        holes = replace(rows(1), features=x)
        if column == used:
            with pytest.raises(InputError, match=rf"not finite numbers: f {used}: in 1 of 900 rows"):
                sprout.tree.score(holes)
        else:
            np.testing.assert_array_equal(sprout.tree.score(holes), sprout.tree.score(rows(1)))


def test_a_forest_ranks_without_lightgbm(tmp_path: Path) -> None:
    write_letor(tmp_path / "rows.txt", rows(1))
    code = (
        "import sys; sys.modules['lightgbm'] = None\n"
        "import fliprank as fr\n"
        "model, rows = fr.load_model(sys.argv[1]), fr.read_letor(sys.argv[2])\n"
        "print(*map(repr, model.score(rows).tolist()))\n"
        "try: fr.train(fr.Trees(), rows)\n"
        "except fr.FliprankError as error: print(error)"
    )
    renamed = replace(rows(0), feature_names=tuple(str(k + 1) for k in range(FEATURES)))
    sprouts = islice(Trees(leaves=7).sprouts(renamed), 5)
    model = Trees(forest=Forest.joined([sprout.tree for sprout in sprouts]))
    model.save(tmp_path / "m")
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "m", tmp_path / "rows.txt"], capture_output=True, text=True, check=True
    )
    scores, error = done.stdout.splitlines()
    np.testing.assert_array_equal(
        [float(word) for word in scores.split()], model.score(read_letor(tmp_path / "rows.txt"))
    )
    assert error == "lightgbm is not installed: pip install 'fliprank[gbm]'"


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(-2, 2), st.integers(0, 5)), max_size=12), st.integers(0, 999))
@settings(max_examples=60, deadline=None)
def test_a_row_gets_the_value_of_its_leaf(splits: list[tuple[int, float, int]], seed: int) -> None:
    rng, names = np.random.default_rng(seed), ("a", "b", "c")
    # Grow a nested tree by splitting random leaves; score by walking it.
    root: dict[str, Any] = {"leaf_value": 0.0}
    leaves = [root]
    for feature, threshold, which in splits:
        leaf = leaves.pop(which % len(leaves))
        kids = [{"leaf_value": float(rng.normal())} for _ in range(2)]
        leaf.clear()
        leaf |= {"split_feature": feature, "threshold": threshold, "decision_type": "<="}
        leaf |= {"left_child": kids[0], "right_child": kids[1]}
        leaves += kids
    x = rng.normal(size=(70, 3)).astype(np.float32)
    expected = []
    for row in x:
        node = root
        while "split_feature" in node:
            node = node["left_child" if row[node["split_feature"]] <= node["threshold"] else "right_child"]
        expected.append(node["leaf_value"])
    found = Trees(forest=Forest.of([_preorder(root, names)])).score(
        Candidates.of(np.zeros(70), features=x, feature_names=names)
    )
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([], "no tree"),
        ([{"feature": "a", "at_most": 0.0, "above": 1}, {"value": 1.0}], "'above' is 1"),
        ([{"feature": "a", "at_most": 0.0, "above": 0}, {"value": 1.0}, {"value": 1.0}], "'above' is 0"),
        ([{"feature": "a", "at_most": 0.0, "above": 9}, {"value": 1.0}, {"value": 1.0}], "'above' is 9"),
        ([{"value": 1.0}, {"value": 2.0}], "nothing leads to node 1"),
        ([{"feature": "a", "at_most": 0.0, "above": 2}, {"feature": "a", "at_most": 0.0, "above": 3}]
         + [{"value": 1.0}] * 2, "two paths meet"),
    ],
)  # fmt: skip
def test_what_is_no_tree_is_refused(nodes: list[Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Forest.of([nodes])


def test_trees_have_no_gradient_and_odd_labels_are_refused() -> None:
    with pytest.raises(UsageError, match="no parameters to move"):
        Trees().pullback(rows(0), np.zeros(900))
    with pytest.raises(UsageError, match="not grown yet"):
        Trees().score(rows(0))
    with pytest.raises(InputError, match=r"a label 0\.5"):
        next(Trees(leaf_rows=1).sprouts(Candidates.of([0.5, 0, 1], features=np.eye(3))))
