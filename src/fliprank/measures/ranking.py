"""Where the judged documents of each query stand when rows are ordered by score.

A measure needs no more than the ranks of judged documents, so no more is computed: with few judgements per query
their ranks are counted (a compare with every score, no sort); with a cut-off the top is selected; else all rows are
sorted.

>>> from fliprank.data.candidates import Candidates
>>> found = rank([0.1, 0.9, 0.5], Candidates.of([1, np.nan, 0]))
>>> found.rank.tolist(), found.entry.tolist()      # row 2 (entry 1) is at rank 2, row 0 (entry 0) at rank 3
([2, 3], [1, 0])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fliprank.arrays import Bytes, Floats, Int32s, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.ids import Ids
from fliprank.data.order import NO_IDS, comes_first, order_rows, sort_rows
from fliprank.errors import InputError
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.measures.law import RankedEntries
from fliprank.measures.ties import Ties, checked_ties, settle

__all__ = ["Ranking", "rank"]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Query q's judged documents, best first: entries `start[q] : start[q] + count[q]` of `entry` and `rank` (from 1).

    `entry` points into the candidates' judgements. Documents ranked below `depth` are left out. `settled` are the
    scores by which rows were ranked: `scores` themselves, or others without ties where `ties` needs them.
    """

    candidates: Candidates
    scores: Floats
    depth: int | None
    ties: Ties
    settled: Floats
    start: Ints
    count: Ints
    entry: Ints
    rank: Ints

    @property
    def entries(self) -> RankedEntries:
        """The judged documents by rank, as kernels take them."""
        return RankedEntries(self.start, self.count, self.entry, self.rank)

    def order(self) -> Ints:
        """All rows, best first within each query."""
        return order_rows(self.settled, self.candidates.offsets, _ids(self.candidates, self.ties))


def rank(
    scores: ArrayLike,
    candidates: Candidates,
    *,
    depth: int | None = None,
    ties: Ties = "docid",
    worth: Floats | None = None,
    seed: int = 0,
) -> Ranking:
    """Rank the rows of each query by `scores`; `ties` says how equal ones are settled (see `measures.ties`).

    `worth` is what each row is worth to a measure (its label, unless said), for ties that are settled optimistically or
    pessimistically; `seed` is for those settled at random.
    """
    values = frozen(scores, np.float64)
    if values.shape != candidates.labels.shape:
        raise InputError(f"scores of shape {values.shape} for {len(candidates)} rows")
    if np.isnan(values).any():
        row = int(np.isnan(values).argmax())
        query = int(np.searchsorted(candidates.offsets, row, "right")) - 1
        raise InputError(f"the score of row {row} is not a number", query=candidates.qids[query])
    settled = values
    if checked_ties(ties) in ("random", "pessimistic", "optimistic"):
        settled = frozen(settle(values, candidates, ties, worth, seed), np.float64)
    judged, ids = candidates.judgements, _ids(candidates, ties)
    rows = _Rows(settled, settled.view(np.uint64), candidates.offsets, judged.row, judged.entry_of_row, *ids.arrays)
    found = _rank(rows, judged.offsets, np.iinfo(np.int64).max if depth is None else depth)
    return Ranking(candidates, values, depth, ties, settled, judged.offsets, *found)


def _ids(candidates: Candidates, ties: Ties) -> Ids:
    """The ids that settle ties; none where row order does."""
    return NO_IDS if ties == "rows" or candidates.docids is None else candidates.docids


class _Rows(NamedTuple):
    """What is ranked: scores and their bits, the judged rows, and the ids that settle ties."""

    scores: Floats
    bits: NDArray[np.uint64]
    offsets: Ints
    judged: Ints
    entry_of_row: Int32s
    buffer: Bytes
    start: Ints
    length: Int32s


@parallel_kernel
def _rank(rows: _Rows, judged: Ints, depth: int) -> tuple[Ints, Ints, Ints]:
    """(how many, which entries, their ranks) of the judged rows of each query that are ranked above `depth`."""
    count = np.zeros(len(judged) - 1, np.int64)
    entry, ranks = np.empty(len(rows.judged), np.int64), np.empty(len(rows.judged), np.int64)
    for q in prange(len(judged) - 1):
        low, high, first, last = rows.offsets[q], rows.offsets[q + 1], judged[q], judged[q + 1]
        size, known = high - low, last - first
        if known == 0:
            continue
        # Measured costs per row: about 0.3 ns for a compare when counting, 40 ns in a sort of a thousand.
        if known <= 64 and known < size // 2:
            count[q] = _count_ranks(rows, low, high, first, depth, entry[first:last], ranks[first:last])
            continue
        if depth < size // 4:
            top = _select(rows, low, high, depth)
        else:
            top = np.empty(size, np.int64)
            sort_rows(low, high, rows.scores, rows.bits, rows.buffer, rows.start, rows.length, top)
        found = first
        for r in range(min(depth, len(top))):
            e = rows.entry_of_row[top[r]]
            if e >= 0:
                entry[found], ranks[found] = e, r + 1
                found += 1
        count[q] = found - first
    return count, entry, ranks


@kernel
def _comes_first(rows: _Rows, a: int, b: int) -> bool:
    return comes_first(a, b, rows.scores, rows.buffer, rows.start, rows.length)


@kernel
def _count_ranks(rows: _Rows, low: int, high: int, first: int, depth: int, entry: Ints, ranks: Ints) -> int:
    """Write the judged entries of one query, from `first` on, by rank; each is found by counting the rows above it.

    Returns how many there are.
    """
    found, scores = 0, rows.scores[low:high]
    for e in range(first, first + len(entry)):
        row, above, equal = rows.judged[e], 0, 0
        score = rows.scores[row]
        for i in range(len(scores)):
            above += scores[i] > score
            equal += scores[i] == score
        if equal > 1:
            for i in range(len(scores)):
                if scores[i] == score and _comes_first(rows, low + i, row):
                    above += 1
        if above < depth:
            at = found
            while at > 0 and ranks[at - 1] > above + 1:
                ranks[at], entry[at] = ranks[at - 1], entry[at - 1]
                at -= 1
            ranks[at], entry[at] = above + 1, e
            found += 1
    return found


@kernel
def _select(rows: _Rows, low: int, high: int, depth: int) -> Ints:
    """The best `depth` of rows low to high, best first, by insertion: most rows cost one compare."""
    top, size = np.empty(depth, np.int64), 0
    for i in range(low, high):
        if size == depth:
            if rows.scores[i] < rows.scores[top[size - 1]] or not _comes_first(rows, i, top[size - 1]):
                continue
            size -= 1
        at = size
        while at > 0 and _comes_first(rows, i, top[at - 1]):
            top[at] = top[at - 1]
            at -= 1
        top[at] = i
        size += 1
    return top
