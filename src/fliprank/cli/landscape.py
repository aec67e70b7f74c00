"""`fliprank landscape`: surfaces, trajectories and flips around a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fliprank.cli.app import app
from fliprank.cli.documents import read_rows
from fliprank.cli.outputs import check_outputs, write_outputs
from fliprank.cli.overwriting import Force
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import UsageError

if TYPE_CHECKING:
    from fliprank.data.candidates import Candidates
    from fliprank.landscape import Leg, ModelTrajectory
    from fliprank.models import Model

__all__ = ["landscape"]

MOST_BRACKETED = 100
"""Parameters along which flips are looked for unasked, where scores are not linear."""

landscape = typer.Typer(
    help="What a measure looks like around a model's parameters: surfaces, exact trajectories, flips.",
    short_help="Surfaces, exact trajectories and flips around a model.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(landscape, name="landscape")

ModelFolder = Annotated[Path, typer.Argument(help="What `fliprank train` or `tune` wrote: its folder, or the model's.")]
Rows = Annotated[
    Path,
    typer.Argument(help="Judged rows: LETOR, Parquet, term statistics; or judgements as CSV, if MODEL has an index."),
]
Resolution = Annotated[
    float | None,
    typer.Option(help="Where flips are not exact: how finely to look for them, as a part of the line; 1/128 or so."),
]
Out = Annotated[
    list[Path] | None,
    typer.Option("-o", "--out", help="Picture (.svg, .png, .html) or data (.csv, .json); may be repeated."),
]

SURFACE_EXAMPLES = """
Examples:

  fliprank landscape surface fit train.txt --test test.txt -p w.1 -p w.2 --out surface.svg

  fliprank landscape surface tuned train.jsonl --test dev.jsonl -p k -p b --range k=0:5 --objective ranknet -o s.png
"""


@landscape.command(epilog=SURFACE_EXAMPLES, short_help="Contours of objective and measure over two parameters.")
def surface(
    model: ModelFolder,
    rows: Rows,
    parameter: Annotated[list[str] | None, typer.Option("-p", "--parameter", help="A parameter; give two.")] = None,
    test: Annotated[Path | None, typer.Option(help="Test rows: the measure on them, too.")] = None,
    measure: Annotated[str, typer.Option("-m", "--measure", help="The measure to show.")] = DEFAULT_MEASURE,
    objective: Annotated[str, typer.Option(help="The smooth objective to show beside it, or none.")] = "ranknet",
    span: Annotated[
        list[str] | None, typer.Option("--range", help="name=low:high, instead of a parameter's bounds.")
    ] = None,
    points: Annotated[int, typer.Option(min=2, max=1001, help="Values of each parameter.")] = 41,
    trail: Annotated[
        Path | None, typer.Option(help="The folder of a fit, or its trail.csv: its path is drawn over the contours.")
    ] = None,
    out: Out = None,
    force: Force = False,
) -> None:
    """Contours over two parameters: objective and measure on the training rows, measure on the test rows."""
    outputs = check_outputs(out, force)
    from fliprank import console
    from fliprank.landscape.surface import surface as surface_of

    known, given = _read(model, rows)
    names = _two(known, parameter)
    grids = _grids(known, names, span or [], points)
    wanted = [] if objective.lower() == "none" else [("training rows", given, objective)]
    wanted.append(("training rows", given, measure))
    if test is not None:
        wanted.append(("test rows", read_rows(test, model), measure))
    with console.working("evaluating the grid"):
        found = [surface_of(known, part, names, of, grids) for _, part, of in wanted]
    titles = [f"{title}, {each.queries} queries" for (title, _, _), each in zip(wanted, found, strict=True)]
    here = (known.params[names[0]], known.params[names[1]])
    table = console.new_table("", ["", "value of", "best on the grid", f"at {names[0]}", f"and {names[1]}"])
    for title, each in zip(titles, found, strict=True):
        x, y, best = each.best
        table.add_row(title, console.plain(each.of), f"{best:.4f}", f"{x:.4g}", f"{y:.4g}")
    console.result(
        model=dict(zip(names, here, strict=True)),
        surfaces=[
            {"set": title, "of": each.of, "best": best, names[0]: x, names[1]: y}
            for title, each in zip(titles, found, strict=True)
            for x, y, best in [map(float, each.best)]
        ],
    )
    console.answer(table)
    console.show(f"The model stands at {names[0]} = {here[0]:.4g}, {names[1]} = {here[1]:.4g}.")

    def chart() -> Any:
        from fliprank.report import plots

        path = None if trail is None else _path(known, names, trail)
        return plots.surface(found, titles=titles, here=here, path=path)

    records = [
        {"set": title, "of": each.of, names[0]: float(x), names[1]: float(y), "value": float(each.values[i, j])}
        for (title, _, _), each in zip(wanted, found, strict=True)
        for j, y in enumerate(each.axes[1])
        for i, x in enumerate(each.axes[0])
    ]
    write_outputs(outputs, chart, records)


TRAJECTORY_EXAMPLES = """
Examples:

  fliprank landscape trajectory fit train.txt -p w.25 -m nDCG@10 -m AP --out path.svg --out path.csv

  fliprank landscape trajectory tuned dev.jsonl -p title.b --from 0 --to 1 --out path.html

  fliprank landscape trajectory tuned dev.jsonl --direction title.w=1,body.w=-0.5

  fliprank landscape trajectory before dev.jsonl --to-model after --from -0.5 --to 1.5

  fliprank landscape trajectory fit train.txt --trail fit --out flips.csv

Steps are exact where scores are linear along the line (weights of features). Elsewhere a flip that is soon undone may
be missed, and numbers of steps and of local optima are lower bounds.
"""


@landscape.command(epilog=TRAJECTORY_EXAMPLES, short_help="The steps of measures along a line of parameters.")
def trajectory(
    model: ModelFolder,
    rows: Rows,
    parameter: Annotated[str | None, typer.Option("-p", "--parameter", help="The parameter that moves.")] = None,
    direction: Annotated[
        str | None, typer.Option(help="Several parameters that move together: name=rate,name=rate.")
    ] = None,
    to_model: Annotated[
        Path | None, typer.Option(help="Another model of the same structure: the line from 0, MODEL, to 1, this one.")
    ] = None,
    trail: Annotated[
        Path | None, typer.Option(help="The folder of a fit, or its trail.csv: the flips that each epoch made.")
    ] = None,
    measure: Annotated[list[str] | None, typer.Option("-m", "--measure", help="A measure; may be repeated.")] = None,
    low: Annotated[
        float | None, typer.Option("--from", help="Where the line begins: the parameter's value, or x.")
    ] = None,
    high: Annotated[float | None, typer.Option("--to", help="Where the line ends.")] = None,
    resolution: Resolution = None,
    top: Annotated[int, typer.Option(min=0, help="With --trail: flips to show.")] = 20,
    overlay: Annotated[bool, typer.Option("--overlay", help="Draw all measures in one frame.")] = False,
    out: Out = None,
    force: Force = False,
) -> None:
    """The steps of measures along one parameter, any direction, between two models, or along the trail of a fit."""
    outputs = check_outputs(out, force, data_only=trail is not None)
    from fliprank.landscape import between
    from fliprank.landscape import trajectory as trajectory_of

    if sum(given is not None for given in (parameter, direction, to_model, trail)) > 1:
        raise UsageError("give one of -p, --direction, --to-model and --trail")
    known, given = _read(model, rows)
    closely = {} if resolution is None else {"resolution": resolution}
    if trail is not None:
        if low is not None or high is not None or len(measure or []) > 1:
            raise UsageError("--trail goes from epoch to epoch with one measure: no --from, --to or second -m")
        return _show_trail(known, given, trail, (measure or [DEFAULT_MEASURE])[0], closely, top, outputs)
    measures = measure or [DEFAULT_MEASURE, "AP"]
    start = 0.0
    if to_model is not None:
        ends = [end if at is None else at for at, end in ((low, 0.0), (high, 1.0))]
        axis, what = "x", f"from {model} (x = 0) to {to_model} (x = 1)"
        other = _read_model(to_model)
        with _following():
            paths = [between(known, other, given, each, *ends, **closely) for each in measures]
    else:
        along: str | dict[str, float]
        if direction is not None:
            along, axis, what = _parsed_direction(direction), "x", f"along {direction}"
        else:
            along = axis = parameter or _only(known, "along which parameter? Give one with -p, or --direction")
            start = _value(known, axis)
            what = f"{axis}, now {start:.4g}"
        between_ends = [None if end is None else end - start for end in (low, high)]
        with _following():
            paths = [trajectory_of(known, given, along, each, *between_ends, **closely) for each in measures]
    _show_paths(paths, axis, start, f"{what}; {given.queries} queries")

    def chart() -> Any:
        from fliprank.report import plots

        return plots.trajectory(paths, axis=axis, start=start, overlay=overlay)

    write_outputs(outputs, chart, [record for path in paths for record in _stretches(path, start)])


def _following() -> Any:
    from fliprank import console

    return console.working("following the line")


def _parsed_direction(text: str) -> dict[str, float]:
    """title.w=1,body.w=-0.5"""
    out: dict[str, float] = {}
    for part in text.split(","):
        name, _, rate = part.strip().rpartition("=")
        try:
            out[name] = float(rate)
        except ValueError:
            name = ""
        if not name:
            raise UsageError(f"--direction {text}: expected name=rate,name=rate, such as title.w=1,body.w=-0.5")
    return out


def _show_paths(paths: list[ModelTrajectory], axis: str, start: float, title: str) -> None:
    from fliprank import console

    columns = ["measure", "now", "best", f"at {axis}", "from", "to", "local optima", "steps"]
    table = console.new_table(title, columns, optional=["steps"])
    for path in paths:
        best = path.maximum
        where = (start + x for x in (path.inside(best), best.low, best.high))
        now = f"{path.value:.4f}" if path.low <= 0 <= path.high else "-"
        values = (console.plain(str(path.measure)), now, f"{best.value:.4f}")
        table.add_row(*values, *(f"{x:.6g}" for x in where), *path.counts())
    note = "Steps are exact."
    if paths[0].at_least:
        note = f"Scores are not linear along this line: it was looked at in cells of {paths[0].resolution:.2g}. A flip"
        note += " that is undone within a cell is not seen, so the numbers of optima and of steps are lower bounds."
    if any(path.cut_off() for path in paths):
        note += " Cut off: best up to where the line is cut off; what follows may be better, so it is not counted."
    console.answer(table)
    console.show(note)
    console.result(along=title, exact=not paths[0].at_least, note=note, paths=[_summary(path, start) for path in paths])


def _summary(path: ModelTrajectory, start: float) -> dict[str, Any]:
    """What a program is told of a trajectory; the stretches are in --out."""
    best, now = path.maximum, path.value if path.low <= 0 <= path.high else None
    at, low, high = (start + x for x in (path.inside(best), best.low, best.high))
    optima, steps = len(path.local_maxima()), len(path.values) - 1
    where = {"at": at, "from": low, "to": high, "local_optima": optima, "steps": steps}
    return {"measure": str(path.measure), "now": now, "best": best.value, **where}


def _stretches(path: ModelTrajectory, start: float) -> list[dict[str, Any]]:
    """One record per stretch of a trajectory. `at_least`: there may be more of them."""
    optima = dict.fromkeys(path.local_maxima(), "local") | dict.fromkeys(path.cut_off(), "cut off")
    plateaus = (path.plateau(i) for i in range(len(path.values)))
    return [
        {
            "measure": str(path.measure),
            "from": start + each.low,
            "to": start + each.high,
            "value": each.value,
            "optimum": optima.get(each, ""),
            "at_least": path.at_least,
        }
        for each in plateaus
    ]


def _show_trail(
    model: Model, rows: Candidates, folder: Path, measure: str, closely: dict[str, float], top: int, outputs: list[Path]
) -> None:
    """Each epoch with its flips, and the flips that changed the measure most."""
    from fliprank import console
    from fliprank.landscape import along_trail, read_trail

    trail = read_trail(folder, model.params)
    with _following():
        legs = along_trail(model, trail, rows, measure, **closely)
    title = f"{measure} along the trail, {len(legs)} steps; {rows.queries} queries"
    columns = ["epoch", "before", "after", "change", "good flips", "bad flips", "gained", "lost", "by ties"]
    table = console.new_table(title, columns, optional=["before", "by ties"])
    for leg in legs:
        least = "at least " if leg.path is not None and leg.path.at_least else ""
        gains: list[float] = leg.path.flips.mean_gain.tolist() if leg.path is not None else []
        values = (f"{leg.before:.4f}", f"{leg.after:.4f}", f"{leg.after - leg.before:+.4f}")
        flips = (f"{least}{leg.good:,}", f"{least}{leg.bad:,}")
        gained = (f"{sum(gain for gain in gains if gain * side > 0):+.4f}" for side in (1, -1))
        table.add_row(str(leg.number), *values, *flips, *gained, f"{leg.tied:+.4f}" if abs(leg.tied) > 1e-9 else "")
    console.answer(table, *_largest_flips(legs, top))
    records = [record for leg in legs for record in _flip_records(leg)]
    console.result(measure=measure, queries=rows.queries, flips=records if console.output.json else None)
    write_outputs(outputs, None, records)


def _largest_flips(legs: list[Leg], top: int) -> list[Any]:
    """The flips that changed the mean most, for better or worse."""
    from fliprank import console

    ends = [(leg, flip) for leg in legs for flip in (*leg.flips[:top], *leg.flips[max(top, len(leg.flips) - top) :])]
    ends.sort(key=lambda each: -abs(each[1].mean_gain))
    if not top or not ends:
        return []
    columns = ["epoch", "query", "goes up", "goes down", "labels", "query's gain", "mean's gain"]
    table = console.new_table("Flips that changed the mean most", columns, optional=["query's gain"])
    for leg, flip in ends[:top]:
        documents = (console.plain(flip.qid), console.plain(flip.up), console.plain(flip.down))
        labels = _labels(flip.up_label, flip.down_label)
        table.add_row(str(leg.number), *documents, labels, f"{flip.gain:+.4f}", f"{flip.mean_gain:+.5f}")
    return [table]


def _flip_records(leg: Leg) -> list[dict[str, Any]]:
    """One record per flip of an epoch's step, or a single one without a flip if there was none."""
    epoch = {"epoch": leg.number, "before": leg.before, "after": leg.after}
    names = ("x", "qid", "up", "down", "up_label", "down_label", "kind", "gain", "mean_gain", "together")
    least = {"at_least": leg.path is not None and leg.path.at_least}
    flips: list[dict[str, Any]] = [{name: getattr(flip, name) for name in names} for flip in leg.flips]
    return [epoch | flip | least for flip in flips or [dict.fromkeys(names)]]


def _labels(up: float, down: float) -> str:
    """2 over 0; - is unjudged."""
    return " over ".join("-" if label != label else f"{label:g}" for label in (up, down))


FLIPS_EXAMPLES = """
Examples:

  fliprank landscape flips fit train.txt -m nDCG@10

  fliprank landscape flips tuned dev.jsonl -p title.w -p body.b --nearest 50 --top 40 --out flips.csv

A flip: two documents of a query swap places. `total` is what the mean gains by moving the parameter past it.
"""


@landscape.command(epilog=FLIPS_EXAMPLES, short_help="The flips near the parameters that would gain most.")
def flips(
    model: ModelFolder,
    rows: Rows,
    parameter: Annotated[
        list[str] | None, typer.Option("-p", "--parameter", help="A parameter; may be repeated. All by default.")
    ] = None,
    measure: Annotated[str, typer.Option("-m", "--measure", help="What should gain.")] = DEFAULT_MEASURE,
    nearest: Annotated[int, typer.Option(min=1, help="Flips to look at on either side of each parameter.")] = 20,
    top: Annotated[int, typer.Option(min=1, help="Flips to show.")] = 20,
    resolution: Resolution = None,
    out: Out = None,
    force: Force = False,
) -> None:
    """The flips around the model's parameters that would gain most, by query and document."""
    outputs = check_outputs(out, force, data_only=True)
    from fliprank import console
    from fliprank.landscape import flip_gains

    known, given = _read(model, rows)
    if parameter is None:
        _check_effort(known)
    with console.working("looking for flips"):
        closely = {} if resolution is None else {"resolution": resolution}
        found = flip_gains(known, given, parameter, measure, nearest=nearest, **closely)
    columns = ["parameter", "now", "move past", "total", "query", "goes up", "goes down", "labels", "query's gain"]
    table = console.new_table(
        f"Flips that would gain most in {measure}", columns, optional=["now", "query's gain", "labels"]
    )
    good = [row for row in found if row.gain > 0]
    for row in good[:top]:
        numbers = (f"{row.start:.4g}", f"{row.value:.6g}", f"{row.total:+.5f}")
        documents = (console.plain(row.qid), console.plain(row.up), console.plain(row.down))
        table.add_row(
            console.plain(row.parameter),
            *numbers,
            *documents,
            _labels(row.up_label, row.down_label),
            f"{row.gain:+.4f}",
        )
    console.answer(table)
    told = f"{len(good):,} of the {len(found):,} nearest flips are good."
    console.show(f"{told} total: what the mean gains by all flips, good and bad, on the way past this one.")
    console.result(measure=measure, good=len(good), flips=[row._asdict() for row in found])
    write_outputs(outputs, None, [row._asdict() for row in found])


def _read(model: Path, rows: Path) -> tuple[Model, Candidates]:
    return _read_model(model), read_rows(rows, model)


def _read_model(path: Path) -> Model:
    """The model of a folder, or of its folder `model`."""
    from fliprank.models import load_model

    return load_model(path / "model" if (path / "model").is_dir() else path)


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


def _path(model: Model, names: tuple[str, str], trail: Path) -> Any:
    """The two parameters of each epoch of a fit."""
    from fliprank.landscape import read_trail
    from fliprank.landscape.direction import slot_of

    return read_trail(trail, model.params).values[:, [slot_of(model.params, name) for name in names]]


def _grids(model: Model, names: tuple[str, str], spans: list[str], points: int) -> dict[str, Any]:
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
    return {name: np.linspace(*ends[name], points) for name in names}
