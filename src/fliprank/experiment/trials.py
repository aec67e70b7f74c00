"""One way to fit, and how it is run: an objective, methods one after the other, a start.

`train` and `tune` make lists of trials; what they do with the results differs, how a fit is made does not.

>>> from fliprank.objectives import RankNet
>>> from fliprank.optimize.methods import Lbfgs, Sampled
>>> print(Trial(RankNet(), (Lbfgs(l2=0.01), Sampled())))
ranknet by lbfgs(l2=0.01), then sampled
>>> print(KEEP_DEFAULTS)
keep the defaults
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.measures import Measure
from fliprank.models import Model
from fliprank.objectives import Objective
from fliprank.optimize.anywhere import AnyRows
from fliprank.optimize.fit import Epoch, Fit, Recorder
from fliprank.optimize.methods import Method
from fliprank.optimize.problem import Problem

__all__ = ["KEEP_DEFAULTS", "Progress", "Running", "Trial", "fit_once", "joined", "problem_of", "run_trial"]

Progress = Callable[[str, int, int, Epoch | None], None]
"""Called with what is being done, how many parts of it are done or under way, of how many, and the epoch if there is
one."""


@dataclass(frozen=True)
class Trial:
    """An objective, methods that run one after the other, and a random start (0: the model as it is)."""

    objective: Objective | None = None
    methods: tuple[Method, ...] = ()
    start: int = 0

    def __str__(self) -> str:
        if not self.methods:
            return "keep the defaults"
        ways = ", then ".join(map(str, self.methods))
        needed = self.objective is not None and not self.methods[0].direct
        return f"{self.objective} by {ways}" if needed else ways


KEEP_DEFAULTS = Trial()


def problem_of(model: Model, rows: AnyRows, measure: Measure, objective: Objective | None, method: Method) -> Problem:
    """The problem as a method sees it; those that follow a paper to the letter see raw scores."""
    return Problem.of(model, rows, measure, objective, spread=not (method.as_printed or model.scales_freely))


@dataclass(frozen=True)
class Running:
    """How trials are run: what is kept, when they stop, where checkpoints are."""

    keep: str = "measure"
    patience: int | None = None
    checkpoint: Path | None = None
    key: str = ""
    resume: bool = False
    progress: Callable[[Epoch], None] | None = None
    enough: Callable[[], bool] | None = None
    seed: int = 0


def run_trial(
    trial: Trial, model: Model, rows: AnyRows, valid: AnyRows | None, measure: Measure, running: Running
) -> Fit | None:
    """The fit of one trial; None where it was interrupted before its first epoch was done."""
    fit: Fit | None = None
    for number, method in enumerate(trial.methods):
        problem = problem_of(model, rows, measure, trial.objective, method)
        held = None if valid is None else problem_of(model, valid, measure, trial.objective, method)
        keep = "measure" if method.direct and running.keep == "objective" else running.keep
        recorder = Recorder(problem, held, keep, None if method.own_stop else running.patience)
        recorder.progress, recorder.enough = running.progress, running.enough
        if running.checkpoint is not None:
            recorder.checkpoint = Path(f"{running.checkpoint}{f'-{number + 1}' if number else ''}.checkpoint")
            recorder.key = f"{running.key} {trial} {number}"
        done = running.resume and recorder.resume() and recorder.finished
        if not done and not (running.enough is not None and running.enough()):
            method.run(problem, recorder, np.random.default_rng(running.seed))
            recorder.finish()
        if recorder.best is None:
            return fit
        fit = joined(fit, recorder.fit())
        model = fit.model
        if fit.interrupted:
            break
    return fit


def joined(before: Fit | None, after: Fit | None) -> Fit:
    """A fit that went on from where another ended: its epochs follow in the trail."""
    if before is None or after is None:
        assert before is not None or after is not None
        return before or after  # type: ignore[return-value]
    first = len(before.trail)
    trail = [replace(epoch, number=first + epoch.number) for epoch in after.trail]
    path = None if before.path is None or after.path is None else np.concatenate([before.path, after.path])
    scored = before.documents_scored + after.documents_scored
    best = trail[after.best.number]
    return replace(
        after, best=best, trail=(*before.trail, *trail), path=path, start=before.start, documents_scored=scored
    )


def fit_once(
    method: Method, objective: Objective | None, model: Model, rows: Candidates, measure: Measure, seed: int
) -> tuple[float, Model]:
    """(the objective at the end, the model there) of one method, with nothing evaluated or written on the way."""
    problem = problem_of(model, rows, measure, objective, method)
    recorder = Recorder(problem, keep="last", measured=False)
    method.run(problem, recorder, np.random.default_rng(seed))
    fit = recorder.fit()
    return fit.best.objective, fit.model
