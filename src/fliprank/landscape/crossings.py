"""Every crossing of a document with gain: what a measure without a cut-off responds to (R & Z 2007, section 3.1).

The documents with gain, usually few, each cross every other document of their query at most once. These crossings are
put in the order of x; each moves the ranks of those with gain by one place and renews their terms

    gain x discount(rank) x weight(documents with gain above)

Crossings at one x are counted together before terms are renewed, so that it does not matter in which order they come.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats, Int32s, Ints
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.landscape.radix import sort_numbers
from fliprank.landscape.sweep import Docs, Line, Pay, Room, leads, paid
from fliprank.measures.law import Ranks

__all__ = ["Swaps", "follow_swaps", "split_rows", "sweep_crossings"]

ALL, NONRELEVANT = int(Ranks.ALL), int(Ranks.NONRELEVANT)


class Swaps(NamedTuple):
    """At `x[i]`, in ascending order, document `up[i]` of one query overtakes `down[i]`.

    Documents with gain are numbered from 0, all others are -1. `rank` holds the ranks of those with gain at first.
    """

    x: Floats
    up: Int32s
    down: Int32s
    rank: Ints


@parallel_kernel
def sweep_crossings(queries: Ints, line: Line, docs: Docs, pay: Pay, room: Room) -> tuple[Floats, Ints]:
    """Write the steps of these queries to `room`, which must hold one step per crossing.

    Returns the value of each query just after the line's low end, and how many steps it has.
    """
    first, count = np.zeros(len(queries)), np.zeros(len(queries), np.int64)
    begin, x, value = room  # a parallel loop writes to arrays, not to those within a tuple
    for i in prange(len(queries)):
        q, here = queries[i], slice(begin[i], begin[i + 1])
        rows, good = split_rows(q, docs, pay)
        swaps = _find_crossings(rows, good, line, docs, pay.ranks, begin[i + 1] - begin[i])
        first[i], count[i] = follow_swaps(swaps, q, pay.gain[rows[:good]], pay, x[here], value[here])
    return first, count


@kernel
def split_rows(query: int, docs: Docs, pay: Pay) -> tuple[Ints, int]:
    """The rows of a query that ranks count, those with gain first, and how many have gain."""
    begin, end = docs.offsets[query], docs.offsets[query + 1]
    rows, size = np.empty(end - begin, np.int64), 0
    for row in range(begin, end):
        if pay.gain[row] != 0.0:
            rows[size] = row
            size += 1
    good = size
    for row in range(begin, end):
        if pay.gain[row] == 0.0 and (pay.ranks == ALL or docs.entry[row] >= 0):
            rows[size] = row
            size += 1
    return rows[:size], good


@kernel
def _find_crossings(rows: Ints, good: int, line: Line, docs: Docs, ranks: int, room: int) -> Swaps:
    """The crossings of the first `good` rows with all rows, and the ranks just after the line's low end."""
    where, up, down = np.empty(room), np.empty(room, np.int32), np.empty(room, np.int32)
    height, rate, meeting = line.base[rows], line.slope[rows], np.empty(len(rows))
    low, high = line.low, line.high
    rank, count = np.ones(good, np.int64), 0
    for i in range(good):
        # Bpref's ranks do not count documents with gain.
        begin, own_height, own_rate = good if ranks == NONRELEVANT else i + 1, height[i], rate[i]
        for j in range(begin, len(rows)):
            meeting[j] = (own_height - height[j]) / (rate[j] - own_rate)
        for j in range(begin, len(rows)):
            x, second, above = meeting[j], j if j < good else -1, own_rate > rate[j]
            if own_rate == rate[j]:
                above = leads(rows[i], rows[j], line.base, docs)
            elif x > low:
                if x < high:
                    where[count], up[count], down[count] = x, i if above else second, second if above else i
                    count += 1
                above = not above
            if not above:
                rank[i] += 1
            elif second >= 0:
                rank[second] += 1
    order = sort_numbers(where, count)
    return Swaps(where[order], up[order], down[order], rank)


class Terms(NamedTuple):
    """The documents with gain in ranked order, and the term of each.

    `place[doc]` is a document's place among them, `left[p]` the chance that a user gets past the first p of them (ERR).
    """

    order: Ints
    place: Ints
    left: Floats
    term: Floats


@kernel
def _renew(terms: Terms, rank: Ints, query: int, gain: Floats, pay: Pay) -> float:
    """Put the documents with gain in order of rank again, and work out all terms; returns their sum."""
    order, left, total = terms.order, terms.left, 0.0
    for i in range(1, len(order)):
        doc, at = order[i], i
        while at > 0 and rank[order[at - 1]] > rank[doc]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = doc
    for p in range(len(order)):
        doc = order[p]
        terms.place[doc], left[p + 1] = p, left[p] * (1.0 - gain[doc])
        terms.term[doc] = paid(pay, query, gain[doc], rank[doc], p, left[p])
        total += terms.term[doc]
    return total


@kernel
def follow_swaps(swaps: Swaps, query: int, gain: Floats, pay: Pay, x: Floats, value: Floats) -> tuple[float, int]:
    """(value at the start, number of steps) of one query; the steps go to x and value. `swaps.rank` is written to."""
    where, up, down, rank = swaps
    good = len(rank)
    terms = Terms(np.arange(good), np.empty(good, np.int64), np.ones(good + 1), np.empty(good))
    order, place, left, term = terms
    first = _renew(terms, rank, query, gain, pay)
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
        if alone and one >= 0 and two >= 0 and gain[one] == gain[two] and rank[two] == rank[one] + 1:
            term[one], term[two] = term[two], term[one]  # neutral: not even rounding may change the value
        elif alone:
            for doc in (one, two):
                if doc >= 0:
                    own = paid(pay, query, gain[doc], rank[doc], place[doc], left[place[doc]])
                    total += own - term[doc]
                    term[doc] = own
        else:
            total = _renew(terms, rank, query, gain, pay)
        if total != told:
            x[steps], value[steps] = now, total
            steps, told = steps + 1, total
    return first, steps
