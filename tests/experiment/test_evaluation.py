"""evaluate: the same numbers from files, mappings, frames and arrays, and errors that help."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fliprank as fr
from fliprank.data.builtin import RUNS, collection
from fliprank.defaults import REPORTED_MEASURES

QRELS = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"d": 1}, "q3": {"e": 0}}
RUN = {"q1": {"b": 3.0, "a": 2.0, "x": 1.0}, "q2": {"y": 2.0, "d": 1.0}, "q9": {"a": 1.0}}


def frames(kind: type) -> tuple[object, object]:
    qrels = [(q, d, label) for q, documents in QRELS.items() for d, label in documents.items()]
    run = [(q, d, score) for q, documents in RUN.items() for d, score in documents.items()]
    columns = [dict(zip(names, zip(*rows, strict=True), strict=True)) for names, rows in
               ((("qid", "docid", "label"), qrels), (("qid", "docid", "score"), run))]  # fmt: skip
    return kind(columns[0]), kind(columns[1])


def test_files_mappings_and_frames_give_the_same_numbers(tmp_path: Path) -> None:
    fr.write_qrels(tmp_path / "qrels.gz", fr.Qrels.of(QRELS))
    fr.write_run(tmp_path / "run", fr.Run.of(RUN))
    measures = ["nDCG@10", "AP", "RR", "Judged@2"]
    expected = fr.evaluate(QRELS, RUN, measures).means()["run"]
    assert expected["RR"] == pytest.approx((1 / 2 + 1 / 2 + 0) / 3)
    path = str(tmp_path / "run")
    assert fr.evaluate(tmp_path / "qrels.gz", path, measures).means() == {path: expected}
    for kind in (pl.DataFrame, pd.DataFrame):
        qrels, run = frames(kind)
        assert fr.evaluate(qrels, {"r": run}, measures).means() == {"r": expected}


def test_queries_that_do_not_fit_are_counted_in_the_notes() -> None:
    result = fr.evaluate(QRELS, RUN)
    assert result.qids.tolist() == ["q1", "q2", "q3"]
    assert "run: 1 queries without judgements were left out" in result.notes
    assert "run: nothing retrieved for 1 judged queries" in result.notes


def test_feature_files_with_a_score_file(tmp_path: Path) -> None:
    rows = fr.Candidates.of([2, 0, 1], qid=["a", "a", "b"], features=[[1.0], [2.0], [3.0]])
    fr.write_letor(tmp_path / "test.txt", rows)
    (tmp_path / "scores").write_text("0.5\n0.25\n1e3\n")
    from_files = fr.evaluate(tmp_path / "test.txt", tmp_path / "scores", "nDCG@10").means()
    assert from_files == {str(tmp_path / "scores"): {"nDCG@10": 1.0}}
    assert fr.evaluate(rows, np.array([0.5, 0.25, 1e3]), "nDCG@10").means() == {"run 1": {"nDCG@10": 1.0}}
    assert fr.evaluate(rows, [0.5, 0.25, 1e3], "nDCG@10").means() == {"run 1": {"nDCG@10": 1.0}}


ROWS = fr.Candidates.of([2, 0, 1, 0], qid=list("aabb"), docids=list("wxyz"), features=np.eye(4))
SCORES = np.array([0.1, 0.4, 0.3, 0.2])


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("name", ["rows.txt", "rows.txt.gz", "rows.parquet"])
def test_a_run_of_rows_is_matched_by_query_and_document(tmp_path: Path, named: bool, name: str) -> None:
    """By document id, or by row1, row2, ... where there are none; in whatever order the run has them."""
    rows = ROWS if named else replace(ROWS, docids=None)
    (fr.write_parquet if name.endswith("parquet") else fr.write_letor)(tmp_path / name, rows)
    order = [3, 2, 1, 0]
    ids = rows.document_ids()
    run = fr.Run(np.array([0, 2, 4]), fr.Candidates.of([0, 0], qid=["b", "a"]).qids, ids.take(order), SCORES[order])
    fr.write_run(tmp_path / "run.trec", run)
    measures = ["nDCG", "AP", "RR"]
    expected = fr.evaluate(rows, {"run": SCORES}, measures).means()
    assert fr.evaluate(rows, {"run": run}, measures).means() == expected
    assert fr.evaluate(rows, {"run": run.to_dict()}, measures).means() == expected
    assert fr.evaluate(tmp_path / name, {"run": tmp_path / "run.trec"}, measures).means() == expected


def test_term_statistics_judge_a_run(tmp_path: Path) -> None:
    shared = {"qid": "q", "terms": ["x"], "idf": [1], "tf": {"body": [1]}, "length": {"body": 9}}
    rows = [{**shared, "docid": docid, "label": label} for docid, label in (("a", 0), ("b", 1), ("c", None))]
    (tmp_path / "terms.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "run").write_text("q Q0 a 1 3 t\nq Q0 c 2 2 t\nq Q0 b 3 1 t\n")
    result = fr.evaluate(tmp_path / "terms.jsonl", {"run": tmp_path / "run"}, ["RR", "Judged@2"])
    assert result.means() == {"run": {"RR": 1 / 3, "Judged@2": 0.5}}


def test_rows_that_a_run_does_not_retrieve_are_not_ranked() -> None:
    result = fr.evaluate(ROWS, {"run": {"a": {"x": 1.0}}}, ["R@10", "P@1"])
    qrels = {"a": {"w": 2, "x": 0}, "b": {"y": 1, "z": 0}}
    assert result.means() == fr.evaluate(qrels, {"run": {"a": {"x": 1.0}}}, ["R@10", "P@1"]).means()
    assert result.notes == ("run: nothing retrieved for 1 judged queries",)


def test_tied_rows_without_ids_stay_in_row_order_whether_by_scores_or_by_run() -> None:
    rows = fr.Candidates.of([0] * 9 + [1] + [0])  # row10 is before row9 as text
    run = {"1": {f"row{i}": 1.0 for i in range(1, 12)}}
    assert fr.evaluate(rows, {"r": run}, "RR").mean("r", "RR") == 1 / 10
    assert fr.evaluate(rows, {"r": np.ones(11)}, "RR").mean("r", "RR") == 1 / 10


def test_a_run_of_other_rows_is_refused_with_what_the_rows_have() -> None:
    for run, words in (
        (
            {"b": {"y": 1.0, "k": 0.5, "l": 0.1}},
            r"query b: 2 documents of run are not among the rows: k .*have w, x, y",
        ),
        ({"c": {"w": 1.0}}, r"the rows and run have no query in common \(the rows have a, b, the run c\)"),
    ):
        with pytest.raises(fr.InputError, match=words):
            fr.evaluate(ROWS, {"run": run}, "RR")


def test_unless_told_the_measures_are_those_that_training_reports() -> None:
    assert tuple(fr.evaluate(QRELS, RUN).values["run"]) == REPORTED_MEASURES
    assert "nDCG(dcg='exp-log2')@10" in REPORTED_MEASURES


def test_a_wrong_score_file_is_named(tmp_path: Path) -> None:
    rows = fr.Candidates.of([2, 0, 1], group=[3])
    (tmp_path / "words").write_text("0.5\nhigh\n")
    (tmp_path / "short").write_text("0.5\n")
    with pytest.raises(fr.InputError, match="words, line 2: 'high' is not a score"):
        fr.evaluate(rows, tmp_path / "words")
    with pytest.raises(fr.InputError, match="short has 1 scores for 3 rows"):
        fr.evaluate(rows, tmp_path / "short")


def test_comparisons_are_with_the_first_run_or_the_one_named() -> None:
    folder = collection()
    runs = [folder / "runs" / f"{name}.run" for name in RUNS]
    result = fr.evaluate(folder / "qrels" / "test.tsv", runs, ["nDCG@10", "RR"])
    names = list(result.values)
    first = result.compare(permutations=999)
    assert [(c.run, c.measure) for c in first] == [(run, m) for run in names[1:] for m in ("nDCG@10", "RR")]
    for c in first:
        assert c.difference == pytest.approx(result.mean(c.run, c.measure) - result.mean(names[0], c.measure))
        assert c.interval[0] <= c.difference <= c.interval[1]
        assert c.corrected["holm"] >= c.p["randomisation"]
    named = fr.compare(folder / "qrels" / "test.tsv", runs, "RR", baseline=names[2], permutations=999)
    assert {c.run for c in named} == set(names[:2])


def test_explain_says_what_each_number_depends_on() -> None:
    told = dict(fr.evaluate(QRELS, RUN, ["nDCG@10"], convention="lightgbm").explain())
    assert told["convention"] == "lightgbm"
    assert told["nDCG@10"].startswith("read as nDCG(dcg='exp-log2')@10.")
    assert "score 1 and count" in told["nDCG@10"]
    assert "order of rows" in told["ties"]
    plain = dict(fr.evaluate(QRELS, RUN, ["nDCG@10"]).explain())
    assert plain["queries without relevant documents"] == "score 0 and count"


def test_the_built_in_collection_is_whole() -> None:
    folder = collection()
    pages = {page["_id"]: page for page in fr.read_beir(folder).documents().to_dicts()}
    assert len(pages) >= 200
    judged: set[str] = set()
    for split in ("train", "test"):
        beir = fr.read_beir(folder, split)
        qrels = beir.qrels.to_dict()
        assert not judged & qrels.keys()
        judged |= qrels.keys()
        assert {document for documents in qrels.values() for document in documents} <= pages.keys()
        assert {label for documents in qrels.values() for label in documents.values()} == {0, 1, 2, 3, 4}
    assert len(judged) >= 100
    assert all(link["target"] in pages for page in pages.values() for link in page["links"])
