"""The paper's training procedure (section 4.5): query by query, settings and epoch chosen on validation queries.

The paper has 128 epochs and looks at rates from 1e-1 to 1e-7 and sigmas from 1 to 1e-4; here 32 epochs, and of these
settings two rates and two sigmas: on validation queries, smaller rates and other sigmas are hardly ever better. Section
4.5 looks at all of them, on one fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import fliprank as fr
from fliprank.arrays import Floats
from fliprank.measures import Measure, parse_measure
from fliprank.models.base import Model, describe, full_text
from fliprank.optimize.fit import Fit, fingerprint
from fliprank.papers.part import Setting
from fliprank.papers.processes import run_in_processes
from fliprank.papers.taylor2008.corpora import Corpus, corpus
from fliprank.parallel import run_parallel

__all__ = [
    "G3",
    "G10",
    "OBJECTIVES",
    "Trained",
    "epochs_of",
    "fit_once",
    "make_runs",
    "settings_of",
    "settings_tried",
    "trained",
]

G10, G3 = fr.nDCG(10, dcg="exp-log2"), fr.nDCG(3, dcg="exp-log2")
OBJECTIVES = {"MSE": "mse", "RankNet": "ranknet", "LambdaRank": "lambdarank", "SoftRank": "softrank"}
RATES, SIGMAS = (1e-1, 1e-2), (1e-1, 1e-2)
EPOCHS, QUICK_EPOCHS = 32, 4


@dataclass(frozen=True, eq=False)
class Trained:
    """A ranker over all folds: each test query's measures, each training query's NDCG@10, and what was chosen.

    A query that was trained on in several folds has its mean over these.
    """

    test: dict[str, Floats]
    training: Floats
    chosen: tuple[str, ...]
    epochs: tuple[int, ...]
    """The epoch that validation queries chose in each fold."""

    @property
    def g10(self) -> Floats:
        """NDCG@10 of each test query."""
        return self.test["G10"]


def settings_tried(objective: str, setting: Setting) -> list[tuple[str, float]]:
    """(objective, rate) of every trial; the noise of a soft objective is a part of its name."""
    rates, sigmas = (RATES[:2], SIGMAS[:1]) if setting.quick else (RATES, SIGMAS)
    if not objective.startswith("soft"):
        return [(objective, rate) for rate in rates]
    name, _, options = objective.rstrip(")").partition("(")
    given = f"{options}," if options else ""
    return [(f"{name}({given}sigma={sigma:g})", rate) for rate, sigma in product(rates, sigmas)]


def epochs_of(setting: Setting) -> int:
    """How many epochs a run has."""
    return QUICK_EPOCHS if setting.quick else EPOCHS


def fit_once(
    setting: Setting, model: Model, train: fr.Candidates, valid: fr.Candidates, objective: str, rate: float, **how: Any
) -> Fit:
    """One run; each epoch is kept in a cache that all parts share, so that no run is made twice."""
    own = _options(setting, objective, rate, how)
    place = _place(setting, model, train, valid, own)
    return fr.train(
        model, train, valid, method="taylor2008", sweep=False, restarts=1, seed=setting.seed, jobs=1,
        checkpoint=place, resume=True, **own,
    )  # fmt: skip


def _options(setting: Setting, objective: str, rate: float, how: Mapping[str, Any]) -> dict[str, Any]:
    usual = {"epochs": epochs_of(setting), "measure": G10, "sample": None}
    return usual | {"objective": objective, "rate": rate} | dict(how)


def _place(setting: Setting, model: Model, train: fr.Candidates, valid: fr.Candidates, own: Mapping[str, Any]) -> Path:
    """The folder of a run's checkpoint: it is named for all that the run depends on."""
    known = str(describe(model)) if model.ready else full_text(model)
    key = fingerprint(train, valid=fingerprint(valid), model=known, seed=setting.seed, **own)
    return setting.fits / key


@dataclass(frozen=True)
class Task:
    """A run as it is told to another process."""

    setting: Setting
    corpus: str
    linear: bool
    fold: int
    objective: str
    rate: float
    measure: str


def _work(task: Task) -> None:
    """Make the run that a task tells of: its checkpoint is what is left of it."""
    data = _corpus(task.setting, task.corpus)
    train, valid, _ = data.folds[task.fold]
    how = {"measure": parse_measure(task.measure), "sample": data.sample}
    fit_once(task.setting, fr.Linear() if task.linear else data.model, train, valid, task.objective, task.rate, **how)


_CORPORA: dict[tuple[str, bool, int], Corpus] = {}


def _corpus(setting: Setting, name: str) -> Corpus:
    """The corpus in a process that makes many runs on it."""
    key = (name, setting.quick, setting.seed)
    if key not in _CORPORA:
        _CORPORA[key] = corpus(setting, name)
    return _CORPORA[key]


def make_runs(
    setting: Setting, data: Corpus, model: Model, trials: list[tuple[int, str, float]], measure: Measure
) -> None:
    """Make the runs that are missing, on all cores: (fold, objective, rate) of each."""
    if setting.quick:
        return
    missing = []
    for fold, objective, rate in trials:
        own = _options(setting, objective, rate, {"measure": measure, "sample": data.sample})
        if not _place(setting, model, *data.folds[fold][:2], own).exists():
            told = replace(setting, progress=None)
            missing.append(Task(told, data.name, model is not data.model, fold, objective, rate, str(measure)))
    run_in_processes(_work, missing, lambda done: setting.say(f"{data.name}: {done} of {len(missing)} runs"))


_TRAINED: dict[tuple[Any, ...], Trained] = {}
"""What other parts trained in this process: the tables and Figure 6 share some."""


def trained(
    setting: Setting,
    data: Corpus,
    objective: str,
    model: Model | None = None,
    measure: Measure = G10,
    tried: Iterable[tuple[str, float]] | None = None,
) -> Trained:
    """The best setting of each fold by `measure` on validation queries, measured on test queries."""
    net = data.model if model is None else model
    grid = list(settings_tried(objective, setting) if tried is None else tried)
    place = str(setting.data.get(data.name))
    key = (setting.quick, setting.seed, place, data.name, repr(net), str(measure), tuple(grid))
    if key not in _TRAINED:
        _TRAINED[key] = _over_folds(setting, data, net, measure, grid)
    return _TRAINED[key]


def _over_folds(
    setting: Setting, data: Corpus, model: Model, measure: Measure, grid: list[tuple[str, float]]
) -> Trained:
    test: dict[str, list[Floats]] = {"G3": [], "G10": []}
    training: dict[str, list[float]] = {}
    chosen, epochs = [], []

    def one(number: int, objective: str, rate: float) -> Fit:
        setting.say(f"{data.name}, fold {number + 1}: {objective} at the rate {rate:g}")
        train, valid, _ = data.folds[number]
        return fit_once(setting, model, train, valid, objective, rate, measure=measure, sample=data.sample)

    trials = [(number, *trial) for number in range(len(data.folds)) for trial in grid]
    make_runs(setting, data, model, trials, measure)
    fits = run_parallel([partial(one, *trial) for trial in trials])
    for number, fold in enumerate(data.folds):
        own = fits[number * len(grid) : (number + 1) * len(grid)]
        best = int(np.argmax([fit.chosen_by for fit in own]))
        fit = own[best]
        chosen.append(f"{grid[best][0]} at {grid[best][1]:g}, epoch {fit.best.number}")
        epochs.append(fit.best.number)
        for name, each in (("G3", G3), ("G10", G10)):
            test[name].append(each.per_query(fit.model.score(fold.test), fold.test))
        assert fit.rows is not None
        for qid, value in zip(fit.rows.qids.tolist(), G10.per_query(fit.model.score(fit.rows), fit.rows), strict=True):
            training.setdefault(qid, []).append(float(value))
    means = np.array([np.mean(training[qid]) for qid in sorted(training)])
    return Trained({name: np.concatenate(parts) for name, parts in test.items()}, means, tuple(chosen), tuple(epochs))


def settings_of(setting: Setting, *data: Corpus) -> dict[str, Any]:
    """The settings of a finding."""
    return {
        "method": f"taylor2008, {epochs_of(setting)} epochs",
        "tried": {name: settings_tried(objective, setting) for name, objective in OBJECTIVES.items()},
        "chosen_by": "NDCG@10 on validation queries",
        "seed": setting.seed,
        "data": {each.name: each.told() for each in data},
    }
