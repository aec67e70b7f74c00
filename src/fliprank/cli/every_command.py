"""What every command has: `--quiet`, `--json`, and an end in good order at Ctrl-C.

Commands are furnished with these when the command line starts, so a new command has them without a line of its own.
`--json` prints one JSON document on standard output and nothing else; for an error that is `{"error": ...}`.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from fliprank.cli.help_pages import ExampleCommand
from fliprank.cli.interrupts import INTERRUPTED, interruption
from fliprank.errors import FliprankError, InputError, printable

__all__ = ["furnish", "print_json", "tell_error"]

Quiet = Annotated[
    bool, typer.Option("--quiet", help="No progress, no notes: files, errors, and what you asked to see.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document for a program, errors too.")]


def furnish(app: typer.Typer) -> typer.Typer:
    """Give all commands, of groups too, the options that they share."""
    for command in app.registered_commands:
        if command.callback is not None and not hasattr(command.callback, "furnished"):
            command.callback = _furnished(command.callback)
            command.cls = ExampleCommand if command.cls is TyperCommand else command.cls
    for group in app.registered_groups:
        if group.typer_instance is not None:
            furnish(group.typer_instance)
    return app


def _furnished(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the options `--quiet` and `--json`, unless it has one of its own."""
    hints = get_type_hints(command, include_extras=True)
    own = [p.replace(annotation=hints[p.name]) for p in inspect.signature(command).parameters.values()]
    given = {flag for hint in hints.values() for part in getattr(hint, "__metadata__", ()) for flag in _flags(part)}
    added = {
        name: kind
        for name, flag, kind in (("quiet_", "--quiet", Quiet), ("json_", "--json", Json))
        if flag not in given
    }
    kind = inspect.Parameter.KEYWORD_ONLY
    more = [inspect.Parameter(name, kind, default=False, annotation=hint) for name, hint in added.items()]

    @wraps(command)
    def run(**arguments: Any) -> Any:
        from fliprank.console import output

        output.begin(*(arguments.pop(name, False) for name in ("quiet_", "json_")))
        interruption.happened = False
        try:
            command(**arguments)
        except KeyboardInterrupt:
            interruption.happened = True
        except FliprankError:  # nothing to keep is no error where it was ended
            if not interruption.happened:
                raise
        if interruption.happened:
            _tell_interruption()
            raise typer.Exit(INTERRUPTED)
        if output.json:
            print_json(output.content)

    parameters = [p.replace(kind=kind) for p in own] + more
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.furnished = True  # type: ignore[attr-defined]
    return run


def _flags(part: Any) -> tuple[str, ...]:
    return tuple(getattr(part, "param_decls", None) or ())


def _tell_interruption() -> None:
    """What is kept, and the command that goes on; to a program together with what there is."""
    from fliprank.console import output

    if output.json:
        told = {"interrupted": True, "kept": interruption.kept(), "go_on": interruption.command}
        print_json(({} if output.content else {"error": "interrupted"}) | output.content | told)
        return
    for line in interruption.lines():
        typer.echo(printable(f"fliprank: {line}"), err=True)


interruption.end = _tell_interruption


def tell_error(error: Exception, code: int, as_json: bool) -> None:
    """One line on standard error; for a program one document on standard output, if that can be written to."""
    told: dict[str, Any] = {"error": printable(str(error)), "exit_code": code}
    if isinstance(error, InputError):
        where = {"path": error.path, "line": error.line, "query": error.query, "hint": error.hint}
        told |= {name: value for name, value in where.items() if value is not None}
    if as_json:
        with suppress(OSError):
            print_json(told)
            return
    with suppress(OSError):
        typer.echo(printable(f"fliprank: {error}"), err=True)


def print_json(content: dict[str, Any]) -> None:
    """Print the document; what is not a number is null, since JSON has no NaN."""
    if sys.stdout is None:
        return
    try:
        text = json.dumps(content, indent=2, allow_nan=False, default=str)
    except ValueError:
        from fliprank.experiment.fit_folder import json_text

        text = json_text(content)
    typer.echo(text)
