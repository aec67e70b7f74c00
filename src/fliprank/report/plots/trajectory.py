"""The steps of a measure along a line of parameters, with its optima and the flips behind its largest steps.

Robertson & Zaragoza 2007, Figure 2. Diamonds are local optima, the filled one is the best stretch of the line; a dashed
line shows where the model stands. Numbered triangles at the foot are flips, listed below the frame: up for those that
gain as the parameter rises, down for those that lose.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError, WrongTypeError
from fliprank.landscape.model_trajectory import ModelTrajectory
from fliprank.landscape.model_trajectory import trajectory as trajectory_of
from fliprank.landscape.step_flips import Flip
from fliprank.landscape.step_function import StepFunction
from fliprank.measures import Measure
from fliprank.models import Model
from fliprank.optimize.fit import Fit
from fliprank.report.drawing import (
    COLOURS,
    HEIGHT,
    WIDTH,
    altair,
    chart_of,
    framed,
    heading,
    marks,
    present_rule,
    roomy,
    series,
    span_text,
    stacked,
)
from fliprank.report.plots.fitted import named_parameters, rows_of
from fliprank.report.plots.registry import plot
from fliprank.report.plots.step_curves import OPTIMA, marked, shown_range, step_points, steps_shown
from fliprank.report.result_folder import ResultFolder

__all__ = ["trajectory"]

FLIPS = 5
"""Flips that are marked and listed, unless said."""

HALF = 170
"""The height of a frame where there are several."""


def _read(
    folder: ResultFolder, *, rows: Path | None = None, parameters: Sequence[str] = (), measure: str | None = None
) -> Any:
    known = folder.rows(rows)
    return trajectory(_along(folder.model, known, parameters, measure or folder.measure))


@plot("trajectory", "a measure along one parameter, with its optima and the flips behind its largest steps", _read)
def trajectory(
    found: Fit | StepFunction | Sequence[StepFunction],
    parameter: str | None = None,
    measure: str | Measure | None = None,
    *,
    rows: Candidates | None = None,
    axis: str | None = None,
    low: float | None = None,
    high: float | None = None,
    start: float | None = None,
    names: Sequence[str] | None = None,
    overlay: bool = False,
    flips: int = FLIPS,
) -> Any:
    """Trajectories along one line, one above the other, or with `overlay` in one frame.

    `found` is what `fr.landscape.trajectory` or `score_trajectory` gives, once or for several measures; or a fit, whose
    `parameter` moves (its own `measure` and `rows`, unless others are given). `low` to `high` is the part of the line
    that is drawn. The axis shows start + x, where `start` is by default the value of the parameter that moves. Of a
    single trajectory the `flips` that change the measure most are marked and listed.
    """
    paths = _paths(found, parameter, measure, rows)
    ends = shown_range(paths)
    left, right = ends[0] if low is None else low, ends[1] if high is None else high
    if not left < right:
        raise UsageError(f"there is nothing to draw between {left:g} and {right:g}")
    name = next((path.name for path in paths if isinstance(path, ModelTrajectory)), None)
    origin = start if start is not None else _start(paths[0])
    labels = list(names) if names is not None else [str(path.measure) for path in paths]
    if len(labels) != len(paths):
        raise UsageError(f"{len(labels)} names for {len(paths)} trajectories")
    shown = axis or (name if name is not None else "x: steps along the line")
    if overlay and len(paths) > 1:
        return _overlaid(paths, labels, shown, left, right, origin)
    height = HEIGHT if len(paths) == 1 else HALF
    frames = [
        _frame(path, label, shown if path is paths[-1] else None, left, right, origin, height)
        for path, label in zip(paths, labels, strict=True)
    ]
    if len(paths) > 1:
        told = [
            frame.properties(title=heading(_sentence(path, label, shown, origin), _counted(path)))
            for frame, path, label in zip(frames, paths, labels, strict=True)
        ]
        return stacked(told)
    listed = _largest(paths[0], left, right, flips)
    title = heading(_sentence(paths[0], labels[0], shown, origin), _counted(paths[0]))
    if not listed:
        return framed(frames[0], title)
    with_flips = altair().layer(frames[0], *_flip_marks(listed, origin, left, right, height))
    return stacked([with_flips.properties(width=WIDTH, height=height), _flip_list(listed, origin, shown)], title)


def _paths(
    found: Any, parameter: str | None, measure: str | Measure | None, rows: Candidates | None
) -> list[StepFunction]:
    """The trajectories; those of a fit are computed now."""
    if isinstance(found, Fit):
        known, chosen = rows_of(found, rows), measure or found.measure
        return [_along(found.model, known, () if parameter is None else (parameter,), chosen)]
    given = [found] if isinstance(found, StepFunction) else found
    if not isinstance(given, list | tuple) or not given or not all(isinstance(each, StepFunction) for each in given):
        raise WrongTypeError("found", found, "a trajectory, a list of trajectories, or a fit")
    if parameter is not None or measure is not None or rows is not None:
        raise UsageError("parameter, measure and rows go with a fit: a trajectory has its own")
    return list(given)


def _along(model: Model, rows: Candidates, names: Sequence[str], measure: Any) -> ModelTrajectory:
    (name,) = named_parameters(model, names, 1)
    return trajectory_of(model, rows, name, measure)


def _start(path: StepFunction) -> float:
    return float(path.parameter(0.0)) if isinstance(path, ModelTrajectory) and path.name is not None else 0.0


def _sentence(path: StepFunction, label: str, axis: str, start: float) -> str:
    """What is to be seen: where the measure is best, and what it is now."""
    best = path.maximum
    where = span_text(start + best.low, start + best.high)
    now = f", now {path.at(0.0):.4f}" if path.low <= 0 <= path.high and not np.isin(0.0, path.breaks) else ""
    return f"{label} along {axis}: best {best.value:.4f}, from {where}{now}"


def _counted(path: StepFunction) -> str:
    """How many local optima and steps a curve has."""
    optima, steps = path.counts()
    return f"local optima: {optima}; steps: {steps}"


FOOT = 0.14
"""Room below the curve, as a part of its height, for the triangles of flips."""


def _axes(axis: str | None, low: float, high: float, start: float, title: str, values: list[float]) -> tuple[Any, Any]:
    alt = altair()
    ends = alt.Scale(nice=False, zero=False, domain=[start + low, start + high])
    across = alt.X("x:Q", title=axis, scale=ends, axis=alt.Axis(tickCount=8, labelFlush=False))
    return across, alt.Y("value:Q", title=title, scale=roomy(values, FOOT))


def _frame(path: StepFunction, label: str, axis: str | None, low: float, high: float, start: float, height: int) -> Any:
    """One curve with its optima, and a line where the model stands."""
    x, value = steps_shown(path, low, high)
    points = step_points(start + x, value)
    across, up = _axes(axis, low, high, start, label, [point["value"] for point in points])
    line = chart_of(points).mark_line(interpolate="step-after", strokeWidth=1.5, color=COLOURS[0])
    layers = [line.encode(x=across, y=up)]
    ends = (start + low, start + high)
    layers += present_rule(start, f"now {start:.4g}", ends) if low < 0 < high else []
    optima = [
        {"x": start + middle, "value": peak.value, "mark": which} for middle, peak, which in marked(path, low, high)
    ]
    layers += [marks(optima, OPTIMA, across, up)] if optima else []
    return altair().layer(*layers).properties(width=WIDTH, height=height)


def _overlaid(
    paths: Sequence[StepFunction], labels: list[str], axis: str, low: float, high: float, start: float
) -> Any:
    """All curves in one frame, told apart by colour and dash, with the best optima of each."""
    alt, points, optima = altair(), list[dict[str, Any]](), list[dict[str, Any]]()
    for path, label in zip(paths, labels, strict=True):
        x, value = steps_shown(path, low, high)
        points += step_points(start + x, value, measure=label)
        found = marked(path, low, high)
        optima += [{"x": start + at, "value": p.value, "measure": label, "mark": which} for at, p, which in found]
    across, up = _axes(axis, low, high, start, "measure", [point["value"] for point in points])
    line = chart_of(points).mark_line(interpolate="step-after", strokeWidth=1.6)
    layers = [line.encode(x=across, y=up, **series(labels, "measure", dash=True))]
    colour = series(labels, "measure")["color"]
    for which, (shape, _, filled) in OPTIMA.items():
        some = chart_of([mark for mark in optima if mark["mark"] == which])
        dots = some.mark_point(shape=shape, size=60, filled=filled, opacity=1)
        layers.append(dots.encode(x=across, y=up, color=colour))
    layers += present_rule(start, f"now {start:.4g}", (start + low, start + high)) if low < 0 < high else []
    told = [f"{label}: {_counted(path)}" for path, label in zip(paths, labels, strict=True)]
    also = "Diamonds are local optima, filled ones the best of a curve; circles are where a curve is cut off."
    return framed(alt.layer(*layers), heading(f"{', '.join(labels)} along {axis}", *told, also), height=340)


def _largest(path: StepFunction, low: float, high: float, count: int) -> list[Flip]:
    """The flips within the frame that change the mean most, from left to right."""
    if not isinstance(path, ModelTrajectory) or count < 1 or not len(path.flips):
        return []
    inside = np.flatnonzero((path.flips.x > low) & (path.flips.x < high))
    largest = inside[np.argsort(-np.abs(path.flips.mean_gain[inside]), kind="stable")[:count]]
    return sorted((path.flips[int(at)] for at in largest), key=lambda flip: flip.x)


def _flip_marks(flips: list[Flip], start: float, low: float, high: float, height: int) -> list[Any]:
    """A numbered triangle at the foot of the frame for each flip."""
    alt = altair()
    scale = alt.Scale(nice=False, zero=False, domain=[start + low, start + high])
    across = alt.X("x:Q", scale=scale)
    layers = []
    for gains, shape, colour in ((True, "triangle-up", COLOURS[2]), (False, "triangle-down", COLOURS[1])):
        own = [
            {"x": start + flip.x, "flip": number, "gain": flip.mean_gain}
            for number, flip in enumerate(flips, 1)
            if (flip.mean_gain > 0) == gains
        ]
        some = chart_of(own)
        look = {"shape": shape, "filled": True, "size": 70, "color": colour, "opacity": 1}
        layers += [some.mark_point(**look, y=height - 7).encode(x=across)] if own else []
        layers += [some.mark_text(y=height - 20).encode(x=across, text="flip:N")] if own else []
    return layers


def _flip_list(flips: list[Flip], start: float, axis: str) -> Any:
    """What each number stands for: where, which query, which documents, and what the mean gains."""
    alt = altair()
    told = [
        {"row": number, "text": f"{number}  {axis} past {start + flip.x:.4g}: {_in_words(flip)}"}
        for number, flip in enumerate(flips, 1)
    ]
    words = chart_of(told).mark_text(align="left", x=0, limit=WIDTH + 60)
    y = alt.Y("row:O", axis=None)
    frame = words.encode(y=y, text="text:N").properties(width=WIDTH, height=17 * len(told), view={"stroke": None})
    told_of = f"Flips that change the mean most, as {axis} rises (triangle up: a gain, down: a loss)"
    return frame.properties(title=alt.TitleParams(told_of, fontSize=13))


def _in_words(flip: Flip) -> str:
    up, down = ("unjudged" if label != label else f"label {label:g}" for label in (flip.up_label, flip.down_label))
    return f"{flip.mean_gain:+.5f}, query {flip.qid}: {flip.up} ({up}) overtakes {flip.down} ({down})"
