"""Term statistics as JSON lines: one line per pair of query and document, with all that BM25F needs to score it.

A line holds `qid`, `docid`, `label` (null or absent: unjudged), `terms` and their `idf`, `tf` (for each field the
frequency of each term), `length` (of each field) and, where there are any, `features` by name. It may also hold `count`
(how often each term stands in the query: once, unless said) and, of the whole collection, `collection` (for each field
the occurrences of each term), `tokens` (the length of each field, all documents together) and `documents` (how many).

>>> import tempfile
>>> from pathlib import Path
>>> record = {"qid": 7, "docid": "d", "terms": ["red", "shoe"], "idf": [1, 2]}
>>> record |= {"tf": {"body": [3, 1]}, "length": {"body": 9}}
>>> with tempfile.TemporaryDirectory() as name:
...     _ = Path(name, "rows.jsonl").write_text(json.dumps(record))
...     rows = read_statistics(Path(name, "rows.jsonl"))
>>> rows.qids.tolist(), rows.labels.tolist(), rows.terms.terms.tolist(), rows.terms.of_row(0).tolist()
(['7'], [nan], ['red', 'shoe'], [[3.0], [1.0]])
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from math import inf, nan
from typing import Any

import numpy as np

from fliprank.arrays import Floats, Matrix
from fliprank.checked import checked
from fliprank.data.candidates import Candidates, group_rows
from fliprank.data.csr import bounds
from fliprank.data.files import StrPath, atomic_write
from fliprank.data.ids import Ids
from fliprank.data.json_files import json_objects
from fliprank.data.term_statistics import TermStatistics
from fliprank.errors import InputError, UsageError

__all__ = ["read_statistics", "write_statistics"]

SHARED = ("terms", "idf", "count", "collection")
_NUMERIC = {int, float}
_FLOAT32, _FLOAT64 = float(np.finfo(np.float32).max), float(np.finfo(np.float64).max)


@checked
def read_statistics(path: StrPath) -> Candidates:
    """Candidates with term statistics, document ids and features; lines of a query need not be together.

    All lines must have the same fields, features and collection, all lines of a query the same terms, idf and count.
    """
    table = _Table()
    for line, record in json_objects(path):
        try:
            table.add(record)
        except InputError as error:
            query = record.get("qid")
            name = str(query).encode(errors="replace").decode() if isinstance(query, str | int) else None
            raise InputError(error.message, path=path, line=line, query=name) from error
    if not table.qid:
        raise InputError("the file is empty", path=path)
    return table.candidates()


@checked
def write_statistics(path: StrPath, candidates: Candidates) -> None:
    """Write what `read_statistics` reads; gzipped for a name in .gz. The `query` of a line is its terms, joined.

    Rows only: queries without rows and the labels of documents that are not among the rows have no line.
    """
    if candidates.terms is None or candidates.docids is None:
        raise UsageError("write_statistics needs candidates with term statistics and document ids")
    if candidates.features is not None and np.isnan(candidates.features).any():
        raise InputError("a feature is NaN: JSON has no such number", path=path)
    with atomic_write(path) as file:
        for record in _records(candidates, candidates.docids, candidates.terms):
            file.write(json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n")


@dataclass(frozen=True)
class _Query:
    """What all lines of a query share: its terms, idf, count and collection, as they stand; its documents so far."""

    shared: tuple[Any, ...]
    terms: list[str]
    idf: list[Any]
    count: list[Any]
    collection: list[Any]
    documents: set[bytes] = field(default_factory=set)


@dataclass
class _Table:
    """The rows read so far, in lists; the first row settles which fields and features there are."""

    fields: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    queries: dict[bytes, _Query] = field(default_factory=dict)
    whole: tuple[Any, Any] = (None, None)
    qid: list[bytes] = field(default_factory=list)
    docid: list[bytes] = field(default_factory=list)
    label: list[float] = field(default_factory=list)
    tf: list[float] = field(default_factory=list)
    length: list[float] = field(default_factory=list)
    features: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def add(self, record: dict[str, Any]) -> None:
        """Check a row and append it."""
        qid, docid = _encoded(record, "qid"), _encoded(record, "docid")
        tf, length, features = (_mapping(record, name) for name in ("tf", "length", "features"))
        if not tf:
            raise InputError("tf has no fields")
        if not self.qid:
            _check_text("name", (*tf, *features))
            self.fields, self.names = tuple(tf), tuple(features)
            self.whole = self._checked_whole(record)
        shared = tuple(record.get(name) for name in SHARED)
        if qid not in self.queries:
            self.queries[qid] = self._checked_query(shared)
        query = self.queries[qid]
        if shared != query.shared:
            name = next(name for name, a, b in zip(SHARED, shared, query.shared, strict=True) if a != b)
            raise InputError(f"{name}: not as in the query's first line")
        if (record.get("tokens"), record.get("documents")) != self.whole:
            raise InputError("tokens or documents: not as in the first line")
        if docid in query.documents:
            raise InputError(f"document {docid.decode()} occurs twice")
        query.documents.add(docid)
        self.tf += self._by_term(tf, "tf", len(query.terms))
        self.length += _numbers(_values(length, self.fields, "length"), "length", least=0.0)
        self.features += _numbers(_values(features, self.names, "features"), "feature")
        label = record.get("label")
        self.label += [nan] if label is None else _numbers([label], "label", most=_FLOAT64)
        self.qid.append(qid)
        self.docid.append(docid)
        self.sizes.append(len(query.terms))

    def _by_term(self, columns: dict[str, Any], what: str, terms: int, most: float = _FLOAT32) -> list[Any]:
        """The numbers of each field, term by term."""
        values = _values(columns, self.fields, what)
        for name, column in zip(self.fields, values, strict=True):
            if not isinstance(column, list) or len(column) != terms:
                raise InputError(f"{what} of {name!r} must be a list of {terms} numbers, one for each term")
        return _numbers(chain.from_iterable(zip(*values, strict=True)), what, least=0.0, most=most)

    def _checked_query(self, shared: tuple[Any, ...]) -> _Query:
        terms, idf, count, collection = shared
        terms, idf = _checked_terms(terms, idf)
        if count is not None and (not isinstance(count, list) or len(count) != len(terms)):
            raise InputError(f"count must be a list of {len(terms)} numbers, one for each term")
        times = [1.0] * len(terms) if count is None else _numbers(count, "count", least=0.0, most=_FLOAT64)
        if collection is not None and not isinstance(collection, dict):
            raise InputError("collection must be an object")
        first = next(iter(self.queries.values()), None)
        if first is not None and (first.shared[-1] is None) != (collection is None):
            raise InputError("some queries have collection, some have none")
        found = [] if collection is None else self._by_term(collection, "collection", len(terms), _FLOAT64)
        return _Query(shared, terms, idf, times, found)

    def _checked_whole(self, record: dict[str, Any]) -> tuple[Any, Any]:
        """`tokens` and `documents` as they stand in the first line."""
        tokens, documents = record.get("tokens"), record.get("documents")
        if tokens is not None:
            _numbers(_values(_mapping(record, "tokens"), self.fields, "tokens"), "tokens", least=0.0, most=_FLOAT64)
        if documents is not None and (type(documents) is not int or not 0 <= documents < 1 << 62):
            raise InputError(f"documents {documents!r:.60} is not a number of documents")
        return tokens, documents

    def candidates(self) -> Candidates:
        """The rows as candidates, brought together by query."""
        offsets, order = group_rows(self.qid)
        rows, queries, (tokens, documents) = len(self.qid), list(self.queries.values()), self.whole
        known = queries[0].shared[-1] is not None
        by_term = np.array([value for each in queries for value in each.collection], np.float64)
        terms = TermStatistics(
            self.fields,
            bounds(np.array([len(each.terms) for each in queries])),
            Ids.of(chain.from_iterable(each.terms for each in queries)),
            np.array([value for each in queries for value in each.idf], np.float64),
            bounds(np.array(self.sizes)),
            np.array(self.tf, np.float32).reshape(-1, len(self.fields)),
            np.array(self.length, np.float32).reshape(-1, len(self.fields)),
            count=np.array([value for each in queries for value in each.count], np.float64),
            collection=by_term.reshape(-1, len(self.fields)) if known else None,
            tokens=None if tokens is None else np.array([tokens[name] for name in self.fields], np.float64),
            documents=documents or 0,
        )
        features = np.array(self.features, np.float32).reshape(rows, -1)[order] if self.names else None
        return Candidates(
            offsets,
            np.array(self.label)[order],
            Ids.of(self.queries),
            Ids.of(self.docid).take(order),
            features,
            self.names,
            terms.take(np.arange(len(queries)), order),
        )


def _checked_terms(terms: Any, idf: Any) -> tuple[list[Any], list[Any]]:
    if not isinstance(terms, list) or not all(isinstance(term, str) for term in terms):
        raise InputError("terms must be a list of strings")
    _check_text("term", terms)
    if not isinstance(idf, list) or len(idf) != len(terms):
        raise InputError(f"idf must be a list of {len(terms)} numbers, one for each term")
    return terms, _numbers(idf, "idf", most=_FLOAT64)


def _encoded(record: dict[str, Any], name: str) -> bytes:
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"no {name}, or one that is neither a string nor a whole number")
    _check_text(name, [str(value)])
    return str(value).encode()


def _check_text(what: str, texts: Iterable[str]) -> None:
    """JSON can escape halves of surrogate pairs, which no UTF-8 can hold."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{what} {text!r} is not valid text") from error


def _mapping(record: dict[str, Any], name: str) -> dict[str, Any]:
    value = record.get(name, {} if name == "features" else None)
    if not isinstance(value, dict):
        raise InputError(f"{name} must be an object")
    return value


def _values(mapping: dict[str, Any], names: tuple[str, ...], what: str) -> list[Any]:
    """The values by name, in order; the names must be just these."""
    if mapping.keys() != set(names):
        different = ", ".join(sorted(map(repr, mapping.keys() ^ set(names))))
        raise InputError(f"{what} must have the same names in every line, but not all have {different}")
    return [mapping[name] for name in names]


def _numbers(values: Iterable[Any], what: str, least: float = -inf, most: float = _FLOAT32) -> list[Any]:
    """The values, checked to be numbers from `least` on whose size is at most `most`, as their array can hold."""
    numbers = list(values)
    low = max(least, -most)
    if numbers and not (_NUMERIC.issuperset(map(type, numbers)) and low <= min(numbers) and max(numbers) <= most):
        bad = next(value for value in numbers if type(value) not in _NUMERIC or not low <= value <= most)
        fault = "not a number" if type(bad) not in _NUMERIC else "negative" if -most <= bad < low else "not finite"
        raise InputError(f"{what} {bad!r:.60} is {fault}")
    return numbers


def _records(candidates: Candidates, docids: Ids, terms: TermStatistics) -> Iterator[dict[str, Any]]:
    """The lines of `candidates`, as `_Table` takes them."""
    documents, labels = docids.compact().tolist(), candidates.labels.tolist()
    words, idf = terms.terms.compact().tolist(), terms.idf.tolist()
    for q, qid in enumerate(candidates.qids.compact().tolist()):
        a, b = terms.offsets[q : q + 2].tolist()
        shared = {"qid": qid, "query": " ".join(words[a:b])}
        known = _of_collection(terms, a, b)
        for row in range(*candidates.offsets[q : q + 2].tolist()):
            record = {
                **shared,
                "docid": documents[row],
                "label": None if labels[row] != labels[row] else labels[row],
                "terms": words[a:b],
                "idf": idf[a:b],
                "tf": dict(zip(terms.fields, map(_plain, terms.of_row(row).T), strict=True)),
                "length": dict(zip(terms.fields, _plain(terms.length[row]), strict=True)),
            }
            record |= known
            if candidates.features is not None:
                record["features"] = dict(zip(candidates.feature_names, _plain(candidates.features[row]), strict=True))
            yield record


def _of_collection(terms: TermStatistics, a: int, b: int) -> dict[str, Any]:
    """What a line says of terms a:b in the query and in the collection: nothing of what is not known, or as usual."""
    known: dict[str, Any] = {}
    if (terms.count[a:b] != 1).any():
        known["count"] = _short(terms.count[a:b])
    if terms.collection is not None:
        known["collection"] = dict(zip(terms.fields, map(_short, terms.collection[a:b].T), strict=True))
    if terms.tokens is not None:
        known["tokens"] = dict(zip(terms.fields, _short(terms.tokens), strict=True))
    if terms.documents:
        known["documents"] = terms.documents
    return known


def _short(values: Floats) -> list[float]:
    return [int(value) if value.is_integer() else value for value in values.tolist()]


def _plain(values: Matrix) -> list[float]:
    """As Python numbers with the fewest digits that read back as the same: whole ones as int."""
    return [int(value) if value.is_integer() else float(str(np.float32(value))) for value in values.tolist()]
