"""Runs that are ended or meet each other: what is left is whole, or says that it is not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fliprank as fr

pytestmark = pytest.mark.long

FOREVER = ("--model", "network", "--hidden", "20", "--method", "adam", "--epochs", "100000", "--no-sweep")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    x = np.random.default_rng(0).normal(size=(400, 4))
    labels = (x[:, 0] + x[:, 1] > 0.5).astype(int) + (x[:, 0] > 1)
    fr.write_letor(tmp_path / "rows.txt", fr.Candidates.of(labels, group=[10] * 40, features=x))
    return tmp_path / "rows.txt"


def started(*words: object) -> subprocess.Popen[str]:
    """A command that has begun; Ctrl-C reaches it, also where a shell in the background would shield it."""
    return subprocess.Popen(
        [sys.executable, "-m", "fliprank", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def wait_until(process: subprocess.Popen[str], there: Callable[[], bool]) -> None:
    while not there():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def test_an_interrupted_cross_validation_does_not_look_finished(rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    quick = ("--model", "linear", "--method", "adam", "--no-sweep", "--restarts", 1, "--keep", "last", "--epochs", 300)
    with started("train", rows, "--cv", 5, *quick, "--out", out) as process:
        wait_until(process, lambda: any((out / "Fold2" / "checkpoint").glob("*")))
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate()
    assert process.returncode == 130, (printed, said)
    assert "Traceback" not in said
    finished = sorted(path.parent.name for path in out.glob("Fold*/trail.csv"))
    assert "Fold1" in finished
    assert "Fold5" not in finished
    if (out / "result.json").exists():
        content = json.loads((out / "result.json").read_text())
        assert content["interrupted"]
        words = f"interrupted in {finished[-1]}, whose figures are those so far; of the folds done: Fold1"
        assert any(note.startswith(words) for note in content["notes"])
        assert "interrupted in" in printed
    else:
        assert "interrupted before there were figures; --resume goes on" in said


def test_of_two_tunings_of_one_folder_at_once_one_is_refused_and_the_other_whole(rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("tune", rows, "--method", "sampled", "--no-curve", "--folds", 2, "--out", out)
    with started(*command) as first, started(*command) as second:
        told = [first.communicate(), second.communicate()]
    codes = sorted((first.returncode, second.returncode))
    refused = [said for (_, said) in told if "another run is writing here: process" in said]
    assert codes in ([0, 1], [0, 0]), told  # the second may have begun when the first was done
    assert len(refused) == codes.count(1)
    assert not json.loads((out / "result.json").read_text())["interrupted"]
    fr.load_model(out / "model")
    assert not list(out.glob(".*"))


def test_a_second_run_that_is_killed_leaves_the_first_whole_or_clearly_unfinished(rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with started("train", rows, "--epochs", 3, "--no-sweep", "--out", out) as first:
        first.communicate()
    assert first.returncode == 0
    model, result = (out / "model" / "model.json").read_bytes(), (out / "result.json").read_bytes()
    with started("train", rows, *FOREVER, "--seed", 1, "--out", out) as second:
        changed = {path: path.stat().st_mtime_ns for path in (out / "checkpoint").glob("*")}
        wait_until(
            second,
            lambda: any(changed.get(p) != p.stat().st_mtime_ns for p in (out / "checkpoint").glob("*.checkpoint")),
        )
        second.kill()
    assert (out / "model" / "model.json").read_bytes() == model
    assert (out / "result.json").read_bytes() == result
    with started("train", rows, "--epochs", 3, "--no-sweep", "--out", out) as third:  # the folder is free again
        told = third.communicate()
    assert third.returncode == 0, told
    assert not [path for path in out.rglob(".*") if path.suffix != ".part"]


def test_more_features_than_usual_are_read_when_the_command_says_so(tmp_path: Path) -> None:
    wide = tmp_path / "wide.txt"
    lines = (f"{i % 2} qid:{i // 4} {1 + i % 3}:{i} 20001:{i % 5}\n" for i in range(16))
    wide.write_text("".join(lines))
    command = ("train", wide, "--epochs", 2, "--no-sweep", "--restarts", 1, "--out", tmp_path / "out")
    with started(*command) as refused:
        said = refused.communicate()[1]
    assert refused.returncode == 1
    assert "expected at most 20,000 features, found '20001:0'; --n-features N" in said
    with started(*command, "--n-features", 20_001) as trained:
        assert trained.communicate()[1] == ""
    assert trained.returncode == 0
    with started("rank", tmp_path / "out", wide, "--n-features", 20_001, "--out", tmp_path / "run") as ranked:
        ranked.communicate()
    assert ranked.returncode == 0
