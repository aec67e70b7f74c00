"""Flips along a line: where two documents of one query swap places (Robertson & Zaragoza 2007, sections 3.1 and A.1).

Scores are base + x slope. Two documents whose slopes differ have equal scores at one x and swap there: below it the one
with the lesser slope ranks above, beyond it the other. Documents of equal slope never swap. A flip is good if it moves
the higher label up, bad if it moves it down, neutral if labels are equal; an unjudged document counts as label 0.

>>> rows = Candidates.of([0, 1, 0])
>>> found = find_flips([3, 1, 0], [0, 1, 1], rows)
>>> found.x.tolist(), found.upper.tolist(), found.lower.tolist(), found.kind.tolist()
([2.0, 3.0], [0, 0], [1, 2], [1, 0])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fliprank.arrays import Floats, Ints, frozen
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.errors import InputError, UsageError
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.landscape.sweep import Line

__all__ = ["Flips", "crossing", "find_flips", "line_of"]


@dataclass(frozen=True, eq=False, repr=False)
class Flips:
    """Flips in the order of `x`: row `upper` ranks above row `lower` before x, below it after.

    `kind` is 1 for a good flip, -1 for a bad one, 0 for a neutral one.
    """

    query: Ints
    upper: Ints
    lower: Ints
    x: Floats
    kind: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        good, bad = int((self.kind > 0).sum()), int((self.kind < 0).sum())
        return f"Flips: {len(self):,}, of which {good:,} good and {bad:,} bad"


@checked
def find_flips(
    base: ArrayLike, slope: ArrayLike, candidates: Candidates, low: float = -np.inf, high: float = np.inf
) -> Flips:
    """All flips strictly between `low` and `high`. There may be n (n - 1) / 2 of them in a query of n rows."""
    line = line_of(base, slope, candidates, low, high)
    begin = bounds(_count_flips(line, candidates.offsets))
    upper, lower, x = _list_flips(line, candidates.offsets, begin)
    order = np.argsort(x, kind="stable")
    upper, lower = upper[order], lower[order]
    labels = np.nan_to_num(candidates.labels)
    kind = np.sign(labels[lower] - labels[upper]).astype(np.int8)
    query = np.repeat(np.arange(candidates.queries), np.diff(begin))[order]
    return Flips(query, upper, lower, x[order], kind)


def line_of(base: ArrayLike, slope: ArrayLike, candidates: Candidates, low: float, high: float) -> Line:
    """The line as kernels take it, after checking that there is one finite base and slope per row."""
    if not low < high:
        raise UsageError(f"there is nothing between {low} and {high}")
    parts: list[Floats] = []
    for name, given in (("base", base), ("slope", slope)):
        values: Floats = frozen(given, np.float64)
        if values.shape != (len(candidates),):
            raise InputError(f"{name} of shape {values.shape} for {len(candidates)} rows")
        if not np.isfinite(values).all():
            raise InputError(f"the {name} of row {int((~np.isfinite(values)).argmax())} is not a finite number")
        parts.append(values)
    return Line(parts[0], parts[1], float(low), float(high))


@kernel
def crossing(base: Floats, slope: Floats, i: int, j: int) -> float:
    """Where rows of different slope have equal scores; infinite where that is beyond the range of numbers."""
    x: float = (base[i] - base[j]) / (slope[j] - slope[i])
    return x


@parallel_kernel
def _count_flips(line: Line, offsets: Ints) -> Ints:
    base, slope, low, high = line
    out = np.zeros(len(offsets) - 1, np.int64)
    for q in prange(len(offsets) - 1):
        count = 0
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(i + 1, offsets[q + 1]):
                if slope[i] != slope[j]:
                    x = crossing(base, slope, i, j)
                    count += x > low and x < high
        out[q] = count
    return out


@parallel_kernel
def _list_flips(line: Line, offsets: Ints, begin: Ints) -> tuple[Ints, Ints, Floats]:
    base, slope, low, high = line
    upper, lower = np.empty(begin[-1], np.int64), np.empty(begin[-1], np.int64)
    where = np.empty(begin[-1])
    for q in prange(len(offsets) - 1):
        at = begin[q]
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(i + 1, offsets[q + 1]):
                if slope[i] == slope[j]:
                    continue
                x = crossing(base, slope, i, j)
                if x > low and x < high:
                    rises = slope[i] > slope[j]
                    upper[at], lower[at], where[at] = (j, i, x) if rises else (i, j, x)
                    at += 1
    return upper, lower, where
