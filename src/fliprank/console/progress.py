"""A sign of life while work goes on, on standard error: what is being done, how far it is, how long it may still take.

On a terminal one line that changes. In a file or pipe a line now and then, at a pace at which a person would look:
after 1, 2, 5, 10, 30 and 60 seconds, and then every minute. Nothing with `--quiet` or `--json`.

>>> how_far("tuning", "fits", 20, 80, elapsed=30.0)
'tuning: fits, 20 of 80, 0:30, about 1:30 left'
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING

from rich.console import Console

from fliprank.console.output import output
from fliprank.errors import printable

if TYPE_CHECKING:
    from fliprank.optimize.fit import Epoch

__all__ = ["counting", "fit_progress", "how_far", "working"]

PACE = (1, 2, 5, 10, 30, 60)
"""Seconds after the start of the first piece of work at which a line is written to a file; then every minute."""
COMPILES = "the first run after an installation compiles for a while"


@dataclass
class _State:
    """What the work said last."""

    name: str
    what: str = ""
    done: int = 0
    total: int = 0
    epoch: str = ""
    short_epoch: str = ""
    compiling: bool = True
    """Nothing was said so far."""
    since: float = 0.0

    def __post_init__(self) -> None:
        self.began = self.since = time.monotonic()

    def lines(self) -> list[str]:
        """What to show, the longest first."""
        now = time.monotonic()
        if self.compiling:
            waited = f"{self.name}, {clock(now - self.began)}"
            return [f"{waited} ({COMPILES})", waited]
        said = how_far(self.name, self.what, self.done, self.total, now - self.since)
        brief = how_far(self.name, "", self.done, self.total, now - self.since)
        return [f"{said}{epoch}" for epoch in (self.epoch, self.short_epoch, "")] + [brief]

    def fit(self, what: str, done: int, total: int, epoch: Epoch | None) -> None:
        """A fit of several tells of itself; fits run side by side, so their numbers come in any order."""
        again = done <= 1 < total == self.done + 1  # all but the last were under way: this is the first of others
        if self.compiling or total != self.total or again:
            self.done, self.since = 0, time.monotonic()
        under_way = int(epoch is not None)
        self.what, self.total, self.done = what, total, max(self.done, done - under_way)
        self.epoch = self.short_epoch = ""
        if epoch is not None:
            self.short_epoch = f", epoch {epoch.number}"
            known = [f"{name} {value:.4f}" for name, value in (("train", epoch.train), ("valid", epoch.valid))]
            self.epoch = f"{self.short_epoch}, " + ", ".join(part for part in known if not part.endswith("nan"))
        self.compiling = False

    def count(self, what: str, done: int) -> None:
        """So many are done, nobody knows of how many."""
        if what != self.what:
            self.since = time.monotonic()
        self.what, self.done, self.compiling = what, done, False


def how_far(name: str, what: str, done: int, total: int, elapsed: float) -> str:
    """The line: done and left, where it is known of how many."""
    parts = [f"{name}: {what}" if what and what != name else name]
    if total > 1:
        parts.append(f"{done:,} of {total:,}")
    elif done:
        parts[0] += f" {done:,}"
    parts.append(clock(elapsed))
    if total > 1 and 0 < done < total and elapsed >= 2:
        parts.append(f"about {clock(elapsed / done * (total - done))} left")
    return ", ".join(parts)


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any.

    >>> clock(75), clock(3675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def working(text: str) -> Iterator[None]:
    """Tells that the block runs."""
    with _shown(_State(text)):
        yield


@contextmanager
def counting(name: str) -> Iterator[Callable[[str, int], None]]:
    """Tells what is done and how far it is; call it with both."""
    with _shown(_State(name)) as state:
        yield state.count


@contextmanager
def fit_progress(name: str) -> Iterator[Callable[[str, int, int, Epoch | None], None]]:
    """Tells of the fits of a command: how many are done of how many, the time left, the latest epoch."""
    with _shown(_State(name)) as state:
        yield state.fit


@contextmanager
def _shown(state: _State) -> Iterator[_State]:
    """Show the state for as long as the block runs: by a thread, since work says nothing while it compiles."""
    if output.silent or sys.stderr is None:
        yield state
        return
    ended = threading.Event()
    show = _on_terminal if sys.stderr.isatty() else _in_file
    thread = threading.Thread(target=show, args=(state, ended), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        ended.set()
        thread.join(timeout=1.0)


def _on_terminal(state: _State, ended: threading.Event) -> None:
    """One line that changes, as long as fits the terminal; it is gone in the end."""
    console = Console(stderr=True, emoji=False, highlight=False)
    with suppress(OSError, ValueError), console.status(_line(state, console.width)) as status:
        while not ended.wait(0.2):
            status.update(_line(state, console.width))


def _line(state: _State, width: int) -> str:
    from rich.markup import escape

    lines = [printable(line) for line in state.lines()]
    room = width - 3  # the spinner
    return escape(next((line for line in lines if len(line) <= room), lines[-1]))


class _Pace:
    """When the next line is due. All pieces of work of a command share it: many short ones make no more lines."""

    def __init__(self) -> None:
        self.seconds = chain(PACE, count(2 * PACE[-1], PACE[-1]))
        self.began: float | None = None
        self.due = 0.0
        self.least = 0.2
        """Seconds that a piece of work has before it is told of."""

    def wait(self, ended: threading.Event) -> bool:
        """Wait until a line is due; False if the work ended before."""
        if self.began is None:
            self.began = time.monotonic()
            self.due = self.began + next(self.seconds)
        if ended.wait(max(self.least, self.due - time.monotonic())):
            return False
        while self.due <= time.monotonic():
            self.due = self.began + next(self.seconds)
        return True


_pace = _Pace()


def _in_file(state: _State, ended: threading.Event) -> None:
    """A line now and then; nobody reads them any more where they can't be written."""
    with suppress(OSError, ValueError):
        while _pace.wait(ended):
            sys.stderr.write(f"fliprank: {printable(state.lines()[0])}\n")
            sys.stderr.flush()
