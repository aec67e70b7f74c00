"""Where the judged documents of each query stand when rows are ordered by score.

A measure needs no more than the ranks of judged documents, so no more is computed: with few judgements a query their
ranks are counted (a compare with every score, no sort); with a cut-off the top is selected; else all rows are sorted.

>>> from fliprank.data.candidates import Candidates
>>> found = rank([0.1, 0.9, 0.5], Candidates.of([1, np.nan, 0]))
>>> found.rank.tolist(), found.entry.tolist()      # row 2 (entry 1) is at rank 2, row 0 (entry 0) at rank 3
([2, 3], [1, 0])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fliprank.arrays import Bytes, Floats, Int32s, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.ids import Ids
from fliprank.data.order import NO_IDS, comes_first, order_rows, sort_rows
from fliprank.errors import InputError
from fliprank.kernels import kernel, parallel_kernel, prange

__all__ = ["Ranking", "Ties", "rank"]

Ties = Literal["docid", "rows", "average"]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Query q's judged documents, best first: entries `start[q] : start[q] + count[q]` of `entry` and `rank` (from 1).

    `entry` points into the candidates' judgements. Documents ranked below `depth` are left out.
    """

    candidates: Candidates
    scores: Floats
    depth: int | None
    ties: Ties
    start: Ints
    count: Ints
    entry: Ints
    rank: Ints

    @property
    def ids(self) -> Ids:
        """The ids that settle ties: none where row order does."""
        return NO_IDS if self.ties == "rows" or self.candidates.docids is None else self.candidates.docids

    def order(self) -> Ints:
        """All rows, best first within each query."""
        return order_rows(self.scores, self.candidates.offsets, self.ids)


def rank(scores: ArrayLike, candidates: Candidates, *, depth: int | None = None, ties: Ties = "docid") -> Ranking:
    """Rank the rows of each query by `scores`; `ties` says what settles equal ones ("docid" without ids: row order)."""
    values = frozen(scores, np.float64)
    if values.shape != candidates.labels.shape:
        raise InputError(f"scores of shape {values.shape} for {len(candidates)} rows")
    if np.isnan(values).any():
        row = int(np.isnan(values).argmax())
        query = int(np.searchsorted(candidates.offsets, row, "right")) - 1
        raise InputError(f"the score of row {row} is not a number", query=candidates.qids[query])
    judged = candidates.judgements
    ids = NO_IDS if ties == "rows" or candidates.docids is None else candidates.docids
    deep = np.iinfo(np.int64).max if depth is None else depth
    bits = values.view(np.uint64)
    found = _rank(values, bits, candidates.offsets, judged.offsets, judged.row, judged.entry_of_row, deep, *ids.arrays)
    return Ranking(candidates, values, depth, ties, judged.offsets, *found)


@parallel_kernel
def _rank(
    scores: Floats,
    bits: NDArray[np.uint64],
    offsets: Ints,
    judged: Ints,
    row: Ints,
    entry_of_row: Int32s,
    depth: int,
    buffer: Bytes,
    start: Ints,
    length: Int32s,
) -> tuple[Ints, Ints, Ints]:
    count, entry, ranks = (
        np.zeros(len(judged) - 1, np.int64),
        np.empty(len(row), np.int64),
        np.empty(len(row), np.int64),
    )
    for q in prange(len(offsets) - 1):
        low, high, first, last = offsets[q], offsets[q + 1], judged[q], judged[q + 1]
        size, known = high - low, last - first
        if known == 0:
            continue
        # Costs measured a row: about 0.3 ns a compare when counting, 40 ns in a sort of a thousand.
        if known <= 64 and known < size // 2:
            count[q] = _count_ranks(
                scores[low:high], low, row, first, last, depth, scores, buffer, start, length, entry, ranks
            )
            continue
        if depth < size // 4:
            top = _select(low, high, depth, scores, buffer, start, length)
        else:
            top = np.empty(size, np.int64)
            sort_rows(low, high, scores, bits, buffer, start, length, top)
        found = first
        for r in range(min(depth, len(top))):
            e = entry_of_row[top[r]]
            if e >= 0:
                entry[found], ranks[found] = e, r + 1
                found += 1
        count[q] = found - first
    return count, entry, ranks


@kernel
def _count_ranks(
    query_scores: Floats,
    low: int,
    row: Ints,
    first: int,
    last: int,
    depth: int,
    scores: Floats,
    buffer: Bytes,
    start: Ints,
    length: Int32s,
    entry: Ints,
    ranks: Ints,
) -> int:
    """Write the judged entries of one query by rank, each found by counting the rows above it; how many there are."""
    found = first
    for e in range(first, last):
        score, above, equal = scores[row[e]], 0, 0
        for i in range(len(query_scores)):
            above += query_scores[i] > score
            equal += query_scores[i] == score
        if equal > 1:
            for i in range(len(query_scores)):
                if query_scores[i] == score and comes_first(low + i, row[e], scores, buffer, start, length):
                    above += 1
        if above < depth:
            at = found
            while at > first and ranks[at - 1] > above + 1:
                ranks[at], entry[at] = ranks[at - 1], entry[at - 1]
                at -= 1
            ranks[at], entry[at] = above + 1, e
            found += 1
    return found - first


@kernel
def _select(low: int, high: int, depth: int, scores: Floats, buffer: Bytes, start: Ints, length: Int32s) -> Ints:
    """The best `depth` of rows low to high, best first, by insertion: most rows cost one compare."""
    top, size = np.empty(depth, np.int64), 0
    for i in range(low, high):
        if size == depth:
            if scores[i] < scores[top[size - 1]] or not comes_first(i, top[size - 1], scores, buffer, start, length):
                continue
            size -= 1
        at = size
        while at > 0 and comes_first(i, top[at - 1], scores, buffer, start, length):
            top[at] = top[at - 1]
            at -= 1
        top[at] = i
        size += 1
    return top
