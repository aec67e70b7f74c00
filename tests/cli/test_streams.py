"""Terminals and pipes as they come: other encodings, closed streams, readers that leave; no traceback, no lost id."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from person import Terminal, look

pytestmark = pytest.mark.long

COMMAND = [sys.executable, "-m", "fliprank"]
ID = "[red]grün:smile:\\[1]"
"""An id with markup, a letter that ASCII lacks, the name of an emoji, and a backslash."""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "qrels").write_text(f"{ID} 0 d1 1\n{ID} 0 d2 0\n")
    for name in ("a.run", "b.run"):
        (tmp_path / name).write_text(f"{ID} Q0 d1 1 2 x\n{ID} Q0 d2 2 1 x\n")
    return tmp_path


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "ascii"])
def test_any_encoding_of_a_pipe_will_do(files: Path, encoding: str) -> None:
    given = [*COMMAND, "evaluate", "qrels", "a.run", "b.run", "-m", "RR", "-q", "--explain", "--quiet"]
    environment = {"PYTHONIOENCODING": encoding, "PATH": "", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(given, capture_output=True, cwd=files, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    shown = ID.encode(encoding, "backslashreplace").decode(encoding)
    assert [line.split()[:2] for line in done.stdout.decode(encoding).splitlines() if "smile" in line] == [
        [shown, "a.run"],
        [shown, "b.run"],
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "ascii"])
@pytest.mark.parametrize("columns", [80, 200])
def test_any_encoding_of_a_terminal_will_do(files: Path, encoding: str, columns: int) -> None:
    told = look("fliprank evaluate qrels a.run -m RR -q", columns, files, PYTHONIOENCODING=encoding).text
    assert "Traceback" not in told
    shown = ID.encode("ascii" if encoding == "ascii" else "utf-8", "backslashreplace").decode()
    if encoding != "cp1252":  # which this terminal does not speak
        assert shown in told
    assert "[red]gr" in told


@pytest.mark.parametrize(
    ("options", "closed"),
    [
        ("", "2>&-"),
        ("", ">&-"),
        ("--csv", ">&-"),
        ("--json", ">&- 2>&-"),
        ("", "| head -1"),
        ("--csv", "| head -1"),
        ("", "2>&1 | head -1"),
        ("--json", "| true"),
        ("--help", "| true"),
    ],
)
def test_closed_streams_and_readers_that_leave_are_no_traceback(files: Path, options: str, closed: str) -> None:
    line = f'"$@" evaluate qrels a.run b.run -q {options} {closed}'
    done = subprocess.run(["sh", "-c", line, "sh", *COMMAND], capture_output=True, text=True, cwd=files, check=False)
    assert "Traceback" not in done.stderr + done.stdout
    assert "Exception" not in done.stderr + done.stdout
    assert done.returncode == 0 or closed.startswith(">")


def test_progress_is_one_line_that_goes_away(files: Path) -> None:
    """The spinner is there while Ctrl-C waits, and the cursor comes back."""
    with Terminal("fliprank demo --out demo", 80, files) as terminal:
        terminal.wait_for("indexing")
        terminal.press_ctrl_c()
        assert terminal.end() == 130
    assert not terminal.screen.cursor.hidden
    assert terminal.lines[-1] == "fliprank: to go on: fliprank demo --out demo"
    assert any("interrupted: " in line for line in terminal.lines[-3:-1])  # where it is long, on two lines
