"""The report that a command leaves beside its figures: report.html, one file for people without a terminal.

A report is the last thing that a command does. Where a result is of a kind that no page can show, that is a note, not
an error: the figures are there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fliprank.cli.interrupts import interruption
from fliprank.cli.overwriting import check_output
from fliprank.errors import FliprankError, UsageError

if TYPE_CHECKING:
    from fliprank.report.page import Page

__all__ = ["REPORT", "check_report", "command_line", "write_report"]

REPORT = "report.html"


def check_report(path: Path, force: bool) -> None:
    """Raise, before any work is done, if a report can't be written to this file."""
    if path.suffix not in (".html", ".htm"):
        raise UsageError(f"--report {path}: the name must end in .html")
    check_output(path, force)


def command_line() -> str:
    """The command that runs, as it was given."""
    return interruption.given


def write_report(path: Path, make: Callable[[], Page]) -> Path | None:
    """Write the page that `make` makes, and tell; None, and a note, where there is none."""
    from fliprank import console
    from fliprank.report.page import write_page

    try:
        page = make()
    except FliprankError as error:
        console.show(f"no report: {error}")
        return None
    write_page(path, page)
    console.written(path)
    return path
