"""Each plot draws the numbers that plain formulas give, names what it shows, and can be written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from charts import records, texts

import fliprank as fr
from fliprank.errors import UsageError
from fliprank.experiment.cascade_analysis import after_stages
from fliprank.models.cascade import Cascade
from fliprank.optimize.fit import Fit

pytest.importorskip("altair")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
LABELS = np.clip(np.round(X[:, 0] - X[:, 1] + 0.7 * RNG.normal(size=300)), 0, 3)
ROWS = fr.Candidates.of(LABELS, group=[15] * 20, features=X, docids=[f"d{i}" for i in range(300)])


def fitted() -> Fit:
    return fr.train(
        fr.Linear(), *ROWS.split(0.6, 0.4), objective="ranknet", measure="AP", restarts=1, sweep=False, epochs=5
    )


def test_a_surface_has_the_path_of_the_optimiser_and_the_best_point_of_its_grid(tmp_path: Path) -> None:
    fit = fitted()
    chart = fit.plot("surface", parameters=["w.1", "w.2"], rows=ROWS)
    assert fit.path is not None
    names = list(fit.model.params.free_names)
    steps = records(chart, "step", "x", "y")
    np.testing.assert_array_equal(
        [[each["x"], each["y"]] for each in steps], fit.path[:, [names.index("w.1"), names.index("w.2")]]
    )
    marks = {mark["mark"]: (mark["x"], mark["y"]) for mark in records(chart, "mark")}
    assert marks["start of the path"] == (steps[0]["x"], steps[0]["y"])
    assert marks["model"] == (fit.model.params["w.1"], fit.model.params["w.2"])

    def value(x: float, y: float) -> float:
        moved = fit.model.at(fit.model.params.replace({"w.1": x, "w.2": y}))
        return fr.AP().value(moved.score(ROWS), ROWS)

    points = records(chart, "level", "line")
    ends = [(min(p[axis] for p in points), max(p[axis] for p in points)) for axis in "xy"]
    grid = [value(x, y) for x in np.linspace(*ends[0], 9) for y in np.linspace(*ends[1], 9)]
    best = value(*marks["best of the grid"])
    assert best >= max(grid) - 0.01
    assert best >= value(*marks["model"]) - 1e-3
    assert f"AP, {ROWS.queries} queries: best {best:.4f}" in texts(chart, tmp_path)
    assert "2 other parameters stay as they are here" in texts(chart, tmp_path)


def test_a_trajectory_has_every_step_and_the_flips_behind_the_largest(tmp_path: Path) -> None:
    model = fr.Linear().prepared(ROWS, 0).at([0.0, 1.0, 0.4, 0.1])
    path = fr.landscape.trajectory(model, ROWS, "w.2", "AP", -2.0, 2.0)
    chart = fr.plots.trajectory(path, flips=4)
    curve = records(chart, "x", "value")
    curve = [each for each in curve if "mark" not in each]
    for one, two in zip(curve[:-2:7], curve[1:-1:7], strict=True):  # the plain measure between two steps
        x = (one["x"] + two["x"]) / 2
        moved = model.at(model.params.replace({"w.2": x}))
        assert fr.AP().value(moved.score(ROWS), ROWS) == pytest.approx(one["value"], abs=1e-12)
    flips = records(chart, "flip")
    jumps = sorted(np.abs(np.diff(path.values)), reverse=True)[:4]
    assert sorted((abs(each["gain"]) for each in flips), reverse=True) == pytest.approx(jumps, abs=1e-12)
    assert all(np.abs(path.breaks - (each["x"] - 0.4)).min() < 1e-12 for each in flips)
    shown, largest = texts(chart, tmp_path), max(flips, key=lambda each: abs(each["gain"]))
    before, after = (model.at(model.params.replace({"w.2": largest["x"] + step})).score(ROWS) for step in (-1e-9, 1e-9))
    moved = np.flatnonzero(fr.AP().per_query(after, ROWS) != fr.AP().per_query(before, ROWS))
    at = 15 * int(moved[0])
    orders = [np.argsort(-scores[at : at + 15]) for scores in (before, after)]
    first = int(np.flatnonzero(orders[0] != orders[1])[0])
    up, down = at + orders[1][first], at + orders[0][first]
    told = f"query {ROWS.qids[int(moved[0])]}: d{up} (label {LABELS[up]:g}) overtakes d{down} (label {LABELS[down]:g})"
    assert told in shown
    assert "now 0.4" in shown
    assert f"AP along w.2: best {path.maximum.value:.4f}" in shown
    assert not records(fr.plots.trajectory(path, flips=0), "flip")


def test_a_fit_draws_its_own_trajectory() -> None:
    fit = fitted()
    drawn = records(fit.plot("trajectory", parameter="w.1", rows=ROWS, flips=0), "x", "value")
    path = fr.landscape.trajectory(fit.model, ROWS, "w.1", "AP")
    best = next(each for each in drawn if each.get("mark") == "best")
    assert best["value"] == path.maximum.value
    with pytest.raises(UsageError, match="does not know its rows: give rows="):
        replace(fit, rows=None).plot("trajectory", parameter="w.1")
    with pytest.raises(UsageError, match=r"name one parameter of bias?.*w\.1"):
        fit.plot("trajectory", rows=ROWS)


def test_a_fusion_has_its_curve_and_the_weights_that_are_as_good(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    judged = {f"q{q}": {f"d{d}": int(rng.random() < 0.3) for d in range(12)} for q in range(24)}
    runs = {
        name: {q: {d: label * weight + rng.normal() for d, label in docs.items()} for q, docs in judged.items()}
        for name, weight in (("text", 1.0), ("vectors", 1.6))
    }
    found = fr.fuse(runs, judged, measure="AP", settings={"normalise": "minmax"}, folds=2)
    chart = fr.plots.fusion(found)
    assert found.as_good is not None
    assert found.fit.rows is not None
    curve = [each for each in records(chart, "x", "value") if "mark" not in each]
    for one, two in zip(curve[:-1:25], curve[1::25], strict=False):
        x = (one["x"] + two["x"]) / 2
        model = found.model.at(found.model.params.replace({"weight.text": 1 - x, "weight.vectors": x}))
        assert fr.AP().value(model.score(found.fit.rows), found.fit.rows) == pytest.approx(one["value"], abs=1e-12)
    (band,) = records(chart, "x", "x2")
    assert (band["x"], band["x2"]) == found.as_good[:2]
    (best,) = records(chart, "mark")
    assert best["value"] == max(each["value"] for each in curve)
    (rule,) = records(chart, "text")
    weights = found.model.weights
    assert rule["x"] == pytest.approx(weights[1] / weights.sum())
    shown = texts(chart, tmp_path)
    assert "weight of vectors (0: only text, 1: only vectors)" in shown
    assert "statistically as good as the best" in shown


def test_a_learning_curve_has_means_intervals_and_the_answer(tmp_path: Path) -> None:
    rankers = {"linear": fr.Ranker(fr.Linear(), "lbfgs", "ranknet"), "flat": fr.Ranker(fr.Linear(), "lbfgs", "mse")}
    found = fr.learning_curve(rankers, ROWS, [4, 8, 12], repeats=3, measure="AP")
    chart = fr.plots.learning_curve(found)
    drawn = {(each["ranker"], each["size"], each["on"][:4]): each["value"] for each in records(chart, "on", "value")}
    for ranker, values in found.values.items():
        for at, size in enumerate(found.sizes):
            assert drawn[ranker, size, "test"] == pytest.approx(np.nanmean(np.nanmean(values[at], axis=1)), abs=0.02)
            assert drawn[ranker, size, "thei"] == pytest.approx(found.training[ranker][at].mean())
    spans = {(each["ranker"], each["size"]): (each["low"], each["high"]) for each in records(chart, "low")}
    assert spans == {(p.ranker, p.size): (p.low, p.high) for p in found.points()}
    shown = texts(chart, tmp_path)
    assert found.outlook("linear").sentence.split(":")[0] in shown
    assert "training queries (logarithmic)" in shown
    assert not [each for each in records(fr.plots.learning_curve(found, training=False), "on") if "own" in each["on"]]
    other = fr.learning_curve(rankers["linear"], ROWS, [4, 8], repeats=2, measure="RR")
    with pytest.raises(UsageError, match="curves of AP and RR do not share an axis"):
        fr.plots.learning_curve(found, other)


def test_stages_have_the_measure_after_each_and_what_was_cut_before_it(tmp_path: Path) -> None:
    nested = Cascade([fr.Linear().prepared(ROWS, 0).at(w) for w in ([0, 1, 0, 0], [0, 1, -1, 0])], [15, 4])
    chart = fr.plots.stages(after_stages(nested, ROWS, "AP"), "AP")
    drawn = {each["stage"]: each for each in records(chart, "stage", "value")}
    first, last = X[:, 0], nested.score(ROWS)
    assert drawn[1]["value"] == pytest.approx(fr.AP().value(first, ROWS))
    assert drawn[2]["value"] == pytest.approx(fr.AP().value(last, ROWS))
    ranks = np.concatenate([np.argsort(np.argsort(-first[at : at + 15])) for at in range(0, 300, 15)])
    relevant = LABELS >= 1
    assert drawn[2]["lost"] == pytest.approx((relevant & (ranks >= 4)).sum() / relevant.sum())
    assert drawn[1]["lost"] == 0
    shown = texts(chart, tmp_path)
    assert f"AP after each stage: {drawn[1]['value']:.4f} after the first" in shown
    assert "1: top 15" in shown
    assert f"stage 2 {drawn[2]['step']:+.4f}" in shown
    both = fr.plots.stages({name: after_stages(nested, ROWS, "AP") for name in ("a", "b")}, "AP")
    assert {each["model"] for each in records(both, "model")} == {"a", "b"}
    fit = fr.telescope(Cascade([fr.Linear(), fr.Linear()], [15, 5]), *ROWS.split(0.5, 0.5), epochs=2, measure="AP")
    own = records(fit.plot("stages", rows=ROWS), "stage", "value")
    assert own[-1]["value"] == pytest.approx(fr.AP().value(fit.model.score(ROWS), ROWS))
    with pytest.raises(UsageError, match="only cascades have stages: this is the fit of a linear model"):
        fitted().plot("stages", rows=ROWS)


def test_a_rank_distribution_has_the_shares_of_sampled_ranks(tmp_path: Path) -> None:
    scores, sigma = np.array([0.3, 2.0, 0.0, 1.4]), 0.6
    chart = fr.plots.rank_distribution(
        fr.rank_distribution(scores, sigma, "true"), names=list("abcd"), labels=[0, 2, np.nan, 1]
    )
    drawn = {(each["document"][3], each["rank"]): each["probability"] for each in records(chart, "probability")}
    noisy = scores + sigma * np.random.default_rng(0).normal(size=(40_000, 4))
    ranks = np.argsort(np.argsort(-noisy, axis=1), axis=1) + 1
    for j, name in enumerate("abcd"):
        for rank in range(1, 5):
            assert drawn[name, rank] == pytest.approx((ranks[:, j] == rank).mean(), abs=0.01)
    means = [each["mean"] for each in records(chart, "mean")]
    assert means == pytest.approx(np.sort(ranks.mean(axis=0)), abs=0.02)
    assert "1. b (label 2)" in texts(chart, tmp_path)
    few = fr.plots.rank_distribution(fr.rank_distribution(np.arange(30.0), 2.0), most=5)
    assert {each["rank"] for each in records(few, "rank")} == set(range(1, 6))
    assert "the first 5 of 30 documents" in texts(few, tmp_path)


def test_precision_and_recall_are_those_of_each_run(tmp_path: Path) -> None:
    found = fr.precision_recall(ROWS, {"good": X[:, 0] - X[:, 1], "bad": X[:, 2]})
    chart = fr.plots.precision_recall(found)
    drawn = {(each["run"], each["recall"]): each["precision"] for each in records(chart, "precision")}
    assert len(drawn) == 22
    for run, scores in (("good", X[:, 0] - X[:, 1]), ("bad", X[:, 2])):
        best = []
        for at in range(0, 300, 15):
            hits = (LABELS[at : at + 15] >= 1)[np.argsort(-scores[at : at + 15])]
            best.append((np.cumsum(hits) / np.arange(1, 16)).max() if hits.any() else 0.0)
        assert drawn[run, 0.0] == pytest.approx(np.mean(best))
    assert f"{ROWS.queries} queries" in texts(chart, tmp_path)


def test_queries_are_drawn_from_the_largest_gain_to_the_largest_loss(tmp_path: Path) -> None:
    runs = {"one": X[:, 0], "two": X[:, 0] - 0.6 * X[:, 1]}
    found = fr.evaluate(ROWS, runs, ["AP", "RR"])
    chart = fr.plots.queries(found)
    bars = records(chart, "place", "difference")
    plain = fr.AP().per_query(runs["two"], ROWS) - fr.AP().per_query(runs["one"], ROWS)
    assert [each["difference"] for each in bars] == pytest.approx(sorted(plain, reverse=True))
    assert {each["query"]: each["difference"] for each in bars} == pytest.approx(
        dict(zip(ROWS.qids.tolist(), plain.tolist(), strict=True))
    )
    shown = texts(chart, tmp_path)
    counts = f"{(plain > 1e-12).sum()} queries better, {(plain < -1e-12).sum()} worse, {(abs(plain) <= 1e-12).sum()}"
    assert f"AP, two minus one: {counts}" in shown
    assert f"Mean difference {plain.mean():+.4f}" in shown
    assert records(chart, "mean")[0]["mean"] == pytest.approx(plain.mean())
    back = fr.plots.queries(found, "RR", run="one", baseline="two")
    plain = fr.RR().per_query(runs["one"], ROWS) - fr.RR().per_query(runs["two"], ROWS)
    assert [each["difference"] for each in records(back, "place", "difference")] == pytest.approx(
        sorted(plain, reverse=True)
    )
    plainly = fr.plots.queries({"a": (0.1, 0.3), "b": (0.5, 0.5), "c": (0.9, 0.1)})
    assert [(each["query"], each["change"]) for each in records(plainly, "change")] == [
        ("a", "better"), ("b", "equal"), ("c", "worse"),
    ]  # fmt: skip


def test_of_a_measure_that_should_be_small_a_smaller_value_is_better() -> None:
    found = fr.evaluate(ROWS, {"bad": X[:, 2], "good": X[:, 0] - X[:, 1]}, "ESL(n=1)")
    bars = records(fr.plots.queries(found), "place", "difference")
    assert bars[0]["difference"] < 0
    assert bars[0]["change"] == "better"


def test_ranges_are_those_of_the_fit_and_its_proof_is_drawn_query_by_query(tmp_path: Path) -> None:
    index = fr.Index.build(
        [{"_id": f"d{i}", "title": f"t{i % 7} t{i % 5}", "body": f"t{i % 3} t{i % 11}"} for i in range(60)]
    )
    texts_of = {f"q{i}": f"t{i % 7} t{i % 11}" for i in range(12)}
    qrels = {q: {f"d{j}": int((j + at) % 4 == 0) for j in range(at, at + 20)} for at, q in enumerate(texts_of)}
    rows = index.candidates(texts_of, qrels, depth=30)
    fit = fr.tune(fr.BM25F(), rows, measure="AP", folds=2, method="lbfgs", epochs=2)
    chart = fit.plot("ranges")
    assert fit.start is not None
    found = fit.ranges()
    bands = {each["row"]: (each["x"], each["x2"]) for each in records(chart, "row", "x2")}
    assert bands == {name: (span.low, span.high) for name, span in found.items()}
    marks = {(each["row"], each["mark"]): each["x"] for each in records(chart, "row", "mark")}
    for name in found:
        assert marks[name, "before"] == fit.start.params[name]
        assert marks[name, "after"] == fit.model.params[name]
    assert "statistically as good" in texts(chart, tmp_path)
    bars = records(fit.plot("queries"), "place", "difference")
    assert {each["query"]: each["difference"] for each in bars} == pytest.approx(
        {qid: after - before for qid, (before, after) in fit.proof.by_query().items()}
    )
