"""DCG and nDCG: discounted cumulative gain (Robertson & Zaragoza 2007, section 2.2; Taylor et al. 2006, section 2.1).

"This definition specifies a whole family of measures, depending on the choice of both gain parameters and discount
function." `dcg` names both: "log2" is ir_measures' and trec_eval's (gain = label, discount 1 / log2(1 + rank)),
"exp-log2" the papers' (gain 2^label - 1), "exp-letor" that of the LETOR tools (ranks 1 and 2 undiscounted, then
1 / log2(rank)).

`gains={4: 31, 3: 15, 2: 7, 1: 3}` sets gains label by label; labels that it does not name keep theirs. Instead of
the discount that `dcg` names,

    base=10                     is Jarvelin & Kekalainen's: ranks up to the base count in full, then 1 / log10(rank)
                                (1 / log10(1 + rank) would be a multiple of 1 / log2(1 + rank), and nDCG the same)
    discount=(1, 0.5, 0.25)     is a discount by rank, 0 beyond its end
    discount=0.5                is the alpha of SoftRank's Figure 5, from 1 (log2) through 0 (a line) to -1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds, positions
from fliprank.errors import InputError, UsageError
from fliprank.measures.base import RankMeasure, register
from fliprank.measures.discounts import Discount, alpha_of, base_discount, checked_discount, discount_of
from fliprank.measures.law import Law, Ranks, by_rank

__all__ = ["DCG", "LARGEST_EXPONENT", "exponential_gain", "nDCG"]

Gains: TypeAlias = Any
"""{label: gain}; kept as a tuple of pairs, so that a measure can be hashed."""

EXPONENTIAL_GAIN = {"log2": False, "exp-log2": True, "exp-letor": True}
"""The values of `dcg`, and whether the gain of a label is 2^label - 1 instead of the label."""

LARGEST_EXPONENT = 1000
"""2^1024 is beyond any float, and gains are summed up: below this, millions of them can be."""


def exponential_gain(labels: Floats) -> Floats:
    """2^label - 1; raises for a label whose gain, or whose sum of gains, is beyond any float.

    >>> exponential_gain(np.array([0.0, 1.0, 3.0]))
    array([0., 1., 7.])
    """
    highest = labels.max(initial=0.0)
    if highest > LARGEST_EXPONENT:
        raise _too_large(highest)
    out: Floats = np.exp2(labels) - 1
    return out


def _too_large(label: float, query: str | None = None) -> InputError:
    return InputError(
        f"a label of {label:g} has a gain of 2^{label:g} - 1: too large to be added up",
        query=query,
        hint=f"labels up to {LARGEST_EXPONENT} can have exponential gain; take a linear one, or lower labels",
    )


@register()
@dataclass(frozen=True)
class DCG(RankMeasure):
    """The gains of the documents, each divided by a discount that grows with its rank, summed up.

    >>> from fliprank.data.candidates import Candidates
    >>> DCG(dcg="exp-log2").per_query([3, 2, 1], Candidates.of([1, 0, 2]))      # 1/1 + 0 + 3/2
    array([2.5])
    >>> DCG(discount=(1, 0.5, 0.25)).per_query([3, 2, 1], Candidates.of([1, 0, 2]))      # 1 + 0 + 2/4
    array([1.5])
    """

    name: ClassVar[str] = "DCG"
    cutoff: int | None = None
    dcg: str = "log2"
    gains: Gains = ()
    judged_only: bool = False
    base: float | None = None
    discount: Discount | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dcg not in EXPONENTIAL_GAIN:
            raise UsageError(f"{self.name}(dcg={self.dcg!r}): dcg is one of {', '.join(map(repr, EXPONENTIAL_GAIN))}")
        if isinstance(self.gains, Mapping):
            object.__setattr__(self, "gains", tuple(sorted(self.gains.items())))
        if min((gain for _, gain in self.gains), default=0) < 0:
            raise UsageError(f"{self.name}: a gain below 0")
        if self.base is not None and not 1 < self.base < np.inf:
            raise UsageError(f"{self.name}(base={self.base!r}): the base of a logarithm is above 1")
        if self.discount is not None:
            if self.base is not None:
                raise UsageError(f"{self.name}: base and discount both set the discount; give one")
            object.__setattr__(self, "discount", checked_discount(self.discount, self.name))

    def gain(self, labels: Floats) -> Floats:
        """The gain of each label; labels below 0 gain nothing."""
        floor = np.maximum(labels, 0.0)
        if EXPONENTIAL_GAIN[self.dcg]:
            out = exponential_gain(np.where(np.isin(labels, [label for label, _ in self.gains]), 0.0, floor))
        else:
            out = floor
        for label, gain in self.gains:
            out = np.where(labels == label, gain, out)
        return out

    def discounts(self, rank: Ints, size: Ints) -> Floats:
        """The discount of each rank (from 0) in a query of so many ranked documents."""
        if self.discount is None and (self.base is not None or self.dcg == "exp-letor"):
            return base_discount(self.base or 2, rank)
        return discount_of("log2" if self.discount is None else self.discount, rank, size)

    def ranked(self, candidates: Candidates) -> Ints:
        """How many documents of each query have a rank."""
        return np.diff(candidates.judgements.offsets) if self.judged_only else candidates.sizes

    def law(self, candidates: Candidates) -> Law:
        judged, ranks = candidates.judgements, Ranks.of(self.judged_only)
        self._check_labels(candidates)
        gain, relevant = self.gain(judged.label), judged.total(self.gain(judged.ideal) > 0)
        if self.discount is None or alpha_of(self.discount) is None:
            table = by_rank(candidates, self.cutoff, self._shared_table)
            return Law(gain, table, relevant, ranks=ranks)
        size = self.ranked(candidates)  # a bent discount depends on it: one table per query
        depth = bounds(size if self.cutoff is None else np.minimum(size, self.cutoff))
        table = self.discounts(positions(depth), np.repeat(size, np.diff(depth)))
        return Law(gain, table, relevant, limit=np.diff(depth), begin=depth[:-1], ranks=ranks)

    def _check_labels(self, candidates: Candidates) -> None:
        """Raise an error that names the first query with a label whose gain no float can hold."""
        judged, named = candidates.judgements, [label for label, _ in self.gains]
        if EXPONENTIAL_GAIN[self.dcg] and judged.ideal.max(initial=0.0) > LARGEST_EXPONENT:
            large = (judged.ideal > LARGEST_EXPONENT) & ~np.isin(judged.ideal, named)
            if large.any():
                first = int(large.argmax())
                raise _too_large(judged.ideal[first], candidates.qids[judged.owner[first]])

    def _shared_table(self, rank: Floats) -> Floats:
        from_0 = rank.astype(np.int64) - 1
        return self.discounts(from_0, from_0 + 1)

    def best(self, candidates: Candidates) -> Floats:
        """The DCG of each query's best ranking of all judged documents, also of those that are not among the rows."""
        judged = candidates.judgements
        gain = self.gain(judged.ideal)
        if self.gains:  # a map need not keep the order of labels
            gain = gain[np.lexsort((-gain, judged.owner))]
        rank = positions(judged.ideal_offsets)
        discount = self.discounts(rank, self.ranked(candidates)[judged.owner])
        best = judged.total(gain * discount * (rank < (self.cutoff or np.inf)))
        if not np.isfinite(best).all():
            query = candidates.qids[int((~np.isfinite(best)).argmax())]
            message = f"its gains add up to more than any float: there are labels up to {judged.ideal.max():g}"
            raise InputError(message, query=query)
        return best


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
        return replace(plain, gain=plain.gain / spread)
