"""The pages of fusions, trainings, evaluations and papers: their figures are those of the results that they show."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fliprank as fr
from fliprank.experiment.fusing import write_fused
from fliprank.experiment.jobs import train_and_write
from fliprank.experiment.task import Queries, Task
from fliprank.report.page import evaluation_page, findings_page, fusing_page, render, training_page
from fliprank.report.page.section import Page, Section


def section(page: Page, kind: str) -> Section:
    return next(each for each in page.sections if each.kind == kind)


def some_lists(queries: int = 24, seed: int = 0) -> tuple[dict[str, Any], dict[str, dict[str, int]]]:
    """Two lists, of which each knows something of its own about which documents are relevant."""
    rng = np.random.default_rng(seed)
    qrels: dict[str, dict[str, int]] = {}
    lists: dict[str, Any] = {"text": {}, "dense": {}}
    for q in range(queries):
        labels = rng.integers(0, 3, 12)
        qrels[f"q{q}"] = {f"d{i}": int(label) for i, label in enumerate(labels) if i != 5}
        for noise, own in zip((1.5, 1.0), lists.values(), strict=True):
            scores = labels + rng.normal(0, noise, 12)
            own[f"q{q}"] = {f"d{i}": float(s) for i, s in enumerate(scores) if rng.random() < 0.85}
    return lists, qrels


def test_the_curve_of_a_fusion_is_the_measure_at_every_weight(tmp_path: Path) -> None:
    lists, qrels = some_lists()
    fused = fr.fuse(lists, qrels, measure="nDCG@5", folds=2, settings={"normalise": "minmax"})
    page = fusing_page(fused, write_fused(tmp_path, fused), "out", "fliprank fuse")
    data, rows = section(page, "weight").data, fused.fit.rows
    assert rows is not None
    for i in range(0, len(data["y"]), 5):
        weight = (data["x"][i] + data["x"][i + 1]) / 2
        model = fused.model.at([1 - weight, weight])
        assert data["y"][i] == pytest.approx(fr.parse_measure("nDCG@5").value(model.score(rows), rows), abs=1e-6)
    best = fused.curve
    assert best is not None
    assert data["best"][1] == pytest.approx(best.maximum.value, abs=1e-6)
    queries = section(page, "queries").data
    assert [tuple(row[2:4]) for row in queries["rows"]] == list(next(iter(fused.proofs.values())).by_query().values())
    assert queries["names"] == [fused.kept, "tuned"]
    assert section(page, "explorer").data["scorer"]["kind"] == "fusion"


@pytest.fixture
def features() -> fr.Candidates:
    rng = np.random.default_rng(1)
    table = rng.normal(size=(240, 3))
    labels = (table[:, 0] - table[:, 1] + rng.normal(0, 0.5, 240) > 0.5).astype(float)
    return fr.Candidates.of(labels, group=[12] * 20, features=table, feature_names=["a", "b", "c"])


def trained(model: Any, rows: fr.Candidates, folder: Path, **options: Any) -> Any:
    task = Task(
        Queries(rows.select(range(12))), Queries(rows.select(range(12, 16))), Queries(rows.select(range(16, 20)))
    )
    how = {"measure": "nDCG@5", "objective": "ranknet", "restarts": 1, "epochs": 5, "method": "adam"} | options
    return train_and_write(lambda _: model, [task], folder, lambda _: nullcontext(None), **how)


def test_a_training_shows_its_figures_trail_and_every_query(features: fr.Candidates, tmp_path: Path) -> None:
    result = trained(fr.Linear(), features, tmp_path)
    page = training_page(result, "out", "fliprank train")
    means = result.means()
    row = next(row for row in section(page, "figures").data["tables"][0]["rows"] if row[0] == "test queries")
    assert float(row[1]) == pytest.approx(means["test"]["nDCG@5"], abs=5e-5)
    trail = section(page, "trail").data
    assert trail["series"]["valid"] == pytest.approx([epoch.valid for epoch in result.fit.trail], abs=1e-6)
    assert trail["kept"] == result.fit.best.number
    values = [value for _, _, value in section(page, "values").data["rows"]]
    assert np.mean(values) == pytest.approx(means["test"]["nDCG@5"], abs=1e-12)
    assert section(page, "explorer").data["scorer"] == {"kind": "linear"}
    surface = section(page, "surface").data
    names, model = surface["names"], result.fit.model
    rows = features.select(range(12))
    for i, j in ((0, 0), (7, 13), (16, 16)):
        point = dict(zip(names, (surface["axes"][0][i], surface["axes"][1][j]), strict=True))
        value = result.fit.measure.value(model.at(model.params.replace(point)).score(rows), rows)
        assert surface["values"][i][j] == pytest.approx(value, abs=1e-4)


def test_a_cascade_shows_what_each_stage_gains_and_loses(features: fr.Candidates, tmp_path: Path) -> None:
    result = trained(fr.Cascade([fr.Linear(), fr.Linear()], sizes=[12, 4]), features, tmp_path)
    data = section(training_page(result), "stages").data
    found = next(iter(result.folds.values())).stages
    assert [point[0] for point in data["points"]] == [1, 2]
    assert [point[1] for point in data["points"]] == pytest.approx([stage.value for stage in found], abs=1e-6)
    assert [point[4] for point in data["points"]] == pytest.approx([stage.lost for stage in found], abs=1e-6)


def test_python_writes_the_report_of_a_training(features: fr.Candidates, tmp_path: Path) -> None:
    fit = fr.train(fr.Linear(), features.select(range(12)), features.select(range(12, 20)), epochs=3, restarts=1)
    text = fit.report(str(tmp_path / "report.html")).read_text()
    assert '"kind":"trail"' in text


def test_an_evaluation_shows_its_comparisons_and_both_rankings() -> None:
    lists, labels = some_lists()
    qrels, runs = fr.Qrels.of(labels), {name: fr.Run.of(each) for name, each in lists.items()}
    found = fr.evaluate(qrels, runs, ["nDCG@5", "AP"])
    comparisons = found.compare()
    page = evaluation_page(found, comparisons, qrels, runs, command="fliprank evaluate")
    [shown] = section(page, "comparisons").data["sets"]
    for row, each in zip(shown["measures"], comparisons, strict=True):
        assert (row["difference"], row["p"]) == (each.difference, each.p["randomisation"])
    rows = section(page, "queries").data["rows"]
    assert [row[2] for row in rows] == found.values["text"]["nDCG@5"].tolist()
    assert [row[3] for row in rows] == found.values["dense"]["nDCG@5"].tolist()
    assert all(row[4] is not None for row in rows)
    one = evaluation_page(fr.evaluate(qrels, runs["text"], ["AP"]), [])
    assert [each.kind for each in one.sections] == ["figures", "measured"]


def test_findings_of_papers_are_told_with_their_verdicts() -> None:
    finding = {
        "paper": "someone2001", "part": "table1", "title": "A table", "claim": "It rises.", "found": "It rose <by> 2.",
        "verdict": "holds", "columns": ["size", "value"], "rows": [[10, 0.25], [20, 0.5]], "notes": ["a note"],
        "command": "fliprank reproduce someone2001 --part table1",
    }  # fmt: skip
    page = findings_page([finding, finding | {"part": "table2", "verdict": "does not hold"}])
    first = page.sections[0]
    assert first.conclusion == "1 of 2 claims of someone2001 hold here."
    assert first.data["tables"][1]["rows"] == [["10", "0.2500"], ["20", "0.5000"]]
    assert "<by>" not in render(page)
