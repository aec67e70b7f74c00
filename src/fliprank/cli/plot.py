"""`fliprank plot`: the pictures of a result, from the folder that a command wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fliprank.cli.app import app
from fliprank.cli.help_pages import ExampleCommand
from fliprank.cli.outputs import check_pictures
from fliprank.cli.overwriting import Force
from fliprank.errors import UsageError

__all__ = ["plot"]

PLOT_EXAMPLES = """
Examples:

  fliprank plot trail fit --out trail.svg

  fliprank plot ranges tuned --out ranges.png --out ranges.svg

  fliprank plot queries tuned

  fliprank plot surface fit -p w.1 -p w.2 --rows train.txt --out surface.svg

  fliprank plot trajectory tuned -p title.w -m AP --out trajectory.svg

  fliprank plot rank-distribution fit --rows test.txt --query 1 --sigma 0.5

  fliprank plot precision-recall tuned --qrels qrels.txt --out precision-recall.png

Pictures need the extra `report`. A .json is the chart as Vega-Lite.
"""

WORDS = {
    "rows": "--rows",
    "parameters": "--parameter",
    "measure": "--measure",
    "query": "--query",
    "sigma": "--sigma",
    "qrels": "--qrels",
}
"""The options that plots may take, by what they are called in Python."""


class PlotCommand(ExampleCommand):
    """A command whose help ends with the plots that are registered."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        super().format_epilog(ctx, formatter)
        from fliprank.report.plots import PLOTS

        with formatter.section("Plots, and the options that they take"):
            rows = [
                (name, " ".join([f"{each.summary}.", *(WORDS[option] for option in each.options)]))
                for name, each in PLOTS.items()
            ]
            formatter.write_dl(rows)


@app.command(epilog=PLOT_EXAMPLES, cls=PlotCommand, short_help="Pictures of a result, from its folder.")
def plot(
    kind: Annotated[str, typer.Argument(help="What to draw: see the list below.")],
    folder: Annotated[Path, typer.Argument(help="The folder that tune, train, fuse or curve wrote.")],
    out: Annotated[
        list[Path] | None,
        typer.Option("-o", "--out", help="Picture: .svg, .png, .json (Vega-Lite); repeatable. By default KIND.svg."),
    ] = None,
    rows: Annotated[
        Path | None, typer.Option(help="Judged rows to draw on; by default those that the folder names.")
    ] = None,
    parameter: Annotated[
        list[str] | None, typer.Option("-p", "--parameter", help="A parameter that moves; a surface has two.")
    ] = None,
    measure: Annotated[
        str | None, typer.Option("-m", "--measure", help="The measure; by default the folder's own.")
    ] = None,
    query: Annotated[str | None, typer.Option(help="The id of the query; by default the first.")] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Noise of the scores, in standard deviations of the query's; 0.3.")
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="Judgements of the folder's rankings; by default those that it names.")
    ] = None,
    force: Force = False,
) -> None:
    """Draw a result from the folder that a command wrote; no fit is made again."""
    from fliprank import console
    from fliprank.report.plots import find_plot, save
    from fliprank.report.result_folder import ResultFolder

    chosen = find_plot(kind)
    given = {"rows": rows, "parameters": parameter, "measure": measure, "query": query, "sigma": sigma, "qrels": qrels}
    told = {name: value for name, value in given.items() if value is not None}
    for name in told:
        if name not in chosen.options:
            takes = ", ".join(WORDS[each] for each in chosen.options) or "no options but --out"
            raise UsageError(f"{WORDS[name]} does not go with {chosen.name}, which takes {takes}")
    outputs = check_pictures(out or [Path(f"{chosen.name}.svg")], force)
    with console.working("drawing"):
        chart = chosen.read(ResultFolder(folder), **told)
        for path in outputs:
            save(chart, path)
    console.result(plot=chosen.name, title=_title(chart))
    for path in outputs:
        console.written(path)


def _title(chart: Any) -> str:
    """What the picture says above it, for who can't see it."""
    spec = chart.to_dict()
    while "title" not in spec and (parts := spec.get("vconcat") or spec.get("hconcat")):
        spec = parts[0]
    title = spec.get("title", "")
    lines = title.get("text", "") if isinstance(title, dict) else title
    return " ".join(lines) if isinstance(lines, list) else str(lines)
