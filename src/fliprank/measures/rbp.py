"""RBP: rank-biased precision (Moffat & Zobel 2008): the user goes on to the next document with probability p."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.measures.base import RankMeasure, register
from fliprank.measures.law import Law, by_rank

__all__ = ["RBP"]


@register()
@dataclass(frozen=True)
class RBP(RankMeasure):
    """The gain per document of a user who stops after each with probability 1 - p.

    The gain of a document is its label, or with `rel` 1 where its label is at least that.

    >>> from fliprank.data.candidates import Candidates
    >>> RBP(p=0.5, rel=1).per_query([3, 2, 1], Candidates.of([1, 0, 1]))      # 1/2 x (1 + 1/4)
    array([0.625])
    """

    name: ClassVar[str] = "RBP"
    cutoff: int | None = None
    p: float = 0.8
    rel: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.p < 1:
            raise UsageError(f"RBP(p={self.p}): p is a probability below 1")

    def law(self, candidates: Candidates) -> Law:
        judged = candidates.judgements
        if self.rel is None:
            gain, relevant = np.maximum(judged.label, 0), judged.total(judged.ideal > 0)
        else:
            gain, relevant = (judged.label >= self.rel).astype(float), judged.total(judged.ideal >= self.rel)
        persistence = by_rank(candidates, self.cutoff, lambda rank: self.p ** (rank - 1))
        return Law((1 - self.p) * gain, persistence, relevant)
