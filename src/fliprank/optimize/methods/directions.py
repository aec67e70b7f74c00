"""Which directions an epoch of direct search goes along: the axes, and others that lead out of where axes end.

A measure may have a ridge that runs between the axes; then no coordinate gains, but two of them together would.

>>> chance = np.random.default_rng(0)
>>> epoch_directions("axes+last", 2, chance, last=np.array([0.5, 0.1]), gradient=None).tolist()
[[1.0, 0.0], [0.0, 1.0], [0.5, 0.1]]
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fliprank.arrays import Floats
from fliprank.errors import UsageError

__all__ = ["KINDS", "check_directions", "epoch_directions"]

KINDS = ("axes", "random", "pairs", "last", "gradient")
"""The parameters one by one; as many random directions at right angles; as many pairs of parameters, at a random angle;
the step of the epoch before; the gradient of the smooth objective."""


def check_directions(kinds: str) -> None:
    """One or more of the kinds, joined by +."""
    if not set(kinds.split("+")) <= set(KINDS):
        raise UsageError(f"directions are {', '.join(KINDS)}, or several joined by +: not {kinds!r}")


def epoch_directions(
    kinds: str, count: int, chance: np.random.Generator, last: Floats, gradient: Callable[[], Floats] | None
) -> Floats:
    """The directions of an epoch for so many free parameters, one a row."""
    rows: list[Floats] = []
    for kind in kinds.split("+"):
        if kind == "axes":
            rows.append(np.eye(count)[chance.permutation(count)])
        elif kind == "random":
            rows.append(np.linalg.qr(chance.normal(size=(count, count)))[0])
        elif kind == "pairs" and count > 1:
            rows.append(_pairs(count, chance))
        elif kind == "last":
            rows.append(last[None])
        elif kind == "gradient" and gradient is not None:
            rows.append(gradient()[None])
    found = np.concatenate(rows) if rows else np.empty((0, count))
    return found[found.any(axis=1)]


def _pairs(count: int, chance: np.random.Generator) -> Floats:
    """Each parameter with another."""
    order, angle = chance.permutation(count), chance.uniform(0, np.pi, count)
    out = np.zeros((count, count))
    out[np.arange(count), order] = np.cos(angle)
    out[np.arange(count), np.roll(order, 1)] = np.sin(angle)
    return out
