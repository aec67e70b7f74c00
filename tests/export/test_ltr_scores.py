"""Scores computed from the exported files, as the engines compute them, are those of our models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_formulas import VespaExpression, plugin_scores, solr_scores, xgboost_dump
from feature_models import NAMES, columns_of, make_rows, trained
from hypothesis import given, settings
from hypothesis import strategies as st

import fliprank as fr
from fliprank.errors import MissingExtraError, UsageError
from fliprank.export import read_export, target_names, targets_for
from fliprank.export.additive import additive
from fliprank.export.elasticsearch_ltr import net_output, tree_definition
from fliprank.export.float32 import at_most, below
from fliprank.export.solr_ltr import model_record, threshold_before_slack
from fliprank.export.vespa_ltr import expression, function_names
from fliprank.models.trees import Forest

ROWS = make_rows(seed=1)
COLUMNS = columns_of(ROWS)
ALONE = ["linear", "net", "trees", "subset", "linears", "nets", "forests"]
TOLERANCE = 1e-6
"""Relative to the spread of scores; float32 has 24 bits."""


def close(found: np.ndarray, model: fr.Model, rows: fr.Candidates = ROWS, within: float = TOLERANCE) -> None:
    wanted = model.score(rows)
    assert np.abs(wanted).max() > 0.01
    np.testing.assert_allclose(found, wanted, rtol=within, atol=within * max(1.0, np.abs(wanted).max()))


def exported(model: fr.Model, to: str, folder: Path) -> dict[str, Any]:
    """The files of an export, those in JSON read."""
    found = read_export(fr.export_model(model, to, folder / to))
    out: dict[str, Any] = {}
    for name in found.files:
        data = (found.folder / name).read_bytes()
        out[name] = json.loads(data) if name.endswith(".json") else data
    return out


def plugin(model: fr.Model, folder: Path, rows: fr.Candidates = ROWS, to: str = "elasticsearch-ltr") -> np.ndarray:
    """Our scores as the plug-in's are told to be: without the constant, or before the logistic function."""
    files = exported(model, to, folder)
    found = plugin_scores(files["model.json"], files["featureset.json"], columns_of(rows)).astype(float)
    function = additive(model)
    if function.kinds == {"linear"}:
        return found + function.bias
    if function.kinds == {"net"}:
        steep, middle = net_output(function)
        return np.log(found / (1.0 - found)) / steep + middle
    return found


@pytest.mark.parametrize("name", ALONE)
def test_the_plug_in_of_elasticsearch_and_opensearch_gives_our_scores(name: str, tmp_path: Path) -> None:
    model = trained()[name]
    near = plugin(model, tmp_path)
    close(near, model, within=5e-6 if "net" in name else TOLERANCE)
    np.testing.assert_array_equal(near, plugin(model, tmp_path, to="opensearch-ltr"))


@pytest.mark.parametrize("name", ALONE)
def test_solr_gives_our_scores(name: str, tmp_path: Path) -> None:
    model = trained()[name]
    record = exported(model, "solr-ltr", tmp_path)["model.json"]
    found = solr_scores(record, COLUMNS).astype(float)
    function = additive(model)
    close(found + (function.bias if function.kinds == {"linear"} else 0.0), model, within=2e-6)


@pytest.mark.parametrize("name", [*ALONE, "blend", "stack"])
def test_vespa_gives_our_scores_to_rounding(name: str, tmp_path: Path) -> None:
    model = trained()[name]
    text = exported(model, "vespa", tmp_path)["fliprank-first-phase.expression"].decode()
    called = function_names(additive(model).features)
    found = VespaExpression(text).value({called[name]: COLUMNS[name] for name in called})
    close(found, model, within=1e-12)


@pytest.mark.parametrize("name", [*ALONE, "blend"])
def test_onnxruntime_gives_our_scores(name: str, tmp_path: Path) -> None:
    model = trained()[name]
    found, rows = onnx_scores(model, tmp_path), len(ROWS)
    assert found.shape == (rows, 1)
    assert found.dtype == np.float32
    close(found[:, 0], model)


def onnx_scores(model: fr.Model, folder: Path, rows: fr.Candidates = ROWS) -> np.ndarray:
    import onnxruntime

    files = exported(model, "onnx", folder)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(files["model.onnx"], options, providers=["CPUExecutionProvider"])
    columns = columns_of(rows)
    given = np.stack([columns[name] for name in files["features.txt"].decode().split()], axis=1)
    (found,) = session.run(["score"], {"features": given})
    return found


def test_missing_values_go_the_same_way_in_vespa_and_onnx_and_are_told_of_elsewhere(tmp_path: Path) -> None:
    rows, other = make_rows(missing=True), make_rows(seed=1, missing=True)
    model = fr.train(fr.Trees(rounds=10, leaves=7, rate=0.3, leaf_rows=5), rows).model
    assert additive(model).routes_missing()
    called, columns = function_names(additive(model).features), columns_of(other)
    text = expression(additive(model), called)
    close(VespaExpression(text).value({called[n]: columns[n] for n in called}), model, other, 1e-12)
    close(onnx_scores(model, tmp_path, other)[:, 0], model, other)
    for target in ("elasticsearch-ltr", "solr-ltr"):
        found = read_export(fr.export_model(model, target, tmp_path / target))
        assert any("NaN" in each for each in found.lost)


@pytest.mark.parametrize("transform", ["log", "saturate", "sigmoid", "signed", "recency"])
def test_every_curve_is_a_vespa_expression(transform: str) -> None:
    name = "year" if transform == "recency" else "depth"
    stack = fr.Stack(fr.Feature("title.bm25"), fr.Feature(name, transform=transform)).prepared(make_rows(), 0)
    model = stack.at(stack.initial(np.random.default_rng(1)))
    called = function_names(additive(model).features)
    close(VespaExpression(expression(additive(model), called)).value({called[n]: COLUMNS[n] for n in called}), model)
    assert targets_for(model) == ["vespa"]


def forest(thresholds: list[float]) -> fr.Trees:
    trees = [
        [{"feature": "title.bm25", "at_most": t, "above": 2}, {"value": -1.0}, {"value": 2.0**-k}]
        for k, t in enumerate(thresholds)
    ]
    return fr.Trees(forest=Forest.of(trees))


def around(threshold: float) -> list[np.float32]:
    """The float32 values on both sides of a threshold, and it."""
    near = np.float32(threshold)
    return [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf)), np.float32(0.0)]


@settings(max_examples=200, deadline=None)
@given(st.floats(-1e30, 1e30) | st.floats(-20, 20) | st.floats(-1e-5, 1e-5))
def test_a_split_takes_the_same_side_for_the_nearest_values(threshold: float) -> None:
    values = np.array(around(threshold))
    model = forest([threshold])
    rows = fr.Candidates.of(np.zeros(len(values)), features=values[:, None], feature_names=["title.bm25"])
    wanted = model.score(rows)
    np.testing.assert_array_equal(xgboost_dump(tree_definition(additive(model)), columns_of(rows)), wanted)
    assert [bool(v <= at_most(threshold)) for v in values] == [bool(v < below(threshold)) for v in values]
    text = expression(additive(model), {"title.bm25": "f"})
    np.testing.assert_array_equal(VespaExpression(text).value({"f": values}), wanted)
    gap = float(at_most(threshold)) - float(threshold_before_slack(threshold) + np.float32(1e-6))
    assert 0.0 <= gap <= np.spacing(np.float32(abs(threshold) + 1e-6))
    there = solr_scores(model_record(additive(model)), columns_of(rows))
    same = (values < float(at_most(threshold)) - gap) | (values > at_most(threshold)) | (gap == 0.0)
    np.testing.assert_array_equal(there[same], wanted[same])


def test_onnx_splits_between_the_nearest_values(tmp_path: Path) -> None:
    thresholds = [0.1, -0.1, 1.0, -1.0, 1e-35, 0.0, 16777217.0, 3.3e-7]
    values = np.array([value for threshold in thresholds for value in around(threshold)])
    rows = fr.Candidates.of(np.zeros(len(values)), features=values[:, None], feature_names=["title.bm25"])
    model = forest(thresholds)
    np.testing.assert_array_equal(onnx_scores(model, tmp_path, rows)[:, 0], model.score(rows).astype(np.float32))


def test_the_evaluator_of_trees_agrees_with_xgboost_on_a_dump_of_its_own() -> None:
    import xgboost

    x = np.asarray(ROWS.features)
    data = xgboost.DMatrix(x, ROWS.labels, feature_names=NAMES)
    booster = xgboost.train({"max_depth": 3, "base_score": 0.0, "objective": "reg:squarederror"}, data, 5)
    trees = [json.loads(text) for text in booster.get_dump(dump_format="json")]
    np.testing.assert_allclose(xgboost_dump(trees, COLUMNS), booster.predict(data), rtol=1e-5, atol=1e-6)
    ours = tree_definition(additive(trained()["trees"]))
    split, leaf = next(t for t in trees if "children" in t), {"nodeid": 0, "leaf": 0.0}
    assert ours[0].keys() == split.keys()
    assert tree_definition(additive(trained()["forests"]))[-1].keys() == leaf.keys()


def test_features_that_do_not_count_are_left_out_and_told(tmp_path: Path) -> None:
    found = read_export(fr.export_model(trained()["linear"], "solr-ltr", tmp_path))
    assert found.settings["features"] == [name for name in NAMES if name != "constant"]
    assert any("left out: constant." in each for each in found.lost)
    assert any("The constant" in each and "dropped" in each for each in found.lost)


def test_the_order_of_documents_is_ours_where_the_score_is_not(tmp_path: Path) -> None:
    files = exported(trained()["net"], "elasticsearch-ltr", tmp_path)
    found = plugin_scores(files["model.json"], files["featureset.json"], COLUMNS)
    wanted = trained()["net"].score(ROWS)
    assert 0.01 < found.min() < found.max() < 0.99
    order = np.argsort(wanted, kind="stable")
    assert (np.diff(found[order]) >= 0).all()


def test_what_an_engine_can_t_compute_is_refused_with_the_reason_and_with_those_that_can(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"not a sum of linear and net and trees; .*targets that can: onnx, vespa$"):
        fr.export_model(trained()["blend"], "solr-ltr", tmp_path)
    index = fr.Index.build([{"_id": "a", "title": "red"}, {"_id": "b", "title": "blue"}])
    terms = fr.BM25F().prepared(index.candidates({"q": "red"}, {"q": {"a": 1}}, depth=2), 0)
    with pytest.raises(UsageError, match="bm25f reads term statistics"):
        fr.export_model(terms, "onnx", tmp_path)
    zero = fr.Linear().prepared(ROWS, 0).at(np.zeros(7))
    with pytest.raises(UsageError, match="all its weights are 0"):
        fr.export_model(zero, "vespa", tmp_path)
    with pytest.raises(UsageError, match="it takes linear models, nets, trees and their sums"):
        fr.export_model(fr.Fusion("qdrant", ["a", "b"]), "onnx", tmp_path)
    net_on_top = fr.Stack(fr.Feature("depth"), hidden=2).prepared(ROWS, 0)
    with pytest.raises(UsageError, match=r"a net on top of other models is no sum"):
        fr.export_model(net_on_top, "vespa", tmp_path)
    assert not (tmp_path / "export.json").exists()


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'fliprank\[onnx\]'"):
        fr.export_model(trained()["linear"], "onnx", tmp_path)


def test_the_same_model_is_the_same_file(tmp_path: Path) -> None:
    for target in targets_for(trained()["net"]):
        first, again = (exported(trained()["net"], target, tmp_path / part) for part in ("a", "b"))
        assert first == again
    assert set(targets_for(trained()["net"])) <= target_names().keys()
