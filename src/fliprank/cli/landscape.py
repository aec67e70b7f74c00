"""`fliprank landscape`: surface, trajectory and flips around a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fliprank.cli.app import app
from fliprank.cli.outputs import check_outputs, write_outputs
from fliprank.errors import UsageError

if TYPE_CHECKING:
    from fliprank.data.candidates import Candidates
    from fliprank.models import Model

__all__ = ["landscape"]

MEASURE = "nDCG(dcg='exp-log2')@10"
MOST_BRACKETED = 100
"""Parameters along which flips are looked for unasked, where scores are not linear."""

landscape = typer.Typer(
    help="What a measure looks like around a model's parameters: surfaces, exact trajectories, flips.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(landscape, name="landscape")

ModelFolder = Annotated[Path, typer.Argument(help="What `fliprank train` or `tune` wrote: its folder, or the model's.")]
Rows = Annotated[Path, typer.Argument(help="Judged rows: LETOR, Parquet or term statistics.")]
Out = Annotated[
    list[Path] | None,
    typer.Option("-o", "--out", help="Picture (.svg, .png, .html) or data (.csv, .json); may be repeated."),
]

SURFACE_EXAMPLES = """
Examples:

  fliprank landscape surface fit train.txt --test test.txt -p w.1 -p w.2 --out surface.svg

  fliprank landscape surface tuned train.jsonl --test dev.jsonl -p k -p b --range k=0:5 --objective ranknet -o s.png
"""


@landscape.command(epilog=SURFACE_EXAMPLES)
def surface(
    model: ModelFolder,
    rows: Rows,
    parameter: Annotated[list[str] | None, typer.Option("-p", "--parameter", help="A parameter; give two.")] = None,
    test: Annotated[Path | None, typer.Option(help="Test rows: the measure on them, too.")] = None,
    measure: Annotated[str, typer.Option("-m", "--measure", help="The measure to show.")] = MEASURE,
    objective: Annotated[str, typer.Option(help="The smooth objective to show beside it, or none.")] = "ranknet",
    span: Annotated[
        list[str] | None, typer.Option("--range", help="name=low:high, where the bounds are not meant.")
    ] = None,
    points: Annotated[int, typer.Option(min=2, max=1001, help="Values of each parameter.")] = 41,
    out: Out = None,
) -> None:
    """Contours over two parameters: objective and measure on the training rows, measure on the test rows."""
    outputs = check_outputs(out)
    from rich.table import Table

    from fliprank import console
    from fliprank.landscape.surface import surface as surface_of

    known, given = _read(model, rows)
    names = _two(known, parameter)
    grids = _grids(known, names, span or [], points)
    wanted = [] if objective.lower() == "none" else [("training rows", given, objective)]
    wanted.append(("training rows", given, measure))
    if test is not None:
        wanted.append(("test rows", _read_rows(test), measure))
    with console.working("evaluating the grid"):
        found = [surface_of(known, part, names, of, *grids) for _, part, of in wanted]
    titles = [f"{title}, {each.queries} queries" for (title, _, _), each in zip(wanted, found, strict=True)]
    here = (known.params[names[0]], known.params[names[1]])
    table = Table()
    for column in ("", "value of", "best on the grid", f"at {names[0]}", f"and {names[1]}"):
        table.add_column(
            console.plain(column), justify="left" if column in ("", "value of") else "right", overflow="fold"
        )
    for title, each in zip(titles, found, strict=True):
        x, y, best = each.best
        table.add_row(title, console.plain(each.of), f"{best:.4f}", f"{x:.4g}", f"{y:.4g}")
    console.show(table, f"The model stands at {names[0]} = {here[0]:.4g}, {names[1]} = {here[1]:.4g}.")

    def chart() -> Any:
        from fliprank.report.plots import surface_chart

        return surface_chart(found, titles, here)

    records = [
        {"set": title, "of": each.of, names[0]: float(x), names[1]: float(y), "value": float(each.values[j, i])}
        for (title, _, _), each in zip(wanted, found, strict=True)
        for j, y in enumerate(each.y)
        for i, x in enumerate(each.x)
    ]
    write_outputs(outputs, chart, records)


TRAJECTORY_EXAMPLES = """
Examples:

  fliprank landscape trajectory fit train.txt -p w.25 -m nDCG@10 -m AP --out path.svg --out path.csv

  fliprank landscape trajectory tuned dev.jsonl -p title.b --from 0 --to 1 --resolution 0.0001 -o path.html

Steps are exact where scores are linear in the parameter (weights of features); elsewhere they are bracketed.
"""


@landscape.command(epilog=TRAJECTORY_EXAMPLES)
def trajectory(
    model: ModelFolder,
    rows: Rows,
    parameter: Annotated[str | None, typer.Option("-p", "--parameter", help="The parameter that moves.")] = None,
    measure: Annotated[list[str] | None, typer.Option("-m", "--measure", help="A measure; may be repeated.")] = None,
    low: Annotated[float | None, typer.Option("--from", help="The least value of the parameter.")] = None,
    high: Annotated[float | None, typer.Option("--to", help="The greatest value of the parameter.")] = None,
    resolution: Annotated[float, typer.Option(help="Where steps are not exact: the part of the line to find.")] = 1e-3,
    overlay: Annotated[bool, typer.Option("--overlay", help="All measures in one frame.")] = False,
    out: Out = None,
) -> None:
    """The steps of measures along one parameter, with their local optima."""
    outputs = check_outputs(out)
    from rich.table import Table

    from fliprank import console
    from fliprank.landscape import trajectory as trajectory_of

    known, given = _read(model, rows)
    name = parameter if parameter is not None else _only(known, "along which parameter? Give one with -p")
    now = _value(known, name)
    ends = [None if end is None else end - now for end in (low, high)]
    with console.working("following the line"):
        paths = [
            trajectory_of(known, given, name, each, *ends, resolution=resolution) for each in measure or [MEASURE, "AP"]
        ]
    table = Table(title=f"{console.plain(name)}, now {now:.4g}; {given.queries} queries", title_justify="left")
    for column in ("measure", "now", "best", f"at {name}", "from", "to", "local optima", "steps"):
        table.add_column(console.plain(column), justify="left" if column == "measure" else "right", overflow="fold")
    for path in paths:
        best = path.maximum
        where = (path.parameter(x) for x in (path.inside(best), best.low, best.high))
        counts = (f"{len(path.local_maxima()):,}", f"{len(path.breaks):,}")
        values = (f"{path.value:.4f}", f"{best.value:.4f}")
        table.add_row(console.plain(str(path.measure)), *values, *(f"{x:.6g}" for x in where), *counts)
    closely = paths[0].resolution
    how = "exact" if closely == 0 else f"known to {closely:.2g}; a flip undone within a cell of the grid is not seen"
    console.show(table, f"Steps are {how}.")

    def chart() -> Any:
        from fliprank.report.plots import shown_range, trajectory_chart

        return trajectory_chart(paths, name, *shown_range(paths), start=now, overlay=overlay)

    records = [
        {"measure": str(path.measure), "from": one, "to": two, "value": value}
        for path in paths
        for one, two, value in zip(
            path.parameter(path.edges[:-1]).tolist(),
            path.parameter(path.edges[1:]).tolist(),
            path.values.tolist(),
            strict=True,
        )
    ]
    write_outputs(outputs, chart, records)


FLIPS_EXAMPLES = """
Examples:

  fliprank landscape flips fit train.txt -m nDCG@10

  fliprank landscape flips tuned dev.jsonl -p title.w -p body.b --nearest 50 --top 40 --out flips.csv

A flip: two documents of a query swap places. `total` is what the mean gains by moving the parameter past it.
"""


@landscape.command(epilog=FLIPS_EXAMPLES)
def flips(
    model: ModelFolder,
    rows: Rows,
    parameter: Annotated[
        list[str] | None, typer.Option("-p", "--parameter", help="A parameter; may be repeated. All by default.")
    ] = None,
    measure: Annotated[str, typer.Option("-m", "--measure", help="What should gain.")] = MEASURE,
    nearest: Annotated[int, typer.Option(min=1, help="Flips to look at on either side of each parameter.")] = 20,
    top: Annotated[int, typer.Option(min=1, help="Flips to show.")] = 20,
    resolution: Annotated[float, typer.Option(help="Where flips are not exact: the part of the line to find.")] = 1e-3,
    out: Out = None,
) -> None:
    """The flips around the model's parameters that would gain most, by query and document."""
    outputs = check_outputs(out, data_only=True)
    from rich.table import Table

    from fliprank import console
    from fliprank.landscape import flip_gains

    known, given = _read(model, rows)
    if parameter is None:
        _check_effort(known)
    with console.working("looking for flips"):
        found = flip_gains(known, given, parameter, measure, nearest=nearest, resolution=resolution)
    table = Table(title=f"Flips that would gain most in {console.plain(measure)}", title_justify="left")
    for column in ("parameter", "now", "move past", "total", "query", "goes up", "goes down", "labels", "query's gain"):
        left = column in ("parameter", "query", "goes up", "goes down", "labels")
        table.add_column(console.plain(column), justify="left" if left else "right", overflow="fold")
    good = [row for row in found if row.gain > 0]
    for row in good[:top]:
        labels = " over ".join("-" if label != label else f"{label:g}" for label in (row.up_label, row.down_label))
        numbers = (f"{row.start:.4g}", f"{row.value:.6g}", f"{row.total:+.5f}")
        documents = (console.plain(row.qid), console.plain(row.up), console.plain(row.down))
        table.add_row(console.plain(row.parameter), *numbers, *documents, labels, f"{row.gain:+.4f}")
    console.show(table)
    told = f"{len(good):,} of the {len(found):,} nearest flips are good."
    console.show(f"{told} total: what the mean gains by all flips, good and bad, on the way past this one.")
    write_outputs(outputs, None, [row._asdict() for row in found])


def _read(model: Path, rows: Path) -> tuple[Model, Candidates]:
    from fliprank.models import load_model

    return load_model(model / "model" if (model / "model").is_dir() else model), _read_rows(rows)


def _read_rows(path: Path) -> Candidates:
    from fliprank.data.readers import read_candidates

    return read_candidates(path)


def _value(model: Model, name: str) -> float:
    """The present value of a parameter that can move."""
    from fliprank.landscape.direction import slot_of

    return float(model.params.free_values[slot_of(model.params, name)])


def _only(model: Model, question: str) -> str:
    free = model.params.free_names
    if len(free) != 1:
        raise UsageError(f"{question}: {', '.join(free[:20])}{', ...' if len(free) > 20 else ''}")
    return free[0]


def _check_effort(model: Model) -> None:
    """Each parameter that is not linear takes about a second; a net has thousands."""
    import numpy as np

    free = model.params.free_names
    if len(free) > MOST_BRACKETED and not model.linear_along(np.eye(len(free))[0]):
        raise UsageError(f"this {model.kind} model has {len(free)} parameters: name those to look along with -p")


def _two(model: Model, given: list[str] | None) -> tuple[str, str]:
    free = model.params.free_names
    names = given if given else list(free) if len(free) == 2 else []
    if len(names) != 2:
        listed = f"{', '.join(free[:20])}{', ...' if len(free) > 20 else ''}"
        raise UsageError(f"a surface is over two parameters: give two with -p, of {listed}")
    for name in names:
        _value(model, name)
    return names[0], names[1]


def _grids(model: Model, names: tuple[str, str], spans: list[str], points: int) -> list[Any]:
    """The values of both parameters: between the ends given, else between the bounds."""
    import numpy as np

    from fliprank.landscape.direction import direction_of, finite_reach

    ends = {}
    for name in names:
        low, high = finite_reach(model.params, model.params.free_values, direction_of(model.params, name))
        ends[name] = (_value(model, name) + low, _value(model, name) + high)
    for text in spans:
        name, _, span = text.partition("=")
        try:
            low, high = (float(part) for part in span.split(":"))
        except ValueError:
            raise UsageError(f"--range {text}: expected name=low:high, such as b=0:1") from None
        if name not in names or not low < high:
            raise UsageError(f"--range {text}: expected one of {names[0]} and {names[1]}, and a low below the high")
        ends[name] = (low, high)
    return [np.linspace(*ends[name], points) for name in names]
