"""The page of a fusion: the whole curve of the weight, what people have beside it, every query, and the explorer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fliprank.experiment.diff import diff_of_runs
from fliprank.experiment.fusing import TUNED, Fused
from fliprank.experiment.paired_runs import qrels_of_rows, run_over
from fliprank.experiment.results import Result
from fliprank.experiment.tuning_moves import ON
from fliprank.measures import Measure
from fliprank.report.page.explorer import explorer_section
from fliprank.report.page.figures import figures_section, means_table, table
from fliprank.report.page.measured import measured_section
from fliprank.report.page.parameters import parameters_section, start_of
from fliprank.report.page.queries import queries_section, query_values
from fliprank.report.page.sample import sample_rows
from fliprank.report.page.section import Documents, Page, Section, short
from fliprank.report.page.surface import surface_section
from fliprank.report.page.verdict import verdict_section

__all__ = ["fusing_page"]

POINTS, TOP = 400, 10
"""Stretches of the curve of the weight that are drawn; ranks of lists that are shown."""


def fusing_page(fused: Fused, result: Result, folder: str = "", command: str = "") -> Page:
    """All sections that this fusion has something for."""
    assert fused.fit.measure is not None
    documents = Documents()
    sections = tuple(_sections(fused, result, fused.fit.measure, documents, folder, command))
    lists = ", ".join(fused.model.lists)
    about = f"{lists} fused by {fused.model.engine} for {fused.fit.measure}, on {len(fused.evaluation.qids):,} queries."
    return Page("Fusion report", about, sections, documents)


def _sections(
    fused: Fused, result: Result, measure: Measure, documents: Documents, folder: str, command: str
) -> Iterator[Section]:
    fit, names = fused.fit, (fused.kept, TUNED)
    assert fit.rows is not None
    assert fused.rows is not None
    yield verdict_section(fused.verdict, fused.proofs, result.adopted, _written(result, fused, folder), names)
    if fused.curve is not None:
        yield _curve(fused)
    yield _baselines(fused)
    start, sample = start_of(None, fused.model), sample_rows(fit.rows, fused.model)
    parameters = parameters_section(fused.model, start, fused.ranges, sample, measure, documents)
    yield parameters
    yield _queries(fused, measure, documents, names)
    on = "test queries" if "test" in fused.proofs else "training queries"
    explorer = explorer_section(fused.model, start, fused.rows, measure, fused.ranges, documents, on=on)
    if explorer is not None:
        yield explorer
    surface = surface_section(fit, parameters.data["paths"], sample, measure)
    if surface is not None:
        yield surface
    yield measured_section(fused.evaluation, {**result.settings, **fit.settings}, result.notes, command)


def _curve(fused: Fused) -> Section:
    """The measure for every weight of the second list, exactly."""
    path, good = fused.curve, fused.as_good
    assert path is not None
    edges, values, best = path.edges, path.values, path.maximum
    if len(values) > POINTS:
        edges = np.linspace(path.low, path.high, POINTS + 1)
        values = path.values[np.searchsorted(path.breaks, (edges[1:] + edges[:-1]) / 2, "right")]
    data = {
        "measure": str(path.measure),
        "name": f"weight of {fused.model.lists[1]}",
        "x": [short(x) for x in edges],
        "y": [short(y, 7) for y in values],
        "best": [short((best.low + best.high) / 2), short(best.value)],
        "good": None if good is None else [float(good.low), float(good.high)],
        "ends": list(fused.model.lists),
        "flips": len(path.breaks),
    }
    conclusion = (
        f"Over all weights of {fused.model.lists[1]} from 0 to 1, {path.measure} of the training queries is highest, "
        f"{best.value:.4f}, between {best.low:.4g} and {best.high:.4g}; statistically as good: {good}."
    )
    return Section("weight", "Curve of the weight", conclusion, data)


def _baselines(fused: Fused) -> Section:
    means = fused.evaluation.means()
    first = fused.evaluation.readings[0].label
    bounds = [[b.what, f"{b.comparison.difference:+.4f}"] for b in fused.coverage.bounds]
    tables = [
        means_table("Everything that competed", "Ranking", means),
        table(f"If unjudged documents are ...: {TUNED} against {fused.kept}", ["", "Difference"], bounds, [1]),
    ]
    said = f"Of what there was, {fused.kept} is best with {means[fused.kept][first]:.4f}; {TUNED} has "
    said += f"{means[TUNED][first]:.4f}. {fused.coverage.sentence}"
    return figures_section("What competed", said, tables)


def _queries(fused: Fused, measure: Measure, documents: Documents, names: tuple[str, str]) -> Section:
    assert fused.rows is not None
    qids, on = fused.rows.qids, next(iter(fused.proofs))
    before, after = (run_over(run, qids) for run in (fused.kept_run, fused.run))
    top = min(measure.depth or TOP, TOP)
    lists = diff_of_runs(before, after, qrels_of_rows(fused.rows), measure=measure, top=top, tested=False)
    values = query_values(fused.proofs[on].by_query())
    known: dict[str, Any] = {"sign": measure.sign, "on": ON[on], "names": names, "to_judge": fused.coverage.to_judge}
    return queries_section(values, lists, documents, **known)


def _written(result: Result, fused: Fused, folder: str) -> list[tuple[str, str]]:
    if not folder:
        return []
    held = "the tuned fusion" if result.adopted else fused.kept
    return [
        (f"{folder}/settings.txt", f"{held}, to paste into the engine"),
        (f"{folder}/model", f"{held}, for fliprank rank and export"),
        (f"{folder}/to-judge.csv", "what to judge next"),
        (f"{folder}/result.json", "all figures of this page, for programs"),
    ]
