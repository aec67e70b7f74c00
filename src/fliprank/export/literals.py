"""Numbers and text as exports write them; text can't break out of where it stands.

>>> number(0.1 + 0.2), sql_string("it's"), python_literal({"it's": 2.0, "body": 0.5})
('0.3', "'it''s'", '{"it\\'s": 2, \\'body\\': 0.5}')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["number", "python_literal", "sql_name", "sql_string"]


def number(value: float) -> str:
    """Six digits, and no more than are needed."""
    return f"{value:.6g}"


def sql_string(text: str) -> str:
    """A string in SQL."""
    return "'" + text.replace("'", "''") + "'"


def sql_name(text: str) -> str:
    """The name of a table or column in SQL."""
    return '"' + text.replace('"', '""') + '"'


def python_literal(value: Mapping[str, float] | Sequence[str] | str | float) -> str:
    """A value in Python, in ASCII."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!a}: {number(each)}" for key, each in value.items()) + "}"
    if isinstance(value, str):
        return ascii(value)
    return number(value) if isinstance(value, int | float) else ascii(list(value))
