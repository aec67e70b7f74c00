"""Stacks and the features of documents: plain formulas, finite differences, names, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_rows import finite_differences
from term_candidates import random_terms

from fliprank.data.candidates import Candidates
from fliprank.data.term_statistics_jsonl import read_statistics
from fliprank.errors import InputError, UsageError
from fliprank.models import BM25, BM25F, AllFeatures, Feature, Linear, Network, Stack, TwoStageLM, load_model

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "text" / "stanford-web"
SEEDS = st.integers(0, 10**9)


def column(values: Any, name: str = "x") -> Candidates:
    return Candidates.of(np.zeros(len(values)), features=np.array(values, float)[:, None], feature_names=[name])


STACKS: dict[str, Stack] = {
    "sum": Stack(BM25F(), Feature("pagerank", "log"), Feature("depth", "sigmoid")),
    "sum with features": Stack(BM25F(share_b=True), AllFeatures(), Feature("age", "saturate")),
    "net": Stack(BM25F(), Feature("pagerank", "saturate"), hidden=3),
    "net with features": Stack(AllFeatures(), BM25F(), TwoStageLM(), hidden=2),
    "features only": Stack(AllFeatures(), hidden=2),
    "nested": Stack(Stack(BM25(), Feature("pagerank", "log")), Linear(), Network(2), BM25F()),
}


def rows_of(rng: np.random.Generator) -> Candidates:
    """Rows to prepare on: at least one, or there is nothing to learn."""
    return random_terms(rng, queries=12)


@pytest.mark.parametrize("name", STACKS)
@given(seed=SEEDS)
@settings(max_examples=12, deadline=None)
def test_pullback_is_the_gradient(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, model = rows_of(np.random.default_rng(1)), STACKS[name]
    ready = model.prepared(rows, rng)
    start = np.maximum(ready.initial(rng), ready.params.lower + 0.02)
    ready = ready.at(np.minimum(start, ready.params.upper - 0.02))
    dscores = rng.normal(size=len(rows))
    expected = finite_differences(ready, rows, dscores)
    assert ready.pullback(rows, dscores) == pytest.approx(expected, rel=1e-4, abs=1e-6 * max(1, np.abs(expected).max()))


def test_a_sum_is_the_weighted_sum_of_its_parts() -> None:
    rows = rows_of(np.random.default_rng(2))
    model = Stack(BM25F(), AllFeatures(), Feature("pagerank", "log")).prepared(rows, 0)
    moved = model.at(model.params.replace({"title.w": 3.0, "pagerank.weight": 0.7, "w.depth": -0.2, "w.age": 0.4}))
    bm25f = BM25F().prepared(rows, 0)
    bm25f = bm25f.at(bm25f.params.replace({"title.w": 3.0}))
    matrix = rows.features.astype(float)
    standard = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)
    pagerank = np.log(matrix[:, 0] + moved.params["pagerank.k"])
    expected = bm25f.score(rows) + 0.7 * pagerank - 0.2 * standard[:, 1] + 0.4 * standard[:, 2]
    assert moved.score(rows) == pytest.approx(expected)


def test_a_net_is_the_net_of_its_standardised_parts() -> None:
    rows = rows_of(np.random.default_rng(3))
    model = Stack(BM25F(), AllFeatures(), Feature("age", "saturate"), hidden=2).prepared(rows, 4)
    parts = [BM25F().prepared(rows, 0).score(rows), Feature("age", "saturate").prepared(rows, 0).score(rows)]
    inputs = np.column_stack([*parts, rows.features.astype(float)])
    inputs = (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)
    params, names = model.params, ("bm25f", "age.part", "pagerank", "depth", "age")
    top = params.values[-(2 * 5 + 2 + 2 + 1) :]
    assert params.names[-15:-10] == tuple(f"w21.1.{name}" for name in names)
    hidden = np.tanh(inputs @ top[:10].reshape(2, 5).T + top[10:12])
    assert model.score(rows) == pytest.approx(top[14] + hidden @ top[12:14])


def test_the_papers_rankers_have_2_9_and_375_parameters() -> None:
    rng = np.random.default_rng(4)
    rows = random_terms(rng, queries=12, fields=4)
    wide = Candidates(
        rows.offsets,
        rows.labels,
        rows.qids,
        None,
        rng.normal(size=(len(rows), 367)),
        tuple(f"f{i}" for i in range(367)),
        rows.terms,
    )
    nine = Stack(BM25F(), Feature("pagerank", transform="log", k=1.0))
    fixed = Stack(BM25(), Feature("pagerank", transform="log", k=1.0), weights={"pagerank": 0.5})
    for model, candidates, count in (
        (BM25(), rows, 2),
        (fixed, rows, 2),
        (nine, rows, 9),
        (Stack(BM25F(), AllFeatures()), wide, 375),
    ):
        assert len(model.prepared(candidates, 0).params.free_names) == count
    assert nine.prepared(rows, 0).params.free_names == (
        *("title.w", "title.b", "body.w", "body.b", "anchor.w", "anchor.b", "url.w", "url.b", "pagerank.weight"),
    )
    assert fixed.prepared(rows, 0).params["pagerank.weight"] == 0.5


def test_names_are_plain_unless_two_parts_have_the_same() -> None:
    rows = rows_of(np.random.default_rng(5))
    params = (
        Stack(BM25F(["title", "body"], share_b=True), BM25("body"), BM25("title"), TwoStageLM())
        .prepared(rows, 0)
        .params
    )
    assert params.names == (
        "bm25f.k", "title.w", "title.b", "body.w", "body.b", "bm25.1.k", "bm25.1.b", "bm25.2.k", "bm25.2.b",
        "lambda", "mu", "bm25f.weight", "bm25.1.weight", "bm25.2.weight", "two_stage_lm.weight",
    )  # fmt: skip
    assert params.free_names[:3] == ("title.w", "bm25f.b", "body.w")
    assert params["bm25f.b"] == 0.75


def test_what_was_fixed_or_set_is_kept() -> None:
    rows = rows_of(np.random.default_rng(6))
    part = BM25F(["title", "body"])
    part = part.at(part.params.replace({"title.w": 4.0}).fix("body.b"))
    model = Stack(part, Feature("pagerank", "log")).prepared(rows, 0)
    assert model.params["title.w"] == 4.0
    assert "body.b" not in model.params.free_names
    fixed = model.at(model.params.replace({"pagerank.weight": 2.0}).fix("title.b"))
    again = fixed.prepared(rows_of(np.random.default_rng(7)), 0)
    assert again.params["pagerank.weight"] == 2.0
    assert "title.b" not in again.params.free_names
    other = again.initialised(5).params
    assert other["title.b"] == again.params["title.b"]
    assert other["title.w"] != 4.0
    other.check_bounds()


def test_a_net_starts_at_random_from_parts_at_their_defaults() -> None:
    rows = rows_of(np.random.default_rng(8))
    one, again, other = (Stack(BM25F(), hidden=2).prepared(rows, seed).params for seed in (1, 1, 2))
    assert one.values.tolist() == again.values.tolist()
    assert one["title.w"] == other["title.w"] == 1.0
    assert one["w32.1"] != other["w32.1"]


@given(SEEDS, st.floats(-3, 3))
@settings(max_examples=15, deadline=None)
def test_scores_are_linear_along_the_weights_of_a_sum(seed: int, x: float) -> None:
    rng = np.random.default_rng(seed)
    rows = rows_of(np.random.default_rng(9))
    model = STACKS["sum with features"].prepared(rows, 0).initialised(rng)
    names = np.array(model.params.free_names)
    top = np.array([name.startswith("w.") or name.endswith(".weight") for name in names])
    along = np.where(top, rng.normal(size=len(names)), 0.0)
    assert model.linear_along(along)
    moved = model.at(model.params.with_free(model.params.free_values + x * along))
    assert moved.score(rows) == pytest.approx(model.score(rows) + x * model.slope(rows, along), rel=1e-9, abs=1e-9)
    along[np.flatnonzero(~top)[seed % (~top).sum()]] = 1.0
    assert not model.linear_along(along)
    with pytest.raises(UsageError, match="linear along the weights of a sum only"):
        model.slope(rows, along)


def test_a_net_is_linear_along_nothing() -> None:
    ready = STACKS["net"].prepared(rows_of(np.random.default_rng(10)), 0)
    along = (np.array(ready.params.free_names) == "w32.1").astype(float)
    assert not ready.linear_along(along)


@pytest.mark.parametrize("name", STACKS)
def test_saved_stacks_come_back(name: str, tmp_path: Path) -> None:
    rows = rows_of(np.random.default_rng(11))
    ready = STACKS[name].prepared(rows, 0).initialised(1)
    ready.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert isinstance(loaded, Stack)
    assert loaded.params.free_names == ready.params.free_names
    np.testing.assert_array_equal(loaded.score(rows), ready.score(rows))
    ones = np.ones(len(rows))
    np.testing.assert_array_equal(loaded.pullback(rows, ones), ready.pullback(rows, ones))
    few = rows.select([3, 5])
    np.testing.assert_array_equal(loaded.score(few), ready.score(few))


def test_several_chunks_are_as_one() -> None:
    rows = random_terms(np.random.default_rng(12), queries=300, rows=100)
    assert len(rows) > 8192
    model, dscores = STACKS["net with features"].prepared(rows, 0), np.linspace(-1, 1, len(rows))
    parts = [rows.select(range(a, a + 60)) for a in range(0, 300, 60)]
    assert model.score(rows).tolist() == np.concatenate([model.score(part) for part in parts]).tolist()
    cuts = rows.offsets[::60]
    by_part = sum(model.pullback(part, dscores[cuts[i] : cuts[i + 1]]) for i, part in enumerate(parts))
    assert model.pullback(rows, dscores) == pytest.approx(by_part)


def test_a_penalty_holds_weights_and_what_parts_hold() -> None:
    rows = rows_of(np.random.default_rng(13))
    ready = Stack(Linear(), TwoStageLM()).prepared(rows, 0)
    held = dict(zip(ready.params.names, ready.penalty_weights.tolist(), strict=True))
    assert (held["bias"], held["w.age"], held["mu"], held["linear.weight"]) == (0, 1, 0.25, 1)
    net = STACKS["net"].prepared(rows, 0)
    held = dict(zip(net.params.names, net.penalty_weights.tolist(), strict=True))
    assert (held["w21.1.bm25f"], held["b2.1"], held["b3"]) == (1, 0, 0)


def damaged(content: Any, change: Any) -> Any:
    """`content` with what stands at a path replaced."""
    path, value = change
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return content


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((["structure", "parts"], []), "a stack is made of models"),
        ((["structure", "parts"], {}), "a list of objects"),
        ((["structure", "parts", 0, "kind"], "os.system"), r"parts\[0\].kind: expected one of"),
        ((["structure", "parts", 0, "structure"], {}), r"parts\[0\].structure.fields"),
        ((["structure", "parts", 1], {"kind": "all_features"}), "structure: expected an object"),
        ((["structure", "parts", 1, "structure", "transform"], "cube"), "transform: one of"),
        ((["structure", "hidden"], -1), "number of nodes"),
        ((["structure", "hidden"], 10**9), "parameters"),
        ((["structure", "inputs"], []), "one for each part"),
        ((["structure", "inputs", 0, "mean"], "x"), "a finite number"),
        ((["parameters", 0, "name"], "kk"), "'kk' in place of 'k'"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, change: Any, said: str) -> None:
    STACKS["net"].prepared(rows_of(np.random.default_rng(14)), 0).save(tmp_path / "m")
    path = tmp_path / "m" / "model.json"
    path.write_text(json.dumps(damaged(json.loads(path.read_text()), change)))
    with pytest.raises(InputError, match=said):
        load_model(tmp_path / "m")


def test_stacks_in_stacks_in_stacks_without_end_are_refused(tmp_path: Path) -> None:
    Stack(Feature("pagerank")).prepared(rows_of(np.random.default_rng(15)), 0).save(tmp_path / "m")
    path = tmp_path / "m" / "model.json"
    content = json.loads(path.read_text())
    for _ in range(100):
        content["structure"] = {"parts": [{"kind": "stack", "structure": content["structure"]}]}
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="to a depth of 16"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: Stack(), UsageError, "a stack is made of models"),
        (lambda: Stack("bm25"), UsageError, "a stack is made of models"),
        (lambda: Stack(AllFeatures(), AllFeatures()), UsageError, "given twice"),
        (lambda: Stack(BM25(), hidden=-2), UsageError, "number of nodes"),
        (lambda: Stack(BM25(), hidden=2, weights={"bm25": 2}), UsageError, "no weights by part"),
        (lambda: Stack(BM25()).score(column([1])), UsageError, r"call prepared\(train, rng\)"),
        (lambda: Stack(BM25()).save("nowhere"), UsageError, "nothing to save yet"),
        (lambda: Stack(Feature("x"), weights={"y": 1}).prepared(column([1]), 0), UsageError, "no part is called 'y'"),
        (lambda: Stack(Feature("x")).prepared(column([1]), 0).at([1, 2]), UsageError, "expected 1 numbers"),
        (lambda: Feature("x", "cube"), UsageError, "transform: one of none, log, saturate, sigmoid"),
        (lambda: Feature("x", "log", k=0), UsageError, "k must be a positive number"),
        (lambda: Feature("x", k=2), UsageError, "k must be a positive number, for a curve"),
        (lambda: Feature("x", "log", newest=2.0), UsageError, "newest is a date, for recency"),
        (lambda: Feature("x", "log").score(column([1])), UsageError, "has no k yet"),
        (lambda: Feature("y").score(column([1])), InputError, "no feature 'y' .*they have: x"),
        (lambda: Feature("x").score(column([np.nan, 1])), InputError, "in 1 of 2 rows"),
    ],
)
def test_wrong_use_is_told(make: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make()


CURVES = {
    "none": lambda x, k, a: x,
    "log": lambda x, k, a: np.log(k + x),
    "saturate": lambda x, k, a: x / (x + k),
    "sigmoid": lambda x, k, a: x**a / (x**a + k**a),
    "signed": lambda x, k, a: x / (np.abs(x) + k),
    "recency": lambda x, k, a: np.where(x > 0, k / (k + x.max() - x), 0.0),
}


@pytest.mark.parametrize("transform", CURVES)
@given(seed=SEEDS)
@settings(max_examples=15, deadline=None)
def test_curves_are_their_formulas_with_their_derivatives(transform: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.float32(rng.exponential(3, 30) * (rng.random(30) < 0.8)).astype(float)
    if transform == "signed":
        x *= rng.choice([-1.0, 1.0], 30)
    rows, k, a = column(x), rng.uniform(0.3, 9), rng.uniform(0.3, 4)
    ready = Feature("x", transform).prepared(rows, 0)
    ready = ready.at([k, a][: len(ready.params)])
    assert ready.score(rows) == pytest.approx(CURVES[transform](x, k, a))
    dscores = rng.normal(size=30)
    expected = finite_differences(ready, rows, dscores)
    assert ready.pullback(rows, dscores) == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_k_starts_at_the_median_of_positive_values_and_stays_in_their_units() -> None:
    for unit in (1e-9, 1.0, 1e9):
        rows = column(np.array([0, 0, 1, 3, 8]) * unit)
        ready = Feature("x", "sigmoid").prepared(rows, 0)
        assert ready.params["x.k"] == pytest.approx(3 * unit)
        assert ready.score(rows) == pytest.approx([0, 0, 0.25, 0.5, 8 / 11])
    assert Feature("x", "log").prepared(column([0.0, -1.0]), 0).params["x.k"] == 1.0
    assert Feature("x", "log", k=7).params.free_names == ()
    assert Feature("x", "signed").prepared(column([0.0, -1.0, 3.0, -5.0]), 0).params["x.k"] == 3.0


def test_recency_counts_from_the_newest_and_what_has_no_date_scores_0(tmp_path: Path) -> None:
    rows = column([730_000.0, 729_990.0, 729_900.0, 0.0, -3.0])
    ready = Feature("x", "recency").prepared(rows, 0)
    assert (ready.newest, ready.params["x.k"]) == (730_000.0, 55.0)
    assert ready.score(rows) == pytest.approx([1, 55 / 65, 55 / 155, 0, 0], abs=1e-20)
    assert ready.pullback(rows, [0, 0, 0, 1, 1]) == pytest.approx([0], abs=1e-20)
    assert ready.score(column([730_400.0])).tolist() == [1.0]  # newer than all that it knew
    assert ready.prepared(column([735_000.0]), 0).newest == 730_000.0
    stack = Stack(ready, Feature("x", "signed")).prepared(rows, 0)
    stack.save(tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").score(rows), stack.score(rows))
    given = Feature("x", "recency", k=10.0, newest=730_010.0)
    assert given.ready
    assert given.score(rows)[:2] == pytest.approx([0.5, 1 / 3])
    fixed = Feature("x", "recency", k=10.0)
    assert not fixed.ready
    assert fixed.prepared(rows, 0).params["x.k"] == 10.0
    assert fixed.prepared(column([0.0, 0.0]), 0).score(column([0.0])) == pytest.approx([0], abs=1e-20)


@pytest.mark.parametrize("transform", ["log", "saturate", "sigmoid"])
def test_values_below_0_count_as_0_and_the_largest_do_not_overflow(transform: str) -> None:
    ready = Feature("x", transform).prepared(column([1.0]), 0)
    for model in (ready, ready.at(np.append(ready.params.lower[:1], [20.0])[: len(ready.params)])):
        low, zero, high = model.score(column([-5.0, 0.0, 3e38]))
        assert low == zero
        assert np.isfinite([low, high]).all()
        assert np.isfinite(model.pullback(column([-5.0, 0.0, 3e38, 1e-45]), np.ones(4))).all()


def test_training_on_real_statistics_uses_the_static_feature() -> None:
    from fliprank.objectives import parse_objective
    from fliprank.optimize.fit import Recorder
    from fliprank.optimize.methods import Lbfgs
    from fliprank.optimize.problem import Problem

    path = DATA / "2014-train.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    rows, models = read_statistics(path), []
    for model in (BM25F(), Stack(BM25F(), Feature("pagerank", transform="log"))):
        ready, objective = model.prepared(rows, 0), parse_objective("ranknet")
        problem = Problem.of(ready, rows, "nDCG(dcg='exp-log2')@10", objective)
        recorder = Recorder(problem)
        Lbfgs(epochs=30, l2=0).run(problem, recorder, np.random.default_rng(0))
        models.append(recorder.fit())
    alone, both = models
    assert both.trail[0].train == alone.trail[0].train
    assert min(e.objective for e in both.trail) < min(e.objective for e in alone.trail)
    assert both.best.train > both.trail[0].train + 0.01
    assert both.model.params["pagerank.weight"] > 0
