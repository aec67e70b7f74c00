"""The law of flips: what a measure pays for a document, and how that changes when two neighbours swap.

Every rank-based measure here is, for one query, a sum over its judged documents:

    value = sum over documents of  gain x discount(rank) x weight(documents above)

where the weight is 1 (DCG, precision, recall, RBP), one more than the number of relevant documents above (average
precision), 1 only if exactly m relevant ones stand above (reciprocal rank and success: m = 0; search length:
m = n - 1), or the chance that the user got past them (ERR). A flip of the documents at ranks r and r + 1 leaves all
other documents' terms as they were and changes the value by

    (gain of the lower - gain of the upper) x (discount(r) - discount(r + 1)) x weight(documents above rank r)

which is Assertion 1 of Robertson & Zaragoza 2007 in numbers: only a good flip is rewarded, only a bad one penalised,
and a measure ignores a flip just where its discount or weight is flat. The exact search rests on this line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Int32s, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.kernels import kernel, parallel_kernel, prange

__all__ = ["Above", "Law", "LawArrays", "RankedEntries", "Ranks", "by_rank", "discount_at", "law_flips", "law_values"]


class Above(IntEnum):
    """How the documents above a document weigh in what it is paid; `Above.exactly(m)` is the fourth case."""

    ANY = -1
    """They do not matter."""
    COUNT = -2
    """One more than the number of those with gain."""
    SURVIVAL = -3
    """The product of 1 - gain: the chance that a reader got past them."""

    @staticmethod
    def exactly(count: int) -> int:
        """The code for: 1 if exactly `count` documents with gain stand above, else 0. It is the count itself."""
        return count


class Ranks(IntEnum):
    """What a rank counts: all documents, the judged ones, or 1 + the judged non-relevant ones above (bpref)."""

    ALL = 0
    JUDGED = 1
    NONRELEVANT = 2

    @staticmethod
    def of(judged_only: bool) -> Ranks:
        """The ranks of a measure that can leave unjudged documents out."""
        return Ranks.JUDGED if judged_only else Ranks.ALL


class LawArrays(NamedTuple):
    """A `Law` as kernels take it."""

    gain: Floats
    discount: Floats
    begin: Ints
    limit: Ints
    above: int
    ranks: int


class RankedEntries(NamedTuple):
    """Query q's judged entries, best first: `entry` and `rank` (from 1) at `start[q] : start[q] + found[q]`."""

    start: Ints
    found: Ints
    entry: Ints
    rank: Ints


@dataclass(frozen=True, eq=False)
class Law:
    """A measure on given judgements: the gain of each judged entry, the discount by rank, and what stands above.

    Query q pays `discount[begin[q] + r - 1]` at rank r up to its `limit[q]`, and nothing below. Without `begin` all
    queries share one table of discounts, without `limit` all of it is paid. `relevant` counts the documents of each
    query that have any gain, ranked or not.
    """

    gain: NDArray[Any]
    discount: NDArray[Any]
    relevant: NDArray[Any]
    limit: NDArray[Any] = None  # type: ignore[assignment]
    begin: NDArray[Any] = None  # type: ignore[assignment]
    above: int = Above.ANY
    ranks: int = Ranks.ALL

    def __post_init__(self) -> None:
        queries = len(self.relevant)
        if self.begin is None:
            object.__setattr__(self, "begin", np.zeros(queries, np.int64))
        longest = len(self.discount) - self.begin
        object.__setattr__(self, "limit", longest if self.limit is None else np.minimum(self.limit, longest))
        for name, dtype in (("gain", float), ("discount", float)):
            object.__setattr__(self, name, frozen(getattr(self, name), dtype))
        for name in ("relevant", "limit", "begin"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.int64))
        object.__setattr__(self, "above", int(self.above))
        object.__setattr__(self, "ranks", int(self.ranks))

    @property
    def arrays(self) -> LawArrays:
        """What kernels need of it."""
        return LawArrays(self.gain, self.discount, self.begin, self.limit, self.above, self.ranks)


def by_rank(candidates: Candidates, cutoff: int | None, discount: Callable[[Floats], Floats]) -> Floats:
    """A discount as a table over ranks 1, 2, ...: as deep as the cut-off, or as the longest query."""
    longest = int(candidates.sizes.max(initial=0))
    return discount(np.arange(1.0, (longest if cutoff is None else min(cutoff, longest)) + 1))


@kernel
def discount_at(discount: Floats, limit: int, rank: int) -> float:
    """The discount of a rank (from 1) by a query's own table, of which the first `limit` ranks are paid."""
    return discount[rank - 1] if rank <= limit else 0.0


@kernel
def weight_of(above: int, relevant_above: int, survival: float) -> float:
    """The weight of what stands above."""
    if above == Above.ANY:
        return 1.0
    if above == Above.COUNT:
        return 1.0 + relevant_above
    if above == Above.SURVIVAL:
        return survival
    return 1.0 if relevant_above == above else 0.0


@parallel_kernel
def law_values(ranking: RankedEntries, law: LawArrays) -> Floats:
    """The value of each query, from a ranking of its judged entries."""
    out = np.zeros(len(ranking.found))
    for q in prange(len(out)):
        total, relevant, nonrelevant, survival = 0.0, 0, 0, 1.0
        table, limit = law.discount[law.begin[q] :], law.limit[q]
        for i in range(ranking.found[q]):
            at = ranking.start[q] + i
            own = law.gain[ranking.entry[at]]
            if own == 0.0:
                nonrelevant += 1
                continue
            place = ranking.rank[at]
            if law.ranks == Ranks.JUDGED:
                place = i + 1
            elif law.ranks == Ranks.NONRELEVANT:
                place = nonrelevant + 1
            total += own * discount_at(table, limit, place) * weight_of(law.above, relevant, survival)
            relevant += 1
            survival *= 1.0 - own
        out[q] = total
    return out


@parallel_kernel
def law_flips(order: Ints, offsets: Ints, entry_of_row: Int32s, law: LawArrays) -> Floats:
    """At `offsets[q] + r - 1` the change of query q's value when its documents at ranks r and r + 1 swap."""
    out = np.zeros(len(order))
    for q in prange(len(offsets) - 1):
        relevant, nonrelevant, judged, survival = 0, 0, 0, 1.0
        table, limit = law.discount[law.begin[q] :], law.limit[q]
        for i in range(offsets[q], offsets[q + 1] - 1):
            upper, lower = entry_of_row[order[i]], entry_of_row[order[i + 1]]
            own = law.gain[upper] if upper >= 0 else 0.0
            other = law.gain[lower] if lower >= 0 else 0.0
            place = i - offsets[q] + 1
            if law.ranks == Ranks.JUDGED:
                place = judged + 1
            elif law.ranks == Ranks.NONRELEVANT:
                place = nonrelevant + 1
            if own != other and (law.ranks == Ranks.ALL or (upper >= 0 and lower >= 0)):
                drop = discount_at(table, limit, place) - discount_at(table, limit, place + 1)
                out[i] = (other - own) * drop * weight_of(law.above, relevant, survival)
            if upper >= 0:
                judged += 1
                if own == 0.0:
                    nonrelevant += 1
                else:
                    relevant += 1
                    survival *= 1.0 - own
    return out
