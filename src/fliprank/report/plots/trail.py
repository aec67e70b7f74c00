"""A fit epoch by epoch: its measure on training and validation queries, its objective, and the epoch that is kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fliprank.errors import UsageError, WrongTypeError
from fliprank.optimize.fit import Epoch, Fit
from fliprank.report.drawing import WIDTH, altair, chart_of, heading, present_rule, roomy, series, stacked
from fliprank.report.plots.registry import plot
from fliprank.report.result_folder import ResultFolder, intact

__all__ = ["trail"]

SERIES = {"train": "training queries", "valid": "validation queries"}
"""Columns of the trail that are the measure, and what they are called."""

FEW = 40
"""Points of a line up to which each is drawn."""


def _read(folder: ResultFolder) -> Any:
    epochs = folder.trail()
    with intact(folder.path / "result.json"):
        kept = folder.result["settings"].get("epoch", epochs[-1].number)
        best = next((epoch for epoch in epochs if epoch.number == kept), epochs[-1])
    return _drawn(epochs, best, folder.measure)


@plot("trail", "measure and objective epoch by epoch, on training and validation queries, the kept epoch marked", _read)
def trail(fit: Fit) -> Any:
    """The measure above, the objective below; a dashed line and diamonds at the epoch that is kept.

    Figures that are not known are left out, and a frame without any is not drawn.
    """
    if not isinstance(fit, Fit):
        raise WrongTypeError("fit", fit, "what fr.train, fr.tune or fr.telescope gives")
    return _drawn(fit.trail, fit.best, str(fit.measure or "measure"))


def _drawn(epochs: Sequence[Epoch], best: Epoch, measure: str) -> Any:
    frames = []
    for title, columns in ((measure, SERIES), ("objective, training queries", {"objective": "training queries"})):
        points = [
            {"epoch": epoch.number, "value": value, "series": name}
            for column, name in columns.items()
            for epoch in epochs
            if math.isfinite(value := getattr(epoch, column))
        ]
        if points:
            frames.append(_frame(title, points, best.number))
    if not frames:
        raise UsageError("this fit has no trail to draw: none of its epochs was measured")
    return stacked(frames, heading(_sentence(epochs, best, measure)))


def _sentence(epochs: Sequence[Epoch], best: Epoch, measure: str) -> str:
    known = [(name, getattr(best, column)) for column, name in SERIES.items() if math.isfinite(getattr(best, column))]
    told = ", ".join(f"{value:.4f} on {name}" for name, value in known)
    return f"Epoch {best.number} of {epochs[-1].number} is kept" + (f": {measure} {told}" if told else "")


def _whole_ticks(low: int, high: int) -> list[int]:
    """At most a dozen whole numbers, 1, 2 or 5 times a power of ten apart.

    >>> _whole_ticks(0, 40)
    [0, 5, 10, 15, 20, 25, 30, 35, 40]
    """
    power = 10 ** max(0, len(str(high - low)) - 2)
    step = next(each * power for each in (1, 2, 5, 10) if high - low <= 11 * each * power)
    return list(range(low, high + 1, step))


def _frame(title: str, points: list[dict[str, Any]], kept: int) -> Any:
    alt = altair()
    names = list(dict.fromkeys(point["series"] for point in points))
    told = series(names, "series", dash=True)
    ends = min(point["epoch"] for point in points), max(point["epoch"] for point in points)
    ticks = alt.Axis(values=_whole_ticks(*ends), format="d")
    across = alt.X("epoch:Q", title="epoch", axis=ticks, scale=alt.Scale(nice=False))
    up = alt.Y("value:Q", title=title, scale=roomy([point["value"] for point in points], above=0.2))
    lines = chart_of(points).mark_line(strokeWidth=1.8).encode(x=across, y=up, **told)
    layers = [lines]
    if len(points) <= FEW * len(names):
        dots = chart_of(points).mark_point(size=24, filled=True, opacity=1)
        layers.append(dots.encode(x=across, y=up, color=told["color"]))
    marked = chart_of([point for point in points if point["epoch"] == kept])
    look = {"shape": "diamond", "size": 130, "filled": True, "opacity": 1, "stroke": "#000000", "strokeWidth": 1.2}
    layers += [marked.mark_point(**look).encode(x=across, y=up, color=told["color"])]
    rule, words = present_rule(kept, "kept", ends)
    return alt.layer(*layers, rule, words).properties(width=WIDTH, height=190)
