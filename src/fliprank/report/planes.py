"""Pictures of a plane of two parameters: flip boundaries, rankings, regions of optimum (R & Z 2007, Figures 3 to 5).

A few boundaries are drawn one by one, as in the paper. Where there are many, the measure itself is shown as a map, and
of the optima only the strongest, with the boundaries around them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.kernels import kernel
from fliprank.landscape.regions import Region, Regions
from fliprank.report.drawing import COLOURS, GREY, altair, styled

__all__ = ["regions_chart"]

FEW_LINES = 16
"""Up to so many boundaries each is drawn, with its name."""

STRONGEST = 4
"""Optima that are outlined where there are many boundaries."""

NEAREST = 0.06
"""How near two of them may be, as a part of the picture."""

PIXELS = 140
"""Rows and columns of the map."""

OVERLAP = 0.3
"""How far a rectangle of the map reaches under the next, in pixels: so that no seams show."""


def regions_chart(
    found: Regions,
    axes: tuple[str, str] = ("x", "y"),
    *,
    shaded: list[Region] | None = None,
    rankings: bool = False,
    title: str = "",
    size: int = 420,
) -> Any:
    """The regions of a plane: flip boundaries and shaded optima if they are few, else a map of the measure.

    Of a few boundaries (at most 16), those of documents with different labels are bold, with an arrow to the good side;
    with `rankings`, each cell shows the documents in their order. On a map, the strongest optima are outlined and
    numbered. `shaded`: the regions to show instead of the optima.
    """
    alt = altair()
    left, right, bottom, top = found.window
    x = alt.X("x:Q", title=axes[0], scale=alt.Scale(domain=[left, right], nice=False), axis=alt.Axis(grid=False))
    y = alt.Y("y:Q", title=axes[1], scale=alt.Scale(domain=[bottom, top], nice=False), axis=alt.Axis(grid=False))
    if len(found.boundaries) > FEW_LINES:
        optima = found.optima() if shaded is None else shaded
        strongest = _apart(found, optima)
        count = f"{found.measure}: {len(optima):,} regions of optimum among {len(found.cells):,} cells; the strongest:"
        told = [_described(found, number, region) for number, region in enumerate(strongest, 1)]
        heading = alt.TitleParams([title, count] if title else count, subtitle=told, fontSize=13, subtitleFontSize=11)
        layers = _map_layers(alt, found, strongest, x, y)
        return styled(alt.layer(*layers).properties(width=size, height=size, title=heading))
    layers = _line_layers(alt, found, found.optima() if shaded is None else shaded, x, y)
    if rankings:
        texts = alt.Chart(alt.Data(values=_ranking_marks(found))).mark_text(fontSize=11, color=COLOURS[0])
        layers.append(texts.encode(x=x, y=y, text="ranking:N"))
    height = size * (top - bottom) / (right - left)
    return styled(alt.layer(*layers).properties(width=size, height=min(height, 1.3 * size), title=title))


def _apart(found: Regions, optima: list[Region]) -> list[Region]:
    """The strongest optima of which none is too near to a stronger one to be told apart."""
    left, right, bottom, top = found.window
    out, places = list[Region](), list[Floats]()
    for region in optima:
        place = (_middle(found, region) - [left, bottom]) / [right - left, top - bottom]
        if len(out) < STRONGEST and all(np.hypot(*(place - other)) > NEAREST for other in places):
            out.append(region)
            places.append(place)
    return out


def _middle(found: Regions, region: Region) -> Floats:
    """A point of a region: the middle of its largest cell."""
    largest = int(region.cells[np.argmax(found.cells.areas()[region.cells])])
    point: Floats = found.middles[largest]
    return point


def _described(found: Regions, number: int, region: Region) -> str:
    left, right, bottom, top = found.window
    (x, y), part = _middle(found, region), region.area / (right - left) / (top - bottom)
    cut = ", cut off by the window" if region.clipped else ""
    return f"{number}: {region.value:.4f} around ({x:.3g}, {y:.3g}), {100 * part:.2g}% of the window{cut}"


def _map_layers(alt: Any, found: Regions, strongest: list[Region], x: Any, y: Any) -> list[Any]:
    """The measure as colours, and the outlines of the strongest optima with their numbers."""
    runs = alt.Chart(alt.Data(values=_runs(found))).mark_rect(strokeWidth=0)
    scale = alt.Scale(scheme="viridis", reverse=found.measure.smaller_is_better)
    legend = alt.Legend(title=str(found.measure), gradientLength=160, format=".3~g")
    colour = alt.Color("value:Q", scale=scale, legend=legend)
    outlines, marks = [], []
    for number, region in enumerate(strongest, 1):
        sides = found.region[found.segments.cell] == region.number
        for i in np.flatnonzero(sides[:, 0] != sides[:, 1]):
            (x1, y1), (x2, y2) = found.segments.start[i].tolist(), found.segments.end[i].tolist()
            outlines.append({"x": x1, "y": y1, "x2": x2, "y2": y2})
        px, py = _middle(found, region).tolist()
        marks.append({"x": px, "y": py, "number": str(number)})
    rules = alt.Chart(alt.Data(values=outlines)).mark_rule(strokeWidth=1.6, color="#ffffff")
    chart = alt.Chart(alt.Data(values=marks))
    dots = chart.mark_point(filled=True, size=190, color="#ffffff", stroke="#000000", strokeWidth=1, opacity=1)
    numbers = chart.mark_text(fontSize=11, color="#000000")
    return [
        runs.encode(x=x, x2="x2:Q", y=y, y2="y2:Q", color=colour),
        rules.encode(x=x, y=y, x2="x2:Q", y2="y2:Q"),
        dots.encode(x=x, y=y),
        numbers.encode(x=x, y=y, text="number:N"),
    ]


def _runs(found: Regions) -> list[dict[str, float]]:
    """The map as rectangles: neighbours of a row that have one value are one."""
    left, right, bottom, top = found.window
    cells = found.cells
    corner = (cells.corner - [left, bottom]) / [right - left, top - bottom] * PIXELS
    painted = found.values[_paint(cells.begin, corner, PIXELS)]
    wide, high = (right - left) / PIXELS, (top - bottom) / PIXELS
    out = []
    for j, row in enumerate(painted):
        starts = np.flatnonzero(np.append(True, np.abs(np.diff(row)) > 1e-12))
        y, y2 = bottom + j * high, min(bottom + (j + 1 + OVERLAP) * high, top)
        for start, end in zip(starts, [*starts[1:], PIXELS], strict=True):
            x, x2 = left + start * wide, min(left + (end + OVERLAP) * wide, right)
            places = (round(float(place), 6) for place in (x, x2, y, y2))
            out.append(dict(zip(("x", "x2", "y", "y2"), places, strict=True)) | {"value": round(float(row[start]), 6)})
    return out


@kernel
def _paint(begin: Ints, corner: Floats, pixels: int) -> Ints:
    """The cell in which the middle of each pixel lies; corners are on the scale on which pixels are 1 wide."""
    out = np.zeros((pixels, pixels), np.int64)
    for cell in range(len(begin) - 1):
        own = corner[begin[cell] : begin[cell + 1]]
        for j in range(max(0, int(own[:, 1].min() - 0.5)), min(pixels, int(own[:, 1].max() + 0.5) + 1)):
            for i in range(max(0, int(own[:, 0].min() - 0.5)), min(pixels, int(own[:, 0].max() + 0.5) + 1)):
                inside = True
                for a in range(len(own)):
                    b = a + 1 if a + 1 < len(own) else 0
                    turn = (own[b, 0] - own[a, 0]) * (j + 0.5 - own[a, 1])
                    turn -= (own[b, 1] - own[a, 1]) * (i + 0.5 - own[a, 0])
                    inside = inside and turn >= -1e-9
                if inside:
                    out[j, i] = cell
    return out


def _line_layers(alt: Any, found: Regions, shaded: list[Region], x: Any, y: Any) -> list[Any]:
    """Regions shaded, all boundaries, their arrows and their names."""
    layers = []
    for i, region in enumerate(shaded):
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
    return [*layers, halo.encode(x=x, y=y, text="name:N"), text.encode(x=x, y=y, text="name:N")]


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
