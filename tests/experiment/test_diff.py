"""What moved between two rankings: figures, flips, reasons and records agree with what they are about."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fliprank as fr
from fliprank.data.builtin import collection
from fliprank.data.trec import Run
from fliprank.errors import InputError, UsageError
from fliprank.experiment.diff import Diff, diff, diff_of_runs
from fliprank.experiment.move_reasons import Explainer, rows_of_index
from fliprank.models import BM25, BM25F, BM25Sum, Feature, Linear, Network, Stack, TwoStageLM
from fliprank.text.index import Index

Lists = dict[str, dict[str, float]]


def random_lists(seed: int, queries: int = 8) -> tuple[Lists, Lists, Lists]:
    """Two runs with ties, lists of different lengths, empty ones, and queries that one or both lack; judgements."""
    rng = np.random.default_rng(seed)
    runs: list[Lists] = [{}, {}]
    for run in runs:
        for q in range(queries):
            if rng.random() < 0.9:
                some = rng.permutation(20)[: rng.integers(0, 16)]
                run[f"q{q}"] = {f"d{d}": float(rng.integers(0, 9)) for d in some}
    runs[0].setdefault("q0", {"d1": 1.0})
    runs[1].setdefault("q0", {"d1": 1.0})
    some = {q: rng.permutation(22)[: rng.integers(1, 12)] for q in range(queries - 1)}
    qrels = {f"q{q}": {f"d{d}": float(rng.integers(0, 4)) for d in found} for q, found in some.items()}
    return runs[0], runs[1], qrels


@pytest.mark.parametrize("measure", ["nDCG@10", "nDCG(dcg='exp-log2')@5", "AP", "RR", "ERR@7", "Rprec", "Bpref"])
def test_values_are_those_of_evaluate_and_flips_add_up_to_their_change(measure: str) -> None:
    flips = 0
    for seed in range(15):
        before, after, qrels = random_lists(seed)
        found = diff(before, after, qrels, measure=measure, top=4)
        judged = fr.evaluate(qrels, {"before": before, "after": after}, measure)
        assert found.means == (judged.mean("before", measure), judged.mean("after", measure))
        [expected] = judged.compare()
        assert found.comparison == expected
        assert found.counts == (expected.better, expected.worse, expected.tied)
        values = {run: dict(zip(judged.qids, judged.values[run][measure], strict=True)) for run in judged.values}
        changes = []
        for query in found:
            assert (query.before, query.after) == (values["before"][query.qid], values["after"][query.qid])
            assert query.flips is not None
            assert sum(flip.worth for flip in query.flips) == pytest.approx(query.change, abs=1e-12)
            flips += len(query.flips)
            changes.append(query.change)
        assert changes == sorted(changes, reverse=True)
    assert flips > 100


def test_documents_ranks_and_labels_agree_with_plain_python() -> None:
    for seed in range(15):
        before, after, qrels = random_lists(seed)
        for query in diff(before, after, qrels, measure="nDCG@5", top=4):
            ranked = [
                sorted(run.get(query.qid, {}), key=lambda d: (run[query.qid][d], d.encode()), reverse=True)
                for run in (before, after)
            ]
            assert {each.docid for each in query.documents} == {*ranked[0][:4], *ranked[1][:4]}
            for each in query.documents:
                places = [names.index(each.docid) + 1 if each.docid in names else None for names in ranked]
                assert [each.before, each.after] == places
                assert each.label == qrels[query.qid].get(each.docid)
            lists = [[each.docid for each in side] for side in query.lists]
            assert lists == [ranked[0][:4], ranked[1][:4]]
            for flip in query.flips or ():
                if flip.up is not None and flip.down is not None:  # swapped, or one of the two is new or gone
                    was = [names.index(flip.up) if flip.up in names else 99 for names in ranked]
                    below = [names.index(flip.down) if flip.down in names else 99 for names in ranked]
                    assert was[0] >= below[0]
                    assert was[1] <= below[1]
                assert flip.up_label == (None if flip.up is None else qrels[query.qid].get(flip.up))


def test_what_documents_gain_adds_up_to_the_change() -> None:
    before, after, qrels = random_lists(3)
    for query in diff(before, after, qrels, measure="AP", top=50):  # all documents are shown
        assert sum(each.gain or 0.0 for each in query.documents) == pytest.approx(query.change, abs=1e-12)


def test_without_judgements_the_lists_that_moved_most_come_first() -> None:
    before, after, _ = random_lists(5)
    found = diff(before, after, top=3)
    overlaps = [query.overlap for query in found]
    assert overlaps == sorted(overlaps)
    assert len(found) == len({*before, *after})
    assert found.measure is None
    assert all(query.change is None and query.flips is None for query in found)
    assert "mean overlap" in repr(found)
    with pytest.raises(UsageError, match="without judgements"):
        found.helped()


def test_queries_of_one_run_only_are_told() -> None:
    one, two = {"a": {"d": 1.0}, "b": {"d": 1.0}}, {"a": {"d": 1.0}, "c": {"d": 1.0}, "e": {}}
    assert diff(one, two).notes == [
        "2 queries are not in the first run: their lists are empty there",
        "1 queries are not in the second run: their lists are empty there",
    ]
    found = diff(one, two, {"a": {"d": 1}, "b": {"d": 1}}, measure="RR")
    assert "2 queries without judgements were left out" in found.notes
    assert "1 judged queries are not in the second run: their lists are empty there" in found.notes
    [flip] = found["b"].flips or ()
    assert (flip.up, flip.down, flip.rank, flip.worth) == (None, "d", 1, -1.0)
    assert repr(found["b"]) == "<QueryDiff b: 1.0000 -> 0.0000, 1 documents moved>"


def test_a_measure_that_is_better_when_small_sorts_the_other_way_and_has_no_flips() -> None:
    before, after = {"a": {"x": 2.0, "y": 1.0}, "b": {"x": 1.0, "y": 2.0}}, {"a": {"x": 1.0, "y": 2.0}}
    after["b"] = {"x": 2.0, "y": 1.0}
    found = diff(before, after, {"a": {"x": 1}, "b": {"x": 1}}, measure="ESL")
    assert [(each.qid, each.change) for each in found] == [("b", -1.0), ("a", 1.0)]
    assert [each.qid for each in found.helped()] == ["b"]
    assert [each.qid for each in found.hurt()] == ["a"]
    assert found["a"].flips is None
    assert "ESL does not pay by ranks alone: what flips are worth is not told" in found.notes


def test_a_measure_that_depends_on_the_length_of_lists_is_not_priced_wrongly() -> None:
    found = diff(
        {"q": {"a": 1.0}}, {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 1, "b": 0}}, measure="P(norm='retrieved')@5"
    )
    [query] = found
    assert query.change == -0.5
    assert query.flips is None
    assert any("depends on the length of lists" in note for note in found.notes)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(InputError, match="no query in common"):
        diff({"a": {"d": 1.0}}, {"b": {"d": 1.0}})
    with pytest.raises(UsageError, match="top must be at least 1"):
        diff({}, {}, top=0)
    with pytest.raises(UsageError, match="a model and a run"):
        diff(BM25(), {"a": {"d": 1.0}})
    with pytest.raises(UsageError, match="give the index and the queries"):
        diff(BM25(), BM25F())
    with pytest.raises(UsageError, match="the folder that `fliprank tune` wrote"):
        diff({"a": {"d": 1.0}})
    found = diff({"a": {"d": 1.0}}, {"a": {"d": 1.0}})
    with pytest.raises(UsageError, match="no query is called 'zz'; there are a"):
        found["zz"]
    with pytest.raises(UsageError, match="to_frame: one of documents, flips, queries"):
        found.to_frame("x")


@pytest.fixture(scope="module")
def helpdesk() -> dict[str, Any]:
    """The built-in collection: an index, queries and judgements."""
    source = collection()
    index = Index.build(source / "corpus.jsonl")
    return {"index": index, "queries": source, "qrels": source / "qrels" / "test.tsv", "docs": source}


def models(index: Index) -> dict[str, tuple[Any, Any]]:
    """Pairs of functions before and after."""
    rows = index.candidates(collection(), depth=30)
    bm25f, total = BM25F().prepared(rows, 0), BM25Sum().prepared(rows, 0)
    language, stack = TwoStageLM().prepared(rows, 0), Stack(BM25F(), TwoStageLM()).prepared(rows, 0)
    lighter = bm25f.params.replace({"title.w": 4.0, "text.w": 0.2, "anchor.b": 0.1})
    return {
        "bm25f": (bm25f, bm25f.at(lighter)),
        "bm25 to bm25f": (BM25().prepared(rows, 0), bm25f.at(lighter)),
        "bm25sum": (total, total.at(total.params.replace({"title.w": 3.0, "text.k": 0.4}))),
        "lm": (language, language.at([0.6, 50.0])),
        "bm25f to lm": (bm25f, language),
        "stack": (stack, stack.at(stack.params.replace({"two_stage_lm.weight": 0.4}))),
    }


@pytest.mark.parametrize("name", ["bm25f", "bm25 to bm25f", "bm25sum", "lm", "bm25f to lm", "stack"])
def test_reasons_are_the_parts_of_the_scores_that_made_the_lists(helpdesk: dict[str, Any], name: str) -> None:
    before, after = models(helpdesk["index"])[name]
    given = {key: helpdesk[key] for key in ("index", "queries", "docs")}
    found = diff(before, after, helpdesk["qrels"], **given, depth=60)
    told = 0
    for query in found[:12]:
        ranks = {each.docid: [each.before or 999, each.after or 999] for each in query.documents}
        for each in query.documents:
            if each.score_before is not None:
                assert sum(part[1] for part in each.sums) == pytest.approx(each.score_before, rel=1e-6, abs=1e-6)
            if each.score_after is not None:
                assert sum(part[2] for part in each.sums) == pytest.approx(each.score_after, rel=1e-6, abs=1e-6)
            own = ranks[each.docid]
            up = own[1] < own[0]
            passed = [
                r for r in ranks.values() if (r[0] < own[0] and r[1] > own[1]) or (r[0] > own[0] and r[1] < own[1])
            ]
            if each.because:
                assert passed
                total = sum(reason.change for reason in each.because)
                assert (total > 0) == up
                told += 1
            assert each.title
    assert told > 20
    assert not [note for note in found.notes if "not told" in note]


def test_a_reason_is_the_margin_over_the_documents_that_were_passed(helpdesk: dict[str, Any]) -> None:
    """By hand, from the contributions of a query: mean margin over those passed, in standard deviations of scores."""
    before, after = models(helpdesk["index"])["bm25f"]
    query = diff(before, after, helpdesk["qrels"], index=helpdesk["index"], queries=helpdesk["queries"])[0]
    each = next(
        each for each in query.moved if each.because and each.before and each.after and each.after < each.before
    )
    passed = [
        other
        for other in query.documents
        if (other.before or 1e9) < each.before < 1e9 and (other.after or 1e9) > (each.after or 0)
    ]
    for reason in each.because:
        margins = []
        for side in (1, 2):
            spread = np.std([sum(part[side] for part in other.sums) for other in query.documents])
            values = [{part[0]: part[side] for part in other.sums}.get(reason.part, 0.0) for other in (each, *passed)]
            margins.append((values[0] - np.mean(values[1:])) / spread)
        assert (reason.before, reason.after) == pytest.approx(margins, abs=1e-9)


def test_what_is_no_sum_is_said_plainly() -> None:
    rng = np.random.default_rng(0)
    rows = fr.Candidates.of(rng.integers(0, 3, 40), group=[20, 20], features=rng.normal(size=(40, 3)))
    one, two = Network(2).prepared(rows, 0), Network(2).prepared(rows, 1)
    found = diff(one, two, rows=rows)
    assert not any(each.because for query in found for each in query.documents)
    assert "why documents moved is not told: the score of a network model is no sum over terms, fields or features" in (
        found.notes
    )
    linear = Linear().prepared(rows, 0)
    found = diff(linear, linear.at([0, 1, -1, 0.5]), rows=rows)
    assert {reason.part.field for each in found[0].documents for reason in each.because} == {"1", "2", "3"}
    assert found.means == pytest.approx(
        [fr.evaluate(model, rows, found.measure).means()["model"][str(found.measure)] for model in
         (linear, linear.at([0, 1, -1, 0.5]))]
    )  # fmt: skip


def test_scores_of_another_function_are_not_explained(helpdesk: dict[str, Any]) -> None:
    before, after = models(helpdesk["index"])["bm25f"]
    texts = fr.read_beir(helpdesk["queries"]).queries
    runs = [helpdesk["index"].search(texts, model, depth=20) for model in (before, after)]
    other = replace(runs[1], scores=runs[1].scores * 2)
    explainer = Explainer(before, after, rows_of_index(helpdesk["index"], texts))
    found = diff_of_runs(runs[0], other, None, explainer=explainer, texts=texts)
    assert not any(each.because for query in found[:5] for each in query.documents)
    assert "why documents moved is not told: the scores of the runs are not those of the functions" in found.notes


def test_documents_that_the_index_does_not_have_are_not_explained(helpdesk: dict[str, Any]) -> None:
    before, after = models(helpdesk["index"])["bm25f"]
    explainer = Explainer(before, after, rows_of_index(helpdesk["index"], {"q": "refund", "empty": "refund"}))
    runs = [Run.of({"q": {"billing": 1.0 + i, "elsewhere": 2.0}, "empty": {}}) for i in range(3)[::2]]
    found = diff_of_runs(*runs, None, explainer=explainer)
    assert not any(each.because for query in found for each in query.documents)
    assert found.notes == ["why documents moved is not told: query q: document elsewhere is not in the index"]


def test_records_agree_with_each_other_and_with_json(helpdesk: dict[str, Any]) -> None:
    before, after = models(helpdesk["index"])["bm25f"]
    given = {key: helpdesk[key] for key in ("index", "queries", "docs")}
    found: Diff = diff(before, after, helpdesk["qrels"], **given, depth=40, top=5)
    told = found.to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert [each["query"] for each in told["changes"]] == [each.qid for each in found]
    documents, flips, queries = (found.to_frame(what) for what in ("documents", "flips", "queries"))
    assert len(queries) == len(found) == told["queries"]
    assert queries["change"].to_list() == [each["change"] for each in told["changes"]]
    assert len(documents) == sum(len(each["documents"]) for each in told["changes"])
    assert documents["rank_after"].to_list() == [d["rank_after"] for c in told["changes"] for d in c["documents"]]
    by_query = {each["query"]: each["change"] for each in told["changes"]}
    for (qid,), part in flips.group_by("query"):
        assert part["worth"].sum() == pytest.approx(by_query[str(qid)], abs=1e-12)
    assert told["difference"] == pytest.approx(queries["change"].mean(), abs=1e-12)


def test_features_of_documents_are_reasons_too() -> None:
    docs = [{"_id": f"d{i}", "title": f"shoe number {i}", "pagerank": float((9 - i) ** 2)} for i in range(9)]
    index = Index.build(docs)
    rows = index.candidates({"q": "shoe"})
    before = Stack(BM25F(), Feature("pagerank", transform="saturate")).prepared(rows, 0)
    after = before.at(before.params.replace({"pagerank.weight": 3.0}))
    [query] = diff(before, after, index=index, queries={"q": "shoe"}, docs=docs)
    assert [each.docid for each in query.lists[0]] == [f"d{i}" for i in reversed(range(9))]  # ties, by id
    assert [each.docid for each in query.lists[1]] == [f"d{i}" for i in range(9)]
    assert len(query.moved) == 8
    assert {str(each.because[0].part) for each in query.moved} == {"pagerank"}
