"""`fliprank rank`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fliprank.cli.app import app

__all__ = ["rank"]


@app.command(epilog="Example:\n\n  fliprank rank fit/model test.txt --out run.trec")
def rank(
    model: Annotated[Path, typer.Argument(help="What `fliprank train` wrote: its folder, or the model's in it.")],
    rows: Annotated[Path, typer.Argument(help="Rows to rank: LETOR, Parquet or term statistics.")],
    out: Annotated[Path, typer.Option(help="The TREC run to write; .gz is gzipped.")] = Path("run.trec"),
) -> None:
    """Rank rows with a trained model, as a TREC run."""
    from fliprank.data.anyfile import read_candidates
    from fliprank.data.ids import Ids
    from fliprank.data.trec import Run, write_run
    from fliprank.models import load_model

    trained = load_model(model / "model" if (model / "model").is_dir() else model)
    given = read_candidates(rows)
    docids = given.docids if given.docids is not None else Ids.of([f"row{i + 1}" for i in range(len(given))])
    write_run(out, Run(given.offsets, given.qids, docids, trained.score(given), "fliprank"))
    typer.echo(f"written: {out} ({given.queries} queries, {len(given)} rows)")
