"""Climbing the measure itself: line searches that know the whole line (Taylor et al. 2006, section 2.2, made exact).

Where scores are linear along a line, a measure is a step function of which every step is known
(`landscape.trajectory`): no sampling, no scale to reduce, and of equally good stretches the widest can be taken. An
epoch searches along each coordinate in turn, then along the promising direction, that from where the epoch began to
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

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.landscape.direction import Direction
from fliprank.landscape.model_trajectory import trajectory
from fliprank.landscape.trajectory import Trajectory
from fliprank.measures.base import Measure
from fliprank.models.base import Model
from fliprank.objectives.base import Objective
from fliprank.optimize.climb import Climb, Prefer
from fliprank.optimize.cost import Cost
from fliprank.optimize.directions import check_directions, epoch_directions
from fliprank.optimize.fit import Recorder
from fliprank.optimize.metric import GAIN, Metric

__all__ = ["Exact", "LineSearchResult", "line_search"]


class LineSearchResult(NamedTuple):
    """The end of a line search: how far it went, the measure there and where it began, the model, the whole line."""

    step: float
    value: float
    before: float
    model: Model
    path: Trajectory


def line_search(
    model: Model, candidates: Candidates, measure: Measure, direction: Direction, prefer: Prefer = "widest"
) -> LineSearchResult:
    """The best model on the line from `model` along `direction`: a parameter's name, or a vector of free parameters.

    The line ends at the parameters' bounds. Where nothing on it is better, the model stays as it is. Where scores are
    not linear along it, the line is known to a resolution only (`landscape.trajectory`).
    """
    metric, path = Metric(model, candidates, measure), trajectory(model, candidates, direction, measure)
    before, step = metric.at(model.params.free_values), path.best_point(prefer)
    better = path.model_at(step)
    value = metric.at(better.params.free_values)
    if value - before <= GAIN:
        return LineSearchResult(0.0, metric.sign * before, metric.sign * before, model, path)
    return LineSearchResult(step, metric.sign * value, metric.sign * before, better, path)


@dataclass(frozen=True)
class Exact:
    """Coordinate ascent by exact line searches, from the model's parameters and then from `restarts` - 1 random ones.

    `directions`: one or several kinds, joined by + (`optimize.directions`). By default the gradient of the objective
    comes first, where there is one: it leads from a random start to where features count for what they are worth; then
    the free parameters one by one in random order. Of equally good stretches of a line the widest is taken, or the
    nearest (`prefer`). An ascent ends after `epochs`, or after one that gained nothing.

    With `shrink`, a step must gain more than `shrink` times the growth of the sum of absolute weights, 1 at the
    start of each epoch; then the measure may fall. With `bag` below 1, each ascent climbs on that share of the training
    queries, drawn anew: half of them vary as a bootstrap sample does. The objective of the epochs' trail is the measure
    on the queries of the ascent less the penalty.
    """

    restarts: int = 1
    epochs: int = 24
    directions: str = "gradient+axes"
    shrink: float = 0.0
    prefer: Prefer = "widest"
    bag: float = 1.0

    def __post_init__(self) -> None:
        if self.restarts < 1 or self.epochs < 1:
            raise UsageError(f"restarts and epochs are numbers from 1, not {self.restarts} and {self.epochs}")
        check_directions(self.directions)
        if not 0 <= self.shrink < np.inf:
            raise UsageError(f"shrink is a number from 0, not {self.shrink}")
        if self.prefer not in ("widest", "nearest"):
            raise UsageError(f"prefer is widest or nearest, not {self.prefer}")
        if not 0 < self.bag <= 1:
            raise UsageError(f"bag is a share of the queries, above 0 and at most 1, not {self.bag}")

    def run(self, recorder: Recorder, objective: Objective | None, rng: np.random.Generator) -> None:
        """Climb from the model's parameters, or from where the recorder's checkpoint is.

        The objective is used where its gradient is one of the directions.
        """
        if self.bag < 1 and getattr(objective, "pairs", None) is not None:
            raise UsageError("a bag holds some of the queries: it can't use pairs that are given by row")
        model, state = recorder.model, recorder.state
        values = state.get("values", model.params.free_values)
        seed = state.get("seed", np.array([float(rng.integers(2**52))]))
        # Which ascent this is, how many epochs it had, and whether it is over; and the last step.
        ascent, number, over = state.get("ascent", np.zeros(3)).astype(int)
        last = state.get("last", np.zeros(len(values)))
        climb = self._climb(recorder, seed, ascent)
        if not recorder.trail:
            values = climb.scaled(values)
            if not recorder.epoch(values, climb.worth(values), seed=seed, ascent=np.zeros(3), last=last):
                return
        while True:
            # What is random in an epoch depends on the seed and its number only: a resumed run is the same run.
            chance = np.random.default_rng([int(seed[0]), len(recorder.trail)])
            if over:
                if ascent + 1 >= self.restarts:
                    recorder.stopped = "no direction gains" if number < self.epochs else "all epochs done"
                    return
                ascent, number, over, last = ascent + 1, 0, False, np.zeros(len(values))
                values = model.initialised(chance).params.free_values
                climb = self._climb(recorder, seed, ascent)
            begun = climb.scaled(values)
            # The gradient moves every weight: after the first epoch, it would undo what shrinking left out.
            smooth = objective if number == 0 or self.shrink == 0 else None
            values = climb.epoch(begun, self._directions(climb.metric, begun, last, smooth, chance))
            worth, number, last = climb.worth(values), number + 1, values - begun
            over = worth <= climb.worth(begun) + GAIN or number >= self.epochs
            if not recorder.epoch(values, worth, seed=seed, ascent=np.array([ascent, number, over], float), last=last):
                return

    def _climb(self, recorder: Recorder, seed: Floats, ascent: int) -> Climb:
        """The line searches of an ascent, on the queries that it may see."""
        rows = recorder.train
        if self.bag < 1:
            drawn = np.random.default_rng([int(seed[0]), int(ascent), 1]).permutation(rows.queries)
            rows = rows.select(np.sort(drawn[: max(1, round(self.bag * rows.queries))]))
        return Climb(Metric(recorder.model, rows, recorder.measure), self.shrink, self.prefer)

    def _directions(
        self, metric: Metric, values: Floats, last: Floats, objective: Objective | None, chance: np.random.Generator
    ) -> Floats:
        def gradient() -> Floats:
            assert objective is not None
            return -Cost(metric.model, metric.candidates, objective).value_and_grad(values)[1]

        return epoch_directions(self.directions, len(values), chance, last, None if objective is None else gradient)
