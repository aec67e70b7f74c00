"""`fliprank tune`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fliprank.cli.app import app
from fliprank.cli.cluster_options import ClusterOptions
from fliprank.cli.interrupts import interruption
from fliprank.cli.options import (
    FitOptions,
    HybridOptions,
    ListingCommand,
    ModelOptions,
    ParameterOptions,
    Source,
    with_options,
)
from fliprank.cli.outputs import files_newer_than_now, out_folder
from fliprank.cli.worker_options import WorkerOptions, index_on
from fliprank.errors import InputError, UsageError

if TYPE_CHECKING:
    from fliprank.experiment.parameter_settings import ParameterSettings
    from fliprank.experiment.results import Result
    from fliprank.experiment.task import Task
    from fliprank.models import EngineText, Model
    from fliprank.report.page import Page

__all__ = ["keep_what_is_tuned", "show_result", "tune", "write_tuning_report"]

TUNE_EXAMPLES = """
Examples:

  fliprank tune --docs docs.jsonl --queries queries.tsv --qrels qrels.txt --test test-qrels.txt --out tuned

  fliprank tune --docs catalogue.csv --qrels judgements.csv --out tuned

  fliprank tune --beir scifact --split train --test test --model bm25f --out tuned

  fliprank tune --docs seiten.jsonl --queries anfragen.tsv --qrels qrels.txt --stemmer german --anchors links.tsv

  fliprank tune --docs docs.jsonl --queries queries.tsv --qrels qrels.txt --model hybrid --run dense.run --out hybrid

  fliprank tune --docs "documents/*.jsonl" --queries queries.tsv --qrels qrels.txt --cluster local:2 --out tuned

  fliprank tune train.jsonl --test dev.jsonl --model stack --share b --fix k=1.2 --bounds title.w=0:10

  fliprank tune --docs docs.jsonl --queries queries.tsv --qrels qrels.txt --engine sqlite --out tuned-sqlite

  fliprank tune --docs products.jsonl --queries queries.tsv --qrels qrels.txt --engine solr --model stack --out for-solr

  fliprank tune --engine elasticsearch --url https://host:9200 --index shop --queries queries.tsv --qrels qrels.txt

Credentials for --url: FLIPRANK_USER and FLIPRANK_PASSWORD, or FLIPRANK_API_KEY, in the environment.

Parameters may also be arranged in a TOML file (--parameters FILE):

  start = { "title.w" = 2.0 }
  bounds = { "title.w" = [0.0, 10.0] }
  fix = { k = 1.2 }
  share = { b = ["title.b", "body.b"] }

Afterwards: OUT/report.html (to look at together), OUT/result.json (figures), OUT/model (for `fliprank rank`: the tuned
function where it is proven better, else the defaults), OUT/tuned.run (for `fliprank evaluate`); with --engine,
OUT/export (the settings to paste, for `fliprank verify`); of a hybrid OUT/settings.txt (its fusion, to paste).
"""


@app.command(
    epilog=TUNE_EXAMPLES, cls=ListingCommand, short_help="Set a function's parameters from judgements, and prove it."
)
@with_options
def tune(
    source: Source,
    what: ModelOptions,
    how: FitOptions,
    arranged: ParameterOptions,
    lists: HybridOptions,
    live: ClusterOptions,
    workers: WorkerOptions,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    cross_validate: Annotated[bool, typer.Option(help="Weigh recipes, and prove it, by cross-validation.")] = True,
    curve: Annotated[bool, typer.Option(help="Say whether more judgements would help, by a learning curve.")] = True,
    adopt: Annotated[
        str, typer.Option(help="When OUT/model is the tuned function, else the defaults: proven, always or never.")
    ] = "proven",
    function: Annotated[
        str | None, typer.Option(help="With --engine: which of its functions; the first by default.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for model, figures, runs and index.")] = Path("tuned"),
) -> None:
    """Set the parameters of a ranking function from relevance judgements, and prove that it is better."""
    if source.valid is not None:
        raise UsageError("tune chooses by cross-validation: --valid goes with train")
    from fliprank import console
    from fliprank.experiment.jobs import tune_and_write
    from fliprank.experiment.recipes import recipes_for
    from fliprank.experiment.task import check_measure
    from fliprank.experiment.verdict import ADOPT
    from fliprank.measures import parse_measure

    if adopt not in ADOPT:
        raise UsageError(f"--adopt {adopt}: one of {', '.join(ADOPT)}")
    folder, settings, select = out_folder(out), arranged.read(), parse_measure(how.chosen_by)
    recipes = recipes_for(select, how.method, how.objective, **how.of_method())
    own = _function_of(lists.engine, function, what)
    keep_what_is_tuned(folder)
    runs = lists.read(what.model)
    with workers.open() as cluster:
        if live.asked:
            task, settings = _task_of_cluster(source, live, lists.engine, own, settings, folder)
        else:
            build = None if cluster is None else partial(index_on, cluster)
            task = source.task(folder, runs, build=build)
        task = replace(task, sources={**task.sources, **lists.sources()})
        check_measure(task, select)
        _check_folds(task.train.rows.queries, folds, cross_validate)
        default = "linear" if task.train.rows.terms is None else "bm25f"
        extra = {} if runs is None else lists.settings(source.deep(runs))
        model: Model | str
        if own is not None:
            model, settings = _with_columns(own, task, settings) if what.model == "stack" else (own, settings)
        else:
            model = "auto" if what.model == "auto" else what.make(task.train.rows, default, **extra)
        result = tune_and_write(
            model,
            task,
            folder,
            console.fit_progress,
            measure=select,
            reported=how.reported,
            recipes=recipes,
            folds=folds if cross_validate else None,
            adopt=adopt,
            curve=curve,
            depth=source.deep(runs),
            parameters=settings,
            restarts=how.restarts or 1,
            seed=how.seed,
        )
    if runs is not None:
        _write_fusion(folder)
    show_result(result)
    if own is not None:
        from fliprank.export import export_model

        console.written(export_model(folder, str(lists.engine), folder / "export") / "README.md")
    console.written(folder / "result.json")
    write_tuning_report(result, folder)


def write_tuning_report(result: Result, folder: Path) -> Path | None:
    """The page of a tuning; none of one that was interrupted."""
    from fliprank.cli.reports import REPORT, command_line, write_report

    if result.interrupted:
        return None

    def page() -> Page:
        from fliprank.report.page import tuning_page

        return tuning_page(result, str(folder), command_line())

    return write_report(folder / REPORT, page)


def _task_of_cluster(
    source: Source,
    live: ClusterOptions,
    engine: str | None,
    model: EngineText | None,
    settings: ParameterSettings,
    folder: Path,
) -> tuple[Task, ParameterSettings]:
    """Rows from a cluster, and the parameters that it has now, where the user says nothing else."""
    from fliprank import console
    from fliprank.clusters.task import parity_note

    if model is None:
        raise UsageError("--url tunes the function of an engine: give --engine, without --model")
    if source.rows or source.docs or source.beir:
        raise UsageError("--url stands for documents and rows: give one or the other")
    found = live.task(engine, source.queries, source.qrels, source.test, source.fields, source.depth or 100, folder)
    start = found.start(model)
    settings = replace(settings, start=start | settings.start)
    ready = model.prepared(found.task.train.rows, 0)
    if live.template is None and model.formula.function == found.function:
        console.show(parity_note(ready.at(ready.params.replace(start)), found.pulled))
    return found.task, settings


def _with_columns(text: EngineText, task: Task, settings: ParameterSettings) -> tuple[Model, ParameterSettings]:
    """The engine's text function with the documents' columns, weights within the bounds that the engine has."""
    from fliprank import console
    from fliprank.export.columns import engine_stack

    model, bounds, notes = engine_stack(text, task.train.rows)
    console.show(*notes)
    return model, replace(settings, bounds=bounds | settings.bounds)


def _function_of(engine: str | None, function: str | None, what: ModelOptions) -> EngineText | None:
    """The text function of the engine that was named; None without one."""
    if engine is None or what.model == "hybrid":
        if function is not None:
            raise UsageError("--function is a function of an engine for text: say which by --engine")
        return None
    if what.model not in (None, "stack") or what.hidden:
        raise UsageError(
            f"--engine {engine} has a function of its own: leave out --model and --hidden, or choose by --function; "
            "--model stack adds the documents' columns"
        )
    from fliprank.export import engine_model

    return engine_model(engine, function)


def _write_fusion(folder: Path) -> None:
    """The fusion of the hybrid that was written, as the settings of its engine."""
    from fliprank.data.files import atomic_write
    from fliprank.export.fusion import fusion_settings
    from fliprank.models import Hybrid, load_model

    model = load_model(folder / "model")
    assert isinstance(model, Hybrid)
    with atomic_write(folder / "settings.txt") as file:
        file.write((fusion_settings(model.fusion) + "\n").encode())


def keep_what_is_tuned(folder: Path) -> None:
    """What a tuning that is interrupted leaves in its folder."""
    new = files_newer_than_now(folder)

    def kept() -> str:
        index = "the index is kept, so that it need not be built again"
        if new("result.json"):
            return f"{folder} has the model, runs, and the figures that there were"
        if new("tuned-model"):
            return f"{folder / 'tuned-model'} is the best so far, though nothing is proven about it; {index}"
        return f"before anything was fitted; {index}" if any(folder.glob("*.index")) else "nothing was written"

    interruption.keep(kept)


def _check_folds(queries: int, folds: int, cross_validate: bool) -> None:
    """Raise an error before the tuning, not at its end, where there are too few queries to hold some out."""
    if cross_validate and queries < 2:
        raise InputError("one training query: at least 2 are needed, to hold some out; or give --no-cross-validate")
    if cross_validate and (folds > queries or queries - -(-queries // folds) < 2):
        fewer = f" --folds {queries}," if queries > 2 else ""
        raise UsageError(f"{folds} folds of {queries} queries: give more judgements,{fewer} or --no-cross-validate")


def show_result(result: Result) -> None:
    """Tables for people."""
    from fliprank import console
    from fliprank.cli.result_tables import tuning_tables

    console.result(**result.content())
    console.show(*tuning_tables(result), *result.notes)
