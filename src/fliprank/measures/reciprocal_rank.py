"""RR: reciprocal rank (Robertson & Zaragoza 2007, section 2.2). Responds only to flips of the first relevant one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.measures.base import RankMeasure, register
from fliprank.measures.law import Above, Law, Ranks, by_rank

__all__ = ["RR"]


@register("MRR")
@dataclass(frozen=True)
class RR(RankMeasure):
    """One over the rank of the first relevant document; 0 where there is none within the cut-off.

    >>> from fliprank.data.candidates import Candidates
    >>> RR().per_query([3, 2, 1], Candidates.of([0, 1, 1]))
    array([0.5])
    """

    name: ClassVar[str] = "RR"
    cutoff: int | None = None
    rel: float = 1
    judged_only: bool = False

    def law(self, candidates: Candidates) -> Law:
        judged = candidates.judgements
        reciprocal = by_rank(candidates, self.cutoff, np.reciprocal)
        gain = judged.label >= self.rel
        return Law(gain, reciprocal, judged.count(self.rel), above=Above.exactly(0), ranks=Ranks.of(self.judged_only))
