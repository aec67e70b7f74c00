"""`fliprank verify`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fliprank.cli.app import app
from fliprank.cli.documents import Docs, Fields, IndexOptions, Stemmer, Stopwords, index_in
from fliprank.cli.help_pages import ExampleCommand
from fliprank.cli.overwriting import Force, check_output
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import InputError, UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from fliprank.engines.verify import Verified
    from fliprank.text.index import Index

__all__ = ["verify"]

VERIFY_EXAMPLES = """
Examples:

  fliprank tune --docs docs.jsonl --queries queries.tsv --qrels qrels.txt --engine sqlite --out tuned-sqlite

  fliprank verify tuned-sqlite --queries queries.tsv --qrels test-qrels.txt

  fliprank verify tuned-sqlite/export --docs docs.jsonl --queries queries.tsv --qrels test-qrels.txt --out verified.json

Give judgements of queries that the function was not tuned on. Exit code 1: the engine's scores are not ours.
"""


@app.command(
    epilog=VERIFY_EXAMPLES, cls=ExampleCommand, short_help="Run the engine itself: same scores, same gain as here?"
)
def verify(
    export: Annotated[Path, typer.Argument(help="What `fliprank export` wrote, or the folder of `tune --engine`.")],
    docs: Docs = None,
    index: Annotated[Path | None, typer.Option(help="Instead of --docs: the index, or the folder, of `tune`.")] = None,
    queries: Annotated[Path | None, typer.Option(help="Queries; or those of a CSV as --qrels.")] = None,
    qrels: Annotated[Path | None, typer.Option(help="Judgements: qrels, or CSV: query,docid,rating.")] = None,
    fields: Fields = None,
    stemmer: Stemmer = "english",
    stopwords: Stopwords = None,
    measure: Annotated[str, typer.Option("-m", "--measure", help="The measure that counts.")] = DEFAULT_MEASURE,
    depth: Annotated[int, typer.Option(min=1, help="Documents per query to compare.")] = 100,
    out: Annotated[Path | None, typer.Option(help="A JSON file for the figures.")] = None,
    force: Force = False,
) -> None:
    """Index the documents in the engine itself, run the queries there, and compare with what we compute."""
    from fliprank import console
    from fliprank.engines.verify import verify as run
    from fliprank.experiment.fit_folder import write_json
    from fliprank.experiment.task import read_judged_queries
    from fliprank.export import read_export
    from fliprank.models import EngineText

    if qrels is None:
        raise UsageError("give --qrels, judgements of queries that the function was not tuned on, and --queries")
    if out is not None:
        check_output(out, force)
    folder = export / "export" if (export / "export").is_dir() else export
    model = read_export(folder).model
    if not isinstance(model, EngineText):
        raise InputError(f"a {model.kind} model, not the text function of an engine", path=folder)
    judged = read_judged_queries(queries, qrels)
    source = _index(folder, docs, index, IndexOptions(fields, stemmer, stopwords))
    with console.counting("asking the engine") as progress:
        found = run(
            model, source, judged.texts, judged.judged["train"][1], measure=measure, depth=depth, progress=progress
        )
    console.result(**found.content())
    console.answer(*_told(found))
    if out is not None:
        write_json(out, found.content())
        console.written(out)
    if not found.good:
        raise typer.Exit(1)


def _index(folder: Path, docs: Path | None, index: Path | None, options: IndexOptions) -> Index:
    """The index that is named, that of these documents, or that of the tuning that wrote the export."""
    from fliprank import console
    from fliprank.text.index import Index as Built

    if docs is not None and index is not None:
        raise UsageError("give --docs or --index, not both")
    if docs is None:
        if options != IndexOptions():
            raise UsageError("--fields, --stemmer and --stopwords go with --docs: an index has its own")
        place = index or folder.parent
        if index is None and not any(place.glob("*.index")):
            raise UsageError("give --docs, or the index of the tuning by --index")
        return index_in(place)
    with console.counting("indexing") as progress:
        return Built.build(docs, fields=options.wanted, analyzer=options.analyzer(), progress=progress)


def _told(found: Verified) -> Iterator[Table | str]:
    """The answer in a sentence, then the figures."""
    from fliprank.console import new_table, plain
    from fliprank.experiment.significance import p_value

    there, here = found.there, found.here
    if found.good:
        yield f"{found.version} computes what we compute: the same scores and order, at its defaults and as tuned."
    else:
        yield f"{found.version} does not compute what we compute: don't expect the gain there."
    table = new_table("Scores there against ours", ["parameters", "pairs", "largest error", "misplaced", "missed"])
    for name, each in found.agreements.items():
        table.add_row(name, f"{each.pairs:,}", f"{each.error:.1e}", str(each.misplaced), str(each.missed))
    yield table
    if not found.good:
        worst = max(found.agreements.values(), key=lambda each: each.error)
        yield f"The largest error is at query {plain(worst.worst[0])}, document {plain(worst.worst[1])}."
    names = ["measure", "default", "tuned", "change", "p", "promised"]
    gains = new_table(f"In the engine, {len(there.evaluation.qids)} queries", names)
    means = there.evaluation.means()
    for ours, promised in zip(there.comparisons, here.comparisons, strict=True):
        values = (f"{means[run][ours.measure]:.4f}" for run in ("default", "tuned"))
        change = f"{ours.difference:+.4f}", p_value(ours.p["randomisation"]), f"{promised.difference:+.4f}"
        gains.add_row(ours.measure, *values, *change)
    yield gains
