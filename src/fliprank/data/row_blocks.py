"""Rows of any source as a stream of blocks, in which no query is cut in two: LETOR text, CSV, Parquet, frames.

A reader gives raw blocks, as many rows as it has read; `whole_queries` holds the last query of each back until it is
seen where it ends. All rows of a query must stand together: a stream can't bring them together.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp(), "rows.csv")
>>> _ = path.write_text("qid,label,bm25\\na,1,0.5\\na,0,2\\nb,1,3\\n")
>>> [block.labels.tolist() for block in whole_queries(csv_blocks(path, 1 << 20))]
[[1.0, 0.0], [1.0]]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.arrays import Bytes, Floats, Ints, Matrix
from fliprank.data.candidates import Candidates, column_ids
from fliprank.data.csr import bounds
from fliprank.data.files import read_chunks, resolve
from fliprank.data.ids import Ids, factorize
from fliprank.data.letor import UNJUDGED, Remarks, letor_tables
from fliprank.data.scattered import row_bytes
from fliprank.data.tables import Table, open_table
from fliprank.errors import InputError
from fliprank.forks import check_not_forked
from fliprank.kernels import kernel

__all__ = ["Block", "csv_blocks", "letor_blocks", "parquet_blocks", "whole_queries"]

OTHERS = ("qid", "docid", "label")
"""Columns that are no features."""
NEWLINE, QUOTE, SPACE = (ord(c) for c in '\n" ')


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows as they were read: each run of rows of one query by its id and size."""

    path: Path
    runs: Ids
    sizes: Ints
    labels: Floats
    docids: Ids | None
    features: Matrix
    names: tuple[str, ...] = ()

    def after(self, rest: Candidates) -> Block:
        """This block with the rows before it that were held back."""
        features = self.features
        assert rest.features is not None
        before = np.zeros((len(rest), features.shape[1]), np.float32)  # of text, a later block may be wider
        before[:, : rest.features.shape[1]] = rest.features
        if (rest.docids is None) != (self.docids is None):
            raise InputError("some rows have document ids, some have none", path=self.path, query=rest.qids[0])
        docids = None if self.docids is None or rest.docids is None else Ids.concat([rest.docids, self.docids])
        return Block(
            self.path,
            Ids.concat([rest.qids, self.runs]),
            np.concatenate([rest.sizes, self.sizes]),
            np.concatenate([rest.labels, self.labels]),
            docids,
            np.concatenate([before, features]),
            self.names,
        )

    def rows(self) -> Candidates:
        """The block as candidates; raises if the rows of a query stand apart."""
        numbers, first = factorize(self.runs)
        if (np.diff(numbers) < 0).any():
            back = int((np.diff(numbers) < 0).argmax()) + 1
            raise stands_apart(self.path, self.runs[back])
        sizes = np.bincount(numbers, self.sizes, len(first)).astype(np.int64)
        names = self.names or tuple(str(k + 1) for k in range(self.features.shape[1]))
        return Candidates(
            bounds(sizes), self.labels, self.runs.take(first).compact(), self.docids, self.features, names
        ).validated(str(self.path))


def stands_apart(path: Path, query: str) -> InputError:
    """The error for a query whose rows do not stand together."""
    hint = "sort the file by query: one that need not fit in memory is read from its beginning to its end, once"
    return InputError("its rows stand apart from each other", path=path, query=query, hint=hint)


def whole_queries(blocks: Iterator[Block]) -> Iterator[Candidates]:
    """The same rows, cut between queries only."""
    rest: Candidates | None = None
    for block in blocks:
        rows = (block if rest is None else block.after(rest)).rows()
        if rows.queries > 1:
            yield _with_own_ids(rows.select(np.arange(rows.queries - 1)))
        rest = _with_own_ids(rows.select([rows.queries - 1]))
    if rest is not None:
        yield rest


def _with_own_ids(rows: Candidates) -> Candidates:
    """The same rows; their ids no longer share the bytes of the block that they are from, which would be kept."""
    docids = None if rows.docids is None else rows.docids.compact()
    return replace(rows, qids=rows.qids.compact(), docids=docids)


def letor_blocks(
    path: Path, size: int, n_features: int | None = None, said: list[str] | None = None
) -> Iterator[Block]:
    """LETOR or SVMlight text; a label of -1 says that nobody judged the row.

    At the end, `said` gets the warnings that `read_letor` would give.
    """
    source = resolve(path)
    remarks = Remarks(source)
    for table in letor_tables(source, size, n_features):
        if not table.runs:
            hint = "each line begins: label qid:Q; fr.read_letor, which reads all at once, takes group sizes, too"
            raise InputError("no line has a qid", path=source, hint=hint)
        labels = np.concatenate(table.labels)
        remarks.judge(labels, UNJUDGED)
        remarks.note_clamped(table)
        docids = Ids.concat(table.docids) if table.docids else None
        runs, sizes = Ids.concat(table.runs), np.concatenate(table.run_sizes)
        yield Block(source, runs, sizes, labels, docids, table.flat.reshape(table.rows, table.width))
    if said is not None:
        said += remarks.lines()


def csv_blocks(path: Path, size: int) -> Iterator[Block]:
    """A table with columns qid, label, features by name and, if there are any, docid; an empty label: not judged.

    Lines whose cells are all empty are skipped.
    """
    check_not_forked()
    table = open_table(path)
    for name in ("qid", "label"):
        if name not in table.header:
            raise InputError(f"no column is called {name!r}", path=table.path, line=1, hint="qid, label and features")
    if "" in table.header:
        hint = "name it or leave it out; pandas writes its index so, but for to_csv(index=False)"
        raise InputError(f"column {table.header.index('') + 1} has no name", path=table.path, line=1, hint=hint)
    line = 1
    for chunk in read_chunks(table.path, max(1 << 12, min(size, 1 << 26) // 4)):
        lines = chunk.count(b"\n")
        begin = chunk.index(b"\n") + 1 if line == 1 else 0  # after the header
        block = _csv_block(table, chunk[begin:], line + (begin > 0))
        if block is not None:
            yield block
        line += lines


def _csv_block(table: Table, text: bytes, first: int) -> Block | None:
    """The rows in some lines of a table, of which `first` is the number of the first; None if all are empty."""
    import polars as pl

    cells = _count_cells(np.frombuffer(text, np.uint8), text.count(b"\n"), ord(table.separator))
    if (wrong := (cells != len(table.header)) & (cells != 0)).any():
        raise _wrong_cells(table, int(cells[wrong][0]), first + int(wrong.argmax()))
    if not cells.any():
        return None
    if not cells.all():
        text = b"\n".join([*compress(text.split(b"\n"), cells), b""])
    types = {name: pl.String if name in ("qid", "docid") else pl.Float64 for name in table.header}
    null = {name: "NULL" for name, kind in types.items() if kind == pl.Float64}  # an id may be called so
    try:
        frame = pl.read_csv(text, separator=table.separator, schema=types, has_header=False, null_values=null)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        where = f"in lines {first:,} to {first + len(cells) - 1:,}"
        said = str(error).partition("\n")[0]
        raise InputError(f"can't be read as a table, {where}: {said}", path=table.path) from error
    return block_of_frame(frame, Origin(table.path, lines=first + np.flatnonzero(cells)))


def _wrong_cells(table: Table, count: int, line: int) -> InputError:
    """The error for a line that has not as many cells as the header."""
    found = f"found {count}" if count > 0 else "found a quote that does not end"
    hint = f"the header begins {', '.join(table.header[:8])}"
    return InputError(f"expected {len(table.header)} cells, {found}", path=table.path, line=line, hint=hint)


@kernel
def _count_cells(text: Bytes, lines: int, separator: int) -> Ints:
    """How many cells each line has: 0 where all of them are empty, -1 where one begins with a quote and does not end.

    Polars takes a line with too few for one whose last cells are empty.
    """
    out, line, cells, quoted, empty = np.zeros(lines, np.int64), 0, 1, False, True
    for byte in text:
        if byte == NEWLINE:
            out[line] = -1 if quoted else 0 if empty else cells
            line, cells, quoted, empty = line + 1, 1, False, True
        elif byte == QUOTE:  # one that is written twice is no end: it begins anew
            quoted = not quoted
        elif byte == separator and not quoted:
            cells += 1
        elif byte > SPACE:
            empty = False
    return out


def parquet_blocks(path: Path, size: int) -> Iterator[Block]:
    """A Parquet file with the columns that `read_parquet` takes."""
    import polars as pl

    check_not_forked()
    source = Path(path)
    if not source.is_file():
        raise InputError("is a folder, not a file" if source.is_dir() else "no such file", path=source)
    try:
        scan = pl.scan_parquet(source, glob=False)
        width, total = len(scan.collect_schema()), int(scan.select(pl.len()).collect().item())
        step = max(1, size // row_bytes(width))
        for begin in range(0, total, step):
            yield block_of_frame(scan.slice(begin, step).collect(), Origin(source, begin))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise InputError(f"can't be read as Parquet: {error}", path=source) from error


@dataclass(frozen=True)
class Origin:
    """Where the rows of a frame stand: in these lines of a text, or in a table from row `first` on."""

    path: Path
    first: int = 0
    lines: Ints | None = None

    def error(self, message: str, row: int) -> InputError:
        """The error for a row of the frame, which names its place in the file."""
        if self.lines is not None:
            return InputError(message, path=self.path, line=int(self.lines[row]))
        return InputError(f"{message}, in row {self.first + row:,} (from 0)", path=self.path)


def block_of_frame(frame: Any, origin: Origin) -> Block:
    """Some rows of a polars frame."""
    path = origin.path
    for name in ("qid", "label"):
        if name not in frame.columns:
            raise InputError(f"no column is called {name!r}", path=path, hint=f"it has {', '.join(frame.columns[:8])}")
    names = tuple(name for name in frame.columns if name not in OTHERS and frame[name].dtype.is_numeric())
    matrix = np.empty((len(frame), len(names)), np.float32)
    try:
        with np.errstate(over="ignore"):  # beyond float32 is infinite, and refused below
            for k, name in enumerate(names):
                matrix[:, k] = frame[name].to_numpy()
        labels = np.asarray(frame["label"].to_numpy(), np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"a column is not numeric: {error}", path=path) from error
    if (infinite := np.isinf(labels) | np.isinf(matrix).any(axis=1)).any():
        raise origin.error("a label or feature is infinite, or beyond single precision", int(infinite.argmax()))
    for name in ("qid", "docid"):
        if name in frame.columns and frame[name].null_count():
            raise origin.error(f"column {name!r} has no value", int(frame[name].is_null().arg_max() or 0))
    runs = frame["qid"].rle().struct.unnest()
    docids = column_ids(frame, "docid").compact() if "docid" in frame.columns else None
    return Block(
        path,
        column_ids(runs, "value").compact(),
        runs["len"].to_numpy().astype(np.int64),
        labels,
        docids,
        matrix,
        names,
    )
