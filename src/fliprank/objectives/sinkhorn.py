"""Sinkhorn scaling: rank distributions made consistent with each other (SoftRank, section 3.2, last paragraph).

Rank-Binomial distributions are made one document at a time: a rank may be held by more or less than one document.
Dividing columns by their sums, then rows by theirs, and again, turns the matrix of distributions into the nearest
doubly stochastic one: diag(u) P diag(v), with v = 1 / (P^T u) and u = 1 / (P v) in turn. The gradient runs back through
these steps, and then through the recursion that made P. Ranks that no document is likely to hold make v huge (1e180 for
600 documents that tie), so the steps back are taken on log u and log v.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.objectives.contests import Contests, contested, hold_contests, pull_apart
from fliprank.objectives.noisy_ranking import Noisy
from fliprank.objectives.rank_binomial import expected_by_recursion, rank_binomial

__all__ = ["rank_binomials", "scale", "sinkhorn_values"]

CLOSE, ENOUGH, STEPS = 1e-10, 1e-3, 1000
"""Scaling ends when no column sum is further from 1 than CLOSE, or after so many steps: it converged if that is
ENOUGH."""

SMALLEST = 1e-280
"""A sum below it is no probability that could be scaled: a rank that no document holds, as far as numbers reach."""


@kernel
def rank_binomials(ranked: Floats, sigma: Floats) -> Floats:
    """p[j, r]: the probability that the document at place j of a falling list of scores has rank r (eq. 12)."""
    size = len(ranked)
    out, contests = np.zeros((size, size)), Contests(np.empty(size), np.empty(size), np.empty(size))
    for j in range(size):
        above, below = contested(ranked, sigma, sigma.max(), j)
        count = hold_contests(ranked, sigma, above, below, j, contests)
        rank_binomial(contests.pi, count, out[j, above:below])
    return out


@kernel
def scale(p: Floats) -> tuple[Floats, Floats, int, bool]:
    """(u, v, steps, converged): row t of u and v holds the factors after t steps, until columns add up to 1 as rows
    do."""
    size, apart = len(p), 0.0
    u, v = np.ones((STEPS + 1, size)), np.ones((STEPS + 1, size))
    for t in range(1, STEPS + 1):
        columns, apart = np.zeros(size), 0.0
        for j in range(size):
            for r in range(size):
                columns[r] += p[j, r] * u[t - 1, j]
        for r in range(size):
            apart = max(apart, abs(v[t - 1, r] * columns[r] - 1.0))
        if t > 1 and apart < CLOSE:
            return u, v, t - 1, True
        for r in range(size):
            v[t, r] = 1.0 / columns[r] if columns[r] > SMALLEST else 0.0
        for j in range(size):
            row = 0.0
            for r in range(size):
                row += p[j, r] * v[t, r]
            u[t, j] = 1.0 / row if row > SMALLEST else 0.0
        if columns.min() <= SMALLEST:  # such a rank can't be given to one document
            return u, v, t, False
    return u, v, STEPS, apart < ENOUGH


@kernel
def _scale_back(p: Floats, u: Floats, v: Floats, steps: int, worth: Floats, discount: Floats) -> tuple[float, Floats]:
    """The sum of worth x discount over the scaled matrix, and its derivative with respect to p.

    `by_u` and `by_v` are derivatives with respect to log u and log v: u p v is at most 1, however large v is.
    """
    size, value = len(p), 0.0
    back, by_u, by_v = np.zeros((size, size)), np.zeros(size), np.zeros(size)
    for j in range(size):
        for r in range(size):
            factor = worth[j] * discount[r] * u[steps, j] * v[steps, r]
            back[j, r] = factor
            value += factor * p[j, r]
            by_u[j] += factor * p[j, r]
            by_v[r] += factor * p[j, r]
    for t in range(steps, 0, -1):
        for j in range(size):
            for r in range(size):
                factor = by_u[j] * u[t, j] * v[t, r]
                back[j, r] -= factor
                by_v[r] -= factor * p[j, r]
            by_u[j] = 0.0
        for j in range(size):
            for r in range(size):
                factor = by_v[r] * v[t, r] * u[t - 1, j]
                back[j, r] -= factor
                by_u[j] -= factor * p[j, r]
        by_v[:] = 0.0
    return value, back


@parallel_kernel
def sinkhorn_values(noisy: Noisy, discount: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Each query's sum of worth x discount under the scaled rank distributions, the gradient at each place, and whether
    the scaling converged."""
    queries = len(noisy.offsets) - 1
    values, pulls, converged = np.zeros(queries), np.zeros(len(noisy.score)), np.ones(queries, np.bool_)
    for q in prange(queries):
        low, high = noisy.offsets[q], noisy.offsets[q + 1]
        size = high - low
        if size == 0 or noisy.worth[low:high].max() == 0.0:
            continue
        scores, sigma = noisy.score[low:high], noisy.sigma[low:high] if len(noisy.sigma) > 1 else noisy.sigma
        p = rank_binomials(scores, sigma)
        u, v, steps, done = scale(p)
        converged[q] = done
        values[q], back = _scale_back(p, u, v, steps, noisy.worth[low:high], discount[low:high])
        if noisy.share[q] == 0.0:
            continue
        contests, history = Contests(np.empty(size), np.empty(size), np.empty(size)), np.empty((size + 1, size + 1))
        for j in range(size):
            above, below = contested(scores, sigma, sigma.max(), j)
            count = hold_contests(scores, sigma, above, below, j, contests)
            expected_by_recursion(contests, count, above, back[j], size, history, True)
            pull_apart(noisy.share[q], contests, count, above, j, pulls[low:high])
    return values, pulls, converged
