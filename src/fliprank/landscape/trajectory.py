"""A measure along a line of scores, exactly: a step function and all its optima (Robertson & Zaragoza 2007, 3).

Scores are base + x slope. Every flip is solved for, so the whole line is known: the best value and how wide it is, and
every local optimum.

>>> rows = Candidates.of([0, 1, 0])
>>> path = score_trajectory([3, 1, 0], [0, 1, 0.5], rows, "RR")
>>> path.breaks.tolist(), path.values.tolist(), path.maximum.width
([-2.0, 2.0], [0.3333333333333333, 0.5, 1.0], inf)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.landscape.flips import line_of
from fliprank.landscape.step_function import StepFunction, step_function
from fliprank.landscape.steps import find_steps
from fliprank.landscape.ties import tied_share
from fliprank.measures import Measure, parse_measure

__all__ = ["ScoreTrajectory", "Trajectory", "score_trajectory"]


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory(StepFunction, ABC):
    """A step function that knows the rows it is about, and so the scores at each x."""

    candidates: Candidates

    @abstractmethod
    def scores(self, x: float) -> Floats:
        """The score of each row at x."""

    def at(self, x: float) -> float:
        """The measure at x. On a break documents tie: their order, and so the measure, is that of the tie rule."""
        self._check(x)
        place = int(np.searchsorted(self.breaks, x))
        if x in (self.low, self.high) or (place < len(self.breaks) and self.breaks[place] == x):
            return self.measure.value(self.scores(x), self.candidates)
        return float(self.values[place])

    def tied_share(self, x: float) -> float:
        """The share of pairs that tie at x: if it is 1, the value there is that of the tie rule, not of the scores."""
        return tied_share(self.scores(x), self.candidates)


@dataclass(frozen=True, eq=False, repr=False)
class ScoreTrajectory(Trajectory):
    """The measure of scores base + x slope."""

    base: Floats
    slope: Floats

    def scores(self, x: float) -> Floats:
        return self.base + x * self.slope


@checked
def score_trajectory(
    base: ArrayLike,
    slope: ArrayLike,
    candidates: Candidates,
    measure: str | Measure,
    low: float = -np.inf,
    high: float = np.inf,
    *,
    true_ends: tuple[bool, bool] | None = None,
) -> ScoreTrajectory:
    """The measure, aggregated over queries, of scores base + x slope for all x between `low` and `high`.

    `slope` of a model that is linear along a direction is `model.slope(candidates, direction)`. `true_ends` tells
    whether the line itself ends at `low` and `high`; by default it is cut off at finite ends.
    """
    line, chosen = line_of(base, slope, candidates, low, high), parse_measure(measure)
    found = step_function(find_steps(line, candidates, chosen), chosen, low, high, true_ends=true_ends)
    return ScoreTrajectory(**fields_of(found), candidates=candidates, base=line.base, slope=line.slope)


def fields_of(path: StepFunction) -> dict[str, Any]:
    """What a trajectory takes over from a step function."""
    names = ("measure", "low", "high", "breaks", "values", "steps", "resolution", "true_ends")
    return {name: getattr(path, name) for name in names}
