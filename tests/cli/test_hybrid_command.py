"""`fliprank tune --model hybrid` and `rank --run` as a person runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from person import Said, call
from sandbox import make_sandbox

import fliprank as fr

QUICKLY = ("--no-curve", "--folds", "2", "--set", "epochs=2")
DOCUMENTS = ("--docs", "docs.jsonl", "--queries", "queries.tsv", "--qrels", "qrels.txt")


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sandbox(tmp_path_factory.mktemp("sandbox"))


def tune(folder: Path, *given: str | Path, out: str = "out") -> Said:
    return call("tune", *given, *QUICKLY, "--out", out, folder=folder)


def test_it_tunes_proves_writes_and_ranks(sandbox: Path) -> None:
    given = ("--test", "test-qrels.txt", "--model", "hybrid", "--run", "vectors=dense.run", "--run", "tuned.run")
    done = tune(sandbox, *DOCUMENTS, *given, "--adopt", "always", out="both")
    assert done.code == 0, done.err
    assert "weight.vectors" in done.out
    told = json.loads((sandbox / "both" / "result.json").read_text())
    assert told["settings"]["model"] == "hybrid"
    assert told["settings"]["depth"] == 100
    assert told["settings"]["sources"]["run.vectors"] == str((sandbox / "dense.run").resolve())
    assert {"weight.text", "weight.vectors", "weight.tuned", "title.w"} <= told["params"]["fitted"].keys()
    assert told["proof"].keys() == {"test", "cross_validated"}
    model = fr.load_model(sandbox / "both" / "model")
    assert isinstance(model, fr.Hybrid)
    assert (model.window, model.fusion.engine, model.fusion.lists) == (100, "plain", ("text", "vectors", "tuned"))
    weights = model.canonical().fusion.weights
    pasted = json.loads((sandbox / "both" / "settings.txt").read_text())
    assert list(pasted["parameters"].values()) == pytest.approx(weights, abs=1e-4)
    ranked = ("rank", "both", "--index", "both", "--queries", "queries.tsv", "--out", "r.run", "--force")
    done = call(*ranked, "--run", "vectors=dense.run", "--run", "tuned.run", folder=sandbox)
    assert done.code == 0, done.err
    found, tuned = (fr.read_run(sandbox / name).to_dict() for name in ("r.run", "both/tuned.run"))
    assert all(found[qid] == pytest.approx(documents) for qid, documents in tuned.items())
    done = call(*ranked, folder=sandbox)
    assert (done.code, "give them by --run (runs=): vectors, tuned" in done.err) == (2, True)
    done = call(*ranked, "--run", "dense.run", folder=sandbox)
    assert (done.code, "fuses text with vectors, tuned; these rows have dense" in done.err) == (2, True)


def test_the_engine_s_function_and_the_window_are_as_given(sandbox: Path) -> None:
    engine = ("--engine", "opensearch", "--engine-set", "normalise=l2", "--engine-set", "combine=geometric_mean")
    done = tune(sandbox, *DOCUMENTS, "--model", "hybrid", "--run", "dense.json", *engine, "--depth", "7")
    assert done.code != 0  # the queries of this file are named by their texts
    assert "the list dense has none of the queries" in done.err
    done = tune(sandbox, *DOCUMENTS, "--model", "hybrid", "--run", "dense.run", *engine, "--depth", "7")
    assert done.code == 0, done.err
    model = fr.load_model(sandbox / "out" / "tuned-model")
    assert isinstance(model, fr.Hybrid)
    assert (model.window, model.fusion.engine) == (7, "opensearch")
    assert model.fusion.settings == {"normalise": "l2", "combine": "geometric_mean"}


def test_documents_that_the_index_lacks_and_queries_that_a_list_lacks_are_counted(sandbox: Path) -> None:
    lines = (sandbox / "dense.run").read_text().splitlines()
    some = [line for line in lines if not line.startswith(("q3 ", "q35 "))]
    (sandbox / "some.run").write_text("\n".join([*some, "q0 Q0 gone 9 0.1 x", ""]))
    done = tune(sandbox, *DOCUMENTS, "--test", "test-qrels.txt", "--model", "hybrid", "--run", "some.run", out="some")
    assert done.code == 0, done.err
    notes = json.loads((sandbox / "some" / "result.json").read_text())["notes"]
    assert "qrels.txt: 1 of 146 documents of some are not in the index, and left out: gone" in notes
    assert "qrels.txt: some has nothing for 1 of 30 queries: q3" in notes
    assert "test-qrels.txt: some has nothing for 1 of 10 queries: q35" in notes
    ranked = ("rank", "some/tuned-model", "--index", "some", "--queries", "queries.tsv", "--run", "some.run")
    done = call(*ranked, "--out", "s.run", folder=sandbox)
    assert done.code == 0, done.err
    assert "1 of 191 documents of some are not in the index" in done.out + done.err
    assert len(fr.read_run(sandbox / "s.run").to_dict()["q3"]) > 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((*DOCUMENTS, "--model", "hybrid"), "give at least one by --run"),
        ((*DOCUMENTS, "--run", "dense.run"), "--run is for --model hybrid"),
        ((*DOCUMENTS, "--model", "bm25", "--run", "dense.run"), "--run is for --model hybrid, not for bm25"),
        ((*DOCUMENTS, "--function", "bm25"), "say which by --engine"),
        ((*DOCUMENTS, "--engine-set", "normalise=l2"), "--engine-set is for --model hybrid"),
        ((*DOCUMENTS, "--model", "hybrid", "--run", "dense.run", "--run", "dense.run"), "called 'dense' already"),
        ((*DOCUMENTS, "--model", "hybrid", "--run", "text=dense.run"), "give it another name"),
        ((*DOCUMENTS, "--model", "hybrid", "--run", "nowhere.run"), "nowhere.run"),
        ((*DOCUMENTS, "--model", "hybrid", "--run", "dense.run", "--engine", "solr"), "no gradient goes through ranks"),
        ((*DOCUMENTS, "--model", "hybrid", "--run", "dense.run", "--engine", "elastic"), "elasticsearch-linear"),
        ((*DOCUMENTS, "--model", "hybrid", "--run", "dense.run", "--engine-set", "l2"), "like normalise=l2"),
        (("train.jsonl", "--model", "hybrid", "--run", "dense.run"), "a file of rows has no index"),
    ],
)
def test_what_does_not_go_together_is_said(given: tuple[str, ...], said: str, sandbox: Path) -> None:
    done = tune(sandbox, *given, out="bad")
    assert done.code != 0
    assert said in done.err


def test_a_hybrid_without_lists_is_an_error_of_train_and_rank(sandbox: Path) -> None:
    done = call("train", *DOCUMENTS, "--model", "hybrid", "--out", "bad", folder=sandbox)
    assert (done.code, "see `fliprank tune --run`" in done.err) == (2, True)
    done = call("rank", "hybrid", "terms.jsonl", "--out", "x.run", folder=sandbox)
    assert (done.code, "these rows have none" in done.err) == (2, True)
    done = call("rank", "tuned", "terms.jsonl", "--run", "dense.run", "--out", "x.run", folder=sandbox)
    assert (done.code, "give rows, or lists by --run, not both" in done.err) == (2, True)


def test_the_page_s_python_runs(sandbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "fusion.md").read_text()
    [block] = [part.split("```")[0] for part in page.split("```python\n")[1:] if "fr.Hybrid(" in part.split("```")[0]]
    known: dict[str, object] = {"fr": fr}
    monkeypatch.chdir(sandbox)
    exec(block, known)
    fit = known["fit"]
    assert isinstance(fit, fr.Fit)
    assert isinstance(fit.model, fr.Hybrid)
