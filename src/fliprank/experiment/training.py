"""Train a model on a smooth objective, chosen by the measure that counts on validation queries.

What the user leaves open (how small to hold the weights, the noise of a soft measure, the rate, the random start) is
settled by runs side by side, one a setting, of which the best on validation queries wins.

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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath
from fliprank.data.readers import read_candidates
from fliprank.data.subsample import subsample_by_spec
from fliprank.errors import InputError
from fliprank.measures import Measure, parse_measure
from fliprank.models import Model
from fliprank.objectives import Objective, parse_objective
from fliprank.optimize.fit import Epoch, Fit, Recorder, fingerprint
from fliprank.optimize.methods import DIRECT, OWN_RULES, WHOLE, make_method, method_name
from fliprank.optimize.polish import polish as polish_model

__all__ = ["DEFAULT_MEASURE", "DEFAULT_OBJECTIVE", "Fold", "Watch", "averaged", "read_folds", "read_sets", "train"]

DEFAULT_MEASURE = "nDCG(dcg='exp-log2')@10"
DEFAULT_OBJECTIVE = "lambdarank@10"

SWEPT: dict[str, dict[str, tuple[float, ...]]] = {
    "lbfgs": {"l2": (1e-3, 1e-2, 1e-1)},
    "adam": {"l2": (1e-3, 1e-2, 1e-1)},
    "taylor2008": {"rate": (1e-1, 1e-2, 1e-3, 1e-4)},
}
"""What is tried where the user names no value."""

Watch = Callable[[int, int, Epoch], None]
"""Called with (number of the run, number of runs, epoch) after each epoch."""


@dataclass(frozen=True)
class Setting:
    """One run: an objective, a method with its settings, a seed."""

    objective: Objective
    name: str
    method: Any
    seed: int

    def __str__(self) -> str:
        return f"{self.objective} {self.method} seed={self.seed}"


def train(
    model: Model,
    train: Candidates,
    valid: Candidates | None = None,
    *,
    objective: str | Objective = DEFAULT_OBJECTIVE,
    measure: str | Measure = DEFAULT_MEASURE,
    method: str = "auto",
    restarts: int = 4,
    sweep: bool = True,
    average: bool = True,
    polish: bool = False,
    patience: int | None = 20,
    sample: float | str | None = None,
    seed: int = 0,
    jobs: int | None = None,
    checkpoint: StrPath | None = None,
    resume: bool = False,
    watch: Watch | None = None,
    **settings: Any,
) -> Fit:
    """The best setting of several, by `measure` on `valid` (without it, one run with plain settings).

    Linear models of the best setting are averaged over their random starts, unless `average` is False; of other models
    the best start is taken. With `polish`, the result then climbs the measure itself, as far as `valid` approves.

    `method`: "lbfgs", "adam", "taylor2006", "taylor2008", "auto" (Adam for LambdaRank, else L-BFGS), or one that climbs
    the measure itself, without an objective: "exact" (the one for models that are linear), "line", "golden", "brent",
    "powell", "evolution", "grid". `settings` go to the method (`epochs`, `rate`, `l2`, ...); what is given is not
    swept. `sample` draws unlabelled training rows as the papers do: "rated" or a multiple of the labelled. Ctrl-C keeps
    the best so far. With `checkpoint` (a folder) each epoch is written, and `resume=True` goes on from there.
    """
    target, chosen = parse_objective(objective), parse_measure(measure)
    _check(train, valid)
    rng = np.random.default_rng(seed)
    rows = subsample_by_spec(train, sample, rng)
    ready = model.prepared(rows, rng)
    if valid is not None:
        ready.score(valid)  # other features are an error now, not after the first epoch
    runs = list(_settings(target, method, settings, sweep, valid is not None, restarts, seed))
    key = fingerprint(rows, valid=None if valid is None else fingerprint(valid), measure=str(chosen), seed=seed)
    recorders = []
    for number, run in enumerate(runs):
        path = None if checkpoint is None else Path(checkpoint) / f"run-{number:03d}.checkpoint"
        start = ready if run.seed == seed else ready.initialised(np.random.default_rng(run.seed))
        wait_for = None if run.name in OWN_RULES else patience
        recorder = Recorder(start, rows, valid, chosen, wait_for, path, f"{key} {run}")
        if watch is not None:
            recorder.watch = _numbered(watch, number, len(runs))
        recorders.append(recorder)
    whole = _run_all(runs, recorders, resume, jobs)
    done = [(recorder.fit(), run) for recorder, run in zip(recorders, runs, strict=True) if recorder.best is not None]
    if not done:
        raise InputError("interrupted before the first epoch was done: there is nothing to keep")
    fits, run = _best_setting(done, chosen.sign)
    mean = average and ready.linear_in_params and len(fits) > 1
    fit = averaged(fits, rows, valid, chosen) if mean else fits[0]
    if polish and whole:
        fit = _polished(fit, rows, valid, chosen, seed, checkpoint, f"{key} {run} polish", resume)
    told = {f.name: getattr(run.method, f.name) for f in fields(run.method)}
    settled = {"objective": str(run.objective), "method": run.name, **told, "runs": len(done)}
    settled |= {"seed": seed, "restarts": len(fits), "averaged": mean, "polished": polish}
    return replace(fit, stopped=fit.stopped if whole else "interrupted", settings={"measure": str(chosen), **settled})


def _settings(
    objective: Objective, method: str, given: dict[str, Any], sweep: bool, validated: bool, restarts: int, seed: int
) -> Iterator[Setting]:
    """Every run to make. What was not given is swept over a few values, where validation queries can choose."""
    name = method_name(method, objective)
    make_method(name, objective, **given)  # a wrong setting is an error before the first run
    grid: dict[str, tuple[float, ...]] = {}
    if sweep and validated:
        grid = {key: values for key, values in SWEPT.get(name, {}).items() if key not in given}
        noisy = "sigma" in {f.name for f in fields(objective)} - objective.parameters().keys() and objective.maximise
        if noisy and name not in DIRECT:
            grid["sigma"] = (0.1, 0.3, 1.0)
    # Of ascents of the measure itself, training queries can tell which start was best.
    starts = restarts if sweep and (validated or name in DIRECT) and name not in WHOLE else 1
    for values in product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        noise = {"sigma": point.pop("sigma")} if "sigma" in point else {}
        for start in range(starts):
            yield Setting(
                replace(objective, **noise), name, make_method(name, objective, **given, **point), seed + start
            )


def _run_all(runs: list[Setting], recorders: list[Recorder], resume: bool, jobs: int | None) -> bool:
    """All runs, `jobs` at a time, one thread each; Ctrl-C ends each after its epoch. Whether none was ended so."""
    enough = threading.Event()

    def work(run: Setting, recorder: Recorder) -> None:
        if count > 1:  # the runs share the cores; each is fastest alone on one
            numba.set_num_threads(1)
        if enough.is_set() or (resume and recorder.resume() and recorder.finished):
            return
        recorder.enough = enough.is_set
        run.method.run(recorder, run.objective, np.random.default_rng(run.seed))
        recorder.finish()

    count = min(len(runs), jobs or os.cpu_count() or 1)
    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(work, run, recorder) for run, recorder in zip(runs, recorders, strict=True)]
        try:
            wait(futures)
        except KeyboardInterrupt:
            enough.set()
            wait(futures)
        for future in futures:
            future.result()
    return not enough.is_set()


def _best_setting(done: list[tuple[Fit, Setting]], sign: float) -> tuple[list[Fit], Setting]:
    """The fits of the setting that is best on average over its random starts, the best of them first."""

    def found(fit: Fit) -> float:
        return sign * (fit.best.train if np.isnan(fit.best.valid) else fit.best.valid)

    groups: dict[str, list[tuple[Fit, Setting]]] = {}
    for fit, run in done:
        groups.setdefault(str(replace(run, seed=0)), []).append((fit, run))
    best = max(groups.values(), key=lambda group: float(np.mean([found(fit) for fit, _ in group])))
    return sorted((fit for fit, _ in best), key=found, reverse=True), best[0][1]


def averaged(fits: list[Fit], rows: Candidates, valid: Candidates | None, measure: Measure) -> Fit:
    """The mean of linear models from several random starts, each brought to the same spread of scores.

    Where scores are linear in the parameters, the mean of models is a model; it varies less than any of them.
    """
    spreads = [float(np.std(fit.model.score(rows))) or 1.0 for fit in fits]
    values = [fit.model.params.free_values / spread for fit, spread in zip(fits, spreads, strict=True)]
    params = fits[0].model.params
    model = fits[0].model.at(params.with_free(np.mean(spreads) * np.mean(values, axis=0)))
    told = [float("nan") if part is None else measure.value(model.score(part), part) for part in (rows, valid)]
    best = replace(fits[0].best, train=told[0], valid=told[1])
    return replace(fits[0], model=model, best=best)


def _polished(
    fit: Fit,
    rows: Candidates,
    valid: Candidates | None,
    measure: Measure,
    seed: int,
    checkpoint: StrPath | None,
    key: str,
    resume: bool,
) -> Fit:
    """The fit after an exact ascent from where it ended, whose epochs follow in the trail."""
    path = None if checkpoint is None else Path(checkpoint) / "polish.checkpoint"
    recorder = Recorder(fit.model, rows, valid, measure, checkpoint=path, key=key)
    if resume:
        recorder.resume()
    better = polish_model(fit.model, rows, valid, measure, seed=seed, recorder=recorder)
    first = len(fit.trail)
    trail = [replace(epoch, number=first + epoch.number) for epoch in better.trail]
    return replace(better, best=trail[better.best.number], trail=(*fit.trail, *trail))


def _numbered(watch: Watch, number: int, count: int) -> Callable[[Epoch], None]:
    return lambda epoch: watch(number, count, epoch)


def _check(train: Candidates, valid: Candidates | None) -> None:
    """What no objective can learn from is an error here."""
    for name, rows in (("training", train), ("validation", valid)):
        if rows is not None and not len(rows):
            raise InputError(f"the {name} set has no rows")
    labels: Floats = np.nan_to_num(train.labels)
    low, high = (np.full(train.queries, fill) for fill in (np.inf, -np.inf))
    owner = train.query_of_rows()
    np.minimum.at(low, owner, labels)
    np.maximum.at(high, owner, labels)
    if not (high > low).any():
        raise InputError(
            "no training query has documents with different labels: there is nothing to learn",
            hint=f"{train.queries} queries, labels from {labels.min():g} to {labels.max():g}",
        )


class Fold(NamedTuple):
    """Rows to train on, to choose by, and to test on."""

    name: str
    train: Candidates
    valid: Candidates | None
    test: Candidates | None


def read_sets(train: StrPath, valid: StrPath | None, test: StrPath | None) -> Iterator[Fold]:
    """One fold without a name, from files."""
    yield Fold("", read_candidates(train), *(None if path is None else read_candidates(path) for path in (valid, test)))


def read_folds(folder: StrPath) -> Iterator[Fold]:
    """Each Fold* in a folder with LETOR's layout (train, vali and test files), plain or gzipped."""
    folds = sorted(path for path in Path(folder).glob("Fold*") if path.is_dir())
    if not folds:
        raise InputError("no Fold1, Fold2, ... in this folder", path=folder)
    for fold in folds:
        yield Fold(fold.name, *(read_candidates(fold / f"{part}.txt") for part in ("train", "vali", "test")))
