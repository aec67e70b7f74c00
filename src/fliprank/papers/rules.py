"""Verdicts by rule: what paired differences over queries say about a claim.

A claim that one ranker is better holds where Student's paired t-test shows it at 5%, does not hold where the test shows
the opposite, and can't be told else. A claim that two are alike holds where the 95% interval of their difference lies
within a margin, does not hold where the test shows a difference, and can't be told else.

>>> better = difference([0.5, 0.6, 0.8, 0.7], [0.4, 0.5, 0.6, 0.6])
>>> round(better.mean, 3), round(better.p, 3), larger(better)
(0.125, 0.015, 'holds')
>>> alike(difference([0.5, 0.6, 0.8], [0.5, 0.6, 0.8])), all_of(["holds", "can't be told at this size"])
('holds', "can't be told at this size")
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fliprank.errors import UsageError
from fliprank.experiment.significance import p_value, paired_t
from fliprank.papers.part import Verdict

__all__ = ["MARGIN", "SURE", "Difference", "alike", "all_of", "difference", "interval", "larger"]

SURE = 0.05
"""The p below which a difference counts as shown."""
MARGIN = 0.01
"""A difference of a measure that is less than this is none, to whoever searches."""

HOLDS: Verdict = "holds"
DOES_NOT: Verdict = "does not hold"
UNKNOWN: Verdict = "can't be told at this size"


class Difference(NamedTuple):
    """A mean difference over queries, its 95% interval, and the p of the paired t-test."""

    mean: float
    low: float
    high: float
    p: float
    queries: int

    def __str__(self) -> str:
        """As a sentence has it.

        >>> str(Difference(0.0125, 0.002, 0.023, 0.031, 40))
        '+0.0125 (p 0.0310)'
        """
        return f"{self.mean:+.4f} (p {p_value(self.p)})"


def difference(one: ArrayLike, other: ArrayLike) -> Difference:
    """`one` minus `other`, query by query; a query that is NaN in either is left out."""
    apart = np.asarray(one, np.float64) - np.asarray(other, np.float64)
    known = apart[~np.isnan(apart)]
    if not len(known):
        raise UsageError("a difference needs a query that both have a value for")
    mean, low, high = interval(known)
    return Difference(mean, low, high, paired_t(known), len(known))


def interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float, float]:
    """(mean, low, high): Student's interval of a mean over queries.

    >>> [round(x, 3) for x in interval([0.2, 0.4, 0.6])]
    [0.4, -0.097, 0.897]
    """
    from scipy.special import stdtrit

    given = np.asarray(values, np.float64)
    mean = float(given.mean())
    if len(given) < 2:
        return mean, -math.inf, math.inf
    half = float(stdtrit(len(given) - 1, 0.5 + confidence / 2) * given.std(ddof=1) / math.sqrt(len(given)))
    return mean, mean - half, mean + half


def larger(found: Difference, sure: float = SURE) -> Verdict:
    """The verdict on the claim that a difference is above 0."""
    if not found.p < sure:
        return UNKNOWN
    return HOLDS if found.mean > 0 else DOES_NOT


def alike(found: Difference, margin: float = MARGIN, sure: float = SURE) -> Verdict:
    """The verdict on the claim that there is no difference to speak of."""
    if -margin < found.low and found.high < margin:
        return HOLDS
    return DOES_NOT if found.p < sure else UNKNOWN


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on several claims at once: it does not hold if one of them does not, and holds if all do."""
    every = list(verdicts)
    if not every:
        return UNKNOWN
    return DOES_NOT if DOES_NOT in every else UNKNOWN if UNKNOWN in every else HOLDS
