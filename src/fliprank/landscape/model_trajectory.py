"""A measure of a model along a line through its parameters (Robertson & Zaragoza 2007, section 3).

Where the model's scores are linear along the line, the trajectory is exact: weights of features, and whatever
`Model.linear_along` says. Elsewhere (k and b of BM25F, smoothing, the first layer of a net) the model is scored at
points of the line, and the flips between neighbouring points are found: see `samples`.

>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[5, 0.3], [9, 0.1], [4, 0.2]], docids=["a", "b", "c"])
>>> path = trajectory(Linear().prepared(rows, 0).at([0, 1, 0.5]), rows, "w.2", "RR")
>>> path.values.tolist(), path.breaks.round(3).tolist(), round(path.parameter(0.25), 3)
([0.3333333333333333, 0.5, 1.0], [-0.878, 0.256], 0.75)
>>> flip = path.flips[0]
>>> flip.up, flip.down, flip.gain, flip.kind
('a', 'b', 0.5, 'good')
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import overload

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import UsageError
from fliprank.landscape.direction import Direction, direction_of, finite_reach, moved, reach
from fliprank.landscape.samples import LEAST_CELLS, PairSwaps, Samples, find_swaps, sample_steps
from fliprank.landscape.step_flips import StepFlips
from fliprank.landscape.step_function import step_function
from fliprank.landscape.steps import Steps
from fliprank.landscape.trajectory import ScoreTrajectory, Trajectory, fields_of, score_trajectory
from fliprank.measures import Measure, parse_measure
from fliprank.models.base import Model, describe

__all__ = ["ModelTrajectory", "between", "model_steps", "trajectory"]

RESOLUTION = 1 / 128
"""The width of the cells in which flips are looked for where scores are not linear, as a part of the line."""

BLOCK = 1 << 24
"""Scores that are held at a time."""


@dataclass(frozen=True, eq=False, repr=False)
class ModelTrajectory(Trajectory):
    """The measure of a model as its free parameters move to values + x `along`; x = 0 is the model as it stands."""

    model: Model
    along: Floats
    line: ScoreTrajectory | None = field(default=None, repr=False)

    def scores(self, x: float) -> Floats:
        return self.model_at(x).score(self.candidates) if self.line is None else self.line.scores(x)

    def model_at(self, x: float) -> Model:
        """The model x further along."""
        return self.model.at(moved(self.model.params, self.along, x))

    @property
    def name(self) -> str | None:
        """The parameter that moves, if it is one alone."""
        moving = np.flatnonzero(self.along)
        return self.model.params.free_names[int(moving[0])] if len(moving) == 1 else None

    @overload
    def parameter(self, x: float) -> float: ...
    @overload
    def parameter(self, x: Floats) -> Floats: ...
    def parameter(self, x: Floats | float) -> Floats | float:
        """The value at x of the one parameter that moves."""
        value, rate = self._moving()
        return value + x * rate

    def offset(self, value: float) -> float:
        """The x at which the one parameter that moves has this value."""
        start, rate = self._moving()
        return (value - start) / rate

    def _moving(self) -> tuple[float, float]:
        if self.name is None:
            raise UsageError("several parameters move along this line: see model_at(x).params for their values")
        slot = int(np.flatnonzero(self.along)[0])
        return float(self.model.params.free_values[slot]), float(self.along[slot])

    @property
    def value(self) -> float:
        """The measure of the model as it stands."""
        return self.at(0.0)

    def swaps(self, queries: Ints) -> PairSwaps:
        """All swaps of documents of these queries along a line on which scores are not linear; rows as in `select`."""
        rows, points = self.candidates.select(queries), _points(self.low, self.high, self.resolution / self._length)
        scores = np.concatenate([part for _, part in _samples(self.model, self.along, rows, points)], axis=1)
        return find_swaps(Samples(points, scores), rows, np.ones(len(rows), bool))

    @property
    def _length(self) -> float:
        return self.high - self.low

    @cached_property
    def flips(self) -> StepFlips:
        """The flips to which the measure responds, those that gain most first."""
        return StepFlips(self)


def trajectory(
    model: Model,
    candidates: Candidates,
    direction: Direction,
    measure: str | Measure = DEFAULT_MEASURE,
    low: float | None = None,
    high: float | None = None,
    *,
    resolution: float = RESOLUTION,
) -> ModelTrajectory:
    """The measure for all x between `low` and `high`: by default as far as the parameters' bounds allow.

    `direction` is the name of a free parameter, {name: share} for several, or a vector of all free parameters. If
    scores are not linear along it, they are computed at points that are `resolution` times (high - low) apart, and
    where there are no bounds, the line is cut off where some parameter has moved by twice its size (but at least by 2).
    """
    chosen, along = parse_measure(measure), direction_of(model.params, direction)
    if not along.any():
        raise UsageError("this direction leads nowhere: it moves no parameter")
    exact = model.linear_along(along)
    begin, end, true_ends = _stretch(model, along, low, high, exact)
    if exact:
        base, slope = model.score(candidates), model.slope(candidates, along)
        line = score_trajectory(base, slope, candidates, chosen, begin, end, true_ends=true_ends)
        return ModelTrajectory(**fields_of(line), candidates=candidates, model=model, along=along, line=line)
    steps, width = model_steps(model, candidates, along, chosen, begin, end, resolution)
    found = step_function(steps, chosen, begin, end, resolution=width, true_ends=true_ends)
    return ModelTrajectory(**fields_of(found), candidates=candidates, model=model, along=along)


def model_steps(
    model: Model, candidates: Candidates, along: Floats, measure: Measure, low: float, high: float, resolution: float
) -> tuple[Steps, float]:
    """The steps of each query along a line on which scores are not linear, and the width of the cells looked at."""
    points = _points(low, high, resolution)
    steps = sample_steps(points, _samples(model, along, candidates, points), candidates, measure)
    return steps, float(points[1] - points[0])


def between(
    model: Model,
    other: Model,
    candidates: Candidates,
    measure: str | Measure = DEFAULT_MEASURE,
    low: float = 0.0,
    high: float = 1.0,
    *,
    resolution: float = RESOLUTION,
) -> ModelTrajectory:
    """The measure on the straight line from one model, at x = 0, to another of the same structure, at x = 1.

    >>> from fliprank.models import Linear
    >>> rows = Candidates.of([1, 0, 0], features=[[5, 0.3], [9, 0.1], [4, 0.2]])
    >>> model = Linear().prepared(rows, 0)
    >>> path = between(model.at([0, 1, 0]), model.at([0, 0, 1]), rows, "RR")
    >>> path.values.tolist(), path.breaks.round(3).tolist()
    ([0.5, 1.0], [0.431])
    """
    if describe(model) != describe(other) or model.params.names != other.params.names:
        raise UsageError(
            f"a line leads between models of one structure: this {model.kind} and that {other.kind} differ"
        )
    step = other.params.values - model.params.values
    along = np.zeros(len(model.params.free_names))
    along[model.params.slots[model.params.free]] = step[model.params.free]
    unlike = np.flatnonzero(model.params.direction(along) != step)
    if len(unlike):
        name = model.params.names[int(unlike[0])]
        raise UsageError(
            f"{name} differs between the two models, but it can't move on its own in the first: release it"
        )
    if not along.any():
        raise UsageError("the two models have the same parameters: there is no line between them")
    return trajectory(model, candidates, along, measure, low, high, resolution=resolution)


def _points(low: float, high: float, resolution: float) -> Floats:
    """Where a line is looked at: the ends of cells that are `resolution` of it wide, or a little less."""
    if not 0 < resolution < 1:
        raise UsageError(f"resolution is a part of the line, above 0 and below 1: not {resolution}")
    cells = max(LEAST_CELLS, int(np.ceil(1 / resolution - 1e-9)))
    points = low + (high - low) * np.arange(cells + 1) / cells
    points[-1] = high
    return points


def _samples(model: Model, along: Floats, rows: Candidates, points: Floats) -> Iterator[tuple[Ints, Floats]]:
    """The scores of all rows at each point, by blocks of queries."""
    models = [model.at(moved(model.params, along, x)) for x in points.tolist()]
    blocks = rows.offsets[1:] // max(1, BLOCK // len(points))
    for block in np.split(np.arange(rows.queries), np.flatnonzero(np.diff(blocks)) + 1):
        part = rows if len(block) == rows.queries else rows.select(block)
        yield block, np.array([there.score(part) for there in models])


def _stretch(
    model: Model, along: Floats, low: float | None, high: float | None, exact: bool
) -> tuple[float, float, tuple[bool, bool]]:
    """From where to where the line goes, and whether it ends there or is cut off."""
    params = model.params
    lowest, highest = reach(params, params.free_values, along)
    ends = (lowest, highest) if exact else finite_reach(params, params.free_values, along)
    begin, end = ends[0] if low is None else float(low), ends[1] if high is None else float(high)
    slack = 1e-9 * max(1.0, *(abs(x) for x in (lowest, highest) if np.isfinite(x)), 0.0)
    if begin < lowest - slack or end > highest + slack:
        raise UsageError(f"the line from {begin:g} to {end:g} leaves its bounds, {lowest:g} to {highest:g}")
    if not begin < end:
        raise UsageError(f"there is nothing between {begin:g} and {end:g}")
    if not exact and not np.isfinite([begin, end]).all():
        raise UsageError(f"scores of this {model.kind} model are not linear along the line: it must have two ends")
    return begin, end, (begin <= lowest + slack, end >= highest - slack)
