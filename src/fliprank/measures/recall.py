"""R@n: recall at rank n (Robertson & Zaragoza 2007, section 2.2). Responds only to flips of ranks n and n + 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.measures.base import RankMeasure, register
from fliprank.measures.law import Law, Ranks, by_rank

__all__ = ["R"]


@register("Recall")
@dataclass(frozen=True)
class R(RankMeasure):
    """The share of the query's relevant documents that are among the first n.

    >>> from fliprank.data.candidates import Candidates
    >>> R(2).per_query([4, 3, 2, 1], Candidates.of([1, 0, 1, 1]))
    array([0.33333333])
    """

    name: ClassVar[str] = "R"
    needs_cutoff: ClassVar[bool] = True
    cutoff: int | None = None
    rel: float = 1
    judged_only: bool = False

    def law(self, candidates: Candidates) -> Law:
        judged = candidates.judgements
        relevant = judged.count(self.rel)
        gain = (judged.label >= self.rel) / judged.spread(np.maximum(relevant, 1))
        return Law(gain, by_rank(candidates, self.cutoff, np.ones_like), relevant, ranks=Ranks.of(self.judged_only))
