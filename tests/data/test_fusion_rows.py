"""From runs to rows and back: the union of documents, scores and ranks per run, judgements as for a single run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fliprank as fr

BM25 = {"q2": {"a": 3.0, "b": 3.0, "c": 1.0}, "q1": {"x": 2.0}, "q9": {"x": 1.0}}
DENSE = {"q1": {"y": 0.5, "x": 0.25}, "q2": {"d": 0.9, "a": 0.1}}
QRELS = {"q1": {"y": 1, "z": 2}, "q2": {"a": 0, "d": 3}, "q3": {"a": 1}}


def by_document(rows: fr.Candidates, query: int) -> dict[str, tuple[list[float], list[int]]]:
    assert rows.lists is not None
    assert rows.docids is not None
    span = range(rows.offsets[query], rows.offsets[query + 1])
    return {rows.docids[i]: (rows.lists.scores[i].tolist(), rows.lists.ranks[i].tolist()) for i in span}


def test_rows_are_the_union_with_scores_ranks_and_labels() -> None:
    rows = fr.fusion_rows({"bm25": BM25, "dense": DENSE}, QRELS)
    assert rows.qids.tolist() == ["q1", "q2", "q3"]
    assert rows.sizes.tolist() == [2, 4, 0]
    found = by_document(rows, 1)
    np.testing.assert_equal(
        found,
        {
            "b": ([3.0, np.nan], [1, 0]),  # ties by document id, descending
            "a": ([3.0, 0.1], [2, 2]),
            "c": ([1.0, np.nan], [3, 0]),
            "d": ([np.nan, 0.9], [0, 1]),
        },
    )
    labels = dict(zip(rows.docids.tolist()[2:], rows.labels.tolist()[2:], strict=True))
    np.testing.assert_equal(labels, {"b": np.nan, "a": 0.0, "c": np.nan, "d": 3.0})
    assert rows.missed_labels.tolist() == [2.0, 1.0]


def test_rows_are_judged_as_a_single_run_of_the_union_is() -> None:
    rng = np.random.default_rng(5)
    runs = {}
    for name in ("a", "b", "c"):
        table = {f"q{q}": {f"d{d}": float(rng.normal()) for d in rng.choice(30, 12, False)} for q in range(8)}
        runs[name] = fr.Run.of(table)
    qrels = fr.Qrels.of({f"q{q}": {f"d{d}": int(rng.integers(3)) for d in range(30)} for q in reversed(range(9))})
    rows = fr.fusion_rows(runs, qrels)
    scores = rng.normal(size=len(rows))
    run = fr.fused_run(rows, scores)
    for measure in ("nDCG@5", "AP"):
        law = fr.parse_measure(measure)
        judged = fr.judge(qrels, run)
        expected = law.per_query(judged.scores, judged.candidates)
        np.testing.assert_array_equal(law.per_query(scores, rows), expected)


def test_depth_cuts_each_run_before_statistics_and_ties_go_as_asked() -> None:
    rows = fr.fusion_rows({"bm25": BM25, "dense": DENSE}, QRELS, depth=1)
    assert by_document(rows, 1).keys() == {"b", "d"}
    assert rows.lists is not None
    assert rows.lists.statistics[1, 0].tolist() == [1.0, 3.0, 3.0, 3.0, 0.0, 3.0]
    given = fr.fusion_rows({"bm25": BM25}, QRELS, depth=1, ties="given")
    assert by_document(given, 1).keys() == {"a"}
    turned = fr.fusion_rows({"bm25": BM25, "dense": DENSE}, QRELS, ascending=["dense"])
    assert by_document(turned, 0)["x"][1] == [1, 1]
    assert by_document(turned, 0)["y"][1] == [0, 2]


def test_queries_without_qrels_and_some_of_them() -> None:
    rows = fr.fusion_rows({"bm25": BM25, "dense": DENSE})
    assert rows.qids.tolist() == ["q2", "q1", "q9"]
    assert np.isnan(rows.labels).all()
    few = fr.fusion_rows({"bm25": BM25, "dense": DENSE}, QRELS, queries=["q2"])
    assert few.qids.tolist() == ["q2"]


def test_runs_of_files_are_named_by_them_and_come_back(tmp_path: Path) -> None:
    for name, table in (("bm25", BM25), ("dense", DENSE)):
        fr.write_run(tmp_path / f"{name}.run.gz", fr.Run.of(table, name))
    rows = fr.fusion_rows([tmp_path / "bm25.run.gz", tmp_path / "dense.run.gz"], QRELS)
    assert rows.lists is not None
    assert rows.lists.names == ("bm25", "dense")
    model = fr.Fusion("elasticsearch-rrf").prepared(rows, 0)
    run = fr.fused_run(rows, model.score(rows), "hybrid", depth=3)
    fr.write_run(tmp_path / "fused.run", run)
    back = fr.read_run(tmp_path / "fused.run").to_dict()
    assert back["q2"] == {"a": 1 / 62 + 1 / 62, "b": 1 / 61, "d": 1 / 61}
    assert list(back) == ["q1", "q2"]


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(fr.InputError, match="no query in common"):
        fr.fusion_rows({"bm25": {"z": {"a": 1.0}}}, QRELS)
    with pytest.raises(fr.UsageError, match="no run is called 'l2'"):
        fr.fusion_rows({"bm25": BM25}, QRELS, ascending=["l2"])
    with pytest.raises(fr.UsageError, match="depth"):
        fr.fusion_rows({"bm25": BM25}, QRELS, depth=0)
    with pytest.raises(fr.InputError, match="query nosuch is not among"):
        fr.fusion_rows({"bm25": BM25}, QRELS, queries=["nosuch"])
    with pytest.raises(fr.UsageError, match="two runs are called 'x'"):
        fr.fusion_rows([fr.Run.of(BM25, "x"), fr.Run.of(DENSE, "x")], QRELS)
    with pytest.raises(fr.UsageError, match="no runs"):
        fr.fusion_rows({}, QRELS)
