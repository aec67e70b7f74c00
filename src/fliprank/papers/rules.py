"""Verdicts by rule: what paired differences over queries say about a claim.

A claim that one ranker is better holds where Student's paired t-test shows it at 5%, does not hold where the test shows
the opposite, and can't be told else. A claim that two are alike holds where the 95% interval of their difference lies
within a margin, does not hold where the test shows a difference, and can't be told else. Where a part makes several
comparisons, p is corrected by Holm's method over all of them (`Claims`).

>>> better = difference([0.5, 0.6, 0.8, 0.7], [0.4, 0.5, 0.6, 0.6])
>>> round(better.mean, 3), round(better.p, 3), larger(better)
(0.125, 0.015, 'holds')
>>> alike(difference([0.5, 0.6, 0.8], [0.5, 0.6, 0.8])), all_of(["holds", "can't be told at this size"])
('holds', "can't be told at this size")
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fliprank.errors import UsageError
from fliprank.experiment.significance import holm, p_value, paired_t
from fliprank.papers.part import VERDICTS, Verdict

__all__ = ["MARGIN", "SURE", "Claims", "Difference", "alike", "all_of", "as_good", "difference", "interval", "larger"]

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


def as_good(found: Difference, margin: float = MARGIN, sure: float = SURE) -> Verdict:
    """The verdict on the claim that a difference is not below 0 by anything to speak of."""
    if found.low > -margin:
        return HOLDS
    return DOES_NOT if found.p < sure and found.mean < 0 else UNKNOWN


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on several claims at once: it does not hold if one of them does not, and holds if all do."""
    every = list(verdicts)
    if not every:
        return UNKNOWN
    return DOES_NOT if DOES_NOT in every else UNKNOWN if UNKNOWN in every else HOLDS


class Claims:
    """Comparisons that a paper's claim implies, each with the rule that it is judged by.

    >>> claims = Claims()
    >>> first = claims.add("a less b", larger, [0.5, 0.6, 0.8, 0.7], [0.4, 0.5, 0.6, 0.6])
    >>> other = claims.add("a less c", alike, [0.5, 0.6, 0.8, 0.7], [0.5, 0.6, 0.8, 0.7])
    >>> claims.verdict, claims.notes[0]
    ('holds', 'a less b: +0.1250 (p 0.0154; 0.0308 by Holm): holds')
    """

    def __init__(self) -> None:
        self._found: list[tuple[str, Callable[[Difference], Verdict], Difference]] = []

    def add(self, claim: str, rule: Callable[[Difference], Verdict], one: ArrayLike, other: ArrayLike) -> Difference:
        """Judge the claim about `one` minus `other`, query by query, by this rule."""
        found = difference(one, other)
        self._found.append((claim, rule, found))
        return found

    def _corrected(self) -> list[float]:
        return holm([found.p for _, _, found in self._found]).tolist() if self._found else []

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict on each claim, with p corrected for the number of claims."""
        pairs = zip(self._found, self._corrected(), strict=True)
        return {claim: rule(found._replace(p=p)) for (claim, rule, found), p in pairs}

    @property
    def verdict(self) -> Verdict:
        """The verdict on all claims together."""
        return all_of(self.verdicts.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """One line per claim: the difference, its test, the verdict."""
        pairs = zip(self._found, self._corrected(), self.verdicts.values(), strict=True)
        return tuple(
            f"{claim}: {found.mean:+.4f} (p {p_value(found.p)}; {p_value(p)} by Holm): {verdict}"
            for (claim, _, found), p, verdict in pairs
        )

    @property
    def sentence(self) -> str:
        """How many of the comparisons say so, and the clearest differences for and against."""
        found, verdicts = {claim: each for claim, _, each in self._found}, self.verdicts
        shown = {claim for claim, rule, _ in self._found if rule is larger}
        by = {word: [claim for claim, verdict in verdicts.items() if verdict == word] for word in VERDICTS}
        text = f"Comparisons behind this claim: {len(verdicts)}, of which {len(by[HOLDS])} speak for it, "
        text += f"{len(by[DOES_NOT])} against it, and {len(by[UNKNOWN])} can't tell."
        for word, name in ((HOLDS, "for"), (DOES_NOT, "against")):
            if some := [claim for claim in by[word] if word == DOES_NOT or claim in shown]:
                clear = min(some, key=lambda claim: found[claim].p)
                text += f" Most clearly {name} it: {clear}, {found[clear]}."
        return text
