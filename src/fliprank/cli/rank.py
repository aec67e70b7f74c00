"""`fliprank rank`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fliprank.cli.app import app
from fliprank.cli.documents import NFeatures, index_in
from fliprank.cli.options import named_files
from fliprank.cli.overwriting import Force, check_output
from fliprank.errors import UsageError

if TYPE_CHECKING:
    from fliprank.data.trec import Run
    from fliprank.models import Fusion, Model

__all__ = ["rank"]

RANK_EXAMPLES = """
Examples:

  fliprank rank fit/model test.txt --out run.trec

  fliprank rank tuned --index tuned --queries queries.tsv --out run.trec

  fliprank rank hybrid --index hybrid --queries queries.tsv --run dense.run --out run.trec

  fliprank rank fused --run bm25.run --run dense.run --out fused.run
"""


@app.command(epilog=RANK_EXAMPLES, short_help="Rank rows or documents with a trained model.")
def rank(
    model: Annotated[Path, typer.Argument(help="What `fliprank train` or `tune` wrote: its folder, or the model's.")],
    rows: Annotated[Path | None, typer.Argument(help="Rows to rank: LETOR, Parquet or term statistics.")] = None,
    index: Annotated[
        Path | None, typer.Option(help="Instead of rows: the index that `tune` wrote, or its folder, ...")
    ] = None,
    queries: Annotated[Path | None, typer.Option(help="... and queries to search it for.")] = None,
    run: Annotated[
        list[str] | None, typer.Option(help="Of a fusion or hybrid: each list that it fuses, FILE or NAME=FILE.")
    ] = None,
    ascending: Annotated[list[str] | None, typer.Option(help="With --run: a list whose small scores are good.")] = None,
    depth: Annotated[int, typer.Option(min=1, help="With --index or --run: documents per query.")] = 1000,
    n_features: NFeatures = None,
    out: Annotated[Path, typer.Option(help="The TREC run to write; .gz is gzipped.")] = Path("run.trec"),
    force: Force = False,
) -> None:
    """Rank rows, or the documents of an index, with a trained model, as a TREC run."""
    from fliprank import console
    from fliprank.data.trec import write_run
    from fliprank.models import Fusion, load_model

    if run and rows is not None:
        raise UsageError("give rows, or lists by --run, not both")
    if not run and ((rows is None) == (index is None) or (index is None) != (queries is None)):
        raise UsageError("give rows, or --index and --queries, or the lists of a fusion by --run")
    check_output(out, force)
    trained = load_model(model / "model" if (model / "model").is_dir() else model)
    if run and isinstance(trained, Fusion):
        found = _of_lists(trained, model, named_files(run), ascending or [], queries, index, depth)
    elif rows is not None:
        found = _of_rows(trained, rows, n_features)
    elif index is None or queries is None:
        raise UsageError(f"--run goes with --index and --queries, or with a fusion: {model} has a {trained.kind} model")
    else:
        found = _of_index(trained, index, queries, depth, named_files(run) if run else None)
    write_run(out, found)
    console.result(queries=len(found.qids), rows=len(found.docids))
    console.written(out, f" ({len(found.qids):,} queries, {len(found.docids):,} rows)")


def _of_rows(model: Model, path: Path, n_features: int | None) -> Run:
    from fliprank.data.readers import read_candidates
    from fliprank.data.trec import Run

    given = read_candidates(path, n_features)
    return Run(given.offsets, given.qids, given.document_ids(), model.score(given), "fliprank")


def _of_lists(
    model: Fusion,
    folder: Path,
    given: dict[str, Path],
    ascending: list[str],
    queries: Path | None,
    index: Path | None,
    depth: int,
) -> Run:
    """The lists fused as the model does it, each cut where `fuse` cut it."""
    from fliprank.data.fusion_rows import fused_run, fusion_rows
    from fliprank.experiment.adaptive_fusing import with_query_traits
    from fliprank.models import AdaptiveFusion

    rows = fusion_rows(given, depth=_list_depth(folder), ascending=ascending)
    if isinstance(model, AdaptiveFusion):
        rows = with_query_traits(rows, queries, None if index is None else index_in(index))
    return fused_run(rows, model.score(rows), "fliprank", depth)


def _list_depth(folder: Path) -> int | None:
    """How many documents of each list `fuse` took, where its folder says so."""
    import json

    try:
        depth = json.loads((folder / "result.json").read_text())["settings"]["depth"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return depth if isinstance(depth, int) else None


def _of_index(model: Model, index: Path, queries: Path, depth: int, runs: dict[str, Path] | None) -> Run:
    from dataclasses import replace

    from fliprank import console

    opened = index_in(index)
    with console.counting("searching") as progress:
        found = opened.search(queries, model, depth=depth, progress=progress, runs=runs)
    if runs is not None:
        console.show(*opened.pool(queries, runs=runs, depth=0).run_notes)
    return replace(found, name="fliprank")
