"""A ranking function of one row as kernels see it: a kind, the numbers that it computes with, and the row's data.

The numbers of a function are called theta, and stand in the order in which its kernels read them. Each is a parameter
of the model or a constant, such as 1 / average length; `places` says which: it indexes the parameters followed by the
constants. So BM25, whose one field always has the weight 1, runs through the kernels of BM25F.

>>> bm25 = RowFunction(SATURATING, np.array([0, 2, 1, 3]), np.array([1.0, 0.01]))   # k, w, b, 1 / average length
>>> bm25.theta(np.array([1.2, 0.75])).tolist()
[1.2, 1.0, 0.75, 0.01]
>>> bm25.by_parameters(np.array([5.0, 6.0, 7.0]), 2).tolist()                       # dropped: what the constants pull
[5.0, 7.0]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.models.term_rows import Lines

__all__ = [
    "IDENTITY",
    "LANGUAGE",
    "LOG",
    "RECENCY",
    "SATURATE",
    "SATURATING",
    "SIGMOID",
    "SIGNED",
    "SUMMED",
    "RowFunction",
]

SATURATING, SUMMED, LANGUAGE, IDENTITY, LOG, SATURATE, SIGMOID, SIGNED, RECENCY = range(9)
"""Kinds: BM25 and BM25F; the sum of BM25; language models; a feature as it is, or through a curve."""


class RowFunction(NamedTuple):
    """`lines` are the term statistics of a text function, `column` is the feature of a curve."""

    kind: int
    places: Ints
    constants: Floats
    lines: Lines | None = None
    column: Floats | None = None

    def theta(self, values: Floats) -> Floats:
        """The numbers that kernels compute with, at these parameter values."""
        theta: Floats = np.concatenate([values, self.constants])[self.places]
        return theta

    def by_parameters(self, by_theta: Floats, count: int) -> Floats:
        """The gradient by the `count` parameters, from that by the first entries of theta."""
        every = np.zeros(count + len(self.constants))
        every[self.places[: len(by_theta)]] = by_theta
        return every[:count]
