"""What a tuning says that it moved: on queries that it did not see where there are any, as its proofs have them."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tuning_rows import judged_rows

import fliprank as fr
from fliprank.cli.diff_text import moves_lines
from fliprank.data.candidates import Candidates
from fliprank.experiment.jobs import tune_and_write
from fliprank.experiment.results import Result
from fliprank.experiment.task import Queries, Task
from fliprank.experiment.tuning_moves import BY_ALL
from fliprank.models import BM25F, Linear


def tuned(task: Task, folder: Path, model: Any = None, **options: Any) -> Result:
    how = {"measure": "nDCG@5", "curve": False, "folds": 2} | options
    return tune_and_write(model or BM25F(), task, folder, lambda _: nullcontext(None), **how)


def checked(result: Result, folder: Path, on: str) -> dict[str, Any]:
    """The queries that gained and lost most are those of the proof, with its figures."""
    told = json.loads((folder / "result.json").read_text())
    moved, by_query = told["moved"], told["proof"][on]["by_query"]
    assert moved["on"] == on
    gains = sorted(after - before for before, after in by_query.values())
    assert [each["change"] for each in moved["hurt"]] == pytest.approx([gain for gain in gains[:3] if gain < 0])
    assert [each["change"] for each in moved["helped"]] == pytest.approx([g for g in gains[:-4:-1] if g > 0])
    for each in (*moved["helped"], *moved["hurt"]):
        assert [each["before"], each["after"]] == pytest.approx(by_query[each["query"]], abs=1e-12)
        assert 1 <= len(each["documents"]) <= 3
    assert result.moves is not None
    assert result.moves.title in list(moves_lines(result.moves, 100))
    return dict(moved)


def test_without_test_queries_rankings_are_by_fits_that_did_not_see_them(tmp_path: Path) -> None:
    rows = judged_rows(queries=16)
    result = tuned(Task(Queries(rows)), tmp_path)
    moved = checked(result, tmp_path, "cross_validated")
    assert moved["notes"] == [BY_ALL]
    held, default = result.fit.held_out, result.fit.start
    assert held is not None
    assert default is not None
    names, scores = rows.document_ids().tolist(), default.score(rows)
    for each in (*moved["helped"], *moved["hurt"]):
        q = rows.qids.tolist().index(each["query"])
        span = range(*rows.offsets[q : q + 2])
        for side, values in (("before", scores), ("after", held)):
            ranked = sorted(span, key=lambda row: (values[row], names[row].encode()), reverse=True)
            places = {names[row]: rank for rank, row in enumerate(ranked, 1)}
            for document in each["documents"]:
                assert document[f"rank_{side}"] == places[document["document"]]
    assert "training queries, ranked by fits that did not see them" in result.moves.title  # type: ignore[union-attr]


def test_test_rows_are_shown_with_the_scores_of_the_tuned_function(tmp_path: Path) -> None:
    rows = judged_rows(queries=24, seed=2)
    train, test = (rows.select(np.arange(*ends)) for ends in ((0, 14), (14, 24)))
    result = tuned(Task(Queries(train), test=Queries(test)), tmp_path)
    moved = checked(result, tmp_path, "test")
    assert moved["notes"] == []
    shown = [document for each in (*moved["helped"], *moved["hurt"]) for document in each["documents"]]
    for document in shown:
        total = sum(part["after"] for part in document["contributions"])
        assert total == pytest.approx(document["score_after"], rel=1e-6)
    assert any(document["because"] for document in shown)


def test_what_was_not_held_out_is_said_to_be_so(tmp_path: Path) -> None:
    result = tuned(Task(Queries(judged_rows(queries=12))), tmp_path, folds=None)
    told = json.loads((tmp_path / "result.json").read_text())
    assert told["proof"] is None
    assert told["moved"]["on"] == "train"
    assert result.moves is not None
    assert "training queries, which tuning did see" in result.moves.title


def test_rows_without_names_are_called_as_in_the_runs(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(200, 3)).round(1)
    labels = np.clip((features @ [1.0, 0.5, 0.0] + rng.normal(0, 0.3, 200)).round(), 0, 2)
    rows = Candidates.of(labels, group=[20] * 10, features=features)
    result = tuned(Task(Queries(rows)), tmp_path, Linear())
    moved = checked(result, tmp_path, "cross_validated")
    run = fr.read_run(tmp_path / "tuned.run").to_dict()
    for each in (*moved["helped"], *moved["hurt"]):
        for document in each["documents"]:
            assert document["document"] in run[each["query"]]


def test_the_files_that_were_read_are_named_in_the_result(tmp_path: Path) -> None:
    task = Task(Queries(judged_rows(queries=12))).read_from(rows=tmp_path / "rows.jsonl", test=None)
    tuned(replace(task), tmp_path / "out", folds=None)
    told = json.loads((tmp_path / "out" / "result.json").read_text())
    assert told["settings"]["sources"] == {"rows": str((tmp_path / "rows.jsonl").resolve())}
