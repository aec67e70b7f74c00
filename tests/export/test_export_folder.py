"""The folder of an export: whole or not at all, nobody's files lost, and readable again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fliprank as fr
from fliprank.errors import InputError, UsageError
from fliprank.export import About, Export, read_export, target_names, write_export
from fliprank.export.target import TARGETS, Target, find_target, targets_for
from fliprank.models.fusion import ENGINES

LISTS = ["bm25", "dense"]
MODEL = fr.Fusion("opensearch", LISTS).at([1.0, 3.0])


@pytest.mark.parametrize("engine", sorted(set(ENGINES) - {"plain"}))
def test_every_fusion_is_exported_to_its_own_engine_and_to_no_other(engine: str, tmp_path: Path) -> None:
    model = fr.Fusion(engine, LISTS)
    assert set(targets_for(model)) == {engine, engine.partition("-")[0]}
    place = fr.export_model(model, engine, tmp_path / "out")
    found = read_export(place)
    assert found.target == engine
    assert isinstance(found.model, fr.Fusion)
    assert found.model.params.values.tolist() == model.params.values.tolist()
    (name,) = found.files
    assert (place / name).read_text().strip()
    told = (place / "README.md").read_text()
    assert all(part in told for part in ("## What to do", "## Indexing", "## What was lost", f"`{name}`"))


def test_a_fusion_of_no_engine_says_how_to_get_one() -> None:
    with pytest.raises(UsageError, match=r"fliprank fuse --engine vespa`; .*; no target can"):
        find_target("vespa", fr.Fusion("plain", LISTS))


def test_unknown_and_unfit_targets_name_those_that_fit() -> None:
    with pytest.raises(UsageError, match=r"unknown export target 'opensaerch'; did you mean opensearch"):
        find_target("opensaerch", MODEL)
    with pytest.raises(UsageError, match=r"vespa can't take this fusion model: .*; targets that can: opensearch$"):
        find_target("vespa", MODEL)
    with pytest.raises(UsageError, match="nothing to export yet: train it"):
        find_target("vespa", fr.Linear())


def test_the_readme_has_the_gain_of_the_tuning_and_what_was_changed(tmp_path: Path) -> None:
    proof = {"default": 0.61, "tuned": 0.65, "difference": 0.04, "p": 0.003, "queries": 50}
    about = About("nDCG@10", "test", proof, verdict="Better.")
    told = (write_export(tmp_path, MODEL, "opensearch", about) / "README.md").read_text()
    assert "nDCG@10 0.6100 → 0.6500 (+0.0400, p = 0.003) on 50 test queries. Better." in told
    assert "Weights are scaled to add up to 1" in told
    told = (write_export(tmp_path, MODEL, "opensearch") / "README.md").read_text()
    assert "Nothing is known" in told


def test_an_export_is_replaced_whole_and_files_of_others_stay(tmp_path: Path) -> None:
    place = write_export(tmp_path / "out", MODEL, "opensearch")
    (place / "notes.txt").write_text("mine")
    write_export(place, fr.Fusion("weaviate", LISTS), "weaviate")
    assert sorted(path.name for path in place.iterdir()) == [
        *("README.md", "export.json", "hybrid.graphql", "model", "notes.txt")
    ]
    (place / "search-pipeline.json").write_text("mine")
    with pytest.raises(InputError, match=r"holds other things \(search-pipeline.json\)"):
        write_export(place, MODEL, "opensearch")
    assert (place / "search-pipeline.json").read_text() == "mine"
    assert read_export(place).target == "weaviate"
    write_export(place, MODEL, "opensearch", force=True)
    assert json.loads((place / "search-pipeline.json").read_text())


def test_a_folder_of_other_things_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match=r"holds other things \(thesis.tex\).*--force"):
        write_export(tmp_path, MODEL, "opensearch")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(InputError, match="is a file"):
        write_export(tmp_path / "thesis.tex", MODEL, "opensearch", force=True)


@pytest.mark.parametrize("content", ["{", "[]", '{"fliprank": "model"}', '{"fliprank": "export", "version": 2}'])
def test_a_damaged_record_is_an_error(content: str, tmp_path: Path) -> None:
    (tmp_path / "export.json").write_text(content)
    with pytest.raises(InputError, match=r"export\.json"):
        read_export(tmp_path)


def test_an_unfinished_export_is_none_and_can_be_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*args: object) -> str:
        raise KeyboardInterrupt

    place = write_export(tmp_path / "out", MODEL, "opensearch")
    with monkeypatch.context() as patched:
        patched.setattr("fliprank.export.folder.readme", stop)
        with pytest.raises(KeyboardInterrupt):
            write_export(place, fr.Fusion("weaviate", LISTS), "weaviate")
    with pytest.raises(InputError, match="not finished"):
        read_export(place)
    write_export(place, fr.Fusion("weaviate", LISTS), "weaviate")
    assert read_export(place).files == ("hybrid.graphql",)
    assert not (place / "search-pipeline.json").exists()


def test_force_replaces_a_record_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "export.json").write_text("{}")
    with pytest.raises(InputError, match=r"export\.json"):
        write_export(tmp_path, MODEL, "opensearch")
    assert read_export(write_export(tmp_path, MODEL, "opensearch", force=True)).target == "opensearch"


def test_a_record_can_t_have_files_removed_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    place = write_export(tmp_path / "out", MODEL, "opensearch")
    record = json.loads((place / "export.json").read_text())
    record["files"] = ["../mine.txt", str(tmp_path / "mine.txt"), "a/../../mine.txt"]
    (place / "export.json").write_text(json.dumps(record))
    write_export(place, MODEL, "opensearch", force=True)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_names_from_models_are_no_markup_in_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = "<script>\n# boo\x1b[2J"
    toy = Target("toy", "a toy", lambda model: None, lambda model, about: Export({"a.txt": "x"}, (bad,), lost=(bad,)))
    monkeypatch.setitem(TARGETS, "toy", [toy])
    told = (write_export(tmp_path, MODEL, "toy") / "README.md").read_text()
    assert "<script>" not in told
    assert "\n# boo" not in told
    assert "\x1b" not in told


def test_an_engine_can_t_write_outside_its_folder_or_over_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("../x", "/x", "export.json", "README.md", "model/model.json", ""):
        toy = Target("toy", "a toy", lambda model: None, lambda model, about, name=name: Export({name: "x"}))
        monkeypatch.setitem(TARGETS, "toy", [toy])
        with pytest.raises(InputError, match="can't be called"):
            write_export(tmp_path / "out", MODEL, "toy")
    assert not (tmp_path / "out").exists()


def test_of_several_targets_of_one_name_the_first_that_takes_a_model_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def toy(kind: str) -> Target:
        def takes(model: fr.Model) -> str | None:
            return None if model.kind == kind else f"it takes {kind}"

        return Target("toy", f"{kind} models", takes, lambda model, about: Export({f"{kind}.txt": ""}))

    monkeypatch.setitem(TARGETS, "toy", [toy("linear"), toy("fusion")])
    assert target_names()["toy"] == "linear models; fusion models"
    assert read_export(write_export(tmp_path, MODEL, "toy")).files == ("fusion.txt",)
