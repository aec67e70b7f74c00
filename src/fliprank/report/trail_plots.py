"""The chart of a fit: its measure, and where it is known its objective, epoch by epoch, with the kept epoch marked."""

from __future__ import annotations

import math
from typing import Any

from fliprank.errors import UsageError
from fliprank.optimize.fit import Fit
from fliprank.report.plots import COLOURS, GREY, altair, styled

__all__ = ["trail_chart"]

SERIES = {"train": "training queries", "valid": "validation queries"}
"""Columns of the trail that are the measure, and what they are called."""


def trail_chart(fit: Fit) -> Any:
    """The measure on training and validation queries above, the objective below; a dashed line at the kept epoch.

    Figures that are not known are left out, and a frame without any is not drawn.
    """
    alt = altair()
    frames = []
    for title, columns in ((str(fit.measure or "measure"), SERIES), ("objective", {"objective": "objective"})):
        points = [
            {"epoch": epoch.number, "value": value, "series": name}
            for column, name in columns.items()
            for epoch in fit.trail
            if math.isfinite(value := getattr(epoch, column))
        ]
        if points:
            frames.append(_frame(alt, title, points, fit.best.number))
    if not frames:
        raise UsageError("this fit has no trail to draw: none of its epochs was measured")
    frames[0] = frames[0].properties(title=f"{fit.model.kind}: epoch {fit.best.number} is kept")
    return styled(alt.vconcat(*frames) if len(frames) > 1 else frames[0])


def _frame(alt: Any, title: str, points: list[dict[str, Any]], kept: int) -> Any:
    names = list(dict.fromkeys(point["series"] for point in points))
    scale = alt.Scale(domain=names, range=COLOURS[: len(names)])
    legend = alt.Legend(orient="top") if len(names) > 1 else None
    colour = alt.Color("series:N", scale=scale, title=None, legend=legend)
    across = alt.X("epoch:Q", title="epoch", axis=alt.Axis(tickMinStep=1, format="d"))
    up = alt.Y("value:Q", title=title, scale=alt.Scale(zero=False, padding=8))
    lines = alt.Chart(alt.Data(values=points)).mark_line(strokeWidth=1.6, point=len(points) < 40)
    rule = alt.Chart(alt.Data(values=[{"epoch": kept}])).mark_rule(color=GREY, strokeDash=[4, 3])
    best = alt.Chart(alt.Data(values=[point for point in points if point["epoch"] == kept]))
    marked = best.mark_point(shape="diamond", size=90, filled=True, opacity=1)
    layers = [lines.encode(x=across, y=up, color=colour), rule.encode(x=across)]
    return alt.layer(*layers, marked.encode(x=across, y=up, color=colour)).properties(width=620, height=200)
