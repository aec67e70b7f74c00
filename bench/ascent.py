"""Coordinate ascent on the measure itself: what an epoch costs, how line searches grow, and how it beats sampling.

    python bench/ascent.py [folder of MQ2008]

Times are warm, the least of several tries, in one process. Without MQ2008 its rows are left out.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numba
import numpy as np
from timing import Row, show, timed

from fliprank.data.candidates import Candidates
from fliprank.data.letor import read_letor
from fliprank.landscape import score_trajectory
from fliprank.measures import parse_measure
from fliprank.models import Linear
from fliprank.objectives import parse_objective
from fliprank.optimize.fit import Recorder
from fliprank.optimize.methods import Exact, Line
from fliprank.optimize.problem import Problem

DATA = Path(__file__).parents[2] / "shared" / "data" / "letor" / "MQ2008"
MEASURE = parse_measure("nDCG(dcg='exp-log2')@10")
TRIES = 5


def made_rows(queries: int, size: int, features: int) -> Candidates:
    """Labels that follow a random direction of the features, with noise."""
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(queries * size, features)).astype(np.float32)
    hidden = matrix @ rng.normal(size=features) / np.sqrt(features) + rng.normal(size=len(matrix))
    labels = np.digitize(hidden, np.quantile(hidden, [0.75, 0.9]))
    return Candidates.of(labels, group=[size] * queries, features=matrix)


def epochs() -> list[Row]:
    """One epoch over 46 and 700 features."""
    seconds = []
    for features in (46, 700):
        rows = made_rows(200, 30, features)
        model = Linear().prepared(rows, 0)

        def epoch() -> None:
            problem = Problem.of(model, rows, MEASURE)  # noqa: B023
            Exact(epochs=1, directions="axes").run(problem, Recorder(problem), np.random.default_rng(0))

        epoch()
        seconds.append(timed(epoch, 3)[0])
    what = "an epoch of coordinate ascent over 700 features, 200 queries x 30 rows"
    return [Row(what, "46 features", seconds[1] / seconds[0], "about 15: as the features")]


def growth() -> list[Row]:
    """A line search with more documents, and with a deeper cut-off."""
    rng, out = np.random.default_rng(2), []

    def search(size: int, name: str) -> float:
        label = rng.choice(3, 500 * size, p=[0.75, 0.15, 0.1])
        base, slope = rng.normal(size=len(label)) + 0.8 * label, rng.normal(size=len(label)) + 0.5 * label
        rows, measure = Candidates.of(label, group=[size] * 500), parse_measure(name)
        score_trajectory(base, slope, rows, measure, -5.0, 5.0)
        return timed(lambda: score_trajectory(base, slope, rows, measure, -5.0, 5.0), TRIES)[0]

    base = search(100, "nDCG@10")
    for size in (200, 400, 800):
        ratio = search(size, "nDCG@10") / base
        out.append(Row(f"line search, {size} rows a query, nDCG@10", "100 rows", ratio, f"at most {size // 100}"))
    for k in (20, 40):
        ratio = search(100, f"nDCG@{k}") / base
        out.append(Row(f"line search, 100 rows a query, nDCG@{k}", "nDCG@10", ratio, f"at most {(k // 10) ** 2}"))
    out.append(Row("line search, 100 rows a query, AP", "nDCG@10", search(100, "AP") / base, "no target"))
    return out


def against_samples(folder: Path, cores: int) -> list[Row]:
    """MQ2008, five folds: the time of sampled searches, and of exact ones that end where they have reached as much.

    An exact search that ends below the sampled one, in a local optimum, counts with all its time: means
    over folds are compared. On one core is how `train` runs several starts; on all, both share the work among threads.
    """
    threads = numba.get_num_threads()
    numba.set_num_threads(cores)
    sets = [read_letor(path) for path in sorted(folder.glob("Fold*/train.txt.gz"))]
    objective = parse_objective("lambdarank@10")

    def climb(rows: Candidates, method: Line | Exact, goal: float = np.inf) -> float:
        problem = Problem.of(Linear().prepared(rows, 0), rows, MEASURE, objective)
        recorder = Recorder(problem)
        recorder.enough = lambda: recorder.trail[-1].train >= goal
        method.run(problem, recorder, np.random.default_rng(0))
        assert recorder.best is not None
        return recorder.best.train

    for rows in sets[:1]:
        climb(rows, Line(epochs=1)), climb(rows, Exact(epochs=1))
    sampled = [timed(lambda: climb(rows, Line()), 1) for rows in sets]  # noqa: B023
    goals = [found for _, found in sampled]
    exact = [timed(lambda: climb(rows, Exact(), goal), 3) for rows, goal in zip(sets, goals, strict=True)]  # noqa: B023
    numba.set_num_threads(threads)
    if not sets:
        return []
    ratio = sum(seconds for seconds, _ in sampled) / sum(seconds for seconds, _ in exact)
    reached = float(np.mean([found for _, found in exact]))
    what = f"MQ2008, five fits, threads: {cores}: exact, to a mean train nDCG@10 of {reached:.4f}"
    return [Row(what, f"line, to {np.mean(goals):.4f}", ratio, "at least 10")]


def rows(folder: Path = DATA) -> list[Row]:
    samples = [row for cores in (1, numba.get_num_threads()) for row in against_samples(folder, cores)]
    return [*epochs(), *growth(), *samples]


if __name__ == "__main__":
    show(rows(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA))
