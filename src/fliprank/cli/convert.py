"""`fliprank convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fliprank.cli.app import app
from fliprank.cli.documents import NFeatures

__all__ = ["convert"]

CONVERT_EXAMPLES = """
Examples:

  fliprank convert train.txt --out train-shards

  fliprank convert rows.csv --out table-shards --shard 64MB

  fliprank convert train.txt --to parquet --out parquet-shards

  fliprank train shards --valid vali.txt --memory 2GB --out fit

Rows are read once, a block at a time: neither they nor the shards need fit in memory. All rows of a query must stand
together. A CSV has the columns qid, label, perhaps docid, and one per feature.
"""


@app.command(epilog=CONVERT_EXAMPLES, short_help="Write rows of any size as shards that need not fit in memory.")
def convert(
    rows: Annotated[Path, typer.Argument(help="LETOR or SVMlight text, CSV, TSV or Parquet; plain or .gz.")],
    to: Annotated[str, typer.Option(help="rows (memory-mapped, fastest), or parquet (for other tools, too).")] = "rows",
    shard: Annotated[str, typer.Option(help="Bytes per shard: 4 per feature and 128 per row.")] = "128MB",
    n_features: NFeatures = None,
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("shards"),
    force: Annotated[bool, typer.Option("--force", help="Replace a folder that this command wrote before.")] = False,
) -> None:
    """Write rows of any size as shards, which `train`, `rank` and `evaluate` read a window of queries at a time."""
    from fliprank import console
    from fliprank.data.convert import convert as converted

    with console.working("converting"):
        made = converted(rows, out, format=to, shard=shard, n_features=n_features, force=force)
    console.result(queries=made.queries, rows=made.rows, features=len(made.feature_names), shards=len(made.shards))
    told = f"{made.queries:,} queries, {made.rows:,} rows of {len(made.feature_names):,} features"
    console.written(out, f" ({told} in {len(made.shards):,} shards)")
