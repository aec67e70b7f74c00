"""A command replaces the files that it wrote, and no others unless told to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fliprank as fr
from fliprank.cli import app
from fliprank.errors import InputError


def run(*words: object) -> None:
    app([str(word) for word in words], standalone_mode=False)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows, a model, documents and queries."""
    folder = tmp_path_factory.mktemp("work")
    x = np.random.default_rng(0).normal(size=(60, 2))
    rows = fr.Candidates.of(x[:, 0] > 0, group=[10] * 6, docids=[f"d{i}" for i in range(60)], features=x)
    fr.write_letor(folder / "rows.txt", rows)
    fr.Linear().prepared(rows, 1).save(folder / "model")
    (folder / "docs.jsonl").write_text('{"_id": "a", "title": "red shoes"}\n{"_id": "b", "title": "blue sky"}\n')
    (folder / "queries.tsv").write_text("q1\tred sky\n")
    return folder


FEATURES = ("features", "--docs", "docs.jsonl", "--queries", "queries.tsv")
GENERATE = ("generate", "--queries", 2, "--docs", 3)
COMMANDS = [
    (("rank", "model", "rows.txt"), "run.trec"),
    (("rank", "model", "rows.txt"), "run.trec.gz"),
    (FEATURES, "rows.parquet"),
    (FEATURES, "features.txt"),
    (GENERATE, "generated.jsonl"),
    (GENERATE, "generated.parquet"),
    (("landscape", "surface", "model", "rows.txt", "--points", 3, "-p", "w.1", "-p", "w.2"), "surface.svg"),
    (("landscape", "surface", "model", "rows.txt", "--points", 3, "-p", "w.1", "-p", "w.2"), "surface.png"),
    (("landscape", "surface", "model", "rows.txt", "--points", 3, "-p", "w.1", "-p", "w.2"), "surface.html"),
    (("landscape", "surface", "model", "rows.txt", "--points", 3, "-p", "w.1", "-p", "w.2"), "surface.csv"),
    (("landscape", "trajectory", "model", "rows.txt", "-p", "bias"), "trajectory.json"),
    (("landscape", "flips", "model", "rows.txt"), "flips.csv"),
]


@pytest.mark.parametrize(("command", "name"), COMMANDS, ids=[name for _, name in COMMANDS])
def test_what_a_command_wrote_it_replaces_and_what_it_did_not_it_leaves(
    command: tuple[object, ...], name: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    out = place / name
    run(*command, "--out", out)
    first = out.read_bytes()
    run(*command, "--out", out)
    assert out.read_bytes() == first
    others = [
        b"my own notes\n",
        b"q1 Q0 d1 1 2.5 mytag\n",
        b"\x89PNG\r\n\x1a\n",
        b"PAR1 PAR1",
        b'{"qid": "q", "docid": "x"}\n',
    ]
    for content in [*others, b"<svg></svg>", b"a,b\n1,2\n", b"[]\n", b"<html></html>", b"1 qid:1 1:2\n"]:
        out.write_bytes(content)
        out.with_name(name + ".names").unlink(missing_ok=True)
        with pytest.raises(InputError, match=r"none that this command wrote \(give another name, or --force"):
            run(*command, "--out", out)
        assert out.read_bytes() == content
    run(*command, "--out", out, "--force")
    assert out.read_bytes() == first
    out.write_bytes(b"")
    run(*command, "--out", out)
    assert out.read_bytes() == first


def test_a_folder_is_no_file_to_replace_even_by_force(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    with pytest.raises(InputError, match="is a folder, not a file to write"):
        run("rank", "model", "rows.txt", "--out", place / "model", "--force")


def test_the_run_of_a_tuning_is_not_replaced_by_that_of_rank(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    fr.write_run(place / "tuned.run", fr.Run.of({"q": {"d": 1.0}}, name="tuned"))
    with pytest.raises(InputError, match="none that this command wrote"):
        run("rank", "model", "rows.txt", "--out", "tuned.run")
