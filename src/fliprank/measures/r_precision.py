"""Rprec: precision at rank R, the number of relevant documents (Robertson & Zaragoza 2007, section 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.measures.base import RankMeasure, register
from fliprank.measures.law import Law, Ranks, by_rank

__all__ = ["Rprec"]


@register("RPrec")
@dataclass(frozen=True)
class Rprec(RankMeasure):
    """The share of relevant documents among the first R, where R is how many the query has.

    >>> from fliprank.data.candidates import Candidates
    >>> Rprec().per_query([3, 2, 1], Candidates.of([1, 0, 1]))
    array([0.5])
    """

    name: ClassVar[str] = "Rprec"
    rel: float = 1
    judged_only: bool = False

    def law(self, candidates: Candidates) -> Law:
        judged = candidates.judgements
        relevant = judged.count(self.rel)
        gain = (judged.label >= self.rel) / judged.spread(np.maximum(relevant, 1))
        return Law(
            gain, by_rank(candidates, None, np.ones_like), relevant, limit=relevant, ranks=Ranks.of(self.judged_only)
        )
