"""Scores of a list made comparable with those of others: one function of the score and of the list's statistics.

    none      s                                     minmax    (s - low) / (high - low), of the list or as given
    l2        s / sqrt(sum of squares)              zscore    (s - mean) / deviation
    dbsf      (s - mean + 3 deviations) / 6 deviations        rank      1 / (k + rank), the first rank being 0 or 1
    cosine    (1 + s) / 2                           ip        1/2 + atan(s) / pi
    bm25      2 atan(s) / pi                        distance  1 - 2 atan(s) / pi         inverse   1 - s

What engines do not share is in the fields of `Norm`: what all documents get where a list has only one score (`flat`),
what takes the place of a score that would be 0 or below (`floor`), what a document counts that is not in the list
(`missing`). All but ranks have a gradient by the scores of the list, through its extremes, mean and deviation too.

>>> from fliprank.data.ranked_lists import RankedLists
>>> lists = RankedLists.of(["bm25"], [[9.0], [5.0], [6.0], [np.nan]], np.array([0, 4]))
>>> cells(lists, np.array([0, 4]), NormTable.of([Norm("minmax")]))[:, 0].tolist()
[1.0, 0.0, 0.25, 0.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Int32s, Ints
from fliprank.data.ranked_lists import COUNT, DEVIATION, HIGH, LOW, MEAN, NORM, RankedLists
from fliprank.errors import UsageError
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.naming import unknown

__all__ = ["NORMS", "RANK", "Norm", "NormTable", "cells", "pull_scores"]

NORMS = {
    "none": "scores as they are",
    "minmax": "the range of a list, or given bounds, to 0 .. 1",
    "l2": "divided by the root of the sum of squares",
    "zscore": "mean 0 and deviation 1",
    "dbsf": "mean - 3 deviations to 0, mean + 3 deviations to 1",
    "cosine": "(1 + s) / 2",
    "ip": "1/2 + atan(s) / pi",
    "bm25": "2 atan(s) / pi",
    "distance": "1 - 2 atan(s) / pi",
    "inverse": "1 - s",
    "rank": "1 / (k + rank)",
}
"""Normalisations by name."""

NONE, MINMAX, L2, ZSCORE, DBSF, COSINE, IP, BM25, DISTANCE, INVERSE, RANK = range(len(NORMS))
VALUE, RAW, SIGN = range(3)
FLATS = {"value": VALUE, "raw": RAW, "sign": SIGN}


@dataclass(frozen=True)
class Norm:
    """A normalisation, with what is done where the formula says nothing.

    Where all scores of a list are the same (or differ by `tolerance` at most), each becomes `flat`, stays as it is
    (`flat_as="raw"`) or becomes 1 if it is above 0 and 0 otherwise (`"sign"`). `floor` takes the place of 0, in a
    z-score of all that is not above 0, and a score at the mean becomes `flat`. `missing` is what a document counts that
    is not in the list; None leaves the list out of a mean. `lower` and `upper` are given bounds of min-max: what lies
    outside is cut off. `first` is the best rank; `sample` says that the deviation is that of a sample, by n - 1.
    """

    kind: str = "none"
    flat: float = 1.0
    flat_as: str = "value"
    floor: float | None = None
    missing: float | None = 0.0
    lower: float | None = None
    upper: float | None = None
    tolerance: float = 0.0
    first: int = 1
    sample: bool = False

    def __post_init__(self) -> None:
        if self.kind not in NORMS:
            raise unknown("normalisation", self.kind, self.kind, NORMS)
        if (self.lower is not None or self.upper is not None) and self.kind != "minmax":
            raise UsageError(f"bounds are for minmax, not for {self.kind}")
        if self.lower is not None and self.upper is not None and not self.lower < self.upper:
            raise UsageError(f"minmax: the lower bound {self.lower:g} is not below the upper one, {self.upper:g}")


class NormTable(NamedTuple):
    """The normalisation of each list, as kernels read it; NaN stands for None."""

    kind: Ints
    flat: Floats
    flat_as: Ints
    floor: Floats
    missing: Floats
    lower: Floats
    upper: Floats
    tolerance: Floats
    first: Ints
    sample: NDArray[np.bool_]

    @classmethod
    def of(cls, norms: Sequence[Norm]) -> NormTable:
        """One entry per list."""

        def numbers(name: str) -> Floats:
            found = [getattr(norm, name) for norm in norms]
            return np.array([nan if value is None else value for value in found], np.float64)

        return cls(
            np.array([list(NORMS).index(norm.kind) for norm in norms], np.int64),
            numbers("flat"),
            np.array([FLATS[norm.flat_as] for norm in norms], np.int64),
            numbers("floor"),
            numbers("missing"),
            numbers("lower"),
            numbers("upper"),
            numbers("tolerance"),
            np.array([norm.first for norm in norms], np.int64),
            np.array([norm.sample for norm in norms], np.bool_),
        )


def cells(lists: RankedLists, offsets: Ints, table: NormTable) -> Floats:
    """The normalised scores (rows x lists); NaN: left out. Of ranks, the rank itself, since k is a parameter."""
    return _cells(lists.scores, lists.ranks, lists.statistics, offsets, table)


def pull_scores(lists: RankedLists, offsets: Ints, table: NormTable, by_cell: Floats) -> Floats:
    """The gradient by the scores of the lists, from that by the normalised scores; 0 where a list lacks the document.

    Documents that share the extreme of a list share what it pulls. Ranks do not move, nor do scores at their floor.
    """
    return _pull_scores(lists.scores, lists.statistics, offsets, table, by_cell)


@kernel
def _line(table: NormTable, j: int, stats: Floats) -> tuple[float, float, bool]:
    """(shift, scale, flat) of a list: x = (s - shift) scale, unless the list is flat."""
    kind = table.kind[j]
    if kind == MINMAX:
        low = stats[LOW] if np.isnan(table.lower[j]) else table.lower[j]
        high = stats[HIGH] if np.isnan(table.upper[j]) else table.upper[j]
        return low, 1.0 / (high - low), not high - low > table.tolerance[j]
    if kind == L2:
        return 0.0, 1.0 / stats[NORM], not stats[NORM] > table.tolerance[j]
    if kind in (ZSCORE, DBSF):
        deviation, count = stats[DEVIATION], stats[COUNT]
        if table.sample[j]:
            deviation *= np.sqrt(count / max(count - 1.0, 1.0))
        flat = not stats[LOW] < stats[HIGH] or deviation == 0.0
        if kind == ZSCORE:
            return stats[MEAN], 1.0 / deviation, flat
        return stats[MEAN] - 3.0 * deviation, 1.0 / (6.0 * deviation), flat
    if kind == COSINE:
        return -1.0, 0.5, False
    if kind == INVERSE:
        return 1.0, -1.0, False
    return 0.0, 1.0, False


@kernel
def _flat(table: NormTable, j: int, s: float) -> float:
    if table.flat_as[j] == RAW:
        return s
    if table.flat_as[j] == SIGN:
        return 1.0 if s > 0.0 else 0.0
    return float(table.flat[j])


@kernel
def _straight(table: NormTable, j: int) -> bool:
    """Whether (s - shift) scale is all there is to it: no curve, no bounds given, no floor."""
    given = not (np.isnan(table.lower[j]) and np.isnan(table.upper[j]))
    return table.kind[j] not in (IP, BM25, DISTANCE, RANK) and not given and bool(np.isnan(table.floor[j]))


@kernel
def _curve(table: NormTable, j: int, x: float) -> float:
    """What the formula says of x = (s - shift) scale, before `floor`."""
    kind = table.kind[j]
    if kind == IP:
        return float(0.5 + np.arctan(x) / np.pi)
    if kind == BM25:
        return float(2.0 * np.arctan(x) / np.pi)
    if kind == DISTANCE:
        return float(1.0 - 2.0 * np.arctan(x) / np.pi)
    if kind == MINMAX and not (np.isnan(table.lower[j]) and np.isnan(table.upper[j])):
        return min(max(x, 0.0), 1.0)
    return x


@kernel
def _fixed(table: NormTable, j: int, s: float, value: float, mean: float) -> tuple[bool, float]:
    """Whether this score is replaced by a constant, and by which."""
    kind = table.kind[j]
    if np.isnan(table.floor[j]):
        return False, value
    if kind == ZSCORE and s == mean:
        return True, float(table.flat[j])
    if value == 0.0 or (kind == ZSCORE and value <= 0.0):
        return True, float(table.floor[j])
    return False, value


@parallel_kernel
def _cells(scores: Floats, ranks: Int32s, statistics: Floats, offsets: Ints, table: NormTable) -> Floats:
    out = np.empty(scores.shape)
    for q in prange(len(offsets) - 1):
        for j in range(scores.shape[1]):
            shift, scale, flat = _line(table, j, statistics[q, j])
            straight = _straight(table, j) and not flat
            for row in range(offsets[q], offsets[q + 1]):
                s = scores[row, j]
                if straight and not np.isnan(s):
                    out[row, j] = (s - shift) * scale
                elif table.kind[j] == RANK:
                    out[row, j] = inf if np.isnan(s) else ranks[row, j] - 1 + table.first[j]
                elif np.isnan(s):
                    out[row, j] = table.missing[j]
                elif flat:
                    out[row, j] = _flat(table, j, s)
                else:
                    value = _curve(table, j, (s - shift) * scale)
                    out[row, j] = _fixed(table, j, s, value, statistics[q, j, MEAN])[1]
    return out


@kernel
def _slope(table: NormTable, j: int, x: float) -> float:
    """The derivative of `_curve`."""
    kind = table.kind[j]
    if kind == IP:
        return 1.0 / (np.pi * (1.0 + x * x))
    if kind == BM25:
        return 2.0 / (np.pi * (1.0 + x * x))
    if kind == DISTANCE:
        return -2.0 / (np.pi * (1.0 + x * x))
    if kind == MINMAX and not (np.isnan(table.lower[j]) and np.isnan(table.upper[j])):
        return 1.0 if 0.0 <= x <= 1.0 else 0.0
    return 1.0


@parallel_kernel
def _pull_scores(scores: Floats, statistics: Floats, offsets: Ints, table: NormTable, by_cell: Floats) -> Floats:
    out = np.zeros(scores.shape)
    for q in prange(len(offsets) - 1):
        begin, end = offsets[q], offsets[q + 1]
        for j in range(scores.shape[1]):
            stats = statistics[q, j]
            shift, scale, flat = _line(table, j, stats)
            if table.kind[j] == RANK or (flat and table.flat_as[j] != RAW):
                continue
            total, along = 0.0, 0.0  # of the gradients by x, and of these times x
            for row in range(begin, end):
                s = scores[row, j]
                if np.isnan(s):
                    continue
                if flat:
                    out[row, j] = by_cell[row, j]
                    continue
                x = (s - shift) * scale
                if _fixed(table, j, s, _curve(table, j, x), stats[MEAN])[0]:
                    continue
                given = by_cell[row, j] * _slope(table, j, x)
                out[row, j] = given * scale
                total += given
                along += given * x
            if not flat:
                _pull_statistics(table, j, stats, scale, total, along, scores[begin:end, j], out[begin:end, j])
    return out


@kernel
def _pull_statistics(
    table: NormTable, j: int, stats: Floats, scale: float, total: float, along: float, scores: Floats, out: Floats
) -> None:
    """Add what the list's own statistics pull: extremes, mean and deviation, or the sum of squares."""
    kind = table.kind[j]
    if kind == MINMAX:
        lowest, highest = 0, 0
        for s in scores:
            lowest += s == stats[LOW]
            highest += s == stats[HIGH]
        for i in range(len(scores)):
            if scores[i] == stats[LOW] and np.isnan(table.lower[j]):
                out[i] += (along - total) * scale / lowest
            elif scores[i] == stats[HIGH] and np.isnan(table.upper[j]):
                out[i] -= along * scale / highest
    elif kind == L2:
        for i in range(len(scores)):
            if not np.isnan(scores[i]):
                out[i] -= along * scores[i] * scale * scale
    elif kind in (ZSCORE, DBSF):
        # x = (s - mean) / (u d) + c: through the mean -1 / (u d) in all, through the deviation -(x - c) / d
        count, u, c = stats[COUNT], 1.0 if kind == ZSCORE else 6.0, 0.0 if kind == ZSCORE else 0.5
        deviation = 1.0 / (scale * u)
        divisor = max(count - 1.0, 1.0) if table.sample[j] else count
        for i in range(len(scores)):
            if not np.isnan(scores[i]):
                by_deviation = (scores[i] - stats[MEAN]) / (divisor * deviation)
                out[i] -= total * scale / count + (along - c * total) / deviation * by_deviation
