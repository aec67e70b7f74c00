"""Success@n: is there a relevant document among the first n? (Robertson & Zaragoza 2007, section 2.2)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.measures.base import RankMeasure, register
from fliprank.measures.law import Above, Law, Ranks, by_rank

__all__ = ["Success"]


@register()
@dataclass(frozen=True)
class Success(RankMeasure):
    """1 where a relevant document is among the first n, else 0.

    >>> from fliprank.data.candidates import Candidates
    >>> Success(2).per_query([3, 2, 1], Candidates.of([0, 1, 1]))
    array([1.])
    """

    name: ClassVar[str] = "Success"
    needs_cutoff: ClassVar[bool] = True
    cutoff: int | None = None
    rel: float = 1
    judged_only: bool = False

    def law(self, candidates: Candidates) -> Law:
        judged = candidates.judgements
        steps = by_rank(candidates, self.cutoff, np.ones_like)
        gain = judged.label >= self.rel
        return Law(gain, steps, judged.count(self.rel), above=Above.exactly(0), ranks=Ranks.of(self.judged_only))
