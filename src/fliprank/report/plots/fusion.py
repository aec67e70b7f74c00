"""The measure over the weight of one of two lists, exactly, and the weights that are statistically as good as the best.

The shaded stretch is where no test tells a weight from the best one: set the weight anywhere in it.
"""

from __future__ import annotations

import csv
from typing import Any, NamedTuple

import numpy as np

from fliprank.arrays import Floats
from fliprank.errors import InputError, UsageError, WrongTypeError
from fliprank.experiment.fusing import Fused
from fliprank.experiment.weight_curve import as_good_range, weight_at
from fliprank.landscape.step_function import StepFunction
from fliprank.models.fusion import Fusion
from fliprank.report.drawing import (
    COLOURS,
    altair,
    as_good_band,
    chart_of,
    framed,
    heading,
    marks,
    present_rule,
    roomy,
    span_text,
)
from fliprank.report.plots.registry import plot
from fliprank.report.plots.step_curves import step_points, steps_shown
from fliprank.report.result_folder import ResultFolder, intact, number

__all__ = ["fusion"]

LOOK = {"best": ("diamond", COLOURS[1], True)}


class _Weights(NamedTuple):
    """A curve to draw: points of the steps, the best stretch, the range that is as good, the tuned weight."""

    measure: str
    x: Floats
    value: Floats
    best: tuple[float, float, float]
    as_good: tuple[float, float]
    lists: tuple[str, ...]
    tuned: float | None


def _read(folder: ResultFolder) -> Any:
    place, found = (
        folder.file("weight.csv", "fuse (of two lists under a weighted sum)"),
        folder.part("curve", "fuse has"),
    )
    with intact(place):
        with open(place, newline="", encoding="utf-8") as lines:
            header, *rows = list(csv.reader(lines))
        if header != ["from", "to", "value"] or not rows:
            raise InputError("expected the columns from, to, value, and a line per step", path=place)
        steps = np.array(rows, np.float64)
        if not np.isfinite(steps).all() or (np.diff(steps[:, 0]) < 0).any():
            raise InputError("weights must be finite numbers that rise", path=place)
    with intact(folder.path / "result.json"):
        best = (number(found["value"]), number(found["low"]), number(found["high"]))
        as_good = (number(found["as_good"][0]), number(found["as_good"][1]))
    x, value = np.append(steps[:, 0], steps[-1, 1]), np.append(steps[:, 2], steps[-1, 2])
    model = folder.model
    lists = model.lists if isinstance(model, Fusion) else ()
    tuned = weight_at(model) if isinstance(model, Fusion) else None
    return _drawn(_Weights(folder.measure, x, value, best, as_good, lists, tuned))


@plot(
    "fusion",
    "a measure over the weight of the second of two lists, and the weights that are as good as the best",
    _read,
)
def fusion(found: Fused | StepFunction, lists: tuple[str, ...] = ()) -> Any:
    """The curve of a `fr.fuse` of two lists under a weighted sum; or that of `weight_curve`, with the lists' names."""
    if isinstance(found, Fused):
        if found.curve is None:
            raise UsageError("there is no curve of one weight: only two lists under a weighted sum have one")
        path: StepFunction = found.curve
        names, tuned = found.model.lists, weight_at(found.model)
    elif isinstance(found, StepFunction):
        path, names, tuned = found, tuple(lists), None
    else:
        raise WrongTypeError("found", found, "what fr.fuse gives, or the curve of a weight")
    best, good = path.maximum, as_good_range(path)
    x, value = steps_shown(path, path.low, path.high)
    return _drawn(_Weights(str(path.measure), x, value, (best.value, best.low, best.high), good[:2], names, tuned))


def _drawn(found: _Weights) -> Any:
    alt = altair()
    value, low, high = found.best
    scale = alt.Scale(domain=[float(found.x[0]), float(found.x[-1])], nice=False)
    second = found.lists[1] if len(found.lists) == 2 else "the second list"
    sides = f" (0: only {found.lists[0]}, 1: only {second})" if len(found.lists) == 2 else ""
    across, ends = (
        alt.X("x:Q", title=f"weight of {second}{sides}", scale=scale),
        (float(found.x[0]), float(found.x[-1])),
    )
    up = alt.Y("value:Q", title=found.measure, scale=roomy(found.value.tolist()))
    line = chart_of(step_points(found.x, found.value)).mark_line(interpolate="step-after", strokeWidth=1.6)
    layers = [*as_good_band(*found.as_good, across), line.encode(x=across, y=up, color=alt.value(COLOURS[0]))]
    layers += [] if found.tuned is None else present_rule(found.tuned, f"tuned {found.tuned:.3g}", ends)
    layers.append(marks([{"x": (low + high) / 2, "value": value, "mark": "best"}], LOOK, across, up))
    title = heading(
        f"{found.measure} over the weight of {second}: best {value:.4f}, from {span_text(low, high)}",
        f"Shaded: statistically as good as the best, {span_text(*found.as_good)} (95%).",
    )
    return framed(alt.layer(*layers), title)
