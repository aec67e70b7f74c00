"""`fliprank rank`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fliprank.cli.app import app
from fliprank.cli.documents import NFeatures, index_in
from fliprank.cli.overwriting import Force, check_output
from fliprank.errors import UsageError

if TYPE_CHECKING:
    from fliprank.data.trec import Run
    from fliprank.models import Model

__all__ = ["rank"]

RANK_EXAMPLES = """
Examples:

  fliprank rank fit/model test.txt --out run.trec

  fliprank rank tuned --index tuned --queries queries.tsv --out run.trec
"""


@app.command(epilog=RANK_EXAMPLES, short_help="Rank rows or documents with a trained model.")
def rank(
    model: Annotated[Path, typer.Argument(help="What `fliprank train` or `tune` wrote: its folder, or the model's.")],
    rows: Annotated[Path | None, typer.Argument(help="Rows to rank: LETOR, Parquet or term statistics.")] = None,
    index: Annotated[
        Path | None, typer.Option(help="Instead of rows: the index that `tune` wrote, or its folder, ...")
    ] = None,
    queries: Annotated[Path | None, typer.Option(help="... and queries to search it for.")] = None,
    depth: Annotated[int, typer.Option(min=1, help="With --index: documents per query.")] = 1000,
    n_features: NFeatures = None,
    out: Annotated[Path, typer.Option(help="The TREC run to write; .gz is gzipped.")] = Path("run.trec"),
    force: Force = False,
) -> None:
    """Rank rows, or the documents of an index, with a trained model, as a TREC run."""
    from fliprank import console
    from fliprank.data.trec import write_run
    from fliprank.models import load_model

    if (rows is None) == (index is None) or (index is None) != (queries is None):
        raise UsageError("give rows, or --index and --queries")
    check_output(out, force)
    trained = load_model(model / "model" if (model / "model").is_dir() else model)
    run = (
        _of_rows(trained, rows, n_features)
        if rows is not None
        else _of_index(trained, index or Path(), queries or Path(), depth)
    )
    write_run(out, run)
    console.result(queries=len(run.qids), rows=len(run.docids))
    console.written(out, f" ({len(run.qids):,} queries, {len(run.docids):,} rows)")


def _of_rows(model: Model, path: Path, n_features: int | None) -> Run:
    from fliprank.data.readers import read_candidates
    from fliprank.data.trec import Run

    given = read_candidates(path, n_features)
    return Run(given.offsets, given.qids, given.document_ids(), model.score(given), "fliprank")


def _of_index(model: Model, index: Path, queries: Path, depth: int) -> Run:
    from dataclasses import replace

    from fliprank import console

    with console.counting("searching") as progress:
        found = index_in(index).search(queries, model, depth=depth, progress=progress)
    return replace(found, name="fliprank")
