"""Trees: LightGBM grows them, our kernel scores as it does, and files that are no trees are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.measures import parse_measure
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


def test_the_measure_on_validation_queries_chooses_how_many_trees() -> None:
    train, valid, measure = rows(0), rows(1), parse_measure("AP")
    seen: list[float] = []

    def judge(scores: np.ndarray) -> float:
        seen.append(float(measure.per_query(scores, valid).mean()))
        return seen[-1]

    model = Trees(rounds=60, leaves=7, patience=10).grown(train, valid, judge)
    assert model.forest is not None
    assert len(model.forest) == int(np.argmax(seen)) + 1 < len(seen)
    assert measure.per_query(model.score(valid), valid).mean() == pytest.approx(max(seen))
    untrained = measure.per_query(np.zeros(len(valid)), valid).mean()
    assert max(seen) > untrained + 0.1  # it learns x0 * x1, which no linear model can


def test_the_same_seed_gives_the_same_trees() -> None:
    a, b = (Trees(rounds=5).grown(rows(0), seed=3).score(rows(1)) for _ in range(2))
    np.testing.assert_array_equal(a, b)


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
        Trees().grown(Candidates.of([0.5, 0, 1], features=np.eye(3)))
