"""The rank distribution of every document whose score is noisy (SoftRank, section 3.2, Figure 2).

The paper takes a document's contests with the others as independent; they share its score, so the true distribution is
wider. Given that score they are independent, so it is an integral over it.

>>> rank_distribution([0.0, 1.0, 9.0], sigma=1.0).round(3)      # p[j, r]; the last score is sure to be first
array([[0.  , 0.24, 0.76],
       [0.  , 0.76, 0.24],
       [1.  , 0.  , 0.  ]])
>>> rank_distribution([0.0, 0.0, 0.0], sigma=1.0)[0], rank_distribution([0.0, 0.0, 0.0], 1.0, "true")[0].round(6)
(array([0.25, 0.5 , 0.25]), array([0.333333, 0.333333, 0.333333]))
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from fliprank.arrays import Floats, frozen
from fliprank.checked import checked
from fliprank.errors import InputError, UsageError
from fliprank.kernels import kernel
from fliprank.objectives.contests import Contests, contested, hold_contests
from fliprank.objectives.noisy_ranking import checked_sigma
from fliprank.objectives.rank_binomial import near_the_edge, normal_ranks
from fliprank.objectives.sinkhorn import rank_binomials, scale

__all__ = ["rank_distribution"]

METHODS = ("recursion", "generating", "normal", "sinkhorn", "true")
REACH, STEP = 8.5, 0.8
"""How far from its mean a noisy score is looked at, and how closely: the step, in units of the smallest noise, times
the root of the number of documents, since the more there are, the better a rank tells the score."""


@checked
def rank_distribution(scores: ArrayLike, sigma: float | ArrayLike, method: str = "recursion") -> Floats:
    """p[j, r]: the probability that document j of one query has rank r, from 0.

    "recursion" is the Rank-Binomial distribution of eq. (12), in O(N^3); "generating" the same by inverting its
    generating function at the roots of unity; "normal" approximates all but the first and last documents (section
    3.6); "sinkhorn" scales the recursion's until every rank, too, is held by one document; "true" is the distribution
    over sorted noisy scores, which the others approximate.
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
    if method == "true":
        return _over_own_score(values, np.broadcast_to(deviation, values.shape).copy())
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


@kernel
def _over_own_score(scores: Floats, sigma: Floats) -> Floats:
    """The distribution of the number of others above x, averaged over the own score x by the trapezoid rule."""
    size = len(scores)
    out, above, step = np.zeros((size, size)), np.empty(size), min(0.2, STEP / math.sqrt(size)) * sigma.min()
    for j in range(size):
        points = math.ceil(REACH * sigma[j] / step)
        total = 0.0
        for point in range(-points, points + 1):
            x = scores[j] + point * step
            weight = math.exp(-0.5 * (point * step / sigma[j]) ** 2)
            total += weight
            above[:] = 0.0
            above[0] = 1.0
            others = 0
            for i in range(size):
                if i == j:
                    continue
                beaten = 0.5 * math.erfc((x - scores[i]) / (sigma[i] * math.sqrt(2.0)))
                others += 1
                for r in range(others, 0, -1):
                    above[r] += (above[r - 1] - above[r]) * beaten
                above[0] *= 1.0 - beaten
            for r in range(size):
                out[j, r] += weight * above[r]
        out[j] /= total
    return out
