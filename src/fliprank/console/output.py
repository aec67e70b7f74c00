"""Where results go: to a person on a terminal, as plain text into a pipe, as JSON to a program.

A terminal gets tables that fit it. A pipe gets the same as plain text: whole names, no lines drawn, nothing wrapped.
With `--quiet` only `answer` prints, what a command was asked to print; with `--json` nothing does, and what `result`
and `written` were told is printed at the end as one JSON document.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from rich.console import Console
from rich.table import Table

from fliprank.console.fitting import fitted, narrow, plain_lines, shortened
from fliprank.errors import printable

__all__ = ["Output", "answer", "draw", "output", "result", "show", "written"]

PLAIN = str.maketrans({"…": "...", "µ": "u"})
"""What stands for signs that an encoding other than Unicode may not have."""


@dataclass
class Output:
    """How this command prints, and what it has to tell a program."""

    quiet: bool = False
    json: bool = False
    content: dict[str, Any] = field(default_factory=dict)

    def begin(self, quiet: bool = False, json: bool = False) -> None:
        """A command starts."""
        self.quiet, self.json, self.content = quiet, json, {}

    @property
    def silent(self) -> bool:
        """Whether neither progress nor notes are wanted."""
        return self.quiet or self.json


output = Output()
"""The output of the command that runs."""


def show(*things: Table | str) -> None:
    """Print for a person; nothing with `--quiet` or `--json`."""
    if not output.silent:
        _print(*things)


def answer(*things: Table | str) -> None:
    """Print what the command was asked to print, with `--quiet` too; nothing with `--json`."""
    if not output.json:
        _print(*things)


def written(path: str | PathLike[str], more: str = "") -> None:
    """Tell that a file or folder was written."""
    output.content.setdefault("written", []).append(str(path))
    show(f"written: {path}{more}")


def result(**content: Any) -> None:
    """What the JSON document has; later calls add to it."""
    output.content |= content


def _print(*things: Table | str) -> None:
    """Tables and lines, as wide as the terminal, or whole and plain where there is none."""
    if sys.stdout is None:
        return
    if not sys.stdout.isatty():
        lines = [
            line for thing in things for line in ([printable(thing)] if isinstance(thing, str) else plain_lines(thing))
        ]
        sys.stdout.write("".join(f"{_encodable(line)}\n" for line in lines))
        return
    draw(Console(highlight=False, emoji=False), *things)


def draw(console: Console, *things: Table | str) -> None:
    """Tables and lines on a terminal, as wide as it is."""
    left_out = dict[str, None]()
    for thing in things:
        if isinstance(thing, str):
            text = shortened(thing) if narrow(console.width) else thing
            console.print(_encodable(printable(text)), markup=False)
            continue
        for part in fitted(thing, console.width, left_out):
            console.print(part)
    if left_out:
        text = f"A wider terminal, or a pipe, also has: {', '.join(left_out)}."
        console.print(text, markup=False, style="dim")


def _encodable(text: str) -> str:
    """Typographic signs in ASCII where the terminal's encoding is not Unicode."""
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    return text if unicode else text.translate(PLAIN)
