"""The command line: a thin skin over the library, one file a command.

Heavy imports wait until a command runs, so that --help is quick. Exit codes: 0 done, 1 the data or files can't be used,
2 the command was given wrongly.
"""

from __future__ import annotations

import os
import sys
import warnings

import typer

from fliprank.cli import (  # noqa: F401
    curve,
    demo,
    diff,
    evaluate,
    features,
    fuse,
    generate,
    importance,
    landscape,
    rank,
    reproduce,
    train,
    tune,
)
from fliprank.cli.app import app
from fliprank.errors import FliprankError, UsageError, printable

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; our own errors become one line and an exit code, warnings one line."""
    warnings.formatwarning = lambda message, *_, **__: printable(f"fliprank: {message}") + "\n"
    try:
        app()
    except FliprankError as error:
        typer.echo(printable(f"fliprank: {error}"), err=True)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:  # a full disk, a folder that can't be written to
        where = "" if error.filename is None else f"{error.filename}: "
        typer.echo(printable(f"fliprank: {where}{error.strerror or error}"), err=True)
        _drop_output()
        sys.exit(1)


def _drop_output() -> None:
    """Let go of what can't be printed: Python would try again at its end, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
