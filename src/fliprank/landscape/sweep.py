"""What the sweeps along a line share: the line, the documents, what they pay, and where steps are written.

These are NamedTuples of arrays, so that a kernel takes a few of them instead of twenty arguments.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from fliprank.arrays import Bytes, Floats, Int32s, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.order import NO_IDS, comes_first
from fliprank.kernels import kernel
from fliprank.measures import RankMeasure
from fliprank.measures.law import discount_at, weight_of

__all__ = ["Docs", "Line", "Pay", "Room", "leads", "paid"]


class Line(NamedTuple):
    """Scores base + x slope, for x between `low` and `high`."""

    base: Floats
    slope: Floats
    low: float
    high: float


class Docs(NamedTuple):
    """The rows of all queries: where each query begins, which rows are judged (entry >= 0), and document ids."""

    offsets: Ints
    entry: Int32s
    buffer: Bytes
    start: Ints
    length: Int32s

    @classmethod
    def of(cls, rows: Candidates) -> Self:
        return cls(rows.offsets, rows.judgements.entry_of_row, *(rows.docids or NO_IDS).arrays)


class Pay(NamedTuple):
    """A measure's law with the gain of each row: 0 if the row is not judged."""

    gain: Floats
    discount: Floats
    begin: Ints
    limit: Ints
    above: int
    ranks: int

    @classmethod
    def of(cls, rows: Candidates, measure: RankMeasure) -> Self:
        """The law of this measure on these rows."""
        law = measure.law_for(rows)
        return cls(measure.worth(rows), law.discount, law.begin, law.limit, law.above, law.ranks)


class Room(NamedTuple):
    """Where a sweep of some queries writes: for the i-th, up to `begin[i + 1] - begin[i]` steps from `begin[i]` on."""

    begin: Ints
    x: Floats
    value: Floats

    @classmethod
    def of(cls, sizes: Ints, memory: Floats | None = None) -> Self:
        """Room for so many steps per query, in new memory or in that given."""
        size = int(sizes.sum())
        memory = np.empty(2 * size) if memory is None else memory
        return cls(bounds(sizes), memory[:size], memory[size : 2 * size])


@kernel
def leads(a: int, b: int, scores: Floats, docs: Docs) -> bool:
    """Whether row `a` ranks above row `b`: by score, then by the tie rule."""
    return comes_first(a, b, scores, docs.buffer, docs.start, docs.length)


@kernel
def paid(pay: Pay, query: int, own: float, rank: int, relevant_above: int, survival: float) -> float:
    """What a document of this gain adds to its query's value."""
    amount: float = own * discount_at(pay.discount[pay.begin[query] :], pay.limit[query], rank)
    return amount * weight_of(pay.above, relevant_above, survival)
