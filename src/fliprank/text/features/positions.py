"""Kernels of the features that look at the order of terms, in the order of `POSITION_KINDS`.

The places of query terms in a field are all that is looked at: hit h is the query term `term[h]` at word `place[h]`,
places ascending. `sequence` is the query as it was asked, word by word, each as the number of its term. Pairs of terms
are those of Tao and Zhai 2007 (section 3), `near` is the unordered window of Metzler and Croft 2005.
"""

from __future__ import annotations

import numpy as np

from fliprank.arrays import Floats, Int32s, Ints
from fliprank.kernels import kernel

__all__ = ["NEAR", "find_hits", "position_kinds"]

NEAR = 8
"""Words that a window of `near` has."""


@kernel
def find_hits(tokens: Int32s, number: Ints, table: Int32s, base: int, place: Int32s, term: Int32s, found: int) -> int:
    """Append the hits of one field, whose words count from `base`; how many there are then.

    `table` hashes the terms: t + 1 at a slot from number[t] on, 0 where it is free; its size is a power of 2.
    """
    mask = len(table) - 1
    for i in range(len(tokens)):
        slot = tokens[i] & mask
        while table[slot] != 0:
            t = table[slot] - 1
            if number[t] == tokens[i]:
                place[found], term[found] = base + i, t
                found += 1
                break
            slot = (slot + 1) & mask
    return found


@kernel
def position_kinds(
    place: Int32s, term: Int32s, base: int, length: float, terms: int, sequence: Ints, marks: Ints, v: Floats, at: int
) -> int:
    """All of `POSITION_KINDS` for the hits of one field, which begins at word `base`; `marks` is room: 2 rows."""
    covered = _different(term, terms, marks[0])
    at = _runs(place, term, base, length, sequence, marks, v, at)
    at = _near(place, term, sequence, marks, v, at)
    at = _windows(place, term, terms, covered, marks, v, at)
    at = _pairs(place, term, length, terms, covered, marks, v, at)
    return _first(place, term, base, length, terms, marks, v, at)


@kernel
def _clear(marks: Ints, count: int) -> None:
    for i in range(count):
        marks[i] = 0


@kernel
def _different(term: Int32s, terms: int, seen: Ints) -> int:
    """How many terms have hits."""
    _clear(seen, terms)
    for h in range(len(term)):
        seen[term[h]] = 1
    return _marked(seen, terms)


@kernel
def _marked(marks: Ints, count: int) -> int:
    total = 0
    for i in range(count):
        total += marks[i]
    return total


@kernel
def _runs(
    place: Int32s, term: Int32s, base: int, length: float, sequence: Ints, marks: Ints, v: Floats, at: int
) -> int:
    """Runs of words that are consecutive in the query, too: run[j] ends in its word j, and at the hit at hand."""
    words, run, seen = len(sequence), marks[0], marks[1]
    _clear(run, words)
    _clear(seen, words)
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
            if place[h] - base == words - 1:
                starts = 1
    v[at], v[at + 1], v[at + 3] = phrases, longest, bigrams
    v[at + 2] = longest / words if words > 0 else 0.0
    v[at + 4] = _marked(seen, words) / (words - 1) if words > 1 else 0.0
    v[at + 5] = starts if length == words else 0.0
    v[at + 6] = starts
    return at + 7


@kernel
def _near(place: Int32s, term: Int32s, sequence: Ints, marks: Ints, v: Floats, at: int) -> int:
    pairs, total, seen = len(sequence) - 1, 0, marks[1]
    _clear(seen, pairs)
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
    v[at + 1] = _marked(seen, pairs) / pairs if pairs > 0 else 0.0
    return at + 2


@kernel
def _windows(place: Int32s, term: Int32s, terms: int, covered: int, marks: Ints, v: Floats, at: int) -> int:
    width = _window(place, term, terms, covered, marks[0])
    most = terms // 2 + 1
    narrow = _window(place, term, terms, most, marks[0]) if 0 < most <= covered else 0
    v[at] = width
    v[at + 1] = covered / width if width > 0 else 0.0
    v[at + 2] = covered / width if width > 0 and covered == terms else 0.0
    v[at + 3] = most / narrow if narrow > 0 else 0.0
    return at + 4


@kernel
def _window(place: Int32s, term: Int32s, terms: int, need: int, held: Ints) -> int:
    """The fewest consecutive words with `need` different terms; 0 where need is 0."""
    _clear(held, terms)
    least, different, first = 0, 0, 0
    for h in range(len(term)):
        if held[term[h]] == 0:
            different += 1
        held[term[h]] += 1
        while different == need:
            width = int(place[h]) - int(place[first]) + 1
            least = width if least == 0 else min(least, width)
            held[term[first]] -= 1
            if held[term[first]] == 0:
                different -= 1
            first += 1
    return least


@kernel
def _pairs(
    place: Int32s, term: Int32s, length: float, terms: int, covered: int, marks: Ints, v: Floats, at: int
) -> int:
    """The least distance of each two terms that are there: at each hit, to the last place of every other term."""
    v[at], v[at + 1], v[at + 2], v[at + 3] = length, length, length, 0.0
    if covered < 2:
        return at + 4
    slot, last, used = marks[0], marks[1], 0
    _clear(slot, terms)
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
def _first(place: Int32s, term: Int32s, base: int, length: float, terms: int, marks: Ints, v: Floats, at: int) -> int:
    v[at], v[at + 1], v[at + 2], v[at + 3] = length, 1.0, 0.0, length
    if len(term) > 0:
        first, seen = place[0] - base, marks[0]
        v[at], v[at + 1], v[at + 2] = first, first / length, 1.0 / (1.0 + first)
        _clear(seen, terms)
        total = terms * length
        for h in range(len(term)):
            if seen[term[h]] == 0:
                total += place[h] - base - length
                seen[term[h]] = 1
        v[at + 3] = total / terms
    return at + 4
