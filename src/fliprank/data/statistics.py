"""Term statistics as JSON lines: one line a pair of query and document, with all that BM25F needs to score it.

A line holds `qid`, `docid`, `label` (null or absent: unjudged), `terms` and their `idf`, `tf` (for each field the
frequency of each term), `length` (of each field) and, where there are any, `features` by name.

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

from fliprank.arrays import Matrix
from fliprank.data.beir import json_objects
from fliprank.data.candidates import Candidates, group_rows
from fliprank.data.files import StrPath, atomic_write
from fliprank.data.ids import Ids
from fliprank.data.spans import bounds
from fliprank.data.terms import TermStatistics
from fliprank.errors import InputError, UsageError

__all__ = ["read_statistics", "write_statistics"]

_NUMERIC = {int, float}
_FLOAT32, _FLOAT64 = float(np.finfo(np.float32).max), float(np.finfo(np.float64).max)


def read_statistics(path: StrPath) -> Candidates:
    """Candidates with term statistics, document ids and features; lines of a query need not be together.

    All lines must have the same fields and features, all lines of a query the same terms and idf.
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


@dataclass
class _Table:
    """The rows read so far, in lists; the first row settles which fields and features there are."""

    fields: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    queries: dict[bytes, tuple[list[Any], list[Any], set[bytes]]] = field(default_factory=dict)
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
        terms, idf = record.get("terms"), record.get("idf")
        if qid not in self.queries:
            self.queries[qid] = *_checked_terms(terms, idf), set()
        known_terms, known_idf, documents = self.queries[qid]
        if terms != known_terms or idf != known_idf:
            raise InputError("terms or idf differ from those of the query's first line")
        if docid in documents:
            raise InputError(f"document {docid.decode()} occurs twice")
        documents.add(docid)
        tf, length, features = (_mapping(record, name) for name in ("tf", "length", "features"))
        if not tf:
            raise InputError("tf has no fields")
        if not self.qid:
            _check_text("name", (*tf, *features))
            self.fields, self.names = tuple(tf), tuple(features)
        columns = _values(tf, self.fields, "tf")
        for name, column in zip(self.fields, columns, strict=True):
            if not isinstance(column, list) or len(column) != len(known_terms):
                raise InputError(f"tf of {name!r} must be a list of {len(known_terms)} numbers, one for each term")
        self.tf += _numbers(chain.from_iterable(zip(*columns, strict=True)), "tf", least=0.0)
        self.length += _numbers(_values(length, self.fields, "length"), "length", least=0.0)
        self.features += _numbers(_values(features, self.names, "features"), "feature")
        label = record.get("label")
        self.label += [nan] if label is None else _numbers([label], "label", most=_FLOAT64)
        self.qid.append(qid)
        self.docid.append(docid)
        self.sizes.append(len(known_terms))

    def candidates(self) -> Candidates:
        """The rows as candidates, brought together by query."""
        offsets, order = group_rows(self.qid)
        rows, queries = len(self.qid), self.queries.values()
        terms = TermStatistics(
            self.fields,
            bounds(np.array([len(each[0]) for each in queries])),
            Ids.of(chain.from_iterable(each[0] for each in queries)),
            np.array([value for each in queries for value in each[1]], np.float64),
            bounds(np.array(self.sizes)),
            np.array(self.tf, np.float32).reshape(-1, len(self.fields)),
            np.array(self.length, np.float32).reshape(-1, len(self.fields)),
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
            if candidates.features is not None:
                record["features"] = dict(zip(candidates.feature_names, _plain(candidates.features[row]), strict=True))
            yield record


def _plain(values: Matrix) -> list[float]:
    """As Python numbers with the fewest digits that read back as the same: whole ones as int."""
    return [int(value) if value.is_integer() else float(str(np.float32(value))) for value in values.tolist()]
