"""`fliprank export`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from fliprank.cli.app import app
from fliprank.cli.help_pages import ExampleCommand
from fliprank.cli.overwriting import Force
from fliprank.errors import UsageError

__all__ = ["export"]

EXPORT_EXAMPLES = """
Examples:

  fliprank export fit --to solr-ltr --out for-solr

  fliprank export fit/model --to onnx --out ranker-onnx

  fliprank export fit --list

Afterwards: DIR/README.md (what to run, what was lost, the measured gain), the files of the engine, DIR/model (the model
itself) and DIR/export.json (for `fliprank verify`).
"""


class TargetsCommand(ExampleCommand):
    """A command whose help ends with the targets that are registered."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        from fliprank.export import target_names

        super().format_epilog(ctx, formatter)
        with formatter.section("Targets"):
            formatter.write_dl(list(target_names().items()))


@app.command(epilog=EXPORT_EXAMPLES, cls=TargetsCommand, short_help="A model as a search engine takes it.")
def export(
    model: Annotated[
        Path | None, typer.Argument(help="What `train`, `tune` or `fuse` wrote: its folder, or the model's.")
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="NAME", help="The engine: a target below.")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the engine's files.")] = Path("export"),
    force: Force = False,
    list_: Annotated[bool, typer.Option("--list", help="Only list the targets; of MODEL, those that take it.")] = False,
) -> None:
    """Write a model as a search engine takes it: files, what to do with them, and what was lost on the way."""
    from fliprank import console
    from fliprank.export import target_names, targets_for
    from fliprank.export.about import read_model
    from fliprank.export.folder import read_export, write_export

    if list_:
        known = None if model is None else targets_for(read_model(model)[0])
        return _show_targets({name: about for name, about in target_names().items() if known is None or name in known})
    if model is None or to is None:
        raise UsageError("give MODEL and --to NAME; --list shows the targets")
    exported, about = read_model(model)
    place = write_export(out, exported, to, about, force=force)
    found = read_export(place)
    console.result(
        target=to, kind=exported.kind, files=list(found.files), lost=list(found.lost), gain=about.gain or None
    )
    console.show(*_told(about.gain, found.lost))
    console.written(place / "README.md", " (what to do)")


def _told(gain: str, lost: Iterable[str]) -> Iterable[str]:
    if gain:
        yield f"measured: {gain}"
    for each in lost:
        yield f"changed: {each}"


def _show_targets(targets: dict[str, str]) -> None:
    from fliprank import console

    console.result(targets=targets)
    wide = max(map(len, targets), default=0) + 2
    console.answer(*([f"{name:<{wide}}{about}" for name, about in targets.items()] or ["no target takes this model"]))
