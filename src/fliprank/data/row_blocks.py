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
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.arrays import Floats, Ints, Matrix
from fliprank.data.candidates import Candidates, column_ids
from fliprank.data.csr import bounds
from fliprank.data.files import read_chunks, resolve
from fliprank.data.ids import Ids, factorize
from fliprank.data.letor import UNJUDGED, letor_tables
from fliprank.data.scattered import row_bytes
from fliprank.data.tables import open_table
from fliprank.errors import InputError
from fliprank.forks import check_not_forked

__all__ = ["Block", "csv_blocks", "letor_blocks", "parquet_blocks", "whole_queries"]

OTHERS = ("qid", "docid", "label")
"""Columns that are no features."""


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


def letor_blocks(path: Path, size: int, n_features: int | None = None) -> Iterator[Block]:
    """LETOR or SVMlight text; a label of -1 says that nobody judged the row."""
    source = resolve(path)
    for table in letor_tables(source, size, n_features):
        if not table.runs:
            hint = "each line begins: label qid:Q; fr.read_letor, which reads all at once, takes group sizes, too"
            raise InputError("no line has a qid", path=source, hint=hint)
        labels = np.concatenate(table.labels)
        labels[labels == UNJUDGED] = np.nan
        docids = Ids.concat(table.docids) if table.docids else None
        runs, sizes = Ids.concat(table.runs), np.concatenate(table.run_sizes)
        yield Block(source, runs, sizes, labels, docids, table.flat.reshape(table.rows, table.width))


def csv_blocks(path: Path, size: int, n_features: int | None = None) -> Iterator[Block]:
    """A table with columns qid, label, features by name and, if there are any, docid; an empty label: not judged."""
    import polars as pl

    check_not_forked()
    table = open_table(path)
    for name in ("qid", "label"):
        if name not in table.header:
            raise InputError(f"no column is called {name!r}", path=table.path, line=1, hint="qid, label and features")
    header, line = b"", 1
    types = {name: pl.String if name in ("qid", "docid") else pl.Float64 for name in table.header}
    for chunk in read_chunks(table.path, max(1 << 12, min(size, 1 << 26) // 4)):
        lines = chunk.count(b"\n")
        if not header:
            header, _, chunk = chunk.partition(b"\n")
            header += b"\n"
        if chunk.strip():
            try:
                how: dict[str, Any] = {"separator": table.separator, "schema": types, "has_header": False}
                frame = pl.read_csv(chunk, null_values=["", "NULL", "nan", "NaN"], **how)
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
                where = f"in lines {line:,} to {line + lines:,}"
                said = str(error).partition("\n")[0]
                raise InputError(f"can't be read as a table, {where}: {said}", path=table.path) from error
            yield block_of_frame(frame, table.path)
        line += lines


def parquet_blocks(path: Path, size: int, n_features: int | None = None) -> Iterator[Block]:
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
            yield block_of_frame(scan.slice(begin, step).collect(), source)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise InputError(f"can't be read as Parquet: {error}", path=source) from error


def block_of_frame(frame: Any, path: Path) -> Block:
    """Some rows of a polars frame."""
    for name in ("qid", "label"):
        if name not in frame.columns:
            raise InputError(f"no column is called {name!r}", path=path, hint=f"it has {', '.join(frame.columns[:8])}")
    names = tuple(name for name in frame.columns if name not in OTHERS and frame[name].dtype.is_numeric())
    matrix = np.empty((len(frame), len(names)), np.float32)
    try:
        with np.errstate(over="ignore"):  # beyond float32 is infinite, and refused by `validated`
            for k, name in enumerate(names):
                matrix[:, k] = frame[name].to_numpy()
        labels = np.asarray(frame["label"].to_numpy(), np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"a column is not numeric: {error}", path=path) from error
    if frame["qid"].null_count():
        raise InputError(f"column 'qid' has no value in row {int(frame['qid'].is_null().arg_max() or 0)}", path=path)
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
