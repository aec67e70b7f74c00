"""Searches of the measure itself on MQ2008, and what makes the exact one generalise (docs/direct.md).

All climb nDCG@10 of the training queries. Validation queries have no part in an ascent: they choose the epoch and the
start afterwards, so one set of ascents serves several rows. Which remedy is the default was decided by the column "held
out": each fold's validation queries are halved, one half chooses and the other judges, and the other way round.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

import fliprank as fr
from fliprank.arrays import Floats
from fliprank.experiment.splits import Fold
from fliprank.experiment.training import averaged
from fliprank.measures import parse_measure
from fliprank.optimize.fit import Fit, Recorder
from fliprank.optimize.methods import Evolution, Exact, Line, Method, Powell
from fliprank.optimize.problem import Problem
from fliprank.papers.checkpoint import kept
from fliprank.papers.own.mq2008 import folds_of
from fliprank.papers.part import Finding, Setting, part
from fliprank.papers.rules import Claims, larger
from fliprank.parallel import run_parallel

__all__ = ["direct"]

MEASURES = [parse_measure(name) for name in ("nDCG(dcg='exp-log2')@10", "AP")]
OBJECTIVE = fr.parse_objective("lambdarank@10")
SEARCHES: dict[str, tuple[Method, int]] = {
    "axes": (Exact(directions="axes"), 5),
    "nearest": (Exact(directions="axes", prefer="nearest"), 1),
    "shrunk": (Exact(directions="axes", shrink=0.01), 1),
    "bags": (Exact(directions="axes", bag=0.5), 5),
    "gradient": (Exact(directions="gradient+axes"), 5),
    "gradient bags": (Exact(directions="gradient+axes", bag=0.5), 5),
    "pairs": (Exact(directions="gradient+axes+last+pairs"), 1),
    "line": (Line(), 1),
    "powell": (Powell(epochs=6), 1),
    "evolution": (Evolution(), 1),
}
"""What is run: a method, and from how many starts."""
QUICK = ("axes", "gradient")


class Row(NamedTuple):
    """A row of the table: which ascents, of how many starts the mean or (else) the best, and whether to stop early."""

    name: str
    search: str
    starts: int = 1
    mean: bool = False
    stop: bool = True


BASE, DEFAULT = "exact, axes only, one start, last epoch", "gradient first, one start"
ROWS = (
    Row(BASE, "axes", stop=False),
    Row("early stopping (epoch chosen on validation queries): the base of the next rows", "axes"),
    Row("nearest instead of widest stretch", "nearest"),
    Row("shrink 0.01", "shrunk"),
    Row("best of 5 starts", "axes", 5),
    Row("mean of 5 starts", "axes", 5, mean=True),
    Row("mean of 5 starts, each on half of the queries", "bags", 5, mean=True),
    Row(DEFAULT, "gradient"),
    Row("gradient first, best of 5 starts", "gradient", 5),
    Row("gradient first, mean of 5 starts", "gradient", 5, mean=True),
    Row("gradient first, mean of 5 starts on half of the queries", "gradient bags", 5, mean=True),
    Row("gradient first, then also pairs and the last step", "pairs"),
    Row("line (Taylor 2006), one start", "line"),
    Row("powell, one start, 6 epochs", "powell"),
    Row("evolution, 60 members, 60 generations", "evolution"),
)


@part("fliprank", "mq2008-direct", "Searches of the measure itself", needs=("mq2008",), minutes=30, only_by_name=True)
def direct(setting: Setting) -> Finding:
    """Every search and remedy, and LambdaRank@10 beside them, as it is and polished."""
    folds, rows = folds_of(setting), list[tuple[Any, ...]]()
    test: dict[str, list[Floats]] = {}
    for row in ROWS:
        starts = min(row.starts, 2) if setting.quick else row.starts
        if setting.quick and row.search not in QUICK:
            continue
        runs = _ascents(setting, row.search, starts, folds)
        models = [_judged_by(partial(_chosen, runs[number], row, fold), fold) for number, fold in enumerate(folds)]
        rows.append(_table_row(row.name, models, folds, test))
    for name, polish in (("LambdaRank@10, one start, no sweep", False), ("the same, polished", True)):
        models = [_judged_by(partial(_gradient, setting, fold, polish), fold) for fold in folds]
        rows.append(_table_row(name, models, folds, test))
    claims = Claims()
    values = {name: np.concatenate(parts) for name, parts in test.items()}
    claims.add(f"test nDCG@10, {DEFAULT} less {BASE}", larger, values[DEFAULT], values[BASE])
    return Finding(
        ("search", "train nDCG@10", "train AP", "held out nDCG@10", "test nDCG@10", "test AP"),
        tuple(rows),
        "An exact search that begins along the gradient carries over better than one along the axes.",
        " ".join(claims.notes) + ".",
        claims.verdict,
        {"data": "mq2008", "folds": len(folds), "seed": setting.seed, "objective": str(OBJECTIVE)},
        notes=(
            "Linear models of all features; means over folds. Held out: half of a fold's validation queries choose"
            " epoch and start, the other half judges, and the other way round.",
        ),
    )


def _ascents(setting: Setting, search: str, starts: int, folds: list[Fold]) -> list[list[Recorder]]:
    """The runs of each fold, one per start, as `train` would make them; the points of each are kept."""

    def climb(number: int, start: int) -> Recorder:
        rows = folds[number].train
        model = fr.Linear().prepared(rows, np.random.default_rng(0))
        model = model if start == 0 else model.initialised(np.random.default_rng(start))
        problem = Problem.of(model, rows, MEASURES[0], OBJECTIVE)
        what = f"{search}, fold {number + 1}, start {start + 1}"
        recorder = Recorder(problem)
        recorder.path = [np.array(point) for point in kept(setting, what, partial(_path, problem, search, start))]
        return recorder

    tasks = [(number, start) for number in range(len(folds)) for start in range(starts)]
    found = dict(zip(tasks, run_parallel([partial(climb, *task) for task in tasks]), strict=True))
    return [[found[number, start] for start in range(starts)] for number in range(len(folds))]


def _path(problem: Problem, search: str, start: int) -> list[list[float]]:
    """The points at which the epochs of an ascent end."""
    recorder = Recorder(problem)
    SEARCHES[search][0].run(problem, recorder, np.random.default_rng(start))
    return [point.tolist() for point in recorder.path]


class Judged(NamedTuple):
    """The model that all validation queries choose, and what halves of them choose with the queries that judge it."""

    model: fr.Model
    halves: list[tuple[fr.Model, fr.Candidates]]


def _judged_by(choose: Any, fold: Fold) -> Judged:
    one, other = fold.valid.split(0.5, 0.5, seed=7)
    return Judged(choose(fold.valid), [(choose(one), other), (choose(other), one)])


def _chosen(runs: list[Recorder], row: Row, fold: Fold, valid: fr.Candidates) -> fr.Model:
    """The model that these validation queries choose."""
    fits: list[Fit] = []
    for run in runs:
        recorder = Recorder(run.problem, Problem.of(run.problem.model, valid, MEASURES[0]))
        for point in run.path if row.stop else run.path[-1:]:
            recorder.epoch(point, 0.0)
        fits.append(recorder.fit())
    if row.mean:
        return averaged(fits, fold.train, valid, MEASURES[0]).model
    return max(fits, key=lambda fit: fit.best.valid).model


def _gradient(setting: Setting, fold: Fold, polish: bool, valid: fr.Candidates) -> fr.Model:
    setting.say("LambdaRank@10, polished" if polish else "LambdaRank@10")
    plain = fr.train(fr.Linear(), fold.train, valid, sweep=False, seed=setting.seed).model
    if not polish:
        return plain
    return fr.train(plain, fold.train, valid, method="exact", sweep=False, seed=setting.seed).model


def _table_row(name: str, found: list[Judged], folds: list[Fold], test: dict[str, list[Floats]]) -> tuple[Any, ...]:
    """Means over folds; keeps the test queries' values."""
    train, held, tested = list[list[float]](), list[float](), list[list[float]]()
    for each, fold in zip(found, folds, strict=True):
        train.append(_values(each.model, fold.train))
        tested.append(_values(each.model, fold.test))
        test.setdefault(name, []).append(MEASURES[0].per_query(each.model.score(fold.test), fold.test))
        held += [_values(model, rows)[0] for model, rows in each.halves]
    return (name, *np.mean(train, 0).tolist(), float(np.mean(held)), *np.mean(tested, 0).tolist())


def _values(model: fr.Model, rows: fr.Candidates) -> list[float]:
    scores = model.score(rows)
    return [measure.value(scores, rows) for measure in MEASURES]
