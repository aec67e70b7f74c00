"""The command line: a thin skin over the library, one file a command.

Heavy imports wait until a command runs, so that --help is quick. Exit codes: 0 done, 1 the data or files can't be used,
2 the command was given wrongly, 130 ended by Ctrl-C.
"""

from __future__ import annotations

import io
import os
import sys
import warnings

import typer

from fliprank.cli import (  # noqa: F401
    convert,
    curve,
    demo,
    diff,
    evaluate,
    export,
    features,
    fuse,
    generate,
    importance,
    landscape,
    plot,
    rank,
    reproduce,
    train,
    tune,
    verify,
)
from fliprank.cli.app import app
from fliprank.cli.every_command import furnish, tell_error
from fliprank.cli.interrupts import INTERRUPTED, interruption
from fliprank.errors import FliprankError, UsageError, printable

__all__ = ["app", "main", "run"]

CommandError: type[typer.BadParameter] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)
"""What typer raises where a command is given wrongly."""


def main() -> None:
    """Run the command line and end the process with its exit code."""
    code = run(sys.argv[1:])
    if interruption.happened:  # without waiting for threads and libraries to be taken down
        os._exit(code)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """The exit code of a command; our own errors become one line and an exit code, warnings one line."""
    warnings.formatwarning = lambda message, *_, **__: printable(f"fliprank: {message}") + "\n"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what an encoding does not have is shown by its number
            stream.reconfigure(errors="backslashreplace")
    interruption.begin(arguments)
    with interruption.watched():
        try:
            code = _code_of(arguments)
        except KeyboardInterrupt:  # before a command began, or after it ended
            code = INTERRUPTED
    _drop_output()
    return code


def _code_of(arguments: list[str]) -> int:
    as_json = "--json" in arguments
    try:
        return int(furnish(app)(arguments, prog_name="fliprank", standalone_mode=False) or 0)
    except FliprankError as error:
        code = 2 if isinstance(error, UsageError) else 1
        tell_error(error, code, as_json)
        return code
    except BrokenPipeError:
        return 1
    except OSError as error:  # a full disk, a folder that can't be written to
        where = "" if error.filename is None else f"{error.filename}: "
        tell_error(OSError(f"{where}{error.strerror or error}"), 1, as_json)
        return 1
    except CommandError as error:
        if as_json:
            tell_error(Exception(error.format_message()), error.exit_code, as_json)
        else:
            error.show()
        return int(error.exit_code)


def _drop_output() -> None:
    """Write what is left, and let go of what can't be written: Python would try again at its end, and complain."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
