"""What every command has: `--quiet`, `--json` (one document, errors too), plain text in a pipe, an end at Ctrl-C."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from person import call
from sandbox import make_sandbox

from fliprank import console
from fliprank.cli import app
from fliprank.cli.every_command import furnish
from fliprank.cli.interrupts import Interruption
from fliprank.console import progress
from fliprank.optimize.fit import Epoch

RUNS = {
    "demo": "demo --out demo",
    "tune": "tune train.jsonl --model bm25 --no-curve --folds 2 --set epochs=2 --out out",
    "train": "train train.txt --epochs 2 --restarts 1 --out out",
    "rank": "rank fit test.txt --out run.trec",
    "convert": "convert train.txt --out converted --force",
    "evaluate": "evaluate qrels.txt bm25.run tuned.run",
    "landscape surface": "landscape surface fit train.txt -p w.1 -p w.2 --points 3 --out s.csv",
    "landscape trajectory": "landscape trajectory fit train.txt -p w.1 --out p.csv",
    "landscape flips": "landscape flips fit train.txt -p w.1 --out f.csv",
    "curve": "curve rows.txt --sizes 8,16 --repeats 2 --restarts 1 --set epochs=2 --out curve",
    "features": "features --docs docs.jsonl --queries queries.tsv --select title.bm25 --out f.txt",
    "diff": "diff bm25.run tuned.run --qrels qrels.txt",
    "fuse": "fuse --qrels qrels.txt --run bm25.run --run tuned.run --folds 2 --out fused",
    "importance": "importance fit test.txt",
    "export": "export fit --to solr-ltr --out exported",
    "generate": "generate --queries 3 --docs 4 --out g.jsonl --utility u.txt --force",
    "verify": "verify tuned-sqlite --docs docs.jsonl --queries queries.tsv --qrels test-qrels.txt",
    "plot": "plot trail fit --out trail.svg",
    "reproduce": "reproduce robertson2007 --part figure1 --quick --out papers",
}
PRINTS = ("diff", "evaluate", "importance", "verify", "landscape surface", "landscape trajectory", "landscape flips")
"""Commands whose result is what they print; of the others it is what they write."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sandbox(tmp_path_factory.mktemp("sandbox"))


def names(group: object, before: str = "") -> set[str]:
    found = {f"{before}{c.name or c.callback.__name__}" for c in group.registered_commands}  # type: ignore[attr-defined]
    for each in group.registered_groups:  # type: ignore[attr-defined]
        found |= names(each.typer_instance, f"{before}{each.name} ")
    return found


def test_every_command_is_here() -> None:
    assert names(app) == set(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_json_is_one_document_and_quiet_leaves_only_the_answer(name: str, sandbox: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    shutil.copytree(sandbox, folder)
    done = call(*RUNS[name].split(), "--json", folder=folder)
    assert (done.code, done.err) == (0, "")
    told = json.loads(done.out)
    assert told.keys() - {"written"}
    assert "error" not in told
    assert all((folder / path).exists() for path in told.get("written", []))
    assert bool(told.get("written")) == (name not in ("diff", "evaluate", "importance", "verify"))
    done = call(*RUNS[name].split(), "--quiet", folder=folder)
    assert (done.code, done.err) == (0, "")
    assert bool(done.out) == (name in PRINTS)
    assert "written" not in done.out
    assert not set("│┃━─") & set(done.out)


def test_the_documents_are_those_of_the_files(sandbox: Path, tmp_path: Path) -> None:
    shutil.copytree(sandbox, tmp_path / "here")
    folder = tmp_path / "here"
    told = json.loads(call(*RUNS["train"].split(), "--json", folder=folder).out)
    assert told.pop("written") == ["out/result.json", "out/report.html"]
    assert told == json.loads((folder / "out" / "result.json").read_text())
    kinds = json.loads(call("features", "--kinds", "--json").out)["kinds"]
    assert kinds["FIELD.covered.ratio"] == "c / m"
    parts = json.loads(call("reproduce", "--list", "--json").out)["parts"]
    assert {"paper", "part", "title", "needs", "minutes"} == parts[0].keys()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("evaluate nowhere.txt bm25.run", 1, {"error": "nowhere.txt: no such file", "path": "nowhere.txt"}),
        ("evaluate qrels.txt bm25.run -m nDGC@10", 2, {}),
        ("evaluate qrels.txt", 2, {"error": "what to evaluate? Give runs, or --url of a cluster"}),
        ("rank fit test.txt --depth x", 2, {}),
        ("no-such-command", 2, {}),
        ("evaluate bad.txt bm25.run", 1, {"path": "bad.txt", "line": 2}),
        ("train train.txt --out train.txt", 1, {"path": "train.txt"}),
    ],
)
def test_an_error_is_a_document_too(arguments: str, code: int, said: dict[str, object], sandbox: Path) -> None:
    (sandbox / "bad.txt").write_text("q1 0 d1 1\nq1 0 d1\n")
    done = call(*arguments.split(), "--json", folder=sandbox)
    assert (done.code, done.err) == (code, "")
    told = json.loads(done.out)
    assert told["error"]
    assert told["exit_code"] == code
    assert said.items() <= told.items()
    plain = call(*arguments.split(), folder=sandbox)
    assert (plain.code, plain.out) == (code, "")
    assert told["error"] in plain.err


def test_help_of_every_command_names_both_options() -> None:
    for name in RUNS:
        told = call(*name.split(), "--help").out
        assert "--quiet" in told
        assert "--json" in told
    for group in ("--help", "landscape --help"):
        assert "..." not in call(*group.split()).out.replace("[ARGS]...", "")


def test_furnishing_twice_changes_nothing() -> None:
    before = [command.callback for command in furnish(app).registered_commands]
    assert [command.callback for command in furnish(app).registered_commands] == before


def interrupted_python(code: str, presses: int) -> tuple[int, str]:
    """Run Python code that says "ready", press Ctrl-C once or many times, and wait for its end."""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(presses):  # on a busy machine, several may be heard as one
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                time.sleep(0.15)
        _, err = process.communicate()
    return process.returncode, err


DEAF = """
import hashlib, sys
import typer
from fliprank.cli import app, main
from fliprank.cli.interrupts import interruption

@app.command()
def deaf(again: bool = False) -> None:
    interruption.keep(lambda: "half of it is kept", "--resume")
    try:
        print("ready", flush=True)
        while True:  # as a kernel: no lock is held, and no signal heard
            hashlib.pbkdf2_hmac("sha256", b"x", b"y", 2_000_000_000)
    except KeyboardInterrupt:
        while again:
            pass
        raise

sys.argv = ["fliprank", "deaf", *OPTIONS]
main()
"""


def test_a_command_that_hears_no_ctrl_c_is_ended_all_the_same() -> None:
    code, err = interrupted_python(DEAF.replace("OPTIONS", "[]"), 1)
    assert code == 130
    assert err == "fliprank: interrupted: half of it is kept\nfliprank: to go on: fliprank deaf --resume\n"


COMPILING = """
import sys, time
from fliprank.cli import app, main

@app.command()
def compiling() -> None:
    code = "print('ready', flush=True); [time.sleep(0.01) for _ in range(40)]; print('whole', file=sys.stderr)"
    exec(code, {"__name__": "numba.core.compiler", "time": time, "sys": sys})
    time.sleep(60)

sys.argv = ["fliprank", "compiling"]
main()
"""


def test_ctrl_c_waits_until_a_kernel_is_compiled() -> None:
    code, err = interrupted_python(COMPILING, 1)
    assert code == 130
    assert err.startswith("whole\nfliprank: interrupted:")


def test_a_second_ctrl_c_ends_it_at_once_and_without_a_word() -> None:
    assert interrupted_python(DEAF.replace("OPTIONS", "['--again']"), 9) == (130, "")


def test_an_interruption_is_told_to_a_program(sandbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fliprank.experiment import evaluation

    def interrupted(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluation, "evaluate", interrupted)
    done = call("evaluate", "qrels.txt", "bm25.run", "--json", folder=sandbox)
    assert done.code == 130
    assert json.loads(done.out) == {
        "error": "interrupted",
        "interrupted": True,
        "kept": "nothing was written",
        "go_on": "fliprank evaluate qrels.txt bm25.run --json",
    }


def test_resume_is_named_once() -> None:
    asked = Interruption()
    asked.begin(["train", "a b.txt", "--resume"])
    asked.keep(lambda: "all", "--resume")
    assert asked.lines() == ["interrupted: all", "to go on: fliprank train 'a b.txt' --resume"]


def test_progress_in_a_file_has_the_pace_of_a_person(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a clock that runs a thousand times as fast: lines after 1, 2, 5, 10, 30, 60, 120 seconds of five minutes."""
    began = time.monotonic()
    monkeypatch.setattr(progress, "PACE", tuple(each / 100 for each in progress.PACE))
    monkeypatch.setattr(progress, "_pace", pace := progress._Pace())
    monkeypatch.setattr(pace, "least", 0.0)
    console.output.begin()
    with console.fit_progress("training") as report:
        for number in range(1, 101):
            report("training", number, 100, Epoch(number, 0.0, 0.5, 0.25))
            time.sleep(0.03)
    lines = capsys.readouterr().err.splitlines()
    due = sum(
        each <= time.monotonic() - began for each in (0.01, 0.02, 0.05, 0.1, 0.3, 0.6, 1.2, 1.8, 2.4, 3.0, 3.6, 4.2)
    )
    assert 3 <= len(lines) <= due
    assert all(line.startswith("fliprank: training, ") for line in lines)
    assert "of 100" in lines[-1]
    assert "valid 0.2500" in lines[-1]
    console.output.begin(quiet=True)
    with console.working("evaluating"):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""
    console.output.begin()


def test_the_time_left_is_of_what_is_done() -> None:
    assert progress.how_far("x", "fits", 10, 40, 20.0) == "x: fits, 10 of 40, 0:20, about 1:00 left"
    assert progress.how_far("x", "", 0, 40, 20.0) == "x, 0 of 40, 0:20"
    assert progress.how_far("x", "", 40, 40, 20.0) == "x, 40 of 40, 0:20"
    assert progress.how_far("indexing", "documents", 1200, 0, 3.0) == "indexing: documents 1,200, 0:03"


def test_fits_that_run_side_by_side_never_count_backwards() -> None:
    state = progress._State("training")
    seen = []
    for number in (1, 2, 1, 2, 3, 2, 3, 4):
        state.fit("training", number, 9, Epoch(0, 0.0, 0.5, 0.5))
        seen.append(state.done)
    assert seen == sorted(seen)
    assert seen[-1] == 3
    state.fit("training", 1, 5, None)
    assert state.done == 1
