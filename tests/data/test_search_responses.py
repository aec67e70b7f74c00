"""Lists and judgements as engines and workbenches give them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fliprank.data.trec import read_qrels, read_run
from fliprank.errors import InputError

EXPECTED = {"q1": {"a": 2.5, "b": 1.0}, "q2": {"c": 0.25}}


def written(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def elastic(hits: dict[str, float]) -> dict[str, Any]:
    return {"took": 3, "hits": {"total": {"value": 9}, "hits": [{"_id": d, "_score": s} for d, s in hits.items()]}}


def qdrant(hits: dict[str, float]) -> dict[str, Any]:
    return {"result": [{"id": d, "version": 1, "score": s} for d, s in hits.items()], "status": "ok"}


def qdrant_points(hits: dict[str, float]) -> dict[str, Any]:
    return {"result": {"points": [{"id": d, "score": s} for d, s in hits.items()]}}


def weaviate(hits: dict[str, float]) -> dict[str, Any]:
    return {"data": {"Get": {"Shoe": [{"_additional": {"id": d, "score": str(s)}} for d, s in hits.items()]}}}


def weaviate_distance(hits: dict[str, float]) -> dict[str, Any]:
    return {"objects": [{"uuid": d, "metadata": {"distance": -s}} for d, s in hits.items()]}


def solr(hits: dict[str, float]) -> dict[str, Any]:
    return {"response": {"numFound": 2, "docs": [{"id": d, "score": s} for d, s in hits.items()]}}


def vespa(hits: dict[str, float]) -> dict[str, Any]:
    return {"root": {"children": [{"id": d, "relevance": s} for d, s in hits.items()]}}


ENGINES = [elastic, qdrant, qdrant_points, weaviate, weaviate_distance, solr, vespa]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_of_responses_by_query_id(engine: Any, tmp_path: Path) -> None:
    path = written(tmp_path / "dense.json", {qid: engine(hits) for qid, hits in EXPECTED.items()})
    run = read_run(path)
    assert run.to_dict() == EXPECTED
    assert run.name == "dense"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_line_per_query_with_the_response_inside_or_beside(engine: Any, tmp_path: Path) -> None:
    inside = [json.dumps({"query_id": qid, "response": engine(hits)}) for qid, hits in EXPECTED.items()]
    assert read_run(written(tmp_path / "a.jsonl", "\n".join(inside))).to_dict() == EXPECTED
    if engine is not solr:  # its own key is `response`
        beside = [json.dumps({"qid": qid, **engine(hits)}) for qid, hits in EXPECTED.items()]
        assert read_run(written(tmp_path / "b.jsonl", "\n".join(beside) + "\n")).to_dict() == EXPECTED


def test_an_answer_of_msearch_needs_the_ids_of_its_queries(tmp_path: Path) -> None:
    responses = {"responses": [elastic(hits) for hits in EXPECTED.values()]}
    with pytest.raises(InputError, match="2 responses, and no ids"):
        read_run(written(tmp_path / "m.json", responses))
    assert read_run(written(tmp_path / "n.json", {"queries": ["q1", "q2"], **responses})).to_dict() == EXPECTED


def test_a_folder_with_a_file_per_query(tmp_path: Path) -> None:
    folder = tmp_path / "dense"
    folder.mkdir()
    with pytest.raises(InputError, match=r"without \.json files"):
        read_run(folder)
    for qid, hits in EXPECTED.items():
        written(folder / f"{qid}.json", elastic(hits))
    assert read_run(folder).to_dict() == EXPECTED


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_a_table_of_scores(separator: str, tmp_path: Path) -> None:
    lines = [["query_id", "docid", "score"], *([q, d, str(s)] for q, hits in EXPECTED.items() for d, s in hits.items())]
    path = written(tmp_path / "dense.csv", "\n".join(separator.join(line) for line in lines))
    assert read_run(path).to_dict() == EXPECTED


def test_a_table_of_query_texts_has_the_ids_of_the_judgements(tmp_path: Path) -> None:
    run = read_run(written(tmp_path / "r.csv", 'query,docid,score\n"red shoes",a,0.5\n'))
    qrels = read_qrels(written(tmp_path / "q.csv", "query,docid,rating\nred  shoes,a,1\n"))
    assert run.qids.tolist() == qrels.qids.tolist()


def test_a_parquet_file_of_scores(tmp_path: Path) -> None:
    rows = [(q, d, s) for q, hits in EXPECTED.items() for d, s in hits.items()]
    pl.DataFrame(rows, schema=["query_id", "docid", "score"], orient="row").write_parquet(tmp_path / "dense.parquet")
    assert read_run(tmp_path / "dense.parquet").to_dict() == EXPECTED


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"q1": {"hits": {"hits": [{"_id": "a", "_score": None}]}}}, "document a has the score None"),
        ({"q1": elastic({"a": 1.0}), "q2": {"hits": "none"}}, "not a response of an engine"),
        ({"q1": {"hits": {"hits": [{"_score": 1.0}]}}}, "a hit without an id"),
        ({"q1": {"result": [{"id": 1, "score": 1}, {"id": "1", "score": 2}]}}, "document 1 occurs twice"),
        (elastic({"a": 1.0}), "which query it answers"),
        ([{"response": elastic({"a": 1.0})}], "response 1 has no query_id"),
        ([{"qid": "q", **elastic({"a": 1.0})}, {"qid": "q", **elastic({"b": 1.0})}], "two responses"),
        ({}, "no responses"),
        ('{"q1": ', "broken JSON"),
        ('{"qid": "a", "result": []}\n{"qid": ', "line 2"),
        ("[" * 100_000, "nested too deep"),
        ('{"q1": {"result": [{"id": 1, "score": 1e999}]}}', "broken JSON"),
        ("query,docid,score\nq,a,high\n", "line 2.*'high' is not a finite number"),
        ("query,docid,score\nq,a,1\nq,a,2\n", "line 3.*document a occurs twice"),
        ("query,docid,score\n,a,1\n", "a score without a query"),
    ],
)
def test_what_is_wrong_is_said(content: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told):
        read_run(written(tmp_path / "run", content))


SRW = {
    "judgmentRatings": [{"query": "red shoes", "ratings": [{"docId": "a", "rating": "0.5"}, {"docId": 7, "rating": 1}]}]
}


@pytest.mark.parametrize("wrapped", [SRW, {"_source": SRW}, {"hits": {"hits": [{"_id": "x", "_source": SRW}]}}])
def test_judgements_of_the_search_relevance_workbench(wrapped: Any, tmp_path: Path) -> None:
    qrels = read_qrels(written(tmp_path / "judgements.json", wrapped))
    assert qrels.to_dict() == {"red_shoes": {"a": 0.5, "7": 1.0}}
    assert qrels.texts == {"red_shoes": "red shoes"}


@pytest.mark.parametrize(
    ("ratings", "told"),
    [
        ([{"docId": "a", "rating": "good"}], "'good' of document a is not a finite number"),
        ([{"rating": "1"}], "without docId"),
        ([{"docId": "a", "rating": 1}, {"docId": "a", "rating": 0}], "occurs twice"),
        ([], "no ratings"),
        ("none", "without text or ratings"),
    ],
)
def test_broken_judgements_are_said(ratings: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told):
        read_qrels(written(tmp_path / "j.json", {"judgmentRatings": [{"query": "shoes", "ratings": ratings}]}))


def test_ids_that_begin_with_brackets_are_no_json(tmp_path: Path) -> None:
    assert read_run(written(tmp_path / "a.run", "[red] Q0 d1 1 2.5 x\n")).to_dict() == {"[red]": {"d1": 2.5}}
    assert read_qrels(written(tmp_path / "a.txt", "{q} 0 d1 1\n")).to_dict() == {"{q}": {"d1": 1.0}}
