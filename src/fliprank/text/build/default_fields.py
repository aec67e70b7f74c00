"""Which text is a field where nobody has said: not ids, addresses, dates and hashes, though they come as strings.

A column is looked at once, where it first occurs; so a field is the same thing in all documents.
Numbers that come as strings are columns of the documents, as numbers are.

>>> kind_of("made", pl.Series(["2021-03-04", None, "2020-12-31T10:00:00Z"]))
'dates'
>>> kind_of("title", pl.Series(["Red shoes", "2021"]))
'text'
"""

from __future__ import annotations

import polars as pl

__all__ = ["NUMBERS", "TEXT", "kind_of", "left_out"]

TEXT, NUMBERS, UNSAID = "text", "numbers", "not for search"

NOT_BY_DEFAULT = {"url", "dochdr", "_id", "id", "docid", "docno", "doc_id"}
"""Names of what is no field unless it is asked for, whatever it holds."""

LOOKED_AT = 1000
"""Values by which a column is judged."""

PATTERNS = {
    NUMBERS: r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?",
    "dates": r"\d{4}-\d\d?-\d\d?([T ]\d\d?:\d\d.*)?|\d\d?[./]\d\d?[./]\d{4}",
    "addresses": r"([A-Za-z][A-Za-z0-9+.-]*://|www\.|mailto:|/)\S*",
    "hashes": r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{24,}",
}
"""What a column is if all of its values look so."""


def kind_of(name: str, column: pl.Series) -> str:
    """What a column of strings holds."""
    if name.rsplit(".")[-1] in NOT_BY_DEFAULT:
        return UNSAID
    values = column.drop_nulls().str.strip_chars()
    values = values.filter(values != "").head(LOOKED_AT)
    if not len(values):
        return TEXT
    found = (kind for kind, pattern in PATTERNS.items() if values.str.contains(f"^(?:{pattern})$").all())
    return next(found, TEXT)


def left_out(kinds: dict[str, str], others: set[str]) -> list[str]:
    """Notes on what did not become text, and on what is neither text nor number."""
    named = [f"{name} ({kind})" for name, kind in kinds.items() if kind not in (TEXT, UNSAID)]
    notes = [f"not taken for text: {', '.join(named)}; name the fields to have them"] if named else []
    return notes + ([f"neither text nor numbers, left out: {', '.join(sorted(others))}"] if others else [])
