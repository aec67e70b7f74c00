"""The root of the command line: `--version`, and what all commands hang on."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from fliprank import __version__

__all__ = ["app", "held"]

held = ExitStack()
"""What a command holds until it ends, however it ends: the lock of its folder."""

app = typer.Typer(
    help="Set the parameters of search ranking functions from relevance judgements, flip by flip.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fliprank {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    context.call_on_close(held.close)
