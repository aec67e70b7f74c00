"""The page of a training: figures of each set, the trail, stages of a cascade, parameters, and the explorer."""

from __future__ import annotations

from collections.abc import Iterator

from fliprank.data.candidates import Candidates
from fliprank.experiment.results import FoldResult, Result
from fliprank.experiment.task import Queries, Task
from fliprank.measures import Measure
from fliprank.optimize.fit import Fit
from fliprank.report.page.explorer import explorer_section
from fliprank.report.page.figures import QUERIES, figures_section, means_table, stages_section, table
from fliprank.report.page.measured import measured_section
from fliprank.report.page.parameters import parameters_section, start_of
from fliprank.report.page.sample import sample_rows
from fliprank.report.page.section import Documents, Page, Section, clipped
from fliprank.report.page.surface import surface_section
from fliprank.report.page.trail import trail_section

__all__ = ["training_page"]

ELSEWHERE = "rows stayed in their files or on a cluster, so parameters and queries are not shown one by one"
MOST = 32
"""Parameters up to which they are shown one by one."""


def training_page(result: Result, folder: str = "", command: str = "") -> Page:
    """All sections that this result has something for; of folds the first stands for all but the figures."""
    fit = result.fit
    documents = Documents()
    sections = tuple(_sections(result, fit, documents, folder, command))
    queries = result.settings.get("queries")
    about = f"{fit.model.kind} trained for {fit.measure}" + (f" on {queries:,} queries" if queries else "")
    return Page("Training report", f"{about}.", sections, documents)


def _sections(result: Result, fit: Fit, documents: Documents, folder: str, command: str) -> Iterator[Section]:
    yield _figures(result, folder)
    for name, fold in result.folds.items():
        if fold.stages:
            yield _stages(name, fold)
    if (trail := trail_section(fit)) is not None:
        yield trail
    notes = result.notes
    if result.task is not None and fit.measure is not None:
        if _in_memory(result.task):
            yield from _about_parameters(fit, result.task, fit.measure, documents)
            yield _values(fit, result.task, fit.measure)
        else:
            notes = (*notes, ELSEWHERE)
    yield measured_section(None, {**result.settings, **fit.settings}, notes, command)


def _in_memory(task: Task) -> bool:
    """Whether all rows are at hand, to be looked at query by query."""
    parts = (task.train, task.valid, task.test)
    return all(isinstance(part.rows, Candidates) for part in parts if part is not None)


def _figures(result: Result, folder: str) -> Section:
    means, measure = result.means(), str(result.fit.measure)
    tables = [means_table("Means by set of queries", "Queries", {QUERIES.get(k, k): v for k, v in means.items()})]
    if len(result.folds) > 1:
        each = {
            f"{name}, {QUERIES[part]}": figures
            for name, fold in result.folds.items()
            for part, figures in fold.figures.items()
        }
        tables.append(means_table("Fold by fold", "Fold", each))
    if folder:
        rows = [
            (f"{folder}/model", "the model, for fliprank rank"),
            (f"fliprank export {folder} --list", "the engines that take it"),
            (f"{folder}/result.json", "all figures, for programs"),
        ]
        tables.append(table("What was written, and how to use it", ["What", "For"], rows, []))
    part = next((part for part in ("test", "valid", "train") if part in means), None)
    if part is None:
        return figures_section("Figures", f"{result.fit.model.kind} was trained for {measure}.", tables)
    said = f"{measure} is {means[part][measure]:.4f} on {QUERIES[part]}"
    if part != "train" and "train" in means:
        gap = means["train"][measure] - means[part][measure]
        said += f", {abs(gap):.4f} {'below' if gap > 0 else 'above'} that on training queries"
    return figures_section("Figures", f"{said}.", tables)


def _stages(name: str, fold: FoldResult) -> Section:
    found = stages_section(fold.stages, fold.stages_on, str(fold.fit.measure), fold.fit.settings.get("cutoffs"))
    return found if not name else Section(found.kind, f"{found.title}, {name}", found.conclusion, found.data)


def _about_parameters(fit: Fit, task: Task, measure: Measure, documents: Documents) -> Iterator[Section]:
    if not 0 < len(fit.model.params.free_names) <= MOST:
        return
    start, sample = start_of(fit.start, fit.model), sample_rows(task.train.rows, fit.model)
    parameters = parameters_section(fit.model, start, {}, sample, measure, documents, task.train.texts)
    yield parameters
    part, shown = _held_out(task)
    explorer = explorer_section(fit.model, start, shown.rows, measure, {}, documents, shown.texts, QUERIES[part])
    if explorer is not None:
        yield explorer
    surface = surface_section(fit, parameters.data["paths"], sample, measure)
    if surface is not None:
        yield surface


def _held_out(task: Task) -> tuple[str, Queries]:
    """The queries that say most: test, validation, or training queries."""
    parts = task.parts()
    return next((name, parts[name]) for name in ("test", "valid", "train") if name in parts)


def _values(fit: Fit, task: Task, measure: Measure) -> Section:
    """The measure of every query, the worst first: where there is something to win."""
    part, shown = _held_out(task)
    values = measure.per_query(fit.model.score(shown.rows), shown.rows).tolist()
    rows = [
        [clipped(qid), clipped(shown.texts.get(qid, "")), None if value != value else value]
        for qid, value in zip(shown.rows.qids.tolist(), values, strict=True)
    ]
    known = [value for value in values if value == value]
    ends = (min, max) if measure.sign > 0 else (max, min)
    worst, best = (end(known, default=0.0) for end in ends)
    said = f"{measure} of {len(values):,} {QUERIES[part]} goes from {worst:.4f} to {best:.4f}; "
    said += f"{sum(value == worst for value in known):,} are at the lower end, where there is most to win."
    return Section(
        "values",
        "Query by query",
        said,
        {"measure": str(measure), "rows": rows, "sign": measure.sign, "on": QUERIES[part]},
    )
