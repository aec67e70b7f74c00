"""The flips behind the steps of a trajectory: which two documents of which query swap, and what that gains.

A trajectory knows where each query steps; the documents are looked for only when they are asked for, because a line may
have millions of flips. Where several pairs of a query swap at one step, the pair is named whose labels differ most in
the direction of the gain, and `together` counts the pairs with different labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, overload

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.landscape.flips import crossing

if TYPE_CHECKING:
    from fliprank.landscape.model_trajectory import ModelTrajectory

__all__ = ["Flip", "Kind", "StepFlips", "Wanted", "find_pairs"]

Kind = Literal["good", "bad", "neutral"]

PAGE = 256
"""Flips that are worked out at a time."""


class Flip(NamedTuple):
    """Moving x upwards past `x`, the document `up` overtakes the document `down` of query `qid`.

    `gain` is what that adds to the query's value, `mean_gain` to the mean over queries (of GMAP: of logarithms); less
    than 0 is a loss, also where smaller values are better. `value` is that of the parameter which moves, or x if
    several do.
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

    `x`, `query`, `gain` and `mean_gain` are arrays with one entry per flip.
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
        self.x: Floats = found.x[self._steps]
        self.query: Ints = found.query()[self._steps]
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
        labels, wanted = np.nan_to_num(rows.labels), Wanted(x, query, np.sign(gain))
        if path.line is not None:
            up, down, together = find_pairs(path.line.base, path.line.slope, rows.offsets, labels, wanted)
        else:
            up, down, together = _swapped_pairs(path, labels, wanted)
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


class Wanted(NamedTuple):
    """Steps whose documents are looked for: of `query[i]` at `x[i]`; `sign[i]` is that of the gain."""

    x: Floats
    query: Ints
    sign: Floats


@parallel_kernel
def find_pairs(base: Floats, slope: Floats, offsets: Ints, labels: Floats, wanted: Wanted) -> tuple[Ints, Ints, Ints]:
    """(up, down, together) of each wanted step: rows of its query that cross at its x, exactly."""
    x, query, sign = wanted
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


def _swapped_pairs(path: ModelTrajectory, labels: Floats, wanted: Wanted) -> tuple[Ints, Ints, Ints]:
    """The same where scores are not linear: rows that swap there."""
    up, down, together = (np.zeros(len(wanted.x), np.int64) for _ in range(3))
    queries, number = np.unique(wanted.query, return_inverse=True)
    swaps = path.swaps(queries)
    moved = path.candidates.offsets[queries] - bounds(path.candidates.sizes[queries])[:-1]
    for i, (q, x, sign) in enumerate(zip(number, wanted.x, wanted.sign, strict=True)):
        here = slice(swaps.begin[q], swaps.begin[q + 1])
        away = np.abs(swaps.x[here] - x)
        some = np.flatnonzero(away == away.min()) + swaps.begin[q]
        u, d = swaps.up[some] + moved[q], swaps.down[some] + moved[q]
        better = labels[u] - labels[d]
        best = int(np.argmax(better * sign))
        up[i], down[i], together[i] = u[best], d[best], np.count_nonzero(better)
    return up, down, together
