"""Work in other processes: all of it is done, errors are told, and no process outlives the one that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fliprank.errors import InputError
from fliprank.papers.processes import run_in_processes

pytestmark = pytest.mark.long

FEW = 12
PROGRAM = """
import sys, time
sys.path.insert(0, {tests!r})
from test_processes import sleep
from fliprank.papers.processes import run_in_processes
if __name__ == "__main__":
    run_in_processes(sleep, [{folder!r}] * 12, lambda done: None, jobs=2)
"""


def leave_a_file(path: Path) -> None:
    path.write_text(str(os.getpid()))


def fail(path: Path) -> None:
    raise InputError("this one is broken", path=path)


def sleep(folder: str) -> None:
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(600)


def test_every_task_is_done_in_some_other_process(tmp_path: Path) -> None:
    tasks, told = [tmp_path / str(i) for i in range(FEW)], list[int]()
    run_in_processes(leave_a_file, tasks, told.append, jobs=2)
    assert str(os.getpid()) not in {task.read_text() for task in tasks}
    assert told == list(range(1, FEW + 1))


def test_few_tasks_and_one_core_are_left_to_the_caller(tmp_path: Path) -> None:
    tasks = [tmp_path / str(i) for i in range(FEW)]
    run_in_processes(leave_a_file, tasks[:3], lambda _: None, jobs=2)
    run_in_processes(leave_a_file, tasks, lambda _: None, jobs=1)
    assert not list(tmp_path.iterdir())


def test_an_error_in_a_task_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="broken"):
        run_in_processes(fail, [tmp_path] * FEW, lambda _: None, jobs=2)


def test_no_process_outlives_the_one_that_started_it(tmp_path: Path) -> None:
    script, seen = tmp_path / "run.py", tmp_path / "seen"
    seen.mkdir()
    script.write_text(PROGRAM.format(tests=str(Path(__file__).parent), folder=str(seen)))
    program = subprocess.Popen([sys.executable, str(script)])
    while len(found := [int(file.name) for file in seen.iterdir()]) < 2:
        assert program.poll() is None
        time.sleep(0.1)
    program.send_signal(signal.SIGKILL)
    program.wait()
    while any(Path(f"/proc/{pid}").exists() for pid in found):  # else the test does not end
        time.sleep(0.1)
