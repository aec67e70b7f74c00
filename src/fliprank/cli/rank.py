"""`fliprank rank`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fliprank.cli.app import app
from fliprank.cli.documents import Memory, NFeatures, index_in
from fliprank.cli.options import named_files, with_options
from fliprank.cli.overwriting import Force, check_output
from fliprank.cli.worker_options import WorkerOptions
from fliprank.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fliprank.data.trec import Run
    from fliprank.distributed.on import OnCluster
    from fliprank.models import Fusion, Model

__all__ = ["rank"]

RANK_EXAMPLES = """
Examples:

  fliprank rank fit/model test.txt --out run.trec

  fliprank rank tuned --index tuned --queries queries.tsv --out run.trec

  fliprank rank hybrid --index hybrid --queries queries.tsv --run dense.run --out run.trec

  fliprank rank fused --run bm25.run --run dense.run --out fused.run

  fliprank rank fit/model shards --memory 2GB --out run.trec

  fliprank rank fit/model shards --cluster tcp://scheduler:8786 --out run.trec
"""


@app.command(epilog=RANK_EXAMPLES, short_help="Rank rows or documents with a trained model.")
@with_options
def rank(
    model: Annotated[Path, typer.Argument(help="What `fliprank train` or `tune` wrote: its folder, or the model's.")],
    workers: WorkerOptions,
    rows: Annotated[Path | None, typer.Argument(help="Rows to rank: LETOR, Parquet, term statistics, shards.")] = None,
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
    memory: Memory = None,
    out: Annotated[Path, typer.Option(help="The TREC run to write; .gz is gzipped.")] = Path("run.trec"),
    force: Force = False,
) -> None:
    """Rank rows, or the documents of an index, with a trained model, as a TREC run."""
    import numpy as np

    from fliprank import console
    from fliprank.data.trec import write_runs
    from fliprank.models import Fusion, load_model

    if run and rows is not None:
        raise UsageError("give rows, or lists by --run, not both")
    if not run and ((rows is None) == (index is None) or (index is None) != (queries is None)):
        raise UsageError("give rows, or --index and --queries, or the lists of a fusion by --run")
    if workers.cluster is not None and (rows is None or memory is not None or n_features is not None):
        raise UsageError("--cluster goes with rows that workers read, without --memory and --n-features")
    check_output(out, force)
    trained = load_model(model / "model" if (model / "model").is_dir() else model)
    counts = np.zeros(2, np.int64)

    def counted(found: Iterable[Run]) -> Iterator[Run]:
        for part in found:
            counts[:] += len(part.qids), len(part.docids)
            yield part

    with workers.open() as cluster:
        if run and isinstance(trained, Fusion):
            lists = named_files(run)
            found: Iterable[Run] = [_of_lists(trained, model, lists, ascending or [], queries, index, depth)]
        elif rows is not None:
            found = _of_rows(trained, rows, n_features, memory, cluster)
        elif index is None or queries is None:
            has = f"{model} has a {trained.kind} model"
            raise UsageError(f"--run goes with --index and --queries, or with a fusion: {has}")
        else:
            found = [_of_index(trained, index, queries, depth, named_files(run) if run else None)]
        write_runs(out, counted(found))
    console.result(queries=int(counts[0]), rows=int(counts[1]))
    console.written(out, f" ({counts[0]:,} queries, {counts[1]:,} rows)")


def _of_rows(
    model: Model, path: Path, n_features: int | None, memory: str | None, cluster: OnCluster | None
) -> Iterator[Run]:
    """The ranking of rows in memory; of rows in files, window by window; on workers, shard by shard."""
    from fliprank.data.readers import read_or_open
    from fliprank.optimize.anywhere import runs_of

    given = read_or_open(path, n_features, memory) if cluster is None else cluster.read(path)
    return runs_of(model, given, "fliprank")


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
