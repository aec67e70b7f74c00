"""The steps of each query along a line: where its value changes, and to what.

Every rank-based measure pays by a `Law`, so two kernels serve them all: `top` for the first ranks of a query, and
`crossings` for whatever looks further down. CorrectPairs, which has no law of ranks, changes by a pair a flip.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.order import NO_IDS, order_rows
from fliprank.errors import UsageError
from fliprank.kernels import parallel_kernel, prange
from fliprank.landscape.crossings import sweep_crossings
from fliprank.landscape.flips import find_flips
from fliprank.landscape.top import sweep_tops
from fliprank.measures import AP, ESL, GMAP, CorrectPairs, Measure, RankMeasure
from fliprank.measures.law import Law, Ranks

__all__ = ["Steps", "find_steps"]

DEEPEST = 64
"""The longest top that is kept kinetic: the next flip is looked for among all its ranks."""

STRETCHES = 8
"""In how many stretches of the line documents are compared with the best there, to drop those that stay below."""

BLOCK = 1 << 22
"""Crossings that are held at a time."""


MOST_KEPT = 1 << 22
"""Numbers that a thread keeps room for from one sweep to the next."""

KEPT = threading.local()


@dataclass(frozen=True, eq=False)
class Steps:
    """Query q has the value `first[q]` at first, then `value[i]` after `x[i]`, i from `begin[q]` to `begin[q + 1]`."""

    begin: Ints
    x: Floats
    value: Floats
    first: Floats

    def before(self) -> Floats:
        """The value before each step."""
        out = np.empty_like(self.value)
        out[1:] = self.value[:-1]
        some = np.diff(self.begin) > 0
        out[self.begin[:-1][some]] = self.first[some]
        return out

    def at(self, x: float) -> Floats:
        """The value of each query at x; where it has a step there, after it."""
        after = np.concatenate([[0], np.cumsum(self.x <= x)])
        passed = after[self.begin[1:]] - after[self.begin[:-1]]
        out = self.first.copy()
        out[passed > 0] = self.value[(self.begin[:-1] + passed - 1)[passed > 0]]
        return out


@dataclass(frozen=True, eq=False)
class _Part:
    """What a sweep of some queries wrote: `count[i]` steps from `room[i]` on."""

    queries: Ints
    room: Ints
    x: Floats
    value: Floats
    first: Floats
    count: Ints

    @classmethod
    def of(cls, queries: Ints, room: Ints, written: Floats | None = None) -> _Part:
        """With this much room for each query, in memory of its own or in what was `written` to before."""
        size = int(room.sum())
        memory = np.empty(2 * size) if written is None else written
        x, value = memory[:size], memory[size : 2 * size]
        return cls(queries, bounds(room), x, value, np.zeros(len(queries)), np.zeros(len(queries), np.int64))


def find_steps(base: Floats, slope: Floats, candidates: Candidates, measure: Measure, low: float, high: float) -> Steps:
    """The steps of each query between `low` and `high`."""
    if isinstance(measure, CorrectPairs):
        return _pair_steps(base, slope, candidates, measure, low, high)
    if isinstance(measure, GMAP):
        plain = find_steps(base, slope, candidates, AP(rel=measure.rel), low, high)
        return Steps(plain.begin, plain.x, np.maximum(plain.value, measure.eps), np.maximum(plain.first, measure.eps))
    if not isinstance(measure, RankMeasure):
        raise UsageError(f"{measure} does not change with ranks: it has no steps along a line")
    law = measure.law_for(candidates)
    gain = _gain_of_rows(candidates, measure, law)
    parts = list(_sweep(_Line(base, slope, candidates, low, high), law, gain))
    steps = _join(parts, candidates.queries)
    if isinstance(measure, ESL):  # a search that never finds n documents is no term of the law
        lacking = np.add.reduceat(np.append(gain != 0, 0), candidates.offsets[:-1]) if candidates.queries else 0
        lacking = np.where(candidates.sizes > 0, lacking, 0)
        return Steps(
            steps.begin, steps.x, steps.value, steps.first + (lacking < measure.n) * (candidates.sizes - lacking)
        )
    return steps


@dataclass(frozen=True, eq=False)
class _Line:
    """Scores base + x slope of these candidates, x between low and high."""

    base: Floats
    slope: Floats
    candidates: Candidates
    low: float
    high: float

    def directions(self) -> tuple[Floats, Floats, Floats]:
        """(ends, middles, margin) of stretches of the line, for `sweep_tops`.

        Evenly spaced as angles, on a scale on which base and slope spread alike: so infinite ends are like any other.
        """
        ranges = [(float(part.min()), float(part.max())) for part in (self.base, self.slope)]
        height, spread = (high - low for low, high in ranges)
        scale = height / spread if 0 < spread < np.inf and 0 < height < np.inf else 1.0
        angle = np.linspace(np.arctan(self.low / scale), np.arctan(self.high / scale), 2 * STRETCHES + 1)
        direction = np.column_stack([np.cos(angle), scale * np.sin(angle)])
        ends, middles = direction[::2].copy(), direction[1::2].copy()
        largest = np.array([max(-low, high) for low, high in ranges])
        return ends, middles, 1e-12 * np.abs(ends) @ largest


def _gain_of_rows(candidates: Candidates, measure: RankMeasure, law: Law) -> Floats:
    """The gain of each row, worked out once; 0 where nobody judged it."""
    key = (measure, "gain of rows")
    if key not in candidates.memo:
        gain = np.zeros(len(candidates))
        gain[candidates.judgements.row] = law.gain
        candidates.memo[key] = gain
    found: Floats = candidates.memo[key]
    return found


def _sweep(line: _Line, law: Law, gain: Floats) -> Iterator[_Part]:
    """Sweep each query by the kernel that suits it; queries without gain have no steps."""
    sizes, offsets = line.candidates.sizes, line.candidates.offsets
    reach = np.minimum(len(law.discount) if len(law.discount) else sizes, law.limit)
    good = np.concatenate([[0], np.cumsum(gain != 0)])
    good = good[offsets[1:]] - good[offsets[:-1]]
    # Where the top is half of the query, following the documents with gain is no more work.
    shallow = (law.ranks == Ranks.ALL) & (reach <= DEEPEST) & (2 * reach < sizes) & (len(law.discount) > 0)
    tops, others = np.flatnonzero(shallow & (good > 0) & (reach > 0)), np.flatnonzero(~shallow & (good > 0))
    if len(tops):
        yield from _sweep_tops(line, law, gain, tops, reach[tops])
    pairs = good[others] * sizes[others]
    for block in np.split(others, np.flatnonzero(np.diff(np.cumsum(pairs) // BLOCK)) + 1):
        if len(block):
            yield _sweep_crossings(line, law, gain, block, good[block] * sizes[block])


def _sweep_tops(line: _Line, law: Law, gain: Floats, queries: Ints, depth: Ints) -> Iterator[_Part]:
    rows, ids = line.candidates, line.candidates.docids or NO_IDS
    directions, room = line.directions(), 16 * depth + 32
    written: Floats | None = _written(2 * int(room.sum()))
    while len(queries):
        part = _Part.of(queries, room, written)
        written = None
        given = (rows.offsets, line.base, line.slope, gain, law.discount, law.above, line.low, line.high)
        sweep_tops(
            queries, depth, *given, *directions, *ids.arrays, part.room, part.x, part.value, part.first, part.count
        )
        fits = part.count <= room
        yield part if fits.all() else _selected(part, fits)
        queries, depth, room = queries[~fits], depth[~fits], part.count[~fits]


def _written(size: int) -> Floats | None:
    """Memory that this thread used before. To get fresh pages from the system took a quarter of a sweep."""
    if size > MOST_KEPT:
        return None
    if len(getattr(KEPT, "memory", ())) < size:
        KEPT.memory = np.empty(size)
    memory: Floats = KEPT.memory
    return memory


def _sweep_crossings(line: _Line, law: Law, gain: Floats, queries: Ints, room: Ints) -> _Part:
    rows, ids = line.candidates, line.candidates.docids or NO_IDS
    part = _Part.of(queries, room)
    paid = (gain, law.discount, law.limit, law.above, law.ranks, line.low, line.high)
    entries = rows.judgements.entry_of_row
    sweep_crossings(
        queries,
        rows.offsets,
        entries,
        line.base,
        line.slope,
        *paid,
        *ids.arrays,
        part.room,
        part.x,
        part.value,
        part.first,
        part.count,
    )
    return _selected(part, np.ones(len(queries), bool))


def _selected(part: _Part, chosen: NDArray[np.bool_]) -> _Part:
    """Some queries of a part, without the room that was left over."""
    count = np.where(chosen, part.count, 0)
    begin = bounds(count)
    x, value = np.empty(begin[-1]), np.empty(begin[-1])
    _place(np.arange(len(count)), part.room, count, part.x, part.value, begin, x, value)
    return _Part(part.queries[chosen], begin[np.append(chosen, True)], x, value, part.first[chosen], count[chosen])


def _join(parts: list[_Part], queries: int) -> Steps:
    """All parts as one, in the order of queries."""
    count, first = np.zeros(queries, np.int64), np.zeros(queries)
    for part in parts:
        count[part.queries], first[part.queries] = part.count, part.first
    begin = bounds(count)
    x, value = np.empty(begin[-1]), np.empty(begin[-1])
    for part in parts:
        _place(part.queries, part.room, part.count, part.x, part.value, begin, x, value)
    return Steps(begin, x, value, first)


@parallel_kernel
def _place(
    queries: Ints, room: Ints, count: Ints, x: Floats, value: Floats, begin: Ints, out_x: Floats, out_value: Floats
) -> None:
    for i in prange(len(queries)):
        to = begin[queries[i]]
        for k in range(count[i]):
            out_x[to + k], out_value[to + k] = x[room[i] + k], value[room[i] + k]


def _pair_steps(
    base: Floats, slope: Floats, candidates: Candidates, measure: CorrectPairs, low: float, high: float
) -> Steps:
    """Each flip of judged documents with different labels is one pair more or less in the right order."""
    judged = candidates.judgements.row
    flips = find_flips(base[judged], slope[judged], candidates.take(judged), low, high)
    some = np.flatnonzero(flips.kind)
    some = some[np.argsort(flips.query[some], kind="stable")]
    query, x, change = flips.query[some], flips.x[some], flips.kind[some].astype(np.int64)
    begin = bounds(np.bincount(query, minlength=candidates.queries))
    total = np.concatenate([[0], np.cumsum(change)])
    pairs = measure.pairs(candidates)
    first = measure.per_query(_scores_after(base, slope, candidates, low), candidates)
    value = first[query] + (total[1:] - total[begin[query]]) / pairs[query]
    # Of flips of one query at one x the last is the step.
    last = (np.diff(x, append=np.inf) != 0) | (np.diff(query, append=-1) != 0)
    return Steps(np.concatenate([[0], np.cumsum(last)])[begin], x[last], value[last], first)


def _scores_after(base: Floats, slope: Floats, candidates: Candidates, low: float) -> Floats:
    """Scores without ties that rank all rows as they are just after `low`."""
    by_base = np.empty(len(base))
    by_base[order_rows(base, candidates.offsets, candidates.docids)] = np.arange(len(base))
    score = -slope if np.isneginf(low) else base + low * slope
    out = np.empty(len(base))
    out[np.lexsort((by_base, -slope, -score))] = -np.arange(len(base))
    return out
