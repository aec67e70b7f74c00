"""Which strings are text where the user named no fields: not ids, addresses, dates and hashes.

A column is judged once, by its first values, so that a field is the same thing in all documents. Numbers and dates that
come as strings become columns of the documents, as numbers do. Dates in words are both, a column and text.

>>> kind_of("made", pl.Series(["2021-03-04", None, "2020-12-31T10:00:00Z"]))
'dates'
>>> kind_of("title", pl.Series(["Red shoes", "2021"]))
'text'
"""

from __future__ import annotations

import polars as pl

from fliprank.text.build.dates import DATES, MONTH_FIRST, WRITTEN, kind_of_dates

__all__ = ["NUMBERS", "TEXT", "WITH_DATES", "is_text", "kind_of", "notes_on_left_out"]

TEXT, NUMBERS, BY_REQUEST = "text", "numbers", "a field by request only"
WITH_DATES = (DATES, MONTH_FIRST, WRITTEN)

NOT_BY_DEFAULT = {"url", "dochdr", "_id", "id", "docid", "docno", "doc_id"}
"""Names that are not fields unless the user asks for them, whatever they hold."""

SAMPLED = 1000
"""The number of values by which a column is judged."""

PATTERNS = {
    NUMBERS: r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?",
    "addresses": r"([A-Za-z][A-Za-z0-9+.-]*://|www\.|mailto:|/)\S*",
    "hashes": r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{24,}",
}
"""A column is of a kind if all of its values match the pattern."""


def kind_of(name: str, column: pl.Series) -> str:
    """The kind of a column of strings."""
    if name.rsplit(".")[-1] in NOT_BY_DEFAULT:
        return BY_REQUEST
    values = column.drop_nulls().str.strip_chars()
    values = values.filter(values != "").head(SAMPLED)
    if not len(values):
        return TEXT
    found = (kind for kind, pattern in PATTERNS.items() if values.str.contains(f"^(?:{pattern})$").all())
    return next(found, kind_of_dates(values) or TEXT)


def is_text(kind: str) -> bool:
    """Whether a column of this kind is a field."""
    return kind in (TEXT, WRITTEN)


def notes_on_left_out(kinds: dict[str, str], others: set[str]) -> list[str]:
    """Notes on strings that did not become fields, and on values that are neither text nor numbers."""
    named = [f"{name} ({kind})" for name, kind in kinds.items() if not is_text(kind) and kind != BY_REQUEST]
    notes = [f"not taken for text: {', '.join(named)}; name the fields to have them"] if named else []
    return notes + ([f"neither text nor numbers, left out: {', '.join(sorted(others))}"] if others else [])
