"""The price of an exact line search in plain evaluations of the measure, and what 50 samples of the line miss.

    python bench/exact.py

An evaluation ranks the same rows once: `measure.per_query`. Both are warm, the least of several tries, in one process.
"""

from __future__ import annotations

import numpy as np
from timing import Row, show, timed

from fliprank.data.candidates import Candidates
from fliprank.landscape import score_trajectory
from fliprank.measures import parse_measure

SIZES = ((1000, 40), (1000, 120), (200, 1000))
LOW, HIGH = -5.0, 5.0
TRIES = 40


def rows() -> list[Row]:
    return [*prices("nDCG(dcg='exp-log2')@10", SIZES, TRIES, "at most 8"), *prices("AP", SIZES[:2], 5, "no target")]


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


if __name__ == "__main__":
    show(rows())
