"""P@n: precision at rank n (Robertson & Zaragoza 2007, section 2.2). Responds only to flips of ranks n and n + 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.measures.base import RankMeasure, register
from fliprank.measures.law import Law, Ranks, by_rank

__all__ = ["P"]


@register("Precision")
@dataclass(frozen=True)
class P(RankMeasure):
    """The share of relevant documents among the first n.

    >>> from fliprank.data.candidates import Candidates
    >>> P(2).per_query([3, 2, 1], Candidates.of([1, 0, 1]))
    array([0.5])

    `norm="retrieved"` divides by the number of documents where there are fewer than n.
    """

    name: ClassVar[str] = "P"
    needs_cutoff: ClassVar[bool] = True
    cutoff: int | None = None
    rel: float = 1
    judged_only: bool = False
    norm: Literal["cutoff", "retrieved"] = "cutoff"

    def law(self, candidates: Candidates) -> Law:
        judged, base = candidates.judgements, np.full(candidates.queries, self.cutoff or 1)
        if self.norm == "retrieved":
            base = np.maximum(np.minimum(base, candidates.sizes), 1)
        gain = (judged.label >= self.rel) / judged.spread(base)
        ranks = Ranks.of(self.judged_only)
        return Law(gain, by_rank(candidates, self.cutoff, np.ones_like), judged.count(self.rel), ranks=ranks)
