"""The chart of a learning curve: one line per ranker over a logarithmic axis of sizes, its interval as a band."""

from __future__ import annotations

from typing import Any

from fliprank.experiment.curve_results import LearningCurve
from fliprank.report.plots import COLOURS, altair, styled

__all__ = ["curve_chart"]


def curve_chart(curve: LearningCurve, *others: LearningCurve, training: bool = True) -> Any:
    """The measure on test queries; with `training` also that on the training queries, dashed.

    `others` are curves of other rankers, of the same measure, which may have other sizes.
    """
    alt = altair()
    curves = (curve, *others)
    names, sizes = [name for each in curves for name in each.values], sorted({n for each in curves for n in each.sizes})
    colour = alt.Color(
        "ranker:N",
        title=None,
        scale=alt.Scale(domain=names, range=[COLOURS[i % len(COLOURS)] for i in range(len(names))]),
        legend=alt.Legend(orient="top", columns=4) if len(names) > 1 else None,
    )
    ticks = sizes if len(sizes) <= 16 else sizes[::2]
    scale = alt.Scale(type="log", base=2, nice=False, domain=[sizes[0], sizes[-1]])
    x = alt.X("size:Q", title="training queries", scale=scale, axis=alt.Axis(values=ticks, format="d"))
    scale = alt.Scale(zero=False)
    shown = ("ranker", "size", "test", "low", "high", "training")
    values = [{name: getattr(point, name) for name in shown} for each in curves for point in each.points()]
    chart = alt.Chart(alt.Data(values=values)).encode(x=x, color=colour)
    band = chart.mark_area(opacity=0.2).encode(
        y=alt.Y("low:Q", title=str(curve.measure), scale=scale), y2="high:Q", fill=colour
    )
    y = alt.Y("test:Q", scale=scale)
    layers = [band, chart.mark_line(strokeWidth=2).encode(y=y), chart.mark_point(filled=True, size=40).encode(y=y)]
    if training:
        dashed = chart.mark_line(strokeWidth=1.2, strokeDash=[5, 4], opacity=0.8)
        layers.append(dashed.encode(y=alt.Y("training:Q", scale=scale)))
    told = "on test queries, 95% interval" + ("; dashed: on the training queries" if training else "")
    heading = alt.TitleParams(told, fontSize=11)
    return styled(alt.layer(*layers).properties(width=620, height=340, title=heading))
