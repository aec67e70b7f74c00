"""The command line as a person uses it: real processes, real files, exit codes, output for people and for programs."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fliprank
from fliprank.cli.evaluate import TieRule, Tool
from fliprank.cli.outputs import write_outputs
from fliprank.data.builtin import collection
from fliprank.measures.conventions import CONVENTIONS
from fliprank.measures.ties import TIES

pytestmark = pytest.mark.long

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
    assert not set("│┃━") & set(done.stdout)
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
    assert words in (done.stdout if "--json" in arguments else done.stderr)
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
    command = [sys.executable, "-m", "fliprank", "evaluate", QRELS, BODY, "--quiet", *options]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "fliprank: No space left on device\n")


@pytest.mark.parametrize("named", [True, False])
def test_what_rank_writes_evaluate_reads(tmp_path: Path, named: bool) -> None:
    """LETOR rows with document ids in comments, and without; some not judged."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(40) < 0.2, np.nan, rng.integers(0, 3, 40))
    docids = [f"d{i}" for i in range(40)] if named else None
    rows = fliprank.Candidates.of(labels, group=[10, 20, 10], docids=docids, features=rng.normal(size=(40, 2)))
    test, model, run = (str(tmp_path / name) for name in ("test.txt", "model", "run.trec"))
    fliprank.write_letor(test, rows)
    linear = fliprank.Linear().prepared(rows, 0)
    fitted = linear.at(rng.normal(size=len(linear.params)))
    fitted.save(model)
    assert fliprank_does("rank", model, test, "--out", run).returncode == 0
    assert ("d1 " if named else "row1 ") in Path(run).read_text()
    done = fliprank_does("evaluate", test, run, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    expected = fliprank.evaluate(rows, {run: fitted.score(rows)})
    assert json.loads(done.stdout)["runs"] == expected.means()


def test_ties_are_settled_as_the_command_says(tmp_path: Path) -> None:
    run = tmp_path / "tied.run"
    run.write_text(
        "".join(" ".join([*line.split()[:4], "1", "tied"]) + "\n" for line in Path(BODY).read_text().splitlines())
    )
    means = {}
    for ties in TieRule:
        done = fliprank_does("evaluate", QRELS, str(run), "-m", "AP", "--ties", ties.value, "--seed", "7", "--json")
        told = json.loads(done.stdout)
        assert told["ties"] == ties.value
        means[ties.value] = told["runs"][str(run)]["AP"]
        assert means[ties.value] == fliprank.evaluate(QRELS, run, "AP", ties=ties.value, seed=7).mean(str(run), "AP")
    assert means["pessimistic"] < means["average"] < means["optimistic"]
    assert len(set(means.values())) == len(means)


def test_the_lists_of_rules_and_tools_are_whole() -> None:
    assert {rule.value for rule in TieRule} == set(TIES) - {"together"}
    assert {tool.value for tool in Tool} == set(CONVENTIONS)


def test_a_warning_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "binary.txt").write_text("-1 qid:1 1:1\n+1 qid:1 1:2\n")
    (tmp_path / "scores").write_text("1\n2\n")
    done = fliprank_does("evaluate", str(tmp_path / "binary.txt"), str(tmp_path / "scores"))
    assert done.returncode == 0
    assert done.stderr.startswith("fliprank: ")
    assert done.stderr.count("\n") == 1
    assert "all labels are -1 or 1" in done.stderr


def test_help_and_version() -> None:
    assert fliprank_does("--version").stdout == f"fliprank {fliprank.__version__}\n"
    told = fliprank_does("evaluate", "--help").stdout
    assert "Examples:" in told
    assert "--convention" in told


def test_names_of_emoji_are_shown_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text(":smile: 0 d1 1\n:smile: 0 d2 0\n")
    (tmp_path / ":heart:.run").write_text(":smile: Q0 d1 1 2 x\n:smile: Q0 d2 2 1 x\n")
    done = fliprank_does("evaluate", str(tmp_path / "qrels"), str(tmp_path / ":heart:.run"), "-m", "RR", "-q")
    assert ":smile:" in done.stdout
    assert ":heart:" in done.stdout.replace("\n", "")


def test_ids_that_look_like_formulas_are_text_in_csv(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("=1+2 0 d1 1\n-5 0 d1 1\n@x 0 d1 1\n")
    (tmp_path / "run").write_text("=1+2 Q0 d1 1 2 x\n-5 Q0 d1 1 2 x\n@x Q0 d1 1 2 x\n")
    done = fliprank_does("evaluate", str(tmp_path / "qrels"), str(tmp_path / "run"), "-m", "RR", "-q", "--csv")
    assert {row["query"] for row in csv.DictReader(io.StringIO(done.stdout))} == {"'=1+2", "-5", "'@x"}


def test_names_that_look_like_formulas_are_text_in_csv_files(tmp_path: Path) -> None:
    write_outputs([tmp_path / "a.csv"], None, [{"name": "=HYPERLINK(1)", "=value": -0.5}])
    assert (tmp_path / "a.csv").read_text() == "name,'=value\n'=HYPERLINK(1),-0.5\n"
