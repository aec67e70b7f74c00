"""Climbing the measure itself by line searches: along each coordinate, then along the promising direction.

Taylor et al. 2006, section 2.2: from one point, each coordinate is searched on its own; how far their optima lie from
the point makes a promising direction, which is searched last. How a line is searched is a setting: `exact` knows every
step of the measure (`landscape.trajectory`), so that nothing is sampled and the widest of equally good stretches can be
taken; `sampled` is the paper's; `golden` and `brent` are its remark on how to be quicker (Robertson & Zaragoza 2007,
section 4.2), made for functions with one optimum, while a measure has many.

>>> from fliprank.data.candidates import Candidates
>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[5, 0.3], [9, 0.1], [4, 0.2]])
>>> problem = Problem.of(Linear().prepared(rows, 0).at([0, 1, 0.1]), rows, "RR")
>>> recorder = Recorder(problem)
>>> Line().run(problem, recorder, np.random.default_rng(0))
>>> [epoch.train for epoch in recorder.trail], recorder.stopped
([0.5, 1.0, 1.0, 1.0, 1.0], 'no gain in 3 epochs')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from fliprank.arrays import Floats
from fliprank.landscape.step_function import StepFunction
from fliprank.optimize.fit import Recorder
from fliprank.optimize.methods.base import Method, chance, check, register, seed_of
from fliprank.optimize.methods.directions import check_directions, epoch_directions
from fliprank.optimize.methods.line_search import SEARCHES
from fliprank.optimize.problem import GAIN, Place, Problem
from fliprank.optimize.space import widths_of
from fliprank.parallel import Mapper, thread_map

__all__ = ["Brent", "CoordinateAscent", "Exact", "Golden", "Line", "Sampled"]

RESOLUTION = 1 / 64
"""How closely steps are known along directions on which scores are not linear, as a part of the line."""

OPTIONS = {
    "search": ("exact", *SEARCHES),
    "schedule": ("in turn", "at once"),
    "reduce": ("each epoch", "without gain"),
    "prefer": ("widest", "nearest"),
}


@dataclass(frozen=True)
class CoordinateAscent(Method):
    """Ascents of `epochs` each, from the model's parameters and then from `restarts` - 1 random points.

    `search` is how a line is searched. `schedule`: each coordinate "in turn" starts from where the one before ended, or
    all are searched "at once" from the point where the epoch began, as in the paper. `directions`: one or several
    kinds, joined by + (`directions.py`); the gradient of the objective, where there is one, leads from a random start
    to where features count for what they are worth. An ascent ends after `patience` epochs in a row without gain.

    Sampled searches look at `samples` points, evenly spaced, over the width of a coordinate to either side (`widths_of`
    with `span`) times a scale, and over the full length of the promising direction. The scale is 1 at first and is
    multiplied by `factor` after "each epoch", or after one "without gain" (`reduce`). With `by_factors`, positive
    parameters are moved by their logarithms, over a factor of e. Of equally good points the middle of the "widest"
    stretch is taken, or the "nearest".

    With `shrink`, a step must gain more than `shrink` times the growth of the sum of absolute weights, which is 1 at
    the start of each epoch; then the measure may fall. `l2` is the strength of a prior towards the defaults. With `bag`
    below 1, each ascent climbs on that share of the training queries, drawn anew. The trail's objective is the measure
    on the queries of the ascent, less the penalties.
    """

    direct: ClassVar[bool] = True
    own_stop: ClassVar[bool] = True
    search: str = "exact"
    schedule: str = "in turn"
    restarts: int = 1
    epochs: int = 24
    patience: int = 1
    directions: str = "gradient+axes"
    prefer: str = "widest"
    samples: int = 21
    span: float = 1.0
    factor: float = 1.0
    reduce: str = "each epoch"
    by_factors: bool = False
    shrink: float = 0.0
    l2: float = 0.0
    bag: float = 1.0

    def __post_init__(self) -> None:
        for name in ("restarts", "epochs", "patience"):
            check(getattr(self, name) >= 1, f"{name} is a number from 1, not {getattr(self, name)}")
        for name, options in OPTIONS.items():
            value = getattr(self, name)
            check(value in options, f"{name} is one of {', '.join(map(repr, options))}, not {value!r}")
        check_directions(self.directions)
        check(self.samples >= 2, f"samples is a number from 2, not {self.samples}")
        check(0 < self.factor <= 1, f"the scale is reduced by a factor above 0 and at most 1, not {self.factor}")
        check(0 <= self.shrink < np.inf, f"shrink is a number from 0, not {self.shrink}")
        check(0 <= self.l2 < np.inf, f"l2 is a number from 0, not {self.l2}")
        check(0 < self.bag <= 1, f"bag is a share of the queries, above 0 and at most 1, not {self.bag}")
        check(
            not (self.by_factors and self.search == "exact"),
            "exact searches move parameters as they are, not by factors",
        )

    def run(self, problem: Problem, recorder: Recorder, rng: np.random.Generator) -> None:
        seed, count = seed_of(recorder, rng), len(problem.params.free_names)
        state = recorder.begin(values=problem.params.free_values, counts=np.zeros(4), last=np.zeros(count))
        values, last = state["values"], state["last"]
        # Which ascent this is, how many epochs it had, how many of them without gain, and how many in a row.
        ascent, number, idle, row = state["counts"].astype(int)
        with thread_map() as mapper:
            climb = _Climb(self, self._bag(problem, seed, ascent), mapper)
            if not recorder.trail:
                values = climb.scaled(values)
                if not recorder.epoch(values, climb.worth(values), seed=seed, counts=np.zeros(4), last=last):
                    return
            while True:
                random = chance(seed, len(recorder.trail))
                if number >= self.epochs or row >= self.patience:
                    if ascent + 1 >= self.restarts:
                        idle_for = "1 epoch" if row == 1 else f"{row} epochs"
                        recorder.stopped = "all epochs done" if row < self.patience else f"no gain in {idle_for}"
                        return
                    ascent, number, idle, row, last = ascent + 1, 0, 0, 0, np.zeros(count)
                    values = problem.random_start(random)
                    climb = _Climb(self, self._bag(problem, seed, ascent), mapper)
                begun, scale = climb.scaled(values), self.factor ** (number if self.reduce == "each epoch" else idle)
                before = climb.worth(begun)
                # The gradient moves every weight: after the first epoch, it would undo what shrinking left out.
                values = climb.epoch(begun, scale, last, random, smooth=number == 0 or self.shrink == 0)
                worth, number, last = climb.worth(values), number + 1, values - begun
                gained = worth > before + GAIN
                idle, row = (idle, 0) if gained else (idle + 1, row + 1)
                counts = np.array([ascent, number, idle, row], float)
                if not recorder.epoch(values, worth, scale, seed=seed, counts=counts, last=last):
                    return

    def _bag(self, problem: Problem, seed: Floats, ascent: int) -> Problem:
        """The queries that an ascent may see."""
        if self.bag == 1:
            return problem
        drawn = chance(seed, int(ascent), 1).permutation(problem.queries)
        return problem.select(np.sort(drawn[: max(1, round(self.bag * problem.queries))]))


class _State(NamedTuple):
    """Where an ascent is, and the measure there less the penalties."""

    place: Place
    worth: float


class _Climb:
    """The line searches of one ascent."""

    def __init__(self, method: CoordinateAscent, problem: Problem, mapper: Mapper) -> None:
        self.method, self.problem, self.mapper = method, problem, mapper
        self.space = problem.space(factors=method.by_factors, prior=method.l2)
        self.width = self._widths()
        self.penalised = method.shrink > 0 or method.l2 > 0
        self.latest: _State | None = None

    def _widths(self) -> Floats:
        """How far a sampled search goes to either side along each coordinate."""
        if not self.method.by_factors:
            return widths_of(self.problem.params, self.method.span)
        with np.errstate(invalid="ignore"):
            between = (self.space.high - self.space.low) / 2
        return self.method.span * np.where(self.space.by_factor | ~np.isfinite(between), 1.0, between)

    def point_of(self, values: Floats) -> Floats:
        """The coordinates that lines run through."""
        return self.space.to_search(values) if self.method.by_factors else values

    def values_of(self, point: Floats) -> Floats:
        """The free parameters at a point, within their bounds."""
        if self.method.by_factors:
            return self.space.from_search(np.clip(point, self.space.low, self.space.high))
        return np.clip(point, self.problem.params.free_lower, self.problem.params.free_upper)

    def worth(self, values: Floats) -> float:
        """The measure, larger is better, less the penalties."""
        return self._state(values).worth

    def _penalty(self, values: Floats) -> float:
        shrink = self.method.shrink * float(np.abs(values).sum()) if self.method.shrink else 0.0
        return shrink + (self.space.prior_cost(values)[0] if self.method.l2 else 0.0)

    def scaled(self, values: Floats) -> Floats:
        """The same ranking with a sum of absolute weights of 1: where there is `shrink`, and nothing forbids it."""
        model, params, size = self.problem.model, self.problem.params, float(np.abs(values).sum())
        bounded = np.isfinite(params.free_lower).any() or np.isfinite(params.free_upper).any()
        if self.method.shrink == 0 or bounded or not params.free.all() or not model.linear_in_params or size == 0:
            return values
        return values / size

    def epoch(self, values: Floats, scale: float, last: Floats, random: np.random.Generator, smooth: bool) -> Floats:
        """Where the searches of one epoch lead to."""
        begun = self._state(values)
        directions = self._directions(values, scale, last, random, smooth)
        state = (
            self._in_turn(begun, directions) if self.method.schedule == "in turn" else self._at_once(begun, directions)
        )
        # Scores went along step by step: what counts is what the model says at the end.
        return state.place.values if self.worth(state.place.values) >= begun.worth else values

    def _state(self, values: Floats) -> _State:
        """The state at these values, as the model says; the latest is kept, since an epoch begins where one ended."""
        if self.latest is None or not np.array_equal(self.latest.place.values, values):
            place = self.problem.place(values)
            self.latest = _State(place, place.measure - self._penalty(values))
        return self.latest

    def _directions(
        self, values: Floats, scale: float, last: Floats, random: np.random.Generator, smooth: bool
    ) -> Floats:
        """One direction per row, as long as a search along it goes to either side."""
        count, problem = len(values), self.problem

        def gradient() -> Floats:
            return -problem.value_and_grad(values)[1]

        known = problem.objective is not None and smooth
        found = epoch_directions(self.method.directions, count, random, last, gradient if known else None)
        return found if self.method.search == "exact" else found * self.width * scale

    def _in_turn(self, state: _State, directions: Floats) -> _State:
        begun = self.point_of(state.place.values)
        for direction in directions:
            state = self._search(state, direction)
        promising = self.point_of(state.place.values) - begun
        return self._search(state, promising) if np.count_nonzero(promising) > 1 else state

    def _at_once(self, state: _State, directions: Floats) -> _State:
        steps = np.array(list(self.mapper(lambda direction: self._find(state, direction)[0], directions)))
        promising = steps @ directions
        return self._search(state, promising) if promising.any() else state

    def _search(self, state: _State, direction: Floats) -> _State:
        """Where a line search leads to: here, if nothing on the line is better."""
        step, worth = self._find(state, direction)
        if not worth > state.worth + GAIN:
            return state
        if self.method.by_factors:
            found = self._state(self.values_of(self.point_of(state.place.values) + step * direction))
        else:
            place = self.problem.moved(state.place, direction, step)
            found = _State(place, place.measure - self._penalty(place.values))
        ties = self.problem.ranks_nothing(found.place) and not self.problem.ranks_nothing(state.place)
        return found if found.worth > state.worth + GAIN and not ties else state

    def _find(self, state: _State, direction: Floats) -> tuple[float, float]:
        """(how far, worth there) of the best that is found along a line; (0, worth here) where nothing is better."""
        if self.method.search == "exact":
            # A weight that ranks nothing still costs something where there is a penalty.
            path = self.problem.trajectory(state.place, direction, resolution=RESOLUTION, flat=self.penalised)
            step, worth = (0.0, -np.inf) if path is None else self._best_step(path, state.place.values, direction)
            return (step, worth) if worth > state.worth + GAIN else (0.0, state.worth)
        point, values = self.point_of(state.place.values), state.place.values
        if self.method.by_factors:

            def worth_at(x: float) -> float:
                there = self.values_of(point + x * direction)
                return self.problem.measure_at(there) - self._penalty(there)

        else:
            line = self.problem.line(values, direction)

            def worth_at(x: float) -> float:
                return line(x) - self._penalty(self.values_of(point + x * direction))

        def along(x: float) -> float:
            return state.worth if x == 0.0 else worth_at(x)

        step, worth = SEARCHES[self.method.search](along, *self._reach(point, direction), self.method)
        return (step, worth) if worth > state.worth + GAIN else (0.0, state.worth)

    def _reach(self, point: Floats, direction: Floats) -> tuple[float, float]:
        """How far a sampled search goes along a direction: its full length to either side, within bounds."""
        space, params = self.space, self.problem.params
        low, high = (space.low, space.high) if self.method.by_factors else (params.free_lower, params.free_upper)
        moving = direction != 0
        ends = np.array([(low - point)[moving] / direction[moving], (high - point)[moving] / direction[moving]])
        return max(-1.0, float(ends.min(axis=0).max())), min(1.0, float(ends.max(axis=0).min()))

    def _penalties(self, values: Floats, direction: Floats, steps: Floats) -> Floats:
        """The penalty at each step of an exact search, up to what does not change along the line."""
        out, method, space = np.zeros(len(steps)), self.method, self.space
        for i in np.flatnonzero(direction):
            moved = values[i] + steps * direction[i]
            out += method.shrink * (np.abs(moved) - abs(values[i]))
            away, before = (each / space.unit[i] - space.default[i] for each in (moved, values[i]))
            out += space.prior[i] * (away**2 - before**2)
        return out + self._penalty(values)

    def _targets(self, slot: int) -> list[float]:
        """Where the penalties are least."""
        default = float(self.space.from_search(self.space.default)[slot])
        return [0.0] * (self.method.shrink > 0) + [default] * (self.method.l2 > 0)

    def _best_step(self, path: StepFunction, values: Floats, direction: Floats) -> tuple[float, float]:
        sign = self.problem.measure.sign
        if not self.penalised:
            step = path.best_point(self.method.prefer)  # type: ignore[arg-type]
            return step, sign * path.maximum.value
        steps = path.middles()
        moving = np.flatnonzero(direction)
        if len(moving) == 1:  # a weight may as well be 0, or at its default, where its stretch allows
            for target in self._targets(int(moving[0])):
                x = (target - values[moving[0]]) / direction[moving[0]]
                if path.low <= x <= path.high:
                    steps[np.searchsorted(path.breaks, x)] = x
        worth = sign * path.values - self._penalties(values, direction, steps)
        best = int(np.argmax(worth))
        return float(steps[best]), float(worth[best])


@register("exact")
@dataclass(frozen=True)
class Exact(CoordinateAscent):
    """Exact line searches along the gradient and each coordinate in turn."""


@register("line")
@dataclass(frozen=True)
class Line(CoordinateAscent):
    """The line search of Taylor et al. 2006, section 2.2. The paper does not say how many samples, nor how far."""

    search: str = "sampled"
    schedule: str = "at once"
    directions: str = "axes"
    prefer: str = "nearest"
    factor: float = 0.85
    patience: int = 3


@register("golden")
@dataclass(frozen=True)
class Golden(Line):
    """The same with a search by golden section: `samples` values, each of which makes the bracket smaller."""

    search: str = "golden"


@register("brent")
@dataclass(frozen=True)
class Brent(Line):
    """The same with SciPy's bounded Brent search: at most `samples` values per line."""

    search: str = "brent"


@register("sampled")
@dataclass(frozen=True)
class Sampled(CoordinateAscent):
    """Sampled searches of each coordinate in turn, positive parameters by factors: for the few of a text function."""

    search: str = "sampled"
    epochs: int = 6
    patience: int = 6
    directions: str = "axes"
    samples: int = 13
    factor: float = 0.5
    reduce: str = "without gain"
    by_factors: bool = True
