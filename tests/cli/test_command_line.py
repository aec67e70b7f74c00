"""The command line as a person uses it: real processes, real files, exit codes, output for people and for programs."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import fliprank
from fliprank.data.builtin import collection

QRELS = str(collection() / "qrels" / "test.tsv")
BODY, FLAT = (str(collection() / "runs" / f"{name}.run") for name in ("body", "flat"))


def fliprank_does(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "fliprank", *arguments], capture_output=True, text=True, check=False)


def test_json_has_runs_and_comparisons() -> None:
    done = fliprank_does("evaluate", QRELS, BODY, FLAT, "-m", "nDCG@10", "-m", "map", "-q", "--json", "--explain")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    expected = fliprank.evaluate(QRELS, [BODY, FLAT], ["nDCG@10", "AP"])
    assert told["runs"] == expected.means()
    assert set(told["runs"][BODY]) == {"nDCG@10", "AP"}
    first = told["comparisons"][0]
    assert (first["run"], first["measure"]) == (FLAT, "nDCG@10")
    assert set(first["p"]) == {"t", "randomisation", "wilcoxon"}
    assert first["interval"][0] < first["difference"] < first["interval"][1]
    assert sum(told["per_query"][BODY]["AP"].values()) / told["queries"] == pytest.approx(told["runs"][BODY]["AP"])


def test_csv_by_query_holds_every_value() -> None:
    done = fliprank_does("evaluate", QRELS, BODY, "-m", "RR", "-q", "--csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    expected = fliprank.evaluate(QRELS, BODY, "RR")
    assert [float(row["value"]) for row in rows] == expected.values[BODY]["RR"].tolist()
    assert [row["query"] for row in rows] == expected.qids.tolist()


def test_the_table_shows_means_and_comparisons() -> None:
    done = fliprank_does("evaluate", QRELS, BODY, FLAT, "-m", "nDCG@10")
    mean = fliprank.evaluate(QRELS, FLAT, "nDCG@10").mean(FLAT, "nDCG@10")
    assert f"{mean:.4f}" in done.stdout
    assert "nDCG@10 against" in done.stdout
    assert "queries without judgements were left out" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["evaluate", "no-such-file", BODY], 1, "fliprank: no-such-file: no such file"),
        (["evaluate", QRELS, BODY, "-m", "nDGC@10"], 2, "did you mean"),
        (["evaluate", QRELS, BODY, "--convention", "quepid"], 2, "quepid"),
        (["evaluate", QRELS, BODY, "--json", "--csv"], 2, "choose one"),
        (["evaluate", QRELS], 2, "runs"),
        (["evaluate", QRELS, QRELS], 1, "columns"),
        (["no-such-command"], 2, "no-such-command"),
    ],
)
def test_errors_are_one_line_and_an_exit_code(arguments: list[str], code: int, words: str) -> None:
    done = fliprank_does(*arguments)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_markup_and_control_characters_in_names_are_shown_as_text(tmp_path: Path) -> None:
    run = tmp_path / "[bold]x.run"
    run.write_bytes(Path(BODY).read_bytes())
    done = fliprank_does("evaluate", QRELS, str(run), FLAT, "-m", "RR")
    assert done.returncode == 0
    assert "[bold]x.run" in done.stdout.replace("\n", "")


def test_markup_that_looks_escaped_is_text_too(tmp_path: Path) -> None:
    """A backslash before a bracket escapes it; before an escaped one it would escape the escape."""
    run = tmp_path / r"a\[bold]x.run"
    run.write_bytes(Path(BODY).read_bytes())
    done = fliprank_does("evaluate", QRELS, str(run), FLAT, "-m", "RR")
    assert done.returncode == 0
    table, _, _ = done.stdout.partition("p: randomisation")
    assert r"a\[bold]x.run" in table


def test_control_characters_of_a_file_never_reach_the_terminal(tmp_path: Path) -> None:
    qrels = tmp_path / "qrels"
    qrels.write_text("q1\x1b[2J 0 d1 high\n")
    done = fliprank_does("evaluate", str(qrels), BODY)
    assert done.returncode == 1
    assert "query q1" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no device that is always full")
@pytest.mark.parametrize("options", [[], ["--json"], ["--csv"]])
def test_a_full_disk_is_told_in_one_line(options: list[str]) -> None:
    command = [sys.executable, "-m", "fliprank", "evaluate", QRELS, BODY, *options]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "fliprank: No space left on device\n")


def test_help_and_version() -> None:
    assert fliprank_does("--version").stdout == f"fliprank {fliprank.__version__}\n"
    told = fliprank_does("evaluate", "--help").stdout
    assert "Examples:" in told
    assert "--convention" in told
