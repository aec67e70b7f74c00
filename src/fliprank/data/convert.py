"""Rows of any size and kind into a folder of shards, read once from beginning to end, a block at a time.

No query is cut in two. A shard is a memory-mapped file of rows, or Parquet for other tools. `rows.json` beside them
says what they hold, with the mean and deviation of each feature, which a model would else have to read all rows for.
The folder appears when all of it is there: an error or a full disk leaves nothing behind, and an older one stays.

>>> import tempfile
>>> rows = Candidates.of([1, 0, 2], group=[2, 1], features=[[1.0], [2.0], [6.0]], feature_names=["bm25"])
>>> folder = Path(tempfile.mkdtemp(), "shards")
>>> made = convert(rows, folder)
>>> made.queries, made.rows, [path.name for path in made.shards]
(2, 3, ['00000.rows'])
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.checked import checked
from fliprank.data.candidates import Candidates, joined
from fliprank.data.file_rows import FileRows
from fliprank.data.files import StrPath, atomic_write, check_writable, new_folder, resolve, sync_folder
from fliprank.data.ids import Ids, find_duplicates
from fliprank.data.memory import parse_memory
from fliprank.data.parquet import write_parquet
from fliprank.data.row_blocks import csv_blocks, letor_blocks, parquet_blocks, stands_apart, whole_queries
from fliprank.data.row_digest import digest_of
from fliprank.data.row_file import SUFFIX, RowFile, write_rows
from fliprank.data.scattered import FeatureStatistics, feature_statistics, row_bytes
from fliprank.errors import InputError, UsageError, WrongTypeError

__all__ = ["ABOUT", "Converted", "convert", "is_converted", "known_statistics"]

ABOUT = "rows.json"
FORMATS = {"rows": SUFFIX, "parquet": ".parquet"}
TABLES = {".parquet": parquet_blocks, ".csv": csv_blocks, ".tsv": csv_blocks}
"""What reads a file by how its name ends; any other is LETOR text."""
SHARD = "128MB"

Progress = Callable[[int], None]
"""Called with the number of rows that are written."""


@dataclass(frozen=True)
class Converted:
    """What a conversion wrote."""

    folder: Path
    shards: tuple[Path, ...]
    queries: int
    rows: int
    feature_names: tuple[str, ...]


@checked
def convert(
    source: Any,
    folder: StrPath,
    *,
    format: str = "rows",
    shard: str | int = SHARD,
    n_features: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Converted:
    """Write rows to `folder` as shards of about `shard` bytes (4 per feature and 128 per row): see `open_rows`.

    `source` is a LETOR or SVMlight text, a CSV or TSV with columns qid, label, docid and features, or a Parquet file;
    a frame, or `Candidates`. All rows of a query must stand together. `format` is "rows", which is memory-mapped, or
    "parquet", which other tools read. `force` replaces a folder that this wrote before.
    """
    if format not in FORMATS:
        raise UsageError(f"format is one of {', '.join(FORMATS)}, not {format!r}")
    size, target = parse_memory(shard), Path(os.path.realpath(folder))  # a link stays one
    said = list[str]()
    parts, name = _parts_of(source, size, n_features, said)
    _end_swap(target)
    _check_target(Path(folder), force)
    check_writable(folder, folder=True)
    with new_folder(target) as place:
        made = _write_all(parts, name, place, format, progress)
        _swap(place, target)
    for line in said:
        warnings.warn(line, UserWarning, stacklevel=3)  # where `checked` was called
    return replace(made, folder=Path(folder), shards=tuple(Path(folder, path.name) for path in made.shards))


def _write_all(
    parts: Iterator[Candidates], source: Path, place: Path, format: str, progress: Progress | None
) -> Converted:
    """Write each part as a shard; then what is known of them all."""
    paths, qids, rows, names, width = list[Path](), list[Ids](), 0, list[tuple[str, ...]](), 0
    for part in parts:
        if names and part.feature_names != names[-1] and part.feature_names[: len(names[-1])] != names[-1]:
            raise InputError("its columns change on the way", path=source, query=part.qids[0])
        paths.append(place / f"{len(paths):05d}{FORMATS[format]}")
        _write(paths[-1], part, format)
        qids.append(part.qids.compact())
        names.append(part.feature_names)
        rows, width = rows + len(part), max(width, len(part.feature_names))
        if progress is not None:
            progress(rows)
    if not rows:
        raise InputError("there are no rows", path=source)
    every = Ids.concat(qids)
    if (twice := int(find_duplicates(every, np.array([0, len(every)]))[0])) >= 0:
        raise stands_apart(source, every[twice])
    for path, own in zip(paths, names, strict=True):
        if len(own) < width:  # of text, a later line told of more features: before it, they are 0
            _widen(path, names[-1], format)
    about: dict[str, Any] = {"written by": "fliprank", "format": format, "queries": len(every), "rows": rows}
    if format == "rows" and width:
        about["statistics"] = _statistics(paths)
    with atomic_write(place / ABOUT) as file:
        file.write(json.dumps(about).encode())
    return Converted(place, tuple(paths), len(every), rows, names[-1])


def _write(path: Path, part: Candidates, format: str) -> None:
    if format == "rows":
        write_rows(path, part, durable=True)
    else:
        write_parquet(path, part)


def _widen(path: Path, names: tuple[str, ...], format: str) -> None:
    from fliprank.data.parquet import read_parquet

    part = read_parquet(path) if format == "parquet" else (file := RowFile(path)).part(0, file.queries)
    matrix = np.zeros((len(part), len(names)), np.float32)
    assert part.features is not None
    matrix[:, : part.features.shape[1]] = part.features
    _write(path, replace(part, features=matrix, feature_names=names), format)


def _statistics(paths: list[Path]) -> dict[str, Any] | None:
    """Mean and deviation of each feature, and of which shards they are; None where some value is no number.

    One shard at a time is open, however many there are.
    """
    opened = ((digest_of([file]), file.finite, len(file)) for file in map(RowFile, paths))
    digests, finite, rows = zip(*opened, strict=True)
    if not all(finite):
        return None

    def each(function: Callable[..., Any], *given: Any, own: Sequence[Any] = ()) -> Iterator[Any]:
        for path, *mine in zip(paths, *own, strict=True):
            file = RowFile(path)
            yield function(file.part(0, file.queries), *given, *mine)

    mean, deviation = feature_statistics(each, np.array(rows))
    return {"shards": digests, "mean": mean.tolist(), "deviation": deviation.tolist()}


def known_statistics(folder: Path, rows: FileRows) -> FeatureStatistics | None:
    """What `rows.json` says of the features, if it is about these rows."""
    try:
        told = json.loads((folder / ABOUT).read_bytes())["statistics"]
        found = FeatureStatistics(*(np.array(told[name], np.float64) for name in ("mean", "deviation")))
        fits = told["shards"] == [digest_of([file]) for file in rows.files] and all(
            each.shape == (len(rows.feature_names),) and np.isfinite(each).all() for each in found
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return found if fits and (found.deviation >= 0).all() else None


def _parts_of(source: Any, size: int, n_features: int | None, said: list[str]) -> tuple[Iterator[Candidates], Path]:
    """The rows in parts of about `size` bytes, and the name of their source; `said` gets warnings at the end."""
    if isinstance(source, str | os.PathLike):
        path = resolve(source)
        reader = TABLES.get(Path(path.name.removesuffix(".gz")).suffix)
        blocks = letor_blocks(path, size, n_features, said) if reader is None else reader(path, size)
        return _gathered(whole_queries(blocks), size), path
    rows = source
    if not isinstance(rows, Candidates):
        if not hasattr(source, "columns"):
            raise WrongTypeError("source", source, "the path of a file of rows, a frame, or Candidates")
        rows = Candidates.from_frame(source)
    if rows.terms is not None or rows.lists is not None:
        raise UsageError("shards hold labels and features: these candidates have term statistics or lists")
    return _cut(rows, size), Path("these rows")


def _gathered(parts: Iterator[Candidates], size: int) -> Iterator[Candidates]:
    """Parts of the same columns, put together until they are as large as a shard."""
    some, held = list[Candidates](), 0
    for part in parts:
        if some and (held >= size or part.feature_names != some[0].feature_names):
            yield joined(*some)
            some, held = [], 0
        some.append(part)
        held += len(part) * row_bytes(len(part.feature_names))
    if some:
        yield joined(*some)


def _cut(rows: Candidates, size: int) -> Iterator[Candidates]:
    most = max(1, size // row_bytes(len(rows.feature_names)))
    for part in np.split(np.arange(rows.queries), np.flatnonzero(np.diff(rows.offsets[1:] // most)) + 1):
        yield rows.select(part)


def _check_target(folder: Path, force: bool) -> None:
    """Raise if there is a folder that is not ours to replace."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        ours = folder.is_dir() and is_converted(folder)
        if not (ours and force):
            hint = "--force replaces it" if ours else "give a new or empty folder"
            raise InputError("there is such a folder" if folder.is_dir() else "is a file", path=folder, hint=hint)


def is_converted(folder: Path) -> bool:
    """Whether `convert` wrote this folder."""
    try:
        told = json.loads((folder / ABOUT).read_bytes())
        return isinstance(told, dict) and told.get("written by") == "fliprank"
    except (OSError, ValueError, RecursionError):
        return False


def _swap(place: Path, target: Path) -> None:
    """Put the new folder in the place of an old one, which goes away only then."""
    os.chmod(place, 0o755)
    old = _old(target)
    try:
        if target.exists():
            os.rename(target, old)
        os.rename(place, target)
        sync_folder(target.parent)
    finally:
        _end_swap(target)


def _old(target: Path) -> Path:
    """Where a folder is while another takes its place."""
    return target.with_name(f".{target.name}.old")


def _end_swap(target: Path) -> None:
    """Put an old folder back if no new one took its place, as after a kill between the two steps; else remove it."""
    old = _old(target)
    if old.is_dir() and (is_converted(old) or not any(old.iterdir())):
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(old, target)
