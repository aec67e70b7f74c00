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
    together; `documents`, how many there are (0: not known); `df` and `field_df`, how many have each query term in any
    field and in each field; `field_documents`, how many have anything in each field. `distinct` counts the different
    terms of each field of a row; `distinct_tokens` is its sum over all documents.

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
    df: Floats | None = field(default=None, kw_only=True)
    field_df: Floats | None = field(default=None, kw_only=True)
    field_documents: Floats | None = field(default=None, kw_only=True)
    distinct: Matrix | None = field(default=None, kw_only=True)
    distinct_tokens: Floats | None = field(default=None, kw_only=True)

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
        shapes = {"count": (terms,), "df": (terms,), "tokens": (fields,), "field_documents": (fields,)}
        shapes["distinct_tokens"] = (fields,)
        for name, shape in (shapes | dict.fromkeys(("collection", "field_df"), (terms, fields))).items():
            if getattr(self, name) is None:
                continue
            array = frozen(getattr(self, name), np.float64)
            object.__setattr__(self, name, array)
            if array.shape != shape:
                raise InputError(f"{name} of shape {array.shape} for {terms} query terms and {fields} fields")
            if not (np.isfinite(array).all() and (array >= 0).all()):
                raise InputError(f"{name} has a number that is negative or not finite")
        if self.distinct is not None:
            object.__setattr__(self, "distinct", frozen(self.distinct, np.float32))
            if self.distinct.shape != self.length.shape:
                raise InputError(f"distinct of shape {self.distinct.shape} for lengths of shape {self.length.shape}")
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
            tokens=self.tokens,
            documents=self.documents,
            field_documents=self.field_documents,
            distinct=None if self.distinct is None else self.distinct[rows],
            distinct_tokens=self.distinct_tokens,
            **{name: None if found is None else found[terms] for name, found in self._by_term().items()},
        )

    def _by_term(self) -> dict[str, Floats | None]:
        """What the collection says of each query term, where that is known."""
        return {"collection": self.collection, "df": self.df, "field_df": self.field_df}

    @classmethod
    def concat(cls, parts: Sequence[TermStatistics]) -> TermStatistics:
        """One after the other; all must have the same fields and be of the same collection."""
        if any(part.fields != parts[0].fields for part in parts):
            raise InputError(f"term statistics with different fields: {sorted({part.fields for part in parts})}")
        for name in ("collection", "tokens", "df", "field_df", "field_documents", "distinct", "distinct_tokens"):
            if len({getattr(part, name) is None for part in parts}) > 1:
                raise InputError(f"some of these term statistics have {name}, some have none")
        first = parts[0]
        for name in ("documents", "tokens", "field_documents", "distinct_tokens"):
            if not all(same(getattr(part, name), getattr(first, name)) for part in parts):
                raise InputError(f"term statistics of different collections: {name} differ")
        per_term = {
            name: [known for part in parts if (known := part._by_term()[name]) is not None] for name in first._by_term()
        }
        distinct = [part.distinct for part in parts if part.distinct is not None]
        return cls(
            parts[0].fields,
            bounds(np.concatenate([np.diff(part.offsets) for part in parts])),
            Ids.concat([part.terms for part in parts]),
            np.concatenate([part.idf for part in parts]),
            bounds(np.concatenate([np.diff(part.starts) for part in parts])),
            np.concatenate([part.tf for part in parts]),
            np.concatenate([part.length for part in parts]),
            count=np.concatenate([part.count for part in parts]),
            tokens=first.tokens,
            documents=first.documents,
            field_documents=first.field_documents,
            distinct=np.concatenate(distinct) if distinct else None,
            distinct_tokens=first.distinct_tokens,
            **{name: np.concatenate(known) if known else None for name, known in per_term.items()},
        )
