"""Term statistics: all that BM25F and language models need to score a row at any parameters, counted once.

For every row (a query and a document) the frequency of each query term in each field, and the length of each field;
for every query its terms with their idf. A row has a line of `tf` for each term of its query and a column for each
field: row r owns `tf[starts[r] : starts[r + 1]]`. Where the collection is known, so is how often a term stands in it:
language models need that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fliprank.arrays import Floats, Ints, Matrix, frozen
from fliprank.data.csr import bounds, span_indices
from fliprank.data.ids import Ids
from fliprank.errors import InputError, printable
from fliprank.naming import same

__all__ = ["TermStatistics"]


@dataclass(frozen=True, eq=False, repr=False)
class TermStatistics:
    """`fields` names the columns of `tf` and `length`; query q owns terms `offsets[q]:offsets[q + 1]`.

    `count`: how often each term stands in its query (once, unless said). Of the whole collection, where known:
    `collection`, the occurrences of each query term in each field; `tokens`, the length of each field, all documents
    together; `documents`, how many there are (0: not known).

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
    count: Floats = field(default=None, kw_only=True)  # type: ignore[arg-type]
    collection: Floats | None = field(default=None, kw_only=True)
    tokens: Floats | None = field(default=None, kw_only=True)
    documents: int = field(default=0, kw_only=True)

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
        self._check_collection()

    def __repr__(self) -> str:
        counted = f"{len(self.offsets) - 1:,} queries, {len(self.length):,} rows"
        return printable(f"TermStatistics: {counted}, fields {', '.join(self.fields)}")

    def _check_collection(self) -> None:
        terms, fields = len(self.idf), len(self.fields)
        if self.count is None:
            object.__setattr__(self, "count", np.ones(terms))
        for name, shape in (("count", (terms,)), ("collection", (terms, fields)), ("tokens", (fields,))):
            if getattr(self, name) is None:
                continue
            array = frozen(getattr(self, name), np.float64)
            object.__setattr__(self, name, array)
            if array.shape != shape:
                raise InputError(f"{name} of shape {array.shape} for {terms} query terms and {fields} fields")
            if not (np.isfinite(array).all() and (array >= 0).all()):
                raise InputError(f"{name} has a number that is negative or not finite")
        if self.documents < 0:
            raise InputError(f"a collection of {self.documents} documents")

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
            count=self.count[terms],
            collection=None if self.collection is None else self.collection[terms],
            tokens=self.tokens,
            documents=self.documents,
        )

    @classmethod
    def concat(cls, parts: Sequence[TermStatistics]) -> TermStatistics:
        """One after the other; all must have the same fields and be of the same collection."""
        if any(part.fields != parts[0].fields for part in parts):
            raise InputError(f"term statistics with different fields: {sorted({part.fields for part in parts})}")
        for name in ("collection", "tokens"):
            if len({getattr(part, name) is None for part in parts}) > 1:
                raise InputError(f"some of these term statistics have {name}, some have none")
        first, known = parts[0], [part.collection for part in parts if part.collection is not None]
        if any(part.documents != first.documents or not same(part.tokens, first.tokens) for part in parts):
            raise InputError("term statistics of different collections: tokens or documents differ")
        return cls(
            parts[0].fields,
            bounds(np.concatenate([np.diff(part.offsets) for part in parts])),
            Ids.concat([part.terms for part in parts]),
            np.concatenate([part.idf for part in parts]),
            bounds(np.concatenate([np.diff(part.starts) for part in parts])),
            np.concatenate([part.tf for part in parts]),
            np.concatenate([part.length for part in parts]),
            count=np.concatenate([part.count for part in parts]),
            collection=np.concatenate(known) if known else None,
            tokens=first.tokens,
            documents=first.documents,
        )
