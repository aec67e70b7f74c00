"""SciPy's searches that only ask for values: Powell's directions and differential evolution.

Robertson & Zaragoza 2007, section 4.2: useful for some twenty parameters, at the price of very many evaluations. They
are here for models that are not linear in few parameters, and to compare with.

>>> from fliprank.data.candidates import Candidates
>>> from fliprank.measures import parse_measure
>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[5, 0.3], [9, 0.1], [4, 0.2]])
>>> recorder = Recorder(Linear().prepared(rows, 0).at([0, 1, 0.1]), rows, None, parse_measure("RR"))
>>> Evolution(epochs=3, size=10).run(recorder, None, np.random.default_rng(0))
>>> recorder.best.train
1.0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.errors import UsageError
from fliprank.objectives.base import Objective
from fliprank.optimize.fit import Recorder
from fliprank.optimize.metric import Mapper, Metric, box_of, thread_map, widths_of

__all__ = ["Evolution", "Powell"]

DIGITS = 9
"""Members of a population that agree so far are one: SciPy's own scaling rounds them."""


@dataclass(frozen=True)
class Powell:
    """SciPy's Powell: Brent's search along a set of directions that follows the steps taken; an epoch is one round.

    The unit of each parameter is its width (`widths_of`). A resumed run begins with the axes again, from where it was.
    """

    epochs: int = 24
    span: float = 1.0
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        if self.epochs < 1 or not self.tolerance > 0:
            raise UsageError("epochs is a number from 1, and tolerance above 0")

    def run(self, recorder: Recorder, objective: Objective | None, rng: np.random.Generator) -> None:
        """Climb from the model's parameters, or from where the recorder's checkpoint is. The objective is not used."""
        from scipy.optimize import minimize

        metric, params = Metric.of(recorder), recorder.model.params
        width = widths_of(params, self.span)
        start = recorder.state.get("values", params.free_values)
        if not recorder.trail and not recorder.epoch(start, metric.at(start)):
            return
        left = self.epochs + 1 - len(recorder.trail)
        if left < 1:
            return
        lower, upper = params.free_lower, params.free_upper

        def values_of(point: Floats) -> Floats:
            return np.clip(start + width * point, lower, upper)

        def callback(intermediate_result: Any) -> None:
            values = values_of(intermediate_result.x)
            if not recorder.epoch(values, metric.at(values)):
                raise StopIteration

        result = minimize(
            lambda point: -metric.at(values_of(point)),
            np.zeros(len(start)),
            method="Powell",
            bounds=list(zip((lower - start) / width, (upper - start) / width, strict=True)),
            callback=callback,
            options={"maxiter": left, "ftol": self.tolerance, "xtol": self.tolerance},
        )
        if result.status == 0:
            recorder.stopped = "converged"


@dataclass(frozen=True)
class Evolution:
    """SciPy's differential evolution within bounds, or `span` to either side (`box_of`); an epoch is a generation.

    `size` members, one of them where the model was. Their values are found side by side on all cores.
    """

    epochs: int = 60
    size: int = 60
    span: float = 1.0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.size < 5:
            raise UsageError("epochs is a number from 1, and size from 5")

    def run(self, recorder: Recorder, objective: Objective | None, rng: np.random.Generator) -> None:
        """Go on from a first population, or from that of the recorder's checkpoint. The objective is not used."""
        metric, params, state = Metric.of(recorder), recorder.model.params, recorder.state
        low, high = box_of(params, self.span)
        start = np.clip(params.free_values, low, high)
        seed = state.get("seed", np.array([float(rng.integers(2**52))]))
        chance = np.random.default_rng([int(seed[0]), 0])
        first = np.vstack([(start - low) / (high - low), chance.random((self.size - 1, len(start)))])
        members, found = state.get("members", first), state.get("found", np.empty(0))
        with thread_map() as mapper:
            if not recorder.trail:
                found = np.array(list(mapper(lambda member: metric.at(low + (high - low) * member), members)))
                if not recorder.epoch(start, found[0], members=members, found=found, seed=seed):
                    return
            for epoch in range(len(recorder.trail), self.epochs + 1):
                # What is random in a generation depends on the seed and its number only: a resumed run is the same run.
                chance = np.random.default_rng([int(seed[0]), epoch])
                members, found = _generation(metric, low, high, members, found, chance, mapper)
                values = np.clip(low + (high - low) * members[found.argmax()], low, high)
                if not recorder.epoch(values, found.max(), members=members, found=found, seed=seed):
                    return


def _generation(
    metric: Metric, low: Floats, high: Floats, members: Floats, found: Floats, rng: np.random.Generator, mapper: Mapper
) -> tuple[Floats, Floats]:
    """(members, their values) after one generation, all on a scale from 0 to 1 between low and high."""
    from scipy.optimize import differential_evolution

    known = dict(zip(map(_key, members), found, strict=True))

    def function(member: Floats) -> float:
        key = _key(member)
        return -known[key] if key in known else -metric.at(low + (high - low) * member)

    result = differential_evolution(
        function,
        [(0.0, 1.0)] * len(low),
        init=members,
        maxiter=1,
        tol=0.0,
        polish=False,
        updating="deferred",
        workers=mapper,
        seed=rng,
    )
    return np.asarray(result.population), -np.asarray(result.population_energies)


def _key(member: Floats) -> bytes:
    return (np.round(member, DIGITS) + 0.0).tobytes()
