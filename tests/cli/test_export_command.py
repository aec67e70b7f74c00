"""`fliprank export`: from what other commands wrote to an engine's files, and what is said on the way."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from person import Said, call
from sandbox import make_sandbox

import fliprank as fr
from fliprank.export import target_names

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sandbox(tmp_path_factory.mktemp("sandbox"))


def said(line: str, folder: Path) -> Said:
    return call(*line.split(), folder=folder)


def test_a_trained_model_becomes_a_folder_that_says_what_to_do(place: Path) -> None:
    trained = "train train.txt --valid vali.txt --test test.txt --epochs 3 --restarts 1 --out trained"
    assert said(trained, place).code == 0
    done = said("export trained --to elasticsearch-ltr --out es", place)
    assert (done.code, done.err) == (0, "")
    assert "written: es/README.md (what to do)" in done.out
    told = (place / "es" / "README.md").read_text()
    figures = json.loads((place / "trained" / "result.json").read_text())["test"]
    name, value = next(iter(figures.items()))
    assert f"On test queries: {name} {value:.4f}" in told
    assert "compared with nothing" in told
    model = json.loads((place / "es" / "model.json").read_text())["model"]["model"]
    assert model["type"] == "model/linear"
    assert said("rank es test.txt --out again.run --force", place).code == 0
    rows = fr.read_letor(place / "test.txt")
    ranked = fr.read_run(place / "again.run")
    assert len(ranked.docids) == len(rows)


def test_a_fusion_is_exported_with_its_gain(place: Path) -> None:
    fused = "fuse --qrels qrels.txt --run bm25.run --run dense.run --engine elasticsearch-rrf --folds 2 --out fused"
    assert said(fused, place).code == 0
    done = said("export fused --to elasticsearch --out fusion --json", place)
    assert done.code == 0, done.out
    told = json.loads(done.out)
    result = json.loads((place / "fused" / "result.json").read_text())
    proof = next(iter(result["proof"].values()))
    assert f"{proof['default']:.4f} → {proof['tuned']:.4f}" in told["gain"]
    assert told["gain"] in (place / "fusion" / "README.md").read_text()
    assert json.loads((place / "fusion" / "search.json").read_text())["retriever"]["rrf"]["rank_constant"] >= 1
    kept = "was not adopted" in (place / "fusion" / "README.md").read_text()
    assert kept == (not result["adopted"])


def test_what_can_t_be_exported_is_an_error_that_names_what_can(place: Path) -> None:
    done = said("export tuned --to onnx", place)
    assert (done.code, done.out) == (2, "")
    assert "bm25f reads term statistics" in done.err
    done = said("export fit --to solr_ltr", place)
    assert done.code == 2
    assert "unknown export target 'solr_ltr'; did you mean" in done.err
    assert "solr-ltr" in done.err
    done = said("export fit --to weaviate", place)
    assert "it takes fused lists; targets that can: elasticsearch-ltr, onnx, opensearch-ltr" in done.err
    assert call("export", "fit", folder=place).err.count("give MODEL and --to NAME") == 1
    assert said("export nowhere --to onnx", place).code == 1
    assert not (place / "export").exists()


def test_targets_are_listed_all_or_those_of_a_model(place: Path) -> None:
    every = call("export", "--list").out
    assert all(f"\n{name} " in f"\n{every}" for name in target_names())
    own = json.loads(said("export fit --list --json", place).out)["targets"]
    assert list(own) == ["elasticsearch-ltr", "onnx", "opensearch-ltr", "solr-ltr", "vespa"]
    shown = call("export", "--help").out
    assert all(name in shown for name in target_names())


def test_folders_of_others_are_left_alone_unless_forced(place: Path) -> None:
    (place / "mine").mkdir()
    (place / "mine" / "notes.txt").write_text("mine")
    done = said("export fit --to vespa --out mine", place)
    assert done.code == 1
    assert "holds other things (notes.txt), which this command did not write (give a new or an empty folder" in done.err
    assert said("export fit --to vespa --out mine --force", place).code == 0
    assert said("export fit --to vespa --out mine", place).code == 0
    assert (place / "mine" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("content", ["{", "[]", '{"measure": "AP"}', '{"measure": "AP", "settings": {}, "proof": 3}'])
def test_a_damaged_result_is_an_error_that_names_it(content: str, place: Path, tmp_path: Path) -> None:
    fr.load_model(place / "fit" / "model").save(tmp_path / "fit" / "model")
    (tmp_path / "fit" / "result.json").write_text(content)
    done = said("export fit --to vespa", tmp_path)
    assert done.code == 1
    assert "fit/result.json" in done.err
    assert len(done.err.splitlines()) == 1


def test_the_table_of_the_page_is_the_registry() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (.+?) \| .+ \|$", PAGE.read_text(), re.MULTILINE)
    assert dict(rows) == target_names()


def test_the_command_tunes_text_and_columns_and_writes_both(place: Path) -> None:
    tuned = "tune --docs products.jsonl --queries queries.tsv --qrels qrels.txt --engine solr --model stack"
    told = said(f"{tuned} --method lbfgs --folds 2 --no-curve --adopt always --out for-solr", place)
    assert told.code == 0, told.err
    params = json.loads((place / "for-solr" / "result.json").read_text())["params"]["fitted"]
    assert {"title.w", "title.k", "tie", "sales.weight", "price.weight"} <= params.keys()
    request = json.loads((place / "for-solr" / "export" / "query.json").read_text())["params"]
    assert [name in "".join(request["bf"]) for name in ("sales", "price")] == [True, True]
    refused = said("tune --engine solr --model bm25f", place)
    assert refused.code == 2
    assert "--model stack adds the documents' columns" in refused.err
