"""A measure against the number of training queries, with its interval: would more judgements help?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fliprank.errors import UsageError, WrongTypeError
from fliprank.experiment.curve_results import CurvePoint, LearningCurve
from fliprank.report.drawing import altair, chart_of, framed, heading, series
from fliprank.report.plots.registry import plot
from fliprank.report.result_folder import ResultFolder, intact, number

__all__ = ["learning_curve"]

MOST_TICKS = 12
TEST, TRAINING = "test queries, with 95% interval", "their own training queries"


def _read(folder: ResultFolder) -> Any:
    place = folder.path / "curve.json"
    content = folder.json("curve.json", "curve")
    with intact(place):
        names = ("size", "test", "low", "high", "training", "gain", "p_smallest")
        points = [
            CurvePoint(str(each["ranker"]), int(each["size"]), *(number(each[name]) for name in names[1:]))
            for each in content["points"]
        ]
        said = {str(name): str(told["sentence"]) for name, told in content.get("outlook", {}).items()}
    return _drawn(points, content["measure"], said, training=True)


@plot("learning-curve", "a measure against the number of training queries: would more judgements help?", _read)
def learning_curve(found: LearningCurve, *others: LearningCurve, training: bool = True) -> Any:
    """The measure on test queries with its interval; with `training` also that on the training queries.

    `others` are curves of other rankers, of the same measure, which may have other sizes.
    """
    curves = (found, *others)
    for curve in curves:
        if not isinstance(curve, LearningCurve):
            raise WrongTypeError("found", curve, "a learning curve, such as fr.learning_curve gives")
        if str(curve.measure) != str(found.measure):
            raise UsageError(f"curves of {found.measure} and {curve.measure} do not share an axis")
    points = [point for curve in curves for point in curve.points()]
    said = {ranker: curve.outlook(ranker).sentence for curve in curves for ranker in curve.values}
    return _drawn(points, str(found.measure), said, training)


def _drawn(points: Sequence[CurvePoint], measure: str, said: dict[str, str], training: bool) -> Any:
    if not points:
        raise UsageError("this learning curve has no points to draw")
    alt, kinds = altair(), [TEST, *([TRAINING] if training else [])]
    names, sizes = list(dict.fromkeys(point.ranker for point in points)), sorted({point.size for point in points})
    told = series(names, "ranker", shape=True)
    across = _sizes_axis(sizes)
    up = alt.Y("value:Q", title=measure, scale=alt.Scale(zero=False))
    lines = [
        {"ranker": point.ranker, "size": point.size, "on": kind, "value": value}
        for point in points
        for kind, value in zip(kinds, (point.test, point.training), strict=False)
        if math.isfinite(value)
    ]
    spans = [
        {"ranker": p.ranker, "size": p.size, "low": p.low, "high": p.high}
        for p in points
        if math.isfinite(p.low + p.high)
    ]
    dashes = alt.Scale(domain=kinds, range=[[1, 0], [6, 4]])
    dash = alt.StrokeDash(
        "on:N", title=None, scale=dashes, legend=alt.Legend(orient="top", symbolSize=500) if training else None
    )
    band = chart_of(spans).mark_area(opacity=0.18)
    low = alt.Y("low:Q", title=measure, scale=alt.Scale(zero=False))
    chart = chart_of(lines).encode(x=across, y=up, color=told["color"])
    dots = chart.mark_point(filled=True, size=55, opacity=1).encode(shape=told["shape"])
    layers = [
        band.encode(x=across, y=low, y2="high:Q", color=told["color"]),
        chart.mark_line(strokeWidth=1.9).encode(strokeDash=dash),
        dots,
    ]
    return framed(alt.layer(*layers), heading(f"{measure} by the number of training queries", *_answers(names, said)))


def _sizes_axis(sizes: Sequence[int]) -> Any:
    alt = altair()
    ticks = sizes if len(sizes) <= MOST_TICKS else sizes[::2]
    scale = alt.Scale(type="log", base=2, nice=False, domain=[sizes[0], sizes[-1]], padding=8)
    axis = alt.Axis(values=list(ticks), format=",d")
    return alt.X("size:Q", title="training queries (logarithmic)", scale=scale, axis=axis)


def _answers(names: Sequence[str], said: dict[str, str]) -> list[str]:
    """What each curve says of more judgements."""
    known = [(name, said[name]) for name in names if name in said]
    return [sentence if len(names) == 1 else f"{name}: {sentence}" for name, sentence in known]
