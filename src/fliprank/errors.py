"""Errors that a person can act on: what was given, where, and what to do.

>>> raise InputError("expected 4 columns, found 3", path="qrels.txt", line=17, hint="a line is: qid 0 docno label")
Traceback (most recent call last):
fliprank.errors.InputError: qrels.txt, line 17: expected 4 columns, found 3 (a line is: qid 0 docno label)
"""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any

__all__ = [
    "FliprankError",
    "InputError",
    "InterruptedFitError",
    "MissingExtraError",
    "UsageError",
    "WrongTypeError",
    "check_type",
    "indented",
    "printable",
]


def printable(text: str) -> str:
    """Text from a file, safe for a terminal: control characters, which could move the cursor, are replaced.

    >>> printable("d1" + chr(27) + "[2J")
    'd1�[2J'
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def indented(first: str, *others: str) -> str:
    """What a person sees of an object in a few lines: a heading, and the rest below it, safe for a terminal.

    >>> print(indented("Fit", "bm25f", "nDCG@10 0.41"))
    Fit
      bm25f
      nDCG@10 0.41
    """
    return "\n  ".join(map(printable, (first, *others)))


class FliprankError(Exception):
    """Any error that fliprank raises on purpose."""


class UsageError(FliprankError, ValueError):
    """An argument that makes no sense: an unknown measure, a negative cut-off."""


class WrongTypeError(UsageError, TypeError):
    """An argument of another type than was expected."""

    def __init__(self, argument: str, value: Any, expected: str) -> None:
        kind = type(value).__name__
        shown = repr(value) if isinstance(value, int | float | complex | str | bytes) else ""
        given = f"{shown[:40]} was given ({kind})" if shown else f"a {kind} was given"
        given = "None was given" if value is None else given
        super().__init__(printable(f"{argument} must be {expected}; {given}"))


def check_type(argument: str, value: Any, kinds: type | tuple[type, ...], expected: str) -> None:
    """Raise an error that says what was expected if a value is of none of these types; True is no number.

    >>> check_type("measure", 7, str, "a name such as 'nDCG@10' or a Measure")
    Traceback (most recent call last):
    fliprank.errors.WrongTypeError: measure must be a name such as 'nDCG@10' or a Measure; 7 was given (int)
    """
    known = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, known) or (isinstance(value, bool) and bool not in known):
        raise WrongTypeError(argument, value, expected)


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


class InterruptedFitError(InputError):
    """A fit that Ctrl-C ended before there was anything to keep."""


class MissingExtraError(FliprankError, ImportError):
    """An optional package that is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'fliprank[{extra}]'")
