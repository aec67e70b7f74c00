"""Pictures of a plane of two parameters: flip boundaries, rankings, regions of optimum (R & Z 2007, Figures 3 to 5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.landscape.regions import Region, Regions
from fliprank.report.plots import COLOURS, GREY, altair, styled

__all__ = ["regions_chart"]


def regions_chart(
    found: Regions,
    axes: tuple[str, str] = ("x", "y"),
    *,
    shaded: list[Region] | None = None,
    rankings: bool = False,
    title: str = "",
    size: int = 420,
) -> Any:
    """Flip boundaries (bold where labels differ, with an arrow to the good side), and some regions shaded.

    With `rankings`, each cell shows the documents in their order: for a few documents of one query.
    """
    alt = altair()
    left, right, bottom, top = found.window
    x = alt.X("x:Q", title=axes[0], scale=alt.Scale(domain=[left, right], nice=False), axis=alt.Axis(grid=False))
    y = alt.Y("y:Q", title=axes[1], scale=alt.Scale(domain=[bottom, top], nice=False), axis=alt.Axis(grid=False))
    layers = []
    for i, region in enumerate(shaded if shaded is not None else found.optima()):
        for cell in region.cells:
            layers.append(_filled(alt, found.polygon(int(cell)), COLOURS[4 if i == 0 else 5], x, y))
    lines, arrows, names = _boundary_marks(found)
    for bold in (False, True):
        some = [mark for mark in lines if mark["bold"] == bold]
        rule = alt.Chart(alt.Data(values=some)).mark_rule(
            color="#222222" if bold else GREY, strokeWidth=2 if bold else 1
        )
        layers.append(rule.encode(x=x, y=y, x2="x2:Q", y2="y2:Q"))
    shaft = alt.Chart(alt.Data(values=arrows)).mark_rule(color=COLOURS[1], strokeWidth=1.5)
    layers.append(shaft.encode(x=x, y=y, x2="x2:Q", y2="y2:Q"))
    head = alt.Chart(alt.Data(values=arrows)).mark_point(shape="triangle-up", filled=True, size=45, color=COLOURS[1])
    angle = alt.Angle("angle:Q", scale=alt.Scale(domain=[0, 360], range=[0, 360]))
    layers.append(head.encode(x=alt.X("x2:Q"), y=alt.Y("y2:Q"), angle=angle))
    text = alt.Chart(alt.Data(values=names)).mark_text(fontSize=12, fontStyle="italic", color="#222222")
    halo = alt.Chart(alt.Data(values=names)).mark_text(
        fontSize=12, fontStyle="italic", stroke="white", strokeWidth=4, color="white"
    )
    layers += [halo.encode(x=x, y=y, text="name:N"), text.encode(x=x, y=y, text="name:N")]
    if rankings:
        shown = alt.Chart(alt.Data(values=_ranking_marks(found))).mark_text(fontSize=11, color=COLOURS[0])
        layers.append(shown.encode(x=x, y=y, text="ranking:N"))
    height = size * (top - bottom) / (right - left)
    return styled(alt.layer(*layers).properties(width=size, height=min(height, 1.3 * size), title=title))


def _filled(alt: Any, polygon: Floats, colour: str, x: Any, y: Any) -> Any:
    """A convex polygon, which Vega-Lite can only fill as a closed line."""
    points = [{"x": a, "y": b, "order": i} for i, (a, b) in enumerate([*polygon.tolist(), polygon[0].tolist()])]
    mark = alt.Chart(alt.Data(values=points)).mark_line(filled=True, fill=colour, stroke=colour, fillOpacity=0.55)
    return mark.encode(x=x, y=y, order="order:Q")


def _boundary_marks(found: Regions) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """The boundaries within the window, their arrows to the good side, and their names."""
    lines, arrows, names = [], [], []
    left, right, bottom, top = found.window
    for i, (a, b, c) in enumerate(found.boundaries.line.tolist()):
        ends = _clipped(a, b, c, found.window)
        kind = int(found.boundaries.kind[found.boundaries.begin[i]])
        lines.append({"x": ends[0][0], "y": ends[0][1], "x2": ends[1][0], "y2": ends[1][1], "bold": kind != 0})
        for share in (0.12, 0.88) if kind else ():
            x, y = (float(one + share * (two - one)) for one, two in zip(*ends, strict=True))
            step, tall = 0.035 * (right - left) * kind, (top - bottom) / (right - left)
            angle = np.degrees(np.arctan2(a * kind, b * kind / max(tall, 1e-9) * min(tall, 1.3)))
            arrows.append({"x": x, "y": y, "x2": x + step * a, "y2": y + step * b, "angle": float(angle) % 360})
        share = 0.05 if kind else 0.04
        x, y = (float(one + share * (two - one)) for one, two in zip(*ends, strict=True))
        names.append({"x": x, "y": y, "name": found.boundaries.name(i)})
    return lines, arrows, names


def _clipped(
    a: float, b: float, c: float, window: tuple[float, float, float, float]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The two points where a line that crosses the window meets its border."""
    left, right, bottom, top = window
    found = []
    if b:
        found += [(x, -(a * x + c) / b) for x in (left, right)]
    if a:
        found += [(-(b * y + c) / a, y) for y in (bottom, top)]
    slack = 1e-9 * (right - left + top - bottom)
    inside = [p for p in found if left - slack <= p[0] <= right + slack and bottom - slack <= p[1] <= top + slack]
    return min(inside), max(inside)


def _ranking_marks(found: Regions) -> list[dict[str, Any]]:
    ids, areas = found.candidates.docids, found.cells.areas()
    least = 0.002 * areas.sum()
    marks = []
    for cell in np.flatnonzero(areas > least).tolist():
        left, right, bottom, top = found.window
        x, y = _roomy(found.polygon(cell), 0.08 * (right - left), 0.016 * (top - bottom))
        documents = (ids[row] if ids is not None else str(row + 1) for row in found.ranking(cell))
        marks.append({"x": x, "y": y, "ranking": "".join(documents)})
    return marks


def _roomy(polygon: Floats, wide: float, high: float) -> tuple[float, float]:
    """Where a text of this size fits: as near to the middle as there is room, or else where there is most."""
    bottom, top = polygon[:, 1].min(), polygon[:, 1].max()
    margin = min(high, 0.45 * (top - bottom))
    places = []
    for y in np.linspace(bottom + margin, top - margin, 21):
        ahead = np.roll(polygon, -1, axis=0)
        cut = (polygon[:, 1] <= y) != (ahead[:, 1] <= y)
        one, two = polygon[cut], ahead[cut]
        x = one[:, 0] + (y - one[:, 1]) / (two[:, 1] - one[:, 1]) * (two[:, 0] - one[:, 0])
        away = abs(y - (bottom + top) / 2)
        places.append((min(np.ptp(x), wide), -away, float(x.mean()), float(y)))
    return max(places)[2:]
