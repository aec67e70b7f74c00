"""Every crossing of a document with gain: what a measure without a cut-off responds to (R & Z 2007, section 3.1).

The documents with gain, few as a rule, each cross every other document of their query at most once. These crossings
are put in the order of x; each moves the ranks of those with gain by one place and renews their terms

    gain x discount(rank) x weight(documents with gain above)

Crossings at one x are counted together before terms are renewed, so that it does not matter in which order they come.
"""

from __future__ import annotations

import numpy as np

from fliprank.arrays import Bytes, Floats, Int32s, Ints
from fliprank.data.order import comes_first
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.landscape.radix import sort_numbers
from fliprank.measures.law import discount_at, weight_of

__all__ = ["sweep_crossings"]


@parallel_kernel
def sweep_crossings(
    queries: Ints,
    offsets: Ints,
    entry_of_row: Int32s,
    base: Floats,
    slope: Floats,
    gain: Floats,
    discount: Floats,
    limit: Ints,
    above: int,
    ranks: int,
    low: float,
    high: float,
    buffer: Bytes,
    start: Ints,
    length: Int32s,
    room: Ints,
    x: Floats,
    value: Floats,
    first: Floats,
    count: Ints,
) -> None:
    """For the i-th of `queries`: its value just after `low` to `first[i]`, its steps to x and value from `room[i]` on.

    `count[i]` tells how many; there is room for a step a crossing.
    """
    for i in prange(len(queries)):
        q = queries[i]
        rows, good = _split_rows(offsets[q], offsets[q + 1], entry_of_row, gain, ranks)
        where, up, down, rank = _find_crossings(
            rows, good, base, slope, low, high, ranks, room[i + 1] - room[i], buffer, start, length
        )
        here = slice(room[i], room[i + 1])
        first[i], count[i] = _follow(
            where, up, down, rank, gain[rows[:good]], discount, limit[q], above, x[here], value[here]
        )


@kernel
def _split_rows(begin: int, end: int, entry_of_row: Int32s, gain: Floats, ranks: int) -> tuple[Ints, int]:
    """The rows that ranks count, those with gain first, and how many those are."""
    rows, size = np.empty(end - begin, np.int64), 0
    for row in range(begin, end):
        if gain[row] != 0.0:
            rows[size] = row
            size += 1
    good = size
    for row in range(begin, end):
        if gain[row] == 0.0 and (ranks == 0 or entry_of_row[row] >= 0):
            rows[size] = row
            size += 1
    return rows[:size], good


@kernel
def _find_crossings(
    rows: Ints,
    good: int,
    base: Floats,
    slope: Floats,
    low: float,
    high: float,
    ranks: int,
    room: int,
    buffer: Bytes,
    start: Ints,
    length: Int32s,
) -> tuple[Floats, Int32s, Int32s, Ints]:
    """(x, who goes up, who goes down) at each crossing, in the order of x, and the ranks just after `low`.

    Documents with gain go by their place in `rows`, the others by -1.
    """
    where, up, down = np.empty(room), np.empty(room, np.int32), np.empty(room, np.int32)
    height, rate, meeting = base[rows], slope[rows], np.empty(len(rows))
    rank, count = np.ones(good, np.int64), 0
    for i in range(good):
        # Bpref's ranks do not count documents with gain.
        begin, own_height, own_rate = good if ranks == 2 else i + 1, height[i], rate[i]
        for j in range(begin, len(rows)):
            meeting[j] = (own_height - height[j]) / (rate[j] - own_rate)
        for j in range(begin, len(rows)):
            x, second, leads = meeting[j], j if j < good else -1, own_rate > rate[j]
            if own_rate == rate[j]:
                leads = comes_first(rows[i], rows[j], base, buffer, start, length)
            elif x > low:
                if x < high:
                    where[count], up[count], down[count] = x, i if leads else second, second if leads else i
                    count += 1
                leads = not leads
            if not leads:
                rank[i] += 1
            elif second >= 0:
                rank[second] += 1
    order = sort_numbers(where, count)
    return where[order], up[order], down[order], rank


@kernel
def _renew(
    order: Ints,
    place: Ints,
    rank: Ints,
    gain: Floats,
    discount: Floats,
    limit: int,
    above: int,
    left: Floats,
    term: Floats,
) -> float:
    """Put the documents with gain in order of rank again, and work out all terms; their sum."""
    for i in range(1, len(order)):
        doc, at = order[i], i
        while at > 0 and rank[order[at - 1]] > rank[doc]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = doc
    total = 0.0
    for p in range(len(order)):
        doc = order[p]
        place[doc], left[p + 1] = p, left[p] * (1.0 - gain[doc])
        term[doc] = gain[doc] * discount_at(discount, limit, rank[doc]) * weight_of(above, p, left[p])
        total += term[doc]
    return total


@kernel
def _follow(
    where: Floats,
    up: Int32s,
    down: Int32s,
    rank: Ints,
    gain: Floats,
    discount: Floats,
    limit: int,
    above: int,
    x: Floats,
    value: Floats,
) -> tuple[float, int]:
    """(value at the start, number of steps) of one query; the steps go to x and value."""
    good = len(rank)
    order, place, left, term = np.arange(good), np.empty(good, np.int64), np.ones(good + 1), np.empty(good)
    first = _renew(order, place, rank, gain, discount, limit, above, left, term)
    total, told, steps, at = first, first, 0, 0
    while at < len(where):
        begin, now = at, where[at]
        while at < len(where) and where[at] == now:
            if up[at] >= 0:
                rank[up[at]] -= 1
            if down[at] >= 0:
                rank[down[at]] += 1
            at += 1
        one, two = up[begin], down[begin]
        alone = at - begin == 1
        if alone and one >= 0 and two >= 0:
            alone = place[one] == place[two] + 1  # else rounding mixed up crossings that nearly coincide
            if alone:
                p = place[two]
                order[p], order[p + 1], place[one], place[two] = one, two, p, p + 1
                left[p + 1] = left[p] * (1.0 - gain[one])
        if alone:
            for doc in (one, two):
                if doc >= 0:
                    p = place[doc]
                    own = gain[doc] * discount_at(discount, limit, rank[doc]) * weight_of(above, p, left[p])
                    total += own - term[doc]
                    term[doc] = own
        else:
            total = _renew(order, place, rank, gain, discount, limit, above, left, term)
        if total != told:
            x[steps], value[steps] = now, total
            steps, told = steps + 1, total
    return first, steps
