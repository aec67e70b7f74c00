"""`fliprank fuse` as a person runs it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fliprank.cli import app
from fliprank.data.candidates import Candidates
from fliprank.data.fusion_rows import fused_run, fusion_rows
from fliprank.data.trec import Qrels, Run, read_run, write_qrels, write_run
from fliprank.models import AdaptiveFusion, Linear, load_model

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
    assert "Shaded: statistically as good as the best" in (out / "weight.svg").read_text()
    low, high = content["curve"]["as_good"]
    assert low <= content["curve"]["low"] <= content["curve"]["high"] <= high
    assert content["params"]["as_good"]["weight.vectors"] == [low, high]
    assert "as good" in output
    assert content["curve"]["value"] >= content["baselines"]["equal weights, min-max"][content["measure"]]


def test_a_weight_per_query_is_judged_and_told(files: Path) -> None:
    texts = "".join(f"q{q}\t{'shoes ' * (1 + q % 5)}\n" for q in range(20))
    (files / "queries.tsv").write_text(texts)
    given = ["--run", str(files / "list1.run"), "--set", "normalise=minmax", "--adaptive"]
    output = fuse(files, *given, "--queries", str(files / "queries.tsv"))
    content = json.loads((files / "out" / "result.json").read_text())
    told = content["adaptive"]
    assert told["sentence"] in " ".join(output.split())
    assert content["verdict"]["sentence"].endswith(told["sentence"])
    assert "slope.list1.terms" in told["params"]
    assert (files / "out" / "weights.csv").exists() == (told["adopted"] and content["adopted"])


@pytest.mark.parametrize("adaptive", [False, True])
def test_new_queries_are_ranked_by_what_was_written(files: Path, adaptive: bool) -> None:
    """Lists cut as `fuse` cut them, with the traits of the new queries where the model has slopes."""
    given = ["--run", str(files / "list1.run"), "--set", "normalise=minmax", "--depth", "12", "--adopt", "always"]
    fuse(files, *given)
    names = ["list0", "list1"]
    new = {name: read_run(files / f"{name}.run").to_dict() for name in names}
    new = {name: {q: own for q, own in each.items() if q in ("q3", "q7")} for name, each in new.items()}
    for name, each in new.items():
        write_run(files / f"new-{name}.run", Run.of(each, name))
    rows = fusion_rows(new, depth=12)
    model = load_model(files / "out" / "model")
    if adaptive:
        model = AdaptiveFusion("plain", names, normalise="minmax").prepared(fusion_rows(new), 0)
        model = model.at([0.7, 0.3, 0.2, -0.1, 0.3, 0.1, 0.2, -0.3])
        model.save(files / "out" / "model")
    lists = [part for name in names for part in ("--run", f"{name}={files / f'new-{name}.run'}")]
    result = RUN.invoke(app, ["rank", str(files / "out"), *lists, "--depth", "5", "--out", str(files / "new.run")])
    assert result.exit_code == 0, result.output
    expected = fused_run(rows, model.score(rows), depth=5).to_dict()
    assert read_run(files / "new.run").to_dict() == expected
    assert set(expected) == {"q3", "q7"}


def test_lists_are_for_fusions(files: Path) -> None:
    Linear().prepared(Candidates.of([1, 0], features=[[1.0], [2.0]]), 0).save(files / "linear")
    result = RUN.invoke(app, ["rank", str(files / "linear"), "--run", str(files / "list0.run")])
    assert result.exit_code != 0
    assert "has a linear model" in str(result.exception)


def test_two_lists_of_one_name_are_refused(files: Path) -> None:
    given = ["fuse", "--qrels", str(files / "qrels.txt"), *(["--run", str(files / "list0.run")] * 2)]
    result = RUN.invoke(app, [*given, "--out", str(files / "out")])
    assert result.exit_code != 0
    assert "list0" in str(result.exception)
