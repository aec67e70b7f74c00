"""The look that all pictures share, on a screen and in print: colours, dashes and shapes, sizes, titles.

Colours are Okabe and Ito's, which colour-blind people tell apart. Nothing depends on colour alone: each series also has
its own dash and its own shape, so that a black and white print says as much. What has an order is drawn from viridis,
whose lightness is ordered too, without its lightest part, which paper swallows: the better, the darker.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from fliprank.errors import MissingExtraError

__all__ = [
    "BETTER",
    "COLOURS",
    "DASHES",
    "GREY",
    "HEIGHT",
    "WIDTH",
    "altair",
    "as_good_band",
    "beside",
    "chart_of",
    "framed",
    "heading",
    "marks",
    "present_rule",
    "roomy",
    "series",
    "span_text",
    "stacked",
    "styled",
]

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"]
GREY = "#666666"
BETTER = ["#440154", "#414487", "#2a788e", "#22a884", "#7ad151"]
"""Viridis from its dark end to where it is still seen on white paper; the first is for the best value."""

DASHES = [[1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [12, 4], [5, 2, 1, 2, 1, 2], [1, 3]]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"]
WIDTH, HEIGHT = 560, 280
TEXT, LARGER, LARGEST = 12, 13, 15
"""Sizes of letters: at the full width of a page of A4, 9 to 11 points."""

LETTERS = 96
"""How many of them are about as wide as a picture."""


def altair() -> Any:
    """Altair, or an error that names the extra."""
    try:
        import altair as alt
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(error.name or "altair", "report") from error
    return alt


def chart_of(values: Sequence[Any]) -> Any:
    """A chart of these records, which are all that is drawn of them."""
    alt = altair()
    return alt.Chart(alt.Data(values=list(values)))


def heading(title: str, *below: str, letters: int = LETTERS) -> Any:
    """What a picture shows, in a sentence, and what else has to be known to read it; broken into lines."""
    lines = [line for each in below if each for line in wrap(each, letters)]
    return altair().TitleParams(wrap(title, letters * TEXT // LARGEST) or [""], subtitle=lines)


def styled(chart: Any) -> Any:
    """The look that all pictures share."""
    axis = {"labelFontSize": TEXT, "titleFontSize": LARGER, "titleFontWeight": "normal", "gridColor": "#eeeeee"}
    legend = {"labelFontSize": TEXT, "titleFontSize": TEXT, "titleFontWeight": "normal", "labelLimit": 320}
    title = {"fontSize": LARGEST, "fontWeight": "normal", "anchor": "start", "frame": "group", "offset": 8}
    return (
        chart.configure_axis(**axis, labelColor="#000000", titleColor="#000000", titleLimit=400)
        .configure_view(stroke="#bbbbbb")
        .configure_legend(**legend, symbolSize=80, symbolStrokeWidth=2)
        .configure_title(**title, subtitleFontSize=TEXT, subtitleColor="#333333", subtitlePadding=4)
        .configure_text(fontSize=TEXT)
    )


def framed(chart: Any, title: Any = None, width: int = WIDTH, height: int = HEIGHT) -> Any:
    """One frame of the usual size, in the usual look."""
    shown = {} if title is None else {"title": title}
    return styled(chart.properties(width=width, height=height, **shown))


def stacked(frames: Sequence[Any], title: Any = None) -> Any:
    """Frames one above the other under one title; one alone is just that."""
    chart = frames[0] if len(frames) == 1 else altair().vconcat(*frames)
    return styled(chart if title is None else chart.properties(title=title))


def beside(frames: Sequence[Any], **shared: str) -> Any:
    """Frames side by side; `shared` says which scales are."""
    alt = altair()
    return styled(frames[0] if len(frames) == 1 else alt.hconcat(*frames).resolve_scale(**shared))


def series(
    names: Sequence[str], field: str, *, dash: bool = False, shape: bool = False, columns: int = 4, legend: bool = True
) -> dict[str, Any]:
    """The encodings by which series are told apart: colour, and with `dash` and `shape` these as well.

    They share one legend above the frame, in the order of `names`; a single series has none.
    """
    alt, many = altair(), len(names)
    looks: dict[str, list[Any]] = {"color": COLOURS, "strokeDash": DASHES, "shape": SHAPES}
    wanted = ["color", *(["strokeDash"] if dash else []), *(["shape"] if shape else [])]
    kinds = {"color": alt.Color, "strokeDash": alt.StrokeDash, "shape": alt.Shape}
    symbol = {"symbolType": "stroke", "symbolSize": 500} if dash and not shape else {}
    shown = alt.Legend(orient="top", columns=columns, symbolOpacity=1, **symbol) if legend and many > 1 else None
    return {
        channel: kinds[channel](
            f"{field}:N",
            sort=list(names),
            title=None,
            legend=shown,
            scale=alt.Scale(domain=list(names), range=[looks[channel][i % len(COLOURS)] for i in range(many)]),
        )
        for channel in wanted
    }


def marks(points: Sequence[dict[str, Any]], look: dict[str, tuple[str, str, bool]], across: Any, up: Any) -> Any:
    """Points with a legend that says what each is: `look` has the shape, the colour and whether it is filled, by name.

    A point has its name under "mark". Names without a point are not in the legend.
    """
    alt = altair()
    names = [name for name in look if any(point["mark"] == name for point in points)]
    shapes, strokes = [look[name][0] for name in names], [look[name][1] for name in names]
    fills = [look[name][1] if look[name][2] else "#ffffff" for name in names]
    legend = alt.Legend(orient="top", columns=4)

    def told(kind: Any, values: list[str]) -> Any:
        return kind("mark:N", sort=names, title=None, legend=legend, scale=alt.Scale(domain=names, range=values))

    return (
        chart_of(points)
        .mark_point(size=80, opacity=1, strokeWidth=1.6)
        .encode(
            x=across,
            y=up,
            shape=told(alt.Shape, shapes),
            stroke=told(alt.Stroke, strokes),
            fill=told(alt.Fill, fills),
        )
    )


def present_rule(x: float, text: str, ends: tuple[float, float]) -> list[Any]:
    """A dashed line across the frame at x, with its name beside it at the top, on the side where there is room."""
    alt = altair()
    here = chart_of([{"x": x, "text": text}])
    side = {"align": "left", "dx": 5} if x - ends[0] < 0.75 * (ends[1] - ends[0]) else {"align": "right", "dx": -5}
    words = here.mark_text(baseline="top", dy=4, y=0, color=GREY, **side)
    return [
        here.mark_rule(color=GREY, strokeDash=[5, 4], strokeWidth=1.4).encode(x=alt.X("x:Q")),
        words.encode(x=alt.X("x:Q"), text="text:N"),
    ]


def roomy(values: Sequence[float], below: float = 0.06, above: float = 0.14) -> Any:
    """A vertical scale with room above a curve for a word, and below it, as parts of the curve's height."""
    low, high = min(values), max(values)
    height = (high - low) or abs(high) or 1.0
    return altair().Scale(zero=False, nice=False, domain=[low - below * height, high + above * height])


def span_text(low: float, high: float) -> str:
    """From where to where, with as many digits as tell the ends apart.

    >>> span_text(0.14285, 0.14291), span_text(0, 1)
    ('0.14285 to 0.14291', '0 to 1')
    """
    for digits in range(3, 12):
        one, two = (f"{end:.{digits}g}" for end in (low, high))
        if one != two:
            break
    return f"{one} to {two}"


def as_good_band(low: float, high: float, across: Any) -> list[Any]:
    """The stretch of the axis that is statistically as good as the best, shaded, with lines at its ends for print."""
    alt = altair()
    band = chart_of([{"x": low, "x2": high}]).mark_rect(color=COLOURS[2], opacity=0.16)
    ends = chart_of([{"x": low}, {"x": high}]).mark_rule(color=COLOURS[2], strokeWidth=1, opacity=0.8)
    return [band.encode(x=across, x2=alt.X2("x2:Q")), ends.encode(x=across)]
