"""Errors that a person can act on: what was given, where, and what to do.

>>> raise InputError("expected 4 columns, found 3", path="qrels.txt", line=17, hint="a line is: qid 0 docno label")
Traceback (most recent call last):
fliprank.errors.InputError: qrels.txt, line 17: expected 4 columns, found 3 (a line is: qid 0 docno label)
"""

from __future__ import annotations

from os import PathLike, fspath

__all__ = ["FliprankError", "InputError", "MissingExtraError", "UsageError", "printable"]


def printable(text: str) -> str:
    """Text from a file, safe for a terminal: control characters, which could move the cursor, are replaced.

    >>> printable("d1" + chr(27) + "[2J")
    'd1�[2J'
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


class FliprankError(Exception):
    """Any error that fliprank raises on purpose."""


class UsageError(FliprankError, ValueError):
    """An argument that makes no sense: an unknown measure, a negative cut-off."""


class InputError(FliprankError, ValueError):
    """Data that can't be used. `path`, `line` (from 1) and `query` say where, `hint` what was expected."""

    def __init__(
        self,
        message: str,
        *,
        path: str | PathLike[str] | None = None,
        line: int | None = None,
        query: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.message, self.line, self.query, self.hint = message, line, query, hint
        self.path = None if path is None else fspath(path)
        where = [] if self.path is None else [self.path]
        if line is not None:
            where.append(f"line {line}")
        if query is not None:
            where.append(f"query {query}")
        super().__init__((", ".join(where) + ": " if where else "") + message + (f" ({hint})" if hint else ""))


class MissingExtraError(FliprankError, ImportError):
    """An optional package that is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'fliprank[{extra}]'")
