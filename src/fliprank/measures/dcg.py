"""DCG and nDCG: discounted cumulative gain (Robertson & Zaragoza 2007, section 2.2; Taylor et al. 2006, section 2.1).

`dcg` names gain and discount: "log2" is ir_measures' and trec_eval's (gain = label, discount 1 / log2(1 + rank)),
"exp-log2" the papers' (gain 2^label - 1), "exp-letor" that of the LETOR tools (ranks 1 and 2 undiscounted, then
1 / log2(rank)). `gains={4: 31, 3: 15, 2: 7, 1: 3}` sets gains label by label; labels that it does not name keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.measures.base import RankMeasure, register
from fliprank.measures.law import Law, by_rank

__all__ = ["DCG", "nDCG"]


def log2_discount(rank: Floats) -> Floats:
    """1 / log2(1 + rank), rank from 1."""
    out: Floats = 1 / np.log2(1 + rank)
    return out


def letor_discount(rank: Floats) -> Floats:
    """1 at ranks 1 and 2, then 1 / log2(rank)."""
    out: Floats = 1 / np.log2(np.maximum(rank, 2))
    return out


Gains: TypeAlias = Any
"""{label: gain}; kept as a tuple of pairs, so that a measure can be hashed."""

KINDS: dict[str, tuple[bool, Callable[[Floats], Floats]]] = {
    "log2": (False, log2_discount),
    "exp-log2": (True, log2_discount),
    "exp-letor": (True, letor_discount),
}


@register()
@dataclass(frozen=True)
class DCG(RankMeasure):
    """The gains of the documents, each divided by a discount that grows with its rank, summed up.

    >>> from fliprank.data.candidates import Candidates
    >>> DCG(dcg="exp-log2").per_query([3, 2, 1], Candidates.of([1, 0, 2]))      # 1/1 + 0 + 3/2
    array([2.5])
    """

    name: ClassVar[str] = "DCG"
    cutoff: int | None = None
    dcg: str = "log2"
    gains: Gains = ()
    judged_only: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dcg not in KINDS:
            raise UsageError(f"{self.name}(dcg={self.dcg!r}): dcg is one of {', '.join(map(repr, KINDS))}")
        if isinstance(self.gains, Mapping):
            object.__setattr__(self, "gains", tuple(sorted(self.gains.items())))
        if min((gain for _, gain in self.gains), default=0) < 0:
            raise UsageError(f"{self.name}: a gain below 0")

    def gain(self, labels: Floats) -> Floats:
        """The gain of each label; labels below 0 gain nothing."""
        floor = np.maximum(labels, 0.0)
        out: Floats = np.exp2(floor) - 1 if KINDS[self.dcg][0] else floor
        for label, gain in self.gains:
            out = np.where(labels == label, gain, out)
        return out

    def law(self, candidates: Candidates) -> Law:
        judged = candidates.judgements
        discount = by_rank(candidates, self.cutoff, KINDS[self.dcg][1])
        relevant = judged.total(self.gain(judged.ideal) > 0)
        return Law(self.gain(judged.label), discount, relevant, ranks=int(self.judged_only))

    def best(self, candidates: Candidates) -> Floats:
        """The DCG of each query's best ranking of all judged documents, also of those that are not among the rows."""
        judged = candidates.judgements
        gain = self.gain(judged.ideal)
        if self.gains:  # a map need not keep the order of labels
            gain = gain[np.lexsort((-gain, judged.owner))]
        rank = np.arange(1.0, len(gain) + 1) - judged.ideal_offsets[judged.owner]
        discount = KINDS[self.dcg][1](rank)
        return judged.total(gain * discount * (rank <= (self.cutoff or np.inf)))


@register("NDCG")
@dataclass(frozen=True)
class nDCG(DCG):  # noqa: N801  (the name that the field uses)
    """DCG divided by that of the query's best ranking.

    >>> from fliprank.data.candidates import Candidates
    >>> nDCG(dcg="exp-log2").per_query([3, 2, 1], Candidates.of([1, 0, 2]))      # 2.5 / (3/1 + 1/log2(3))
    array([0.68852888])
    """

    name: ClassVar[str] = "nDCG"

    def law(self, candidates: Candidates) -> Law:
        plain, best = super().law(candidates), self.best(candidates)
        spread = candidates.judgements.spread(np.where(best > 0, best, 1.0))
        return Law(plain.gain / spread, plain.discount, plain.relevant, ranks=plain.ranks)
