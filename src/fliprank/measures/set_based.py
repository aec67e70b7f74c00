"""Measures of a set, not of an order (Robertson & Zaragoza 2007, section 2.1): what scores at least `threshold`.

Without a threshold the set is all that was retrieved. No flip changes a set, only a document that crosses the
threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.measures.base import Measure, register
from fliprank.measures.ranking import Ranking

__all__ = ["SetF", "SetP", "SetR", "SetU"]


@dataclass(frozen=True)
class SetMeasure(Measure):
    """A measure of the set of documents that score at least `threshold`."""

    rel: float = 1
    threshold: float = -np.inf

    def flips(self, scores: ArrayLike, candidates: Candidates) -> Floats:
        return np.zeros(len(candidates))

    def counts(self, ranking: Ranking) -> tuple[Floats, Floats, Floats]:
        """For each query: relevant documents in the set, all documents in the set, relevant documents at all."""
        candidates = ranking.candidates
        query = candidates.query_of_rows()
        inside = ranking.scores >= self.threshold
        good = inside & (candidates.labels >= self.rel)
        found = np.bincount(query[good], minlength=candidates.queries).astype(float)
        size = np.bincount(query[inside], minlength=candidates.queries).astype(float)
        return found, size, candidates.judgements.count(self.rel).astype(float)


@register()
@dataclass(frozen=True)
class SetP(SetMeasure):
    """Precision of a set: the share of its documents that are relevant."""

    name: ClassVar[str] = "SetP"

    def of(self, ranking: Ranking) -> Floats:
        found, size, _ = self.counts(ranking)
        return found / np.maximum(size, 1)


@register()
@dataclass(frozen=True)
class SetR(SetMeasure):
    """Recall of a set: the share of the relevant documents that are in it."""

    name: ClassVar[str] = "SetR"

    def of(self, ranking: Ranking) -> Floats:
        found, _, relevant = self.counts(ranking)
        return found / np.maximum(relevant, 1)


@register()
@dataclass(frozen=True)
class SetF(SetMeasure):
    """The weighted harmonic mean of precision P and recall R of a set: (1 + beta) P R / (beta P + R).

    `beta` multiplies as trec_eval and ir_measures have it: van Rijsbergen's F(b) is SetF(beta=b^2).

    >>> from fliprank.data.candidates import Candidates
    >>> SetF(threshold=2.0).per_query([3, 2, 1], Candidates.of([1, 0, 1]))
    array([0.5])
    """

    name: ClassVar[str] = "SetF"
    beta: float = 1.0

    def of(self, ranking: Ranking) -> Floats:
        found, size, relevant = self.counts(ranking)
        precision, recall = found / np.maximum(size, 1), found / np.maximum(relevant, 1)
        base = self.beta * precision + recall
        return (1 + self.beta) * precision * recall / np.where(base > 0, base, 1.0)


@register()
@dataclass(frozen=True)
class SetU(SetMeasure):
    """Linear utility of a set: `credit` for each relevant document, less `debit` for each other one (TREC's filtering).

    >>> from fliprank.data.candidates import Candidates
    >>> SetU(threshold=2.0).per_query([3, 2, 1], Candidates.of([1, 0, 1]))      # 2 x 1 - 1 x 1
    array([1.])
    """

    name: ClassVar[str] = "SetU"
    credit: float = 2.0
    debit: float = 1.0

    def __post_init__(self) -> None:
        if self.credit < 0 or self.debit < 0:
            raise UsageError("SetU: credit and debit are amounts, not below 0")

    def of(self, ranking: Ranking) -> Floats:
        found, size, _ = self.counts(ranking)
        return self.credit * found - self.debit * (size - found)
