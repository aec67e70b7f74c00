"""`fliprank tune`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fliprank.cli.app import app
from fliprank.cli.documents import Anchors, Docs, Fields, Links, Making, Stemmer, Stopwords
from fliprank.errors import InputError, UsageError

if TYPE_CHECKING:
    from fliprank.experiment.tuned import Outcome
    from fliprank.experiment.tuning_task import Task
    from fliprank.models import Model

__all__ = ["model_named", "show_outcome", "tune"]

TUNE_EXAMPLES = """
Examples:

  fliprank tune --docs docs.jsonl --queries queries.tsv --qrels qrels.txt --test test-qrels.txt --out tuned

  fliprank tune --beir scifact --split train --test test --model bm25f --out tuned

  fliprank tune --docs seiten.jsonl --queries anfragen.tsv --qrels qrels.txt --stemmer german --anchors links.tsv

  fliprank tune --terms train.jsonl --test dev.jsonl --model stack --share b --fix k=1.2 --bounds title.w=0:10

Parameters may also be arranged in a TOML file (--parameters FILE):

  share = { b = ["title.b", "body.b"] }     [start] "title.w" = 2.0     [bounds] "title.w" = [0, 10]     [fix] k = 1.2

Afterwards: OUT/result.json (figures), OUT/model (for `fliprank rank`), OUT/tuned.run (for `fliprank evaluate`).
"""


INTERRUPTED = 130
"""The exit code of a command that was ended by Ctrl-C."""


class Function(StrEnum):
    """The ranking functions that can be tuned."""

    bm25 = "bm25"
    bm25f = "bm25f"
    lm = "lm"
    stack = "stack"


class Way(StrEnum):
    """How to tune."""

    auto = "auto"
    gradient = "gradient"
    line = "line"


@app.command(epilog=TUNE_EXAMPLES)
def tune(
    docs: Docs = None,
    queries: Annotated[
        Path | None, typer.Option(help="Queries: JSON lines (_id, text), id, tab, text, or TREC topics.")
    ] = None,
    qrels: Annotated[Path | None, typer.Option(help="Judgements: TREC or BEIR qrels.")] = None,
    beir: Annotated[Path | None, typer.Option(help="Instead of these three: a folder in BEIR's layout.")] = None,
    split: Annotated[str, typer.Option(help="With --beir: the judgements to tune on.")] = "train",
    terms: Annotated[Path | None, typer.Option(help="Instead: a file of term statistics.")] = None,
    test: Annotated[
        str | None, typer.Option(help="Held-out queries: other qrels, a split of --beir, or other --terms.")
    ] = None,
    fields: Fields = None,
    anchors: Anchors = None,
    links: Links = None,
    stemmer: Stemmer = "english",
    stopwords: Stopwords = None,
    model: Annotated[Function, typer.Option(help="What to tune; stack: BM25F and the documents' columns.")] = (
        Function.bm25f
    ),
    measure: Annotated[str, typer.Option(help="What to tune for.")] = "nDCG(dcg='exp-log2')@10",
    method: Annotated[Way, typer.Option(help="auto tries gradients with and without line searches after.")] = Way.auto,
    objective: Annotated[str | None, typer.Option(help="The smooth objective, instead of trying several.")] = None,
    start: Annotated[list[str] | None, typer.Option(help="name=value: the default to start from.")] = None,
    bounds: Annotated[list[str] | None, typer.Option(help="name=low:high.")] = None,
    fix: Annotated[list[str] | None, typer.Option(help="name, or name=value: not tuned.")] = None,
    free: Annotated[list[str] | None, typer.Option(help="name: tuned, though it is fixed by default.")] = None,
    share: Annotated[list[str] | None, typer.Option(help="b (all that end in .b), or b=title.b,body.b.")] = None,
    parameters: Annotated[Path | None, typer.Option(help="A TOML file with start, bounds, fix, share.")] = None,
    depth: Annotated[int, typer.Option(min=1, help="Documents a query to tune on, beside the judged.")] = 1000,
    folds: Annotated[int, typer.Option(min=2, help="Of the cross-validations.")] = 5,
    cross_validate: Annotated[bool, typer.Option(help="Prove it by nested cross-validation.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Of all random numbers.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for model, figures, runs and index.")] = Path("tuned"),
) -> None:
    """Set the parameters of a ranking function from relevance judgements, and prove that it is better."""
    from fliprank import console
    from fliprank.experiment import tuned, tuning, tuning_task
    from fliprank.experiment.parameter_settings import read_settings
    from fliprank.experiment.trained import check_folder
    from fliprank.measures import parse_measure

    folder = check_folder(out)
    settings = read_settings(
        parameters, start=start or (), bounds=bounds or (), fix=fix or (), free=free or (), share=share or ()
    )
    chosen = parse_measure(measure)
    recipes = tuning.recipes_for(chosen, method.value, objective)
    with _telling_what_is_kept(folder):
        making = Making(fields, stemmer, stopwords, anchors, links)
        if terms is not None:
            task = _from_terms(terms, test, docs or queries or qrels or beir, making)
        else:
            task = _from_documents(docs, queries, qrels, beir, split, test, making, depth, folder)
        tuning_task.check_measure(task, chosen)
        _check_folds(task.train.rows.queries, folds, cross_validate)
        options: dict[str, Any] = {"settings": settings, "recipes": recipes, "seed": seed}
        outcome = tuned.tune_and_write(
            model_named(model.value, task),
            task,
            folder,
            console.tuning_progress,
            measure=chosen,
            folds=folds,
            cross_validated=cross_validate,
            depth=depth,
            **options,
        )
    show_outcome(outcome)
    console.show(f"written: {folder / 'result.json'}")
    if outcome.interrupted:
        raise typer.Exit(INTERRUPTED)


@contextmanager
def _telling_what_is_kept(folder: Path) -> Iterator[None]:
    """Ctrl-C before there are figures: say what is kept and need not be done again."""
    before = _changed(folder / "model")
    try:
        yield
    except KeyboardInterrupt:
        kept = "the index is kept" if any(folder.glob("documents-*.index")) else "nothing was written"
        if _changed(folder / "model") != before:
            kept = f"{folder / 'model'} is kept, though not tuned on all documents that it brings up"
        typer.echo(f"fliprank: interrupted before there were figures; {kept}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _changed(place: Path) -> float:
    """When it was written last; 0 where there is none."""
    return place.stat().st_mtime if place.exists() else 0.0


def _check_folds(queries: int, folds: int, cross_validate: bool) -> None:
    """An error before the tuning, not at its end, where there are too few queries to hold some out."""
    if queries < 2:
        raise InputError("one training query: at least 2 are needed, since queries are held out to choose how to tune")
    if cross_validate and (folds > queries or queries - -(-queries // folds) < 2):
        fewer = f" --folds {queries}," if queries > 2 else ""
        raise UsageError(f"{folds} folds of {queries} queries: give more judgements,{fewer} or --no-cross-validate")


def show_outcome(outcome: Outcome) -> None:
    """Tables for people."""
    from fliprank import console
    from fliprank.cli.tuning_tables import outcome_tables

    console.show(*outcome_tables(outcome), *outcome.notes)


def model_named(name: str, task: Task) -> Model:
    """The ranking function of this name, for the fields and columns of the task."""
    from fliprank.models import BM25, BM25F, TwoStageLM
    from fliprank.models.document_feature import Feature
    from fliprank.models.stack import Stack

    if name == "stack":
        columns = task.train.rows.feature_names
        if not columns:
            raise UsageError("a stack needs columns of the documents, such as pagerank: these have none; take bm25f")
        return Stack(BM25F(), *(Feature(column, transform="log") for column in columns))
    kinds: dict[str, type[Model]] = {"bm25": BM25, "bm25f": BM25F, "lm": TwoStageLM}
    return kinds[name]()


def _from_terms(terms: Path, test: str | None, others: object, making: Making) -> Task:
    from fliprank.experiment.tuning_task import task_of_terms

    if others:
        raise UsageError("--terms stands alone: no --docs, --queries, --qrels or --beir beside it")
    if making != Making():
        raise UsageError("how to index goes with --docs: a file of term statistics has its fields and terms")
    return task_of_terms(terms, [Path(test)] if test else [])


def _from_documents(
    docs: Path | None,
    queries: Path | None,
    qrels: Path | None,
    beir: Path | None,
    split: str,
    test: str | None,
    making: Making,
    depth: int,
    folder: Path,
) -> Task:
    from fliprank import console
    from fliprank.data.beir import find_split
    from fliprank.experiment.tuning_task import open_index, read_judged_queries, task_of_judged_queries

    held_out: Path | None = None if test is None else Path(test)
    if beir is not None:
        if docs or queries or qrels:
            raise UsageError("--beir stands for --docs, --queries and --qrels: give one or the others")
        docs, queries, qrels = beir, beir, find_split(beir, split)
        held_out = None if test is None else find_split(beir, test)
    if docs is None or queries is None or qrels is None:
        raise UsageError("give --docs, --queries and --qrels, or --beir, or --terms")
    analyzer = making.analyzer()
    asked = read_judged_queries(queries, qrels, held_out)
    with console.counting("indexing") as progress:
        index = open_index(docs, folder, making.wanted, analyzer, progress, anchors=making.anchors, links=making.links)
    return task_of_judged_queries(index, asked, depth)
