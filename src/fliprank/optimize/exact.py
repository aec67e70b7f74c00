"""Climbing the measure itself: line searches that know the whole line (Taylor et al. 2006, section 2.2, made exact).

Where scores are linear in the parameters, a measure along any line of them is a step function of which every step is
known (`landscape.trajectory`): no sampling, no scale to reduce, and of equally good stretches the widest can be taken.
An epoch searches along each coordinate in turn, then along the promising direction, that from where the epoch began to
where it came.

>>> from fliprank.measures import parse_measure
>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[5, 0.3], [9, 0.1], [4, 0.2]])
>>> model = Linear().prepared(rows, 0).at([0, 1, 0.5])
>>> found = line_search(model, rows, parse_measure("RR"), "w.2")
>>> found.before, found.value, found.model.params["w.2"] > 0.5
(0.5, 1.0, True)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.landscape.trajectory import Trajectory, score_trajectory
from fliprank.measures.base import Measure
from fliprank.models.base import Model
from fliprank.models.parameters import Parameters
from fliprank.objectives.base import Objective
from fliprank.optimize.fit import Recorder

__all__ = ["Exact", "Found", "line_search"]

GAIN = 1e-12
"""The least gain that counts."""

MOST_HELD = 1 << 28
"""Bytes of slopes that are kept from epoch to epoch."""


class Found(NamedTuple):
    """The end of a line search: how far it went, the measure there and where it began, the model, the whole line."""

    step: float
    value: float
    before: float
    model: Model
    path: Trajectory


def line_search(
    model: Model,
    candidates: Candidates,
    measure: Measure,
    direction: str | ArrayLike,
    prefer: Literal["widest", "nearest"] = "widest",
) -> Found:
    """The best model on the line from `model` along `direction`: a parameter's name, or a vector of free parameters.

    The line ends at the parameters' bounds. Where nothing on it is better, the model stays as it is.
    """
    _check(model)
    values, scores = model.params.free_values, model.score(candidates)
    along = _direction(model.params, direction)
    low, high = _reach(model.params, values, along)
    path = score_trajectory(scores, _slope(model, candidates, along), candidates, measure, low, high)
    before, step = _value(measure, scores, candidates), path.best_point(prefer)
    better = model.at(model.params.with_free(values + step * along))
    value = _value(measure, better.score(candidates), candidates)
    if _sign(measure) * (value - before) <= GAIN:
        return Found(0.0, before, before, model, path)
    return Found(step, value, before, better, path)


@dataclass(frozen=True)
class Exact:
    """Coordinate ascent by exact line searches, from the model's parameters and then from `restarts` - 1 random ones.

    `directions`: the free parameters one by one in random order ("axes"), or as many random directions at right angles
    ("random"). An ascent ends after `epochs`, or after one that gained nothing. With `shrink`, a step must gain more
    than `shrink` times the growth of the sum of absolute weights, which is 1 at the start of each epoch; then the
    measure may fall. The objective of the epochs' trail is the measure on training queries less that penalty.
    """

    restarts: int = 5
    epochs: int = 24
    directions: Literal["axes", "random"] = "axes"
    shrink: float = 0.0

    def __post_init__(self) -> None:
        if self.restarts < 1 or self.epochs < 1:
            raise UsageError(f"restarts and epochs are numbers from 1, not {self.restarts} and {self.epochs}")
        if self.directions not in ("axes", "random"):
            raise UsageError(f"directions are axes or random, not {self.directions}")
        if not 0 <= self.shrink < np.inf:
            raise UsageError(f"shrink is a number from 0, not {self.shrink}")

    def run(self, recorder: Recorder, objective: Objective | None, rng: np.random.Generator) -> None:
        """Climb from the model's parameters, or from where the recorder's checkpoint is. The objective is not used."""
        model, state = recorder.model, recorder.state
        _check(model)
        climb = _Climb(model, recorder.train, recorder.measure, self.shrink)
        values = state.get("values", model.params.free_values)
        seed = state.get("seed", np.array([float(rng.integers(2**52))]))
        # Which ascent this is, how many epochs it had, and whether it is over.
        ascent, number, over = state.get("ascent", np.zeros(3)).astype(int)
        if not recorder.trail:
            values = climb.scaled(values)
            if not recorder.epoch(values, climb.worth(values), seed=seed, ascent=np.zeros(3)):
                return
        while True:
            # What is random in an epoch depends on the seed and its number only: a resumed run is the same run.
            chance = np.random.default_rng([int(seed[0]), len(recorder.trail)])
            if over:
                if ascent + 1 >= self.restarts:
                    recorder.stopped = "no direction gains"
                    return
                ascent, number, over = ascent + 1, 0, False
                values = model.initialised(chance).params.free_values
            begun = climb.scaled(values)
            values = climb.epoch(begun, self._directions(len(begun), chance))
            worth, number = climb.worth(values), number + 1
            over = worth <= climb.worth(begun) + GAIN or number >= self.epochs
            if not recorder.epoch(values, worth, seed=seed, ascent=np.array([ascent, number, over], float)):
                return

    def _directions(self, count: int, chance: np.random.Generator) -> Floats:
        """The directions of an epoch, one a row."""
        if self.directions == "random":
            basis: Floats = np.linalg.qr(chance.normal(size=(count, count)))[0]
            return basis
        return np.eye(count)[chance.permutation(count)]


@dataclass
class _Climb:
    """Line searches of one model on one set of candidates."""

    model: Model
    train: Candidates
    measure: Measure
    shrink: float
    slopes: dict[bytes, Floats | None] = field(default_factory=dict)

    def worth(self, values: Floats) -> float:
        """The measure, higher is better, less the penalty."""
        scores = self.model.at(self.model.params.with_free(values)).score(self.train)
        return self._worth(scores, values)

    def _worth(self, scores: Floats, values: Floats) -> float:
        value = _sign(self.measure) * _value(self.measure, scores, self.train)
        return value - self.shrink * float(np.abs(values).sum())

    def scaled(self, values: Floats) -> Floats:
        """The same ranking with a sum of absolute weights of 1: where there is a penalty, and nothing forbids it."""
        params, size = self.model.params, float(np.abs(values).sum())
        bounded = np.isfinite(params.free_lower).any() or np.isfinite(params.free_upper).any()
        if self.shrink == 0 or bounded or not params.free.all() or size == 0:
            return values
        return values / size

    def epoch(self, begun: Floats, directions: Floats) -> Floats:
        """Where a search along each direction, and along the promising one, comes to."""
        values = begun
        scores = self.model.at(self.model.params.with_free(values)).score(self.train)
        worth = first = self._worth(scores, values)
        for along in directions:
            values, scores, worth = self._search(values, scores, worth, along)
        if np.count_nonzero(values - begun) > 1:
            values, scores, worth = self._search(values, scores, worth, values - begun)
        # Scores went along step by step: what counts is what the model says at the end.
        return values if self.worth(values) >= first else begun

    def _search(self, values: Floats, scores: Floats, worth: float, along: Floats) -> tuple[Floats, Floats, float]:
        """(values, scores, worth) after a line search: as they were, if nothing on the line is better."""
        slope = self._slope_of(along)
        low, high = _reach(self.model.params, values, along)
        if slope is None or not low < high:
            return values, scores, worth
        path = score_trajectory(scores, slope, self.train, self.measure, low, high)
        step = self._best_step(path, values, along)
        moved, there = values + step * along, path.scores(step)
        gained = self._worth(there, moved)
        return (moved, there, gained) if gained > worth + GAIN else (values, scores, worth)

    def _best_step(self, path: Trajectory, values: Floats, along: Floats) -> float:
        if self.shrink == 0:
            return path.best_point("widest")
        steps = path.middles()
        moving = np.flatnonzero(along)
        if len(moving) == 1:  # a weight may as well be 0 where its stretch allows
            zero = -values[moving[0]] / along[moving[0]]
            if path.low <= zero <= path.high:
                steps[np.searchsorted(path.breaks, zero)] = zero
        size = np.zeros(len(steps))
        for i in moving:
            size += np.abs(values[i] + steps * along[i])
        return float(steps[np.argmax(_sign(self.measure) * path.values - self.shrink * size)])

    def _slope_of(self, along: Floats) -> Floats | None:
        """How fast scores rise along a direction; None where a search is in vain: all of each query's rise alike."""
        key = along.tobytes()
        if key in self.slopes:
            return self.slopes[key]
        slope = _slope(self.model, self.train, along)
        same = np.append(np.diff(slope) == 0, False)
        same[self.train.offsets[1:][self.train.sizes > 0] - 1] = True
        found = None if same.all() and self.shrink == 0 else slope
        if (len(self.slopes) + 1) * 8 * len(self.train) <= MOST_HELD and np.count_nonzero(along) == 1:
            self.slopes[key] = found
        return found


def _check(model: Model) -> None:
    if not model.linear_in_params:
        raise UsageError(
            f"an exact line search needs scores that are linear in the parameters: not a {model.kind} model"
        )


def _value(measure: Measure, scores: Floats, candidates: Candidates) -> float:
    return measure.aggregate(measure.per_query(scores, candidates))


def _sign(measure: Measure) -> float:
    """What makes higher values better."""
    return -1.0 if measure.smaller_is_better else 1.0


def _direction(params: Parameters, given: str | ArrayLike) -> Floats:
    if isinstance(given, str):
        if given not in params.free_names:
            raise UsageError(f"no free parameter is called {given!r}; there are {', '.join(params.free_names[:20])}")
        given = np.arange(len(params.free_names)) == params.free_names.index(given)
    along: Floats = np.asarray(given, np.float64)
    if along.shape != (len(params.free_names),):
        raise UsageError(f"a direction of shape {along.shape} for {len(params.free_names)} free parameters")
    return along


def _slope(model: Model, candidates: Candidates, along: Floats) -> Floats:
    """How fast each row's score rises along a direction of the free parameters."""
    full, free = np.zeros(len(model.params)), model.params.free
    full[free] = along[model.params.slots[free]]
    return model.at(full).score(candidates)


def _reach(params: Parameters, values: Floats, along: Floats) -> tuple[float, float]:
    """How far a line stays within the bounds, downwards and upwards."""
    moving = along != 0
    with np.errstate(invalid="ignore"):
        one = (params.free_lower - values)[moving] / along[moving]
        other = (params.free_upper - values)[moving] / along[moving]
    low = np.minimum(one, other).max(initial=-np.inf)
    high = np.maximum(one, other).min(initial=np.inf)
    return float(min(low, 0.0)), float(max(high, 0.0))
