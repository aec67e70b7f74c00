"""What several retrievers returned for the same queries: one column of scores and ranks per list, beside the rows.

Rows are the union of the documents of all lists. A score that is NaN says that the list does not have the document; its
rank is 0 then, and counts from 1 elsewhere. Scores are float64: lists whose scores differ in the tenth digit keep their
order, which features (float32) would lose.

Statistics belong to a whole list: its smallest and largest score, mean and deviation. They and the ranks stay as they
are when rows are dropped (`take`, `top`, subsampling), so that a document's normalised score does not change.

>>> lists = RankedLists.of(["bm25", "dense"], [[9.0, np.nan], [5.0, 0.8], [np.nan, 0.6]], np.array([0, 3]))
>>> lists.ranks.tolist(), lists.statistics[0, 0, [LOW, HIGH, MEAN]].tolist()
([[1, 0], [2, 1], [0, 2]], [5.0, 9.0, 7.0])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Int32s, Ints, frozen
from fliprank.data.ids import Ids
from fliprank.data.order import order_rows
from fliprank.errors import InputError
from fliprank.kernels import parallel_kernel, prange

__all__ = ["COUNT", "DEVIATION", "HIGH", "LOW", "MEAN", "NORM", "RankedLists"]

COUNT, LOW, HIGH, MEAN, DEVIATION, NORM = range(6)
"""What `statistics` has of each query and list: how many documents, the extremes, mean, deviation (of all, not of a
sample), and the root of the sum of squares; all 0 for an empty list."""


@dataclass(frozen=True, eq=False)
class RankedLists:
    """`scores` and `ranks` have one line per row and one column per list, `statistics` is queries x lists x 6.

    `traits` (queries x lists x `trait_names`), where there are any, are for weights per query: see `list_traits`.
    """

    names: tuple[str, ...]
    scores: Floats
    ranks: Int32s
    statistics: Floats
    trait_names: tuple[str, ...] = ()
    traits: Floats | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        for name, dtype in (("scores", np.float64), ("ranks", np.int32), ("statistics", np.float64)):
            object.__setattr__(self, name, frozen(getattr(self, name), dtype))
        rows, lists = len(self.scores), len(self.names)
        for name, shape in (("scores", (rows, lists)), ("ranks", (rows, lists)), ("statistics", (-1, lists, 6))):
            found = getattr(self, name).shape
            if len(found) != len(shape) or any(a != b for a, b in zip(found, shape, strict=True) if b >= 0):
                raise InputError(f"{name} of shape {found} for {rows} rows and {lists} lists")
        if self.traits is not None:
            object.__setattr__(self, "traits", frozen(self.traits, np.float64))
            if self.traits.shape != (len(self.statistics), lists, len(self.trait_names)):
                raise InputError(
                    f"traits of shape {self.traits.shape} for {len(self.statistics)} queries, {lists} lists"
                )
        if len(set(self.names)) < lists:
            raise InputError(f"two lists have the same name: {', '.join(self.names)}")
        if np.isinf(self.scores).any():
            raise InputError(f"an infinite score in row {int(np.isinf(self.scores).any(axis=1).argmax())} of the lists")

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        scores: ArrayLike,
        offsets: Ints,
        docids: Ids | None = None,
        *,
        ascending: Iterable[str] = (),
    ) -> RankedLists:
        """From scores (rows x lists, NaN: not in the list): ranks by score, ties by document id, both descending.

        In the lists named `ascending`, such as distances, the smallest score is the best.
        """
        matrix, limits = np.asarray(scores, np.float64), frozen(offsets, np.int64)
        ranks, turned = np.zeros(matrix.shape, np.int32), set(ascending)
        for j, name in enumerate(names):
            sign = -1.0 if name in turned else 1.0
            order = order_rows(np.where(np.isnan(matrix[:, j]), -np.inf, sign * matrix[:, j]), limits, docids)
            ranks[order, j] = np.arange(len(order)) - np.repeat(limits[:-1], np.diff(limits)) + 1
        ranks[np.isnan(matrix)] = 0
        return cls(tuple(names), matrix, ranks, statistics_of(matrix, limits))

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, queries: Ints, rows: Ints) -> RankedLists:
        """These rows, with the statistics of these queries, which stay those of the whole lists."""
        traits = None if self.traits is None else self.traits[queries]
        own = self.scores[rows], self.ranks[rows], self.statistics[queries]
        return RankedLists(self.names, *own, self.trait_names, traits)

    @classmethod
    def concat(cls, parts: Sequence[RankedLists]) -> RankedLists:
        """One after the other; all have the same lists."""
        if len({part.names for part in parts}) > 1:
            raise InputError(f"different lists: {' / '.join(', '.join(part.names) for part in parts)}")
        scores, ranks, statistics = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("scores", "ranks", "statistics")
        )
        first = parts[0].trait_names
        traits = [part.traits for part in parts if part.traits is not None and part.trait_names == first]
        if len(traits) < len(parts):
            return cls(parts[0].names, scores, ranks, statistics)
        return cls(parts[0].names, scores, ranks, statistics, first, np.concatenate(traits))


def statistics_of(scores: Floats, offsets: Ints) -> Floats:
    """The statistics of each query and list."""
    return _statistics(frozen(scores, np.float64), frozen(offsets, np.int64))


@parallel_kernel
def _statistics(scores: Floats, offsets: Ints) -> Floats:
    queries, lists = len(offsets) - 1, scores.shape[1]
    out = np.zeros((queries, lists, 6))
    for q in prange(queries):
        for j in range(lists):
            count, low, high, total, squares = 0, np.inf, -np.inf, 0.0, 0.0
            for row in range(offsets[q], offsets[q + 1]):
                s = scores[row, j]
                if not np.isnan(s):
                    count += 1
                    low, high = min(low, s), max(high, s)
                    total += s
                    squares += s * s
            if count == 0:
                continue
            mean, away = total / count, 0.0
            for row in range(offsets[q], offsets[q + 1]):
                s = scores[row, j]
                if not np.isnan(s):
                    away += (s - mean) * (s - mean)
            out[q, j, COUNT], out[q, j, LOW], out[q, j, HIGH] = count, low, high
            out[q, j, MEAN], out[q, j, DEVIATION], out[q, j, NORM] = mean, np.sqrt(away / count), np.sqrt(squares)
    return out
