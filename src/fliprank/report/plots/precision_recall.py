"""Precision at eleven levels of recall, averaged over queries: how clean a ranking stays as it finds more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fliprank.errors import InputError, WrongTypeError
from fliprank.experiment.precision_recall import PrecisionRecall
from fliprank.experiment.precision_recall import precision_recall as curves_of
from fliprank.report.drawing import DASHES, altair, chart_of, framed, heading, series
from fliprank.report.plots.registry import plot
from fliprank.report.result_folder import ResultFolder

__all__ = ["precision_recall"]

RUNS = ("default", "tuned", "fused")
"""Runs that folders have, in the order of the legend."""


def _read(folder: ResultFolder, *, rows: Path | None = None, qrels: Path | None = None) -> Any:
    runs = {name: place for name in RUNS if (place := folder.path / f"{name}.run").is_file()}
    sources = folder.sources
    if qrels is None and rows is None and runs:
        part = "test" if "test" in folder.result else "qrels" if "qrels" in sources else "rows"
        if part not in sources:
            hint = "give them by --qrels"
            raise InputError("does not name the judgements of its rankings", path=folder.path, hint=hint)
        return precision_recall(curves_of(sources[part], runs))
    if qrels is not None:
        if not runs:
            raise InputError("has no rankings (*.run) to judge: give --rows instead of --qrels", path=folder.path)
        return precision_recall(curves_of(qrels, runs))
    known, model = folder.rows(rows, held_out=True), folder.model
    return precision_recall(curves_of(known, {model.kind: model.score(known)}))


@plot("precision-recall", "precision at eleven levels of recall, of one or more rankings", _read)
def precision_recall(found: PrecisionRecall) -> Any:
    """What `fr.precision_recall(qrels, runs)` gives, one line per run."""
    if not isinstance(found, PrecisionRecall):
        raise WrongTypeError("found", found, "what fr.precision_recall gives")
    alt, names = altair(), list(found.values)
    points = [
        {"run": name, "recall": level, "precision": value}
        for name, values in found.values.items()
        for level, value in zip(found.levels.tolist(), values.tolist(), strict=True)
    ]
    told = series(names, "run", shape=True)
    ends, ticks = alt.Scale(domain=[0, 1], nice=False), alt.Axis(format=".0%", tickCount=5, labelFlush=False)
    x = alt.X("recall:Q", title="recall: share of the relevant documents found", scale=ends, axis=ticks)
    y = alt.Y(
        "precision:Q",
        title="precision: share of those found that are relevant",
        scale=ends,
        axis=ticks,
    )
    layers = [
        chart_of([point for point in points if point["run"] == name])
        .mark_line(strokeWidth=1.9, strokeDash=DASHES[i % len(DASHES)])
        .encode(x=x, y=y, color=told["color"])
        for i, name in enumerate(names)
    ]
    layers.append(chart_of(points).mark_point(filled=True, size=50, opacity=1).encode(x=x, y=y, **told))
    told_of = names[0] if len(names) == 1 else f"{len(names)} rankings"
    also = "Interpolated: the highest precision at this recall or a higher one, averaged over queries."
    title = heading(f"Precision against recall of {told_of}, {found.queries:,} queries", also)
    return framed(alt.layer(*layers), title, width=440, height=360)
