"""`fliprank features`: a file of features from documents, queries and judgements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fliprank.cli.app import app
from fliprank.cli.documents import Anchors, Docs, Fields, IndexOptions, Links, Stemmer, Stopwords, index_in
from fliprank.cli.overwriting import Force, check_output
from fliprank.errors import UsageError

if TYPE_CHECKING:
    from fliprank.data.candidates import Candidates
    from fliprank.text.index import Index

__all__ = ["features", "write_rows"]

FEATURES_EXAMPLES = """
Examples:

  fliprank features --docs docs.jsonl --queries queries.tsv --qrels qrels.txt --out rows.parquet

  fliprank features --beir scifact --split train --select "title.*" --select "*.bm25*" --out rows.parquet

  fliprank train rows.parquet --out fit
"""


@app.command(epilog=FEATURES_EXAMPLES)
def features(
    docs: Docs = None,
    index: Annotated[Path | None, typer.Option(help="Instead of --docs: an index, or a folder with one.")] = None,
    queries: Annotated[
        Path | None,
        typer.Option(help="Queries: JSON lines (_id, text), lines of id, tab, text, or TREC topics."),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="Judgements: qrels, or CSV: query,docid,rating; else no labels.")
    ] = None,
    beir: Annotated[Path | None, typer.Option(help="Instead of these: a folder in BEIR's layout.")] = None,
    split: Annotated[
        str | None, typer.Option(help="With --beir: the split whose judgements are used; train, or the only one.")
    ] = None,
    fields: Fields = None,
    anchors: Anchors = None,
    links: Links = None,
    stemmer: Stemmer = "english",
    stopwords: Stopwords = None,
    depth: Annotated[int, typer.Option(min=0, help="Documents per query by BM25, besides judged ones.")] = 100,
    select: Annotated[list[str] | None, typer.Option(help="Only features with these names, such as 'title.*'.")] = None,
    out: Annotated[
        Path, typer.Option(help="File to write: .parquet, else LETOR (unjudged rows: -1); .gz is gzipped.")
    ] = (Path("rows.parquet")),
    force: Force = False,
    kinds: Annotated[bool, typer.Option("--kinds", help="Only print the table of all kinds of features.")] = False,
) -> None:
    """Make a file of features from raw text, for `fliprank train`."""
    if kinds:
        from fliprank import console
        from fliprank.text.features.kinds import all_kinds, kind_table

        kinds_by_name = {f"{before}{kind.name}": kind.formula for before, kind in all_kinds()}
        return console.result(kinds=kinds_by_name) if console.output.json else typer.echo(kind_table())
    if beir is not None:
        if docs or index or queries or qrels:
            raise UsageError("--beir stands for --docs, --queries and --qrels: give one or the others")
        from fliprank.data.beir import find_split, split_to_fit

        docs, queries, qrels = beir, beir, find_split(beir, split or split_to_fit(beir))
    if (docs is None) == (index is None) or (queries is None and qrels is None):
        raise UsageError("give --docs or --index (one of the two) and --queries; or give --beir")
    from fliprank import console
    from fliprank.experiment.task import read_judged_queries
    from fliprank.text.features.features import feature_rows

    check_output(out, force)
    asked = queries or read_judged_queries(None, qrels or Path()).texts
    source = _index(docs, index, IndexOptions(fields, stemmer, stopwords, anchors, links))
    with console.working("features"):
        rows = feature_rows(source, asked, qrels, select=select, depth=depth)
    notes, names = [*source.notes, *rows.memo["notes"]], list(rows.feature_names)
    console.show(*notes)
    console.result(queries=rows.queries, rows=len(rows), features=names, notes=notes)
    write_rows(out, rows, f" ({rows.queries:,} queries, {len(rows):,} rows, {len(names)} features)")


def _index(docs: Path | None, index: Path | None, options: IndexOptions) -> Index:
    from fliprank import console
    from fliprank.text.index import Index

    if docs is None:
        if options != IndexOptions():
            hint = "an index already has its fields, terms and links"
            raise UsageError(f"--fields, --stemmer, --stopwords, --anchors and --links go with --docs: {hint}")
        return index_in(index or Path())
    how: dict[str, Any] = {"fields": options.wanted, "anchors": options.anchors, "links": options.links}
    with console.counting("indexing") as progress:
        return Index.build(docs, analyzer=options.analyzer(), progress=progress, **how)


def write_rows(out: Path, rows: Candidates, more: str) -> None:
    """Write Parquet, or LETOR with label -1 for unjudged rows and the names of the features in a file beside it."""
    from fliprank import console
    from fliprank.data.files import atomic_write
    from fliprank.data.letor import write_letor
    from fliprank.data.parquet import write_parquet

    if out.suffix == ".parquet":
        write_parquet(out, rows)
        return console.written(out, more)
    write_letor(out, rows)
    names = out.with_name(out.name + ".names")
    with atomic_write(names) as file:
        file.write("".join(f"{name}\n" for name in rows.feature_names).encode())
    console.written(out, f"{more}; unjudged rows have the label -1")
    console.written(names, " (names of the features, one per line)")
