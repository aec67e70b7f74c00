"""Kernels of the features that look at the order of terms, in the order of `POSITION_KINDS`.

They look only at the places of query terms in a field. Pairs of terms are those of Tao and Zhai 2007 (section 3),
`near` is the unordered window of Metzler and Croft 2005.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats, Int32s, Ints
from fliprank.kernels import kernel

__all__ = ["NEAR", "Hits", "TermTable", "find_hits", "position_kinds", "term_table"]

NEAR = 8
"""The number of words in a window of `near`."""


class TermTable(NamedTuple):
    """Query terms hashed by their `number` in the index: t + 1 at some slot from number[t] on, 0 in a free slot."""

    number: Ints
    slots: Int32s


class Hits(NamedTuple):
    """Hit h is query term `term[h]` at word `place[h]`, places ascending; the field has words `base : base + length`.

    `sequence` is the query word by word, each as the number of its term among the `terms` of the query. `marks` is room
    to work in: two rows.
    """

    place: Int32s
    term: Int32s
    base: int
    length: float
    terms: int
    sequence: Ints
    marks: Ints


@kernel
def term_table(number: Ints) -> TermTable:
    """The terms of a query, for `find_hits`; at least three of four slots are free."""
    size = 16
    while size < 4 * len(number):
        size *= 2
    slots = np.zeros(size, np.int32)
    for t in range(len(number)):
        if number[t] >= 0:
            slot = number[t] & (size - 1)
            while slots[slot] != 0:
                slot = (slot + 1) & (size - 1)
            slots[slot] = t + 1
    return TermTable(number, slots)


@kernel
def find_hits(tokens: Int32s, query: TermTable, base: int, place: Int32s, term: Int32s, found: int) -> int:
    """Append the hits of one field, whose first word is `base`, to those `found`; returns how many there are then."""
    number, slots = query
    mask = len(slots) - 1
    for i in range(len(tokens)):
        slot = tokens[i] & mask
        while slots[slot] != 0:
            t = slots[slot] - 1
            if number[t] == tokens[i]:
                place[found], term[found] = base + i, t
                found += 1
                break
            slot = (slot + 1) & mask
    return found


@kernel
def position_kinds(hits: Hits, v: Floats, at: int) -> int:
    """Write all of `POSITION_KINDS` to `v` from `at` on; returns where they end."""
    covered = _different(hits)
    at = _runs(hits, v, at)
    at = _near(hits, v, at)
    at = _windows(hits, covered, v, at)
    at = _pairs(hits, covered, v, at)
    return _first(hits, v, at)


@kernel
def _different(hits: Hits) -> int:
    """How many terms have hits."""
    seen = hits.marks[0]
    seen[: hits.terms] = 0
    for h in range(len(hits.term)):
        seen[hits.term[h]] = 1
    return int(seen[: hits.terms].sum())


@kernel
def _runs(hits: Hits, v: Floats, at: int) -> int:
    """Runs of words that are consecutive in the query too: run[j] ends at this hit, and at word j of the query."""
    place, term, sequence = hits.place, hits.term, hits.sequence
    words, run, seen = len(sequence), hits.marks[0], hits.marks[1]
    run[:words] = 0
    seen[:words] = 0
    phrases, bigrams, longest, starts = 0, 0, 0, 0
    for h in range(len(term)):
        follows = h > 0 and place[h] == place[h - 1] + 1
        here = 0
        for j in range(words - 1, -1, -1):
            if sequence[j] == term[h]:
                run[j] = run[j - 1] + 1 if follows and j > 0 else 1
                here = max(here, run[j])
                if run[j] > 1:
                    seen[j] = 1
            else:
                run[j] = 0
        longest = max(longest, here)
        if here > 1:
            bigrams += 1
        if words > 0 and run[words - 1] == words:
            phrases += 1
            if place[h] - hits.base == words - 1:
                starts = 1
    v[at], v[at + 1], v[at + 3] = phrases, longest, bigrams
    v[at + 2] = longest / words if words > 0 else 0.0
    v[at + 4] = seen[:words].sum() / (words - 1) if words > 1 else 0.0
    v[at + 5] = starts if hits.length == words else 0.0
    v[at + 6] = starts
    return at + 7


@kernel
def _near(hits: Hits, v: Floats, at: int) -> int:
    """Neighbours in the query that are near each other in the field."""
    place, term, sequence = hits.place, hits.term, hits.sequence
    pairs, total, seen = len(sequence) - 1, 0, hits.marks[1]
    seen[:pairs] = 0
    for h in range(len(term)):
        g = h - 1
        while g >= 0 and place[h] - place[g] < NEAR:
            one, other, met = term[g], term[h], 0
            for j in range(pairs):
                a, b = sequence[j], sequence[j + 1]
                if (a == one and b == other) or (a == other and b == one):
                    met, seen[j] = 1, 1
            total += met
            g -= 1
    v[at] = total
    v[at + 1] = seen[:pairs].sum() / pairs if pairs > 0 else 0.0
    return at + 2


@kernel
def _windows(hits: Hits, covered: int, v: Floats, at: int) -> int:
    """Windows with all terms that the field has, and with more than half of the query's."""
    width, most = _window(hits, covered), hits.terms // 2 + 1
    narrow = _window(hits, most) if 0 < most <= covered else 0
    v[at] = width
    v[at + 1] = covered / width if width > 0 else 0.0
    v[at + 2] = covered / width if width > 0 and covered == hits.terms else 0.0
    v[at + 3] = most / narrow if narrow > 0 else 0.0
    return at + 4


@kernel
def _window(hits: Hits, need: int) -> int:
    """The smallest number of consecutive words with `need` different terms; 0 if `need` is 0."""
    place, term, inside = hits.place, hits.term, hits.marks[0]
    inside[: hits.terms] = 0
    least, different, first = 0, 0, 0
    for h in range(len(term)):
        if inside[term[h]] == 0:
            different += 1
        inside[term[h]] += 1
        while different == need:
            width = int(place[h]) - int(place[first]) + 1
            least = width if least == 0 else min(least, width)
            inside[term[first]] -= 1
            if inside[term[first]] == 0:
                different -= 1
            first += 1
    return least


@kernel
def _pairs(hits: Hits, covered: int, v: Floats, at: int) -> int:
    """The least distance of each two terms of the field: at each hit, the distance to the last of every other term."""
    place, term, length = hits.place, hits.term, hits.length
    v[at], v[at + 1], v[at + 2], v[at + 3] = length, length, length, 0.0
    if covered < 2:
        return at + 4
    slot, last, used = hits.marks[0], hits.marks[1], 0
    slot[: hits.terms] = 0
    distance = np.zeros(covered * covered, np.int64)
    for h in range(len(term)):
        if slot[term[h]] == 0:
            used += 1
            slot[term[h]] = used
        own = slot[term[h]] - 1
        last[own] = place[h]
        for other in range(used):
            if other != own:
                pair, away = min(own, other) * covered + max(own, other), place[h] - last[other]
                if distance[pair] == 0 or away < distance[pair]:
                    distance[pair] = away
    least, most, total, close = int(length), 0, 0, 0.0
    for pair in range(covered * covered):
        away = int(distance[pair])
        if away > 0:  # half of the table, without the diagonal
            least, most = min(least, away), max(most, away)
            total += away
            close += 1.0 / away
    v[at], v[at + 1], v[at + 2], v[at + 3] = least, 2.0 * total / (covered * (covered - 1)), most, close
    return at + 4


@kernel
def _first(hits: Hits, v: Floats, at: int) -> int:
    """Where the terms first occur."""
    (place, term, base, length, terms, _, marks) = hits
    v[at], v[at + 1], v[at + 2], v[at + 3] = length, 1.0, 0.0, length
    if len(term) > 0:
        first, seen = place[0] - base, marks[0]
        v[at], v[at + 1], v[at + 2] = first, first / length, 1.0 / (1.0 + first)
        seen[:terms] = 0
        total = terms * length
        for h in range(len(term)):
            if seen[term[h]] == 0:
                total += place[h] - base - length
                seen[term[h]] = 1
        v[at + 3] = total / terms
    return at + 4
