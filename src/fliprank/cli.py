"""The command line: a thin skin over the library. Heavy imports wait until a command runs, so that --help is quick.

Exit codes: 0 done, 1 the data or files can't be used, 2 the command was given wrongly.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fliprank import __version__
from fliprank.errors import FliprankError, UsageError

if TYPE_CHECKING:
    from fliprank.experiment.evaluation import Evaluation
    from fliprank.experiment.significance import Comparison

__all__ = ["app", "main"]

app = typer.Typer(
    help="Set the parameters of search ranking functions from relevance judgements, flip by flip.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Tool(StrEnum):
    """The tools whose numbers can be reproduced."""

    fliprank = "fliprank"
    trec_eval = "trec_eval"
    lightgbm = "lightgbm"
    xgboost = "xgboost"
    sklearn = "sklearn"
    ranx = "ranx"
    letor = "letor"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fliprank {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


EVALUATE_EXAMPLES = """
Examples:

  fliprank evaluate qrels.txt bm25.run tuned.run -m nDCG@10 -m "AP(rel=2)"

  fliprank evaluate qrels.txt bm25.run -m P@5 -q --csv > by-query.csv

  fliprank evaluate test.letor.gz scores.txt -m "nDCG(dcg='exp-log2')@10" --convention lightgbm --explain

Measures are named as in ir_measures; trec_eval's (ndcg_cut_10, map) and ranx's (ndcg_burges@10) names are understood.
"""


@app.command(epilog=EVALUATE_EXAMPLES)
def evaluate(
    qrels: Annotated[Path, typer.Argument(help="Judgements: TREC or BEIR qrels, or a LETOR file; plain or .gz.")],
    runs: Annotated[list[Path], typer.Argument(help="TREC runs; for a LETOR file, files with one score a line.")],
    measure: Annotated[list[str] | None, typer.Option("-m", "--measure", help="A measure; may be repeated.")] = None,
    convention: Annotated[Tool, typer.Option(help="Whose reading of the measures to reproduce.")] = Tool.fliprank,
    per_query: Annotated[bool, typer.Option("-q", "--per-query", help="Show every query, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV for a program.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say what each number depends on.")] = False,
    permutations: Annotated[int, typer.Option(min=99, help="Sign flips of the randomisation tests.")] = 100_000,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.9999, help="Of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the random numbers.")] = 0,
) -> None:
    """Judge one or more rankings; compare the others with the first."""
    if as_json and as_csv:
        raise UsageError("choose one of --json and --csv")
    from fliprank import console
    from fliprank.experiment import evaluation

    with console.working("evaluating"):
        names = measure or evaluation.DEFAULT_MEASURES
        result = evaluation.evaluate(qrels, runs, names, convention=convention.value)
        comparisons = result.compare(permutations=permutations, confidence=confidence, seed=seed)
    if as_json:
        _print_json(result, comparisons, per_query, explain)
    elif as_csv:
        _print_csv(result, per_query)
    else:
        if per_query:
            console.show(console.query_table(result))
        _show(result, comparisons, confidence, explain)


def _show(result: Evaluation, comparisons: list[Comparison], confidence: float, explain: bool) -> None:
    from fliprank import console

    console.show(console.mean_table(result))
    if comparisons:
        console.show(*console.comparison_tables(comparisons, confidence))
        console.show("p: randomisation test; Holm and max-T correct it for all comparisons.")
        console.show("+/-/=: on how many queries the run is better, worse, the same.")
    if explain:
        console.show(console.explanation(result.explain()))
    else:
        console.show(*result.notes)


def _print_json(result: Evaluation, comparisons: list[Comparison], per_query: bool, explain: bool) -> None:
    import json

    def known(value: float) -> float | None:
        return value if value == value else None

    out: dict[str, object] = {
        "convention": result.readings[0].convention.name,
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
    typer.echo(json.dumps(out, indent=2))


def _print_csv(result: Evaluation, per_query: bool) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    if not per_query:
        writer.writerow(["run", "measure", "mean"])
        writer.writerows([run, m, repr(v)] for run, means in result.means().items() for m, v in means.items())
        return
    qids = result.qids.tolist()
    writer.writerow(["run", "query", "measure", "value"])
    for run, values in result.values.items():
        for name, column in values.items():
            writer.writerows([run, qid, name, repr(v)] for qid, v in zip(qids, column.tolist(), strict=True))


TRAIN_EXAMPLES = """
Examples:

  fliprank train train.txt --valid vali.txt --test test.txt --out fit

  fliprank train --folds MQ2008 --model network --hidden 10 --objective "softndcg(sigma=0.3)" --out fit

  fliprank train train.parquet --valid vali.parquet --method taylor2008 --objective ranknet --out fit --resume

Objectives: mse, ranknet, lambdarank, softndcg, softap, softrr, softp@k, softrecall@k, with parameters in brackets.
"""


class Kind(StrEnum):
    """The models that can be trained from features."""

    linear = "linear"
    network = "network"


@app.command(epilog=TRAIN_EXAMPLES)
def train(
    rows: Annotated[Path | None, typer.Argument(help="Training rows: LETOR, Parquet or term statistics.")] = None,
    valid: Annotated[Path | None, typer.Option(help="Validation rows: they choose epoch and settings.")] = None,
    test: Annotated[Path | None, typer.Option(help="Test rows: only looked at when all is chosen.")] = None,
    folds: Annotated[Path | None, typer.Option(help="Instead: a folder with Fold1/{train,vali,test}.txt, ...")] = None,
    out: Annotated[Path, typer.Option(help="Folder for model, figures and checkpoints.")] = Path("fit"),
    model: Annotated[Kind, typer.Option(help="What to train.")] = Kind.linear,
    hidden: Annotated[int, typer.Option(min=1, help="Hidden nodes of a network.")] = 10,
    objective: Annotated[str, typer.Option(help="What to train on.")] = "lambdarank@10",
    measure: Annotated[str, typer.Option(help="What to choose by, and report.")] = "nDCG(dcg='exp-log2')@10",
    method: Annotated[str, typer.Option(help="auto, lbfgs, adam, exact, taylor2006 or taylor2008.")] = "auto",
    epochs: Annotated[int | None, typer.Option(min=1, help="At most so many; the method's own by default.")] = None,
    restarts: Annotated[int, typer.Option(min=1, help="Random starts of each setting.")] = 4,
    sweep: Annotated[bool, typer.Option(help="Choose settings that are not given on validation queries.")] = True,
    sample: Annotated[
        str | None, typer.Option(help="Unlabelled training rows: 'rated', or so many a labelled.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of all random numbers.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoints in OUT.")] = False,
) -> None:
    """Train a ranker on a smooth objective, chosen by the measure that counts."""
    if (rows is None) == (folds is None):
        raise UsageError("give training rows or --folds, one of them")
    from fliprank import console
    from fliprank.experiment import trained, training
    from fliprank.models import Linear, Network

    folder = trained.check_folder(out)
    sets = training.read_folds(folds) if folds is not None else training.read_sets(rows or "", valid, test)
    options: dict[str, Any] = {"objective": objective, "measure": measure, "method": method, "restarts": restarts}
    options |= {"sweep": sweep, "sample": sample, "seed": seed, "resume": resume}
    options |= {} if epochs is None else {"epochs": epochs}
    start = Linear() if model is Kind.linear else Network(hidden=hidden)
    result = trained.train_and_write(start, sets, folder, console.training_progress, **options)
    console.show(console.training_table(result))
    console.show(f"written: {folder / 'result.json'}")


@app.command(epilog="Example:\n\n  fliprank rank fit/model test.txt --out run.trec")
def rank(
    model: Annotated[Path, typer.Argument(help="What `fliprank train` wrote: its folder, or the model's in it.")],
    rows: Annotated[Path, typer.Argument(help="Rows to rank: LETOR, Parquet or term statistics.")],
    out: Annotated[Path, typer.Option(help="The TREC run to write; .gz is gzipped.")] = Path("run.trec"),
) -> None:
    """Rank rows with a trained model, as a TREC run."""
    from fliprank.data.anyfile import read_candidates
    from fliprank.data.ids import Ids
    from fliprank.data.trec import Run, write_run
    from fliprank.models import load_model

    trained = load_model(model / "model" if (model / "model").is_dir() else model)
    given = read_candidates(rows)
    docids = given.docids if given.docids is not None else Ids.of([f"row{i + 1}" for i in range(len(given))])
    write_run(out, Run(given.offsets, given.qids, docids, trained.score(given), "fliprank"))
    typer.echo(f"written: {out} ({given.queries} queries, {len(given)} rows)")


@app.command(epilog="Example:\n\n  fliprank demo")
def demo() -> None:
    """Evaluate the runs of the built-in collection against its judgements."""
    from fliprank import console
    from fliprank.data.builtin import RUNS, collection
    from fliprank.data.trec import read_qrels, read_run
    from fliprank.experiment.evaluation import evaluate as judge

    folder = collection()
    with console.working("evaluating"):
        runs = {name: read_run(folder / "runs" / f"{name}.run") for name in RUNS}
        result = judge(read_qrels(folder / "qrels" / "test.tsv"), runs, ["nDCG(dcg='exp-log2')@10", "AP", "RR"])
        comparisons = result.compare()
    console.show(
        "Marlpost's help centre, searched by SQLite FTS5: body alone, all fields alike, title and links first."
    )
    _show(result, comparisons, 0.95, explain=True)


def main() -> None:
    """Run the command line; our own errors become one line and an exit code."""
    try:
        app()
    except FliprankError as error:
        typer.echo(f"fliprank: {error}", err=True)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
