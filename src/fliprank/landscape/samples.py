"""Steps of each query where scores are not linear along a line, so that flips can't be solved for.

All rows are scored at evenly spaced points of the line. Between two neighbouring points every pair of documents that
swaps is found, by sorting the ranking at one point into that at the next; so no step hides behind another, of the same
query or of another one. Where in the cell a pair swaps is read off the cubic through its score differences at four
points. What can be missed: a pair that swaps and swaps back within one cell. At the points themselves, the values are
those of the model.

>>> from fliprank.measures import RR
>>> rows = Candidates.of([1, 0, 0])
>>> x = np.linspace(0, 2, 9)
>>> scores = np.array([x**2, 1 + 0 * x, 2 + 0 * x]).T        # the first overtakes the others at 1 and at the root of 2
>>> steps = sample_steps(x, [(np.array([0]), scores)], rows, RR())
>>> steps.x.round(9).tolist(), steps.value.tolist()
([1.0, 1.414213562], [0.5, 1.0])
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Int32s, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.order import sort_rows
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.landscape import crossings
from fliprank.landscape.crossings import follow_swaps, split_rows
from fliprank.landscape.radix import sort_numbers
from fliprank.landscape.steps import Steps, floored, join_steps, pair_steps, steps_by_law
from fliprank.landscape.sweep import Docs, Pay, Room, leads
from fliprank.measures import CorrectPairs, Measure
from fliprank.measures.geometric_mean import GeometricMean
from fliprank.measures.law import Ranks

__all__ = ["LEAST_CELLS", "PairSwaps", "Samples", "find_swaps", "sample_steps"]

LEAST_CELLS = 3
"""A cubic takes four points."""

ROUNDING = 1e-14
"""Scores that differ by less than this, relative to their size, may differ by rounding alone."""

ALL, NONRELEVANT = int(Ranks.ALL), int(Ranks.NONRELEVANT)

Bools = NDArray[np.bool_]


class Samples(NamedTuple):
    """`scores[p]` are those of all rows at `x[p]`, x in ascending order."""

    x: Floats
    scores: Floats


class PairSwaps(NamedTuple):
    """For query q, i from `begin[q]` to `begin[q + 1]`: at `x[i]` row `up[i]` overtakes row `down[i]`.

    `order` holds the rows of each query as they rank at first.
    """

    begin: Ints
    x: Floats
    up: Int32s
    down: Int32s
    order: Ints


def sample_steps(x: Floats, samples: Iterable[tuple[Ints, Floats]], candidates: Candidates, measure: Measure) -> Steps:
    """The steps between x[0] and x[-1].

    `samples` gives consecutive blocks of queries, each with the scores of its rows at every x.
    """
    parts = []
    for queries, scores in samples:
        rows = candidates if len(queries) == candidates.queries else candidates.select(queries)
        parts.append(_steps(Samples(x, scores), rows, measure))
    return join_steps(parts)


def _steps(samples: Samples, rows: Candidates, measure: Measure) -> Steps:
    if isinstance(measure, GeometricMean):
        return floored(_steps(samples, rows, measure.plain), measure)
    docs = Docs.of(rows)
    if isinstance(measure, CorrectPairs):
        swaps = find_swaps(samples, rows, docs.entry >= 0)
        labels, query = rows.labels, np.repeat(np.arange(rows.queries), np.diff(swaps.begin))
        kind = np.sign(np.nan_to_num(labels[swaps.up] - labels[swaps.down])).astype(np.int8)
        at_first = np.empty(len(rows))
        at_first[swaps.order] = -np.arange(len(rows))
        some = kind != 0
        first = measure.per_query(at_first, rows)
        return pair_steps(query[some], swaps.x[some], kind[some], first, measure.pairs(rows))

    def by_law(pay: Pay) -> Steps:
        # Documents that never come as far up as is paid for do not matter.
        reach = pay.limit if pay.ranks == ALL else None
        swaps, wanted = _find(samples, rows, pay.gain != 0, reach)
        room = Room.of(np.diff(swaps.begin))
        first, count = _follow(swaps, docs, pay._replace(gain=np.where(wanted, pay.gain, 0.0)), room)
        used = np.arange(len(room.x)) < np.repeat(room.begin[:-1] + count, np.diff(room.begin))
        return Steps(bounds(count), room.x[used], room.value[used], first)

    return steps_by_law(by_law, rows, measure)


def find_swaps(samples: Samples, rows: Candidates, matters: Bools) -> PairSwaps:
    """The swaps of all pairs of which at least one row `matters`, by query and then by x."""
    return _find(samples, rows, matters, None)[0]


def _find(samples: Samples, rows: Candidates, matters: Bools, reach: Ints | None) -> tuple[PairSwaps, Bools]:
    """The swaps of rows that matter, and which do: with `reach`, those that may rank so high somewhere."""
    docs = Docs.of(rows)
    order, best, count = _look_through(samples, docs)
    wanted = matters
    if reach is not None:
        wanted = matters & (best < np.repeat(reach, rows.sizes))
    room = bounds(np.add.reduceat(np.append(count * wanted, 0), rows.offsets[:-1]) * (rows.sizes > 0))
    x, up, down = np.empty(room[-1]), np.empty(room[-1], np.int32), np.empty(room[-1], np.int32)
    found = _list_swaps(samples, docs, wanted, PairSwaps(room, x, up, down, order))
    used = np.arange(len(x)) < np.repeat(room[:-1] + found, np.diff(room))
    return PairSwaps(bounds(found), x[used], up[used], down[used], order), wanted


@kernel
def _clearly_above(one: float, two: float) -> bool:
    """Whether a score is above another by more than rounding."""
    return bool(one - two > ROUNDING * (abs(one) + abs(two)))


@kernel
def _order_at_first(samples: Samples, begin: int, end: int, docs: Docs, order: Ints) -> None:
    """The rows of a query as they rank just after the first point: those that tie there go by the second."""
    first, second = samples.scores[0], samples.scores[1]
    sort_rows(begin, end, second, second.view(np.uint64), docs.buffer, docs.start, docs.length, order)
    for i in range(1, len(order)):
        row, at = order[i], i
        while at > 0 and _clearly_above(first[row], first[order[at - 1]]):
            order[at] = order[at - 1]
            at -= 1
        order[at] = row


@kernel
def _above(samples: Samples, p: int, a: int, b: int, docs: Docs) -> bool:
    """Whether row `a`, which ranked below `b` at the point before, ranks above it at point p.

    If rounding alone tells them apart, they stay as they were; if they tie, the tie rule decides. Rows that tie at the
    last point do not swap before it.
    """
    one, two = samples.scores[p, a], samples.scores[p, b]
    if one != two:
        return _clearly_above(one, two)
    return p < len(samples.x) - 1 and leads(a, b, samples.scores[p], docs)


@parallel_kernel
def _look_through(samples: Samples, docs: Docs) -> tuple[Ints, Int32s, Ints]:
    """(rows in order at first, the best rank from 0 that each row can have anywhere, number of swaps of each row)."""
    rows = samples.scores.shape[1]
    at_first, best, count = np.empty(rows, np.int64), np.empty(rows, np.int32), np.zeros(rows, np.int64)
    for q in prange(len(docs.offsets) - 1):
        begin, end = docs.offsets[q], docs.offsets[q + 1]
        _order_at_first(samples, begin, end, docs, at_first[begin:end])
        order = at_first[begin:end].copy()
        for r in range(end - begin):
            best[order[r]] = r
        for p in range(1, len(samples.x)):
            for i in range(1, end - begin):
                row, at = order[i], i
                while at > 0 and _above(samples, p, row, order[at - 1], docs):
                    count[row] += 1
                    count[order[at - 1]] += 1
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = row
                best[row] = min(best[row], at)  # as high as it comes, if those that overtake it do so later
    return at_first, best, count


@parallel_kernel
def _list_swaps(samples: Samples, docs: Docs, wanted: Bools, out: PairSwaps) -> Ints:
    """Write the swaps to `out`, in order within each query; returns how many each query has."""
    found = np.zeros(len(docs.offsets) - 1, np.int64)
    rooms, x, ups, downs, at_first = out  # a parallel loop writes to arrays, not to those within a tuple
    for q in prange(len(docs.offsets) - 1):
        begin, end, room = docs.offsets[q], docs.offsets[q + 1], rooms[q]
        if room == rooms[q + 1]:
            continue
        order, count = at_first[begin:end].copy(), 0
        for p in range(1, len(samples.x)):
            fresh = room + count
            for i in range(1, end - begin):
                row, at = order[i], i
                while at > 0 and _above(samples, p, row, order[at - 1], docs):
                    other = order[at - 1]
                    if wanted[row] or wanted[other]:
                        x[room + count] = _meeting(samples, p - 1, row, other)
                        ups[room + count], downs[room + count] = row, other
                        count += 1
                    order[at] = other
                    at -= 1
                order[at] = row
            if room + count - fresh < 2:
                continue
            cell = slice(fresh, room + count)
            by_x = sort_numbers(x[cell].copy(), room + count - fresh)
            x[cell], ups[cell], downs[cell] = x[cell][by_x], ups[cell][by_x], downs[cell][by_x]
        found[q] = count
    return found


@kernel
def _meeting(samples: Samples, p: int, up: int, down: int) -> float:
    """Where between points p and p + 1 two rows tie: the root of the cubic through their differences at four points."""
    x, scores = samples.x, samples.scores
    one, two = scores[p, up] - scores[p, down], scores[p + 1, up] - scores[p + 1, down]
    if not one < 0.0 or not two > 0.0:
        return float(x[p + (one < 0.0)])
    start = min(max(p - 1, 0), len(x) - 4)
    low, high = float(p - start), float(p - start + 1)
    # Newton's form, on the scale on which points are 1 apart: a + b t + c t (t - 1) + d t (t - 1) (t - 2).
    y0, y1 = scores[start, up] - scores[start, down], scores[start + 1, up] - scores[start + 1, down]
    y2, y3 = scores[start + 2, up] - scores[start + 2, down], scores[start + 3, up] - scores[start + 3, down]
    b, c, d = y1 - y0, (y2 - 2.0 * y1 + y0) / 2.0, (y3 - 3.0 * y2 + 3.0 * y1 - y0) / 6.0
    t = low + one / (one - two)
    for _ in range(60):
        value = y0 + t * (b + (t - 1.0) * (c + (t - 2.0) * d))
        if value < 0.0:
            low = t
        elif value > 0.0:
            high = t
        else:
            break
        rate = b + c * (2.0 * t - 1.0) + d * (3.0 * t * t - 6.0 * t + 2.0)
        after = t - value / rate
        if not low < after < high:
            after = low + (high - low) / 2.0
        if abs(after - t) <= 1e-14:
            t = after
            break
        t = after
    return float(x[p] + (t - (p - start)) * (x[p + 1] - x[p]))


@parallel_kernel
def _follow(swaps: PairSwaps, docs: Docs, pay: Pay, room: Room) -> tuple[Floats, Ints]:
    """Write the steps of all queries, from the swaps of their documents with gain, to `room`.

    Returns the value of each query before its steps, and how many there are.
    """
    first, counts = np.zeros(len(docs.offsets) - 1), np.zeros(len(docs.offsets) - 1, np.int64)
    rooms, x, value = room
    for q in prange(len(docs.offsets) - 1):
        offset = docs.offsets[q]
        rows, good = split_rows(q, docs, pay)
        number = np.full(docs.offsets[q + 1] - offset, -2, np.int32)  # -2: ranks do not count it
        for i in range(len(rows)):
            number[rows[i] - offset] = i if i < good else -1
        rank, above = np.empty(good, np.int64), 0
        for row in swaps.order[offset : docs.offsets[q + 1]]:
            own = number[row - offset]
            if own >= 0:
                rank[own] = above + 1
            if own == -1 or (own >= 0 and pay.ranks != NONRELEVANT):
                above += 1
        begin, end = swaps.begin[q], swaps.begin[q + 1]
        where, up, down = np.empty(end - begin), np.empty(end - begin, np.int32), np.empty(end - begin, np.int32)
        count = 0
        for i in range(begin, end):
            one, two = number[swaps.up[i] - offset], number[swaps.down[i] - offset]
            counted = one != -2 and two != -2 and (one >= 0 or two >= 0)
            if counted and not (pay.ranks == NONRELEVANT and one >= 0 and two >= 0):
                where[count], up[count], down[count] = swaps.x[i], one, two
                count += 1
        events = crossings.Swaps(where[:count], up[:count], down[:count], rank)
        here = slice(rooms[q], rooms[q + 1])
        first[q], counts[q] = follow_swaps(events, q, pay.gain[rows[:good]], pay, x[here], value[here])
    return first, counts
