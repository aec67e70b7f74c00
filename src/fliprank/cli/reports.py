"""The report that a command leaves beside its figures: report.html, one file for people without a terminal.

A report is the last thing that a command does. Where a result is of a kind that no page can show, that is a note, not
an error: the figures are there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fliprank.cli.interrupts import interruption
from fliprank.errors import FliprankError

if TYPE_CHECKING:
    from fliprank.report.page import Page

__all__ = ["REPORT", "command_line", "write_report"]

REPORT = "report.html"


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
