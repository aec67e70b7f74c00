"""Fused scores equal the plain formula of each engine; gradients equal finite differences; lines are exact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fusion_formulas import CASES, NAMES, Case, fused, random_lists, rows_of

import fliprank as fr
from fliprank.data.ranked_lists import RankedLists
from fliprank.models.fusion import ENGINES, Fusion
from fliprank.models.fusion.engines import make_rule
from fliprank.models.registry import make_model
from fliprank.optimize.problem import Problem

SEED = 20261118


def name_of(case: Case) -> str:
    return f"{case[0]}-{'-'.join(str(value) for value in case[1].values())}-{case[2]}"


def model_of(case: Case) -> Fusion:
    return Fusion(case[0], NAMES[: case[2]], **case[1]).at(case[3])


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_fused_scores_are_those_of_the_plain_formula(case: Case) -> None:
    lists = random_lists(np.random.default_rng(SEED), case[2])
    rows = rows_of(lists)
    found = fused(rows, model_of(case).score(rows))
    for query, each in lists.items():
        expected = case[4](each)
        assert found[query].keys() == expected.keys()
        for doc, value in expected.items():
            assert found[query][doc] == pytest.approx(value, rel=1e-9, abs=1e-12), (query, doc)


def test_every_engine_has_a_formula_here() -> None:
    assert {case[0] for case in CASES} | {"plain"} == set(ENGINES)


def smooth_rows(rng: np.random.Generator, count: int) -> fr.Candidates:
    """Lists without ties, one of them of one document and one empty."""
    lists = {}
    for q in range(6):
        each = []
        for _ in range(count):
            docs = rng.choice(9, int(rng.integers(3, 8)), replace=False)
            each.append([(f"d{i}", float(s)) for i, s in zip(docs, rng.gamma(3.0, 1.0, len(docs)), strict=True)])
        lists[f"q{q}"] = each
    lists["q0"][0], lists["q1"][-1] = lists["q0"][0][:1], []
    return rows_of(lists)


PLAIN: list[Case] = [
    ("plain", {"normalise": norm, "combine": combine, **more}, 2, [0.7, 1.6], lambda x: {})
    for norm in ("none", "minmax", "l2", "dbsf", "cosine", "ip", "bm25")
    for combine in ("sum", "arithmetic", "geometric", "harmonic")
    for more in ({}, {"missing": None}, {"missing": 0.2})
] + [
    ("plain", {"normalise": ["minmax", "zscore"], "lower": 0.5, "upper": 4.0}, 2, [0.7, 1.6], lambda x: {}),
    ("plain", {"normalise": "minmax", "upper": 20.0}, 2, [0.7, 1.6], lambda x: {}),
    ("plain", {"normalise": ["rank", "minmax", "l2"], "combine": "geometric"}, 3, [0.7, 1.6, 1, 9], lambda x: {}),
    ("plain", {"normalise": "minmax", "combine": "max"}, 3, [], lambda x: {}),
]  # fmt: skip


@pytest.mark.parametrize("case", [*CASES, *PLAIN], ids=name_of)
def test_gradients_by_parameters_and_by_scores_are_those_of_finite_differences(case: Case) -> None:
    rng = np.random.default_rng(SEED)
    rows, model = smooth_rows(rng, case[2]), model_of(case)
    given = rng.normal(size=len(rows))
    by_params, by_scores = model.backward(rows, given)
    np.testing.assert_array_equal(by_params, model.pullback(rows, given))

    def value(params: Any, scores: Any) -> float:
        assert rows.lists is not None
        other = replace(rows, lists=RankedLists.of(rows.lists.names, scores, rows.offsets, rows.docids))
        return float(model.at(params).score(other) @ given)

    assert rows.lists is not None
    values, scores, step = model.params.values, rows.lists.scores, 1e-6
    for i in range(len(values)):
        up, down = values.copy(), values.copy()
        up[i] += step
        down[i] -= step
        low = max(down[i], 0.0)
        down[i] = low  # one-sided at the bound
        slope = (value(up, scores) - value(down, scores)) / (up[i] - down[i])
        assert by_params[i] == pytest.approx(slope, rel=2e-5, abs=2e-6), model.params.names[i]
    for row, column in np.argwhere(~np.isnan(scores)):
        up, down = scores.copy(), scores.copy()
        up[row, column] += step
        down[row, column] -= step
        slope = (value(values, up) - value(values, down)) / (2 * step)
        assert by_scores[row, column] == pytest.approx(slope, rel=2e-5, abs=2e-6), (row, column)
    assert not by_scores[np.isnan(scores)].any()


def judged_rows(count: int = 2, queries: int = 12) -> fr.Candidates:
    rng = np.random.default_rng(SEED)
    lists, qrels = {}, {}
    for q in range(queries):
        docs = [f"d{i}" for i in range(14)]
        truth = rng.normal(size=14)
        each = []
        for _ in range(count):
            kept = rng.choice(14, 9, replace=False)
            noisy = truth[kept] + rng.normal(size=9)
            each.append([(docs[i], float(s)) for i, s in zip(kept, noisy, strict=True)])
        lists[f"q{q}"] = each
        qrels[f"q{q}"] = {docs[i]: int(truth[i] > 0.8) + int(truth[i] > 1.5) for i in range(14)}
    return rows_of(lists, qrels)


@pytest.mark.parametrize(
    ("engine", "settings", "name"),
    [
        ("elasticsearch-linear", {}, "weight.vector"),
        ("opensearch", {"normalise": "z_score"}, "weight.text"),
        ("elasticsearch-rrf", {}, "weight.vector"),
        ("weaviate", {}, "alpha"),
        ("typesense", {}, "alpha"),
        ("lancedb", {}, "weight"),
        ("haystack", {}, "weight.text"),
        ("solr", {"method": "edismax"}, "tie"),
    ],
)
@pytest.mark.parametrize("measure", ["nDCG@5", "AP"])
def test_the_exact_trajectory_is_the_measure_at_every_weight(
    engine: str, settings: dict[str, Any], name: str, measure: str
) -> None:
    rows = judged_rows()
    model = Fusion(engine, NAMES[:2], **settings)
    path = fr.landscape.trajectory(model, rows, name, measure)
    assert path.line is not None  # exact, not sampled
    assert len(path.breaks) > 5
    law, start = fr.parse_measure(measure), model.params[name]
    low, high = (end - start for end in (0.0, 1.0 if model.params.upper[0] == 1.0 or name == "tie" else 8.0))
    grid = np.linspace(low, high, 803)[1:-1]  # at an end a list counts 0, and what only it has ties
    between = np.abs(grid[:, None] - path.breaks[None, :]).min(axis=1) > 1e-9
    best = -1.0
    for x in grid[between]:
        there = law.aggregate(law.per_query(path.model_at(float(x)).score(rows), rows))
        assert path.at(float(x)) == pytest.approx(there, abs=1e-12)
        best = max(best, there)
    assert path.maximum.value >= best - 1e-12


def test_slopes_are_how_scores_move_and_k_is_not_linear() -> None:
    rows = judged_rows(3)
    for case in CASES:
        if case[2] != 3:
            continue
        model = model_of(case)
        for i, name in enumerate(model.params.free_names):
            along = np.zeros(len(model.params.free_names))
            along[i] = 1.0
            if not model.linear_along(along):
                assert name == "k" or model.rule.combine not in ("sum",)
                with pytest.raises(fr.UsageError, match="linear"):
                    model.slope(rows, along)
                continue
            moved = model.at(model.params.with_free(model.params.free_values + 0.25 * along)).score(rows)
            np.testing.assert_allclose(moved, model.score(rows) + 0.25 * model.slope(rows, along), atol=1e-12)


def test_an_exact_search_never_loses_to_a_grid_of_weights() -> None:
    rows = judged_rows(3)
    model = Fusion("opensearch", NAMES)
    fit = fr.train(model, rows, measure="nDCG@5", method="exact", sweep=False, epochs=4)
    problem = Problem.of(model, rows, "nDCG@5")
    steps = np.linspace(0.05, 0.95, 10)
    grid = [problem.measure_at(np.array([a, b, 1.0])) for a in steps for b in steps]
    assert problem.measure_at(fit.model.params.free_values) >= problem.measure_at(model.params.free_values)
    assert problem.measure_at(fit.model.params.free_values) >= max(grid) - 1e-12


def test_weights_of_any_size_rank_alike_and_the_canonical_ones_add_up_to_1() -> None:
    rows = judged_rows(3)
    for engine in ("elasticsearch-linear", "opensearch", "elasticsearch-rrf", "vespa", "langchain"):
        model = Fusion(engine, NAMES)
        values = model.params.values.copy()
        values[:3] = [3.0, 1.0, 2.0]
        if "k" in model.params.names:
            values[3] = 20.4
        large = model.at(values)
        small = large.canonical()
        assert small.params.values[:3].sum() == pytest.approx(1.0)
        if large.rule.whole_k:
            assert small.params["k"] == 20.0
            large = large.at([3.0, 1.0, 2.0, 20.0])
        np.testing.assert_allclose(large.score(rows), 6.0 * small.score(rows))
    qdrant = Fusion("qdrant", NAMES).at([3.0, 1.0, 2.0, 5.0])
    np.testing.assert_array_equal(qdrant.canonical().params.values, qdrant.params.values)


def test_a_gradient_fit_does_not_drift_to_large_weights() -> None:
    rows = judged_rows(3, queries=30)
    model = Fusion("opensearch", NAMES)
    fit = fr.train(model, rows, objective="ranknet", method="lbfgs", sweep=False)
    assert 0.05 < fit.model.params.values.sum() < 20.0
    assert fit.best.train >= fit.trail[0].train


def test_dropping_rows_changes_no_score() -> None:
    lists = random_lists(np.random.default_rng(SEED), 3)
    rows = rows_of(lists)
    kept = np.random.default_rng(1).uniform(size=len(rows)) < 0.4
    few = rows.take(kept)
    some = rows.select([7, 3, 11])
    for case in CASES:
        if case[2] == 3:
            model = model_of(case)
            np.testing.assert_array_equal(model.score(few), model.score(rows)[kept])
            expected = np.concatenate([model.score(rows)[rows.offsets[q] : rows.offsets[q + 1]] for q in (7, 3, 11)])
            np.testing.assert_array_equal(model.score(some), expected)
            both = fr.concat(rows.select([3]), rows.select([7]))
            np.testing.assert_array_equal(model.score(both), model.score(rows.select([3, 7])))


def test_scores_that_float32_would_make_equal_keep_their_order() -> None:
    run = fr.Run.of({"q": {f"d{i:02d}": 100.0 - i * 1e-7 for i in range(20)}})
    assert len(set(run.scores.astype(np.float32).tolist())) < 5
    rows = fr.fusion_rows({"text": run, "vector": {"q": {"d03": 1.0, "d04": 0.5}}})
    for engine, values in (("weaviate", [0.0]), ("elasticsearch-rrf", [1.0, 0.0, 60.0]), ("opensearch", [1.0, 0.0])):
        scores = fr.fused_run(rows, Fusion(engine, NAMES[:2]).at(values).score(rows)).to_dict()["q"]
        assert sorted(scores, key=lambda d: -scores[d]) == [f"d{i:02d}" for i in range(20)]


def test_a_saved_fusion_is_the_same(tmp_path: Path) -> None:
    for number, case in enumerate(CASES):
        model = model_of(case)
        model.save(tmp_path / str(number))
        back = fr.load_model(tmp_path / str(number))
        assert isinstance(back, Fusion)
        assert (back.engine, back.lists, back.rule) == (model.engine, model.lists, model.rule)
        rows = rows_of(random_lists(np.random.default_rng(3), case[2]))
        np.testing.assert_array_equal(back.score(rows), model.score(rows))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"weaviate"', '"nosuch"'), "nosuch"),
        (('"text", "vector"', '"text"'), "fuses two lists"),
        (('"text", "vector"', "1, 2"), "lists: expected a list of names"),
        (('"relativeScore"', "[1]"), "method is one of"),
        (('"method"', '"lists"'), "settings: expected no lists"),
    ],
)
def test_a_damaged_model_file_is_named(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    Fusion("weaviate", NAMES[:2], method="relativeScore").save(tmp_path)
    text = (tmp_path / "model.json").read_text()
    assert change[0] in text
    (tmp_path / "model.json").write_text(text.replace(*change))
    with pytest.raises(fr.InputError, match=said):
        fr.load_model(tmp_path)


def test_what_makes_no_sense_is_said() -> None:
    rows = judged_rows(3)
    with pytest.raises(fr.UsageError, match="fuses two lists"):
        Fusion("weaviate", NAMES)
    with pytest.raises(fr.UsageError, match="has 2 names for 3 lists"):
        Fusion("elasticsearch-linear", NAMES, normalise=["none", "minmax"])
    with pytest.raises(fr.UsageError, match="normalise is one of none, minmax, l2_norm"):
        make_rule("elasticsearch-linear", normalise="z_score")
    with pytest.raises(fr.UsageError, match="these rows have text, vector, clicks"):
        Fusion("opensearch", ["a", "b"]).score(rows)
    with pytest.raises(fr.UsageError, match="knows no lists yet"):
        Fusion("opensearch").score(rows)
    with pytest.raises(fr.UsageError, match="fusion_rows"):
        Fusion("opensearch", NAMES).score(fr.Candidates.of([1, 0]))
    with pytest.raises(fr.UsageError, match="missing is 0"):
        make_rule("plain", normalise="rank", missing=None)
    with pytest.raises(fr.UsageError, match="not below the upper"):
        make_rule("plain", lower=2, upper=1)


def test_it_is_made_by_name_for_rows_with_lists() -> None:
    rows = judged_rows(3)
    model = make_model("fusion", rows, engine="opensearch", normalise="l2")
    assert isinstance(model, Fusion)
    assert model.lists == NAMES
    assert model.norms[0].kind == "l2"
    assert Fusion("opensearch").prepared(rows, 0).lists == NAMES
    with pytest.raises(fr.UsageError, match="make rows of runs"):
        make_model("fusion", fr.Candidates.of([1, 0], features=[[1.0], [2.0]]))
