"""Models of term statistics: what BM25F and the language models have in common.

Such a model knows its fields, and of each what it must know of the collection (its average length); both are settled by
the training rows where the user leaves them open, and travel inside the model. `term_rows` gives the arrays that
kernels read: counted once for each `Candidates` and kept in its memo. Rows are worked on in chunks that depend on their
number alone, so that sums are the same with any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats, Ints, Matrix, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.term_statistics import TermStatistics
from fliprank.errors import InputError, UsageError
from fliprank.models.folder import Record
from fliprank.models.standardised import chunks_of

__all__ = [
    "Lines",
    "TermRows",
    "average_lengths",
    "field_columns",
    "field_names",
    "restored_fields",
    "statistics_of",
    "term_rows",
]


class Lines(NamedTuple):
    """What kernels read: For each query term `times`, how often it stands in its query, and `weight`, idf x times."""

    offsets: Ints
    term_offsets: Ints
    weight: Floats
    times: Floats
    starts: Ints
    tf: Matrix
    length: Matrix


@dataclass(frozen=True, eq=False)
class TermRows:
    """Term statistics of some fields. Chunk c is rows `cuts[c]:cuts[c + 1]`, the first of them of query `query[c]`."""

    lines: Lines
    cuts: Ints
    query: Ints

    @property
    def chunks(self) -> int:
        """How many there are."""
        return len(self.query)


def statistics_of(candidates: Candidates) -> TermStatistics:
    """The term statistics of these candidates: an error where there are none, or where they are of other rows."""
    terms = candidates.terms
    if terms is None:
        raise InputError(
            "these candidates have no term statistics",
            hint="read them from a file of term statistics, or take them from an index",
        )
    if "term statistics fit" not in candidates.memo:
        counts = np.diff(terms.offsets)
        if len(counts) != candidates.queries:
            raise InputError(f"term statistics of {len(counts)} queries for {candidates.queries} queries")
        if not np.array_equal(np.diff(terms.starts), np.repeat(counts, candidates.sizes)):
            raise InputError("a row has not as many lines of tf as its query has terms")
        for name in ("tf", "length", "idf"):
            values = getattr(terms, name)
            if not np.isfinite(values).all() or (name != "idf" and (values < 0).any()):
                raise InputError(f"term statistics: {name} has a number that is negative or not finite")
        candidates.memo["term statistics fit"] = True
    return terms


def term_rows(candidates: Candidates, fields: tuple[str, ...], joined: bool = False) -> TermRows:
    """The statistics of these fields, in this order; `joined`: of these as one field, tf and length added up."""
    key = ("term rows", fields, joined)
    if key not in candidates.memo:
        candidates.memo[key] = _term_rows(candidates, statistics_of(candidates), fields, joined)
    found: TermRows = candidates.memo[key]
    return found


def _term_rows(candidates: Candidates, terms: TermStatistics, fields: tuple[str, ...], joined: bool) -> TermRows:
    columns = field_columns(terms, fields)
    tf, length = terms.tf, terms.length
    if fields != terms.fields:
        tf, length = tf[:, columns], length[:, columns]
    if joined and len(fields) != 1:
        tf, length = tf.sum(axis=1, keepdims=True), length.sum(axis=1, keepdims=True)
    rows, chunks = len(candidates), chunks_of(len(candidates))
    cuts = rows * np.arange(chunks + 1) // chunks
    query = np.searchsorted(candidates.offsets, cuts[:-1], "right") - 1
    lines = Lines(
        candidates.offsets,
        terms.offsets,
        frozen(terms.idf * terms.count, np.float64),
        terms.count,
        terms.starts,
        frozen(tf, np.float32),
        frozen(length, np.float32),
    )
    return TermRows(lines, frozen(cuts, np.int64), frozen(query, np.int64))


def field_columns(terms: TermStatistics, fields: tuple[str, ...]) -> list[int]:
    """Where these fields stand; an error that names those that are missing."""
    missing = [name for name in fields if name not in terms.fields]
    if missing:
        raise InputError(
            f"the model needs fields that these candidates lack: {', '.join(missing)}",
            hint=f"they have {', '.join(terms.fields)}",
        )
    return [terms.fields.index(name) for name in fields]


def average_lengths(train: Candidates, fields: tuple[str, ...], joined: bool) -> Floats:
    """The average length of each field (`joined`: of all as one): of the collection where known, else of these rows."""
    terms = statistics_of(train)
    columns = field_columns(terms, fields)
    if terms.tokens is not None and terms.documents:
        average = terms.tokens[columns] / terms.documents
    elif len(train):
        average = terms.length[:, columns].mean(axis=0, dtype=np.float64)
    else:
        raise InputError("nothing to learn from: 0 rows, and a collection of unknown size")
    return average.sum(keepdims=True) if joined else average


def restored_fields(structure: Record) -> tuple[tuple[str, ...], list[Record]]:
    """The fields of a saved model, and what it says of each."""
    records = structure.records("fields")
    if not records:
        structure.fail("fields", "at least one field")
    return tuple(entry.text("name") for entry in records), records


def field_names(fields: object) -> tuple[str, ...] | None:
    """The fields that a user named: one, several, or None, which leaves them to the training rows."""
    if fields is None:
        return None
    names = (fields,) if isinstance(fields, str) else tuple(fields) if isinstance(fields, (list, tuple)) else ()
    if not names or not all(isinstance(name, str) and name for name in names):
        raise UsageError(f"fields: expected the names of fields, got {fields!r:.60}")
    if len(set(names)) < len(names):
        raise UsageError(f"fields: {next(name for i, name in enumerate(names) if name in names[:i])!r} is named twice")
    return names
