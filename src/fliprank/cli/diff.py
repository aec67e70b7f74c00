"""`fliprank diff`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fliprank.cli.app import app
from fliprank.cli.documents import Anchors, Docs, Fields, IndexOptions, Links, Stemmer, Stopwords, index_in
from fliprank.cli.help_pages import ExampleCommand
from fliprank.errors import UsageError

if TYPE_CHECKING:
    from fliprank.experiment.diff import Diff

__all__ = ["diff"]


class Format(StrEnum):
    """What is printed or written."""

    text = "text"
    json = "json"
    csv = "csv"


DIFF_EXAMPLES = """
Examples:

  fliprank diff bm25.run tuned.run --qrels qrels.txt --docs docs.jsonl --queries queries.tsv

  fliprank diff bm25.run tuned.run

  fliprank diff tuned

  fliprank diff tuned --query q17

  fliprank diff --models old/model new/model --docs docs.jsonl --queries queries.tsv --qrels qrels.txt

  fliprank diff train.jsonl --models old/model new/model --format csv --out moved.csv

Without judgements the queries whose lists moved most come first. A flip is two documents that swap; what flips are
worth adds up to the change of the measure. Why a document moved is told where both lists come from models whose score
is a sum over terms and fields: by how much its margin over the documents that it swapped with changed, in units of the
spread of the query's scores.
"""


@app.command(epilog=DIFF_EXAMPLES, cls=ExampleCommand, short_help="What moved between two rankings, and why.")
def diff(
    given: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[BEFORE AFTER | OUT | ROWS]",
            help="Two TREC runs; or the folder that `tune` wrote; with --models, rows to rank.",
        ),
    ] = None,
    models: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help="Two models, before and after: with rows, or --queries and --docs or --index."),
    ] = None,
    qrels: Annotated[Path | None, typer.Option(help="Judgements: TREC or BEIR qrels, or CSV: query,docid,rating.")] = (
        None
    ),
    queries: Annotated[Path | None, typer.Option(help="Texts of the queries.")] = None,
    docs: Docs = None,
    index: Annotated[
        Path | None, typer.Option(help="With --models: the index that `tune` wrote, or its folder.")
    ] = None,
    fields: Fields = None,
    anchors: Anchors = None,
    links: Links = None,
    stemmer: Stemmer = "english",
    stopwords: Stopwords = None,
    measure: Annotated[str | None, typer.Option("-m", "--measure", help="The measure; of a tuning, its own.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Ranks of each list that are shown.")] = 10,
    query: Annotated[str | None, typer.Option(help="One query, by its id, with all that is known of it.")] = None,
    most: Annotated[
        int, typer.Option(min=0, help="Queries to show as text from either end; JSON and CSV have all.")
    ] = 3,
    depth: Annotated[int, typer.Option(min=1, help="With --models and documents: documents per query.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    form: Annotated[
        Format | None, typer.Option("--format", help="By default text, or what the name of --out ends in.")
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="A file to write instead of printing.")] = None,
) -> None:
    """What moved between two rankings: documents, flips and their worth, and the terms and fields behind it."""
    from fliprank import console
    from fliprank.data.files import check_writable

    if out is not None:
        check_writable(out)
    options = IndexOptions(fields, stemmer, stopwords, anchors, links)
    known: dict[str, Any] = {"measure": measure, "top": top, "seed": seed}
    with console.working("comparing"):
        before, after = _sides(given or [], models, index, docs, queries, options, known, depth)
        from fliprank.experiment.diff import diff as diff_of

        found = diff_of(before, after, qrels, docs=docs, queries=queries, **known)
        if console.output.json:
            console.result(**found.to_dict(None if query is None else [found[query]]))
        kind = form or _by_name(out)
        text = "" if console.output.json and out is None else _written(found, kind, query, most)
    if out is None:
        typer.echo(text, nl=False) if kind is not Format.text else console.answer(*text.splitlines())
        return
    from fliprank.data.files import atomic_write

    with atomic_write(out) as file:
        file.write(text.encode())
    console.written(out)


def _sides(
    given: list[Path],
    models: tuple[Path, Path] | None,
    index: Path | None,
    docs: Path | None,
    queries: Path | None,
    options: IndexOptions,
    known: dict[str, Any],
    depth: int,
) -> tuple[Any, Any]:
    """What is compared: two runs, a folder, or two models; what models are to rank is added to `known`."""
    if models is None:
        if index is not None or options != IndexOptions():
            raise UsageError("--index, and how to index, go with --models")
        if len(given) == 1 and given[0].is_dir():
            return given[0], None
        if len(given) != 2:
            raise UsageError("give two runs, or the folder that `tune` wrote, or --models BEFORE AFTER")
        return given[0], given[1]
    from fliprank.models import load_model

    if len(given) > 1 or (len(given) == 1 and (index is not None or options != IndexOptions())):
        raise UsageError("--models: give one file of rows, or --queries and --docs or --index")
    if given:
        from fliprank.data.readers import read_candidates

        known["rows"] = read_candidates(given[0])
    elif queries is None or (docs is None and index is None):
        raise UsageError("--models: give a file of rows, or --queries and --docs or --index")
    elif index is not None:
        known |= {"index": index_in(index), "depth": depth}
    else:
        known |= {"index": _indexed(docs, options), "depth": depth}
    before, after = (load_model(path / "model" if (path / "model").is_dir() else path) for path in models)
    return before, after


def _indexed(docs: Any, options: IndexOptions) -> Any:
    from fliprank.text.index import Index

    how: dict[str, Any] = {"analyzer": options.analyzer(), "anchors": options.anchors, "links": options.links}
    return Index.build(docs, fields=options.wanted, **how)


def _by_name(out: Path | None) -> Format:
    return {".json": Format.json, ".csv": Format.csv}.get(out.suffix if out else "", Format.text)


def _written(found: Diff, kind: Format, query: str | None, most: int) -> str:
    """The diff, or one query of it, as text, JSON or CSV; ends with a newline."""
    chosen = None if query is None else [found[query]]
    if kind is Format.json:
        import json

        return json.dumps(found.to_dict(chosen), indent=1, allow_nan=False) + "\n"
    if kind is Format.csv:
        return _csv(found, chosen)
    from fliprank.cli.diff_text import query_lines, summary_lines

    lines = list(summary_lines(found))
    shown = chosen or [*found[: min(most, len(found))], *found[max(len(found) - most, most) :]]
    for each in shown:
        lines += query_lines(each, everything=chosen is not None)
    if len(shown) < len(found) and chosen is None:
        lines += ["", f"{len(shown)} of {len(found)} queries; --most {len(found)} shows all, --query ID one of them."]
    return "\n".join([*lines, *found.notes]) + "\n"


def _csv(found: Diff, chosen: Any) -> str:
    """One row per query and document."""
    import csv
    import io

    from fliprank.data.csv_cells import safe_cell
    from fliprank.experiment.diff_records import RECORDS

    rows_of, columns = RECORDS["documents"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for each in chosen or found:
        writer.writerows(["" if cell is None else safe_cell(cell) for cell in row] for row in rows_of(each))
    return text.getvalue()
