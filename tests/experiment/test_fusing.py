"""Fusing: the exact weight, the baselines that people have, the verdict, and what to judge next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliprank.data.fusion_rows import fused_run, fusion_rows
from fliprank.data.trec import Qrels, Run, read_run
from fliprank.errors import InputError, UsageError
from fliprank.experiment.coverage import coverage_of
from fliprank.experiment.evaluation import evaluate
from fliprank.experiment.fusing import TUNED, Fused, fuse, weight_curve, write_fused
from fliprank.measures import parse_measure
from fliprank.models.fusion import Fusion
from fliprank.papers.own.fusion_calibration import WORLDS, world

MEASURE = "nDCG@10"
Lists = dict[str, dict[str, dict[str, float]]]


def collection(
    seed: int, queries: int = 40, documents: int = 40, good: tuple[float, ...] = (1.0, 1.0)
) -> tuple[Lists, Any]:
    """Lists that see the label through noise: the larger `good`, the better; some documents are missing."""
    rng = np.random.default_rng(seed)
    labels = rng.choice([0, 0, 0, 0, 1, 2], (queries, documents))
    lists: Lists = {}
    for number, sees in enumerate(good):
        scores = sees * labels + rng.normal(0, 1, labels.shape)
        scores = scores * 10.0 ** (number - 1) + number  # each on a scale of its own
        there = rng.random(labels.shape) < 0.8
        lists[f"list{number}"] = {
            f"q{q}": {f"d{d}": float(scores[q, d]) for d in range(documents) if there[q, d]} for q in range(queries)
        }
    judged = {f"q{q}": {f"d{d}": int(labels[q, d]) for d in range(documents)} for q in range(queries)}
    return lists, judged


@pytest.fixture(scope="module")
def fused() -> Fused:
    """Three lists that help each other, and one that is worse than noise: equal weights are not the best."""
    lists, judged = collection(1, queries=60, good=(1.0, 1.0, 1.0, -1.0))
    return fuse(lists, judged, measure=MEASURE, settings={"normalise": "minmax"})


def test_a_better_weight_is_found_proven_and_adopted(fused: Fused) -> None:
    assert fused.verdict.word == "adopt"
    means = {name: each[str(parse_measure(MEASURE))] for name, each in fused.evaluation.means().items()}
    assert max(means, key=lambda name: means[name]) == TUNED
    alone = {f"list{number} alone" for number in range(4)}
    assert set(means) == {*alone, "RRF, k = 60", "equal weights, min-max", TUNED}
    assert fused.kept == max((name for name in means if name != TUNED), key=lambda name: means[name])
    assert fused.model.weights.sum() == pytest.approx(1.0)
    assert fused.model.weights[3] < 0.15
    assert fused.curve is None


def test_the_optimum_of_the_curve_is_never_below_a_grid() -> None:
    lists, judged = collection(1, queries=30, good=(0.7, 1.6))
    rows, measure = fusion_rows(lists, judged), parse_measure(MEASURE)
    curve = weight_curve(Fusion("plain", list(lists), normalise="minmax"), rows, MEASURE)
    assert curve is not None
    best = curve.maximum
    for x in np.linspace(0, 1, 101):
        value = measure.value(Fusion("plain", list(lists), normalise="minmax").at([1 - x, x]).score(rows), rows)
        assert value <= best.value + 1e-12
    middle = (best.low + best.high) / 2
    at = Fusion("plain", list(lists), normalise="minmax").at([1 - middle, middle])
    assert measure.value(at.score(rows), rows) == pytest.approx(best.value, abs=1e-12)


@pytest.mark.parametrize("engine", ["weaviate", "typesense", "elasticsearch-rrf", "opensearch"])
def test_the_curve_is_the_engines_own(engine: str) -> None:
    lists, judged = collection(3, queries=12)
    rows, measure = fusion_rows(lists, judged), parse_measure(MEASURE)
    model = Fusion(engine, list(lists))
    curve = weight_curve(model, rows, MEASURE)
    assert curve is not None
    for x in (0.05, 0.31, 0.77):
        moved = model.at([x]) if model.rule.weights == "share" else model.at([1 - x, x, *model.params.values[2:]])
        assert curve.at(x) == pytest.approx(measure.value(moved.score(rows), rows), abs=1e-12)


def test_there_is_no_curve_of_three_lists_or_of_other_means() -> None:
    lists, judged = collection(3, queries=6, good=(1.0, 1.0, 1.0))
    rows = fusion_rows(lists, judged)
    assert weight_curve(Fusion("plain", list(lists)), rows, MEASURE) is None
    two = fusion_rows({name: lists[name] for name in ("list0", "list1")}, judged)
    assert weight_curve(Fusion("opensearch", ["list0", "list1"], combine="geometric_mean"), two, MEASURE) is None


def test_a_list_alone_is_measured_as_it_is() -> None:
    """Documents that only other lists have must not count for it, not even at its end."""
    lists = {"a": {"q1": {"x": 1.0}, "q2": {"y": 1.0}}, "b": {"q1": {"y": 2.0, "z": 1.0}, "q2": {"z": 3.0, "y": 2.0}}}
    judged = {"q1": {"y": 1, "x": 0}, "q2": {"y": 1, "z": 0}}
    found = fuse(lists, judged, measure=MEASURE, reported=["AP"], folds=2)
    assert found.evaluation.mean("a alone", "AP") == evaluate(judged, {"a": lists["a"]}, ["AP"]).mean("a", "AP") == 0.5


def test_the_default_of_the_engine_competes() -> None:
    lists, judged = collection(5, queries=10)
    found = fuse(lists, judged, measure=MEASURE, engine="vespa")
    assert {"vespa, normalize_linear", "vespa, reciprocal_rank"} <= set(found.baselines)
    assert [each.what.split(",")[0] for each in found.fit.tried] == ["normalize_linear", "reciprocal_rank"]


def test_test_queries_are_other_queries_and_decide() -> None:
    lists, judged = collection(7, queries=80, good=(0.6, 1.8))
    train, test = ({q: judged[q] for q in list(judged)[half]} for half in (slice(40), slice(40, None)))
    found = fuse(lists, train, test=test, measure=MEASURE, settings={"normalise": "minmax"})
    assert list(found.proofs) == ["test", "cross_validated"]
    assert found.evaluation.qids.tolist() == list(test)
    rows = fusion_rows(lists, test)
    own = parse_measure(MEASURE).value(found.model.score(rows), rows)
    assert found.evaluation.mean(TUNED, str(parse_measure(MEASURE))) == pytest.approx(own, abs=1e-12)


def test_noise_beside_a_good_list_is_hardly_ever_adopted() -> None:
    """200 collections are in docs/fusion.md. The noise has to be of documents that the good list would not
    return anyway: else it is good for something, to fill in what the other one missed."""
    adopted = 0
    for seed in range(8):
        lists, judged = world(WORLDS["noise"], 500 + seed)
        found = fuse(lists, judged, measure=MEASURE, settings={"normalise": "minmax"})
        adopted += found.verdict.word == "adopt"
    assert adopted <= 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda lists: {"one": lists["list0"]}, "two lists or more"),
        (lambda lists: {"one": lists["list0"], "two": lists["list0"]}, "the same list, twice"),
        (lambda lists: {**lists, "other": {"x1": {"d1": 1.0}}}, "other has none of the judged queries"),
        (
            lambda lists: {
                n: {q: {f"z{d}": s for d, s in own.items()} for q, own in each.items()} for n, each in lists.items()
            },
            "no judged document",
        ),
        (lambda lists: {**lists, "bad": {"q0": {"d1": float("nan")}}}, "finite"),
    ],
)
def test_bad_lists_are_said(change: Any, told: str) -> None:
    lists, judged = collection(3, queries=6)
    with pytest.raises((InputError, UsageError), match=told):
        fuse(change(lists), judged, measure=MEASURE)


def test_what_is_odd_about_lists_is_told() -> None:
    lists, judged = collection(3, queries=10)
    lists["list1"] = {
        q: dict.fromkeys(own, 1.0) if q == "q3" else own for q, own in lists["list1"].items() if q != "q5"
    }
    notes = fuse(lists, judged, measure=MEASURE, settings={"normalise": "minmax"}).notes
    assert notes == (
        "list1 has nothing for 1 of 10 judged queries",
        "all scores of list1 are equal in 1 of 10 queries",
    )


@pytest.mark.parametrize(("engine", "settings", "told"), [("solrr", {}, "solr"), ("solr", {"k": 3}, "no setting 'k'")])
def test_unknown_engines_and_settings_are_said(engine: str, settings: dict[str, Any], told: str) -> None:
    lists, judged = collection(3, queries=6)
    with pytest.raises(UsageError, match=told):
        fuse(lists, judged, engine=engine, settings=settings)


def test_what_is_written_can_be_read_again(fused: Fused, tmp_path: Path) -> None:
    from fliprank.models import load_model

    result = write_fused(tmp_path, fused)
    content = json.loads((tmp_path / "result.json").read_text())
    assert result.adopted
    assert content["verdict"]["word"] == "adopt"
    assert content["kept"] == fused.kept
    assert content["baselines"] == fused.evaluation.means()
    assert load_model(tmp_path / "model").params.values.tolist() == fused.model.params.values.tolist()
    assert read_run(tmp_path / "fused.run").to_dict() == fused.run.to_dict()
    write_fused(tmp_path, fused, "never")
    assert load_model(tmp_path / "model").params.values.tolist() == fused.baselines[fused.kept].params.values.tolist()
    assert read_run(tmp_path / "fused.run").to_dict() == fused.kept_run.to_dict()


def plain_differences(
    judged: dict[str, dict[str, float]], before: Run, after: Run, extra: tuple[str, str, float]
) -> float:
    """Mean difference with one more judgement, by evaluating everything again."""
    query, docid, label = extra
    more = {q: {**own, docid: label} if q == query else own for q, own in judged.items()}
    return evaluate(more, {"a": before, "b": after}, [MEASURE]).compare()[0].difference


def test_what_to_judge_is_what_moves_the_difference_most() -> None:
    lists, every = collection(9, queries=8, documents=30)
    rng = np.random.default_rng(0)
    judged = {q: {d: label for d, label in own.items() if rng.random() < 0.6} for q, own in every.items()}
    qrels, rows = Qrels.of(judged), fusion_rows(lists, judged)
    before, after = (fused_run(rows, Fusion("plain", list(lists)).at(w).score(rows)) for w in ([1, 0.1], [0.1, 1]))
    found = coverage_of(qrels, rows, before, after, parse_measure(MEASURE))
    start = evaluate(judged, {"a": before, "b": after}, [MEASURE]).compare()[0].difference
    assert len(found.to_judge) > 5
    assert all(abs(a.change) >= abs(b.change) for a, b in zip(found.to_judge, found.to_judge[1:], strict=False))
    for each in found.to_judge:
        assert each.docid not in judged[each.query]
        moved = plain_differences(judged, before, after, (each.query, each.docid, 2.0)) - start
        assert each.change == pytest.approx(moved, abs=1e-12)
        ranking = sorted(after.to_dict()[each.query].items(), key=lambda pair: (pair[1], pair[0]), reverse=True)
        assert [d for d, _ in ranking].index(each.docid) + 1 == each.rank_after


def test_bounds_are_evaluations_with_other_judgements() -> None:
    lists, every = collection(9, queries=8, documents=30)
    judged = {q: {d: label for d, label in own.items() if int(d[1:]) % 3} for q, own in every.items()}
    rows = fusion_rows(lists, judged)
    before, after = (fused_run(rows, Fusion("plain", list(lists)).at(w).score(rows)) for w in ([1, 0.1], [0.1, 1]))
    found = coverage_of(Qrels.of(judged), rows, before, after, parse_measure(MEASURE))
    runs = {"a": before.to_dict(), "b": after.to_dict()}
    union = {q: set(runs["a"][q]) | set(runs["b"][q]) for q in judged}
    relevant = {q: {**dict.fromkeys(union[q], 2), **judged[q]} for q in judged}
    condensed = {
        n: {q: {d: s for d, s in own.items() if d in judged[q]} for q, own in r.items()} for n, r in runs.items()
    }
    expected = [
        evaluate(*pair, [MEASURE]).compare()[0].difference
        for pair in ((judged, runs), (relevant, runs), (judged, condensed))
    ]
    assert [b.comparison.difference for b in found.bounds] == pytest.approx(expected, abs=1e-12)
