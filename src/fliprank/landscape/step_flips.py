"""The flips behind the steps of a trajectory: which two documents of which query swap, and what that gains.

A trajectory knows where each query steps; the documents are looked for only when they are asked for, for a line may
have millions of flips. Where several pairs of a query swap at one step, the pair is named whose labels differ most in
the direction of the gain, and `together` counts the pairs with different labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, overload

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.order import order_rows
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.landscape.flips import crossing

if TYPE_CHECKING:
    from fliprank.landscape.model_trajectory import ModelTrajectory

__all__ = ["Flip", "Kind", "StepFlips"]

Kind = Literal["good", "bad", "neutral"]

PAGE = 256
"""Flips that are worked out at a time."""


class Flip(NamedTuple):
    """Moving x upwards past `x`, the document `up` overtakes the document `down` of query `qid`.

    `gain` is what that adds to the query's value, `mean_gain` to the mean over queries (of GMAP: of logarithms); less
    than 0 is a loss, also where smaller values are better. `value` is that of the parameter which moves.
    """

    x: float
    value: float
    qid: str
    up: str
    down: str
    up_label: float
    down_label: float
    kind: Kind
    gain: float
    mean_gain: float
    together: int


class StepFlips(Sequence[Flip]):
    """Flips of a trajectory by gain, the best first, or those at `steps` in their order; documents are found when read.

    `x`, `query` and `mean_gain` are there for all at once, as arrays.
    """

    def __init__(self, path: ModelTrajectory, steps: Ints | None = None) -> None:
        self._path = path
        found, measure = path.steps, path.measure
        sign, before = measure.sign, path.steps.before()
        gain = sign * (found.value - before)
        mean = sign * (measure.paired(found.value) - measure.paired(before)) / max(path.candidates.queries, 1)
        if steps is None:
            some = np.flatnonzero(path.responds)
            steps = some[np.argsort(-mean[some], kind="stable")]
        self._steps = steps
        query = np.repeat(np.arange(path.candidates.queries), np.diff(found.begin))
        self.x: Floats = found.x[self._steps]
        self.query: Ints = query[self._steps]
        self.gain: Floats = gain[self._steps]
        self.mean_gain: Floats = mean[self._steps]

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, at: int) -> Flip: ...
    @overload
    def __getitem__(self, at: slice) -> list[Flip]: ...
    def __getitem__(self, at: int | slice) -> Flip | list[Flip]:
        if isinstance(at, slice):
            return self._named(np.arange(len(self))[at])
        return self._named(np.arange(len(self))[[at]])[0]

    def __iter__(self) -> Iterator[Flip]:
        for start in range(0, len(self), PAGE):
            yield from self[start : start + PAGE]

    def _named(self, chosen: Ints) -> list[Flip]:
        path, rows = self._path, self._path.candidates
        x, query, gain = self.x[chosen], self.query[chosen], self.gain[chosen]
        labels = np.nan_to_num(rows.labels)
        if path.line is not None:
            up, down, together = find_pairs(
                path.line.base, path.line.slope, rows.offsets, labels, x, query, np.sign(gain)
            )
        else:
            up, down, together = _bracketed_pairs(path, labels, x, query, np.sign(gain))
        value = path.parameter(x) if path.name is not None else x
        out = []
        for i in range(len(chosen)):
            u, d = int(up[i]), int(down[i])
            better = labels[u] - labels[d]
            kind: Kind = "good" if better > 0 else "bad" if better < 0 else "neutral"
            where = (float(x[i]), float(value[i]), rows.qids[int(query[i])])
            judged = (float(rows.labels[u]), float(rows.labels[d]))
            gains = (float(gain[i]), float(self.mean_gain[chosen[i]]))
            out.append(Flip(*where, _doc(rows, u), _doc(rows, d), *judged, kind, *gains, int(together[i])))
        return out


def _doc(rows: Candidates, row: int) -> str:
    """The document of a row; without ids, its place in the query, from 1."""
    if rows.docids is not None:
        return rows.docids[row]
    return f"row {row - int(rows.offsets[np.searchsorted(rows.offsets, row, 'right') - 1]) + 1}"


@parallel_kernel
def find_pairs(
    base: Floats, slope: Floats, offsets: Ints, labels: Floats, x: Floats, query: Ints, sign: Floats
) -> tuple[Ints, Ints, Ints]:
    """(up, down, together) of the i-th step: rows of `query[i]` that cross at `x[i]`; `sign[i]` is that of the gain."""
    up, down, together = np.zeros(len(x), np.int64), np.zeros(len(x), np.int64), np.zeros(len(x), np.int64)
    for i in prange(len(x)):
        begin, end = offsets[query[i]], offsets[query[i] + 1]
        best, count = -np.inf, 0
        for one in range(begin, end):
            for other in range(one + 1, end):
                if slope[one] == slope[other] or not _near(base, slope, one, other, x[i]):
                    continue
                if crossing(base, slope, one, other) == x[i]:
                    rises = slope[one] > slope[other]
                    u, d = (one, other) if rises else (other, one)
                    worth = (labels[u] - labels[d]) * sign[i]
                    count += labels[u] != labels[d]
                    if worth > best:
                        best, up[i], down[i] = worth, u, d
        together[i] = count
    return up, down, together


@kernel
def _near(base: Floats, slope: Floats, one: int, other: int, x: float) -> bool:
    """Whether two rows have nearly equal scores at x: cheaper to see than where they cross."""
    first, second = base[one] + x * slope[one], base[other] + x * slope[other]
    size = abs(base[one]) + abs(base[other]) + abs(x) * (abs(slope[one]) + abs(slope[other]))
    near: bool = abs(first - second) <= 1e-9 * size
    return near


def _bracketed_pairs(
    path: ModelTrajectory, labels: Floats, x: Floats, query: Ints, sign: Floats
) -> tuple[Ints, Ints, Ints]:
    """The same where a step is only known to lie in a cell: rows that swap between its ends."""
    up, down, together = (np.zeros(len(x), np.int64) for _ in range(3))
    ends = [path.model_at(float(at + side * path.resolution / 2)) for at in x for side in (-1, 1)]
    for i, q in enumerate(query):
        rows, begin = path.candidates.select([q]), path.candidates.offsets[q]
        ranks = []
        for model in ends[2 * i : 2 * i + 2]:
            rank = np.empty(len(rows), np.int64)
            rank[order_rows(model.score(rows), rows.offsets, rows.docids)] = np.arange(len(rows))
            ranks.append(rank)
        before, after = ranks
        u, d = np.nonzero((before[:, None] > before[None, :]) & (after[:, None] < after[None, :]))
        better = labels[begin + u] - labels[begin + d]
        # Of pairs that differ alike, that nearest to the top.
        best = np.lexsort((before[d], -better * sign[i]))[0]
        up[i], down[i], together[i] = begin + u[best], begin + d[best], np.count_nonzero(better)
    return up, down, together
