"""Candidates in Parquet files: columns qid, docid, label (null where nobody judged the row) and one per feature.

>>> import tempfile
>>> from pathlib import Path
>>> rows = Candidates.of([1, 0], qid=["a", "a"], docids=["x", "y"], features=[[0.5], [2]], feature_names=["bm25"])
>>> with tempfile.TemporaryDirectory() as name:
...     write_parquet(Path(name, "rows.parquet"), rows)
...     back = read_parquet(Path(name, "rows.parquet"))
>>> back.labels.tolist(), back.docids.tolist(), back.feature_names, back.features.tolist()
([1.0, 0.0], ['x', 'y'], ('bm25',), [[0.5], [2.0]])
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import polars as pl

from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath, atomic_write
from fliprank.errors import InputError
from fliprank.forks import check_not_forked

__all__ = ["read_frame", "read_parquet", "write_parquet"]


def read_frame(path: StrPath) -> pl.DataFrame:
    """The table of a Parquet file."""
    check_not_forked()
    source = Path(path)
    if not source.is_file():
        raise InputError("is a folder, not a file" if source.is_dir() else "no such file", path=source)
    try:
        return pl.read_parquet(source, glob=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise InputError(f"can't be read as Parquet: {error}", path=source) from error


@checked
def read_parquet(path: StrPath, **columns: Any) -> Candidates:
    """Candidates from a Parquet file; `columns` (label=, qid=, docid=, features=) as in `Candidates.from_frame`."""
    source, frame = Path(path), read_frame(path)
    try:
        return Candidates.from_frame(frame, **columns)
    except InputError as error:
        raise InputError(error.message, path=source, query=error.query, hint=error.hint) from error


@checked
def write_parquet(path: StrPath, candidates: Candidates) -> None:
    """Write the rows, without queries that have none, labels of documents not among them, and term statistics."""
    check_not_forked()
    qid = pl.Series("qid", candidates.qids.compact().tolist(), pl.String)
    columns = [qid.gather(candidates.query_of_rows())]
    if candidates.docids is not None:
        columns.append(pl.Series("docid", candidates.docids.compact().tolist(), pl.String))
    columns.append(pl.Series("label", candidates.labels).fill_nan(None))
    if candidates.features is not None:
        columns += [
            pl.Series(name, values)
            for name, values in zip(candidates.feature_names, candidates.features.T, strict=True)
        ]
    names = [column.name for column in columns]
    if bad := [name for name in names if not name or names.count(name) > 1]:
        raise InputError(f"a feature can't have the name {bad[0]!r}: it is empty or that of another column", path=path)
    try:
        with atomic_write(path) as file:
            pl.DataFrame(columns).write_parquet(file, metadata={"written by": "fliprank"})
    except pl.exceptions.PolarsError as error:  # it wraps what the system says of a full disk
        if (code := re.search(r"os error (\d+)", str(error))) is None:
            raise InputError(f"can't be written as Parquet: {error}", path=path) from error
        raise OSError(int(code[1]), os.strerror(int(code[1])), str(path)) from error
