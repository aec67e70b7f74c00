"""RankNet pair by pair, as Taylor et al. 2006 print it (section 2.4).

Stochastic gradient descent, one step per pair of documents, with a rate that falls when an epoch did not help. The
validation trick (section 2.5) is the recorder's: the epoch is chosen by the measure on validation queries.

>>> from fliprank.data.candidates import Candidates
>>> from fliprank.models import Linear
>>> from fliprank.objectives import RankNet
>>> rows = Candidates.of([1, 0, 0], features=[[9, 0.1], [5, 0.3], [4, 0.2]])
>>> problem = Problem.of(Linear().prepared(rows, 0), rows, "RR", RankNet())
>>> recorder = Recorder(problem)
>>> Taylor2006(epochs=2, rate=0.1).run(problem, recorder, np.random.default_rng(0))
>>> [round(epoch.objective, 4) for epoch in recorder.trail]             # the sum of log(1 + e^Y) over both pairs
[1.3509, 0.787, 0.5336]
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from fliprank.errors import UsageError
from fliprank.objectives import RankNet
from fliprank.optimize.fit import Recorder
from fliprank.optimize.methods.base import Method, chance, check, register, seed_of
from fliprank.optimize.problem import Problem

__all__ = ["Taylor2006", "check_rate"]


def check_rate(epochs: int, rate: float, factor: float) -> None:
    """Raise an error that names the setting that makes no sense."""
    check(epochs >= 0, f"epochs is a number from 0, not {epochs}")
    check(0 < rate < np.inf, f"the rate is above 0, not {rate}")
    check(0 < factor <= 1, f"the rate is reduced by a factor above 0 and at most 1, not {factor}")


@register("taylor2006")
@dataclass(frozen=True)
class Taylor2006(Method):
    """A step of `rate` down the gradient of RankNet's cost for each pair, pairs in a new random order each epoch.

    The rate is multiplied by `factor` each time an epoch ends at a higher total cost than the epoch before; the paper
    says that it is reduced, not by how much. The trail's objective is that total, the sum over all pairs.

    Pairs are those of different labels, or the objective's own `pairs`; an unjudged row counts as label 0. The paper
    samples few of them: `--sample average`. Pairs and their order take 16 bytes each.
    """

    own_stop: ClassVar[bool] = True
    order_matters: ClassVar[bool] = True
    as_printed: ClassVar[bool] = True
    epochs: int = 24
    rate: float = 0.001
    factor: float = 0.5

    def __post_init__(self) -> None:
        check_rate(self.epochs, self.rate, self.factor)

    def check(self, problem: Problem) -> None:
        if not isinstance(problem.objective, RankNet):
            raise UsageError(f"{self.name} descends RankNet's cost, pair by pair: not {problem.objective}")

    def run(self, problem: Problem, recorder: Recorder, rng: np.random.Generator) -> None:
        self.check(problem)
        pairs, seed = problem.pairs, seed_of(recorder, rng)
        values = recorder.begin(values=problem.params.free_values)["values"]
        if not recorder.trail and not recorder.epoch(values, pairs.total_cost(values), seed=seed):
            return
        for epoch in range(len(recorder.trail), self.epochs + 1):
            increases = sum(after.objective > before.objective for before, after in pairwise(recorder.trail))
            rate = self.rate * self.factor**increases
            values = pairs.descend(values, chance(seed, epoch).permutation(len(pairs)), rate)
            if not recorder.epoch(values, pairs.total_cost(values), rate, seed=seed):
                return
