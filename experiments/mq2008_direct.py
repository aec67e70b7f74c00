"""Searches of the measure itself on MQ2008, five folds, and what makes the exact one generalise: in docs/direct.md.

    .venv/bin/python experiments/mq2008_direct.py [folder of MQ2008]

All climb nDCG@10 of the training queries. Validation queries have no part in an ascent: they choose the epoch and the
start afterwards, so one set of ascents serves several rows. Which remedy becomes the default is decided by the column
"held out": each fold's validation queries are halved, one half chooses and the other judges, and the other way round.
Test queries are measured once, with all validation queries to choose by.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

import fliprank as fr
from fliprank.experiment.task import Task, read_folds
from fliprank.experiment.training import averaged
from fliprank.optimize.fit import Fit, Recorder
from fliprank.optimize.methods import Evolution, Exact, Line, Powell
from fliprank.optimize.problem import Problem

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "direct.md"
BEGIN, END = "<!-- written by experiments/mq2008_direct.py -->", "<!-- end -->"
MEASURES = [fr.parse_measure(name) for name in ("nDCG(dcg='exp-log2')@10", "AP")]
OBJECTIVE = fr.parse_objective("lambdarank@10")

SEARCHES: dict[str, tuple[Any, int]] = {
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


class Row(NamedTuple):
    """A row of the table: which ascents, of how many starts the mean or (else) the best, and whether to stop early."""

    name: str
    search: str
    starts: int = 1
    mean: bool = False
    stop: bool = True


ROWS = [
    Row("`exact`, axes only, one start, last epoch", "axes", stop=False),
    Row("+ early stopping (epoch chosen on validation queries): the base of the next rows", "axes"),
    Row("+ nearest instead of widest stretch", "nearest"),
    Row("+ shrink 0.01", "shrunk"),
    Row("+ best of 5 starts", "axes", 5),
    Row("+ mean of 5 starts", "axes", 5, mean=True),
    Row("+ mean of 5 starts, each on half of the queries", "bags", 5, mean=True),
    Row("+ gradient first, one start", "gradient"),
    Row("+ gradient first, best of 5 starts", "gradient", 5),
    Row("+ gradient first, mean of 5 starts", "gradient", 5, mean=True),
    Row("+ gradient first, mean of 5 starts on half of the queries", "gradient bags", 5, mean=True),
    Row("+ gradient first, then also pairs and the last step", "pairs"),
    Row("`line` (Taylor 2006), one start", "line"),
    Row("`powell`, one start, 6 epochs", "powell"),
    Row("`evolution`, 60 members, 60 generations", "evolution"),
]
QUOTED = "| RankLib Coordinate Ascent, 5 starts (quoted from elsewhere, not run) | 0.5133 | | | 0.5070 | | |"


class Found(NamedTuple):
    """Means over folds of (nDCG@10, AP) on training, held out and test queries, and processor time."""

    train: np.ndarray
    held_out: np.ndarray
    test: np.ndarray
    seconds: float


def ascents(method: Any, starts: int, folds: list[Task]) -> tuple[dict[tuple[int, int], Recorder], float]:
    """One for each fold and start, as `train` would make them; and the processor time of them all."""

    def climb(task: tuple[int, int]) -> Recorder:
        numba.set_num_threads(1)
        number, start = task
        rows = folds[number].train.rows
        model = fr.Linear().prepared(rows, np.random.default_rng(0))
        model = model if start == 0 else model.initialised(np.random.default_rng(start))
        problem = Problem.of(model, rows, MEASURES[0], OBJECTIVE)
        recorder = Recorder(problem)
        method.run(problem, recorder, np.random.default_rng(start))
        return recorder

    begun = time.process_time()
    tasks = [(number, start) for number in range(len(folds)) for start in range(starts)]
    with ThreadPoolExecutor() as pool:
        found = dict(zip(tasks, pool.map(climb, tasks), strict=True))
    return found, time.process_time() - begun


def chosen(runs: list[Recorder], row: Row, rows: fr.Candidates, valid: fr.Candidates) -> fr.Model:
    """The model that these validation queries choose."""
    fits: list[Fit] = []
    for run in runs:
        recorder = Recorder(run.problem, Problem.of(run.problem.model, valid, MEASURES[0]))
        for point in run.path if row.stop else run.path[-1:]:
            recorder.epoch(point, 0.0)
        fits.append(recorder.fit())
    if row.mean:
        return averaged(fits, rows, valid, MEASURES[0]).model
    return max(fits, key=lambda fit: fit.best.valid).model


def study(row: Row, folds: list[Task], found: dict[tuple[int, int], Recorder], seconds: float) -> Found:
    train, out, test = [], [], []
    for number, fold in enumerate(folds):
        assert fold.valid is not None
        assert fold.test is not None
        rows, valid, runs = fold.train.rows, fold.valid.rows, [found[number, start] for start in range(row.starts)]
        model, (one, other) = chosen(runs, row, rows, valid), valid.split(0.5, 0.5, seed=7)
        train.append(values(model, rows))
        test.append(values(model, fold.test.rows))
        out += [values(chosen(runs, row, rows, one), other), values(chosen(runs, row, rows, other), one)]
    return Found(*(np.mean(part, 0) for part in (train, out, test)), seconds)


def gradient(folds: list[Task]) -> dict[str, Found]:
    """LambdaRank from one start with plain settings, as it is and polished."""
    parts: dict[str, list[list[list[float]]]] = {"LambdaRank@10, one start, no sweep": []}
    parts["the same, polished"] = []
    seconds = [0.0, 0.0]
    for fold in folds:
        assert fold.valid is not None
        assert fold.test is not None
        rows, valid, test = fold.train.rows, fold.valid.rows, fold.test.rows
        one, other = valid.split(0.5, 0.5, seed=7)
        told: list[list[list[float]]] = [[], []]
        for choose, judge in ((valid, test), (one, other), (other, one)):
            begun = time.process_time()
            plain = fr.train(fr.Linear(), rows, choose, sweep=False).model
            middle = time.process_time()
            better = fr.train(plain, rows, choose, method="exact", sweep=False).model
            if choose is valid:
                seconds[0] += middle - begun
                seconds[1] += time.process_time() - begun
            for i, model in enumerate((plain, better)):
                told[i] += [values(model, rows), values(model, judge)]
        for part, figures in zip(parts.values(), told, strict=True):
            part.append(figures)
    out = {}
    for (name, part), spent in zip(parts.items(), seconds, strict=True):
        mean = np.mean(part, 0)
        out[name] = Found(mean[0], (mean[3] + mean[5]) / 2, mean[1], spent)
    return out


def values(model: fr.Model, rows: fr.Candidates | None) -> list[float]:
    assert rows is not None
    scores = model.score(rows)
    return [measure.value(scores, rows) for measure in MEASURES]


def main(folder: Path) -> None:
    folds, found = list(read_folds(folder)), {}
    for search, (method, starts) in SEARCHES.items():
        logs, seconds = ascents(method, starts, folds)
        for row in ROWS:
            if row.search == search:
                found[row.name] = study(row, folds, logs, seconds * row.starts / starts)
                print(row.name, *found[row.name], flush=True)
        write(found)
    write(found | gradient(folds))


def write(found: dict[str, Found]) -> None:
    """The table, in place of the one in the page."""
    lines = [
        "| search | train nDCG@10 | train AP | held out nDCG@10 | test nDCG@10 | test AP | time |",
        "|---|---|---|---|---|---|---|",
    ]
    order = [row.name for row in ROWS if row.name in found]
    unit = found[order[0]].seconds
    for name in [*order, *(name for name in found if name not in order)]:
        row = found[name]
        figures = [row.train[0], row.train[1], row.held_out[0], row.test[0], row.test[1]]
        lines.append(f"| {name} | {' | '.join(f'{figure:.4f}' for figure in figures)} | {row.seconds / unit:.2g} |")
    before, rest = PAGE.read_text().split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(before + "\n".join([BEGIN, "", *lines, QUOTED, "", END]) + after)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT.parent / "shared" / "data" / "letor" / "MQ2008")
