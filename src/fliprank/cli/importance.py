"""`fliprank importance`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fliprank.cli.app import app
from fliprank.cli.documents import read_rows
from fliprank.cli.help_pages import ExampleCommand
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import UsageError

if TYPE_CHECKING:
    from fliprank.experiment.importance import Importance

__all__ = ["importance"]


class How(StrEnum):
    """How a feature is taken away."""

    mean = "mean"
    permute = "permute"


class Of(StrEnum):
    """What is taken away."""

    feature = "feature"
    field = "field"
    parameter = "parameter"


IMPORTANCE_EXAMPLES = """
Examples:

  fliprank importance fit test.txt -m nDCG@10

  fliprank importance fit test.txt --feature "1*" --csv > importance.csv

  fliprank importance tuned judgements.csv --of field --of parameter

Give queries that the model was not trained on: on its own it seems to need what it has learnt by heart.
"""


@app.command(epilog=IMPORTANCE_EXAMPLES, cls=ExampleCommand, short_help="What a model loses without each feature.")
def importance(
    model: Annotated[Path, typer.Argument(help="What `fliprank train` or `tune` wrote: its folder, or the model's.")],
    data: Annotated[
        Path,
        typer.Argument(
            help="Judged rows: LETOR, Parquet, term statistics; or judgements as CSV, if MODEL has an index."
        ),
    ],
    measure: Annotated[str, typer.Option("-m", "--measure", help="The measure that counts.")] = DEFAULT_MEASURE,
    of: Annotated[
        list[Of] | None, typer.Option(help="What to take away; may be repeated. Default: what the model has.")
    ] = None,
    feature: Annotated[
        list[str] | None, typer.Option(help="Only these features; * stands for any letters; may be repeated.")
    ] = None,
    how: Annotated[
        How, typer.Option(help="Each row gets the mean of its query, or values change places within the query.")
    ] = How.mean,
    top: Annotated[int, typer.Option(min=1, help="How many rows the table shows.")] = 30,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Confidence of the intervals.")] = 0.95,
    permutations: Annotated[
        int, typer.Option(min=99, help="How many sign flips the randomisation tests draw.")
    ] = 20_000,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV for a program.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """Say what a model loses without each of its features, fields or parameters."""
    from fliprank import console
    from fliprank.experiment import importance as experiment
    from fliprank.models import load_model

    known = load_model(model / "model" if (model / "model").is_dir() else model)
    rows = read_rows(data, model)
    kinds = None if of is None else [each.value for each in of]
    with console.working("taking features away"):
        found = experiment.importance(
            known, rows, measure, of=kinds, features=feature, how=how.value, confidence=confidence,
            permutations=permutations, seed=seed,
        )  # fmt: skip
    console.result(**found.content())
    if console.output.json:
        if as_csv:
            raise UsageError("choose one of --json and --csv")
    elif as_csv:
        _print_csv(found)
    else:
        _show(found, top, confidence)


def _print_csv(found: Importance) -> None:
    import csv

    from fliprank.data.csv_cells import safe_cell

    records = found.records()
    writer = csv.DictWriter(sys.stdout, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: safe_cell(value) for name, value in record.items()} for record in records)


def _show(found: Importance, top: int, confidence: float) -> None:
    from fliprank import console
    from fliprank.experiment.significance import p_value

    title = f"What {found.measure} of {found.value:.4f} on {found.queries} queries loses without"
    columns = ["part", "kind", "drop", f"{confidence:.0%} interval", "p", "Holm", "worse/better", "weight"]
    table = console.new_table(title, columns)
    for row in found.rows[:top]:
        interval, counts = f"{row.low:+.4f} to {row.high:+.4f}", f"{row.worse}/{row.better}"
        figures = (f"{row.drop:+.4f}", interval, p_value(row.p), p_value(row.p_holm), counts, f"{row.weight:+.3f}")
        table.add_row(console.plain(row.name), row.kind, *figures)
    console.answer(table)
    if len(found.rows) > top:
        console.answer(f"{len(found.rows) - top} more, which are worth less: --top, --csv or --json shows them.")
    console.answer("p: randomisation test; Holm corrects it for all rows. worse/better: queries without it.")
    console.answer("weight: its part in the spread of scores within queries; below 0, larger values mean lower scores.")
