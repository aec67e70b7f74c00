"""The paper's training procedure (section 4.5): query by query, settings and epoch chosen on validation queries.

The paper has 128 epochs and looks at rates from 1e-1 to 1e-7 and sigmas from 1 to 1e-4; here 32 epochs, and of these
settings the three largest rates and sigmas: section 4.5 looks at all of them, on one fold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import fliprank as fr
from fliprank.arrays import Floats
from fliprank.measures import Measure
from fliprank.models.base import Model, describe, full_text
from fliprank.optimize.fit import Fit, fingerprint
from fliprank.papers.part import Setting
from fliprank.papers.taylor2008.corpora import Corpus
from fliprank.parallel import run_parallel

__all__ = ["G3", "G10", "OBJECTIVES", "Trained", "epochs_of", "fit_once", "settings_of", "settings_tried", "trained"]

G10, G3 = fr.nDCG(10, dcg="exp-log2"), fr.nDCG(3, dcg="exp-log2")
OBJECTIVES = {"MSE": "mse", "RankNet": "ranknet", "LambdaRank": "lambdarank", "SoftRank": "softrank"}
RATES, SIGMAS = (1e-1, 1e-2, 1e-3), (1.0, 1e-1, 1e-2)
EPOCHS, QUICK_EPOCHS = 32, 4


@dataclass(frozen=True, eq=False)
class Trained:
    """A ranker over all folds: each test query's measures, each training query's NDCG@10, and what was chosen.

    A query that was trained on in several folds has its mean over these.
    """

    test: dict[str, Floats]
    training: Floats
    chosen: tuple[str, ...]

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
    """One run; each epoch is kept in the cache, so that a run that was ended goes on from there."""
    own: dict[str, Any] = {"objective": objective, "rate": rate, "epochs": epochs_of(setting), "measure": G10} | how
    known = str(describe(model)) if model.ready else full_text(model)
    key = fingerprint(train, valid=fingerprint(valid), model=known, seed=setting.seed, **own)
    return fr.train(
        model, train, valid, method="taylor2008", sweep=False, restarts=1, seed=setting.seed, jobs=1,
        checkpoint=setting.cache / key, resume=True, **own,
    )  # fmt: skip


_TRAINED: dict[tuple[Any, ...], Trained] = {}
"""What other parts trained in this process: the tables and Figure 6 share some."""


def trained(
    setting: Setting,
    corpus: Corpus,
    objective: str,
    model: Model | None = None,
    measure: Measure = G10,
    tried: Iterable[tuple[str, float]] | None = None,
) -> Trained:
    """The best setting of each fold by `measure` on validation queries, measured on test queries."""
    net = corpus.model if model is None else model
    grid = list(settings_tried(objective, setting) if tried is None else tried)
    place = str(setting.data.get(corpus.name))
    key = (setting.quick, setting.seed, place, corpus.name, repr(net), str(measure), tuple(grid))
    if key not in _TRAINED:
        _TRAINED[key] = _over_folds(setting, corpus, net, measure, grid)
    return _TRAINED[key]


def _over_folds(
    setting: Setting, corpus: Corpus, model: Model, measure: Measure, grid: list[tuple[str, float]]
) -> Trained:
    test: dict[str, list[Floats]] = {"G3": [], "G10": []}
    training: dict[str, list[float]] = {}
    chosen = []

    def one(number: int, objective: str, rate: float) -> Fit:
        setting.say(f"{corpus.name}, fold {number + 1}: {objective} at the rate {rate:g}")
        train, valid, _ = corpus.folds[number]
        return fit_once(setting, model, train, valid, objective, rate, measure=measure, sample=corpus.sample)

    tasks = [partial(one, number, *trial) for number in range(len(corpus.folds)) for trial in grid]
    fits = run_parallel(tasks)
    for number, fold in enumerate(corpus.folds):
        own = fits[number * len(grid) : (number + 1) * len(grid)]
        best = int(np.argmax([fit.chosen_by for fit in own]))
        fit = own[best]
        chosen.append(f"{grid[best][0]} at {grid[best][1]:g}, epoch {fit.best.number}")
        for name, each in (("G3", G3), ("G10", G10)):
            test[name].append(each.per_query(fit.model.score(fold.test), fold.test))
        assert fit.rows is not None
        for qid, value in zip(fit.rows.qids.tolist(), G10.per_query(fit.model.score(fit.rows), fit.rows), strict=True):
            training.setdefault(qid, []).append(float(value))
    means = np.array([np.mean(training[qid]) for qid in sorted(training)])
    return Trained({name: np.concatenate(parts) for name, parts in test.items()}, means, tuple(chosen))


def settings_of(setting: Setting, *data: Corpus) -> dict[str, Any]:
    """The settings of a finding."""
    return {
        "method": f"taylor2008, {epochs_of(setting)} epochs",
        "tried": {name: settings_tried(objective, setting) for name, objective in OBJECTIVES.items()},
        "chosen_by": "NDCG@10 on validation queries",
        "seed": setting.seed,
        "data": {each.name: each.told() for each in data},
    }
