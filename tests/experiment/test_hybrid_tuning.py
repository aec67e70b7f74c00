"""Hybrids through `tune`: both parts learn, rivals are named, what comes up is pooled again with its lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fliprank as fr
from fliprank.data.trec import Qrels, Run
from fliprank.experiment.proving import references
from fliprank.experiment.task import JudgedQueries, Task, fold_tasks, pooled, task_of_judged_queries
from fliprank.measures import parse_measure

QUERIES, DOCUMENTS = 40, 120


@pytest.fixture(scope="module")
def task() -> Task:
    """Words of the title tell what is relevant, those of the body mislead; the dense list is as good as noise."""
    rng = np.random.default_rng(7)
    words = [f"word{i:02}" for i in range(30)]
    titles = [rng.choice(words, 4) for _ in range(DOCUMENTS)]
    docs = [
        {"_id": f"d{i}", "title": " ".join(title), "body": " ".join(rng.choice(words, 25))}
        for i, title in enumerate(titles)
    ]
    asked = {f"q{q}": rng.choice(words, 3, replace=False) for q in range(QUERIES)}
    judged, dense = {}, {}
    for qid, terms in asked.items():
        hits = np.array([len(set(terms) & set(title)) for title in titles])
        judged[qid] = {f"d{i}": float(hits[i]) for i in np.flatnonzero(hits)}
        near = rng.permutation(DOCUMENTS)[:30]
        dense[qid] = {f"d{i}": float(s) for i, s in zip(near, rng.normal(size=30), strict=True)}
    texts = {qid: " ".join(terms) for qid, terms in asked.items()}
    given = JudgedQueries(texts, {"train": ("qrels", Qrels.of(judged))})
    return task_of_judged_queries(fr.Index.build(docs), given, 30, {"dense": Run.of(dense)})


@pytest.fixture(scope="module")
def fit(task: Task) -> fr.Fit:
    return fr.tune("hybrid", task.train.rows, measure="nDCG@10", folds=3)


def test_both_parts_learn_and_held_out_queries_prove_it(task: Task, fit: fr.Fit) -> None:
    model, start = fit.model, fit.start
    assert isinstance(model, fr.Hybrid)
    assert isinstance(start, fr.Hybrid)
    assert model.params["title.w"] / model.params["body.w"] > 3.0
    assert model.fusion.weights[1] < 0.5 * model.fusion.weights[0]
    assert fit.proof.word == "adopt"
    assert fit.proof.tuned > fit.proof.default + 0.1
    assert start.params["weight.text"] == start.params["weight.dense"] == 1.0


def test_one_fit_is_at_least_as_good_on_its_own_queries_as_either_part_alone(task: Task, fit: fr.Fit) -> None:
    rows, measure, start = task.train.rows, parse_measure("nDCG@10"), fit.start
    assert start is not None
    text = start.params.names[:5]
    parts = [start.at(start.params.fix(names)) for names in (text, start.params.names[5:])]
    alone = [fr.tune(part, rows, measure="nDCG@10", folds=3).model for part in parts]
    assert alone[0].params.values[:5].tolist() == start.params.values[:5].tolist()
    values = [measure.value(each.score(rows), rows) for each in (fit.model, *alone)]
    assert values[0] > max(values[1:])


def test_rivals_are_each_list_alone_reciprocal_ranks_and_plain_text(task: Task, fit: fr.Fit) -> None:
    rows, measure = task.train.rows, parse_measure("nDCG@10")
    found = {each.name: each for each in references(fit, rows, None, measure)}
    assert found.keys() == {"bm25", "bm25f", "the list dense", "RRF"}
    assert (found["the list dense"].how, found["RRF"].how) == ("alone", "with k = 60")
    assert task.runs is not None
    assert task.train.qrels is not None
    alone = fr.evaluate(task.train.qrels, {"dense": task.runs["dense"]}, ["nDCG@10"]).means()["dense"]["nDCG@10"]
    # All rows are ranked: what the list lacks comes below it, so that no more than its first ten can count.
    assert found["the list dense"].value == pytest.approx(alone)
    assert isinstance(fit.start, fr.Hybrid)
    scores, owner = fit.start.text.score(rows), rows.query_of_rows()
    lexical: dict[str, dict[str, float]] = {}
    for row, docid in enumerate(rows.document_ids().tolist()):
        if scores[row] > 0:
            lexical.setdefault(rows.qids[owner[row]], {})[docid] = float(scores[row])
    both = fr.fusion_rows({"text": Run.of(lexical), "dense": task.runs["dense"]}, task.train.qrels)
    ranks = fr.Fusion("plain", ["text", "dense"], normalise="rank").score(both)
    assert found["RRF"].value == pytest.approx(measure.value(ranks, both))


def test_what_a_tuned_hybrid_brings_up_joins_the_rows_with_its_lists(task: Task, fit: fr.Fit) -> None:
    assert task.index is not None
    assert task.train.qrels is not None
    judged = {qid: dict(list(labels.items())[:1]) for qid, labels in task.train.qrels.to_dict().items()}
    given = JudgedQueries(task.train.texts, {"train": ("qrels", Qrels.of(judged))})
    narrow = task_of_judged_queries(task.index, given, 3, task.runs)
    wider, new = pooled(narrow, fit.model, depth=30)
    assert new > 0
    assert len(wider.train.rows) > len(narrow.train.rows)
    assert wider.train.rows.lists is not None
    again, none = pooled(wider, fit.model, depth=30)
    assert (none, again) == (0, wider)


def test_folds_keep_the_lists(task: Task) -> None:
    for fold in fold_tasks(task, 4):
        assert fold.runs is task.runs
        assert fold.train.rows.lists is not None
        assert len(fold.run(fold.train, fr.Hybrid().prepared(fold.train.rows, 0), 5).qids) == fold.train.rows.queries


def test_a_tuned_hybrid_is_saved_and_ranks_as_before(task: Task, fit: fr.Fit, tmp_path: Path) -> None:
    fit.model.save(tmp_path / "model")
    again = fr.load_model(tmp_path / "model")
    assert task.run(task.train, again, 10).to_dict() == task.run(task.train, fit.model, 10).to_dict()
