"""Charts of a few series of points: lines or bars over one axis, side by side if asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fliprank.report.drawing import GREY, HEIGHT, WIDTH, altair, beside, chart_of, series

__all__ = ["series_chart"]


def series_chart(
    points: Sequence[Mapping[str, Any]],
    x: str,
    y: str,
    by: str,
    *,
    bars: bool = False,
    panel: str | None = None,
    level: tuple[str, float] | None = None,
) -> Any:
    """`y` over `x`, one colour per value of `by`, one panel per value of `panel`; `level` is a named dashed line.

    Points are records; axes are called as their columns. With "low" and "high" in them, a line has its interval.
    """
    alt = altair()
    names = list(dict.fromkeys(str(point[by]) for point in points))
    told = series(names, "series", dash=not bars)
    panels = list(dict.fromkeys(str(point[panel]) for point in points)) if panel is not None else [""]
    frames = []
    for name in panels:
        own = [point for point in points if panel is None or str(point[panel]) == name]
        ends = ("low", "high")
        shown = [
            {"x": point[x], "y": point[y], "series": str(point[by]), **{end: point.get(end) for end in ends}}
            for point in own
        ]
        chart = chart_of(shown)
        if bars:
            across, aside = alt.X("x:O", title=x, axis=alt.Axis(labelAngle=0)), alt.XOffset("series:N", sort=names)
            layers = [chart.mark_bar().encode(x=across, y=alt.Y("y:Q", title=y), xOffset=aside, **told)]
        else:
            layers = _lines(alt, chart, alt.X("x:Q", title=x, scale=alt.Scale(zero=False)), y, told, shown)
        if level is not None:
            rule = chart_of([{"y": level[1], "text": level[0]}])
            layers += [rule.mark_rule(color=GREY, strokeDash=[5, 4]).encode(y="y:Q")]
            layers += [rule.mark_text(align="left", x=6, dy=-6, color=GREY).encode(y="y:Q", text="text:N")]
        width = WIDTH if len(panels) == 1 else 260
        frames.append(alt.layer(*layers).properties(width=width, height=HEIGHT, title=name))
    return beside(frames, y="shared")


def _lines(
    alt: Any, chart: Any, across: Any, title: str, told: dict[str, Any], shown: list[dict[str, Any]]
) -> list[Any]:
    layers, up = [], alt.Y("y:Q", title=title, scale=alt.Scale(zero=False))
    if any(point["low"] is not None for point in shown):
        layers.append(
            chart.mark_errorbar().encode(x=across, y=alt.Y("low:Q", title=title), y2="high:Q", color=told["color"])
        )
    return [*layers, chart.mark_line(point=True, strokeWidth=2).encode(x=across, y=up, **told)]
