"""Documents of equal score: the ways to put them in order, and the mean of a measure over all their orders.

A measure of a ranking is not defined before ties are settled (Robertson & Zaragoza 2007, section 2.2, "Truncation and
ties"): by document id or by row, whatever the labels; pessimistically or optimistically, which is the least or the most
that any order gives (by Assertion 1 the documents with less or with more gain first, for every measure alike); at
random; or on average over all orders, which for Search Length is Cooper's way and for precision, recall, DCG, average
precision and reciprocal rank that of McSherry & Najork 2008. The mean is exact, by these facts about a tie of n
documents, R of them with gain, in random order:

    any one of them is equally likely at each of the n ranks, so a sum of gains is paid the mean discount;
    one at place i of the tie has (i - 1) (R - 1) / (n - 1) of the others with gain above it, on average;
    h of those with gain are among the first s + 1 if h of them are among the first s and the next one has none
    (chance 1 - (R - h) / (n - s)), or h - 1 are and it has (chance (R - h + 1) / (n - s)).

>>> from fliprank.data.candidates import Candidates
>>> from fliprank.measures.reciprocal_rank import RR
>>> rows = Candidates.of([1, 0, 0])                        # all three tied: ranks 1, 2, 3 are equally likely
>>> for ties in ("rows", "pessimistic", "optimistic", "average"):
...     print(ties, RR().per_query([5, 5, 5], rows, ties=ties).round(4))
rows [1.]
pessimistic [0.3333]
optimistic [1.]
average [0.6111]
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from fliprank.arrays import Floats, Int32s, Ints
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.measures.law import Above, LawArrays, Ranks

__all__ = ["TIES", "TiedRows", "Ties", "checked_ties", "settle", "tied_values"]

Ties = Literal["docid", "rows", "random", "pessimistic", "optimistic", "average", "together"]

TIES: dict[Ties, str] = {
    "docid": "score descending, then document id descending; row order where there are no ids",
    "rows": "score descending, then the order of rows in the file",
    "random": "tied documents are put in random order, which the random seed decides",
    "pessimistic": "tied documents are put in the order that is worst for the measure",
    "optimistic": "tied documents are put in the order that is best for the measure",
    "average": "the mean over all orders of tied documents, exactly",
    "together": "tied documents share the mean of their discounts (AP: precision at the last of them)",
}


def checked_ties(ties: str) -> Ties:
    """The name of a way to settle ties; raises if there is none of that name."""
    if ties not in TIES:
        raise UsageError(f"ties={ties!r}: there are {', '.join(TIES)}")
    return ties


def settle(scores: Floats, candidates: Candidates, ties: Ties, worth: Floats | None, seed: int) -> Floats:
    """Scores without ties that rank the rows of each query as `ties` says: random, pessimistic or optimistic.

    `worth` is what each row is worth to the measure: its label, unless said.
    """
    if ties == "random":
        last_first = np.random.default_rng(seed).random(len(scores))
    else:
        gain = np.nan_to_num(candidates.labels, nan=-np.inf) if worth is None else worth
        last_first = gain if ties == "pessimistic" else -gain
    out = np.empty(len(scores))
    out[np.lexsort((last_first, -scores, candidates.query_of_rows()))] = -np.arange(len(scores), dtype=np.float64)
    return out


class TiedRows(NamedTuple):
    """Rows in ranked order by score; rows of equal score stand side by side, in any order."""

    offsets: Ints
    scores: Floats
    order: Ints
    entry_of_row: Int32s


@parallel_kernel
def tied_values(rows: TiedRows, law: LawArrays, together: bool) -> Floats:
    """The mean value of each query over all orders of tied documents, or `together` as scikit-learn has it.

    There a sum of gains is paid the mean discount just the same, but average precision is that at the tie's last rank.
    """
    out = np.zeros(len(rows.offsets) - 1)
    for q in prange(len(out)):
        table = law.discount[law.begin[q] : law.begin[q] + law.limit[q]]
        i, end, above, relevant, survival = rows.offsets[q], rows.offsets[q + 1], 0, 0, 1.0
        gains = np.empty(end - i)
        while i < end:
            j, size, good = i, 0, 0
            while j < end and rows.scores[rows.order[j]] == rows.scores[rows.order[i]]:
                entry = rows.entry_of_row[rows.order[j]]
                own = law.gain[entry] if entry >= 0 else 0.0
                if own != 0.0:
                    gains[good] = own
                    good += 1
                if law.ranks == Ranks.ALL or (entry >= 0 and (law.ranks == Ranks.JUDGED or own == 0.0)):
                    size += 1
                j += 1
            if good > 0:
                # Bpref counts non-relevant documents only: one with gain may be above, between or below `size` of them.
                places = size + 1 if law.ranks == Ranks.NONRELEVANT else size
                paid = table[above : above + places]
                if law.above == Above.ANY:
                    out[q] += gains[:good].sum() * paid.sum() / places
                elif law.above == Above.COUNT and together:
                    out[q] += gains[:good].sum() * (relevant + good) * (paid[-1] if len(paid) == places else 0.0)
                elif law.above == Above.COUNT:
                    out[q] += gains[:good].sum() * _mean_count(paid, places, good, relevant) / places
                elif law.above == Above.SURVIVAL:
                    out[q] += survival * _mean_survival(paid, places, gains[:good])
                elif relevant <= law.above < relevant + good:
                    out[q] += gains[:good].mean() * _mean_exactly(paid, places, good, law.above - relevant)
            for own in gains[:good]:
                survival *= 1.0 - own
            i, above, relevant = j, above + size, relevant + good
    return out


@kernel
def _mean_count(paid: Floats, places: int, good: int, relevant: int) -> float:
    """The sum over places of discount x (1 + expected number of documents with gain above)."""
    total, each = 0.0, (good - 1) / max(places - 1, 1)
    for i in range(len(paid)):
        total += paid[i] * (1.0 + relevant + i * each)
    return total


@kernel
def _next_place(chance: Floats, good: int, left: int) -> None:
    """Renew `chance[h]`, that h of `good` documents are above the next place, when one of `left` takes this place."""
    for h in range(len(chance) - 1, 0, -1):
        chance[h] = chance[h] * (1.0 - (good - h) / left) + chance[h - 1] * (good - h + 1) / left
    chance[0] *= 1.0 - good / left


@kernel
def _mean_exactly(paid: Floats, places: int, good: int, before: int) -> float:
    """The expected discount of the document with gain that has `before` others with gain of its tie above it."""
    total, chance = 0.0, np.zeros(before + 1)
    chance[0] = 1.0
    for i in range(len(paid)):
        total += paid[i] * chance[before] * (good - before) / (places - i)
        _next_place(chance, good, places - i)
    return total


@kernel
def _mean_survival(paid: Floats, places: int, gains: Floats) -> float:
    """The expected discount of the place where a reader stops, who stops at a document with probability its gain.

    `passed[h]` is the chance to get past h of the documents, on average over all choices of h of them.
    """
    good = len(gains)
    passed, chance = np.zeros(good + 1), np.zeros(good + 1)
    passed[0] = chance[0] = 1.0
    for k in range(good):
        for h in range(k + 1, 0, -1):
            passed[h] = passed[h] * (k + 1 - h) / (k + 1) + (1.0 - gains[k]) * passed[h - 1] * h / (k + 1)
    total, before = 0.0, 1.0
    for i in range(len(paid)):
        _next_place(chance, good, places - i)
        after = (chance * passed).sum()
        total += paid[i] * (before - after)
        before = after
    return total
