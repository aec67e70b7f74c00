"""LETOR and SVMlight files: `label qid:Q 1:v 2:v ... #docid = D`, one row per line, dense or sparse, plain or gzipped.

The label -1 stands for "not judged", as in LETOR's semi-supervised files and in what `write_letor` writes.

Read in chunks of whole lines, whose rows are parsed in parallel straight into the one float32 matrix; that matrix grows
in place, so little more than it is ever held. What was parsed is kept in the user's cache folder and memory-mapped the
next time.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.txt"
>>> _ = path.write_text("2 qid:7 1:0.5 3:1 # d1\\n0 qid:7 2:4 # d2\\n")
>>> rows = read_letor(path)
>>> rows.qids.tolist(), rows.docids.tolist(), rows.labels.tolist(), rows.features.tolist()
(['7'], ['d1', 'd2'], [2.0, 0.0], [[0.5, 0.0, 1.0], [0.0, 4.0, 0.0]])
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from fliprank.arrays import Bytes, Floats, Ints, Matrix
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.files import StrPath, atomic_write, read_bytes, read_chunks, resolve
from fliprank.data.ids import Ids, factorize
from fliprank.data.letor_lines import (
    CLAMPED,
    CODE,
    DEFECTS,
    DOCID,
    DOCID_STOP,
    HASH,
    MOST_FEATURES,
    NEWLINE,
    QID,
    QID_STOP,
    RAGGED_DOCID,
    RAGGED_QID,
    SPOT,
    USUAL_FEATURES,
    WIDEST,
    Options,
    Parsed,
    find_rows,
    parse_row,
    parse_rows,
    widen,
    word_end,
)
from fliprank.data.scattered import row_bytes
from fliprank.data.store import cached, content_digest
from fliprank.errors import InputError, UsageError
from fliprank.forks import check_not_forked

__all__ = ["Remarks", "cache_key", "letor_tables", "read_letor", "write_letor"]

Missing = Literal["error", "min", "zero", "nan"]

CHUNK = 1 << 20
LINE = "a line is: label qid:Q 1:v 2:v ... #docid = D"
BLANKS = " \t\n\v\f\r"
FORMAT = "letor 2"
"""Goes up when the same file is to give other candidates: what older versions cached is then parsed again."""
BINARY = (
    "{path}: all labels are -1 or 1; the {count:,} rows labelled -1 were taken as not judged (if they are judged not "
    "relevant, write 0, or read_letor(..., unjudged=None))"
)
FEW = 16
SMALL, SPARSEST = 1 << 29, 128
"""A matrix of this size is always made; a larger one only if it takes at most so many times the bytes of its text."""
UNJUDGED = -1.0
"""The label of a row that nobody judged."""


@checked
def read_letor(
    path: StrPath,
    *,
    unjudged: float | None = UNJUDGED,
    missing: Missing = "error",
    n_features: int | None = None,
    cache: bool = True,
) -> Candidates:
    """Read a LETOR or SVMlight file; where its lines have no qid, group sizes come from `<file>.query`.

    Rows with the label `unjudged` (-1) were not judged and get the label NaN; `unjudged=None` takes every label as it
    stands. A file whose only labels are -1 and 1 may follow SVMlight's binary convention, in which -1 is a judgement:
    a warning says how it was read. `missing` says what a value NULL or nan stands for: an error, the smallest value of
    that feature in the same query (as in LETOR's own normalisation; 0 where there is none), zero, or NaN. Features are
    numbered from 1; `n_features` fixes how many there are (up to 1,000,000), otherwise the largest index does (up to
    20,000). A value too large for float32 becomes the largest float32, with a warning.
    """
    if missing not in ("error", "min", "zero", "nan"):
        raise UsageError(f"missing must be error, min, zero or nan, not {missing!r}")
    if n_features is not None and not 0 < n_features <= MOST_FEATURES:
        raise UsageError(f"n_features must be from 1 to {MOST_FEATURES:,}, not {n_features}")
    source = resolve(path)
    sizes = source.with_name(source.name.removesuffix(".gz") + ".query")

    def parse() -> tuple[Candidates, str]:
        return _parse(source, sizes, unjudged, missing, n_features)

    key = cache_key(sizes, unjudged, missing, n_features)
    rows, warning = cached(source, key, parse) if cache else parse()
    for line in warning.splitlines():
        warnings.warn(line, UserWarning, stacklevel=3)  # where `checked` was called
    return rows


def cache_key(sizes: Path, unjudged: float | None, missing: str, n_features: int | None) -> str:
    """What tells apart the rows that different options make of one file; `sizes` is its side file of group sizes."""
    return f"{FORMAT} {unjudged!r} {missing} {n_features} {content_digest(sizes) if sizes.is_file() else None}"


@checked
def write_letor(path: StrPath, candidates: Candidates, *, unjudged: float | None = UNJUDGED) -> None:
    """Write candidates as a LETOR file, gzipped for a name in .gz; `read_letor` gives the same labels, ids, features.

    All features are written, in as few digits as tell each float32 from its neighbours. An unjudged row gets the label
    `unjudged` (-1), which no judged row may have; with `unjudged=None` there may be no unjudged row. The format has no
    place for missed labels, feature names and term statistics.
    """
    import polars as pl  # takes longer to import than most files to read

    check_not_forked()
    judged = ~np.isnan(candidates.labels)
    if unjudged is None and not judged.all():
        raise InputError("some rows are not judged, and unjudged=None leaves no label for them", path=path)
    if unjudged is not None and (candidates.labels == unjudged).any():
        hint = "write_letor and read_letor with unjudged=None take every label as it stands"
        raise InputError(f"label {unjudged:g} stands for unjudged rows, but some are judged so", path=path, hint=hint)
    qid = pl.Series([f" qid:{word}" for word in _words(candidates.qids, "query", BLANKS + "#", path)], dtype=pl.String)
    docids = None if candidates.docids is None else _words(candidates.docids, "document", BLANKS, path)
    levels, level_of_row = np.unique(np.where(judged, candidates.labels, unjudged or 0.0), return_inverse=True)
    label = pl.Series(levels, dtype=pl.Float64).cast(pl.String).str.strip_suffix(".0")
    query_of_row, matrix = candidates.query_of_rows(), candidates.features
    width = 0 if matrix is None else matrix.shape[1]
    index = pl.Series([f" {i + 1}:" for i in range(width)], dtype=pl.String)
    step = max(1, (1 << 19) // max(1, width))
    with atomic_write(path) as file:
        for low in range(0, len(candidates), step):
            rows = slice(low, low + step)
            line = label.gather(level_of_row[rows]) + qid.gather(query_of_row[rows])
            if matrix is not None and width:
                values = pl.Series(matrix[rows].reshape(-1)).cast(pl.String).str.strip_suffix(".0")
                named = index.gather(np.tile(np.arange(width), len(line))) + values
                line += named.reshape((len(line), width)).arr.join("")
            if docids is not None:
                line += pl.Series([f" #docid = {docid}" for docid in docids[rows]])
            file.write("\n".join([*line, ""]).encode())


def _words(ids: Ids, kind: str, breaks: str, path: StrPath) -> list[str]:
    """The ids as strings; raises if one would not be read back as it is."""
    for text in (words := ids.tolist()):
        if not text or not set(breaks).isdisjoint(text):
            raise InputError(f"{kind} id {text!r} can't be written", path=path, hint="an id has no blanks, a qid no #")
    return words


# Parsing a file


@dataclass
class _Table:
    """The rows read so far: a flat matrix that grows in place, and what else each chunk gave."""

    path: Path
    width: int
    rows: int = 0
    flat: Matrix = field(default_factory=lambda: np.empty(0, np.float32))
    labels: list[Floats] = field(default_factory=list)
    runs: list[Ids] = field(default_factory=list)
    run_sizes: list[Ints] = field(default_factory=list)
    docids: list[Ids] = field(default_factory=list)
    clamped: int = 0
    clamped_line: int = 0
    bytes: int = 0
    """Of the text that was read so far."""
    sparsest: int | None = SPARSEST

    def resize(self, rows: int, width: int, line: int) -> Matrix:
        """Make room for `rows` in all, of at least `width` features: gives the part after the rows that are there.

        Reallocating a large block moves pages, not bytes: the matrix is never held twice.
        """
        width = max(width, self.width)
        if self.sparsest is not None and 4 * rows * width > max(SMALL, self.sparsest * self.bytes):
            message = (
                f"feature {width:,}: {rows:,} rows of so many would take {4 * rows * width >> 20:,} MiB, nearly all 0"
            )
            hint = f"if that is meant: --n-features {width}, or read_letor(..., n_features={width})"
            raise InputError(message, path=self.path, line=line, hint=hint)
        try:
            if 4 * rows * width > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
                raise MemoryError
            self.flat.resize(rows * width, refcheck=False)
        except MemoryError:
            message = f"{width:,} features, which makes {rows:,} rows too large for the memory of this machine"
            raise InputError(message, path=self.path, line=line) from None
        if width > self.width:
            widen(self.flat, self.rows, self.width, width)
            self.width = width
        return self.flat[self.rows * width :].reshape(rows - self.rows, width)


@dataclass
class Remarks:
    """What a reader warns of at the end of a file, gathered table by table."""

    path: Path
    levels: set[float] = field(default_factory=set)
    """Labels, among which is one that is neither -1 nor 1 if any is."""
    unjudged: int = 0
    clamped: int = 0
    clamped_line: int = 0

    def judge(self, labels: Floats, unjudged: float | None) -> None:
        """Set the labels to NaN that say that nobody judged a row, and note how they look."""
        if unjudged is None:
            return
        unlabelled = labels == unjudged
        if unjudged == UNJUDGED:
            self.levels.update(np.unique(labels)[:3].tolist())  # of any three, one is neither -1 nor 1
        self.unjudged += int(unlabelled.sum())
        labels[unlabelled] = np.nan

    def note_clamped(self, table: _Table) -> None:
        """Note the values of a table that were cut to the range of float32."""
        if not self.clamped:
            self.clamped_line = table.clamped_line
        self.clamped += table.clamped

    def lines(self) -> list[str]:
        """The warnings."""
        said = []
        if self.levels == {-1.0, 1.0}:
            said.append(BINARY.format(path=self.path, count=self.unjudged))
        if self.clamped:
            first = f"{self.path}, line {self.clamped_line}"
            said.append(f"{first}: the first of {self.clamped:,} values cut to the range of float32")
        return said


def _parse(
    source: Path, sizes: Path, unjudged: float | None, missing: Missing, n_features: int | None
) -> tuple[Candidates, str]:
    """The candidates of a file, and warnings, one per line."""
    table = _Table(source, n_features or 0, sparsest=SPARSEST if n_features is None else None)
    for chunk, line in _chunks(source):
        _add_chunk(table, chunk, line, missing, n_features)
    if not table.rows:
        raise InputError("the file has no rows", path=source, hint=LINE)
    offsets, qids, order = _group(table) if table.runs else _read_groups(sizes, source, table.rows)
    labels, remarks = np.concatenate(table.labels), Remarks(source)
    remarks.judge(labels, unjudged)
    remarks.note_clamped(table)
    docids = Ids.concat(table.docids) if table.docids else None
    features = table.flat.reshape(table.rows, table.width)
    if order is not None:
        labels, features = labels[order], features[order]
        docids = None if docids is None else docids.take(order)
    if missing == "min":
        _fill_minimum(features, offsets)
    rows = Candidates(offsets, labels, qids, docids, features if table.width else None).validated(str(source))
    return rows, "\n".join(remarks.lines())


def letor_tables(source: Path, size: int, n_features: int | None = None) -> Iterator[_Table]:
    """The rows of a file in tables of about `size` bytes, each as wide as those before or wider.

    The last query of a table may go on in the next one.
    """
    table, sparsest = _Table(source, n_features or 0), SPARSEST if n_features is None else None
    table.sparsest = sparsest
    for chunk, line in _chunks(source):
        _add_chunk(table, chunk, line, "error", n_features)
        if table.rows * row_bytes(table.width) >= size:
            yield table
            table = _Table(source, table.width, sparsest=sparsest)
    if table.rows:
        yield table


def _chunks(source: Path) -> Iterator[tuple[bytes, int]]:
    """Chunks of whole lines, and the number of the first line of each."""
    line = 1
    for chunk in read_chunks(source, CHUNK):
        yield chunk, line
        line += chunk.count(b"\n")


def _add_chunk(table: _Table, chunk: bytes, line: int, missing: Missing, n_features: int | None) -> None:
    buffer = np.frombuffer(chunk, np.uint8)
    table.bytes += len(chunk)
    starts, lines = find_rows(buffer, np.flatnonzero(buffer == NEWLINE))
    if len(starts):
        _add_rows(table, buffer, starts, lines + line, missing, n_features or USUAL_FEATURES)


def _add_rows(table: _Table, buffer: Bytes, starts: Ints, lines: Ints, missing: Missing, limit: int) -> None:
    """Parse the rows at `starts` of a chunk into the table; `lines` are their line numbers."""
    options = Options(0.0 if missing == "zero" else np.nan, missing == "error", limit)
    labels, facts, fits = np.empty(len(starts)), np.zeros((len(starts), 8), np.int64), False
    for r in range(0 if table.rows else min(FEW, len(starts))):  # these nearly always tell how many features there are
        parse_row(buffer, starts[r], table.flat, options, Parsed(labels, facts), r)
    while not fits:  # where they do not, the chunk is parsed again
        widest = facts[:, WIDEST]
        matrix = table.resize(table.rows + len(starts), int(widest.max()), int(lines[widest.argmax()]))
        facts = np.zeros_like(facts)
        parse_rows(buffer, starts, matrix, options, Parsed(labels, facts))
        fits = facts[:, WIDEST].max() <= table.width
    _check_rows(table, buffer, lines, facts, limit)
    table.rows += len(starts)
    table.labels.append(labels)
    if not table.clamped:
        table.clamped_line = int(lines[(facts[:, CLAMPED] > 0).argmax()])
    table.clamped += int(facts[:, CLAMPED].sum())
    if facts[0, QID_STOP]:
        ids = Ids(buffer, facts[:, QID], facts[:, QID_STOP] - facts[:, QID])
        first = np.flatnonzero(np.diff(factorize(ids)[0], prepend=-1))
        table.runs.append(ids.take(first).compact())
        table.run_sizes.append(np.diff(first, append=len(starts)))
    if facts[0, DOCID_STOP]:
        table.docids.append(Ids(buffer, facts[:, DOCID], facts[:, DOCID_STOP] - facts[:, DOCID]).compact())


def _check_rows(table: _Table, buffer: Bytes, lines: Ints, facts: Ints, limit: int) -> None:
    """Raise the error of the first row that has one."""
    codes = facts[:, CODE]
    for column, before, code in ((QID_STOP, table.runs, RAGGED_QID), (DOCID_STOP, table.docids, RAGGED_DOCID)):
        expected = bool(before) if table.rows else facts[0, column] > 0
        codes[(codes == 0) & ((facts[:, column] > 0) != expected)] = code
    row = int((codes > 0).argmax())
    if code := int(codes[row]):
        spot = int(facts[row, SPOT])
        token = buffer[spot : word_end(buffer, spot, HASH)].tobytes()[:60].decode(errors="replace")
        message = DEFECTS[code].format(token=token, limit=f"{limit:,}")
        raise InputError(message, path=table.path, line=int(lines[row]), hint=LINE)


def _group(table: _Table) -> tuple[Ints, Ids, Ints | None]:
    """Offsets, query ids, and the rows in grouped order (None where they stand so already)."""
    runs, run_sizes = Ids.concat(table.runs), np.concatenate(table.run_sizes)
    numbers, first = factorize(runs)
    offsets = bounds(np.bincount(numbers, run_sizes).astype(np.int64))
    grouped = (np.diff(numbers) >= 0).all()
    return offsets, runs.take(first), None if grouped else np.argsort(np.repeat(numbers, run_sizes), kind="stable")


def _read_groups(path: Path, source: Path, rows: int) -> tuple[Ints, Ids, None]:
    """The same from the side file: the number of rows of each query, one per line."""
    if not path.is_file():
        hint = (
            f"start each line with: label qid:Q, or write the rows of each query, one number per line, to {path.name}"
        )
        raise InputError("no line has a qid", path=source, hint=hint)
    sizes = []
    for line, word in enumerate(read_bytes(path).tobytes().split(b"\n"), 1):
        if text := word.strip().decode():
            if not text.isdecimal() or not text.isascii() or len(text) > 15:
                raise InputError(f"expected the number of rows of a query, found {text[:60]!r}", path=path, line=line)
            sizes.append(int(text))
    if sum(sizes) != rows:
        raise InputError(f"the sizes add up to {sum(sizes):,}, but {source.name} has {rows:,} rows", path=path)
    return bounds(np.array(sizes)), Ids.of(range(1, len(sizes) + 1)), None


def _fill_minimum(features: Matrix, offsets: Ints) -> None:
    """Replace NaN by the smallest value of the same feature in the same query, or by 0."""
    sizes = np.diff(offsets)
    for column in features.T:
        missing = np.isnan(column)
        if missing.any():
            lowest = np.nan_to_num(np.fmin.reduceat(column, offsets[:-1][sizes > 0]))
            column[missing] = np.repeat(lowest, sizes[sizes > 0])[missing]
