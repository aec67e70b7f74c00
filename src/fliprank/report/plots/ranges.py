"""Parameters before and after, with the values that are statistically as good: one strip per parameter.

A wide band says that the parameter hardly matters here; a narrow one that the judgements know. An arrow at its end says
that the search ended there, and the band may go on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from fliprank.errors import InputError, UsageError, WrongTypeError
from fliprank.experiment.fusing import Fused
from fliprank.models import Fusion, Model
from fliprank.optimize.fit import Fit
from fliprank.optimize.ranges import Range
from fliprank.report.drawing import COLOURS, WIDTH, altair, chart_of, heading, marks, stacked
from fliprank.report.plots.registry import plot
from fliprank.report.result_folder import ResultFolder, intact, number

__all__ = ["ranges"]

MOST = 24
"""Strips that are drawn: of more parameters, those that moved furthest beside the width of their band."""

LOOK = {"before": ("circle", "#000000", False), "after": ("diamond", COLOURS[1], True)}


class _Strip(NamedTuple):
    """A parameter: (before, after, low, high), where low to high is as good; `opened` ends may lie further out."""

    name: str
    figures: tuple[float, ...]
    opened: tuple[bool, ...] = (False, False)

    @property
    def outside(self) -> bool:
        """Whether the value before is not among those that are as good."""
        before, _, low, high = self.figures
        return not low <= before <= high

    @property
    def moved(self) -> float:
        """How far it moved, in widths of its band."""
        before, after, low, high = self.figures
        return abs(after - before) / (high - low) if high > low else math.inf if after != before else 0.0


def _read(folder: ResultFolder) -> Any:
    listed = folder.part("params", "a result lists parameters where there are at most 1,000")
    with intact(folder.path / "result.json"):
        fitted, spans, opened = listed["fitted"], listed["as_good"], listed.get("as_good_open", {})
        if not spans:
            raise InputError(
                "has no ranges: `tune` and `fuse` find them, `train` does not", path=folder.path / "result.json"
            )
        model = folder.model
        before = _defaults(model) if isinstance(model, Fusion) else listed.get("default") or _defaults(model)
        strips = []
        for name, (low, high) in spans.items():
            figures = (number(value) for value in (before[name], fitted[name], low, high))
            strips.append(_Strip(str(name), tuple(figures), tuple(map(bool, opened.get(name, (False, False))))))
    return _drawn(strips, folder.measure)


@plot("ranges", "parameters before and after, with the values that are statistically as good", _read)
def ranges(found: Fit | Fused, confidence: float = 0.95) -> Any:
    """One strip per free parameter of a fit that knows its rows, or of a fusion; each strip has its own scale."""
    if isinstance(found, Fused):
        fit, spans = found.fit, found.ranges
    elif isinstance(found, Fit):
        if found.rows is None or found.measure is None:
            raise UsageError("this fit does not know its rows: ranges are found by fr.tune and fr.fuse")
        fit, spans = found, found.ranges(confidence)
    else:
        raise WrongTypeError("found", found, "what fr.tune or fr.fuse gives")
    return _drawn(_strips(fit.model, fit.start, spans), str(fit.measure))


def _defaults(model: Model) -> dict[str, float]:
    """The defaults by name; weights of a fusion that rank alike at any size add up to 1, as the fitted ones do."""
    default = model.at(model.params.at(model.params.default))
    values = default.canonical().params.values if isinstance(default, Fusion) else default.params.values
    return dict(zip(model.params.names, values.tolist(), strict=True))


def _strips(model: Model, start: Model | None, spans: dict[str, Range]) -> list[_Strip]:
    params, before = model.params, _defaults(model)
    if start is not None and start.params.names == params.names and not isinstance(model, Fusion):
        before = dict(zip(params.names, start.params.values.tolist(), strict=True))
    return [
        _Strip(name, (before[name], float(params[name]), span.low, span.high), (span.open_low, span.open_high))
        for name, span in spans.items()
    ]


def _drawn(strips: Sequence[_Strip], measure: str) -> Any:
    if not strips:
        raise UsageError("this model has no free parameters")
    chosen = strips
    if len(strips) > MOST:
        furthest = sorted(strips, key=lambda strip: -strip.moved)[:MOST]
        chosen = [strip for strip in strips if strip in furthest]
    moved = sum(strip.outside for strip in strips)
    many = f"{len(strips):,} parameters" if len(strips) > 1 else "One parameter"
    many += f" (the {MOST} that moved furthest)" if len(chosen) < len(strips) else ""
    title = heading(
        f"{many} before and after, and the values that are statistically as good",
        f"Band: no test tells {measure} there from that of the fitted value (95%), the others staying as they are. "
        f"{moved} of {len(strips):,} parameters were outside their band before.",
        "An arrow: the search ended there, and the band may go on."
        if any(any(strip.opened) for strip in chosen)
        else "",
    )
    return stacked([altair().vconcat(*(_strip(each) for each in chosen), spacing=6)], title)


def _strip(strip: _Strip) -> Any:
    """One parameter on its own scale."""
    alt, (before, after, low, high) = altair(), strip.figures
    ends = [value for value in strip.figures if math.isfinite(value)]
    room = 0.06 * (max(ends) - min(ends)) or 0.1 * abs(ends[0]) or 1.0
    scale = alt.Scale(domain=[min(ends) - room, max(ends) + room], nice=False, zero=False)
    x = alt.X("x:Q", title=None, scale=scale, axis=alt.Axis(tickCount=6, grid=False, labelFlush=False, format="~g"))
    y = alt.Y("row:N", title=None, axis=alt.Axis(domain=False, ticks=False, labelLimit=220, labelPadding=8))
    band = chart_of([{"x": low, "x2": high, "row": strip.name}])
    look = {"height": 14, "color": COLOURS[4], "opacity": 0.45, "stroke": COLOURS[0], "strokeWidth": 0.8}
    layers = [band.mark_bar(**look).encode(x=x, x2="x2:Q", y=y)]
    for end, is_open, shape in zip((low, high), strip.opened, ("triangle-left", "triangle-right"), strict=True):
        arrow = chart_of([{"x": end, "row": strip.name}]).mark_point(shape=shape, filled=True, size=60, opacity=1)
        layers += [arrow.encode(x=x, y=y, color=alt.value(COLOURS[0]))] if is_open else []
    points = [{"x": value, "row": strip.name, "mark": mark} for mark, value in (("before", before), ("after", after))]
    layers.append(marks(points, LOOK, x, y))
    return alt.layer(*layers).properties(width=WIDTH - 80, height=24)
