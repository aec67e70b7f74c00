"""Randomisation test, 100,000 permutations of 1,000 queries: fliprank against scipy and a plain NumPy loop.

    python bench/significance.py

A ratio is the peer's time over fliprank's, both warm, on the same numbers in the same run; the p-values must agree.
"""

from __future__ import annotations

import numpy as np
from scipy import stats
from timing import Row, show, timed

from fliprank.experiment.significance import max_t, randomisation

PERMUTATIONS, QUERIES = 100_000, 1_000


def numpy_loop(differences: np.ndarray, permutations: int) -> float:
    rng = np.random.default_rng(0)
    observed = abs(differences.sum())
    count = sum(
        abs(differences @ (1.0 - 2.0 * rng.integers(0, 2, len(differences)))) >= observed for _ in range(permutations)
    )
    return float(count + 1) / (permutations + 1)


def scipy_test(differences: np.ndarray, permutations: int) -> float:
    result = stats.permutation_test(
        (differences,),
        # Of |mean|: its own two-sided p is twice the smaller tail, with twice the noise.
        lambda x, axis: np.abs(np.mean(x, axis=axis)),
        alternative="greater",
        permutation_type="samples",
        vectorized=True,
        batch=1_000,
        n_resamples=permutations,
        rng=np.random.default_rng(0),
    )
    return float(result.pvalue)


def rows() -> list[Row]:
    """(what, peer, ratio, target) for each peer."""
    differences = np.random.default_rng(1).normal(0.05, 1, QUERIES)
    randomisation(differences)  # compiles
    ours, p = timed(lambda: randomisation(differences, PERMUTATIONS), 5)
    what = f"randomisation, {PERMUTATIONS:,} x {QUERIES:,}"
    out = []
    for peer, call in (("scipy.stats.permutation_test", scipy_test), ("plain NumPy loop", numpy_loop)):
        call(differences, 100)
        theirs, peer_p = timed(lambda call=call: call(differences, PERMUTATIONS), 1)
        if abs(p - peer_p) > 5 * np.sqrt(2 * p * (1 - p) / PERMUTATIONS):
            raise AssertionError(f"{peer} found p {peer_p}, fliprank {p}")
        out.append(Row(what, peer, theirs / ours, ">= 20"))
    table = np.random.default_rng(2).normal(0.02, 1, (20, QUERIES))
    max_t(table, 1)
    joint, _ = timed(lambda: max_t(table, PERMUTATIONS), 3)
    out.append(Row("max-T over 20 comparisons of the same size", "one randomisation test", joint / ours, "about 20"))
    return out


if __name__ == "__main__":
    show(rows())
