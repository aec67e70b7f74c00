"""Models of term statistics: what BM25F and the language models have in common.

Such a model knows its fields and, for each field, what it needs to know about the collection (its average length). Both
come from the training rows where the user leaves them open, and both are saved with the model. `term_rows` gives the
arrays that kernels read: they are built once per `Candidates` and kept in its memo. Rows are processed in chunks whose
number depends on the number of rows alone, so that sums are the same with any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats, Int32s, Ints, Matrix, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.term_statistics import TermStatistics
from fliprank.errors import InputError, UsageError
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.models.folder import Record

__all__ = [
    "Lines",
    "Place",
    "at",
    "average_lengths",
    "field_columns",
    "field_names",
    "hstack_lines",
    "no_lines",
    "restored_fields",
    "statistics_of",
    "term_rows",
]


class Lines(NamedTuple):
    """What kernels read. A row owns lines `starts[row]:starts[row + 1]` of `tf`: one per query term, whose number is in
    `term`. Lines of terms that a document has in no field are left out where they count for nothing.

    A column of `tf`, `length` and `background` (P(t|C), for language models) is a field. A column of `weight` belongs
    to one text function and says how much it counts each query term: BM25 by idf x times in the query, a language
    model by the times in the query, 0 where it leaves the term out.
    """

    term: Int32s
    weight: Floats
    background: Floats
    starts: Ints
    tf: Matrix
    length: Matrix


class Place(NamedTuple):
    """Where a text function finds its own: its first entry of theta, its column of `weight`, its columns of fields."""

    theta: int
    weight: int
    column: int
    fields: int


@kernel
def at(first: int, offset: int) -> int:
    """The index first + offset, unsigned: Numba then does not ask, at every access, whether it counts from the end."""
    return np.uint64(first + offset)  # type: ignore[return-value]


def statistics_of(candidates: Candidates) -> TermStatistics:
    """The term statistics of these candidates; raises if there are none, or if they belong to other rows."""
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


def term_rows(candidates: Candidates, fields: tuple[str, ...], joined: bool = False, *, absent: bool = False) -> Lines:
    """The statistics of these fields, in this order; `joined`: as one field, with tf and lengths added up.

    `absent`: with a line for each query term, whether the document has it or not, as language models need it. Most
    lines are of that kind: without them BM25 is three times as fast.
    """
    key = ("term rows", fields, joined, absent)
    if key not in candidates.memo:
        candidates.memo[key] = _term_rows(candidates, statistics_of(candidates), fields, joined, absent)
    found: Lines = candidates.memo[key]
    return found


def _term_rows(
    candidates: Candidates, terms: TermStatistics, fields: tuple[str, ...], joined: bool, absent: bool
) -> Lines:
    columns = field_columns(terms, fields)
    if ("lines", absent) not in candidates.memo:
        candidates.memo["lines", absent] = _lines_of(candidates, terms, absent)
    starts, term, tf = candidates.memo["lines", absent]
    length = terms.length
    if fields != terms.fields:
        tf, length = tf[:, columns], length[:, columns]
    if joined and len(fields) != 1:
        tf, length = tf.sum(axis=1, keepdims=True), length.sum(axis=1, keepdims=True)
    return Lines(
        term,
        frozen((terms.idf * terms.count)[:, None], np.float64),
        frozen(np.empty((0, tf.shape[1])), np.float64),
        starts,
        frozen(tf, np.float32),
        frozen(length, np.float32),
    )


def _lines_of(candidates: Candidates, terms: TermStatistics, absent: bool) -> tuple[Ints, Int32s, Matrix]:
    """Starts, terms and tf of the lines, with all fields."""
    first = np.repeat(terms.offsets[:-1], candidates.sizes)
    starts = terms.starts if absent else bounds(_present(terms.starts, terms.tf))
    term, tf = np.empty(starts[-1], np.int32), np.empty((starts[-1], len(terms.fields)), np.float32)
    _copy_lines(terms.starts, first, terms.tf, starts, term, tf)
    return frozen(starts, np.int64), frozen(term, np.int32), terms.tf if absent else frozen(tf, np.float32)


@kernel
def _has_any(tf: Matrix, line: int) -> bool:
    for field in range(tf.shape[1]):
        if tf[line, field] > 0.0:
            return True
    return False


@parallel_kernel
def _present(starts: Ints, tf: Matrix) -> Ints:
    """How many lines of each row are of terms that the document has."""
    out = np.zeros(len(starts) - 1, np.int64)
    for row in prange(len(out)):
        for line in range(starts[row], starts[row + 1]):
            out[row] += _has_any(tf, line)
    return out


@parallel_kernel
def _copy_lines(starts: Ints, first: Ints, tf: Matrix, kept: Ints, term: Int32s, out: Matrix) -> None:
    """The terms and tf of the lines that are kept: all of a row, or those of terms that the document has."""
    for row in prange(len(first)):
        place, every = kept[row], kept[row + 1] - kept[row] == starts[row + 1] - starts[row]
        for line in range(starts[row], starts[row + 1]):
            if every or _has_any(tf, line):
                term[place] = first[row] + line - starts[row]
                for field in range(tf.shape[1]):
                    out[place, field] = tf[line, field]
                place += 1


def no_lines() -> Lines:
    """For kernels that read term statistics where there are none to read."""
    empty, ints = np.empty((0, 0)), frozen([], np.int64)
    floats, singles = frozen(empty, np.float64), frozen(empty, np.float32)
    return Lines(frozen([], np.int32), floats, floats, ints, singles, singles)


def hstack_lines(parts: Sequence[Lines]) -> Lines:
    """The lines of several text functions side by side: the columns of one function, then those of the next."""
    if len(parts) == 1:
        return parts[0]
    fullest = max(parts, key=lambda part: len(part.tf))
    terms = len(fullest.weight)
    filled = [part.background if len(part.background) else np.zeros((terms, part.tf.shape[1])) for part in parts]
    return fullest._replace(
        weight=frozen(np.hstack([part.weight for part in parts]), np.float64),
        background=frozen(np.hstack(filled), np.float64),
        tf=frozen(np.hstack([_aligned(part, fullest) for part in parts]), np.float32),
        length=frozen(np.hstack([part.length for part in parts]), np.float32),
    )


def _aligned(part: Lines, fullest: Lines) -> Matrix:
    """The tf of `part` on the lines of one that has all of them: 0 on those that it left out."""
    if len(part.tf) == len(fullest.tf):
        return part.tf
    rows = np.repeat(np.arange(len(part.starts) - 1), np.diff(part.starts))
    first = fullest.starts[:-1][rows]
    tf = np.zeros((len(fullest.tf), part.tf.shape[1]), np.float32)
    tf[first + part.term - fullest.term[first]] = part.tf
    return tf


def field_columns(terms: TermStatistics, fields: tuple[str, ...]) -> list[int]:
    """The columns of these fields; the error names those that are missing."""
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
    """The fields of a saved model, and what the file says about each."""
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
