"""Line search by samples, the procedure of Taylor et al. 2006, section 2.2; or by golden section or Brent's method.

From one point, each coordinate is searched on its own. How far their optima lie from the point makes a promising
direction, which is searched last, and the point moves only if something on it is better. Then the scale is reduced.

>>> from fliprank.data.candidates import Candidates
>>> from fliprank.measures import parse_measure
>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[5, 0.3], [9, 0.1], [4, 0.2]])
>>> recorder = Recorder(Linear().prepared(rows, 0).at([0, 1, 0.1]), rows, None, parse_measure("RR"))
>>> Line().run(recorder, None, np.random.default_rng(0))
>>> [epoch.train for epoch in recorder.trail], recorder.stopped
([0.5, 1.0, 1.0, 1.0, 1.0], 'no gain in 3 epochs')
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fliprank.arrays import Floats
from fliprank.errors import UsageError
from fliprank.landscape.direction import reach
from fliprank.objectives.base import Objective
from fliprank.optimize.fit import Recorder
from fliprank.optimize.metric import GAIN, Mapper, Metric, stepped, thread_map, widths_of

__all__ = ["Brent", "Golden", "Line"]

GOLDEN = (np.sqrt(5.0) - 1) / 2


@dataclass(frozen=True)
class Line:
    """Taylor 2006's line search: `samples` points a line, evenly spaced and centred on where the epoch began.

    A coordinate is sampled over its width (`widths_of` with `span`) to either side, the promising direction over its
    own length, both times the scale: 1 at first, times `factor` after each epoch. Of equally good samples the nearest
    is taken. It ends after `epochs`, or after `patience` of them in a row without gain. Coordinates are searched side
    by side on all cores. The paper does not say how many samples, nor how far.
    """

    samples: int = 21
    epochs: int = 24
    span: float = 1.0
    factor: float = 0.85
    patience: int = 3

    def __post_init__(self) -> None:
        if self.samples < 2 or self.epochs < 1 or self.patience < 1:
            raise UsageError("samples is a number from 2; epochs and patience are numbers from 1")
        if not 0 < self.factor <= 1:
            raise UsageError(f"the scale is reduced by a factor above 0 and at most 1, not {self.factor}")

    def run(self, recorder: Recorder, objective: Objective | None, rng: np.random.Generator) -> None:
        """Climb from the model's parameters, or from where the recorder's checkpoint is. The objective is not used."""
        metric, params = Metric.of(recorder), recorder.model.params
        widths, values = widths_of(params, self.span), recorder.state.get("values", params.free_values)
        if not recorder.trail and not recorder.epoch(values, metric.at(values)):
            return
        with thread_map() as mapper:
            while len(recorder.trail) <= self.epochs:
                found = [epoch.objective for epoch in recorder.trail[-self.patience - 1 :]]
                if len(found) > self.patience and max(found) <= found[0] + GAIN:
                    recorder.stopped = f"no gain in {self.patience} epochs"
                    return
                scale = self.factor ** (len(recorder.trail) - 1)
                values, value = self._epoch(metric, values, found[-1], scale, widths, mapper)
                if not recorder.epoch(values, value, scale):
                    return

    def _epoch(
        self, metric: Metric, values: Floats, value: float, scale: float, widths: Floats, mapper: Mapper
    ) -> tuple[Floats, float]:
        """(free values, measure) after a search along each coordinate, and along the promising direction."""

        def search(along: Floats) -> tuple[float, float]:
            return self._search(metric, values, value, scale, along)

        distances = np.array([step for step, _ in mapper(search, np.diag(widths))])
        promising = distances * widths
        if not promising.any():
            return values, value
        step, _ = search(promising)
        moved = stepped(metric.model.params, values, promising, step)
        found = metric.at(moved)
        return (moved, found) if found > value + GAIN else (values, value)

    def _search(self, metric: Metric, values: Floats, value: float, scale: float, along: Floats) -> tuple[float, float]:
        """(how far, measure there) of the best that is found along a line; (0, value) where nothing is better."""
        low, high = reach(metric.model.params, values, along)
        low, high = max(low, -scale), min(high, scale)
        if not low < high:
            return 0.0, value
        step, found = self._best(metric.line(values, along), low, high, scale)
        return (step, found) if found > value + GAIN else (0.0, value)

    def _best(self, function: Callable[[float], float], low: float, high: float, scale: float) -> tuple[float, float]:
        points = np.clip(scale * np.linspace(-1, 1, self.samples), low, high)
        nearest_first = points[np.argsort(np.abs(points), kind="stable")]
        found = [function(float(x)) for x in nearest_first]
        best = int(np.argmax(found))
        return float(nearest_first[best]), found[best]


@dataclass(frozen=True)
class Golden(Line):
    """The same with a search by golden section: `samples` values, each of which makes the bracket smaller.

    The paper's remark on how to be quicker. It is made for functions with one optimum, and a measure has many.
    """

    def _best(self, function: Callable[[float], float], low: float, high: float, scale: float) -> tuple[float, float]:
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_left, at_right = function(left), function(right)
        tried = [(at_left, left), (at_right, right)]
        for _ in range(self.samples - 2):
            if at_left >= at_right:
                high, right, at_right = right, left, at_left
                left = high - GOLDEN * (high - low)
                at_left = function(left)
                tried.append((at_left, left))
            else:
                low, left, at_left = left, right, at_right
                right = low + GOLDEN * (high - low)
                at_right = function(right)
                tried.append((at_right, right))
        value, x = max(tried, key=lambda one: (one[0], -abs(one[1])))
        return float(x), value


@dataclass(frozen=True)
class Brent(Line):
    """The same with SciPy's bounded Brent search (Robertson & Zaragoza 2007, 4.2): at most `samples` values a line."""

    def _best(self, function: Callable[[float], float], low: float, high: float, scale: float) -> tuple[float, float]:
        from scipy.optimize import minimize_scalar

        result = minimize_scalar(
            lambda x: -function(float(x)),
            bounds=(low, high),
            method="bounded",
            options={"maxiter": self.samples, "xatol": 1e-6 * (high - low)},
        )
        return float(result.x), -float(result.fun)
