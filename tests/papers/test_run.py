"""The framework: what is written, when a part is run again, what is said where data is missing."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fliprank.cli import app
from fliprank.errors import InputError, UsageError
from fliprank.papers import PARTS, Finding, Setting, find_parts
from fliprank.papers.data import find_data, fingerprint, parse_data
from fliprank.papers.pages import write_pages
from fliprank.papers.part import part
from fliprank.papers.run import reproduce
from fliprank.papers.write import markdown_table, read_finding

FILES = {"table.md", "table.csv", "finding.json", "README.md"}


@pytest.fixture
def runs() -> Iterator[list[Setting]]:
    """A part that counts how often it was run, and is ended half-way at seed 13."""
    seen: list[Setting] = []

    @part("nobody1999", "table1", "A | table of <b>nothing</b>", needs=("toy",), minutes=0.5)
    def table1(setting: Setting) -> Finding:
        seen.append(setting)
        done = setting.cache / "half"
        if not done.exists() and setting.seed == 13:
            done.write_text("so far")
            raise KeyboardInterrupt
        rows = (("a|b", 0.25, 0.00001), ("<script>", 1 / 3, 0.5))
        return Finding(("run", "AP", "p"), rows, "All is well.", "It is.", "holds", {"seed": setting.seed})

    yield seen
    del PARTS["nobody1999", "table1"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of data sets: one of them, one level down, in capitals."""
    place = tmp_path / "data" / "letor" / "TOY"
    place.mkdir(parents=True)
    (place / "rows.txt").write_text("1 qid:1 1:0.5\n")
    return tmp_path / "data"


def test_a_part_is_written_once_and_again_only_if_something_changed(
    runs: list[Setting], folder: Path, tmp_path: Path
) -> None:
    [toy] = find_parts("nobody1999")
    out = tmp_path / "out"
    assert reproduce(toy, out, quick=True, data_folder=folder)
    assert {file.name for file in (out / "nobody1999" / "table1").iterdir()} == FILES
    assert not reproduce(toy, out, quick=True, data_folder=folder)
    assert len(runs) == 1
    assert reproduce(toy, out, quick=False, data_folder=folder)
    assert reproduce(toy, out, quick=False, seed=1, data_folder=folder)
    assert reproduce(toy, out, quick=False, seed=1, data_folder=folder, force=True)
    (folder / "letor" / "TOY" / "rows.txt").write_text("2 qid:1 1:0.5\n")
    assert reproduce(toy, out, quick=False, seed=1, data_folder=folder)
    assert len(runs) == 5
    assert not list((out / ".cache").glob("nobody1999/*"))


def test_a_part_sees_its_own_data_and_those_that_no_part_knows(
    runs: list[Setting], folder: Path, tmp_path: Path
) -> None:
    [toy] = find_parts("nobody1999")
    assert reproduce(toy, tmp_path, data_folder=folder)
    assert not reproduce(toy, tmp_path, data={"mq2008": folder}, data_folder=folder)
    assert reproduce(toy, tmp_path, data={"mine": folder}, data_folder=folder)
    assert [sorted(each.data) for each in runs] == [["toy"], ["mine", "toy"]]


def test_what_is_written_is_the_same_to_the_last_byte_wherever_data_lies(
    runs: list[Setting], folder: Path, tmp_path: Path
) -> None:
    [toy] = find_parts("nobody1999")
    elsewhere = folder.rename(tmp_path / "moved")
    reproduce(toy, tmp_path / "a", data_folder=elsewhere)
    reproduce(toy, tmp_path / "b", data={"toy": elsewhere / "letor" / "TOY"})
    for name in FILES:
        first, second = (tmp_path / out / "nobody1999" / "table1" / name for out in "ab")
        assert first.read_bytes() == second.read_bytes()
        assert str(tmp_path).encode() not in first.read_bytes()


def test_a_killed_run_goes_on_from_its_cache(runs: list[Setting], folder: Path, tmp_path: Path) -> None:
    [toy] = find_parts("nobody1999")
    with pytest.raises(KeyboardInterrupt):
        reproduce(toy, tmp_path, seed=13, data_folder=folder)
    assert read_finding(tmp_path / "nobody1999" / "table1") is None
    assert reproduce(toy, tmp_path, seed=13, data_folder=folder)
    assert runs[0].cache == runs[1].cache


def test_a_half_written_finding_is_no_finding(runs: list[Setting], folder: Path, tmp_path: Path) -> None:
    [toy] = find_parts("nobody1999")
    reproduce(toy, tmp_path, data_folder=folder)
    (tmp_path / "nobody1999" / "table1" / "finding.json").write_text('{"paper": "nob')
    assert reproduce(toy, tmp_path, data_folder=folder)


def test_names_are_escaped_and_csv_has_every_digit(runs: list[Setting], folder: Path, tmp_path: Path) -> None:
    [toy] = find_parts("nobody1999")
    reproduce(toy, tmp_path, data_folder=folder)
    place = tmp_path / "nobody1999" / "table1"
    assert "| a\\|b | 0.2500 | 1e-05 |" in (place / "table.md").read_text()
    page, _ = write_pages(tmp_path, tmp_path / "pages")
    for text in ((place / "README.md").read_text(), page.read_text()):
        assert "<script>" not in text
        assert "<b>" not in text
        assert "Verdict: **holds**" in text
        assert "fliprank reproduce nobody1999 --part table1 --data-folder DIR" in text
    with (place / "table.csv").open() as file:
        assert float(list(csv.DictReader(file))[1]["AP"]) == 1 / 3
    assert json.loads((place / "finding.json").read_text())["rows"][1] == ["<script>", 1 / 3, 0.5]


def test_the_index_has_every_claim_and_keeps_what_it_does_not_know(
    runs: list[Setting], folder: Path, tmp_path: Path
) -> None:
    [toy] = find_parts("nobody1999")
    index = tmp_path / "pages.md"
    assert write_pages(tmp_path, tmp_path / "pages") == []
    reproduce(toy, tmp_path, data_folder=folder)
    assert write_pages(tmp_path, tmp_path / "pages")[-1] == index
    row = "| nobody1999 | [table1](pages/nobody1999.md#table1-a--table-of-bnothingb) | All is well. | holds |"
    assert row in index.read_text().splitlines()
    other = "| taylor2006 | [table1](pages/taylor2006.md#x) | More is more. | holds |"
    index.write_text(f"Before.\n{index.read_text().replace(row, f'{row}{chr(10)}{other}')}After.\n")
    reproduce(toy, tmp_path, quick=True, data_folder=folder)
    write_pages(tmp_path, tmp_path / "pages")
    lines = index.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("Before.", "After.")
    assert other in lines
    assert [line for line in lines if line.startswith("| nobody1999")] == [row.replace("holds", "holds (quick)")]


def test_pages_beside_the_folder_have_the_tables_that_they_ask_for(
    tmp_path: Path, runs: list[Setting], folder: Path
) -> None:
    [toy] = find_parts("nobody1999")
    page, kept = tmp_path / "mine.md", "<!-- table: nobody1999 table9 -->\nold\n<!-- end of table -->\n"
    page.write_text(f"Mine.\n\n<!-- table: nobody1999 table1 -->\nold\n<!-- end of table -->\n{kept}The end.\n")
    reproduce(toy, tmp_path, data_folder=folder)
    assert page in write_pages(tmp_path, tmp_path / "pages")
    text = page.read_text()
    table = (tmp_path / "nobody1999" / "table1" / "table.md").read_text()
    assert text.startswith("Mine.\n\n<!-- table: nobody1999 table1 -->\n")
    assert text.endswith(f"<!-- end of table -->\n{kept}The end.\n")
    assert table in text
    assert "    fliprank reproduce nobody1999 --part table1 --data-folder DIR\n" in text
    assert page not in write_pages(tmp_path, tmp_path / "pages")


def test_missing_data_is_named_with_what_to_do(tmp_path: Path, runs: list[Setting]) -> None:
    with pytest.raises(InputError, match=r"toy is needed .*--data toy=PATH"):
        find_data(["toy"], {})
    with pytest.raises(InputError, match="--data toy=PATH"):
        find_data(["toy"], {}, tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        find_data(["toy"], {}, tmp_path / "none")
    with pytest.raises(UsageError, match="NAME=PATH"):
        parse_data(["toy"])
    with pytest.raises(InputError, match="no such file"):
        parse_data([f"toy={tmp_path / 'none'}"])
    [toy] = find_parts("nobody1999")
    with pytest.raises(InputError, match="--data toy=PATH"):
        reproduce(toy, tmp_path / "out")
    assert not runs


def test_a_fingerprint_tells_contents_apart_and_not_places(tmp_path: Path) -> None:
    for name, text in (("a", "one"), ("b", "one"), ("c", "two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows.txt").write_text(text)
    first, second, third = (fingerprint(tmp_path / name) for name in "abc")
    assert first == second != third
    (tmp_path / "a" / ".rows.txt.fliprank-cache").write_text("ours")
    assert fingerprint(tmp_path / "a") == first


def test_a_finding_is_checked_when_made() -> None:
    with pytest.raises(UsageError, match="verdict"):
        Finding(("a",), (), "", "", "perhaps", {})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="row 1 has 2 cells"):
        Finding(("a",), ((1, 2),), "", "", "holds", {})


def test_tables_print_numbers_as_people_read_them() -> None:
    table = markdown_table(("run", "AP", "p", "queries"), [("x", 0.5, 0.03, 1200), ("y", float("nan"), 1.0, 3)])
    assert table.splitlines() == [
        "| run | AP | p | queries |",
        "| --- | ---: | ---: | ---: |",
        "| x | 0.5000 | 0.0300 | 1,200 |",
        "| y | - | 1.0000 | 3 |",
    ]


def test_the_command_lists_runs_and_says_what_is_missing(runs: list[Setting], folder: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    def run(*words: str) -> tuple[int, str, BaseException | None]:
        result = CliRunner().invoke(app, ["reproduce", *words])
        return result.exit_code, result.output, result.exception

    code, told, _ = run("--list")
    assert code == 0
    assert "nobody1999" in told
    assert "…" not in told
    code, told, _ = run("nobody1999", "--quick", "--out", str(tmp_path / "o"), "--data-folder", str(folder))
    assert code == 0
    assert "nobody1999 table1: holds. It is." in told
    assert (
        "(computed before)"
        in run("nobody1999", "--quick", "--out", str(tmp_path / "o"), "--data-folder", str(folder))[1]
    )
    assert "left out: it would take about 0.5 minutes" in run("nobody1999", "--at-most", "0.1", "--out", "x")[1]
    assert isinstance(run("nobody1999", "--out", str(tmp_path / "o"))[2], InputError)
    assert "has no part 'table9'; it has: table1" in str(run("nobody1999", "--part", "table9")[2])
    assert "no paper 'nobody'" in str(run("nobody")[2])
    assert "--list" in str(run()[2])
