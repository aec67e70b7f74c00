"""Fit a model to rows by any method, chosen by the measure that counts on validation queries.

What the user leaves open (the strength of the prior, the noise of a soft measure, the rate, the random start) is
settled by trials in parallel, of which the best on validation queries wins.

>>> from fliprank.models import Linear
>>> rng = np.random.default_rng(0)
>>> features = rng.normal(size=(600, 3))
>>> rows = Candidates.of(features[:, 0] > 0, group=[20] * 30, features=features)
>>> fit = train(Linear(), *rows.split(0.7, 0.3), objective="ranknet", measure="AP")
>>> fit.best.valid > 0.95, fit.settings["objective"]
(True, 'ranknet')
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath
from fliprank.data.memory import AT_ONCE
from fliprank.data.scattered import ScatteredRows
from fliprank.data.subsample import subsample_by_spec
from fliprank.defaults import DEFAULT_MEASURE, DEFAULT_OBJECTIVE
from fliprank.errors import InputError, InterruptedFitError, UsageError
from fliprank.experiment.blending import train_blend
from fliprank.experiment.elsewhere import ELSEWHERE, TrialWork
from fliprank.experiment.growing import grow
from fliprank.experiment.parameter_settings import ParameterSettings
from fliprank.experiment.trials import Progress, Running, Trial, joined, problem_of, run_trial
from fliprank.measures import Measure, parse_measure
from fliprank.models import Blend, Model, Trees
from fliprank.models.base import describe
from fliprank.models.registry import make_model
from fliprank.objectives import Objective, parse_objective
from fliprank.optimize.anywhere import AnyRows, measured, score_deviation
from fliprank.optimize.fit import INTERRUPTED, Epoch, Fit, Tried, fingerprint
from fliprank.optimize.methods import Exact, Method, make_method
from fliprank.parallel import run_parallel

__all__ = ["averaged", "check_in_memory", "check_name", "prepared", "train"]

NOISES = (0.1, 0.3, 1.0)
"""The sigmas of a soft measure that are tried where none is given."""


OF_TEXT = ("stack", "taylor2006-2", "taylor2006-9", "taylor2006-375")
"""Names of models of text and columns, which look at the rows before they are made."""

PLACES = "rows in files or on a cluster"

PATIENCE = 20
"""Epochs without a better one that end a run; trees have a patience of their own."""


@checked
def train(
    model: Model | str,
    train: Candidates | ScatteredRows,
    valid: Candidates | ScatteredRows | None = None,
    *,
    objective: str | Objective = DEFAULT_OBJECTIVE,
    measure: str | Measure = DEFAULT_MEASURE,
    method: str | Method = "auto",
    keep: str = "measure",
    parameters: ParameterSettings | None = None,
    restarts: int = 4,
    sweep: bool = True,
    average: bool = True,
    polish: bool = False,
    patience: int | None = PATIENCE,
    sample: float | str | None = None,
    seed: int = 0,
    jobs: int | None = None,
    checkpoint: StrPath | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> Fit:
    """The best setting of several, by `measure` on `valid` (without it, one run with plain settings).

    Rows may be in files that do not fit in memory (`fr.open_rows`), for models of features but trees and blends.

    `model` may be a name: "auto" trains linear, net and trees, and blends them where `valid` says that it helps.
    `method` is one of `METHODS` by its name, or "auto": Adam for LambdaRank, else L-BFGS. Some descend the objective,
    others climb the measure itself. `settings` go to the method (`epochs`, `rate`, `l2`, ...); what is given, to the
    method or to the objective, is not swept. `keep` says which epoch is kept: the best by the "measure" or by the
    "objective", on validation queries where there are any, or the "last".

    Linear models of the best setting are averaged over their random starts, unless `average` is False or the method
    follows a paper to the letter; of other models the best start is taken. With `polish`, the result then climbs the
    measure itself, as far as `valid` approves.

    `parameters` fixes, bounds or shares parameters. `sample` draws unlabelled training rows as the papers do: "rated",
    "average", or a multiple of the labelled. Ctrl-C keeps the best so far. With `checkpoint` (a folder) each epoch is
    written, and `resume=True` goes on from there: the same run, bit for bit.
    """
    if isinstance(model, str):
        check_name(model, train)
        model = make_model(model, train)  # type: ignore[arg-type]
    check_in_memory(model, train, valid)
    chosen = parse_measure(measure)
    _check(train, valid)
    rng = np.random.default_rng(seed)
    if sample is not None and model.whole_queries:
        raise UsageError(f"the score of a {model.kind} depends on all rows of a query: leave sample out")
    rows = subsample_by_spec(train, sample, rng)
    if isinstance(model, Blend | Trees):
        assert isinstance(rows, Candidates)
        assert not isinstance(valid, ScatteredRows)
        _refuse(model, method=method != "auto", parameters=parameters not in (None, ParameterSettings()), polish=polish)
        common: dict[str, Any] = {"restarts": restarts, "sweep": sweep, "average": average, "patience": patience}
        common |= {"seed": seed, "jobs": jobs, "checkpoint": checkpoint, "resume": resume, "progress": progress}
        common |= {"keep": keep, **settings}
        if isinstance(model, Trees):
            common |= {"patience": model.patience} if patience == PATIENCE else {}
            return grow(model, rows, valid, objective, chosen, **common)
        part = partial(_train_part, rows=rows, valid=valid, objective=objective, measure=chosen)
        return train_blend(model, rows, valid, chosen, part, **common)
    target = parse_objective(objective)
    ready = prepared(model, rows, parameters, rng)
    if valid is not None:
        _try_on(ready, valid)  # other features are an error now, not after the first epoch
    trials = list(_trials(target, method, settings, sweep, valid is not None, restarts))
    trials[0].methods[0].check(problem_of(ready, rows, chosen, target, trials[0].methods[0]))
    held = None if valid is None else fingerprint(valid)
    key = fingerprint(rows, valid=held, measure=str(chosen), seed=seed, keep=keep, model=_identity(ready))
    running = Running(keep, patience, key=key, resume=resume)
    fits, whole = _run_all(trials, ready, rows, valid, chosen, running, seed, checkpoint, jobs, progress)
    groups = _by_setting(trials, fits)
    if not groups:
        raise InterruptedFitError("interrupted before the first epoch was done: there is nothing to keep")
    best, trial = max(groups, key=lambda group: chosen.sign * float(np.mean([fit.chosen_by for fit in group[0]])))
    best = sorted(best, key=lambda fit: chosen.sign * fit.chosen_by, reverse=True)
    mean = average and ready.linear_in_params and len(best) > 1 and not trial.methods[0].as_printed
    fit = averaged(best, rows, valid, chosen) if mean else best[0]
    if polish and whole:
        place = None if checkpoint is None else Path(checkpoint) / "polish"
        climb = replace(running, checkpoint=place, key=f"{key} {trial} polish", seed=seed)
        fit = joined(fit, run_trial(Trial(None, (Exact(),)), fit.model, rows, valid, chosen, climb))
    own = {f.name: getattr(trial.methods[0], f.name) for f in fields(trial.methods[0])}
    told = {"measure": str(chosen), "objective": str(trial.objective), "method": trial.methods[0].name, **own}
    told |= {"keep": keep, "trials": sum(fit is not None for fit in fits), "seed": seed, "restarts": len(best)}
    tried = tuple(
        Tried(str(each), float(np.mean([fit.chosen_by for fit in some])), float(each is trial)) for some, each in groups
    )
    told |= {"averaged": mean, "polished": polish}
    return replace(
        fit,
        stopped=fit.stopped if whole else INTERRUPTED,
        settings=told,
        tried=tried,
        rows=rows if isinstance(rows, Candidates) else None,
        start=ready,
    )


def check_name(model: str, rows: AnyRows) -> None:
    """Raise an error that says why, where no model of this name can be made for rows that are not in one memory."""
    if model in OF_TEXT and isinstance(rows, ScatteredRows):
        raise UsageError(
            f"{model} is fitted to rows in memory only: it reads term statistics, which {PLACES} do not have; "
            "take linear or network, or read a file of term statistics without --memory and --cluster"
        )


def check_in_memory(model: Model, train: AnyRows | None, valid: AnyRows | None) -> None:
    """Raise an error that says why, where a model can't be fitted to rows that are not in one memory."""
    whole = isinstance(model, Blend | Trees)
    if isinstance(train, ScatteredRows) and (whole or not (model.ready or model.prepared_in_parts)):
        raise UsageError(
            f"{model.kind} is fitted to rows in memory only; linear, network and cascades of these take {PLACES}"
        )
    if whole and isinstance(valid, ScatteredRows):
        raise UsageError(
            f"{model.kind} is fitted to rows in memory only, and the validation rows are {PLACES}: "
            "give them as a file that is no shard, without --memory"
        )


def _try_on(model: Model, rows: AnyRows) -> None:
    """Score rows, or their first part, to see whether a model can."""
    if isinstance(rows, Candidates):
        model.score(rows)
    else:
        next(iter(rows.each(_scored, model)), None)


def _scored(part: Candidates, model: Model) -> None:
    model.score(part)


def _identity(model: Model) -> list[Any]:
    """All that tells a model that is ready from another: kind, structure (its features, too), parameters."""
    params = model.params
    numbers = [each.tolist() for each in (params.values, params.lower, params.upper, params.slots)]
    return [describe(model), params.names, params.free_names, *numbers]


def _train_part(model: Model, rows: Candidates, valid: Candidates | None, **options: Any) -> Fit:
    """A part of a blend, trained as it would be alone."""
    return train(model, rows, valid, **options)


def _refuse(model: Model, **given: bool) -> None:
    """Raise an error that names the option that this kind of model has no use for."""
    for name, said in given.items():
        if said:
            raise UsageError(f"{model.kind} has no use for {name}: its parts are grown or trained in their own ways")


def prepared(
    model: Model, rows: AnyRows, parameters: ParameterSettings | None = None, rng: int | np.random.Generator = 0
) -> Model:
    """The model that knows these rows' fields and features, with its parameters arranged as asked."""
    if not len(rows):
        raise InputError("there are no rows to fit to")
    ready = model if model.ready and model.params.names else model.prepared(rows, rng)  # type: ignore[arg-type]
    if not ready.params.names:
        raise UsageError(f"{ready.kind} has no parameters that a method could move: take it as a stage of a cascade")
    arranged = ready.at((parameters or ParameterSettings()).apply(ready.params))
    if not arranged.params.free_names:
        raise UsageError("every parameter is fixed: there is nothing to fit")
    return arranged


def _trials(
    objective: Objective,
    method: str | Method,
    given: dict[str, Any],
    sweep: bool,
    validated: bool,
    restarts: int,
) -> Iterator[Trial]:
    """Every trial to run. What was not given is swept over a few values, where validation queries can choose."""
    first = make_method(method, objective, **given)  # a wrong setting is an error before the first run
    grid: dict[str, tuple[Any, ...]] = {}
    if sweep and validated and isinstance(method, str):
        grid = {name: values for name, values in first.swept.items() if name not in given and name != "sigma"}
        noise = {f.name: getattr(objective, f.name) for f in fields(objective)}.get("sigma", 0.0)
        if noise is None and not first.direct:
            grid["sigma"] = first.swept.get("sigma", NOISES)
    # Of ascents of the measure itself, training queries can tell which start was best.
    several = sweep and (validated or first.direct) and not first.global_search
    for values in product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        own = replace(objective, sigma=point.pop("sigma")) if "sigma" in point else objective  # type: ignore[call-arg]
        for start in range(restarts if several else 1):
            yield Trial(own, (replace(first, **point),), start)


def _run_all(
    trials: list[Trial],
    model: Model,
    rows: AnyRows,
    valid: AnyRows | None,
    measure: Measure,
    running: Running,
    seed: int,
    checkpoint: StrPath | None,
    jobs: int | None,
    progress: Progress | None,
) -> tuple[list[Fit | None], bool]:
    """The fit of each trial, and whether none was ended by Ctrl-C, which ends each after its epoch."""
    enough = threading.Event()

    def work(number: int, trial: Trial) -> TrialWork:
        begin = model if trial.start == 0 else model.initialised(np.random.default_rng(seed + trial.start))
        own = replace(running, seed=seed + trial.start, enough=enough.is_set)
        if checkpoint is not None:
            own = replace(own, checkpoint=Path(checkpoint) / f"run-{number:03d}")
        if progress is not None:
            own = replace(own, progress=lambda epoch: progress("training", number + 1, len(trials), epoch))
        return TrialWork(trial, begin, own)

    def task(each: TrialWork) -> Fit | None:
        return run_trial(each.trial, each.model, rows, valid, measure, each.running)

    every = [work(number, trial) for number, trial in enumerate(trials)]
    away = ELSEWHERE.get()
    if away is not None and isinstance(rows, Candidates) and not isinstance(valid, ScatteredRows):
        return away.run_trials(every, rows, valid, measure), True
    if isinstance(rows, ScatteredRows) or isinstance(valid, ScatteredRows):  # each looks at a window of its own
        jobs = min(jobs or os.cpu_count() or 1, AT_ONCE)
    fits = run_parallel([partial(task, each) for each in every], jobs, enough=enough)
    return fits, not enough.is_set()


def _by_setting(trials: list[Trial], fits: list[Fit | None]) -> list[tuple[list[Fit], Trial]]:
    """The fits of each setting over its random starts, with the trial of the first."""
    groups: dict[Trial, list[Fit]] = {}
    for trial, fit in zip(trials, fits, strict=True):
        if fit is not None:
            groups.setdefault(replace(trial, start=0), []).append(fit)
    return [(some, trial) for trial, some in groups.items()]


def averaged(fits: list[Fit], rows: AnyRows, valid: AnyRows | None, measure: Measure) -> Fit:
    """The mean of linear models from several random starts, each brought to the same spread of scores.

    Where scores are linear in the parameters, the mean of models is a model; it varies less than any of them.
    """
    spreads = [score_deviation(fit.model, rows) or 1.0 for fit in fits]
    values = [fit.model.params.free_values / spread for fit, spread in zip(fits, spreads, strict=True)]
    params = fits[0].model.params
    model = fits[0].model.at(params.with_free(np.mean(spreads) * np.mean(values, axis=0)))
    found = [float("nan") if part is None else measured(model, part, measure) for part in (rows, valid)]
    best: Epoch = replace(fits[0].best, train=found[0], valid=found[1])
    return replace(fits[0], model=model, best=best)


def _check(train: AnyRows, valid: AnyRows | None) -> None:
    """Raise an error where no objective can learn anything."""
    for name, rows in (("training", train), ("validation", valid)):
        if rows is not None and not len(rows):
            raise InputError(f"the {name} set has no rows")
    found = [_label_range(train)] if isinstance(train, Candidates) else list(train.each(_label_range))
    low, high, differ = (np.array(column) for column in zip(*found, strict=True))
    if not differ.any():
        raise InputError(
            "no training query has documents with different labels: there is nothing to learn",
            hint=f"{train.queries} queries, labels from {low.min():g} to {high.max():g}",
        )


def _label_range(part: Candidates) -> tuple[float, float, bool]:
    """The least and the largest label, and whether labels differ within any query."""
    labels: Floats = np.nan_to_num(part.labels)
    low, high = (np.full(part.queries, fill) for fill in (np.inf, -np.inf))
    owner = part.query_of_rows()
    np.minimum.at(low, owner, labels)
    np.maximum.at(high, owner, labels)
    return float(labels.min(initial=np.inf)), float(labels.max(initial=-np.inf)), bool((high > low).any())
