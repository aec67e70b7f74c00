"""Text of a user on a screen: how wide that is, and what fits."""

from __future__ import annotations

import sys

from rich.cells import cell_len, set_cell_size
from rich.console import Console

from fliprank.errors import printable

__all__ = ["screen_width", "shortened"]


def screen_width() -> int:
    """The columns of the terminal; 160 where there is none."""
    return Console().width if sys.stdout and sys.stdout.isatty() else 160


def shortened(text: str, width: int) -> str:
    """Text from a user on one line of at most so many columns, control characters replaced; wide letters count twice.

    >>> shortened("red shoes", 9), shortened("red shoes" + chr(27), 6), cell_len(shortened("靴" * 9, 6))
    ('red shoes', 'red s…', 5)
    """
    clean = printable(" ".join(text.split()))
    return clean if cell_len(clean) <= width else set_cell_size(clean, max(width - 1, 0)).rstrip() + "…"[:width]
