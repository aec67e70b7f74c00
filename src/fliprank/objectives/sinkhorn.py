"""Sinkhorn scaling: rank distributions made consistent with each other (SoftRank, section 3.2, last paragraph).

Rank-Binomial distributions are made one document at a time: a rank may be held by more or less than one document.
Dividing columns by their sums, then rows by theirs, and again, turns the matrix of distributions into the nearest
doubly stochastic one: diag(u) P diag(v), with v = 1 / (P^T u) and u = 1 / (P v) in turn. The gradient runs back through
these steps, and then through the recursion that made P.
"""

from __future__ import annotations

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.objectives.contests import contested, hold_contests
from fliprank.objectives.noisy_ranking import pull_apart
from fliprank.objectives.rank_binomial import expected_by_recursion, rank_binomial

__all__ = ["rank_binomials", "scale", "sinkhorn_values"]

CLOSE = 1e-10
STEPS = 1000


@kernel
def rank_binomials(ranked: Floats, variance: Floats) -> Floats:
    """p[j, r]: the probability that the document at place j of a falling list of scores has rank r (eq. 12)."""
    size = len(ranked)
    out, pi, density = np.zeros((size, size)), np.empty(size), np.empty(size)
    for j in range(size):
        above, below = contested(ranked, variance, variance.max(), j)
        count = hold_contests(ranked, variance, above, below, j, pi, density)
        rank_binomial(pi, count, out[j, above:below])
    return out


@kernel
def scale(p: Floats) -> tuple[Floats, Floats, int]:
    """(u, v, steps): row t + 1 of u and v holds the factors after t steps, until columns add up to 1 as rows do."""
    size = len(p)
    u, v = np.ones((STEPS + 1, size)), np.ones((STEPS + 1, size))
    for t in range(1, STEPS + 1):
        columns, apart = np.zeros(size), 0.0
        for j in range(size):
            for r in range(size):
                columns[r] += p[j, r] * u[t - 1, j]
        for r in range(size):
            apart = max(apart, abs(v[t - 1, r] * columns[r] - 1.0))
        if t > 1 and apart < CLOSE:
            return u, v, t - 1
        for r in range(size):
            v[t, r] = 1.0 / columns[r] if columns[r] > 0.0 else 0.0
        for j in range(size):
            row = 0.0
            for r in range(size):
                row += p[j, r] * v[t, r]
            u[t, j] = 1.0 / row if row > 0.0 else 0.0
    return u, v, STEPS


@kernel
def _scale_back(p: Floats, u: Floats, v: Floats, steps: int, worth: Floats, discount: Floats) -> tuple[float, Floats]:
    """The sum of worth x discount over the scaled matrix, and its derivative with respect to p."""
    size, value = len(p), 0.0
    back, by_u, by_v = np.zeros((size, size)), np.zeros(size), np.zeros(size)
    for j in range(size):
        for r in range(size):
            paid = worth[j] * discount[r]
            value += paid * u[steps, j] * p[j, r] * v[steps, r]
            back[j, r] = paid * u[steps, j] * v[steps, r]
            by_u[j] += paid * p[j, r] * v[steps, r]
            by_v[r] += paid * p[j, r] * u[steps, j]
    for t in range(steps, 0, -1):
        for j in range(size):
            by_row = -by_u[j] * u[t, j] ** 2
            for r in range(size):
                back[j, r] += by_row * v[t, r]
                by_v[r] += by_row * p[j, r]
        for r in range(size):
            by_v[r] *= -(v[t, r] ** 2)
        for j in range(size):
            by_u[j] = 0.0
            for r in range(size):
                back[j, r] += by_v[r] * u[t - 1, j]
                by_u[j] += by_v[r] * p[j, r]
        by_v[:] = 0.0
    return value, back


@parallel_kernel
def sinkhorn_values(
    ranked: Floats, variance: Floats, worth: Floats, offsets: Ints, share: Floats, discount: Floats
) -> tuple[Floats, Floats]:
    """Each query's sum of worth x discount under the scaled rank distributions, and the pull at each place."""
    values, pulls = np.zeros(len(offsets) - 1), np.zeros(len(ranked))
    for q in prange(len(offsets) - 1):
        low, high = offsets[q], offsets[q + 1]
        size = high - low
        if size == 0 or worth[low:high].max() == 0.0:
            continue
        scores, noise = ranked[low:high], variance[low:high] if len(variance) > 1 else variance
        p = rank_binomials(scores, noise)
        u, v, steps = scale(p)
        values[q], back = _scale_back(p, u, v, steps, worth[low:high], discount[low:high])
        if share[q] == 0.0:
            continue
        pi, density, slope, history = np.empty(size), np.empty(size), np.empty(size), np.empty((size + 1, size + 1))
        for j in range(size):
            above, below = contested(scores, noise, noise.max(), j)
            count = hold_contests(scores, noise, above, below, j, pi, density)
            expected_by_recursion(pi, count, above, back[j], size, history, slope, True)
            pull_apart(share[q], slope, density, count, above, j, pulls[low:high])
    return values, pulls
