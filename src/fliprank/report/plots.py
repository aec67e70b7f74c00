"""Pictures of the landscape: trajectories and surfaces, drawn by Altair and written by vl-convert without a browser.

Colours are Okabe and Ito's, which colour-blind people tell apart, and viridis for what has an order.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.files import StrPath, atomic_write
from fliprank.errors import MissingExtraError, UsageError
from fliprank.experiment.fit_folder import json_text
from fliprank.landscape.step_function import Plateau, StepFunction
from fliprank.report.contours import contours, levels_of

if TYPE_CHECKING:
    from fliprank.landscape.surface import Surface

__all__ = [
    "COLOURS",
    "altair",
    "shown_range",
    "steps_shown",
    "styled",
    "surface_chart",
    "trajectory_chart",
    "write_chart",
]

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"]
GREY = "#777777"
PICTURES = (".svg", ".png", ".html")
COLUMNS = 400
"""Columns of a picture in which steps are told apart."""
MOST_MARKED = 12
"""Local optima that are marked on a curve: the best ones..."""
APART = 0.01
"""... of which none is nearer to a better one than this part of the picture."""


def altair() -> Any:
    """Altair, or an error that names the extra."""
    try:
        import altair as alt
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(error.name or "altair", "report") from error
    return alt


def write_chart(chart: Any, path: StrPath, scale: float = 2.0) -> None:
    """Write a chart as .svg, .png or .html (which holds all that it needs), by the name's ending."""
    altair()
    import vl_convert

    name, spec = str(path), _drawable(json_text(chart.to_dict(), indent=None))
    if name.endswith(".svg"):
        data = _renumbered(_LONG.sub(_rounded, vl_convert.vegalite_to_svg(spec))).encode()
    elif name.endswith(".png"):
        data = _signed(vl_convert.vegalite_to_png(spec, scale=scale))
    elif name.endswith(".html"):
        data = _page(spec).encode()
    else:
        raise UsageError(f"{name}: pictures are written as {', '.join(PICTURES)}")
    with atomic_write(path) as file:
        file.write(data)


_ESCAPE = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\\\[uxbfv0-9]|\\.")


def _drawable(spec: str) -> str:
    """JSON whose strings an SVG can hold: without control characters and halves of surrogate pairs.

    A backslash that would escape one is replaced too: Vega reads some strings as JavaScript does.
    """

    def shown(found: re.Match[str]) -> str:
        escape = found[0].lower()
        if len(escape) == 3:
            return "\\ufffd" + found[0][2]
        code = int(escape[2:], 16) if len(escape) == 6 else ord(" ")
        allowed = code >= 32 and not 0xD800 <= code < 0xE000 and code < 0xFFFE
        return found[0] if (allowed or code in (9, 10, 13)) and escape not in ("\\b", "\\f") else "\\ufffd"

    return _ESCAPE.sub(shown, spec)


def _page(spec: str) -> str:
    """A page that holds all it needs. Names come from files: none of them may end the script that they stand in."""
    import vl_convert

    blank = '{"mark":"point","description":"the spec of a chart"}'
    page: str = vl_convert.vegalite_to_html(blank, bundle=True)
    before, found, after = page.partition(blank)
    if not found:
        raise RuntimeError("vl-convert no longer writes the spec of a chart as it is given")
    return f"{before}{spec.replace('<', chr(92) + 'u003c')}{after}\n<!-- written by fliprank -->\n"


def _signed(png: bytes) -> bytes:
    """The picture with a note of who wrote it, after its first chunk: a command replaces no file of somebody else."""
    note = b"tEXtSoftware\0fliprank"
    chunk = (len(note) - 4).to_bytes(4) + note + zlib.crc32(note).to_bytes(4)
    return png[:33] + chunk + png[33:]


_LONG = re.compile(r' (?:d|transform)="[^"]*"')
"""Attributes that hold coordinates."""


def _rounded(found: re.Match[str]) -> str:
    """Coordinates to a hundredth of a pixel: a third of the size, and nobody sees it."""
    return re.sub(r"(\.\d\d)\d+", r"\1", found[0])


_NUMBERED = re.compile(r'(?:(?<=id=")|(?<=url\(#))(clip|gradient_)\d+')
"""What Vega numbers on and on while a process draws."""


def _renumbered(svg: str) -> str:
    """Numbers from 0 in each picture: drawn again it is the same to the last byte, whatever was drawn before."""
    known: dict[str, str] = {}
    return _NUMBERED.sub(lambda found: known.setdefault(found[0], f"{found[1]}{len(known)}"), svg)


def styled(chart: Any) -> Any:
    """The look that all pictures share."""
    axis = {"labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal", "gridColor": "#eeeeee"}
    return (
        chart.configure_axis(**axis)
        .configure_view(stroke="#bbbbbb")
        .configure_legend(labelFontSize=11, titleFontSize=11, titleFontWeight="normal", labelLimit=320)
        .configure_title(fontSize=13, fontWeight="normal", anchor="start")
    )


def steps_shown(path: StepFunction, low: float, high: float, columns: int = COLUMNS) -> tuple[Floats, Floats]:
    """(x, value) of a curve to draw stepwise: all steps, or of many the least and greatest value in each column."""
    inside = (path.breaks > low) & (path.breaks < high)
    first = int(np.searchsorted(path.breaks, low, "right"))
    x = np.concatenate([[low], path.breaks[inside]])
    value = path.values[first : first + len(x)]
    if len(x) > 4 * columns:
        column = np.minimum(((x - low) / (high - low) * columns).astype(np.int64), columns - 1)
        begin = np.flatnonzero(np.append(True, np.diff(column) > 0))
        kept = [begin, np.append(begin[1:], len(x)) - 1]
        for sign in (1, -1):
            order = np.lexsort((sign * value, column))
            kept.append(order[np.flatnonzero(np.append(True, np.diff(column[order]) > 0))])
        some = np.unique(np.concatenate(kept))
        x, value = x[some], value[some]
    return np.append(x, high), np.append(value, value[-1])


def trajectory_chart(
    paths: Sequence[StepFunction],
    axis: str,
    low: float,
    high: float,
    *,
    start: float = 0.0,
    names: Sequence[str] | None = None,
    overlay: bool = False,
    band: tuple[float, float] | None = None,
) -> Any:
    """Trajectories of several measures along one line, one above the other, or with `overlay` in one frame.

    The axis shows start + x: the value of the parameter that moves. Diamonds mark local optima, a filled one the best
    stretch, a circle a stretch that is better than its neighbour but cut off. If x = 0 lies within, a dashed line shows
    the present value. The titles count local optima and steps, as lower bounds where these are not exact. What is
    statistically as good as the best is shaded (`band`, from x to x), and named in the title.
    """
    alt = altair()
    labels = list(names or (str(path.measure) for path in paths))
    legend = alt.Legend(orient="top", columns=len(labels)) if overlay else None
    scale = alt.Scale(domain=labels, range=[COLOURS[i % len(COLOURS)] for i in range(len(labels))])
    colour = alt.Color("measure:N", scale=scale, title=None, legend=legend)
    frames = []
    for i, (path, label) in enumerate(zip(paths, labels, strict=True)):
        shown = axis if overlay or i == len(labels) - 1 else None
        ends = alt.Scale(nice=False, domain=[start + low, start + high])
        across = alt.X("x:Q", title=shown, scale=ends, axis=alt.Axis(tickCount=10, labelFlush=False))
        up = alt.Y("value:Q", title="measure" if overlay else label, scale=alt.Scale(zero=False, padding=8))
        curve, marks = _curve(path, label, low, high, start)
        lines = alt.Chart(alt.Data(values=curve)).mark_line(interpolate="step-after", strokeWidth=1.4)
        layer = [lines.encode(x=across, y=up, color=colour)]
        if band is not None:
            ends_of = {"x": start + band[0], "x2": start + band[1]}
            shade = alt.Chart(alt.Data(values=[ends_of])).mark_rect(color=COLOURS[2], opacity=0.15)
            layer.insert(0, shade.encode(x=across, x2="x2:Q"))
        for which, shape in (("local", "diamond"), ("cut off", "circle"), ("best", "diamond")):
            some = alt.Chart(alt.Data(values=[mark for mark in marks if mark["which"] == which]))
            best = which == "best"
            point = some.mark_point(shape=shape, size=70 if best else 45, filled=best, opacity=1)
            layer.append(point.encode(x=across, y=up, color=colour))
        if low < 0 < high and not (overlay and i):
            here = alt.Chart(alt.Data(values=[{"x": start}])).mark_rule(color=GREY, strokeDash=[4, 3])
            layer.append(here.encode(x="x:Q"))
        frames.append(alt.layer(*layer))
    shaded = "" if band is None else f"; shaded: as good as the best, {start + band[0]:.3g} to {start + band[1]:.3g}"
    counted = [_counted(path) + shaded for path in paths]
    if overlay:
        told = [f"{label}: {count}" for label, count in zip(labels, counted, strict=True)]
        heading = alt.TitleParams(told, fontSize=11)
        return styled(alt.layer(*frames).properties(width=620, height=340, title=heading))
    height = 260 if len(frames) == 1 else 170
    titles = [alt.TitleParams(count, fontSize=11) for count in counted]
    sized = (f.properties(width=620, height=height, title=title) for f, title in zip(frames, titles, strict=True))
    return styled(alt.vconcat(*sized))


def _counted(path: StepFunction) -> str:
    """How many local optima and steps a curve has."""
    optima, steps = path.counts()
    return f"local optima: {optima}; steps: {steps}"


def _curve(
    path: StepFunction, label: str, low: float, high: float, start: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The points of a curve, and the optima to mark on it."""
    points = zip(*(part.tolist() for part in steps_shown(path, low, high)), strict=True)
    curve = [{"x": start + x, "value": value, "measure": label} for x, value in points]
    marks = [
        {"x": start + middle, "value": peak.value, "measure": label, "which": which}
        for middle, peak, which in _marked(path, low, high)
    ]
    return curve, marks


def shown_range(paths: Sequence[StepFunction]) -> tuple[float, float]:
    """From where to where to draw: where lines have no end, as far from x = 0 as most of their breaks are."""
    low, high = max(path.low for path in paths), min(path.high for path in paths)
    breaks = np.concatenate([path.breaks for path in paths])
    if np.isfinite(low) and np.isfinite(high):
        return low, high
    room = float(np.quantile(np.abs(breaks), 0.8)) if len(breaks) else 1.0
    return max(low, -room or -1.0), min(high, room or 1.0)


def _marked(path: StepFunction, low: float, high: float) -> list[tuple[float, Plateau, str]]:
    """(middle as far as shown, stretch, "best", "local" or "cut off") of the optima to mark."""
    peaks = [(peak, "local") for peak in path.local_maxima()] + [(peak, "cut off") for peak in path.cut_off()]
    peaks = [(peak, which) for peak, which in peaks if peak.high > low and peak.low < high]
    peaks.sort(key=lambda each: -path.measure.sign * each[0].value)
    best = path.maximum.value
    out: list[tuple[float, Plateau, str]] = []
    for peak, which in peaks:
        middle = (max(peak.low, low) + min(peak.high, high)) / 2
        apart = all(abs(middle - other[0]) > APART * (high - low) for other in out)
        if apart and len(out) < MOST_MARKED:
            out.append((middle, peak, "best" if abs(peak.value - best) <= 1e-12 * max(1.0, abs(best)) else which))
    return out


def surface_chart(surfaces: Sequence[Surface], titles: Sequence[str], here: tuple[float, float] | None = None) -> Any:
    """Contours over two parameters side by side, as in Figure 1 of Taylor et al. 2006.

    A diamond marks the best point of each grid, a cross the point `here`: where the model stands.
    """
    alt = altair()
    if any(len(surface.axes) != 2 for surface in surfaces):
        raise UsageError("contours are drawn over two parameters")
    panels = []
    for surface, title in zip(surfaces, titles, strict=True):
        lines = [
            {"x": a, "y": b, "level": level, "line": f"{level}:{number}", "order": order}
            for level in levels_of(surface.values).tolist()
            for number, line in enumerate(contours(surface.axes[0], surface.axes[1], surface.values.T, level))
            for order, (a, b) in enumerate(np.round(line, 6).tolist())
        ]
        shown = {"zero": False, "nice": False}
        x = alt.X("x:Q", title=surface.parameters[0], scale=alt.Scale(domain=_ends(surface.axes[0]), **shown))
        y = alt.Y("y:Q", title=surface.parameters[1], scale=alt.Scale(domain=_ends(surface.axes[1]), **shown))
        # A few steep points at the edge should not take all colours for themselves.
        ends = np.nanquantile(surface.values, [0.05, 1.0] if surface.larger_is_better else [0.0, 0.95]).tolist()
        scale = alt.Scale(scheme="viridis", domain=ends, clamp=True, reverse=not surface.larger_is_better)
        legend = alt.Legend(orient="bottom", tickCount=5, gradientLength=200, title=None, format=".3~g")
        level = alt.Color("level:Q", scale=scale, legend=legend)
        curves = alt.Chart(alt.Data(values=lines)).mark_line(strokeWidth=1.5)
        best = alt.Chart(alt.Data(values=[dict(zip("xy", surface.best[:2], strict=True))]))
        layer = [
            curves.encode(x=x, y=y, color=level, detail="line:N", order="order:Q"),
            best.mark_point(shape="diamond", size=90, filled=True, color=COLOURS[1], opacity=1).encode(x=x, y=y),
        ]
        if here is not None:
            point = alt.Chart(alt.Data(values=[dict(zip("xy", here, strict=True))]))
            layer.append(point.mark_point(shape="cross", size=90, color="#000000", opacity=1).encode(x=x, y=y))
        told = [f"{surface.of}: best {surface.best[2]:.4f}"]
        heading = alt.TitleParams(title, subtitle=told, fontSize=13, subtitleFontSize=11)
        panels.append(alt.layer(*layer).properties(width=260, height=260, title=heading))
    return styled(alt.hconcat(*panels).resolve_scale(color="independent"))


def _ends(values: Floats) -> list[float]:
    return [float(values.min()), float(values.max())]
