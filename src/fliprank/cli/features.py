"""`fliprank features`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fliprank.cli.app import app
from fliprank.cli.documents import Anchors, Docs, Fields, Links, Making, Stemmer, Stopwords, index_in
from fliprank.errors import UsageError

if TYPE_CHECKING:
    from fliprank.data.candidates import Candidates
    from fliprank.text.index import Index

__all__ = ["features"]

FEATURES_EXAMPLES = """
Examples:

  fliprank features --docs docs.jsonl --queries queries.tsv --qrels qrels.txt --out rows.parquet

  fliprank features --beir scifact --split train --select "title.*" --select "*.bm25*" --out rows.parquet

  fliprank train rows.parquet --out fit
"""


@app.command(epilog=FEATURES_EXAMPLES)
def features(
    docs: Docs = None,
    index: Annotated[Path | None, typer.Option(help="Instead: an index of them, or a folder with one.")] = None,
    queries: Annotated[
        Path | None, typer.Option(help="Queries: JSON lines (_id, text), id, tab, text, or TREC topics.")
    ] = None,
    qrels: Annotated[Path | None, typer.Option(help="Judgements: TREC or BEIR qrels; without, no labels.")] = None,
    beir: Annotated[Path | None, typer.Option(help="Instead of all these: a folder in BEIR's layout.")] = None,
    split: Annotated[str, typer.Option(help="With --beir: whose judgements.")] = "train",
    fields: Fields = None,
    anchors: Anchors = None,
    links: Links = None,
    stemmer: Stemmer = "english",
    stopwords: Stopwords = None,
    depth: Annotated[int, typer.Option(min=0, help="Documents a query, by BM25, beside the judged.")] = 100,
    select: Annotated[list[str] | None, typer.Option(help="Features by name, such as 'title.*'.")] = None,
    out: Annotated[Path, typer.Option(help="File to write: .parquet, else LETOR; .gz is gzipped.")] = (
        Path("rows.parquet")
    ),
    kinds: Annotated[bool, typer.Option("--kinds", help="Only show the table of all kinds of features.")] = False,
) -> None:
    """Make a file of features from raw text, for `fliprank train`."""
    if kinds:
        from fliprank.text.features.kinds import kind_table

        typer.echo(kind_table())
        return
    if beir is not None:
        if docs or index or queries or qrels:
            raise UsageError("--beir stands for --docs, --queries and --qrels: give one or the others")
        from fliprank.data.beir import find_split

        docs, queries, qrels = beir, beir, find_split(beir, split)
    if (docs is None) == (index is None) or queries is None:
        raise UsageError("give --docs or --index, one of them, and --queries; or --beir")
    from fliprank import console
    from fliprank.data.files import check_writable
    from fliprank.text.features.features import feature_rows

    check_writable(out)
    source = _index(docs, index, Making(fields, stemmer, stopwords, anchors, links))
    with console.working("features"):
        rows = feature_rows(source, queries, qrels, select=select, depth=depth)
    written = _write(out, rows)
    console.show(*source.notes, *rows.memo["notes"])
    console.show(
        f"written: {written} ({rows.queries:,} queries, {len(rows):,} rows, {len(rows.feature_names)} features)"
    )


def _index(docs: Path | None, index: Path | None, making: Making) -> Index:
    from fliprank import console
    from fliprank.text.index import Index

    if docs is None:
        if making != Making():
            raise UsageError("how to index goes with --docs: an index has its fields, terms and links")
        return index_in(index or Path())
    how: dict[str, Any] = {"fields": making.wanted, "anchors": making.anchors, "links": making.links}
    with console.counting("indexing") as progress:
        return Index.build(docs, analyzer=making.analyzer(), progress=progress, **how)


def _write(out: Path, rows: Candidates) -> str:
    """Parquet, or LETOR, which knows neither names nor unjudged rows: names go to a file beside it, labels to 0."""
    from dataclasses import replace

    import numpy as np

    from fliprank.data.files import atomic_write
    from fliprank.data.letor import write_letor
    from fliprank.data.parquet import write_parquet

    if out.suffix == ".parquet":
        write_parquet(out, rows)
        return str(out)
    write_letor(out, replace(rows, labels=np.nan_to_num(rows.labels)))
    names = out.with_name(out.name + ".names")
    with atomic_write(names) as file:
        file.write("".join(f"{name}\n" for name in rows.feature_names).encode())
    return f"{out}, unjudged rows with label 0, and {names}, the features by number of line"
