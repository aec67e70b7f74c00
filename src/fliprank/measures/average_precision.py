"""AP: average precision (Robertson & Zaragoza 2007, section 2.2). Responds to every good or bad flip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.measures.base import RankMeasure, register
from fliprank.measures.law import Above, Law, Ranks, by_rank

__all__ = ["AP"]


@register("MAP")
@dataclass(frozen=True)
class AP(RankMeasure):
    """Precision at the rank of each relevant document (0 where it is not ranked, or below the cut-off), averaged.

    A relevant document at rank r with c others above it adds (1 + c) / r, and the sum is divided by the number of
    relevant documents; `norm="cutoff"` divides by the cut-off where that is smaller, as LightGBM and XGBoost do.

    >>> from fliprank.data.candidates import Candidates
    >>> AP().per_query([3, 2, 1], Candidates.of([1, 0, 1]))      # (1/1 + 2/3) / 2
    array([0.83333333])
    """

    name: ClassVar[str] = "AP"
    cutoff: int | None = None
    rel: float = 1
    judged_only: bool = False
    norm: Literal["relevant", "cutoff"] = "relevant"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.norm == "cutoff" and self.cutoff is None:
            raise UsageError("AP(norm='cutoff') needs a cut-off, such as AP(norm='cutoff')@10")

    def law(self, candidates: Candidates) -> Law:
        judged = candidates.judgements
        relevant = judged.count(self.rel)
        base = relevant if self.norm == "relevant" else np.minimum(relevant, self.cutoff or 1)
        gain = (judged.label >= self.rel) / judged.spread(np.maximum(base, 1))
        reciprocal = by_rank(candidates, self.cutoff, np.reciprocal)
        return Law(gain, reciprocal, relevant, above=Above.COUNT, ranks=Ranks.of(self.judged_only))
