"""The rank distribution of every document when contests are independent (SoftRank, section 3.2, Figure 2).

>>> rank_distribution([0.0, 1.0, 9.0], sigma=1.0).round(3)      # p[j, r]; the last score is sure to be first
array([[0.  , 0.24, 0.76],
       [0.  , 0.76, 0.24],
       [1.  , 0.  , 0.  ]])
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from fliprank.arrays import Floats, frozen
from fliprank.errors import InputError, UsageError
from fliprank.kernels import kernel
from fliprank.objectives.contests import Contests, contested, hold_contests
from fliprank.objectives.noisy_ranking import checked_sigma
from fliprank.objectives.rank_binomial import near_the_edge, normal_ranks
from fliprank.objectives.sinkhorn import rank_binomials, scale

__all__ = ["rank_distribution"]

METHODS = ("recursion", "generating", "normal", "sinkhorn")


def rank_distribution(scores: ArrayLike, sigma: float | ArrayLike, method: str = "recursion") -> Floats:
    """p[j, r]: the probability that document j of one query has rank r, from 0.

    "recursion" is the Rank-Binomial distribution of eq. (12), in O(N^3); "generating" the same by inverting its
    generating function at the roots of unity; "normal" approximates all but the first and last documents (section
    3.6); "sinkhorn" scales the recursion's until every rank, too, is held by one document.
    """
    values = frozen(scores, np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise InputError("rank_distribution: scores must be one finite number per document")
    if method not in METHODS:
        raise UsageError(f"rank_distribution: method is one of {', '.join(METHODS)}, not {method!r}")
    noise = checked_sigma("rank_distribution", sigma)
    deviation = np.full(1, noise) if isinstance(noise, float) else noise
    if len(deviation) not in (1, len(values)):
        raise InputError(f"sigma has {len(deviation)} values for {len(values)} documents")
    if not len(values):
        return np.zeros((0, 0))
    if method == "generating":
        return _by_roots_of_unity(values, np.broadcast_to(deviation**2, values.shape))
    order = np.argsort(-values, kind="stable")
    ranked, by_place = values[order], deviation if len(deviation) == 1 else deviation[order]
    out = np.empty((len(values), len(values)))
    out[order] = _mixed(ranked, by_place) if method == "normal" else rank_binomials(ranked, by_place)
    if method == "sinkhorn":
        u, v, steps, converged = scale(out)
        if not converged:
            warnings.warn("rank_distribution: Sinkhorn scaling did not converge", RuntimeWarning, stacklevel=2)
        out *= u[steps][:, None] * v[steps]
    return out


def _by_roots_of_unity(scores: Floats, variance: Floats) -> Floats:
    """E[z^rank] at the N-th roots of unity is the discrete Fourier transform of the rank distribution."""
    size = len(scores)
    root = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)
    out = np.empty((size, size))
    for j in range(size):
        pi = ndtr((scores - scores[j]) / np.sqrt(variance + variance[j]))
        pi[j] = 0.0
        out[j] = np.fft.irfft(np.prod(1 - pi[:, None] * (1 - root), axis=0), size)
    return out


@kernel
def _mixed(ranked: Floats, sigma: Floats) -> Floats:
    """The recursion near the edges, the normal approximation elsewhere."""
    size = len(ranked)
    out, contests = rank_binomials(ranked, sigma), Contests(np.empty(size), np.empty(size), np.empty(size))
    for j in range(size):
        above, below = contested(ranked, sigma, sigma.max(), j)
        count = hold_contests(ranked, sigma, above, below, j, contests)
        if not near_the_edge(j, size, count):
            normal_ranks(contests.pi, count, above, out[j])
    return out
