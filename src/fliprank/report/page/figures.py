"""Figures in tables: means by run or set, findings of papers, stages of a cascade."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fliprank.experiment.cascade_analysis import AfterStage
from fliprank.experiment.significance import p_value
from fliprank.report.page.section import Section, clipped, short

__all__ = ["figures_section", "means_table", "stages_section", "table"]

QUERIES = {"train": "training queries", "valid": "validation queries", "test": "test queries"}


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], numeric: Iterable[int]) -> dict[str, Any]:
    """A table of texts; `numeric` are the columns to align as numbers, the first being 0."""
    cells = [[clipped(str(cell)) for cell in row] for row in rows]
    return {"caption": caption, "heads": list(heads), "rows": cells, "numeric": list(numeric)}


def means_table(caption: str, first: str, means: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """{name: {measure: mean}} with four digits."""
    measures = list(next(iter(means.values()), {}))
    rows = [[name, *(f"{own[measure]:.4f}" for measure in measures)] for name, own in means.items()]
    return table(caption, [first, *measures], rows, range(1, len(measures) + 1))


def figures_section(
    title: str, conclusion: str, tables: Sequence[dict[str, Any]], notes: Iterable[str] = ()
) -> Section:
    """Tables under one conclusion."""
    return Section("figures", title, conclusion, {"tables": list(tables), "notes": [clipped(n) for n in notes]})


def stages_section(
    stages: Sequence[AfterStage], on: str, measure: str, cutoffs: Mapping[str, Any] | None = None
) -> Section:
    """What each stage of a cascade gains, costs and loses; the choices on the frontier, where sizes were chosen."""
    last = stages[-1]
    gained = [stage for stage in stages[1:] if stage.step_p < 0.05 and stage.step > 0]
    said = (
        f"After {len(stages)} stages {measure} is {last.value:.4f}, {last.value - stages[0].value:+.4f} over the first"
    )
    said += f"; {len(gained)} of {len(stages) - 1} later stages gain by more than chance" if len(stages) > 1 else ""
    said += f"; {last.lost:.1%} of the relevant documents do not reach the last."
    rows = [
        [
            str(s.stage),
            str(s.size),
            f"{s.value:.4f}",
            f"{s.interval[0]:.4f} to {s.interval[1]:.4f}",
            "" if s.stage == 1 else f"{s.step:+.4f}",
            "" if s.stage == 1 else p_value(s.step_p),
            f"{s.lost:.1%}",
        ]
        for s in stages
    ]
    heads = ["Stage", "Documents", measure, "95% interval", "Gain over the stage before", "p", "Relevant lost"]
    data: dict[str, Any] = {
        "measure": measure,
        "on": QUERIES.get(on, on),
        "points": [
            [s.stage, short(s.value), short(s.interval[0]), short(s.interval[1]), short(s.lost)] for s in stages
        ],
        "table": table(f"The ranking after each stage, {QUERIES.get(on, on)}", heads, rows, range(7)),
        "frontier": [],
    }
    if cutoffs is not None:
        data["frontier"] = [
            [short(choice["cost"]), short(choice["value"]), choice == cutoffs["chosen"], _sizes(choice)]
            for choice in cutoffs["frontier"]
        ]
        data["includes"] = cutoffs["cost_includes"]
    return Section("stages", "Stages", said, data)


def _sizes(choice: Mapping[str, Any]) -> str:
    return ", ".join(map(str, choice["sizes"]))
