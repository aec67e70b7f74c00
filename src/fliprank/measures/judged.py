"""Judged@n: how many of the first n documents anybody judged: how far the other numbers can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.measures.base import RankMeasure, register
from fliprank.measures.law import Law, by_rank

__all__ = ["Judged"]


@register()
@dataclass(frozen=True)
class Judged(RankMeasure):
    """The share of judged documents among the first n (or all, where there are fewer).

    >>> from fliprank.data.candidates import Candidates
    >>> Judged(2).per_query([3, 2, 1], Candidates.of([np.nan, 0, 1]))
    array([0.5])
    """

    name: ClassVar[str] = "Judged"
    cutoff: int | None = None

    def law(self, candidates: Candidates) -> Law:
        judged = candidates.judgements
        base = candidates.sizes if self.cutoff is None else np.minimum(candidates.sizes, self.cutoff)
        steps = by_rank(candidates, self.cutoff, np.ones_like)
        return Law(1 / judged.spread(np.maximum(base, 1)), steps, np.ones(candidates.queries))
