"""Where trials on rows in memory are run: here, in threads, unless something else is set for the time of a block.

A cluster sets itself (`with fr.on(client):`): sweeps, random starts and folds are then whole tasks on its workers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, Protocol

from fliprank.data.candidates import Candidates
from fliprank.measures import Measure
from fliprank.models import Model

if TYPE_CHECKING:
    from fliprank.experiment.trials import Running, Trial
    from fliprank.optimize.fit import Fit

__all__ = ["ELSEWHERE", "Chain", "Elsewhere", "TrialWork"]


class TrialWork(NamedTuple):
    """A trial, the model that it begins with, and how it is run."""

    trial: Trial
    model: Model
    running: Running


class Chain(NamedTuple):
    """Trials one after the other, on rows for gradients and for searches; and where some were begun before."""

    trials: Sequence[Trial]
    rows: Candidates
    few: Candidates
    begun: Mapping[Trial, Model]


class Elsewhere(Protocol):
    """Runs trials on other machines."""

    def run_trials(
        self, work: Sequence[TrialWork], rows: Candidates, valid: Candidates | None, measure: Measure
    ) -> list[Fit | None]:
        """The fit of each trial; None where it was interrupted before its first epoch was done."""

    def run_chains(
        self,
        chains: Sequence[Chain],
        model: Model,
        measure: Measure,
        restarts: int,
        seed: int,
        done: Callable[[], None],
    ) -> list[dict[Trial, Model]]:
        """Where the trials of each chain end; `done` is called after each trial."""


ELSEWHERE: ContextVar[Elsewhere | None] = ContextVar("elsewhere", default=None)
