"""Taylor et al. 2006: rankers and data are what the paper says, figures follow from plain computations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from shared_data import needs_data, quick

import fliprank as fr
from fliprank.landscape.surface import Surface
from fliprank.papers import PARTS, Setting, find_parts
from fliprank.papers.taylor2006 import rankers
from fliprank.papers.taylor2006.collections import MEASURE, WEAK, Collection, generated, real_features, web
from fliprank.papers.taylor2006.cost import _verdict
from fliprank.papers.taylor2006.curves import few_and_many
from fliprank.papers.taylor2006.rankers import (
    LineFew,
    LineRest,
    Precooked,
    curves,
    descent,
    line_search,
    parameters,
    untuned,
)
from fliprank.papers.taylor2006.surfaces import _optima, _surface

pytestmark = pytest.mark.long

NAMES = [part.name for part in find_parts("taylor2006")]


@pytest.fixture
def small(tmp_path: Path) -> Collection:
    return generated(Setting(True, {}, tmp_path))


def halves(data: Collection) -> tuple[fr.Candidates, fr.Candidates]:
    return data.rows.select(np.arange(30)), data.rows.select(np.arange(30, 40))


def bm25f_of(model: fr.Model, data: Collection) -> dict[str, float]:
    names = [f"{field}.{kind}" for field in data.fields for kind in "wb"]
    return {name: float(model.params[name]) for name in names}


def test_every_table_and_figure_of_the_paper_is_there_in_its_order() -> None:
    assert NAMES == ["figure1", "section4.1", "figure2", "table1", "figure3", "section5"]


def test_the_rankers_have_2_9_and_375_parameters_and_start_as_the_paper_says() -> None:
    rows = fr.generate(3, documents=20, weak=WEAK - 1, seed=1).rows
    data = Collection("it", rows, rows, ("anchor", "url", "title", "body"), 0.3, WEAK)
    assert [parameters(data, model) for model in (data.two, data.nine, data.many)] == [2, 9, 375]
    assert list(few_and_many(Setting(True), data)) == ["line search 9", "gradient descent 9", "gradient descent 375"]
    two, nine = data.two.prepared(rows, 0).params, data.nine.prepared(rows, 0).params
    assert (two["k"], two["b"], two["pagerank.weight"]) == (1.0, 0.5, 0.3)
    assert {nine[name] for name in nine.free_names} == {1.0, 0.5, 0.3}
    assert nine["pagerank.weight"] == 0.3


@needs_data
def test_no_test_query_of_the_web_pages_is_trained_on_and_grades_are_whole(tmp_path: Path) -> None:
    data = web(replace(quick(tmp_path, ["stanford-web"]), quick=False))
    assert 380 < data.rows.queries <= 392
    assert 250 < data.test.queries < 288

    def texts(rows: fr.Candidates) -> list[str]:
        terms, ends = rows.terms.terms.tolist(), rows.terms.offsets
        return [" ".join(sorted(terms[ends[q] : ends[q + 1]])) for q in range(rows.queries)]

    every = [*texts(data.rows), *texts(data.test)]
    assert len(every) == len(set(every))
    assert {*data.rows.labels, *data.test.labels} <= {0.0, 1.0, 2.0, 3.0, 4.0}


@needs_data
def test_a_real_collection_has_its_own_test_queries_and_all_features(tmp_path: Path) -> None:
    data = real_features(quick(tmp_path, ["scifact"]))
    assert not {*data.rows.qids.tolist()} & {*data.test.qids.tolist()}
    assert data.weak == len(data.rows.feature_names) == 18
    assert parameters(data, data.nine) == 4
    assert parameters(data, data.many) == 4 + 18


def test_untuned_precooked_and_line_search_of_the_rest_hold_what_they_should(small: Collection, tmp_path: Path) -> None:
    setting = Setting(True, {}, tmp_path)
    rows, valid = halves(small)
    start = bm25f_of(small.nine.prepared(rows, 0), small)
    tuned = descent(small, small.many).fit(rows, valid, 3, MEASURE)
    cooked = line_search(small.nine).fit(rows, valid, 3, MEASURE)
    assert bm25f_of(tuned, small) != start
    assert bm25f_of(cooked, small) != start
    for fitter, expected in ((untuned(small), start), (Precooked(setting, small), bm25f_of(cooked, small))):
        model = fitter(rows, valid, 3) if isinstance(fitter, Precooked) else fitter.fit(rows, valid, 3, MEASURE)
        assert bm25f_of(model, small) == expected
        assert any(model.params[name] != 0 for name in model.params.names if name.startswith("w."))
    again = LineFew(setting, small)(rows, valid, 3)  # read from what the precooked one left
    assert np.array_equal(again.params.values, cooked.params.values)
    model = LineRest(small)(rows, valid, 3)
    assert bm25f_of(model, small) != start
    assert any(model.params[name] != 0 for name in model.params.names if name.startswith("w."))


def test_the_cost_over_k_and_b_is_the_sum_over_pairs(small: Collection) -> None:
    rows = fr.subsample(small.rows.select(np.arange(6)), 0, "average", at_most=None)
    found = _surface(small, rows, fr.RankNet(normalise="none"), 3)
    model = small.two.prepared(rows, 0)
    i, j = 2, 1
    scores = model.at(model.params.replace({"k": found.axes[0][i], "b": found.axes[1][j]})).score(rows)
    total = 0.0
    for q in range(rows.queries):
        span = range(rows.offsets[q], rows.offsets[q + 1])
        total += sum(
            np.log1p(np.exp(scores[b] - scores[a])) for a in span for b in span if rows.labels[a] > rows.labels[b]
        )
    assert found.values[i, j] == pytest.approx(total / rows.queries)


def test_local_optima_of_a_grid_are_those_found_point_by_point() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = rng.integers(0, 4, (6, 7)).astype(float)
        count = 0
        for i in range(6):
            for j in range(7):
                near = [
                    values[a, b]
                    for a in range(max(0, i - 1), min(6, i + 2))
                    for b in range(max(0, j - 1), min(7, j + 2))
                ]
                count += values[i, j] == max(near) and values[i, j] > min(near)
        axes = (np.arange(6.0), np.arange(7.0))
        assert _optima(Surface(("k", "b"), axes, values, "it", True, 1)) == count
        assert _optima(Surface(("k", "b"), axes, -values, "it", False, 1)) == count


def test_gains_of_table_1_are_differences_of_test_means(tmp_path: Path) -> None:
    setting = Setting(True, {}, tmp_path)
    found = PARTS["taylor2006", "table1"].run(setting)
    data = generated(setting)
    curve = curves(setting, data, few_and_many(setting, data))
    by_query = {name: curve.by_query(name) for name in curve.values}
    for row in found.rows:
        small, _, large = (by_query[row[0]][curve.sizes.index(size)] for size in (16, 23, 45))
        assert row[1] == pytest.approx(small.mean())
        assert row[6:] == pytest.approx(((large - small).mean(), stats.ttest_rel(large, small).pvalue))


def test_a_curve_is_the_same_when_drawn_again(tmp_path: Path) -> None:
    found = []
    for folder in ("one", "two"):
        found.append(PARTS["taylor2006", "table1"].run(Setting(True, {}, tmp_path / folder)))
    assert found[0].rows == found[1].rows


def test_small_sizes_are_drawn_often_and_large_ones_once_from_the_same_order(
    small: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rankers, "DRAWN_OFTEN", 20)
    monkeypatch.setattr(rankers, "repeats_of", lambda _: 3)
    way = {"it": descent(small, small.two)}
    found = curves(Setting(True, {}, tmp_path), small, way, [16, 23])
    whole = fr.learning_curve(way, small.rows, [16, 23], small.test, repeats=3, measure=MEASURE)
    assert found.sizes == (16, 23)
    assert np.array_equal(found.values["it"][0], whole.values["it"][0])
    for repeat in range(3):
        assert np.array_equal(found.values["it"][1, repeat], whole.values["it"][1, 0])


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [((3.0, 9.0), "holds"), ((1.5, 0.5), "does not hold"), ((1.5, 9.0), "can't be told at this size")],
)
def test_far_cheaper_means_everywhere(ratios: tuple[float, ...], verdict: str) -> None:
    assert _verdict(dict(zip("ab", ratios, strict=True))) == verdict


@needs_data
def test_costs_are_those_of_the_fits_and_are_kept_with_their_seconds(tmp_path: Path) -> None:
    setting = quick(tmp_path, ["stanford-web"])
    found = PARTS["taylor2006", "section5"].run(setting)
    data = generated(setting)
    rows, valid = data.rows.select(np.arange(16)), data.rows.select(np.arange(56, 60))
    fit = fr.train(data.nine, rows, valid, method="line", measure=MEASURE, sweep=False, restarts=1)
    [row] = [row for row in found.rows if row[:3] == ("generated", 9, 16)]
    assert (row[4], row[7]) == (fit.documents_scored, len(fit.trail) - 1)
    assert row[5] == row[4] / row[3]
    assert PARTS["taylor2006", "section5"].run(setting).rows == found.rows
