"""The price of an exact line search in plain evaluations of the measure, and what 50 samples of the line miss.

    python bench/exact.py

An evaluation ranks the same rows once: `measure.per_query`. Both are warm, the least of several tries, in one process.
Where scores are not linear: the share of steps that is found, against evaluating the measure at 5,000 points.
"""

from __future__ import annotations

import numpy as np
from timing import Row, show, timed

from fliprank.data.candidates import Candidates
from fliprank.data.ids import Ids
from fliprank.data.term_statistics import TermStatistics
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.landscape import score_trajectory, trajectory
from fliprank.measures import parse_measure
from fliprank.models import BM25F

SIZES = ((1000, 40), (1000, 120), (200, 1000))
LOW, HIGH = -5.0, 5.0
TRIES = 40
POINTS = 5_000


def rows() -> list[Row]:
    exact = [*prices(DEFAULT_MEASURE, SIZES, TRIES, "at most 8"), *prices("AP", SIZES[:2], 5, "no target")]
    return [*exact, *found("body.b"), *found("title.w")]


def prices(name: str, sizes: tuple[tuple[int, int], ...], tries: int, target: str) -> list[Row]:
    """The price and the optimum at each size. Without a cut-off, every crossing of a relevant document is a step."""
    rng, measure = np.random.default_rng(1), parse_measure(name)
    out = []
    for queries, size in sizes:
        label = rng.choice(3, queries * size, p=[0.75, 0.15, 0.1])
        base, slope = rng.normal(size=len(label)) + 0.8 * label, rng.normal(size=len(label)) + 0.5 * label
        candidates = Candidates.of(label, group=[size] * queries)

        def evaluate(x: float = 0.0) -> float:
            return measure.aggregate(measure.per_query(base + x * slope, candidates))  # noqa: B023

        path = score_trajectory(base, slope, candidates, measure, LOW, HIGH)
        top, found = path.maximum.value, evaluate(path.best_point())
        assert abs(top - found) < 1e-12, (top, found)
        sampled = max(evaluate(x) for x in np.linspace(LOW, HIGH, 50))
        plain, exact = np.inf, np.inf
        for _ in range(tries):  # in turn, so that other work on the machine slows both
            plain = min(plain, timed(lambda: measure.per_query(base, candidates), 1)[0])  # noqa: B023
            exact = min(exact, timed(lambda: score_trajectory(base, slope, candidates, measure, LOW, HIGH), 1)[0])  # noqa: B023
        where = f"{queries:,} queries x {size:,} rows, {len(path.breaks):,} steps"
        short = str(measure).replace("(dcg='exp-log2')", "")
        out.append(Row(f"exact line search: price in evaluations, {where}", f"one {short}", exact / plain, target))
        out.append(Row(f"its optimum {top:.6f}, less that of samples", "50 samples", top - sampled, "above 0"))
    return out


def found(parameter: str) -> list[Row]:
    """The share of the steps of all queries that is found along a parameter in which scores are not linear."""
    candidates, measure = term_rows(100, 20), parse_measure("nDCG@10")
    path = trajectory(BM25F().prepared(candidates, 0), candidates, parameter, measure)
    middles = path.low + (path.high - path.low) * (np.arange(POINTS) + 0.5) / POINTS
    steps, before = 0, None
    for x in middles:
        now = measure.per_query(path.scores(x), candidates)
        steps += 0 if before is None else int((np.abs(now - before) > 1e-12).sum())
        before = now
    plain = timed(lambda: measure.per_query(path.scores(0.0), candidates), 20)[0]
    price = timed(lambda: trajectory(path.model, candidates, parameter, measure), 5)[0]
    what = f"steps found along {parameter}, 100 queries x 20 rows, {steps:,} steps"
    return [
        Row(what, f"{POINTS:,} points", int(path.responds.sum()) / steps, "above 0.95"),
        Row("its price in evaluations", "one nDCG@10", price / plain, "below 500"),
    ]


def term_rows(queries: int, size: int) -> Candidates:
    """Queries of two terms, documents of two fields."""
    rng, rows = np.random.default_rng(2), queries * size
    tf, length = rng.integers(0, 5, (2 * rows, 2)), rng.integers(5, 80, (rows, 2))
    terms = [f"t{i}" for i in range(2 * queries)]
    idf, starts = rng.uniform(1, 4, 2 * queries), np.arange(rows + 1) * 2
    statistics = TermStatistics(("title", "body"), np.arange(queries + 1) * 2, Ids.of(terms), idf, starts, tf, length)
    labels = rng.choice(3, rows, p=[0.7, 0.2, 0.1]).astype(float)
    return Candidates(
        np.arange(queries + 1) * size, labels, Ids.of([f"q{i}" for i in range(queries)]), terms=statistics
    )


if __name__ == "__main__":
    show(rows())
