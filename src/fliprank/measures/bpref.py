"""Bpref: pairs of judged documents in the right order (Robertson & Zaragoza 2007, section 2.2), as trec_eval has it.

With R relevant and N judged non-relevant documents, a relevant one with n judged non-relevant ones ranked above it adds
(1 - min(n, R) / min(R, N)) / R. Unjudged documents do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds, positions
from fliprank.measures.base import RankMeasure, register
from fliprank.measures.law import Law, Ranks

__all__ = ["Bpref"]


@register("BPref")
@dataclass(frozen=True)
class Bpref(RankMeasure):
    """How rarely judged non-relevant documents stand above relevant ones; blind to unjudged documents.

    >>> from fliprank.data.candidates import Candidates
    >>> Bpref().per_query([5, 4, 3, 2, 1], Candidates.of([1, 0, np.nan, 1, 0]))      # (1 + (1 - 1/2)) / 2
    array([0.75])
    """

    name: ClassVar[str] = "Bpref"
    rel: float = 1

    def law(self, candidates: Candidates) -> Law:
        judged = candidates.judgements
        relevant = judged.count(self.rel)
        others = np.diff(judged.ideal_offsets) - relevant
        # The discount falls by 1 per non-relevant document, from min(R, N) to 0. Without any it never falls.
        steps = np.maximum(np.minimum(relevant, others), 1)
        begin = bounds(steps)
        falling = np.repeat(steps, steps) - positions(begin)
        gain = (judged.label >= self.rel) / judged.spread(np.maximum(relevant, 1) * steps)
        return Law(gain, falling, relevant, limit=steps, begin=begin[:-1], ranks=Ranks.NONRELEVANT)
