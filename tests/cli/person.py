"""A person at a terminal: starts a command, reads the screen, presses Ctrl-C. And a program that calls a command."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pexpect
import pyte

from fliprank.cli import run

LONG = 600
"""Seconds after which a command that says nothing is given up; no test waits for it."""


class Said(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


def call(*arguments: str | Path, folder: Path | None = None) -> Said:
    """Run a command in this process, as from a pipe."""
    out, err = io.StringIO(), io.StringIO()
    here = contextlib.chdir(folder) if folder is not None else contextlib.nullcontext()
    with here, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([str(each) for each in arguments])
    return Said(code, out.getvalue(), err.getvalue())


class Terminal:
    """A command in a pseudo-terminal, and what is on its screen, with all that has scrolled off."""

    def __init__(self, command: str, columns: int, folder: Path, **environment: str) -> None:
        _, *arguments = shlex.split(command)
        known = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        known |= {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environment}
        self.screen = pyte.Screen(columns, 1000)
        self.stream = pyte.ByteStream(self.screen)
        self.process = pexpect.spawn(
            sys.executable,
            ["-m", "fliprank", *arguments],
            dimensions=(1000, columns),
            cwd=str(folder),
            env=known,
            timeout=LONG,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        self.ended = False

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.close(force=True)

    @property
    def text(self) -> str:
        """The screen as a person reads it."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def read(self) -> None:
        """Take in what was printed since."""
        try:
            self.stream.feed(self.process.read_nonblocking(1 << 16, timeout=0.2))
        except pexpect.TIMEOUT:
            pass
        except pexpect.EOF:
            self.ended = True

    def wait_for(self, text: str) -> None:
        """Until this is on the screen."""
        while text not in self.text and not self.ended:
            self.read()
        assert text in self.text, self.text

    def wait_for_file(self, folder: Path, pattern: str) -> None:
        """Until a command has written such a file."""
        while not list(folder.glob(pattern)) and not self.ended:
            self.read()
        assert list(folder.glob(pattern)), self.text

    def press_ctrl_c(self) -> None:
        self.process.sendintr()

    def end(self) -> int:
        """Wait until the command has ended; returns its exit code."""
        while not self.ended:
            self.read()
        while self.process.isalive():
            time.sleep(0.01)
        self.process.close()
        return int(self.process.exitstatus if self.process.exitstatus is not None else -self.process.signalstatus)


def look(command: str, columns: int, folder: Path, **environment: str) -> Terminal:
    """The terminal after a command that must succeed."""
    with Terminal(command, columns, folder, **environment) as terminal:
        assert terminal.end() == 0, terminal.text
        return terminal
