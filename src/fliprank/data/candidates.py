"""Candidates: what is ranked. Rows are (query, document) pairs; the rows of one query are contiguous.

Query q owns rows `offsets[q]:offsets[q + 1]`, so kernels loop over queries in parallel. A label that is NaN says that
nobody judged the row. Candidates do not change: `select`, `take`, `top`, `split` and `concat` give new ones.

>>> rows = Candidates.of(labels=[2, 0, 1], qid=["b", "a", "b"], docids=["d1", "d1", "d2"])
>>> rows.qids.tolist(), rows.offsets.tolist(), rows.labels.tolist()
(['b', 'a'], [0, 2, 3], [2.0, 1.0, 0.0])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Ints, Matrix, frozen
from fliprank.checked import checked
from fliprank.data.csr import bounds, positions, span_indices
from fliprank.data.ids import Ids, factorize, find_duplicates
from fliprank.data.judgements import Judgements
from fliprank.data.order import order_rows
from fliprank.data.ranked_lists import RankedLists
from fliprank.data.term_statistics import TermStatistics
from fliprank.errors import InputError, UsageError, printable

__all__ = ["Candidates", "column_ids", "concat", "group_rows", "joined"]


@dataclass(frozen=True, eq=False, repr=False)
class Candidates:
    """Rows grouped by query, with labels and, where there are any, document ids, features and term statistics.

    `lists` are the scores and ranks that several retrievers gave the rows, for a fusion of them.

    `missed_labels` are the labels of judged documents that are not among the rows (a run did not retrieve them, `top`
    cut them off); query q owns `missed_offsets[q]:missed_offsets[q + 1]`. Recall and the ideal ranking count them.
    """

    offsets: Ints
    labels: Floats
    qids: Ids
    docids: Ids | None = None
    features: Matrix | None = None
    feature_names: tuple[str, ...] = ()
    terms: TermStatistics | None = None
    missed_offsets: Ints = None  # type: ignore[assignment]
    missed_labels: Floats = None  # type: ignore[assignment]
    lists: RankedLists | None = None

    def __post_init__(self) -> None:
        if self.missed_offsets is None:
            object.__setattr__(self, "missed_offsets", np.zeros(len(self.offsets), np.int64))
            object.__setattr__(self, "missed_labels", np.empty(0))
        for name in ("offsets", "missed_offsets"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.int64))
        for name in ("labels", "missed_labels"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float64))
        if self.features is not None:
            object.__setattr__(self, "features", frozen(self.features, np.float32))
            names = self.feature_names or tuple(str(i + 1) for i in range(self.features.shape[-1]))
            object.__setattr__(self, "feature_names", tuple(names))
        self._check_shapes()

    def _check_shapes(self) -> None:
        rows, queries = len(self.labels), len(self.offsets) - 1
        for name, size in (("offsets", rows), ("missed_offsets", len(self.missed_labels))):
            array = getattr(self, name)
            if (
                len(array) != queries + 1
                or queries < 0
                or array[0] != 0
                or array[-1] != size
                or array.min() < 0
                or (np.diff(array) < 0).any()
            ):
                raise InputError(f"{name} must rise from 0 to {size} in {queries} steps")
        if len(self.qids) != queries:
            raise InputError(f"{len(self.qids)} query ids for {queries} queries")
        if self.docids is not None and len(self.docids) != rows:
            raise InputError(f"{len(self.docids)} document ids for {rows} rows")
        if self.features is not None and (self.features.ndim != 2 or len(self.features) != rows):
            raise InputError(f"features of shape {self.features.shape} for {rows} rows")
        if self.features is not None and len(self.feature_names) != self.features.shape[1]:
            raise InputError(f"{len(self.feature_names)} feature names for {self.features.shape[1]} features")
        if self.terms is not None and len(self.terms.length) != rows:
            raise InputError(f"term statistics of {len(self.terms.length)} rows for {rows} rows")
        if self.lists is not None and (len(self.lists), len(self.lists.statistics)) != (rows, queries):
            sizes = f"{len(self.lists)} rows and {len(self.lists.statistics)} queries"
            raise InputError(f"lists of {sizes} for {rows} rows and {queries} queries")

    @classmethod
    def of(
        cls,
        labels: ArrayLike,
        *,
        qid: Iterable[Any] | None = None,
        group: ArrayLike | None = None,
        docids: Iterable[Any] | None = None,
        features: ArrayLike | None = None,
        feature_names: Iterable[str] = (),
    ) -> Candidates:
        """From arrays; the query of each row by `qid` (ids, sorted or not) or `group` (sizes of consecutive queries).

        Rows of a query that are not contiguous are brought together, queries in order of appearance, rows in the order
        given; `group_rows(qid)` says where each row went. Without either, all rows are one query.
        """
        values = np.asarray(labels, np.float64)
        if values.ndim != 1:
            raise InputError(f"labels must be one number per row, not an array of shape {values.shape}")
        if (qid is None) == (group is None) and qid is not None:
            raise UsageError("give the queries by qid= or by group=, not both")
        if qid is not None:
            given = Ids.of(qid)
            if len(given) != len(values):
                raise InputError(f"{len(given)} query ids for {len(values)} labels")
            offsets, order, first = _group(given)
            qids = given.take(first)
        else:
            sizes = np.asarray([len(values)] if group is None else group)
            if sizes.ndim != 1 or (
                sizes.size and (sizes.min() < 0 or not np.array_equal(sizes, sizes.astype(np.int64)))
            ):
                raise InputError("group must be the number of rows of each query")
            if sizes.sum() != len(values):
                raise InputError(f"group sizes add up to {sizes.sum():g}, but there are {len(values)} labels")
            offsets, order, qids = bounds(sizes.astype(np.int64)), None, Ids.of(range(1, len(sizes) + 1))
        matrix = None if features is None else np.asarray(features, np.float32)
        ids = None if docids is None else Ids.of(docids)
        for name, column in (("features", matrix), ("document ids", ids)):
            if column is not None and len(column) != len(values):
                raise InputError(f"{len(column)} rows of {name} for {len(values)} labels")
        if order is not None:
            values = values[order]
            matrix = None if matrix is None else matrix[order]
            ids = None if ids is None else ids.take(order)
        return cls(offsets, values, qids, ids, matrix, tuple(feature_names)).validated()

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        label: str = "label",
        qid: str = "qid",
        docid: str | None = None,
        features: Sequence[str] | None = None,
    ) -> Candidates:
        """From a polars or pandas frame; a null label is unjudged. Features: the numeric columns that are left over."""
        columns = [str(name) for name in frame.columns]
        docid = docid or ("docid" if "docid" in columns else None)
        for name in filter(None, (label, qid, docid, *(features or ()))):
            if name not in columns:
                raise InputError(f"the frame has no column {name!r}", hint=f"it has {', '.join(columns)}")
        if features is None:
            rest = [name for name in columns if name not in (label, qid, docid)]
            arrays = ((name, frame[name].to_numpy()) for name in rest)
            features = [name for name, a in arrays if a.ndim == 1 and np.issubdtype(a.dtype, np.number)]
        matrix = np.empty((len(frame), len(features)), np.float32)
        for j, name in enumerate(features):
            with np.errstate(over="ignore"):  # beyond float32 is infinite, and refused below
                matrix[:, j] = _numbers(frame, name)
        return cls.of(
            _numbers(frame, label),
            qid=column_ids(frame, qid),
            docids=None if docid is None else column_ids(frame, docid),
            features=matrix if features else None,
            feature_names=features,
        )

    def validated(self, path: str | None = None) -> Candidates:
        """These candidates, after the checks that look at every value: labels, features, ids."""
        if np.isinf(self.labels).any():
            row = int(np.isinf(self.labels).argmax())
            raise InputError(f"label {self.labels[row]} of row {row}", path=path, query=self._query_of(row))
        if self.features is not None and (bad := _first_infinite(self.features)) >= 0:
            raise InputError(f"an infinite feature in row {bad}", path=path, query=self._query_of(bad))
        if (twice := find_duplicates(self.qids, np.array([0, self.queries]))[0]) >= 0:
            raise InputError("the query occurs twice", path=path, query=self.qids[twice])
        if self.docids is not None:
            duplicates = find_duplicates(self.docids, self.offsets)
            if (query := int((duplicates >= 0).argmax()) if self.queries else 0) or (
                self.queries and duplicates[0] >= 0
            ):
                docid = self.docids[duplicates[query]]
                raise InputError(f"document {docid} occurs twice", path=path, query=self.qids[query])
        return self

    def _query_of(self, row: int) -> str:
        return self.qids[int(np.searchsorted(self.offsets, row, "right")) - 1]

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        judged = int((~np.isnan(self.labels)).sum())
        rows = f"{len(self):,} rows ({judged:,} judged)"
        features = [] if self.features is None else [f"{len(self.feature_names):,} features"]
        fields = [] if self.terms is None else [f"term statistics of {', '.join(self.terms.fields)}"]
        return printable(f"Candidates: {', '.join([f'{self.queries:,} queries', rows, *features, *fields])}")

    @property
    def queries(self) -> int:
        """How many queries there are."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Ints:
        """Rows of each query."""
        return np.diff(self.offsets)

    @cached_property
    def judgements(self) -> Judgements:
        """The judged rows and the ideal rankings, as measures read them."""
        return Judgements.of(self.offsets, self.labels, self.missed_offsets, self.missed_labels)

    @cached_property
    def memo(self) -> dict[Any, Any]:
        """What others computed from these candidates once and for all, by what it is."""
        return {}

    def document_ids(self, first: int = 0) -> Ids:
        """The document ids; row1, row2, ... where there are none, with so many rows in parts before this one."""
        return Ids.of([f"row{first + i + 1}" for i in range(len(self))]) if self.docids is None else self.docids

    def query_of_rows(self) -> Ints:
        """The number of each row's query."""
        return np.repeat(np.arange(self.queries), self.sizes)

    def select(self, queries: ArrayLike) -> Candidates:
        """The queries with these numbers (or where a mask is true), in this order, with all their rows."""
        chosen = _indices(queries, self.queries, "query")
        if _repeats(chosen):
            raise UsageError("select: a query is named twice")
        return self._take(chosen, span_indices(self.offsets, chosen))

    def take(self, rows: ArrayLike) -> Candidates:
        """Just these rows (numbers, or a mask), in this order within each query; a query may be left with none.

        A judged row that is dropped stays among the judgements (`missed_labels`), as a document that was not retrieved.
        """
        chosen = _indices(rows, len(self), "row")
        if _repeats(chosen):
            raise UsageError("take: a row is named twice")
        query = self.query_of_rows()[chosen]
        if (query[1:] < query[:-1]).any():
            chosen = chosen[np.argsort(query, kind="stable")]
        kept = self._take(np.arange(self.queries), chosen, np.bincount(query, minlength=self.queries))
        dropped = ~np.isnan(self.labels)
        dropped[chosen] = False
        owner = np.concatenate(
            [np.repeat(np.arange(self.queries), np.diff(self.missed_offsets)), self.query_of_rows()[dropped]]
        )
        labels = np.concatenate([self.missed_labels, self.labels[dropped]])
        return replace(
            kept,
            missed_offsets=bounds(np.bincount(owner, minlength=self.queries)),
            missed_labels=labels[np.argsort(owner, kind="stable")],
        )

    def top(self, scores: ArrayLike, n: int) -> Candidates:
        """The `n` best rows of each query, best first."""
        return self.take(self.top_rows(scores, n))

    def top_rows(self, scores: ArrayLike, n: int) -> Ints:
        """The numbers of the `n` best rows of each query, best first."""
        values = np.asarray(scores, np.float64)
        if values.shape != self.labels.shape or np.isnan(values).any():
            raise InputError(
                f"top needs one score per row ({len(self)} rows), none of them NaN; got shape {values.shape}"
            )
        order = order_rows(values, self.offsets, self.docids)
        best: Ints = order[positions(self.offsets) < n]
        return best

    def split(self, *shares: float, seed: int = 0) -> tuple[Candidates, ...]:
        """Part the queries at random: `split(0.6, 0.2, 0.2)` gives train, validation and test.

        Within a part queries keep their order. Where the shares add up to less than 1, the rest is left out.
        """
        if not shares or min(shares) < 0 or sum(shares) > 1 + 1e-9:
            raise UsageError(f"split: shares must be positive and add up to at most 1, not {shares}")
        shuffled = np.random.default_rng(seed).permutation(self.queries)
        cuts = np.round(np.cumsum([0.0, *shares]) * self.queries).astype(int)
        return tuple(self.select(np.sort(shuffled[a:b])) for a, b in pairwise(cuts))

    def _take(self, queries: Ints, rows: Ints, sizes: Ints | None = None) -> Candidates:
        """The named rows, which already stand query by query in the order of `queries`."""
        return Candidates(
            bounds(self.sizes[queries] if sizes is None else sizes),
            self.labels[rows],
            self.qids.take(queries),
            None if self.docids is None else self.docids.take(rows),
            None if self.features is None else self.features[rows],
            self.feature_names,
            None if self.terms is None else self.terms.take(queries, rows),
            bounds(np.diff(self.missed_offsets)[queries]),
            self.missed_labels[span_indices(self.missed_offsets, queries)],
            None if self.lists is None else self.lists.take(queries, rows),
        )

    def describe(self) -> str:
        """A table that a person reads: queries, rows, labels, unjudged rows, features."""
        sizes, judged = self.sizes, ~np.isnan(self.labels)
        relevant = np.bincount(self.query_of_rows()[judged & (self.labels > 0)], minlength=self.queries)
        lines = [
            ("queries", f"{self.queries:,}"),
            ("without a relevant row", f"{int((relevant == 0).sum()):,}"),
            ("rows", f"{len(self):,}"),
            ("rows per query", f"{sizes.min()} to {sizes.max()}, mean {sizes.mean():.1f}" if self.queries else "-"),
            ("unjudged rows", f"{int((~judged).sum()):,}"),
            ("judged, not among the rows", f"{len(self.missed_labels):,}"),
        ]
        levels, counts = np.unique(self.labels[judged], return_counts=True)
        if len(levels) <= 12:
            lines += [(f"label {level:g}", f"{count:,}") for level, count in zip(levels, counts, strict=True)]
        else:
            lines.append(("labels", f"{len(levels)} levels from {levels[0]:g} to {levels[-1]:g}"))
        if self.features is not None:
            constant = int((self.features.min(0) == self.features.max(0)).sum()) if len(self) else 0
            lines.append(("features", f"{self.features.shape[1]}" + (f" ({constant} constant)" if constant else "")))
        if self.terms is not None:
            lines.append(("fields", ", ".join(self.terms.fields)))
        if self.lists is not None:
            lines.append(("lists", ", ".join(self.lists.names)))
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)


@checked
def group_rows(qid: Iterable[Any]) -> tuple[Ints, Ints]:
    """(offsets, order): rows `order[offsets[q]:offsets[q + 1]]` belong to the q-th distinct id, in order of appearance.

    >>> group_rows(["b", "a", "b"])
    (array([0, 2, 3]), array([0, 2, 1]))
    """
    offsets, order, _ = _group(Ids.of(qid))
    return offsets, np.arange(offsets[-1]) if order is None else order


@checked
def concat(*parts: Candidates) -> Candidates:
    """The queries of all parts; a query id may occur in one part only."""
    return joined(*parts).validated()


def joined(*parts: Candidates) -> Candidates:
    """The same of parts whose queries are known to differ."""
    if not parts:
        raise UsageError("concat needs at least one set of candidates")
    if len(parts) == 1:
        return parts[0]
    for name in ("docids", "features", "terms", "lists"):
        if len({getattr(part, name) is None for part in parts}) > 1:
            raise InputError(f"some of these candidates have {name}, some have none")
    if len({part.feature_names for part in parts}) > 1:
        raise InputError(f"different features: {' / '.join(str(len(part.feature_names)) for part in parts)}")
    return Candidates(
        bounds(np.concatenate([part.sizes for part in parts])),
        np.concatenate([part.labels for part in parts]),
        Ids.concat([part.qids for part in parts]),
        None if parts[0].docids is None else Ids.concat([part.docids for part in parts if part.docids is not None]),
        None if parts[0].features is None else np.concatenate([p.features for p in parts if p.features is not None]),
        parts[0].feature_names,
        None if parts[0].terms is None else TermStatistics.concat([p.terms for p in parts if p.terms is not None]),
        bounds(np.concatenate([np.diff(part.missed_offsets) for part in parts])),
        np.concatenate([part.missed_labels for part in parts]),
        None if parts[0].lists is None else RankedLists.concat([p.lists for p in parts if p.lists is not None]),
    )


def _group(ids: Ids) -> tuple[Ints, Ints | None, Ints]:
    """Offsets, the rows in grouped order (None where they stand so already), the first row of each group."""
    numbers, first = factorize(ids)
    offsets = bounds(np.bincount(numbers, minlength=len(first)))
    return offsets, None if (np.diff(numbers) >= 0).all() else np.argsort(numbers, kind="stable"), first


def _indices(chosen: ArrayLike, size: int, kind: str) -> Ints:
    """Numbers, or a mask as numbers, checked against `size`."""
    given = np.asarray(chosen)
    if given.dtype == bool:
        if given.shape != (size,):
            raise UsageError(f"a mask of shape {given.shape} for {size} {kind} numbers")
        return np.flatnonzero(given)
    numbers = given.astype(np.int64).reshape(-1)
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= size):
        raise UsageError(f"{kind} numbers go from 0 to {size - 1}; got {numbers.min()} to {numbers.max()}")
    return numbers


def _repeats(numbers: Ints) -> bool:
    """Whether a number comes twice; those that rise, as is the rule, need not be sorted for it."""
    return bool((numbers[1:] <= numbers[:-1]).any()) and len(np.unique(numbers)) < len(numbers)


def column_ids(frame: Any, name: str) -> Ids:
    """A column of a polars or pandas frame as ids; null is no id."""
    column = frame[name]
    absent = (column.is_null() if hasattr(column, "is_null") else column.isna()).to_numpy()
    if absent.any():
        raise InputError(f"column {name!r} has no value in row {int(absent.argmax())}")
    return Ids.of(column.to_numpy())


def _numbers(frame: Any, name: str) -> Floats:
    try:
        values = np.asarray(frame[name].to_numpy(), np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"column {name!r} is not numeric: {error}") from error
    if values.ndim != 1:
        raise InputError(f"column {name!r} is not numeric: its values are nested")
    return values


def _first_infinite(features: Matrix) -> int:
    """The first row with an infinite feature, or -1; looks at one part at a time, to need little memory."""
    for start in range(0, len(features), 1 << 16):
        bad = np.isinf(features[start : start + (1 << 16)]).any(axis=1)
        if bad.any():
            return start + int(bad.argmax())
    return -1
