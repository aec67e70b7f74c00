"""Sweeps, random starts and folds on rows that fit in memory: each a whole task on some worker.

A trial takes its rows, which a worker is sent once, and the checkpoint that it goes on from, if there is one; it brings
back its fit and the checkpoint at its end, which is written here: so a run that is resumed skips what was done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.data.files import atomic_write
from fliprank.distributed.cluster import Cluster
from fliprank.distributed.messages import Named, bases_in, pack
from fliprank.distributed.worker import scratch_folder
from fliprank.experiment.elsewhere import Chain, TrialWork
from fliprank.experiment.row_pool import RowPool
from fliprank.experiment.trials import Running, Trial, run_trial
from fliprank.experiment.tuning import Tuner
from fliprank.measures import Measure
from fliprank.models import Model
from fliprank.optimize.fit import Epoch, Fit

__all__ = ["WholeTasks", "run_chain", "run_whole_trial"]

SUFFIX = ".checkpoint"


class WholeTasks:
    """Runs trials on the workers of a cluster (see `experiment/elsewhere.py`)."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def _call(
        self,
        function: Callable[..., Any],
        calls: Sequence[Sequence[Any]],
        rows: Mapping[str, Candidates],
        done: Callable[[int, Any], None] = lambda at, told: None,
    ) -> list[Any]:
        """What a function of fliprank's gives for each list of arguments, each in a task of its own.

        `done` is told each as it comes, with its place.
        """
        numbers = self.cluster.new_shards([f"task-{uuid4().hex}" for _ in calls])
        place = {number: at for at, number in enumerate(numbers)}
        bases = {name: message for given in calls for name, message in bases_in(tuple(given)).items()}

        def request(some: list[int]) -> dict[str, Any]:
            return {"calls": [{"function": function, "given": tuple(calls[place[number]])} for number in some]}

        def definitions(name: str) -> Mapping[str, bytes]:
            return {name: pack({"rows": rows[name]}) if name in rows else bases[name]}

        try:
            label = function.__name__
            noted = partial(_noted, done, place)
            told = self.cluster.ask("call", numbers, request, definitions, bases, label, apart=True, done=noted)
        finally:
            self.cluster.drop_shards(numbers)
            self.cluster.dead.extend(rows)
        return [each["told"] for each in told]

    def run_trials(
        self, work: Sequence[TrialWork], rows: Candidates, valid: Candidates | None, measure: Measure
    ) -> list[Fit | None]:
        """The fit of each trial; checkpoints are written here."""
        named = {f"rows-{uuid4().hex}": part for part in (rows, valid) if part is not None}
        refs = [Named(name) for name in named]
        held = refs[1] if valid is not None else None
        calls = [_trial_call(each, refs[0], held, measure) for each in work]
        told = self._call(run_whole_trial, calls, named, lambda at, own: _write(work[at], own))
        return [_fit(each, own, measure) for each, own in zip(work, told, strict=True)]

    def run_chains(
        self,
        chains: Sequence[Chain],
        model: Model,
        measure: Measure,
        restarts: int,
        seed: int,
        done: Callable[[], None],
    ) -> list[dict[Trial, Model]]:
        """Where the trials of each chain end."""
        every = {id(rows): rows for chain in chains for rows in (chain.rows, chain.few)}
        names = {key: f"rows-{uuid4().hex}" for key in every}
        calls = list[list[Any]]()
        for chain in chains:
            begun = [chain.begun[trial].params.values if trial in chain.begun else None for trial in chain.trials]
            refs = [Named(names[id(rows)]) for rows in (chain.rows, chain.few)]
            calls.append([list(chain.trials), begun, *refs, model, measure, restarts, seed])
        told = self._call(run_chain, calls, {names[key]: rows for key, rows in every.items()})
        out = list[dict[Trial, Model]]()
        for chain, ends in zip(chains, told, strict=True):
            out.append({trial: model.at(values) for trial, values in zip(chain.trials, ends, strict=True)})
            for _ in chain.trials:
                done()
        return out


def _noted(done: Callable[[int, Any], None], place: Mapping[int, int], number: int, answer: Mapping[str, Any]) -> None:
    done(place[number], answer["told"])


def _trial_call(work: TrialWork, rows: Named, valid: Named | None, measure: Measure) -> list[Any]:
    running, before = work.running, dict[str, bytes]()
    if running.checkpoint is not None and running.resume:
        before = {path.name: path.read_bytes() for path in _checkpoints(running.checkpoint)}
    how = [running.keep, running.patience, running.key, running.resume, running.seed]
    name = None if running.checkpoint is None else running.checkpoint.name
    return [work.trial, work.model, rows, valid, measure, how, name, before]


def _checkpoints(stem: Path) -> list[Path]:
    """The checkpoints of a trial: one per method."""
    return sorted(stem.parent.glob(f"{stem.name}{SUFFIX}")) + sorted(stem.parent.glob(f"{stem.name}-*{SUFFIX}"))


def run_whole_trial(
    trial: Trial,
    model: Model,
    rows: Candidates,
    valid: Candidates | None,
    measure: Measure,
    how: Sequence[Any],
    name: str | None,
    before: Mapping[str, bytes],
) -> dict[str, Any]:
    """On a worker: one trial, from the checkpoints of before, if any; the fit in parts, and its checkpoints."""
    keep, patience, key, resume, seed = how
    with TemporaryDirectory(prefix="fliprank-trial-", dir=scratch_folder()) as folder:
        for file, content in before.items():
            Path(folder, Path(file).name).write_bytes(content)
        place = None if name is None else Path(folder, name)
        fit = run_trial(trial, model, rows, valid, measure, Running(keep, patience, place, key, resume, seed=seed))
        files = {} if place is None else {path.name: path.read_bytes() for path in _checkpoints(place)}
    if fit is None:
        return {"files": files}
    told = {"values": fit.model.params.values, "best": fit.best, "trail": list(fit.trail), "stopped": fit.stopped}
    return {**told, "path": fit.path, "scored": fit.documents_scored, "files": files}


def _write(work: TrialWork, told: Mapping[str, Any]) -> None:
    """Write the checkpoints of a trial that is done, and report its best epoch."""
    if work.running.checkpoint is not None:
        work.running.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        for name, content in told["files"].items():
            with atomic_write(work.running.checkpoint.parent / Path(name).name) as file:
                file.write(content)
    if work.running.progress is not None and "best" in told:
        work.running.progress(told["best"])


def _fit(work: TrialWork, told: Mapping[str, Any], measure: Measure) -> Fit | None:
    if "values" not in told:
        return None
    trail: list[Epoch] = told["trail"]
    known: dict[str, Any] = {"path": told["path"], "start": work.model, "measure": measure}
    model, scored = work.model.at(told["values"]), told["scored"]
    return Fit(model, told["best"], tuple(trail), told["stopped"], documents_scored=scored, **known)


def run_chain(
    trials: Sequence[Trial],
    begun: Sequence[Any],
    rows: Candidates,
    few: Candidates,
    model: Model,
    measure: Measure,
    restarts: int,
    seed: int,
) -> list[Any]:
    """On a worker: the trials of a chain one after the other; the parameters where each ends."""
    pool = RowPool(rows, 0, np.ones(len(rows), bool), np.zeros(len(rows), bool))
    tuner = Tuner(model, pool, measure, restarts, seed)
    known = {trial: model.at(values) for trial, values in zip(trials, begun, strict=True) if values is not None}
    ends = tuner.chain(trials, rows, few, known, lambda: None)
    return [ends[trial].params.values for trial in trials]
