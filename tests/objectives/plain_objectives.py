"""The objectives' formulas in plain Python and NumPy, as oracles, and what tests of gradients share."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr


def central_difference(objective, scores, candidates, weights=None, step=1e-5) -> np.ndarray:
    """The gradient by central differences."""
    out = np.zeros(len(scores))
    for i in range(len(scores)):
        up, down = np.array(scores, float), np.array(scores, float)
        up[i] += step
        down[i] -= step
        high = objective.value_and_grad(up, candidates, weights)[0]
        out[i] = (high - objective.value_and_grad(down, candidates, weights)[0]) / (up[i] - down[i])
    return out


def contest_matrix(scores, sigma) -> np.ndarray:
    """pi[i, j], the probability that i beats j (eq. 9); 0 on the diagonal."""
    s, v = np.asarray(scores, float), np.broadcast_to(np.asarray(sigma, float) ** 2, (len(scores),))
    pi = ndtr((s[:, None] - s[None, :]) / np.sqrt(v[:, None] + v[None, :]))
    np.fill_diagonal(pi, 0.0)
    return pi


def recursion(pi: np.ndarray) -> np.ndarray:
    """p[j, r] by eqs. (11) and (12)."""
    size = len(pi)
    out = np.zeros((size, size))
    for j in range(size):
        p = np.zeros(size + 1)
        p[0] = 1.0
        for i in range(size):
            if i != j:
                p[1:] = p[:-1] * pi[i, j] + p[1:] * (1 - pi[i, j])
                p[0] *= 1 - pi[i, j]
        out[j] = p[:size]
    return out


def soft_sum(scores, sigma, gains, discount) -> float:
    """Eq. (15) before it is divided by the best value."""
    return float(np.asarray(gains) @ recursion(contest_matrix(scores, sigma)) @ np.asarray(discount)[: len(scores)])
