"""What pictures of step functions share: which steps can be told apart, how far to draw, which optima to mark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.landscape.step_function import Plateau, StepFunction
from fliprank.report.drawing import COLOURS

__all__ = ["OPTIMA", "marked", "shown_range", "step_points", "steps_shown"]

COLUMNS = 400
"""Columns of a picture in which steps are told apart."""
MOST_MARKED = 12
"""Local optima that are marked on a curve: the best ones..."""
APART = 0.01
"""... of which none is nearer to a better one than this part of the picture."""

OPTIMA = {
    "best": ("diamond", COLOURS[1], True),
    "local optimum": ("diamond", COLOURS[0], False),
    "cut off": ("circle", COLOURS[0], False),
}
"""How optima are drawn: shape, colour, whether it is filled."""


def steps_shown(path: StepFunction, low: float, high: float, columns: int = COLUMNS) -> tuple[Floats, Floats]:
    """(x, value) of a curve to draw stepwise: all steps, or of many the least and greatest value in each column."""
    inside = (path.breaks > low) & (path.breaks < high)
    first = int(np.searchsorted(path.breaks, low, "right"))
    x = np.concatenate([[low], path.breaks[inside]])
    value = path.values[first : first + len(x)]
    if len(x) > 4 * columns:
        some = _standing_out(x, value, low, high, columns)
        x, value = x[some], value[some]
    return np.append(x, high), np.append(value, value[-1])


def _standing_out(x: Floats, value: Floats, low: float, high: float, columns: int) -> Any:
    """Of each column the first step, the last, and those with the least and the greatest value."""
    column = np.minimum(((x - low) / (high - low) * columns).astype(np.int64), columns - 1)
    begin = np.flatnonzero(np.append(True, np.diff(column) > 0))
    kept = [begin, np.append(begin[1:], len(x)) - 1]
    for sign in (1, -1):
        order = np.lexsort((sign * value, column))
        kept.append(order[np.flatnonzero(np.append(True, np.diff(column[order]) > 0))])
    return np.unique(np.concatenate(kept))


def step_points(x: Floats, value: Floats, **others: Any) -> list[dict[str, Any]]:
    """Records of a curve, to be drawn stepwise."""
    return [{"x": a, "value": b, **others} for a, b in zip(x.tolist(), value.tolist(), strict=True)]


def shown_range(paths: Sequence[StepFunction]) -> tuple[float, float]:
    """From where to where to draw: where lines have no end, as far from x = 0 as most of their breaks are."""
    low, high = max(path.low for path in paths), min(path.high for path in paths)
    breaks = np.concatenate([path.breaks for path in paths])
    if np.isfinite(low) and np.isfinite(high):
        return low, high
    room = float(np.quantile(np.abs(breaks), 0.8)) if len(breaks) else 1.0
    return max(low, -room or -1.0), min(high, room or 1.0)


def marked(path: StepFunction, low: float, high: float) -> list[tuple[float, Plateau, str]]:
    """(middle as far as shown, stretch, "best", "local optimum" or "cut off") of the optima to mark."""
    peaks = [(peak, "local optimum") for peak in path.local_maxima()] + [(peak, "cut off") for peak in path.cut_off()]
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
