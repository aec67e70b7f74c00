"""Tuning finds what the labels follow from, proves it on queries it did not see, and leaves well alone."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tuning_rows import TRUTH, judged_rows

from fliprank.data.builtin import collection
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.experiment import jobs
from fliprank.experiment.jobs import tune_and_write
from fliprank.experiment.parameter_settings import ParameterSettings, read_settings
from fliprank.experiment.recipes import recipes_for, weigh
from fliprank.experiment.splits import folds_of
from fliprank.experiment.task import Queries, Task, open_index, pooled, task_of_documents
from fliprank.experiment.training import prepared
from fliprank.experiment.trials import KEEP_DEFAULTS, Trial
from fliprank.experiment.tuning import Tuner, tune
from fliprank.measures import parse_measure
from fliprank.models import BM25, BM25F, Network, load_model
from fliprank.objectives import RankNet
from fliprank.optimize.fit import Fit
from fliprank.optimize.methods import METHODS, Lbfgs, Sampled
from fliprank.optimize.ranges import as_good_ranges
from fliprank.parallel import run_parallel
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index

MEASURE = parse_measure("nDCG(dcg='exp-log2')@10")
RANKNET, SEARCH = Trial(RankNet(), (Lbfgs(l2=0.1),)), Trial(None, (Sampled(),))
QUICK = [RANKNET]


def mean(model: Any, rows: Candidates) -> float:
    return MEASURE.aggregate(MEASURE.per_query(model.score(rows), rows))


@contextmanager
def silent(name: str) -> Any:
    yield lambda what, done, total, epoch: None


def test_tuning_nears_the_function_that_the_labels_follow_from() -> None:
    rows, others = judged_rows(seed=1), judged_rows(seed=2)
    found = tune(BM25F(), rows, measure=MEASURE, folds=3)
    assert found.start is not None
    default, truth = found.start, found.start.at(found.start.params.replace(TRUTH))
    weights = {each.what: each.weight for each in found.tried}
    assert weights["keep the defaults"] == 0
    assert mean(found.model, others) > mean(default, others) + 0.7 * (mean(truth, others) - mean(default, others))
    assert found.model.params["title.w"] / found.model.params["body.w"] > 4
    heaviest = max(found.tried, key=lambda each: each.weight)
    assert heaviest.value == max(each.value for each in found.tried)


def test_ways_count_as_far_as_held_out_queries_speak_for_them() -> None:
    climbing = SEARCH
    base, better = np.array([0.5, 0.2, 0.9, 0.4]), np.array([0.6, 0.3, 1.0, 0.5])
    assert weigh({KEEP_DEFAULTS: base, QUICK[0]: better}, MEASURE) == {QUICK[0]: 1.0}  # better by 0.1 everywhere
    assert weigh({KEEP_DEFAULTS: better, QUICK[0]: base}, MEASURE) == {KEEP_DEFAULTS: 1.0}
    assert weigh({KEEP_DEFAULTS: better, QUICK[0]: base}, parse_measure("ESL")) == {QUICK[0]: 1.0}
    assert weigh({KEEP_DEFAULTS: base, QUICK[0]: base}, MEASURE) == {KEEP_DEFAULTS: 0.5, QUICK[0]: 0.5}
    lucky = np.array([1.0, 0.1, 0.9, 0.3])
    gap = lucky - base
    z = gap.mean() / (gap.std(ddof=1) / 2)
    found = weigh({KEEP_DEFAULTS: base, QUICK[0]: base - 5, climbing: lucky}, MEASURE)
    assert found.keys() == {KEEP_DEFAULTS, climbing}
    assert found[KEEP_DEFAULTS] / found[climbing] == pytest.approx(np.exp(-2 * z**2))
    assert sum(found.values()) == pytest.approx(1.0)


def test_a_blend_is_the_mean_of_its_parts_where_factors_count_of_logarithms() -> None:
    rows = judged_rows(20)
    ways = {Trial(RankNet(), (Lbfgs(l2=1.0),)): 0.75, Trial(None, (Sampled(l2=1.0),)): 0.25}
    one, other = (tune(BM25F(), rows, measure=MEASURE, recipes=[way], restarts=1).model.params for way in ways)
    both = tune(BM25F(), rows, measure=MEASURE, recipes=ways, restarts=1)
    assert [each.weight for each in both.tried] == [0.75, 0.25]
    assert both.model.params["title.w"] == pytest.approx(one["title.w"] ** 0.75 * other["title.w"] ** 0.25)
    assert both.model.params["body.b"] == pytest.approx(0.75 * one["body.b"] + 0.25 * other["body.b"])


def test_a_mean_that_is_worse_than_all_its_parts_is_not_taken() -> None:
    """A net with its two hidden nodes in each other's place ranks as it did; the mean of the two ranks at random."""
    features = np.random.default_rng(0).normal(size=(300, 2))
    rows = Candidates.of(np.abs(features[:, 0]) > 1, group=[20] * 15, features=features)
    net = Network(hidden=2).prepared(rows, 0)
    ends = {"w21.1.1": 4.0, "b2.1": -4.0, "w32.1": 1.0, "w21.2.1": -4.0, "b2.2": -4.0, "w32.2": 1.0}
    turned = {re.sub(r"^(\w+)\.(\d)", lambda m: f"{m[1]}.{3 - int(m[2])}", name): end for name, end in ends.items()}
    blank = net.at(np.zeros(len(net.params)))
    one, other = (blank.at(blank.params.replace(values)) for values in (ends, turned))
    assert mean(one, rows) == mean(other, rows) > 0.95
    assert mean(blank.at((one.params.values + other.params.values) / 2), rows) < 0.8
    taken = Tuner.of(net, rows, MEASURE).mean_of([one, other], [0.5, 0.5], rows)
    assert mean(taken, rows) == mean(one, rows)


def test_the_same_seed_gives_the_same_parameters() -> None:
    rows = judged_rows(20)
    one, other = (tune(BM25F(), rows, measure=MEASURE, recipes=QUICK, seed=3) for _ in range(2))
    assert one.model.params.values.tolist() == other.model.params.values.tolist()


def test_defaults_that_can_not_be_bettered_stay() -> None:
    rows = judged_rows(20, noise=0.0)
    right = ParameterSettings(start=TRUTH)
    found = tune(BM25F(), rows, measure=MEASURE, parameters=right, recipes=[KEEP_DEFAULTS, *QUICK], folds=3)
    defaults = found.tried[0]
    assert (defaults.what, defaults.value) == ("keep the defaults", pytest.approx(1.0))
    assert defaults.weight == max(each.weight for each in found.tried)
    assert mean(found.model, rows) == pytest.approx(1.0, abs=0.01)


def test_labels_at_random_are_not_claimed_to_help() -> None:
    rows = judged_rows(30, noise=1e6)
    found = tune(BM25F(), rows, measure=MEASURE, recipes=[KEEP_DEFAULTS, *QUICK], folds=3)
    assert found.start is not None
    gap = MEASURE.per_query(found.held_out, rows) - MEASURE.per_query(found.start.score(rows), rows)
    assert abs(gap.mean()) < 3 * gap.std() / np.sqrt(len(gap)) + 1e-9


def test_a_fold_is_ranked_by_a_model_that_did_not_see_it() -> None:
    rows = judged_rows(20)
    held = folds_of(rows.queries, 4, 0)[0]
    seen = rows.select(np.setdiff1d(np.arange(rows.queries), held))
    found = tune(BM25F(), rows, measure=MEASURE, recipes=QUICK, folds=4)
    # Labels of the held-out fold may be anything: they are not looked at.
    labels = rows.labels.copy()
    labels[np.isin(rows.query_of_rows(), held)] = 1.0
    changed = Candidates(rows.offsets, labels, rows.qids, rows.docids, terms=rows.terms)
    again = tune(BM25F(), changed, measure=MEASURE, recipes=QUICK, folds=4)
    mine = np.isin(rows.query_of_rows(), held)
    np.testing.assert_allclose(found.held_out[mine], again.held_out[mine])
    assert not np.allclose(found.held_out[~mine], again.held_out[~mine])
    assert seen.queries == 15


def test_folds_part_the_queries() -> None:
    parts = folds_of(17, 5, 0)
    assert sorted(np.concatenate(parts).tolist()) == list(range(17))
    assert {len(part) for part in parts} == {3, 4}
    with pytest.raises(UsageError, match="5 folds of 3 queries"):
        folds_of(3, 5, 0)


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_every_method_leaves_the_defaults_as_a_choice(method: str) -> None:
    ways = recipes_for(MEASURE, method)
    assert ways[0] == KEEP_DEFAULTS
    assert len(set(ways)) == len(ways) > 1


def test_an_unknown_method_is_an_error() -> None:
    with pytest.raises(UsageError, match="unknown method 'magic'; there are adam, auto"):
        recipes_for(MEASURE, "magic")


def test_line_searches_never_lose_on_what_they_climb() -> None:
    rows = judged_rows(20)
    found = tune(BM25F(), rows, measure=MEASURE, recipes=[SEARCH])
    assert found.start is not None
    assert mean(found.model, rows) > mean(found.start, rows)


def test_fixed_and_shared_parameters_stay_so() -> None:
    rows = judged_rows(20)
    settings = read_settings(None, fix=["title.w=2"], share=["b"], bounds=["body.w=0.5:0.6"], start=["body.w=0.5"])
    params = tune(BM25F(), rows, measure=MEASURE, parameters=settings, recipes=QUICK).model.params
    assert params["title.w"] == 2.0
    assert params["title.b"] == params["body.b"] == params["b"]
    assert 0.5 <= params["body.w"] <= 0.6


def test_nothing_to_tune_is_an_error() -> None:
    rows = judged_rows(4)
    with pytest.raises(UsageError, match="every parameter is fixed"):
        prepared(BM25(), rows, ParameterSettings(fix={"k": None, "b": None}))
    with pytest.raises(InputError, match="no rows"):
        prepared(BM25(), rows.take([]))


def test_ranges_hold_the_tuned_value_and_what_is_outside_is_worse() -> None:
    rows = judged_rows(60)
    found = tune(BM25F(), rows, measure=MEASURE, recipes=QUICK)
    ranges = as_good_ranges(found.model, rows, MEASURE)
    for name, span in ranges.items():
        assert span.low <= found.model.params[name] <= span.high
    assert ranges["body.w"].low > 0 or ranges["body.w"].high < 5  # the labels do depend on it
    low, high = found.interval("title.w")
    assert (low, high) == (ranges["title.w"].low, ranges["title.w"].high)
    with pytest.raises(UsageError, match="no free parameter is called 'nope'"):
        found.interval("nope")
    outside = ranges["body.w"].high * 2
    worse = found.model.at(found.model.params.replace({"body.w": outside}))
    assert ranges["body.w"].open_high or mean(worse, rows) < mean(found.model, rows)


def test_the_work_of_one_thread_or_two_is_the_same() -> None:
    assert run_parallel([lambda i=i: i * i for i in range(9)], jobs=2) == [i * i for i in range(9)]
    with pytest.raises(ValueError, match="no"):
        run_parallel([lambda: 1, lambda: int("no")], jobs=2)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return open_index(collection(), tmp_path_factory.mktemp("index"), None, Analyzer())


def test_an_index_of_the_same_documents_is_taken_up_again(tmp_path: Path) -> None:
    docs = tmp_path / "docs.jsonl"
    docs.write_text('{"_id": "a", "title": "red shoes"}\n{"_id": "b", "title": "blue shoes"}\n')
    for _ in range(2):
        assert len(open_index(docs, tmp_path, None, Analyzer())) == 2
    assert len(list(tmp_path.glob("*.index"))) == 1
    docs.write_text('{"_id": "a", "title": "red shoes"}\n')
    assert len(open_index(docs, tmp_path, None, Analyzer())) == 1
    assert len(open_index(docs, tmp_path, None, Analyzer(stemmer=None))) == 1
    assert len(list(tmp_path.glob("*.index"))) == 3


def test_test_queries_may_not_be_training_queries(index: Index) -> None:
    qrels = collection() / "qrels" / "train.tsv"
    with pytest.raises(InputError, match="test queries are training queries too"):
        task_of_documents(index, collection(), qrels, qrels)


def test_new_documents_at_the_top_are_counted_and_pooled(index: Index) -> None:
    task = task_of_documents(index, collection(), collection() / "qrels" / "train.tsv", depth=3)
    odd = BM25F().prepared(task.train.rows, 0)
    odd = odd.at(odd.params.replace({"text.w": 0.0, "title.w": 0.0, "headings.w": 5.0}))
    wider, new = pooled(task, odd, depth=30)
    assert new > 0
    assert len(wider.train.rows) > len(task.train.rows)
    assert pooled(wider, odd, depth=30)[1] == 0


def test_all_is_written_down(index: Index, tmp_path: Path) -> None:
    qrels = collection() / "qrels"
    task = task_of_documents(index, collection(), qrels / "train.tsv", qrels / "test.tsv")
    outcome = tune_and_write(
        BM25F(), task, tmp_path / "out", silent, measure=MEASURE, folds=3, recipes=[KEEP_DEFAULTS, *QUICK], restarts=1
    )
    told = json.loads((tmp_path / "out" / "result.json").read_text())
    proof = told["proof"]
    for part in ("test", "cross_validated"):
        assert {"default", "tuned", "difference", "interval", "p"} <= proof[part].keys()
        assert proof[part]["tuned"] - proof[part]["default"] == pytest.approx(proof[part]["difference"])
    assert told["measure"] == str(MEASURE)
    assert told["params"]["default"]["title.w"] == 1.0
    assert (told["verdict"]["word"], told["adopted"]) == ("adopt", True)
    assert told["outlook"]["verdict"] in ("rising", "flat", "unclear")
    for place in ("model", "tuned-model"):
        assert load_model(tmp_path / "out" / place).params.values.tolist() == list(told["params"]["fitted"].values())
    test = proof["test"]
    assert test["queries"] == len(test["by_query"]) == 56
    assert np.mean(list(test["by_query"].values()), axis=0) == pytest.approx([test["default"], test["tuned"]])
    assert 0.9 < test["measures"]["Judged@10"]["tuned"] <= 1
    assert told["settings"]["fields"] == ["title", "headings", "text", "anchor"]
    assert told["settings"]["analyzer"] == {"lowercase": True, "stopwords": "english", "stemmer": "english"}
    assert sum(each["weight"] for each in told["tried"]) == pytest.approx(1.0)
    assert proof["cross_validated"]["queries"] == outcome.settings["queries"] == 113
    # Full retrieval: what the run file holds is what the figure is of.
    from fliprank.experiment.evaluation import evaluate

    means = evaluate(qrels / "test.tsv", {"tuned": tmp_path / "out" / "tuned.run"}, [str(MEASURE)]).means()
    assert means["tuned"][str(MEASURE)] == pytest.approx(test["tuned"])


@pytest.mark.parametrize(("adopt", "taken"), [("proven", False), ("always", True), ("never", False)])
def test_what_is_not_shown_to_be_better_is_not_adopted_unless_asked_for(
    tmp_path: Path, adopt: str, taken: bool
) -> None:
    task = Task(Queries(judged_rows(20, noise=1e6)), test=Queries(judged_rows(20, seed=5, noise=1e6)))
    result = tune_and_write(BM25F(), task, tmp_path, silent, measure=MEASURE, adopt=adopt)
    assert result.verdict is not None
    assert result.verdict.word in ("keep", "not shown")
    assert result.adopted is taken
    told = json.loads((tmp_path / "result.json").read_text())
    kept = told["params"]["fitted" if taken else "default"]
    assert load_model(tmp_path / "model").params.values.tolist() == list(kept.values())
    assert load_model(tmp_path / "tuned-model").params.values.tolist() == list(told["params"]["fitted"].values())


def test_without_test_queries_and_cross_validation_nothing_is_proven(tmp_path: Path) -> None:
    result = tune_and_write(BM25F(), Task(Queries(judged_rows(20))), tmp_path, silent, measure=MEASURE, folds=None)
    assert result.verdict is not None
    assert (result.verdict.word, result.adopted, result.proofs) == ("not proven", False, {})


def test_a_tuned_function_below_another_that_needs_no_tuning_is_told_so(tmp_path: Path) -> None:
    """The labels follow from BM25F with its default parameters: no BM25, however tuned, is as good."""
    rows = [judged_rows(40, seed=seed, truth={}, noise=0.01) for seed in (1, 2)]
    task = Task(Queries(rows[0]), test=Queries(rows[1]))
    result = tune_and_write(BM25(), task, tmp_path, silent, measure=MEASURE, recipes=[KEEP_DEFAULTS, *QUICK])
    assert result.verdict is not None
    assert any("bm25f with its default parameters gives" in said for said in result.verdict.also)


def test_an_interruption_of_a_later_round_keeps_what_was_fitted_but_does_not_adopt_it(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "pooled", interrupted)
    task = task_of_documents(index, collection(), collection() / "qrels" / "train.tsv")
    with pytest.raises(KeyboardInterrupt):
        tune_and_write(BM25F(), task, tmp_path / "out", silent, measure=MEASURE, recipes=QUICK)
    assert load_model(tmp_path / "out" / "tuned-model").kind == "bm25f"
    assert not (tmp_path / "out" / "model").exists()


def test_an_interruption_after_tuning_keeps_the_model_and_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Fit, "ranges", interrupted)
    task = Task(Queries(judged_rows(12)), test=Queries(judged_rows(12, seed=5)))
    tune_and_write(BM25F(), task, tmp_path, silent, measure=MEASURE, recipes=QUICK)
    told = json.loads((tmp_path / "result.json").read_text())
    assert told["proof"]["test"]["queries"] == told["proof"]["cross_validated"]["queries"] == 12
    assert told["interrupted"] is True
    assert "interrupted" in told["notes"][-1]
    assert load_model(tmp_path / "model").kind == "bm25f"
