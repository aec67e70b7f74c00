"""Ctrl-C: a command ends within two seconds, says what is kept and how to go on; a second one ends it at once.

The first Ctrl-C raises KeyboardInterrupt, and a command ends in good order; while a kernel is compiled or loaded, just
after that. A kernel that computes for minutes does not notice: so a thread watches too. It is told of the signal at
once, and ends the process where the good order takes too long. What is on disk is whole at any time, since files are
written under another name first.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

__all__ = ["INTERRUPTED", "Interruption", "interruption"]

INTERRUPTED = 130
"""The exit code of a command that was ended by Ctrl-C."""
GRACE, EFFORT, LONGEST = 1.5, 0.75, 10.0
"""Seconds in which a command may end in good order; but it has so many seconds of its processors' time, which on a busy
machine are more by the clock, up to the last number."""
LATER = 0.02
"""Seconds until another try to interrupt what can't be interrupted now."""


@dataclass
class Interruption:
    """Whether Ctrl-C was pressed, and what the command would then say."""

    happened: bool = False
    heard: int = 0
    kept: Callable[[], str] = lambda: "nothing was written"
    command: str = "fliprank"
    given: str = "fliprank"
    end: Callable[[], None] = lambda: None
    """Says what is kept, where the process is ended from another thread."""

    def begin(self, arguments: list[str]) -> None:
        """A command starts."""
        self.happened, self.kept = False, lambda: "nothing was written"
        self.given = self.command = shlex.join(["fliprank", *arguments])

    def keep(self, kept: Callable[[], str], resume: str = "") -> None:
        """From now on `kept` says what is kept; the same command with `resume` goes on from there."""
        self.kept = kept
        if resume and resume not in shlex.split(self.command):
            self.command += f" {resume}"

    def lines(self) -> list[str]:
        """What to tell a person."""
        return [f"interrupted: {self.kept()}", f"to go on: {self.command}"]

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch for Ctrl-C, unless it is ignored here, as it is for jobs in the background."""
        before = signal.getsignal(signal.SIGINT)
        if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
            yield
            return
        told, tell = socket.socketpair()
        tell.setblocking(False)
        self.heard = 0
        signal.signal(signal.SIGINT, self._on_signal)
        woken = signal.set_wakeup_fd(tell.fileno(), warn_on_full_buffer=False)
        watcher = threading.Thread(target=self._watch, args=(told,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(woken)
            signal.signal(signal.SIGINT, before)
            tell.close()
            watcher.join(timeout=1.0)
            told.close()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """What Python itself hears of Ctrl-C; the second one may come here before the watcher is told of it."""
        self.heard += 1
        if self.heard > 1:
            _leave()
        self.happened = True
        self._raise(number, frame)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt; a moment later where that would be in the middle of Numba or LLVM.

        Once in a hundred times an exception there ended the process with a segmentation fault, or was never seen again.
        """
        if not _compiles(frame) or not hasattr(signal, "setitimer"):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, self._raise)
        signal.setitimer(signal.ITIMER_REAL, LATER)

    def _watch(self, told: socket.socket) -> None:
        """End the process at the second Ctrl-C, or some time after the first."""
        pressed, since, spent = 0, 0.0, 0.0
        while True:
            if not select.select([told], [], [], 0.1 if pressed else None)[0]:
                waited, effort = time.monotonic() - since, time.process_time() - spent
                if waited > LONGEST or (waited > GRACE and effort > EFFORT):
                    self.end()
                    _leave()
                continue
            signals = told.recv(64)
            if not signals:
                return
            if not pressed:
                since, spent = time.monotonic(), time.process_time()
            pressed += signals.count(signal.SIGINT)
            self.happened = self.happened or pressed > 0
            if pressed > 1:
                _leave()


interruption = Interruption()
"""Of the command that runs."""


def _compiles(frame: FrameType | None) -> bool:
    """Whether Numba or llvmlite is at work in this frame, or in one that it was called from."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in ("numba", "llvmlite"):
            return True
        frame = frame.f_back
    return False


def _leave() -> None:
    """End at once; a spinner may have hidden the cursor."""
    if sys.stderr is not None and sys.stderr.isatty():
        os.write(sys.stderr.fileno(), b"\r\x1b[?25h\x1b[K")
    os._exit(INTERRUPTED)
