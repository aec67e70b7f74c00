"""Rows that are not in one memory: in windows of files, or on other machines.

They are parts, each of them some queries with all their rows, in the order of queries. `each` applies a function to
every part, where it is, and brings back what it gives; nothing else may be asked of the rows themselves. Statistics of
features are, to the last bit, those of the same rows in one memory, wherever one part ends and the next begins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fliprank.arrays import Floats, Ints, Matrix
from fliprank.data.candidates import Candidates
from fliprank.data.ids import Ids
from fliprank.errors import InputError, printable

__all__ = [
    "ROW",
    "FeatureStatistics",
    "PickedFeatures",
    "ScatteredRows",
    "block_rows",
    "feature_statistics",
    "feature_sums",
    "powers",
    "row_bytes",
]

T = TypeVar("T")
Each = Callable[..., Iterator[Any]]
"""Applies a function to each part: see `ScatteredRows.each`."""

BLOCK = 1 << 13
"""Rows whose values are added up at a time: from the first row of all on, so that sums do not depend on the parts."""


BLOCK_VALUES = 1 << 23
"""Values of a block at most: what is worked out from them in float64 takes some 128 MB. Up to 1,024 features, a block
has `BLOCK` rows."""

ROW = 128
"""Bytes that a row takes beside its features: label, judgement, gains of some measures, ids."""


def row_bytes(features: int) -> int:
    """Bytes that a row of so many features takes, about, while it is worked on."""
    return 4 * features + ROW


def block_rows(features: int) -> int:
    """Rows of this many features whose values are added up at a time, in memory and in parts alike.

    >>> block_rows(136), block_rows(20_000), block_rows(10**8)
    (8192, 419, 1)
    """
    return max(1, min(BLOCK, BLOCK_VALUES // max(features, 1)))


class FeatureStatistics(NamedTuple):
    """Mean and standard deviation of each feature over all rows."""

    mean: Floats
    deviation: Floats


class ScatteredRows(ABC):
    """Rows in parts: `row_counts` and `query_counts` are those of each, `digest` tells the rows from all others."""

    feature_names: tuple[str, ...]
    row_counts: Ints
    query_counts: Ints
    digest: str
    terms: None = None
    lists: None = None

    @property
    @abstractmethod
    def qids(self) -> Ids:
        """The ids of all queries."""

    @abstractmethod
    def each(self, function: Callable[..., T], *given: Any, own: Sequence[Any] = ()) -> Iterator[T]:
        """function(part, *given, *what is `own` to this part), part by part in the order of queries."""

    def in_turn(self, function: Callable[..., T], *given: Any, own: Sequence[Any] = ()) -> Iterator[T]:
        """The same for answers as large as the parts, such as a score per row: never all of them at once."""
        return self.each(function, *given, own=own)

    @abstractmethod
    def rewritten(self, function: Callable[..., Candidates], *given: Any, own: Sequence[Any] = ()) -> ScatteredRows:
        """The rows that a function makes of each part, kept where the parts are."""

    @property
    def queries(self) -> int:
        """How many queries there are."""
        return int(self.query_counts.sum())

    def __len__(self) -> int:
        return int(self.row_counts.sum())

    def __repr__(self) -> str:
        told = f"{self.queries:,} queries, {len(self):,} rows, {len(self.feature_names):,} features"
        return printable(f"{type(self).__name__}: {told}, in {len(self.row_counts):,} parts")

    def statistics(self) -> FeatureStatistics:
        """Mean and deviation of each feature, to the last bit those of the same rows in one memory."""
        return self._statistics

    @cached_property
    def _statistics(self) -> FeatureStatistics:
        return feature_statistics(self.each, self.row_counts)

    def check_features(self, check: Callable[[Candidates], None]) -> None:
        """Apply a check that raises to every part."""
        for _ in self.each(check):
            pass


def feature_statistics(each: Each, row_counts: Ints) -> FeatureStatistics:
    """Mean and deviation of each feature over the parts to which `each` applies a function, of so many rows each."""
    first = next((row for row in each(_first_row) if row is not None), None)
    if first is None:
        raise InputError("there are no rows to learn from")
    mean = first + _mean(each, row_counts, first, 1)
    return FeatureStatistics(mean, np.sqrt(_mean(each, row_counts, mean, 2)))


def _mean(each: Each, row_counts: Ints, origin: Floats, power: int) -> Floats:
    """The mean of (x - origin)^power, added up in blocks of all rows, wherever parts end."""
    total, rest, block = np.zeros(len(origin)), np.empty((0, len(origin)), np.float32), block_rows(len(origin))
    starts = np.cumsum(row_counts) - row_counts
    for head, sums, tail in each(feature_sums, origin, power, own=(starts,)):
        rest = np.concatenate([rest, head])
        if len(rest) == block or len(tail) or len(sums):
            total += powers(rest, origin, power) if len(rest) else 0.0
            rest = tail
        for own in sums:
            total += own
    if len(rest):
        total += powers(rest, origin, power)
    mean: Floats = total / row_counts.sum()
    return mean


def feature_sums(part: Candidates, origin: Floats, power: int, start: int) -> tuple[Matrix, list[Floats], Matrix]:
    """The rows before the first whole block, the sums of each whole block, the rows after the last one.

    `start` is the number of the part's first row among all rows. Rows of a block that is not whole are given back as
    they are: who asked puts them together with those of the neighbours.
    """
    matrix = part.features
    assert matrix is not None
    block = block_rows(len(origin))
    begin = min(-start % block, len(matrix))
    end = begin + (len(matrix) - begin) // block * block
    sums = [powers(matrix[low : low + block], origin, power) for low in range(begin, end, block)]
    return matrix[:begin].copy(), sums, matrix[end:].copy()


def powers(block: Matrix, origin: Floats, power: int) -> Floats:
    """The sum over rows of (x - origin)^power. In float64 the square of any float32 is far from overflow."""
    total: Floats = ((block - origin) ** power).sum(axis=0)
    return total


def _first_row(part: Candidates) -> Floats | None:
    assert part.features is not None
    return part.features[0].astype(np.float64) if len(part) else None


class PickedFeatures(ScatteredRows):
    """The same rows with some of their features only."""

    def __init__(self, rows: ScatteredRows, names: tuple[str, ...]) -> None:
        self.rows, self.feature_names = rows, names
        self.row_counts, self.query_counts = rows.row_counts, rows.query_counts
        self.digest = f"{rows.digest} {names}"
        self.places = [rows.feature_names.index(name) for name in names]

    @property
    def qids(self) -> Ids:
        return self.rows.qids

    def each(self, function: Callable[..., T], *given: Any, own: Sequence[Any] = ()) -> Iterator[T]:
        return self.rows.each(_on_columns, function, self.places, self.feature_names, given, own=own)

    def rewritten(self, function: Callable[..., Candidates], *given: Any, own: Sequence[Any] = ()) -> ScatteredRows:
        return self.rows.rewritten(_on_columns, function, self.places, self.feature_names, given, own=own)

    def statistics(self) -> FeatureStatistics:
        widths = (len(self.rows.feature_names), len(self.feature_names))
        # Where all features are added up in other blocks, or NumPy adds up one column by itself in another order than
        # beside others, these have sums of their own: those of the same features in memory.
        if len(set(map(block_rows, widths))) > 1 or widths.count(1) == 1:
            return super().statistics()
        mean, deviation = self.rows.statistics()
        return FeatureStatistics(mean[self.places], deviation[self.places])


def _on_columns(
    part: Candidates, function: Callable[..., T], places: list[int], names: tuple[str, ...], given: Any, *own: Any
) -> T:
    assert part.features is not None
    return function(replace(part, features=part.features[:, places], feature_names=names), *given, *own)
