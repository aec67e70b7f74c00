"""SciPy's differential evolution within bounds, or `span` to either side (`box_of`); an epoch is one generation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fliprank.arrays import Floats
from fliprank.optimize.fit import Recorder
from fliprank.optimize.methods.base import Method, chance, check, register, seed_of
from fliprank.optimize.problem import Problem
from fliprank.optimize.space import box_of
from fliprank.parallel import Mapper, thread_map

__all__ = ["Evolution"]

DIGITS = 9
"""Members of a population that agree so far are one: SciPy's own scaling rounds them."""


@register("evolution")
@dataclass(frozen=True)
class Evolution(Method):
    """A population of `size` members, one of them where the model was. They are evaluated in parallel."""

    direct: ClassVar[bool] = True
    global_search: ClassVar[bool] = True
    own_stop: ClassVar[bool] = True
    epochs: int = 60
    size: int = 60
    span: float = 1.0

    def __post_init__(self) -> None:
        check(self.epochs >= 1 and self.size >= 5, "epochs is a number from 1, and size from 5")

    def run(self, problem: Problem, recorder: Recorder, rng: np.random.Generator) -> None:
        low, high = box_of(problem.params, self.span)
        start, seed = np.clip(problem.params.free_values, low, high), seed_of(recorder, rng)

        def measure(member: Floats) -> float:
            return problem.measure_at(low + (high - low) * member)

        first = np.vstack([(start - low) / (high - low), chance(seed, 0).random((self.size - 1, len(start)))])
        state = recorder.begin(members=first.ravel(), found=np.empty(0))
        members, found = state["members"].reshape(first.shape), state["found"]
        with thread_map() as mapper:
            if not recorder.trail:
                found = np.array(list(mapper(measure, members)))
                if not recorder.epoch(start, found[0], members=members.ravel(), found=found, seed=seed):
                    return
            for epoch in range(len(recorder.trail), self.epochs + 1):
                members, found = _generation(measure, members, found, chance(seed, epoch), mapper)
                values = np.clip(low + (high - low) * members[found.argmax()], low, high)
                if not recorder.epoch(values, found.max(), members=members.ravel(), found=found, seed=seed):
                    return


def _generation(
    measure: Callable[[Floats], float], members: Floats, found: Floats, rng: np.random.Generator, mapper: Mapper
) -> tuple[Floats, Floats]:
    """(members, their values) after one generation, all on a scale from 0 to 1 between low and high."""
    from scipy.optimize import differential_evolution

    known = dict(zip(map(_key, members), found, strict=True))

    def function(member: Floats) -> float:
        key = _key(member)
        return -known[key] if key in known else -measure(member)

    result = differential_evolution(
        function,
        [(0.0, 1.0)] * members.shape[1],
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
