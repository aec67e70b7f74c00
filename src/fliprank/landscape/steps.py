"""The steps of each query along a line: where its value changes, and to what.

Every rank-based measure pays by a `Law`, so two kernels serve them all: `top` for the first ranks of a query, and
`crossings` for measures that look further down. CorrectPairs, which has no law of ranks, changes by one pair per flip.
A query's steps depend on its own rows only: the steps of parts of the queries, joined, are those of all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.order import order_rows
from fliprank.errors import UsageError
from fliprank.kernels import parallel_kernel, prange
from fliprank.landscape.crossings import sweep_crossings
from fliprank.landscape.flips import find_flips
from fliprank.landscape.sweep import Docs, Line, Pay, Room
from fliprank.landscape.top import Stretches, sweep_tops
from fliprank.measures import ESL, CorrectPairs, Measure, RankMeasure
from fliprank.measures.geometric_mean import GeometricMean
from fliprank.measures.law import Ranks

__all__ = ["Steps", "find_steps", "floored", "join_steps", "pair_steps", "steps_by_law"]

DEEPEST = 64
"""The longest top that is kept kinetic: the next flip is looked for among all its ranks."""

STRETCHES = 8
"""In how many stretches of the line documents are compared with the best there, to drop those that stay below."""

BLOCK = 1 << 22
"""Crossings that are held at a time."""

MOST_KEPT = 1 << 22
"""Numbers that a thread keeps room for from one sweep to the next."""

KEPT = threading.local()


class Steps(NamedTuple):
    """Query q has the value `first[q]` at first, then `value[i]` after `x[i]`, i from `begin[q]` to `begin[q + 1]`."""

    begin: Ints
    x: Floats
    value: Floats
    first: Floats

    @property
    def queries(self) -> int:
        return len(self.first)

    def query(self) -> Ints:
        """The query of each step."""
        return np.repeat(np.arange(self.queries), np.diff(self.begin))

    def before(self) -> Floats:
        """The value before each step."""
        out = np.empty_like(self.value)
        out[1:] = self.value[:-1]
        some = np.diff(self.begin) > 0
        out[self.begin[:-1][some]] = self.first[some]
        return out

    def at(self, x: float) -> Floats:
        """The value of each query at x; if it has a step there, after it."""
        after = np.concatenate([[0], np.cumsum(self.x <= x)])
        passed = after[self.begin[1:]] - after[self.begin[:-1]]
        out = self.first.copy()
        out[passed > 0] = self.value[(self.begin[:-1] + passed - 1)[passed > 0]]
        return out


def join_steps(parts: Sequence[Steps]) -> Steps:
    """The steps of several parts of the queries, as those of all queries in the order of the parts.

    >>> one = Steps(np.array([0, 1]), np.array([0.5]), np.array([1.0]), np.array([0.0]))
    >>> joined = join_steps([one, one])
    >>> joined.begin.tolist(), joined.x.tolist(), joined.first.tolist()
    ([0, 1, 2], [0.5, 0.5], [0.0, 0.0])
    """
    sizes = np.concatenate([np.empty(0, np.int64), *(np.diff(part.begin) for part in parts)])
    none = np.empty(0)
    x, value, first = (np.concatenate([none, *(getattr(p, name) for p in parts)]) for name in ("x", "value", "first"))
    return Steps(bounds(sizes), x, value, first)


def find_steps(line: Line, candidates: Candidates, measure: Measure) -> Steps:
    """The steps of each query along a line of scores."""

    def by_law(pay: Pay) -> Steps:
        parts = list(_sweep(line, candidates, pay))
        return _placed(parts, candidates.queries)

    if isinstance(measure, GeometricMean):
        return floored(find_steps(line, candidates, measure.plain), measure)
    if isinstance(measure, CorrectPairs):
        judged = candidates.judgements.row
        flips = find_flips(line.base[judged], line.slope[judged], candidates.take(judged), line.low, line.high)
        some = np.flatnonzero(flips.kind)
        some = some[np.argsort(flips.query[some], kind="stable")]
        first = measure.per_query(_scores_after(line, candidates), candidates)
        return pair_steps(flips.query[some], flips.x[some], flips.kind[some], first, measure.pairs(candidates))
    return steps_by_law(by_law, candidates, measure)


def floored(steps: Steps, measure: GeometricMean) -> Steps:
    """The steps of a geometric mean, from those of the plain measure."""
    return steps._replace(value=measure.floored(steps.value), first=measure.floored(steps.first))


def steps_by_law(by_law: Callable[[Pay], Steps], candidates: Candidates, measure: Measure) -> Steps:
    """The steps of a measure that pays by a law, from those of the law itself."""
    if not isinstance(measure, RankMeasure):
        raise UsageError(f"{measure} does not change with ranks: it has no steps along a line")
    pay = Pay.of(candidates, measure)
    steps = by_law(pay)
    if isinstance(measure, ESL):  # a search that never finds n documents is no term of the law
        good = _count(pay.gain != 0, candidates.offsets)
        return steps._replace(first=steps.first + (good < measure.n) * (candidates.sizes - good))
    return steps


def pair_steps(query: Ints, x: Floats, kind: NDArray[np.int8], first: Floats, pairs: Floats) -> Steps:
    """The steps of CorrectPairs from flips, by query and then by x: a good one (`kind` 1) adds one pair of `pairs`."""
    begin = bounds(np.bincount(query, minlength=len(first)))
    total = np.concatenate([[0], np.cumsum(kind, dtype=np.int64)])
    value = first[query] + (total[1:] - total[begin[query]]) / pairs[query]
    # Of flips of one query at one x the last is the step.
    last = (np.diff(x, append=np.inf) != 0) | (np.diff(query, append=-1) != 0)
    return Steps(np.concatenate([[0], np.cumsum(last)])[begin], x[last], value[last], first)


def _count(some: NDArray[np.bool_], offsets: Ints) -> Ints:
    """How many of each query's rows are true."""
    total = np.concatenate([[0], np.cumsum(some)])
    found: Ints = total[offsets[1:]] - total[offsets[:-1]]
    return found


def _scores_after(line: Line, candidates: Candidates) -> Floats:
    """Scores without ties that rank all rows as they are just after the line's low end."""
    base, slope = line.base, line.slope
    by_base = np.empty(len(base))
    by_base[order_rows(base, candidates.offsets, candidates.docids)] = np.arange(len(base))
    score = -slope if np.isneginf(line.low) else base + line.low * slope
    out = np.empty(len(base))
    out[np.lexsort((by_base, -slope, -score))] = -np.arange(len(base))
    return out


class _Part(NamedTuple):
    """The steps of some queries, as a sweep wrote them: `found[i]` of the i-th."""

    queries: Ints
    room: Room
    first: Floats
    found: Ints


def _sweep(line: Line, candidates: Candidates, pay: Pay) -> Iterator[_Part]:
    """Sweep each query by the kernel that suits it; queries without gain have no steps."""
    sizes, docs, reach = candidates.sizes, Docs.of(candidates), pay.limit
    good = _count(pay.gain != 0, candidates.offsets)
    # Where the top is half of the query, following the documents with gain is no more work.
    shallow = (pay.ranks == Ranks.ALL) & (reach <= DEEPEST) & (2 * reach < sizes)
    tops, others = np.flatnonzero(shallow & (good > 0) & (reach > 0)), np.flatnonzero(~shallow & (good > 0))
    if len(tops):
        yield from _sweep_tops(line, docs, pay, tops, reach[tops])
    pairs = good[others] * sizes[others]
    for block in np.split(others, np.flatnonzero(np.diff(np.cumsum(pairs) // BLOCK)) + 1):
        if len(block):
            room = Room.of(good[block] * sizes[block])
            part = _Part(block, room, *sweep_crossings(block, line, docs, pay, room))
            yield _selected(part, np.ones(len(block), bool))


def _sweep_tops(line: Line, docs: Docs, pay: Pay, queries: Ints, depth: Ints) -> Iterator[_Part]:
    stretches, sizes = _stretches(line), 16 * depth + 32
    memory: Floats | None = _kept_memory(2 * int(sizes.sum()))
    while len(queries):
        room = Room.of(sizes, memory)
        memory = None
        part = _Part(queries, room, *sweep_tops(queries, depth, line, stretches, docs, pay, room))
        fits = part.found <= sizes
        yield part if fits.all() else _selected(part, fits)
        queries, depth, sizes = queries[~fits], depth[~fits], part.found[~fits]


def _stretches(line: Line) -> Stretches:
    """Stretches of the line, evenly spaced as angles on a scale on which base and slope spread alike.

    So infinite ends are like any other.
    """
    ranges = [(float(part.min()), float(part.max())) for part in (line.base, line.slope)]
    height, spread = (high - low for low, high in ranges)
    scale = height / spread if 0 < spread < np.inf and 0 < height < np.inf else 1.0
    angle = np.linspace(np.arctan(line.low / scale), np.arctan(line.high / scale), 2 * STRETCHES + 1)
    direction = np.column_stack([np.cos(angle), scale * np.sin(angle)])
    ends, middles = direction[::2].copy(), direction[1::2].copy()
    largest = np.array([max(-low, high) for low, high in ranges])
    return Stretches(ends, middles, 1e-12 * np.abs(ends) @ largest)


def _kept_memory(size: int) -> Floats | None:
    """Memory that this thread used before. To get fresh pages from the system took a quarter of a sweep."""
    if size > MOST_KEPT:
        return None
    if len(getattr(KEPT, "memory", ())) < size:
        KEPT.memory = np.empty(size)
    memory: Floats = KEPT.memory
    return memory


def _selected(part: _Part, chosen: NDArray[np.bool_]) -> _Part:
    """Some queries of a part, without the room that was left over."""
    count = np.where(chosen, part.found, 0)
    out = Room.of(count)
    _place(np.arange(len(count)), part.room, count, out)
    kept = out._replace(begin=out.begin[np.append(chosen, True)])
    return _Part(part.queries[chosen], kept, part.first[chosen], count[chosen])


def _placed(parts: list[_Part], queries: int) -> Steps:
    """All parts as one, in the order of queries."""
    count, first = np.zeros(queries, np.int64), np.zeros(queries)
    for part in parts:
        count[part.queries], first[part.queries] = part.found, part.first
    out = Room.of(count)
    for part in parts:
        _place(part.queries, part.room, part.found, out)
    return Steps(out.begin, out.x, out.value, first)


@parallel_kernel
def _place(queries: Ints, room: Room, count: Ints, out: Room) -> None:
    """Copy the steps of the i-th query of `room` to where those of `queries[i]` belong."""
    x, value = out.x, out.value  # a parallel loop writes to arrays, not to those within a tuple
    for i in prange(len(queries)):
        to, begin = out.begin[queries[i]], room.begin[i]
        for k in range(count[i]):
            x[to + k], value[to + k] = room.x[begin + k], room.value[begin + k]
