"""The top of each ranking along a line, kept kinetic: what a measure with a cut-off sees (R & Z 2007, section 3.1).

A measure with a cut-off k responds only to flips of neighbours among the first k, and of the k-th and its successor.
So the first k documents are kept in order while x goes up: the next flip is the earliest of k crossings, those of the
k - 1 pairs of neighbours and that of the k-th with the document from outside that overtakes it first. A flip renews
three crossings; the overtaker is looked for again only when the k-th changes. Flips at one x are one step.

In a long query most documents are never among the first k. Such a document lies below some k others at both ends of a
stretch of the line, and so below them all along it, because the lowest of k straight lines is a concave function.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.landscape.sweep import Docs, Line, Pay, Room, leads
from fliprank.measures.law import Above, weight_of

__all__ = ["Stretches", "sweep_tops"]

LONG = 6
"""A query of more than this many times k rows first drops those that always stay below: from there on it pays."""


class Stretches(NamedTuple):
    """Stretches of the line, by directions (c, s) in which a document scores c base + s slope.

    `ends` and `middles` are the directions at their ends and in their middles; `margin` is what rounding may add to a
    score at each end.
    """

    ends: Floats
    middles: Floats
    margin: Floats


@parallel_kernel
def sweep_tops(
    queries: Ints, depth: Ints, line: Line, stretches: Stretches, docs: Docs, pay: Pay, room: Room
) -> tuple[Floats, Ints]:
    """Write the steps of these queries, whose first `depth` ranks are paid for, to `room`.

    Returns the value of each query just after the line's low end, and how many steps it has; those that exceed the room
    are not written.
    """
    first, count = np.zeros(len(queries)), np.zeros(len(queries), np.int64)
    begins, x, value = room  # a parallel loop writes to arrays, not to those within a tuple
    chunks = min(len(queries), 64)
    for chunk in prange(chunks):
        for i in range(len(queries) * chunk // chunks, len(queries) * (chunk + 1) // chunks):
            begin, end, k = docs.offsets[queries[i]], docs.offsets[queries[i] + 1], depth[i]
            rows = _contenders(begin, end, k, line, stretches) if end - begin > LONG * k else np.arange(begin, end)
            _put_in_order(rows, k, line, docs)
            here = slice(begins[i], begins[i + 1])
            first[i], count[i] = _sweep(rows, k, queries[i], line, docs, pay, x[here], value[here])
    return first, count


@kernel
def _contenders(begin: int, end: int, k: int, line: Line, stretches: Stretches) -> Ints:
    """The rows that may be among the first k somewhere on the line; the others stay below k rows on every stretch."""
    base, slope, (ends, middles, margin) = line.base, line.slope, stretches
    bar, best, score = np.full(len(ends), np.inf), np.empty(k, np.int64), np.empty(k)
    for m in range(len(middles)):
        c, s, size = middles[m, 0], middles[m, 1], 0
        for i in range(begin, end):
            own = c * base[i] + s * slope[i]
            if size == k and not own > score[k - 1]:
                continue
            at = size if size < k else k - 1
            size = min(size + 1, k)
            while at > 0 and score[at - 1] < own:
                score[at], best[at] = score[at - 1], best[at - 1]
                at -= 1
            score[at], best[at] = own, i
        for e in range(m, m + 2):
            for b in range(k):
                bar[e] = min(bar[e], ends[e, 0] * base[best[b]] + ends[e, 1] * slope[best[b]])
    rows, found = np.empty(end - begin, np.int64), 0
    for i in range(begin, end):
        for e in range(len(ends)):
            if ends[e, 0] * base[i] + ends[e, 1] * slope[i] >= bar[e] - margin[e]:
                rows[found] = i
                found += 1
                break
    return rows[:found]


@kernel
def _put_in_order(rows: Ints, k: int, line: Line, docs: Docs) -> None:
    """Bring the first k just after `low` to the front of `rows`, in order: there, of equal scores the steeper leads."""
    base, slope, low, score = line.base, line.slope, line.low, np.empty(len(rows))
    for i in range(len(rows)):
        row = rows[i]
        score[i] = -slope[row] if low == -np.inf else base[row] + low * slope[row]
    for i in range(1, len(rows)):
        row, own, at = rows[i], score[i], min(i, k)
        while at > 0:
            other = rows[at - 1]
            if own < score[at - 1]:
                break
            if own == score[at - 1]:
                if slope[row] < slope[other]:
                    break
                if slope[row] == slope[other] and not leads(row, other, base, docs):
                    break
            at -= 1
        if at == k:
            continue
        # The row pushes the k-th out of the front, into its own place.
        last = min(i, k - 1)
        if i > last:
            rows[i], score[i] = rows[last], score[last]
        for place in range(last, at, -1):
            rows[place], score[place] = rows[place - 1], score[place - 1]
        rows[at], score[at] = row, own


@kernel
def _overtaker(k: int, height: Floats, rate: Floats, x: Floats) -> tuple[int, bool]:
    """The place of a document outside the first k that overtakes the k-th first, and whether others come to that x too.

    `x[place]` is where, infinite if none ever does.
    """
    last_height, last_rate = height[k - 1], rate[k - 1]
    for i in range(k, len(x)):
        gap = rate[i] - last_rate
        ahead = (last_height - height[i]) / gap
        x[i] = ahead if gap > 0.0 else np.inf
    place, where, tied = k, x[k], False
    for i in range(k + 1, len(x)):
        if x[i] <= where:
            tied = x[i] == where
            if not tied:
                place, where = i, x[i]
    return place, tied


@kernel
def _leader(place: int, rate: Floats, x: Floats, rows: Ints, base: Floats, docs: Docs) -> int:
    """Of parallel overtakers at one x the higher leads, of equal ones that which the tie rule puts first.

    Others that come to this x sort themselves out there.
    """
    for i in range(place + 1, len(x)):
        same = x[i] == x[place] and rate[i] == rate[place]
        if same and leads(rows[i], rows[place], base, docs):
            place = i
    return place


@kernel
def _meet(upper_height: float, upper_rate: float, lower_height: float, lower_rate: float) -> float:
    """Where the lower of two neighbours overtakes the upper."""
    gap = lower_rate - upper_rate
    return (upper_height - lower_height) / gap if gap > 0.0 else np.inf


@kernel
def _sweep(
    rows: Ints, k: int, query: int, line: Line, docs: Docs, pay: Pay, x: Floats, value: Floats
) -> tuple[float, int]:
    """(value just after `low`, number of steps) of one query, whose `rows` begin with its first k, in order."""
    base, low, discount, above = line.base, line.low, pay.discount[pay.begin[query] :], pay.above
    height, rate, own = base[rows], line.slope[rows], pay.gain[rows]
    seen, left, drop = np.zeros(k + 1, np.int64), np.ones(k + 1), np.empty(k)
    flip, room = np.full(k, np.inf), np.empty(len(rows))
    total, steps, now, outside, tied, renew = 0.0, 0, low, k, False, len(rows) > k
    for r in range(k):
        total += own[r] * discount[r] * weight_of(above, seen[r], left[r])
        seen[r + 1], left[r + 1] = seen[r] + (own[r] != 0.0), left[r] * (1.0 - own[r])
        drop[r] = discount[r] - (discount[r + 1] if r < k - 1 else 0.0)
        if r < k - 1:
            flip[r] = _meet(height[r], rate[r], height[r + 1], rate[r + 1])
    first, told = total, total
    while True:
        if renew:
            outside, tied = _overtaker(k, height, rate, room)
            flip[k - 1] = room[outside]
        r, soonest, half = 0, flip[0], k // 2
        other, later = k - 1, flip[k - 1]
        for i in range(half):
            sooner = flip[i] < soonest
            r = i if sooner else r
            soonest = flip[i] if sooner else soonest
            sooner = flip[half + i] < later
            other = half + i if sooner else other
            later = flip[half + i] if sooner else later
        if later < soonest:
            r, soonest = other, later
        if soonest > now or soonest == np.inf:
            # All flips at `now` are done: a step, if the value is another.
            if now <= low:
                first = told = total
            if steps < len(x):
                x[steps], value[steps] = now, total
            steps += total != told
            told = total
            if soonest >= line.high:
                return first, steps
            now = soonest
        below = r + 1
        if r == k - 1:
            below = _leader(outside, rate, room, rows, base, docs) if tied else outside
        rows[r], rows[below] = rows[below], rows[r]
        height[r], height[below] = height[below], height[r]
        rate[r], rate[below] = rate[below], rate[r]
        own[r], own[below] = own[below], own[r]
        change = (own[r] - own[below]) * drop[r]
        if above != Above.ANY:
            change *= weight_of(above, seen[r], left[r])
            seen[r + 1], left[r + 1] = seen[r] + (own[r] != 0.0), left[r] * (1.0 - own[r])
        total += change
        flip[r] = np.inf
        if r > 0:
            flip[r - 1] = _meet(height[r - 1], rate[r - 1], height[r], rate[r])
        renew = r >= k - 2 and len(rows) > k
        if r < k - 2:
            flip[r + 1] = _meet(height[r + 1], rate[r + 1], height[r + 2], rate[r + 2])
