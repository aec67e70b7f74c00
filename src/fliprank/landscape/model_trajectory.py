"""A measure of a model along a line through its parameters (Robertson & Zaragoza 2007, section 3).

Where the model's scores are linear along the line, the trajectory is exact: weights of features, and whatever
`Model.linear_along` says. Elsewhere (k and b of BM25F, smoothing, the first layer of a net) steps are bracketed and
known to a resolution: see `bracketing`.

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

from dataclasses import dataclass, field
from functools import cached_property
from typing import overload

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import span_indices
from fliprank.errors import UsageError
from fliprank.landscape.batch import BLOCK, stacked
from fliprank.landscape.bracketing import bracket_steps, signatures
from fliprank.landscape.direction import Direction, direction_of, finite_reach, moved, reach
from fliprank.landscape.step_flips import StepFlips
from fliprank.landscape.trajectory import ScoreTrajectory, Trajectory, add_up, score_trajectory
from fliprank.measures import Measure, parse_measure
from fliprank.models.base import Model

__all__ = ["ModelTrajectory", "trajectory"]

CELLS = 64
"""Cells of the grid that bracketing starts from."""

RESOLUTION = 1e-3
"""How closely breaks are bracketed, as a part of the whole stretch."""

FEW = 0.25
"""Where fewer than this part of all rows is wanted, they are put together and scored alone."""


@dataclass(frozen=True, eq=False)
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

    @cached_property
    def flips(self) -> StepFlips:
        """The flips to which the measure responds, those that gain most first."""
        return StepFlips(self)


def trajectory(
    model: Model,
    candidates: Candidates,
    direction: Direction,
    measure: str | Measure = "nDCG(dcg='exp-log2')@10",
    low: float | None = None,
    high: float | None = None,
    *,
    resolution: float = RESOLUTION,
    cells: int = CELLS,
) -> ModelTrajectory:
    """The measure for all x between `low` and `high`: by default as far as the parameters' bounds allow.

    `direction` is the name of a free parameter, {name: share} for several, or a vector of all free parameters. Where
    scores are not linear, a grid of `cells` is refined until breaks are known to `resolution` times (high - low); and
    where there are no bounds, the line ends where some parameter has moved by twice its size (but at least by 2).
    """
    chosen, along = parse_measure(measure), direction_of(model.params, direction)
    if not along.any():
        raise UsageError("this direction leads nowhere: it moves no parameter")
    exact = model.linear_along(along)
    begin, end = _stretch(model, along, low, high, exact)
    if exact:
        line = score_trajectory(model.score(candidates), model.slope(candidates, along), candidates, chosen, begin, end)
        known = (line.candidates, line.measure, line.low, line.high, line.breaks, line.values, line.steps)
        return ModelTrajectory(*known, model, along, line)
    if not (0 < resolution < 1 and cells >= 1):
        raise UsageError(f"resolution is a part of the line, and cells a number from 1: not {resolution} and {cells}")
    halvings = max(0, int(np.ceil(-np.log2(resolution * cells) - 1e-9)))
    steps = bracket_steps(_Evaluator(model, along, candidates, chosen), candidates.queries, begin, end, cells, halvings)
    breaks, values = add_up(steps, chosen)
    width = (end - begin) / cells / 2**halvings
    return ModelTrajectory(candidates, chosen, begin, end, breaks, values, steps, model, along, resolution=width)


@dataclass(frozen=True, eq=False)
class _Evaluator:
    """What bracketing asks: the values and signatures of some queries at some points of the line."""

    model: Model
    along: Floats
    candidates: Candidates
    measure: Measure

    def __call__(self, points: list[tuple[float, Ints]]) -> list[Floats]:
        rows, out = self.candidates, list[Floats]()
        wanted = np.cumsum([0, *(rows.sizes[queries].sum() for _, queries in points)])
        blocks = wanted[:-1] // BLOCK
        for block in np.unique(blocks):
            out += self._evaluate([point for point, own in zip(points, blocks, strict=True) if own == block])
        return out

    def _evaluate(self, points: list[tuple[float, Ints]]) -> list[Floats]:
        """All points are ranked at once: to start a kernel for a few rows costs more than the work."""
        queries = np.concatenate([queries for _, queries in points])
        scores = np.concatenate([self._scores(x, queries) for x, queries in points])
        rows = stacked(self.candidates, queries)
        values = np.array([self.measure.per_query(scores, rows), signatures(scores, rows, self.measure.depth)])
        return np.split(values, np.cumsum([len(queries) for _, queries in points])[:-1], axis=1)

    def _scores(self, x: float, queries: Ints) -> Floats:
        there, rows = self.model.at(moved(self.model.params, self.along, x)), self.candidates
        if len(queries) == rows.queries:
            return there.score(rows)
        if rows.sizes[queries].sum() > FEW * len(rows):
            return there.score(rows)[span_indices(rows.offsets, queries)]
        return there.score(rows.select(queries))


def _stretch(model: Model, along: Floats, low: float | None, high: float | None, exact: bool) -> tuple[float, float]:
    """From where to where the line goes."""
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
    return begin, end
