"""One line search after the other on the measure itself: the state of an ascent, and what a search along a line costs.

Scores go along with the parameters, so that a search of a linear model costs one trajectory and one evaluation. Where
scores are not linear along a direction, the trajectory is bracketed (`landscape.along`) and rows are scored anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from fliprank.arrays import Floats
from fliprank.landscape.direction import reach
from fliprank.landscape.model_trajectory import trajectory
from fliprank.landscape.trajectory import Trajectory, score_trajectory
from fliprank.optimize.metric import GAIN, Metric, stepped, widths_of

__all__ = ["Climb", "Prefer"]

Prefer = Literal["widest", "nearest"]

MOST_HELD = 1 << 28
"""Bytes of slopes that are kept from epoch to epoch."""

RESOLUTION = 1 / 256
"""How closely steps are known along directions that are not linear, as a part of the line."""


class _Place(NamedTuple):
    """Free values, the scores that they give, and what those are worth."""

    values: Floats
    scores: Floats
    worth: float


@dataclass
class Climb:
    """Line searches of one model on one set of candidates."""

    metric: Metric
    shrink: float = 0.0
    prefer: Prefer = "widest"
    slopes: dict[bytes, Floats | None] = field(default_factory=dict)

    def worth(self, values: Floats) -> float:
        """The measure, higher is better, less the penalty."""
        return self.metric.at(values) - self._penalty(values)

    def _penalty(self, values: Floats) -> float:
        return self.shrink * float(np.abs(values).sum()) if self.shrink else 0.0

    def scaled(self, values: Floats) -> Floats:
        """The same ranking with a sum of absolute weights of 1: where there is a penalty, and nothing forbids it."""
        model, size = self.metric.model, float(np.abs(values).sum())
        params = model.params
        bounded = np.isfinite(params.free_lower).any() or np.isfinite(params.free_upper).any()
        if self.shrink == 0 or bounded or not params.free.all() or not model.linear_in_params or size == 0:
            return values
        return values / size

    def epoch(self, begun: Floats, directions: Floats) -> Floats:
        """Where a search along each direction, and along the promising one, comes to."""
        place = first = self._place(begun)
        for along in directions:
            place = self._search(place, along)
        if np.count_nonzero(place.values - begun) > 1:
            place = self._search(place, place.values - begun)
        # Scores went along step by step: what counts is what the model says at the end.
        return place.values if self.worth(place.values) >= first.worth else begun

    def _place(self, values: Floats) -> _Place:
        scores = self.metric.model_at(values).score(self.metric.candidates)
        return _Place(values, scores, self.metric.of_scores(scores) - self._penalty(values))

    def _search(self, place: _Place, along: Floats) -> _Place:
        """Where a line search comes to: here, if nothing on the line is better."""
        params = self.metric.model.params
        low, high = reach(params, place.values, along)
        if not low < high:
            return place
        path = self._path(place, along, low, high)
        if path is None:
            return place
        step = self._best_step(path, place.values, along)
        values, scores = stepped(params, place.values, along, step), path.scores(step)
        worth = self.metric.of_scores(scores) - self._penalty(values)
        return _Place(values, scores, worth) if worth > place.worth + GAIN else place

    def _path(self, place: _Place, along: Floats, low: float, high: float) -> Trajectory | None:
        """The measure along a line; None where a search is in vain: the scores of each query all rise alike."""
        metric = self.metric
        model = metric.model_at(place.values)
        if model.linear_along(along):
            slope = self._slope(place, along)
            if slope is None:
                return None
            return score_trajectory(place.scores, slope, metric.candidates, metric.measure, low, high)
        moving = along != 0
        room = float((2 * widths_of(model.params, 1.0)[moving] / np.abs(along[moving])).min())
        ends = max(low, -room), min(high, room)
        return trajectory(model, metric.candidates, along, metric.measure, *ends, resolution=RESOLUTION)

    def _slope(self, place: _Place, along: Floats) -> Floats | None:
        """How fast scores rise along a direction. Of a linear model it is the same everywhere: kept for axes."""
        key, rows = along.tobytes(), self.metric.candidates
        if key in self.slopes:
            return self.slopes[key]
        slope = self.metric.model_at(place.values).slope(rows, along)
        same = np.append(np.diff(slope) == 0, False)
        same[rows.offsets[1:][rows.sizes > 0] - 1] = True
        found = None if same.all() and self.shrink == 0 else slope
        room = (len(self.slopes) + 1) * 8 * len(rows) <= MOST_HELD
        if room and self.metric.model.linear_in_params and np.count_nonzero(along) == 1:
            self.slopes[key] = found
        return found

    def _best_step(self, path: Trajectory, values: Floats, along: Floats) -> float:
        if self.shrink == 0:
            return path.best_point(self.prefer)
        steps = path.middles()
        moving = np.flatnonzero(along)
        if len(moving) == 1:  # a weight may as well be 0 where its stretch allows
            zero = -values[moving[0]] / along[moving[0]]
            if path.low <= zero <= path.high:
                steps[np.searchsorted(path.breaks, zero)] = zero
        size = np.zeros(len(steps))
        for i in moving:
            size += np.abs(values[i] + steps * along[i])
        return float(steps[np.argmax(self.metric.sign * path.values - self.shrink * size)])
