"""The page of a tuning: from what `fliprank tune` found, or from what `tune` in Python returned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fliprank.data.trec import Run
from fliprank.experiment.coverage import ToJudge, coverage_of
from fliprank.experiment.paired_runs import qrels_of_rows, run_of_rows
from fliprank.experiment.results import FoldResult, Result
from fliprank.experiment.task import Queries, Task
from fliprank.experiment.tuning_moves import BY_ALL, ON, lists_of_tuning, titles_of
from fliprank.measures import Measure
from fliprank.optimize.fit import Fit
from fliprank.report.page.explorer import NO_EXPLORER, explorer_section
from fliprank.report.page.measured import measured_section
from fliprank.report.page.outlook import outlook_section
from fliprank.report.page.parameters import parameters_section, start_of
from fliprank.report.page.queries import queries_section, query_values
from fliprank.report.page.sample import sample_rows
from fliprank.report.page.section import Documents, Page, Section
from fliprank.report.page.surface import surface_section
from fliprank.report.page.trail import trail_section
from fliprank.report.page.verdict import verdict_section

__all__ = ["result_of_fit", "tuning_page"]


def tuning_page(result: Result, folder: str = "", command: str = "") -> Page:
    """All sections that this result has something for; `folder` is where its files lie."""
    fit, task = result.fit, result.task
    assert fit.measure is not None
    assert task is not None
    documents = Documents()
    sections = list(_sections(result, fit, task, fit.measure, documents, folder, command))
    documents.fill(titles_of(task))
    queries = task.train.rows.queries
    about = f"{fit.model.kind} tuned for {fit.measure} on {queries:,} judged queries"
    if task.index is not None:
        about += f" over {len(task.index):,} documents"
    return Page("Tuning report", f"{about}.", tuple(sections), documents)


def _sections(
    result: Result,
    fit: Fit,
    task: Task,
    measure: Measure,
    documents: Documents,
    folder: str,
    command: str,
) -> Iterator[Section]:
    assert result.verdict is not None
    yield verdict_section(result.verdict, result.proofs, result.adopted, _written(result, folder))
    start = start_of(fit.start, fit.model)
    sample = sample_rows(task.train.rows, fit.model, start)
    parameters = parameters_section(fit.model, start, result.ranges, sample, measure, documents, task.train.texts)
    yield parameters
    if result.proofs:
        yield _queries(result, fit, task, measure, documents)
    notes = list(result.notes)
    if (explorer := _explorer(result, fit, task, measure, documents)) is not None:
        yield explorer
    else:
        notes.append(NO_EXPLORER)
    if (surface := surface_section(fit, parameters.data["paths"], sample, measure)) is not None:
        yield surface
    if (trail := trail_section(fit)) is not None:
        yield trail
    if result.outlook is not None:
        yield outlook_section(result.outlook, result.curve)
    proof = next(iter(result.proofs.values()), None)
    settings = {**result.settings, **fit.settings}
    yield measured_section(None if proof is None else proof.evaluation, settings, notes, command)


def _queries(result: Result, fit: Fit, task: Task, measure: Measure, documents: Documents) -> Section:
    """On the queries of the proof that counts most."""
    on, proof = next(iter(result.proofs.items()))
    shown = task.test if on == "test" and task.test is not None else task.train
    every = np.arange(shown.rows.queries)
    lists = lists_of_tuning(task, fit, shown, every, result.runs, on, measure)
    notes = [BY_ALL] if on == "cross_validated" else []
    return queries_section(
        query_values(proof.by_query()),
        lists,
        documents,
        sign=measure.sign,
        on=ON[on],
        texts=shown.texts,
        to_judge=_to_judge(shown, lists.details.runs.runs, measure),
        notes=notes,
    )


def _explorer(result: Result, fit: Fit, task: Task, measure: Measure, documents: Documents) -> Section | None:
    """On test queries where there are any."""
    shown, on = (task.train, "training queries") if task.test is None else (task.test, "test queries")
    start = start_of(fit.start, fit.model)
    return explorer_section(fit.model, start, shown.rows, measure, result.ranges, documents, shown.texts, on)


def _to_judge(shown: Queries, runs: tuple[Run, Run], measure: Measure) -> Sequence[ToJudge]:
    """What to judge next: documents whose label would move the comparison most."""
    qrels = qrels_of_rows(shown.rows) if shown.qrels is None else shown.qrels
    return coverage_of(qrels, shown.rows, *runs, measure).to_judge


def _written(result: Result, folder: str) -> list[tuple[str, str]]:
    """What lies in the folder, and how it is used."""
    if not folder:
        return []
    held = "the tuned function" if result.adopted else "the defaults, since the tuned function was not proven better"
    found = [(f"{folder}/model", held)]
    if not result.adopted:
        found.append((f"{folder}/tuned-model", "the tuned function, whatever the verdict"))
    return [
        *found,
        (f"{folder}/result.json", "all figures of this page, for programs"),
        (f"fliprank export {folder} --list", "the engines that take it"),
        (f"fliprank export {folder} --to NAME", "the settings to paste into one of them"),
        (f"fliprank diff {folder}", "what moved, in the terminal"),
    ]


def result_of_fit(fit: Fit) -> Result:
    """What `tune` returned, as the command line would have it: rows alone, without index and texts."""
    assert fit.rows is not None
    assert fit.start is not None
    proof = fit.proof
    test = getattr(fit.prover, "test", None)
    task = Task(Queries(fit.rows), test=None if test is None else Queries(test))
    shown = fit.rows if test is None else test
    models = {"default": fit.start, "tuned": fit.model}
    runs = {name: run_of_rows(shown, model.score(shown)) for name, model in models.items()}
    settings = {"model": fit.model.kind, "queries": fit.rows.queries, "rows": len(fit.rows)}
    return Result(
        {"": FoldResult(fit, {})},
        settings,
        dict(proof.proofs),
        proof.verdict,
        proof.adopted,
        ranges=fit.ranges(),
        task=task,
        runs=runs,
    )
