"""`fliprank curve`: a measure against the number of training queries, and whether more judgements would help."""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fliprank.cli.app import app
from fliprank.cli.interrupts import interruption
from fliprank.cli.options import ListingCommand, Source, method_settings, with_options
from fliprank.cli.outputs import out_folder
from fliprank.defaults import DEFAULT_MEASURE, DEFAULT_OBJECTIVE
from fliprank.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from fliprank.data.candidates import Candidates
    from fliprank.experiment.curve_results import LearningCurve
    from fliprank.experiment.learning_curve import Ranker

__all__ = ["curve"]

CURVE_EXAMPLES = """
Examples:

  fliprank curve rows.txt --model linear --model network --hidden 8 --out curve

  fliprank curve terms.jsonl --test test.jsonl --model bm25f --model stack --method tune --out curve

  fliprank curve --docs docs.jsonl --queries queries.tsv --qrels qrels.txt --model bm25f --method tune --out curve

Each --model is fitted by each --method for each --objective; `--method tune` fits as `fliprank tune` does. Started
again with the same --out, it goes on where it was ended.
"""


@app.command(epilog=CURVE_EXAMPLES, cls=ListingCommand, short_help="A measure against the number of training queries.")
@with_options
def curve(
    source: Source,
    model: Annotated[list[str] | None, typer.Option(help="What to fit: see the list below; repeatable.")] = None,
    hidden: Annotated[int | None, typer.Option(min=0, help="Hidden nodes of a network or stack.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="How: auto, tune, or one listed below; repeatable.")] = None,
    objective: Annotated[list[str] | None, typer.Option(help="The objective to descend; repeatable.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the method.")
    ] = None,
    sample: Annotated[
        str | None, typer.Option(help="Unlabelled training rows: rated, average, or so many per labelled row.")
    ] = None,
    validate: Annotated[bool, typer.Option(help="Choose epochs and settings on validation queries.")] = True,
    restarts: Annotated[int, typer.Option(min=1, help="Random starts of each setting.")] = 1,
    measure: Annotated[str, typer.Option("-m", "--measure", help="The measure.")] = DEFAULT_MEASURE,
    sizes: Annotated[
        str | None, typer.Option(help="Numbers of training queries, as 16,64,256; by default 16 to 2048.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Draws of training queries.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for curve.csv, curve.json, curve.svg.")] = Path("curve"),
) -> None:
    """Show how a measure rises with the number of training queries, and what more judgements would bring."""
    if source.valid is not None:
        raise UsageError("validation queries are drawn for each size: --valid goes with train")
    from fliprank import console
    from fliprank.experiment.learning_curve import learning_curve
    from fliprank.experiment.task import check_measure
    from fliprank.measures import parse_measure

    folder, chosen, steps = out_folder(out), parse_measure(measure), _sizes(sizes)
    interruption.keep(partial(_kept, folder / "checkpoint"))
    task = source.task(folder)
    check_measure(task, chosen)
    rows = task.train.rows
    options = method_settings(settings) | {"restarts": restarts}
    if sample is not None:
        options |= {"sample": sample}
    names = (model or ["linear" if rows.terms is None else "bm25f"], method or ["auto"], objective or [])
    rankers = _rankers(rows, *names, hidden, validate, options)
    test = None if task.test is None else task.test.rows
    with console.fit_progress("curve") as progress:
        found = learning_curve(
            rankers,
            rows,
            steps,
            test,
            repeats=repeats,
            measure=chosen,
            seed=seed,
            checkpoint=folder / "checkpoint",
            progress=progress,
        )
    console.show(*curve_tables(found), *task.notes)
    _write(found, folder)


def _kept(checkpoint: Path) -> str:
    """What a curve that is interrupted leaves."""
    done = len(list(checkpoint.glob("*.point")))
    return f"{done} fits are kept in {checkpoint}" if done else "nothing was written"


def _sizes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--sizes {text}: expected whole numbers with commas between, as 16,64,256") from None


def _rankers(
    rows: Candidates,
    models: list[str],
    methods: list[str],
    objectives: list[str],
    hidden: int | None,
    validate: bool,
    options: dict[str, Any],
) -> dict[str, Ranker]:
    """Each model by each method for each objective; a name says what tells it from the others."""
    from fliprank.experiment.learning_curve import Ranker
    from fliprank.models.registry import make_model

    found: dict[str, Ranker] = {}
    for name, how, aim in product(models, methods, objectives or [DEFAULT_OBJECTIVE]):
        taken = {"hidden": hidden} if name in ("network", "stack") else {}
        own = dict(options)
        if how == "tune":
            own = {key: value for key, value in own.items() if key not in ("sample", "restarts")}
            own |= {"objective": aim} if objectives else {}
        parts = [name, *([how] if len(methods) > 1 else []), *([aim] if len(objectives) > 1 else [])]
        found[", ".join(parts)] = Ranker(make_model(name, rows, **taken), how, aim, validate, own)
    if hidden is not None and not {"network", "stack"} & set(models):
        raise UsageError(f"--hidden goes with network or stack, not with {', '.join(models)}")
    return found


def curve_tables(curve: LearningCurve) -> Iterator[Table | str]:
    """One table per ranker, in at most 80 columns; who is better at the largest size; the answer in words."""
    from fliprank.console import new_table, plain
    from fliprank.experiment.significance import p_value

    points = curve.points()
    for ranker in curve.values:
        title = f"{ranker}: {curve.measure}, {curve.repeats} repeat{'s' * (curve.repeats > 1)}"
        table = new_table(title, ["queries", "test", "95% interval", "training", "gain", "p"])
        for point in points:
            if point.ranker == ranker:
                interval = f"{point.low:.4f} to {point.high:.4f}"
                step = ("", "") if point.size == curve.sizes[0] else (f"{point.gain:+.4f}", p_value(point.p_smallest))
                table.add_row(f"{point.size:,}", f"{point.test:.4f}", interval, f"{point.training:.4f}", *step)
        yield table
    yield f"Gain and p (paired t-test by query): against {curve.sizes[0]} training queries."
    last = [each for each in curve.differences() if each.size == curve.sizes[-1]]
    for each in last:
        told = f"{plain(each.ranker)} minus {plain(each.other)} at {each.size:,} queries"
        yield f"{told}: {each.difference:+.4f}, p = {p_value(each.p)} ({p_value(each.p_holm)} by Holm over all sizes)."
    for ranker in curve.values:
        said = curve.outlook(ranker).sentence
        yield f"{plain(ranker)}: {said}" if len(curve.values) > 1 else said
    if curve.interrupted:
        yield "Interrupted: only the repeats that were complete are shown."


def _write(curve: LearningCurve, folder: Path) -> None:
    """The points, everything, and the picture if what draws it is installed."""
    from fliprank import console
    from fliprank.cli.outputs import write_outputs
    from fliprank.experiment.fit_folder import write_json
    from fliprank.report.plots import learning_curve

    write_json(folder / "curve.json", curve.content())
    console.result(**curve.content())
    console.written(folder / "curve.json")
    write_outputs([folder / "curve.csv"], None, curve.records())
    try:
        write_outputs([folder / "curve.svg"], lambda: learning_curve(curve), [])
    except MissingExtraError as error:
        console.show(f"no picture: {error}")
