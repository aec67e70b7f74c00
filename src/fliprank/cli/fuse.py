"""`fliprank fuse`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fliprank.cli.app import app
from fliprank.cli.documents import index_in
from fliprank.cli.help_pages import ExampleCommand
from fliprank.cli.options import method_settings, named_files
from fliprank.cli.outputs import out_folder
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from fliprank.experiment.fusing import Fused
    from fliprank.experiment.results import Result
    from fliprank.report.page import Page

__all__ = ["fuse"]

FUSE_EXAMPLES = """
Examples:

  fliprank fuse --qrels qrels.txt --run bm25.run --run dense.run --out fused

  fliprank fuse --qrels judgements.csv --run text=bm25.json --run vectors=dense.json --engine vespa

  fliprank fuse --qrels train.qrels --test test.qrels --run bm25.run --run dense.run --engine opensearch --depth 100

  fliprank fuse --qrels qrels.txt --run bm25.run --run dense.run --adaptive --queries queries.tsv

Lists are TREC runs, tables (CSV, TSV, Parquet: query, docid, score) or JSON responses of an engine; see docs/files.md.

Afterwards: OUT/settings.txt (to paste), OUT/report.html (to look at together), OUT/fused.run, OUT/queries.csv (each
query before and after),
OUT/moved.csv (documents that moved, and their ranks in each list), OUT/to-judge.csv (what to judge next),
OUT/result.json (figures), OUT/model (the tuned fusion where it is proven better, else the best of what there was),
OUT/weight.csv and weight.svg (the measure over the weight of the second of two lists), OUT/weights.csv (of each
query, where --adaptive is proven better). `fliprank plot queries OUT` and others draw it.
"""

AS_GOOD = "as good: weights that no test tells from the best on their line (95%), other lists in their proportions."

SHOWN = 5
"""Documents to judge that are shown; all are in the file."""


@app.command(epilog=FUSE_EXAMPLES, cls=ExampleCommand, short_help="Weights of several ranked lists from judgements.")
def fuse(
    qrels: Annotated[Path, typer.Option(help="Judgements: TREC or BEIR qrels, CSV, or OpenSearch's JSON.")],
    run: Annotated[list[str], typer.Option(help="A list, FILE or NAME=FILE; at least twice, text before vectors.")],
    test: Annotated[Path | None, typer.Option(help="Judgements of other queries of the same lists.")] = None,
    engine: Annotated[str, typer.Option(help="Whose formula: plain, elasticsearch-linear, opensearch, ...")] = "plain",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the engine, not to be chosen.")
    ] = None,
    ascending: Annotated[list[str] | None, typer.Option(help="The name of a list whose small scores are good.")] = None,
    measure: Annotated[list[str] | None, typer.Option("-m", "--measure", help="The first is tuned for.")] = None,
    depth: Annotated[int | None, typer.Option(min=1, help="How many documents of each list count; all.")] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    adaptive: Annotated[bool, typer.Option("--adaptive", help="Weights may depend on the query, if proven.")] = False,
    queries: Annotated[
        Path | None, typer.Option(help="With --adaptive: texts of the queries, for their length.")
    ] = None,
    index: Annotated[
        Path | None, typer.Option(help="With --adaptive, --queries: index of the documents, for idf.")
    ] = None,
    adopt: Annotated[str, typer.Option(help="When OUT/model is the tuned fusion: proven, always or never.")] = "proven",
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for settings, figures and runs.")] = Path("fused"),
) -> None:
    """Set the weights of several ranked lists (hybrid search) from judgements, or say to leave them alone."""
    from fliprank import console
    from fliprank.data.files import atomic_write
    from fliprank.experiment.fusing import fuse as fused_of
    from fliprank.experiment.fusing import write_fused
    from fliprank.experiment.verdict import ADOPT
    from fliprank.export.fusion import fusion_settings

    if adopt not in ADOPT:
        raise UsageError(f"--adopt {adopt}: one of {', '.join(ADOPT)}")
    folder, measures = out_folder(out), measure or [DEFAULT_MEASURE]
    with console.fit_progress("fusing") as report:
        found = fused_of(
            named_files(run),
            qrels,
            test=test,
            engine=engine,
            settings=method_settings(settings),
            measure=measures[0],
            reported=measures[1:] or ("AP", "RR"),
            folds=folds,
            depth=depth,
            ascending=ascending or (),
            seed=seed,
            adaptive=adaptive,
            queries=queries,
            index=None if index is None else index_in(index),
            progress=report,
        )
    result = write_fused(folder, found, adopt, depth)
    taken = found.model if result.adopted else found.baselines[found.kept]
    with atomic_write(folder / "settings.txt") as file:
        file.write((fusion_settings(taken) + "\n").encode())
    console.result(**result.content(), **found.content())
    console.show(*_tables(found, result), *_draw(found, folder))
    console.written(folder / "result.json")
    _write_report(found, result, folder)


def _write_report(found: Fused, result: Result, folder: Path) -> None:
    from fliprank.cli.reports import REPORT, command_line, write_report

    def page() -> Page:
        from fliprank.report.page import fusing_page

        return fusing_page(found, result, str(folder), command_line())

    write_report(folder / REPORT, page)


def _tables(found: Fused, result: Result) -> Iterator[Table | str]:
    """What came of it, what counts most first."""
    from fliprank.cli.diff_text import moves_lines
    from fliprank.console import new_table, plain
    from fliprank.experiment.fusing import TUNED
    from fliprank.experiment.significance import p_value

    yield found.verdict.sentence
    yield from found.verdict.also
    yield f"model/ and settings.txt hold {'the tuned fusion' if result.adopted else found.kept}."
    measures = [reading.label for reading in found.evaluation.readings]
    on = "test queries" if "test" in found.proofs else f"training queries; {TUNED}: cross-validated"
    table = new_table(f"{len(found.evaluation.qids)} {on}", ["", *measures])
    for name, means in found.evaluation.means().items():
        label = f"[bold]{plain(name)}[/]" if name in (found.kept, TUNED) else plain(name)
        table.add_row(label, *(f"{means[m]:.4f}" for m in measures))
    yield table
    yield from moves_lines(found.moves)
    tuned = found.model.params
    weights = new_table(f"Parameters: {result.fit.settings['chosen']}", ["parameter", "default", "tuned", "as good"])
    for name, default, value in zip(tuned.names, tuned.default, tuned.values, strict=True):
        span = found.ranges.get(name)
        weights.add_row(plain(name), f"{default:.4g}", f"{value:.4g}", "" if span is None else str(span))
    yield weights
    if found.ranges:
        yield AS_GOOD
    if found.curve is not None:
        best = found.curve.maximum
        yield (
            f"Over all weights of {plain(found.model.lists[1])} from 0 to 1, the highest {plain(measures[0])} of the "
            f"training queries is {best.value:.4f}, between {best.low:.4g} and {best.high:.4g}; statistically as good: "
            f"{found.as_good}."
        )
    bounds = new_table(f"If unjudged documents are ... ({plain(found.kept)} against {TUNED})", ["", "difference", "p"])
    for what, c in found.coverage.bounds:
        bounds.add_row(what, f"{c.difference:+.4f}", p_value(c.p["randomisation"]))
    yield bounds
    yield found.coverage.sentence
    if found.coverage.to_judge:
        judge = new_table("To judge first", ["query", "document", "rank before", "after", "difference if relevant"])
        for each in found.coverage.to_judge[:SHOWN]:
            ranks = (str(rank or "-") for rank in (each.rank_before, each.rank_after))
            judge.add_row(plain(each.query), plain(each.docid), *ranks, f"{each.change:+.4f}")
        yield judge
    yield from found.notes


def _draw(found: Fused, folder: Path) -> Iterator[str]:
    """The curve of the weight, where there is one and the extra `report` is installed."""
    if found.curve is None:
        return
    from fliprank.report import plots

    try:
        plots.save(plots.fusion(found), folder / "weight.svg")
    except UsageError as error:
        yield f"no picture of the weight: {error}"
