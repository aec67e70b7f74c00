"""The judgements of candidates, laid out for measures: where the judged rows are, and the best ranking possible.

Most rows of a run are unjudged; every measure depends only on where the judged ones stand. So they are listed once:
entry e is row `row[e]` with `label[e]`, query q owns entries `offsets[q]:offsets[q + 1]`. `ideal` holds the labels of
all judged documents, also of those that are not among the rows, best first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fliprank.arrays import Floats, Int32s, Ints, frozen
from fliprank.data.csr import bounds

__all__ = ["Judgements"]


@dataclass(frozen=True, eq=False)
class Judgements:
    """`entry_of_row` is the inverse of `row` (-1 for an unjudged row); `owner` is the query of each ideal label."""

    offsets: Ints
    row: Ints
    label: Floats
    entry_of_row: Int32s
    ideal_offsets: Ints
    ideal: Floats
    owner: Ints

    @classmethod
    def of(cls, offsets: Ints, labels: Floats, missed_offsets: Ints, missed_labels: Floats) -> Judgements:
        """From the labels of the rows (NaN = unjudged) and those of judged documents that are not among the rows."""
        judged = ~np.isnan(labels)
        row = np.flatnonzero(judged)
        entry_of_row = np.full(len(labels), -1, np.int32)
        entry_of_row[row] = np.arange(len(row))
        entries = np.concatenate([[0], np.cumsum(judged)])[offsets]
        queries = np.arange(len(offsets) - 1)
        owner = np.concatenate([np.repeat(queries, np.diff(entries)), np.repeat(queries, np.diff(missed_offsets))])
        everything = np.concatenate([labels[row], missed_labels])
        best_first = np.lexsort((-everything, owner))
        return cls(
            frozen(entries, np.int64),
            frozen(row, np.int64),
            frozen(labels[row], np.float64),
            frozen(entry_of_row, np.int32),
            frozen(bounds(np.bincount(owner, minlength=len(queries))), np.int64),
            frozen(everything[best_first], np.float64),
            frozen(owner[best_first], np.int64),
        )

    @property
    def queries(self) -> int:
        return len(self.offsets) - 1

    def spread(self, values: ArrayLike) -> Floats:
        """One value per query as one value per entry."""
        return np.repeat(np.asarray(values, np.float64), np.diff(self.offsets))

    def total(self, values: ArrayLike) -> Floats:
        """The sum over each query of one value per ideal label."""
        out: NDArray[Any] = np.bincount(self.owner, weights=np.asarray(values, np.float64), minlength=self.queries)
        return out

    def count(self, level: float) -> Ints:
        """How many documents of each query have a label of at least `level`."""
        return self.total(self.ideal >= level).astype(np.int64)
