"""`fliprank train`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fliprank.cli.app import app
from fliprank.cli.documents import Memory
from fliprank.cli.interrupts import interruption
from fliprank.cli.options import FitOptions, ListingCommand, ModelOptions, ParameterOptions, Source, with_options
from fliprank.cli.outputs import files_newer_than_now, out_folder
from fliprank.cli.worker_options import WorkerOptions, task_on
from fliprank.errors import UsageError

if TYPE_CHECKING:
    from fliprank.experiment.cutoffs import CutoffOptions
    from fliprank.experiment.results import Result
    from fliprank.report.page import Page

__all__ = ["train"]

TRAIN_EXAMPLES = """
Examples:

  fliprank train train.txt --valid vali.txt --test test.txt --out fit

  fliprank train --folds MQ2008 --model network --hidden 10 --objective "softndcg(sigma=0.3)" --out fit

  fliprank train rows.txt --cv 5 --out fit

  fliprank train train.txt --valid vali.txt --model auto --out fit

  fliprank train train.txt --valid vali.txt --model trees --objective softndcg --set leaves=15 --out fit

  fliprank train terms.jsonl --valid dev.jsonl --model bm25f --method taylor2006 --objective ranknet --sample average

  fliprank train terms.jsonl --valid dev.jsonl --model stack --hidden 3 --objective ranknet

  fliprank train train.txt --valid vali.txt --model cascade --stages 2500,100,10 --stage-model linear,linear,network:8

  fliprank train train.txt --valid vali.txt --model cascade --stages 100,20 --choose-cutoffs --budget 50

  fliprank train train.txt --valid vali.txt --method exact --set shrink=0.01 --out fit

  fliprank train shards --valid vali.txt --memory 2GB --out fit

  fliprank train shards --valid vali.txt --cluster local:2 --explain-cluster --out fit
"""


@app.command(epilog=TRAIN_EXAMPLES, cls=ListingCommand, short_help="Fit a ranker, chosen by the measure that counts.")
@with_options
def train(
    source: Source,
    what: ModelOptions,
    how: FitOptions,
    arranged: ParameterOptions,
    workers: WorkerOptions,
    folds: Annotated[Path | None, typer.Option(help="Instead: a folder with Fold1/{train,vali,test}.txt, ...")] = None,
    cv: Annotated[
        int | None, typer.Option(min=2, help="Cross-validate: so many folds of the training queries, as LETOR's.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for model, figures and checkpoints.")] = Path("fit"),
    keep: Annotated[
        str, typer.Option(help="The epoch to keep: best by measure or objective on validation queries, or last.")
    ] = "measure",
    stage_objective: Annotated[str | None, typer.Option(help="Of a cascade: --objective by stage.")] = None,
    stage_method: Annotated[str | None, typer.Option(help="Of a cascade: --method by stage.")] = None,
    choose_cutoffs: Annotated[
        bool, typer.Option("--choose-cutoffs", help="Of a cascade: choose its sizes on validation queries.")
    ] = False,
    budget: Annotated[
        float | None, typer.Option(min=0, help="With --choose-cutoffs: microseconds per query; no limit by default.")
    ] = None,
    feature_costs: Annotated[
        str | None,
        typer.Option(
            help="With --choose-cutoffs: microseconds to compute a feature of one document, one number for all or a "
            "file of NAME=MICROSECONDS lines. Without it, a cost is the time to score (and, with --docs, to gather "
            "term statistics)."
        ),
    ] = None,
    polish: Annotated[
        bool, typer.Option("--polish", help="Then climb the measure itself, as far as validation queries approve.")
    ] = False,
    sweep: Annotated[bool, typer.Option(help="Choose settings that are not given on validation queries.")] = True,
    sample: Annotated[
        str | None, typer.Option(help="Unlabelled training rows: rated, average, or so many per labelled row.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoints in OUT.")] = False,
    memory: Memory = None,
) -> None:
    """Fit a ranker by any method, chosen by the measure that counts on validation queries."""
    if folds is not None and (source.rows or source.docs or source.beir):
        raise UsageError("give training rows or --folds, one of them")
    if cv is not None and (folds is not None or source.valid is not None or source.test is not None):
        raise UsageError("--cv parts the training queries itself: no --folds, --valid or --test beside it")
    if memory is not None and (folds is not None or source.rows is None):
        raise UsageError("--memory goes with files of rows, without --folds")
    if memory is not None and workers.cluster is not None:
        raise UsageError("--memory is for rows in files here, --cluster for rows on workers: give one of them")
    if choose_cutoffs and what.model != "cascade":
        raise UsageError("--choose-cutoffs goes with --model cascade")
    if not choose_cutoffs and (budget is not None or feature_costs is not None):
        raise UsageError("--budget and --feature-costs go with --choose-cutoffs")
    from fliprank import console
    from fliprank.cli.result_tables import training_tables
    from fliprank.defaults import DEFAULT_OBJECTIVE
    from fliprank.experiment.cutoffs import check_for_cutoffs
    from fliprank.experiment.jobs import train_and_write
    from fliprank.experiment.task import fold_tasks, read_folds, task_of_shards

    folder, own = out_folder(out), how.of_method()
    options: dict[str, Any] = {"objective": how.objective or DEFAULT_OBJECTIVE, "method": how.method, "keep": keep}
    options |= {"restarts": how.restarts or 4, "sweep": sweep, "polish": polish, "sample": sample, "seed": how.seed}
    options |= {"parameters": arranged.read(), "resume": resume, **own}
    if choose_cutoffs:
        options |= {"cutoffs": _cutoffs(budget, feature_costs)}
    by_stage = {"objective": stage_objective, "method": stage_method}
    _keep_checkpoints(folder)
    with workers.open() as cluster:
        if folds is not None:
            tasks = read_folds(folds, source.n_features)
        else:
            read = partial(task_of_shards, memory=memory) if cluster is None else partial(task_on, cluster)
            tasks = iter([source.task(folder, read=read)])
        if cv is not None:
            tasks = fold_tasks(next(tasks), cv, how.seed)
        if choose_cutoffs:
            tasks = map(check_for_cutoffs, tasks)
        result = train_and_write(
            lambda rows: what.make(rows, "linear" if rows.terms is None else "bm25f"),
            tasks,
            folder,
            console.fit_progress,
            measure=how.chosen_by,
            reported=how.reported,
            by_stage=by_stage,
            **options,
        )
    console.result(**result.content())
    console.show(*training_tables(result), *result.notes)
    console.written(folder / "result.json")
    if not result.interrupted:
        _write_report(result, folder)


def _write_report(result: Result, folder: Path) -> None:
    from fliprank.cli.reports import REPORT, command_line, write_report

    def page() -> Page:
        from fliprank.report.page import training_page

        return training_page(result, str(folder), command_line())

    write_report(folder / REPORT, page)


def _keep_checkpoints(folder: Path) -> None:
    """What a training that is interrupted leaves in its folder."""
    new = files_newer_than_now(folder)

    def kept() -> str:
        if new("result.json"):
            return f"{folder / 'model'} is the best so far, and {folder / 'result.json'} has its figures"
        if new("**/*.checkpoint"):
            return f"the epochs so far, the best of them too, are in {folder / 'checkpoint'}"
        return "before the first epoch was done: nothing was written"

    interruption.keep(kept, "--resume")


def _cutoffs(budget: float | None, feature_costs: str | None) -> CutoffOptions:
    """What a query may cost, and what features cost."""
    from fliprank.experiment.cutoffs import CutoffOptions
    from fliprank.experiment.stage_costs import read_feature_costs

    known = None if feature_costs is None else read_feature_costs(feature_costs)
    return CutoffOptions(float("inf") if budget is None else budget, known)
