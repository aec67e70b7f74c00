"""`fliprank evaluate`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fliprank.cli.app import app
from fliprank.cli.cluster_options import ClusterOptions
from fliprank.cli.options import with_options
from fliprank.cli.overwriting import Force
from fliprank.cli.reports import check_report
from fliprank.defaults import REPORTED_MEASURES
from fliprank.errors import UsageError

if TYPE_CHECKING:
    from fliprank.experiment.evaluation import Evaluation
    from fliprank.experiment.significance import Comparison
    from fliprank.report.page import Page

__all__ = ["evaluate", "show_evaluation"]


class TieRule(StrEnum):
    """How documents of equal score are settled; `fliprank.measures.ties` says what each does."""

    docid = "docid"
    rows = "rows"
    random = "random"
    pessimistic = "pessimistic"
    optimistic = "optimistic"
    average = "average"


class Tool(StrEnum):
    """The tools whose numbers can be reproduced."""

    fliprank = "fliprank"
    trec_eval = "trec_eval"
    lightgbm = "lightgbm"
    xgboost = "xgboost"
    sklearn = "sklearn"
    ranx = "ranx"
    letor = "letor"


EVALUATE_EXAMPLES = """
Examples:

  fliprank evaluate qrels.txt bm25.run tuned.run -m nDCG@10 -m "AP(rel=2)"

  fliprank evaluate qrels.txt bm25.run -m P@5 -q --csv > by-query.csv

  fliprank evaluate qrels.txt bm25.run tuned.run --report compared.html

  fliprank evaluate qrels.txt bm25.run -m AP --ties average

  fliprank evaluate test.letor.gz scores.txt -m "nDCG(dcg='exp-log2')@10" --convention lightgbm --explain

  fliprank evaluate qrels.txt --engine opensearch --url https://host:9200 --index shop --queries queries.tsv

Measures are named as in ir_measures; trec_eval's (ndcg_cut_10, map) and ranx's (ndcg_burges@10) names are understood.
Without -m: {measures}.
""".format(measures=", ".join(REPORTED_MEASURES))


@app.command(epilog=EVALUATE_EXAMPLES)
@with_options
def evaluate(
    qrels: Annotated[
        Path, typer.Argument(help="Judgements: TREC or BEIR qrels, CSV; or rows: LETOR, Parquet, shards, ...")
    ],
    live: ClusterOptions,
    runs: Annotated[
        list[Path] | None, typer.Argument(help="TREC runs; for rows also files with one score per line.")
    ] = None,
    engine: Annotated[str | None, typer.Option(help="With --url: what runs there, as elasticsearch.")] = None,
    queries: Annotated[Path | None, typer.Option(help="With --url: the texts to search for.")] = None,
    depth: Annotated[int, typer.Option(min=1, help="With --url: documents per query.")] = 100,
    measure: Annotated[list[str] | None, typer.Option("-m", "--measure", help="A measure; may be repeated.")] = None,
    convention: Annotated[Tool, typer.Option(help="Whose reading of the measures to reproduce.")] = Tool.fliprank,
    ties: Annotated[
        TieRule | None, typer.Option(help="Order of equal scores; otherwise as the convention has it.")
    ] = None,
    per_query: Annotated[bool, typer.Option("-q", "--per-query", help="Show every query, too.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV for a program.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say what each number depends on.")] = False,
    permutations: Annotated[
        int, typer.Option(min=99, help="How many sign flips the randomisation tests draw.")
    ] = 100_000,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Confidence of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a page to look at in a browser.")
    ] = None,
    force: Force = False,
) -> None:
    """Judge one or more rankings; compare the others with the first."""
    from fliprank import console

    if console.output.json and as_csv:
        raise UsageError("choose one of --json and --csv")
    if report is not None:
        check_report(report, force)
    from fliprank.experiment import evaluation

    given: Any = {} if not live.asked else {live.name: live.run(engine, queries, depth)}
    if not runs and not given:
        raise UsageError("what to evaluate? Give runs, or --url of a cluster")
    if runs:
        given = runs if not given else {path.stem: path for path in runs} | given
    with console.working("evaluating"):
        names = measure or REPORTED_MEASURES
        rule = None if ties is None else ties.value
        result = evaluation.evaluate(qrels, given, names, convention=convention.value, ties=rule, seed=seed)
        comparisons = result.compare(permutations=permutations, confidence=confidence, seed=seed)
    if console.output.json:
        console.result(**_content(result, comparisons, per_query, explain))
    elif as_csv:
        _print_csv(result, per_query)
    else:
        if per_query:
            console.answer(console.query_table(result))
        show_evaluation(result, comparisons, confidence, explain)
    if report is not None:
        _write_report(report, result, comparisons, qrels, given)


def _write_report(path: Path, result: Evaluation, comparisons: list[Comparison], qrels: Path, given: Any) -> None:
    """A page with the comparisons, and with the rankings of every query where documents have names."""
    from fliprank.cli.reports import command_line, write_report

    def page() -> Page:
        from fliprank.data.trec import Qrels, Run, read_run
        from fliprank.experiment.evaluation import read_judgements
        from fliprank.report.page import evaluation_page

        judged = read_judgements(qrels)
        if not isinstance(judged, Qrels):
            return evaluation_page(result, comparisons, command=command_line())
        files = given.values() if isinstance(given, dict) else given
        runs = {
            name: each if isinstance(each, Run) else read_run(each)
            for name, each in zip(result.values, files, strict=True)
        }
        return evaluation_page(result, comparisons, judged, runs, judged.texts, command_line())

    write_report(path, page)


def show_evaluation(result: Evaluation, comparisons: list[Comparison], confidence: float, explain: bool) -> None:
    from fliprank import console

    console.answer(console.mean_table(result))
    if comparisons:
        console.answer(*console.comparison_tables(comparisons, confidence))
        console.show("p: randomisation test; Holm and max-T correct it for all comparisons.")
        console.show("+/-/=: on how many queries the run is better, worse, the same.")
    if explain:
        console.answer(console.explanation(result.explain()))
    else:
        console.show(*result.notes)


def _content(result: Evaluation, comparisons: list[Comparison], per_query: bool, explain: bool) -> dict[str, object]:
    """What a program is told."""

    def known(value: float) -> float | None:
        return value if value == value else None

    out: dict[str, object] = {
        "convention": result.readings[0].convention.name,
        "ties": result.readings[0].convention.ties,
        "queries": len(result.qids),
        "runs": {run: {m: known(v) for m, v in means.items()} for run, means in result.means().items()},
        "comparisons": [comparison.as_dict() for comparison in comparisons],
        "notes": list(result.notes),
    }
    if per_query:
        qids = result.qids.tolist()
        out["per_query"] = {
            run: {m: dict(zip(qids, map(known, column.tolist()), strict=True)) for m, column in values.items()}
            for run, values in result.values.items()
        }
    if explain:
        out["explain"] = [{"what": what, "how": how} for what, how in result.explain()]
    return out


def _print_csv(result: Evaluation, per_query: bool) -> None:
    import csv

    from fliprank.data.csv_cells import safe_cell

    if sys.stdout is None:
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if not per_query:
        writer.writerow(["run", "measure", "mean"])
        for run, means in result.means().items():
            writer.writerows([safe_cell(run), m, repr(v)] for m, v in means.items())
        return
    qids = result.qids.tolist()
    writer.writerow(["run", "query", "measure", "value"])
    for run, values in result.values.items():
        for name, column in values.items():
            known = zip(qids, column.tolist(), strict=True)
            writer.writerows([safe_cell(run), safe_cell(qid), name, repr(v)] for qid, v in known)
