"""ESL: expected search length (Cooper 1968; Robertson & Zaragoza 2007, section 2.2). Smaller is better.

Documents of equal score are met in random order, as Cooper has it (unless ties are settled at random, optimistically or
pessimistically): if the n-th relevant document lies in a tie of r
relevant and i other documents, of which s relevant ones are still wanted, the expected number of others seen in it is
i s / (r + 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.kernels import parallel_kernel, prange
from fliprank.measures.base import RankMeasure, register
from fliprank.measures.law import Above, Law, by_rank
from fliprank.measures.ranking import Ranking

__all__ = ["ESL"]


@register()
@dataclass(frozen=True)
class ESL(RankMeasure):
    """How many non-relevant documents a reader is expected to see before the n-th relevant one.

    A search that does not find n relevant documents costs all the non-relevant ones that are ranked.

    >>> from fliprank.data.candidates import Candidates
    >>> ESL().per_query([3, 2, 2, 2], Candidates.of([0, 1, 0, 0]))      # 1 for certain, then 2 x 1 / (1 + 1)
    array([2.])
    """

    name: ClassVar[str] = "ESL"
    smaller_is_better: ClassVar[bool] = True
    n: int = 1
    rel: float = 1

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UsageError(f"ESL(n={self.n}): n counts relevant documents from 1")

    def law(self, candidates: Candidates) -> Law:
        """The n-th relevant document at rank r has r - n others above it."""
        judged = candidates.judgements
        others = by_rank(candidates, None, lambda rank: rank - self.n)
        return Law(judged.label >= self.rel, others, judged.count(self.rel), above=Above.exactly(self.n - 1))

    def of(self, ranking: Ranking) -> Floats:
        judged = ranking.candidates.judgements
        wanted = judged.row[judged.label >= self.rel]
        offsets = ranking.candidates.offsets
        return _search_length(ranking.settled, offsets, wanted, np.searchsorted(wanted, offsets), self.n)


@parallel_kernel
def _search_length(scores: Floats, offsets: Ints, wanted: Ints, wanted_offsets: Ints, n: int) -> Floats:
    out = np.zeros(len(offsets) - 1)
    for q in prange(len(offsets) - 1):
        relevant = np.sort(scores[wanted[wanted_offsets[q] : wanted_offsets[q + 1]]])[::-1]
        if len(relevant) < n:
            out[q] = offsets[q + 1] - offsets[q] - len(relevant)
            continue
        level = relevant[n - 1]
        above, tied, good_above, good_tied = 0, 0, 0, 0
        for i in range(offsets[q], offsets[q + 1]):
            above += scores[i] > level
            tied += scores[i] == level
        for i in range(len(relevant)):
            good_above += relevant[i] > level
            good_tied += relevant[i] == level
        out[q] = above - good_above + (tied - good_tied) * (n - good_above) / (good_tied + 1)
    return out
