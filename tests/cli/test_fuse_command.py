"""`fliprank fuse` as a person runs it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fliprank.cli import app
from fliprank.data.trec import Qrels, Run, write_qrels, write_run

RUN = CliRunner()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    labels = rng.choice([0, 0, 0, 1, 2], (20, 25))
    for name, sees in (("list0", 0.7), ("list1", 1.6)):
        scores = sees * labels + rng.normal(size=labels.shape)
        content = {f"q{q}": {f"d{d}": s for d, s in enumerate(line)} for q, line in enumerate(scores.tolist())}
        write_run(tmp_path / f"{name}.run", Run.of(content, name))
    judged = {f"q{q}": {f"d{d}": label for d, label in enumerate(line)} for q, line in enumerate(labels.tolist())}
    write_qrels(tmp_path / "qrels.txt", Qrels.of(judged))
    return tmp_path


def fuse(files: Path, *options: str) -> str:
    given = ["fuse", "--qrels", str(files / "qrels.txt"), "--run", str(files / "list0.run"), *options]
    result = RUN.invoke(app, [*given, "--out", str(files / "out")], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_it_writes_settings_runs_figures_and_what_to_judge(files: Path) -> None:
    output = fuse(files, "--run", f"vectors={files / 'list1.run'}", "--engine", "elasticsearch-linear")
    assert "nDCG" in output
    out = files / "out"
    content = json.loads((out / "result.json").read_text())
    assert content["settings"]["lists"] == ["list0", "vectors"]
    linear = json.loads((out / "settings.txt").read_text())["retriever"]["linear"]["retrievers"]
    assert [next(iter(each["retriever"])) for each in linear] == ["list0", "vectors"]
    with (out / "to-judge.csv").open() as file:
        assert next(csv.reader(file)) == ["query", "docid", "rank_before", "rank_after", "change"]
    assert (out / "weight.svg").read_text().startswith("<svg")
    assert content["curve"]["value"] >= content["baselines"]["equal weights, min-max"][content["measure"]]


def test_two_lists_of_one_name_are_refused(files: Path) -> None:
    given = ["fuse", "--qrels", str(files / "qrels.txt"), *(["--run", str(files / "list0.run")] * 2)]
    result = RUN.invoke(app, [*given, "--out", str(files / "out")])
    assert result.exit_code != 0
    assert "list0" in str(result.exception)
