"""Query by query, as Taylor et al. 2008 print it (SoftRank, section 4.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fliprank.optimize.fit import Epoch, Recorder
from fliprank.optimize.methods.base import Method, chance, check, register, seed_of
from fliprank.optimize.methods.taylor2006 import check_rate
from fliprank.optimize.problem import Problem

__all__ = ["Taylor2008"]


@register("taylor2008")
@dataclass(frozen=True)
class Taylor2008(Method):
    """A step of `rate` down the gradient of each query's objective, queries in a new random order each epoch.

    After an epoch whose measure on training rows did not rise above the best since the last start, the rate is
    multiplied by `factor`; after `patience` such epochs in a row, weights start anew at random and at the first rate.
    The paper's measure is nDCG(dcg='exp-log2')@10; here it is the recorder's. The paper samples unjudged rows
    (`--sample rated`), tries rates from 1e-1 to 1e-7 and sigmas from 1 to 1e-4, and takes the best run and epoch on
    validation queries: no averaging.

    The trail's objective is the mean cost of the queries, each as the epoch came to it.
    """

    own_stop: ClassVar[bool] = True
    order_matters: ClassVar[bool] = True
    as_printed: ClassVar[bool] = True
    swept: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "rate": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7),
        "sigma": (1.0, 1e-1, 1e-2, 1e-3, 1e-4),
    }
    epochs: int = 128
    rate: float = 0.01
    factor: float = 0.8
    patience: int = 16

    def __post_init__(self) -> None:
        check_rate(self.epochs, self.rate, self.factor)
        check(self.patience >= 1, f"patience is a number of epochs from 1, not {self.patience}")

    def run(self, problem: Problem, recorder: Recorder, rng: np.random.Generator) -> None:
        seed, sign = seed_of(recorder, rng), recorder.measure.sign
        values = recorder.begin(values=problem.params.free_values)["values"]
        if not recorder.trail:
            cost, _ = problem.value_and_grad(values, progress=0.0)
            if not recorder.epoch(values, cost, seed=seed):
                return
        for epoch in range(len(recorder.trail), self.epochs + 1):
            rate, begins_anew = self._pace(recorder.trail, sign)
            if begins_anew:
                values = problem.random_start(chance(seed, epoch, 1))
            order = chance(seed, epoch).permutation(problem.queries)
            values, mean = problem.query_steps(values, order, rate, progress=epoch / self.epochs)
            if not np.isfinite(mean):
                recorder.stopped = f"parameters grew without end at the rate {rate:g}: a smaller one is needed"
                return
            if not recorder.epoch(values, mean, rate, seed=seed):
                return

    def _pace(self, trail: Sequence[Epoch], sign: float) -> tuple[float, bool]:
        """The rate of the epoch after these, and whether it begins from new weights."""
        rate, best, idle = self.rate, -np.inf, 0
        for epoch in trail:
            if idle == self.patience:
                rate, best, idle = self.rate, -np.inf, 0
            if sign * epoch.train > best:
                best, idle = sign * epoch.train, 0
            else:
                rate, idle = rate * self.factor, idle + 1
        return (self.rate, True) if idle == self.patience else (rate, False)
