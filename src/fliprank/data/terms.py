"""Term statistics: all that BM25F and language models need to score a row at any parameters, counted once.

For every row (a query and a document) the frequency of each query term in each field, and the length of each field;
for every query its terms with their idf. A row has a line of `tf` for each term of its query and a column for each
field: row r owns `tf[starts[r] : starts[r + 1]]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fliprank.arrays import Floats, Ints, Matrix, frozen
from fliprank.data.ids import Ids
from fliprank.data.spans import bounds, span_indices
from fliprank.errors import InputError

__all__ = ["TermStatistics"]


@dataclass(frozen=True, eq=False)
class TermStatistics:
    """`fields` names the columns of `tf` and `length`; query q owns terms `offsets[q]:offsets[q + 1]`.

    >>> one = TermStatistics(("title", "body"), [0, 2], Ids.of(["red", "shoe"]), [1.5, 0.7], [0, 2], [[1, 3], [0, 2]],
    ...                      [[4, 90]])
    >>> one.of_row(0)
    array([[1., 3.],
           [0., 2.]], dtype=float32)
    """

    fields: tuple[str, ...]
    offsets: Ints
    terms: Ids
    idf: Floats
    starts: Ints
    tf: Matrix
    length: Matrix

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        for name, dtype in (("offsets", np.int64), ("idf", np.float64), ("starts", np.int64)):
            object.__setattr__(self, name, frozen(getattr(self, name), dtype))
        for name in ("tf", "length"):
            table = np.asarray(getattr(self, name), np.float32).reshape(-1, len(self.fields))
            object.__setattr__(self, name, frozen(table, np.float32))
        if len(self.terms) != len(self.idf) or len(self.idf) != self.offsets[-1]:
            raise InputError(f"{len(self.terms)} terms, {len(self.idf)} idf values for {self.offsets[-1]} query terms")
        if len(self.starts) != len(self.length) + 1 or self.starts[-1] != len(self.tf):
            raise InputError(f"{len(self.tf)} tf blocks and {len(self.length)} lengths for {len(self.starts) - 1} rows")

    def of_row(self, row: int) -> Matrix:
        """The frequencies of one row: terms x fields."""
        return self.tf[self.starts[row] : self.starts[row + 1]]

    def take(self, queries: Ints, rows: Ints) -> TermStatistics:
        """The statistics of `rows`, whose queries are `queries` (each once, in the new order)."""
        terms = span_indices(self.offsets, queries)
        return TermStatistics(
            self.fields,
            bounds(np.diff(self.offsets)[queries]),
            self.terms.take(terms),
            self.idf[terms],
            bounds(np.diff(self.starts)[rows]),
            self.tf[span_indices(self.starts, rows)],
            self.length[rows],
        )

    @classmethod
    def concat(cls, parts: Sequence[TermStatistics]) -> TermStatistics:
        """One after the other; all must have the same fields."""
        if any(part.fields != parts[0].fields for part in parts):
            raise InputError(f"term statistics with different fields: {sorted({part.fields for part in parts})}")
        return cls(
            parts[0].fields,
            bounds(np.concatenate([np.diff(part.offsets) for part in parts])),
            Ids.concat([part.terms for part in parts]),
            np.concatenate([part.idf for part in parts]),
            bounds(np.concatenate([np.diff(part.starts) for part in parts])),
            np.concatenate([part.tf for part in parts]),
            np.concatenate([part.length for part in parts]),
        )
