"""Cells of a CSV file that a spreadsheet shows and does not run."""

from __future__ import annotations

from typing import Any

__all__ = ["safe_cell"]


def safe_cell(value: Any) -> Any:
    """The value; text that a spreadsheet would take for a formula gets a ' in front. Numbers stay as they are.

    >>> [safe_cell(each) for each in ("shoe", "=1+2", "@SUM(A1)", "-0.5", "-cmd", -0.5, "'=x")]
    ['shoe', "'=1+2", "'@SUM(A1)", '-0.5', "'-cmd", -0.5, "'=x"]
    """
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    try:
        float(value)
    except ValueError:
        return "'" + value
    return value
