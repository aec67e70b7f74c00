"""The folder of a fit: held by one run at a time, and never somebody else's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fliprank as fr
from fliprank.errors import InputError
from fliprank.experiment.fit_folder import check_folder
from fliprank.experiment.folder_lock import LOCK, locked

HOLD = """
import sys
from pathlib import Path
from fliprank.experiment.folder_lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """Another process that holds the folder until its input ends."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def train_files(folder: Path) -> Path:
    x = np.random.default_rng(0).normal(size=(120, 3))
    rows = fr.Candidates.of(x[:, 0] > 0.5, group=[10] * 12, features=x)
    fr.write_letor(folder / "rows.txt", rows)
    return folder / "rows.txt"


def test_a_folder_that_another_run_writes_to_is_refused_and_the_other_run_named(tmp_path: Path) -> None:
    out = tmp_path / "out"
    other = holder(out)
    try:
        command = [sys.executable, "-m", "fliprank", "train", train_files(tmp_path), "--out", out]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert f"another run is writing here: process {other.pid} on " in done.stderr
        assert [path.name for path in out.iterdir()] == [LOCK]
    finally:
        other.communicate("")
    assert not out.exists()


def test_the_lock_of_a_killed_run_is_taken_over(tmp_path: Path) -> None:
    other = holder(tmp_path / "out")
    os.kill(other.pid, signal.SIGKILL)
    other.communicate()
    assert (tmp_path / "out" / LOCK).exists()
    check_folder(tmp_path / "out")
    with locked(tmp_path / "out") as folder:
        assert str(os.getpid()) in (folder / LOCK).read_text()
        with pytest.raises(InputError, match="another run is writing here"), locked(folder):
            pass
        (folder / "result.json").write_text("{}")
    assert [path.name for path in folder.iterdir()] == ["result.json"]


def test_what_a_killed_run_left_half_written_is_gone_with_the_next_run(tmp_path: Path) -> None:
    left = [tmp_path / "out" / place / ".model.json.abcdefgh.part" for place in (".", "model", "Fold1/checkpoint")]
    for part in left:
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_text("half")
        os.utime(part, (1, 1))
    with locked(tmp_path / "out"):
        assert not any(part.exists() for part in left)


@pytest.mark.parametrize("content", ["{}", "[]", '{"accuracy": 0.9}', "not JSON", ""])
def test_a_result_that_we_did_not_write_is_not_overwritten(tmp_path: Path, content: str) -> None:
    (tmp_path / "result.json").write_text(content)
    with pytest.raises(InputError, match=r"result\.json: not a result of fliprank's"):
        check_folder(tmp_path)


def test_a_run_that_is_killed_leaves_no_figures_beside_another_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fliprank.cli import app
    from fliprank.experiment import jobs

    rows, out = str(train_files(tmp_path)), tmp_path / "out"
    arguments = ["train", rows, "--out", str(out), "--no-sweep", "--epochs", "2"]
    app(arguments, standalone_mode=False)
    assert json.loads((out / "result.json").read_text())["settings"]["seed"] == 0
    first = (out / "model" / "model.json").read_text()

    def killed(*_: object) -> None:
        raise SystemExit

    monkeypatch.setattr(jobs, "write_json", killed)
    with pytest.raises(SystemExit):
        app([*arguments, "--seed", "1", "--epochs", "3"], standalone_mode=False)
    assert (out / "model" / "model.json").read_text() != first
    assert not (out / "result.json").exists()
    assert not (out / LOCK).exists()
