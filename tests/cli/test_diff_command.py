"""`fliprank diff` as a person uses it: runs, models and folders in; text, JSON and CSV out, whatever titles hold."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from rich.cells import cell_len

import fliprank as fr
from fliprank.cli import main
from fliprank.cli.diff_text import moves_lines, query_lines, summary_lines
from fliprank.data.builtin import collection
from fliprank.experiment.query_diff import Flip, Moved, QueryDiff
from fliprank.experiment.tuning_moves import TuningMoves
from fliprank.measures import parse_measure
from fliprank.text.index import Index

DOCS = Path(__file__).parents[2] / "docs" / "diff.md"


def fliprank_does(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command in this process, which has its kernels loaded."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["fliprank", *map(str, arguments)])
        patch.setattr(warnings, "formatwarning", warnings.formatwarning)
        if cwd is not None:
            patch.chdir(cwd)
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


HOSTILE = {
    "d1": "\x1b[2J\x1b]0;owned\x07clear",
    "d2": "[bold red]markup[/] :smile:",
    "d3": '=cmd|"/c calc"!A1',
    "d4": "靴" * 90,
    "d5": "a\u202eb\u200bc\r\nnext line\ttab " * 20,
    "d6": "x" * 5000,
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Runs, judgements, documents with hostile titles and queries with hostile texts."""
    docs = [{"_id": docid, "title": title} for docid, title in HOSTILE.items()]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    (tmp_path / "queries.jsonl").write_text(
        json.dumps({"_id": "q1", "text": "+1+1 \x1b[31mred\x1b[0m " + "wide靴 " * 60})
        + "\n"
        + '{"_id":"q2","text":"b"}\n'
    )
    (tmp_path / "qrels").write_text("q1 0 d6 3\nq1 0 d2 1\nq2 0 d1 2\n")
    names = list(HOSTILE)
    for run, order in (("a.run", names), ("b.run", names[::-1])):
        lines = [f"{q} Q0 {d} 1 {9 - i} t\n" for q in ("q1", "q2") for i, d in enumerate(order)]
        (tmp_path / run).write_text("".join(lines))
    return tmp_path


def given(files: Path) -> list[str | Path]:
    found: list[str | Path] = [
        files / "a.run",
        files / "b.run",
        "--qrels",
        files / "qrels",
        "--docs",
        files / "docs.jsonl",
    ]
    return [*found, "--queries", files / "queries.jsonl", "-m", "nDCG@10"]


def test_runs_in_text_out(files: Path) -> None:
    done = fliprank_does("diff", *given(files))
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("fliprank: comparing, ") for line in done.stderr.splitlines())  # where it takes long
    assert "1 queries helped, 1 hurt, 0 unchanged" in done.stdout
    assert done.stdout.index("q1: ") < done.stdout.index("q2: b")
    assert re.search(r"^ +6 -> +1  label 3  \+0\.\d{4}  d6 xxx", done.stdout, re.MULTILINE)
    assert "d2 [bold red]markup[/] :smile:" in done.stdout  # as it is: neither markup nor emoji
    assert all(c.isprintable() for c in done.stdout.replace("\n", ""))


@pytest.mark.parametrize("width", [80, 200])
def test_on_a_terminal_numbers_are_never_lost(files: Path, width: int) -> None:
    leader, follower = pty.openpty()
    os.set_blocking(leader, True)
    environment = {**os.environ, "COLUMNS": str(width), "TERM": "dumb", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "fliprank", "diff", *map(str, given(files))]
    process = subprocess.Popen(command, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    data = b""
    while True:
        try:
            block = os.read(leader, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not block:
            break
        data += block
    assert process.wait() == 0
    os.close(leader)
    lines = data.decode().replace("\r\n", "\n").split("\n")
    shown = [line for line in lines if not line.startswith("\r")]
    assert max(cell_len(line) for line in shown) <= width
    text = "\n".join(shown)
    rows = re.findall(r"^ ?\d+  +\S+ d\d .*\| +\S+ d\d .* < ?\d$", text, re.MULTILINE)
    assert len(rows) == 12  # two queries of six ranks, each line whole
    assert len(re.findall(r"^ +\d -> +\d  label \S+  [+-]0\.\d{4}  d\d", text, re.MULTILINE)) == 10
    assert "\x1b[2J" not in text
    assert "owned" not in text or "\x1b]0" not in text


def wild() -> QueryDiff:
    """A query all of whose texts are far too long, and whose numbers are as long as they get."""
    long = "靴é\x1b[0m" * 200
    documents = tuple(
        Moved(f"{long}{i}", long, 1.33333333 * i, 10_000 + i if i else None, 11 - i, 1.0, 2.0, -0.123456)
        for i in range(10)
    )
    flips = tuple(Flip(long, long, 2.5, None, 10, 0.25) for _ in range(3))
    return QueryDiff(long, long, 10, 0.25, 0.5, 0.75, documents, flips)


@pytest.mark.parametrize("width", [80, 200])
def test_lines_fit_the_screen_and_keep_their_numbers(width: int) -> None:
    query = wild()
    for everything in (False, True):
        lines = list(query_lines(query, width, everything))
        assert all(cell_len(line) <= width for line in lines)
        assert all(c.isprintable() for line in lines for c in line)
        text = "\n".join(lines)
        assert "0.2500 -> 0.5000 (+0.2500), overlap 0.7500" in text
        for each in query.documents[1:] if everything else ():
            assert f"{each.before} -> {each.after:>4}  label {each.label:.3g}  -0.1235" in text
        for each in query.documents[1:]:
            assert f"<{each.before}" in text
        assert text.count("+0.2500  rank  10  ") == 3
        assert text.count("(2.5) over ") == 3
    moves = TuningMoves(parse_measure("nDCG@10"), "test", [query], [query])
    lines = list(moves_lines(moves, width))
    assert all(cell_len(line) <= width for line in lines)
    assert sum("0.2500 -> 0.5000 (+0.2500)" in line for line in lines) == 2


def test_json_and_csv_hold_the_same_and_no_formula_runs(files: Path, tmp_path: Path) -> None:
    told = json.loads(fliprank_does("diff", *given(files), "--format", "json").stdout)
    assert told["measure"] == "nDCG@10"
    assert [each["query"] for each in told["changes"]] == ["q1", "q2"]
    documents = [(c["query"], d) for c in told["changes"] for d in c["documents"]]
    assert {d["title"] for _, d in documents if d["document"] == "d1"} == {" ".join(HOSTILE["d1"].split())}
    for change in told["changes"]:
        assert sum(flip["worth"] for flip in change["flips"]) == pytest.approx(change["change"], abs=1e-12)
    out = tmp_path / "out.csv"
    done = fliprank_does("diff", *given(files), "--out", out)
    assert (done.returncode, done.stdout) == (0, f"written: {out}\n")
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert len(rows) == len(documents) == 12
    for row, (qid, document) in zip(rows, documents, strict=True):
        assert (row["query"], row["document"]) == (qid, document["document"])
        assert int(row["rank_before"]) == document["rank_before"]
        assert float(row["gain"]) == document["gain"]
        assert row["label"] == ("" if document["label"] is None else str(document["label"]))
        assert row["title"].removeprefix("'") == document["title"]
    assert all(not cell.startswith(("=", "+", "@")) for row in rows for cell in (row["title"], row["text"]))
    assert fliprank_does("diff", *given(files), "--out", tmp_path / "out.json").returncode == 0
    assert json.loads((tmp_path / "out.json").read_text()) == told


def test_one_query_is_shown_whole(files: Path) -> None:
    done = fliprank_does("diff", *given(files), "--query", "q2")
    assert "q2: b" in done.stdout
    assert "q1: " not in done.stdout
    assert "Moved:" in done.stdout
    told = json.loads(fliprank_does("diff", *given(files), "--query", "q2", "--format", "json").stdout)
    assert [each["query"] for each in told["changes"]] == ["q2"]
    done = fliprank_does("diff", *given(files), "--query", "zz")
    assert (done.returncode, done.stderr) == (2, "fliprank: no query is called 'zz'; there are q1, q2\n")


def test_without_judgements(files: Path) -> None:
    done = fliprank_does("diff", files / "a.run", files / "b.run", "--top", "3")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 queries, without judgements" in done.stdout
    assert "6 documents entered the first 3 ranks, 6 left" in done.stdout


def test_errors_say_what_to_give(files: Path, tmp_path: Path) -> None:
    cases = [
        ([files / "a.run"], 2, "give two runs, or the folder that `tune` wrote, or --models BEFORE AFTER"),
        ([files], 1, "not the folder of a tuning"),
        ([files / "a.run", files / "b.run", "--stemmer", "none"], 2, "go with --models"),
        (["--models", files, files], 2, "--models: give a file of rows, or --queries and --docs or --index"),
        ([files / "a.run", files / "none.run"], 1, "no such file"),
        ([files / "a.run", files / "b.run", "--out", files], 1, "is a folder, not a file"),
        ([files / "a.run", files / "b.run", "--qrels", files / "qrels", "-m", "nope"], 2, "nope"),
    ]
    for arguments, code, message in cases:
        done = fliprank_does("diff", *arguments)
        assert done.returncode == code, done.stderr
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    (tmp_path / "twice.run").write_text("q1 Q0 d1 1 2 t\nq1 Q0 d1 2 1 t\n")
    done = fliprank_does("diff", files / "a.run", tmp_path / "twice.run")
    assert "line 2, query q1: document d1 occurs twice" in done.stderr


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the built-in collection, and `demo` in it: a short tuning on it."""
    place = tmp_path_factory.mktemp("tuned") / "work"
    shutil.copytree(collection(), place)
    (place / "runs" / "make_runs.py").unlink()
    short = ["--method", "sampled", "--epochs", "2", "--folds", "2", "--no-curve", "--model", "bm25f", "--depth", "50"]
    done = fliprank_does("tune", "--beir", ".", "--test", "test", *short, "--out", "demo", cwd=place)
    assert done.returncode == 0, done.stderr
    (place / "tuned.txt").write_text(done.stdout)
    return place


def test_a_tuning_ends_with_what_it_moved(tuned: Path) -> None:
    told = json.loads((tuned / "demo" / "result.json").read_text())
    text = (tuned / "tuned.txt").read_text()
    assert "Most helped and most hurt, nDCG(dcg='exp-log2')@10 (test queries, which tuning did not see)" in text
    moved, by_query = told["moved"], told["proof"]["test"]["by_query"]
    assert moved["on"] == "test"
    assert moved["notes"] == []
    gains = sorted((after - before for before, after in by_query.values()), reverse=True)
    assert [each["change"] for each in moved["helped"]] == pytest.approx(gains[:3])
    assert [each["change"] for each in moved["hurt"]] == pytest.approx(gains[:-4:-1])
    for each in (*moved["helped"], *moved["hurt"]):
        assert [each["before"], each["after"]] == pytest.approx(by_query[each["query"]])
        assert f"{each['query']}: {each['text']}"[:40] in text
        for document in each["documents"]:
            assert document["title"]
            assert document["rank_before"] != document["rank_after"]
            for side in ("before", "after"):
                if document[f"score_{side}"] is not None:
                    total = sum(part[side] for part in document["contributions"])
                    assert total == pytest.approx(document[f"score_{side}"], rel=1e-6)
    assert any(document["because"] for each in moved["helped"] for document in each["documents"])


def test_the_folder_of_a_tuning_is_all_that_is_needed(tuned: Path) -> None:
    done = fliprank_does("diff", tuned / "demo", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found, told = json.loads(done.stdout), json.loads((tuned / "demo" / "result.json").read_text())
    proof = told["proof"]["test"]
    assert (found["before"], found["after"], found["p"]) == (proof["default"], proof["tuned"], proof["p"])
    assert found["measure"] == told["measure"]
    assert "Rankings of test queries, which tuning did not see." in found["notes"]
    short = {each["query"]: each for each in told["moved"]["helped"]}
    for each in found["changes"]:
        if each["query"] in short:
            whole = {document["document"]: document for document in each["documents"]}
            assert all(whole[document["document"]] == document for document in short[each["query"]]["documents"])
    assert len(short) == 3


def test_a_folder_without_its_sources_says_what_is_missing(tuned: Path, tmp_path: Path) -> None:
    place = tmp_path / "moved"
    shutil.copytree(tuned / "demo", place)
    told = json.loads((place / "result.json").read_text())
    told["settings"]["sources"] = {name: str(tmp_path / f"gone-{name}") for name in told["settings"]["sources"]}
    (place / "result.json").write_text(json.dumps(told))
    done = fliprank_does("diff", place)
    assert (done.returncode, done.stderr) == (0, "")
    assert "can't be read now" in done.stdout
    assert "Without judgements: give them by --qrels" in done.stdout
    done = fliprank_does("diff", place, "--qrels", tuned / "qrels" / "test.tsv", "--queries", tuned, "--docs", tuned)
    assert done.returncode == 0, done.stderr
    assert "queries helped" in done.stdout
    assert "\n              by " in done.stdout
    (place / "result.json").write_text('{"measure": 3, "settings": []}')
    done = fliprank_does("diff", place)
    assert done.returncode == 1
    assert "not a result of fliprank's, or a damaged one" in done.stderr


def test_two_models_over_documents_or_rows(tuned: Path, tmp_path: Path) -> None:
    models = [tmp_path / "old", tmp_path / "new"]
    index = Index.build(tuned / "corpus.jsonl")
    rows = index.candidates(tuned, tuned / "qrels" / "test.tsv", depth=20)
    model = fr.BM25F().prepared(rows, 0)
    model.save(models[0])
    model.at(model.params.replace({"title.w": 5.0})).save(models[1])
    fr.write_statistics(tmp_path / "rows.jsonl", rows)
    with_docs = ["--docs", tuned / "corpus.jsonl", "--queries", tuned, "--qrels", tuned / "qrels" / "test.tsv"]
    for what in (with_docs, [*with_docs, "--index", tuned / "demo"], [tmp_path / "rows.jsonl"]):
        done = fliprank_does("diff", "--models", *models, *what, "--format", "json")
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        told = json.loads(done.stdout)
        assert told["queries"] == 56
        first = [part for each in told["changes"] for d in each["documents"] for part in d["because"][:1]]
        assert "title" in {part["field"] for part in first}
        assert not [note for note in told["notes"] if "not told" in note]


def test_the_page_on_diff_runs(tuned: Path) -> None:
    """Every command of docs/diff.md, but the first, which takes a while: `demo` is there from a shorter tuning."""
    page = DOCS.read_text()
    commands = [line.split("#")[0].split() for line in re.findall(r"^    (fliprank .*)$", page, re.MULTILINE)]
    assert commands[0] == ["fliprank", "demo", "--out", "demo"]
    assert len(commands) > 4
    for _, *arguments in commands[1:]:
        done = fliprank_does(*arguments, cwd=tuned)
        assert (done.returncode, done.stderr) == (0, ""), f"{arguments}: {done.stderr}"
    for code in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out := io.StringIO()):
            patch.chdir(tuned)
            exec(code, {})
        assert "<Diff nDCG" in out.getvalue()


def test_a_summary_of_nothing_but_ties() -> None:
    run = {"q": {"a": 1.0, "b": 1.0}}
    lines = list(summary_lines(fr.diff(run, run, {"q": {"a": 1}})))
    assert "0 queries helped, 0 hurt, 1 unchanged" in lines
    assert "0 documents entered the first 10 ranks, 0 left; the same in 1 queries" in lines
