"""`fliprank train`: any model under any method, from features, term statistics or documents; nonsense in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fliprank as fr
from fliprank.data.builtin import collection
from fliprank.models.registry import make_model, model_names
from fliprank.optimize.methods import METHODS

FEATURES = ("linear", "network", "cascade")
LISTS = {"fusion": "lists", "adaptive-fusion": "lists", "hybrid": "both"}
"""Models that read features, and those that read lists, alone or beside term statistics; all others read the latter."""


def fliprank_does(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fliprank", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, fr.Candidates]:
    """Rows of the built-in collection with term statistics and a column, and rows with features."""
    index = fr.Index.build(collection())
    few = index.candidates(collection(), collection() / "qrels" / "train.tsv", depth=12).select(np.arange(12))
    rng = np.random.default_rng(0)
    column = np.abs(np.nan_to_num(few.labels) + rng.normal(size=len(few)))[:, None]
    terms = fr.Candidates(few.offsets, few.labels, few.qids, few.docids, column, ("clicks",), few.terms)
    x = rng.normal(size=(120, 4))
    features = fr.Candidates.of(np.clip(np.round(x[:, 0] - x[:, 1]), 0, 2), group=[10] * 12, features=x)
    runs = {
        name: {f"q{q}": {f"d{d}": float(s) for d, s in zip(rng.choice(14, 9, False), rng.normal(size=9), strict=True)}
               for q in range(12)}
        for name in ("bm25", "dense")
    }  # fmt: skip
    qrels = {f"q{q}": {f"d{d}": int(rng.integers(3)) for d in range(14)} for q in range(12)}
    lists = fr.with_query_traits(fr.fusion_rows(runs, qrels))
    documents = few.document_ids().tolist()
    dense = {qid: dict(zip(documents[a:b:2], rng.normal(size=b - a).tolist(), strict=False))
             for qid, a, b in zip(few.qids.tolist(), few.offsets[:-1], few.offsets[1:], strict=True)}  # fmt: skip
    judged = collection() / "qrels" / "train.tsv"
    both = index.candidates(collection(), judged, depth=12, runs={"dense": dense}, ranker=fr.BM25F())
    return {"terms": terms, "features": features, "lists": lists, "both": both.select(np.arange(12))}


@pytest.fixture(scope="module")
def files(rows: dict[str, fr.Candidates], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("rows")
    fr.write_statistics(folder / "terms.jsonl", rows["terms"])
    fr.write_letor(folder / "features.txt", rows["features"])
    return {"terms": folder / "terms.jsonl", "features": folder / "features.txt"}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", [name for name in model_names() if name not in ("trees", "cascade", "auto")])
def test_every_model_is_fitted_by_every_method_that_makes_sense(
    rows: dict[str, fr.Candidates], name: str, method: str
) -> None:
    given = rows["features" if name in FEATURES else LISTS.get(name, "terms")]
    model = make_model(name, given, hidden=2 if name == "network" else None)
    options = {"steps": 3} if method == "grid" else {"epochs": 1}
    options |= {"samples": 5} if method in ("line", "golden", "brent", "sampled", "metzler2007") else {}
    options |= {"size": 6} if method == "evolution" else {}
    if method == "grid" and len(model.prepared(given, 0).params.free_names) > 3:
        with pytest.raises(fr.UsageError, match="a full grid is for 1 to 3 free parameters"):
            fr.train(model, given, objective="ranknet", method=method, sweep=False, **options)
        return
    fit = fr.train(model, given, objective="ranknet", method=method, sweep=False, **options)
    assert len(fit.trail) >= 2
    assert fit.best.train >= fit.trail[0].train
    assert fit.model.params.names == model.prepared(given, 0).params.names


@pytest.mark.parametrize(
    "given",
    [
        ["--model", "bm25f", "--method", "taylor2006", "--objective", "ranknet", "--epochs", "2"],
        ["--model", "bm25sum", "--method", "taylor2006", "--objective", "ranknet", "--epochs", "2"],
        ["--model", "bm25sum", "--method", "exact", "--epochs", "1", "--free", "title.a"],
        ["--model", "stack", "--hidden", "3", "--objective", "ranknet", "--epochs", "3"],
        ["--model", "taylor2006-9", "--method", "line", "--epochs", "1", "--set", "samples=5"],
        ["--model", "lm", "--method", "metzler2007", "--objective", "ranknet", "--epochs", "2"],
        ["--keep", "last", "--objective", "softndcg", "--epochs", "2", "--select", "AP", "--measure", "RR"],
        ["--share", "b", "--fix", "title.w=2", "--method", "exact", "--epochs", "1"],
    ],
    ids=lambda given: "-".join(given[1:4:2]),
)
def test_term_statistics_are_fitted_by_command(files: dict[str, Path], tmp_path: Path, given: list[str]) -> None:
    done = fliprank_does("train", files["terms"], *given, "--restarts", "1", "--out", tmp_path / "fit")
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "fit" / "result.json").read_text())
    model = fr.load_model(tmp_path / "fit" / "model")
    assert told["params"]["fitted"] == dict(zip(model.params.names, model.params.values.tolist(), strict=True))
    head, *epochs = (tmp_path / "fit" / "trail.csv").read_text().splitlines()
    assert head.split(",")[6:] == list(model.params.free_names)
    assert len(epochs) >= 2
    if "--keep" in given:
        assert told["measure"] == "AP"
        assert told["settings"]["epoch"] == len(epochs) - 1
        assert set(told["train"]) == {"AP", "RR"}
    if "--share" in given:
        assert model.params["title.b"] == model.params["b"]
        assert model.params["title.w"] == 2.0


def test_documents_are_fitted_by_command(tmp_path: Path) -> None:
    given = ["--beir", collection(), "--test", "test", "--depth", "10", "--model", "bm25", "--objective", "ranknet"]
    done = fliprank_does("train", *given, "--epochs", "3", "--restarts", "1", "--out", tmp_path / "fit")
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "fit" / "result.json").read_text())
    assert {"train", "test"} <= told.keys()
    assert told["settings"]["documents"] == 263


def test_a_given_setting_is_not_swept_and_what_was_tried_is_told(files: dict[str, Path], tmp_path: Path) -> None:
    common = ["train", files["features"], "--valid", files["features"], "--epochs", "2", "--restarts", "1"]
    for objective, tried in (("softndcg(sigma=0.1)", 3), ("softndcg", 9)):
        done = fliprank_does(*common, "--objective", objective, "--out", tmp_path / str(tried))
        assert done.returncode == 0, done.stderr
        told = json.loads((tmp_path / str(tried) / "result.json").read_text())
        assert len(told["tried"]) == tried
        assert max(told["tried"], key=lambda each: each["value"])["value"] == pytest.approx(
            next(each["value"] for each in told["tried"] if each["weight"])
        )


def test_trees_are_grown_by_command(files: dict[str, Path], tmp_path: Path) -> None:
    given = ["--model", "trees", "--objective", "softndcg", "--set", "leaf_rows=10", "--set", "rate=0.2"]
    given += ["--epochs", "6", "--valid", files["features"], "--out", tmp_path / "fit"]
    done = fliprank_does("train", files["features"], *given)
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "fit" / "result.json").read_text())
    assert len(told["tried"]) == 2
    assert (told["settings"]["leaf_rows"], told["settings"]["rate"], told["settings"]["model"]) == (10, 0.2, "trees")
    rows = fr.read_letor(files["features"])
    model = fr.load_model(tmp_path / "fit" / "model")
    value = fr.parse_measure(told["measure"]).value(model.score(rows), rows)
    assert told["valid"][told["measure"]] == pytest.approx(value)
    assert len((tmp_path / "fit" / "trail.csv").read_text().splitlines()) == 7


@pytest.mark.parametrize("blocked", [False, True])
def test_auto_is_trained_by_command_over_folds_with_and_without_lightgbm(tmp_path: Path, blocked: bool) -> None:
    rng = np.random.default_rng(5)
    for fold in ("Fold1", "Fold2"):
        for part in ("train", "vali", "test"):
            x = rng.normal(size=(300, 4))
            labels = np.clip(np.round(x[:, 0] - x[:, 1] + rng.normal(size=300)), 0, 2)
            fr.write_letor(tmp_path / fold / f"{part}.txt", fr.Candidates.of(labels, group=[10] * 30, features=x))
    code = "import sys; sys.modules['lightgbm'] = None\n" if blocked else ""
    given = ["train", "--folds", tmp_path, "--model", "auto", "--hidden", "3", "--epochs", "4", "--restarts", "1"]
    command = [sys.executable, "-c", f"{code}from fliprank.cli import main; main()", *map(str, given), "--out"]
    done = subprocess.run([*command, str(tmp_path / "fit")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "fit" / "result.json").read_text())
    assert set(told["test"]) == {told["measure"], "AP", "RR"}
    for fold in told["folds"]:
        parts = [part["part"] for part in fold["settings"]["parts"]]
        assert parts == (["linear", "network"] if blocked else ["linear", "network", "trees"])
        assert sum(part["weight"] for part in fold["settings"]["parts"]) == pytest.approx(1)
        choices = [each["what"] for each in fold["tried"] if "cross-validated" in each["what"]]
        assert len(choices) == 3
        model, rows = (
            fr.load_model(tmp_path / "fit" / fold["fold"] / "model"),
            fr.read_letor(tmp_path / fold["fold"] / "test.txt"),
        )
        found = fr.parse_measure("AP").value(model.score(rows), rows)
        assert fold["test"]["AP"] == pytest.approx(found)
    assert done.stdout.count("equal weights, cross-validated") == 2
    assert ("trees: left out, lightgbm is not installed: pip install 'fliprank[gbm]'" in done.stdout) == blocked


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ["TERMS", "--model", "network"],
            "would leave out the term statistics of these rows: --model stack",
        ),
        (["FEATURES", "--model", "bm25f"], "bm25f reads term statistics, and these rows have only features"),
        (["FEATURES", "--model", "trees", "--method", "exact"], "trees has no use for method"),
        (["FEATURES", "--model", "trees", "--set", "depth=3"], "trees have no setting depth; they have epochs, leaves"),
        (["FEATURES", "--model", "auto", "--set", "l2=3"], "a blend has no setting l2"),
        (["FEATURES", "--model", "auto", "--fix", "bias"], "blend has no use for parameters"),
        (["FEATURES", "--method", "taylor2006"], "taylor2006 descends RankNet's cost, pair by pair: not lambdarank@10"),
        (["FEATURES", "--method", "grid"], "a full grid is for 1 to 3 free parameters, not 5"),
        (["FEATURES", "--model", "linear", "--hidden", "3"], "linear has no hidden; models that have: auto, network"),
        (["FEATURES", "--keep", "best"], "keep is one of measure, objective, last"),
        (["FEATURES", "--method", "exact", "--set", "search=magic"], "search is one of 'exact', 'sampled'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    files: dict[str, Path], tmp_path: Path, given: list[str], said: str
) -> None:
    names = {"TERMS": files["terms"], "FEATURES": files["features"]}
    done = fliprank_does("train", *(names.get(each, each) for each in given), "--out", tmp_path / "fit")
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert len([line for line in done.stderr.splitlines() if not line.startswith("fliprank: training,")]) == 1
