"""The flips between two rankings of the same query: which pairs of documents swapped, and what each swap was worth.

The new list is made out of the old one, rank by rank from the top: the document that belongs there is lifted past those
above it, one flip of neighbours at a time. Each pair that stands in another order afterwards flips exactly once. A
document that only the new list has enters at the end of the old one first; one that only the old list has leaves at
the end of the new one last. The law of flips (`measures/law.py`) says what each step is worth, so the worths add up to
the change of the measure. Where lists differ by more than one pair, the worth of a flip depends on those before it; its
sign does not: only a flip that moves the higher gain up is worth something, and only the opposite one costs. Where the
law itself depends on how many documents are ranked (`Judged@10` of fewer than ten), it is that of all rows here.

>>> from fliprank.measures import RR
>>> rows, three = Candidates.of([0, 0, 2], docids=["a", "b", "c"]), np.array([3])
>>> found = list_flips(RR(), rows, TwoLists(np.array([0, 1, 2]), three, np.array([2, 0, 1]), three))
>>> [(int(u), int(d), int(r), round(float(w), 4)) for u, d, r, w in zip(found.up, found.down, found.rank, found.worth)]
[(2, 1, 2, 0.1667), (2, 0, 1, 0.5)]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats, Int32s, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.kernels import kernel
from fliprank.measures.base import Measure, RankMeasure
from fliprank.measures.law import LawArrays, Ranks, discount_at, weight_of

__all__ = ["ListFlips", "TwoLists", "has_flips", "list_flips", "payments"]


class TwoLists(NamedTuple):
    """Two orders of the same rows: within query q, the first `held_before[q]` of `before` were in the old list.

    What a list does not have stands behind what it has.
    """

    before: Ints
    held_before: Ints
    after: Ints
    held_after: Ints


@dataclass(frozen=True, eq=False)
class ListFlips:
    """Flips to which the measure responds, query by query, in the order in which they are made.

    Row `up` overtakes row `down` at `rank` (from 1), which is worth `worth` to the measure of its `query`. `down` is -1
    where `up` entered the list, `up` is -1 where `down` left it; `rank` is then the last rank of the list.
    """

    query: Ints
    up: Ints
    down: Ints
    rank: Ints
    worth: Floats

    def __len__(self) -> int:
        return len(self.worth)


def has_flips(measure: Measure) -> bool:
    """Whether the measure pays by its law alone, so that flips are worth what the law says."""
    return isinstance(measure, RankMeasure) and type(measure).of is RankMeasure.of


def list_flips(measure: Measure, rows: Candidates, lists: TwoLists) -> ListFlips:
    """The flips from the list before to the list after."""
    law = _law(measure, rows)
    found = [_of_query(q, rows, law, lists) for q in range(rows.queries)]
    sizes = [len(each[0]) for each in found]
    columns = [np.concatenate([each[i] for each in found]) for i in range(4)] if found else [np.empty(0)] * 4
    up, down, rank = (frozen(column, np.int64) for column in columns[:3])
    return ListFlips(np.repeat(np.arange(rows.queries), sizes), up, down, rank, frozen(columns[3], np.float64))


def payments(measure: Measure, rows: Candidates, order: Ints, held: Ints) -> Floats:
    """What the measure pays for each row of a list, of which query q holds the first `held[q]` rows in `order`.

    These add up to the value of the query.
    """
    return _payments(order, rows.offsets, held, rows.judgements.entry_of_row, _law(measure, rows))


def _law(measure: Measure, rows: Candidates) -> LawArrays:
    if not (isinstance(measure, RankMeasure) and has_flips(measure)):
        raise UsageError(f"{measure} does not pay by ranks alone: there is no saying what a flip is worth to it")
    return measure.law_for(rows).arrays


def _of_query(q: int, rows: Candidates, law: LawArrays, lists: TwoLists) -> tuple[Ints, Ints, Ints, Floats]:
    """(up, down, rank, worth) of one query: counted first, then written down."""
    span = slice(rows.offsets[q], rows.offsets[q + 1])
    held = (int(lists.held_before[q]), int(lists.held_after[q]))
    given = (lists.before[span], lists.after[span], held, rows.judgements.entry_of_row, law, q)
    ints = np.empty((3, 0), np.int64)
    ints = np.empty((3, _walk(*given, ints, np.empty(0))), np.int64)
    worth = np.empty(ints.shape[1])
    _walk(*given, ints, worth)
    return ints[0], ints[1], ints[2], worth


class _Above(NamedTuple):
    """What stands above each place of a list: judged documents, those with and without gain, the chance to pass."""

    judged: Ints
    relevant: Ints
    nonrelevant: Ints
    survival: Floats


@kernel
def _gain(law: LawArrays, entry: int) -> float:
    return law.gain[entry] if entry >= 0 else 0.0


@kernel
def _look_above(above: _Above, order: Ints, entry_of_row: Int32s, law: LawArrays, start: int, stop: int) -> None:
    """Fill in what stands above places start + 1 to stop; that above `start` is known."""
    for i in range(start, stop):
        entry = entry_of_row[order[i]]
        gain = _gain(law, entry)
        above.judged[i + 1] = above.judged[i] + (entry >= 0)
        above.relevant[i + 1] = above.relevant[i] + (gain != 0.0)
        above.nonrelevant[i + 1] = above.nonrelevant[i] + (entry >= 0 and gain == 0.0)
        above.survival[i + 1] = above.survival[i] * (1.0 - gain)


@kernel
def _nothing_above(count: int) -> _Above:
    zeros = np.zeros(count + 1, np.int64)
    return _Above(zeros, zeros.copy(), zeros.copy(), np.ones(count + 1))


@kernel
def _place(above: _Above, law: LawArrays, i: int) -> int:
    """The rank that the measure sees at place i, which counts from 0."""
    place = i + 1
    if law.ranks == Ranks.JUDGED:
        place = above.judged[i] + 1
    elif law.ranks == Ranks.NONRELEVANT:
        place = above.nonrelevant[i] + 1
    return place


@kernel
def _paid(above: _Above, law: LawArrays, q: int, i: int, gain: float) -> float:
    """What a document with this gain is paid at place i."""
    if gain == 0.0:
        return 0.0
    discount = discount_at(law.discount[law.begin[q] :], law.limit[q], _place(above, law, i))
    return gain * discount * weight_of(law.above, above.relevant[i], above.survival[i])


@kernel
def _flip(above: _Above, law: LawArrays, q: int, i: int, upper: int, lower: int) -> float:
    """What it is worth that the document with the entry `lower` overtakes the one above it, at place i."""
    own, other = _gain(law, upper), _gain(law, lower)
    if own == other or (law.ranks != Ranks.ALL and (upper < 0 or lower < 0)):
        return 0.0
    table, limit, place = law.discount[law.begin[q] :], law.limit[q], _place(above, law, i)
    drop = discount_at(table, limit, place) - discount_at(table, limit, place + 1)
    return (other - own) * drop * weight_of(law.above, above.relevant[i], above.survival[i])


@kernel
def _note(ints: Ints, worths: Floats, count: int, up: int, down: int, rank: int, worth: float) -> int:
    """Write a step down, where there is room, if it is worth anything; how many there are now."""
    if worth == 0.0:
        return count
    if count < len(worths):
        ints[0, count], ints[1, count], ints[2, count], worths[count] = up, down, rank, worth
    return count + 1


@kernel
def _walk(
    before: Ints,
    after: Ints,
    held: tuple[int, int],
    entry_of_row: Int32s,
    law: LawArrays,
    q: int,
    ints: Ints,
    worths: Floats,
) -> int:
    """Go from one order to the other, flip by flip; how many steps the measure responds to."""
    size, count, order = len(before), 0, before.copy()
    above = _nothing_above(size)
    _look_above(above, order, entry_of_row, law, 0, size)
    for i in range(held[0], size):
        paid = _paid(above, law, q, i, _gain(law, entry_of_row[order[i]]))
        count = _note(ints, worths, count, order[i], -1, i + 1, paid)
    # Ranks beyond the limit are not paid: where ranks count all documents, what happens there is worth nothing.
    deep = size if law.ranks != Ranks.ALL else min(size, law.limit[q])
    for target in range(deep):
        row, at = after[target], target
        while order[at] != row:
            at += 1
        entry = entry_of_row[row]
        for i in range(at - 1, target - 1, -1):
            if i < deep:
                worth = _flip(above, law, q, i, entry_of_row[order[i]], entry)
                count = _note(ints, worths, count, row, order[i], i + 1, worth)
            order[i + 1] = order[i]
        order[target] = row
        _look_above(above, order, entry_of_row, law, target, at)
    for i in range(min(size, deep) - 1, held[1] - 1, -1):
        paid = _paid(above, law, q, i, _gain(law, entry_of_row[order[i]]))
        count = _note(ints, worths, count, -1, order[i], i + 1, -paid)
    return count


@kernel
def _payments(order: Ints, offsets: Ints, held: Ints, entry_of_row: Int32s, law: LawArrays) -> Floats:
    out = np.zeros(len(order))
    for q in range(len(offsets) - 1):
        own = order[offsets[q] : offsets[q + 1]]
        above = _nothing_above(len(own))
        _look_above(above, own, entry_of_row, law, 0, len(own))
        for i in range(held[q]):
            out[own[i]] = _paid(above, law, q, i, _gain(law, entry_of_row[own[i]]))
    return out
