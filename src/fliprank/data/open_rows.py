"""Rows that need not fit in memory, opened: a file, a folder or a glob of shards.

Files of rows, as `fliprank convert` writes them, and the cache of a LETOR text are memory-mapped as they are. Parquet,
CSV and text that was not read before are converted once, into the user's cache folder.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from fliprank.checked import checked
from fliprank.data.convert import ABOUT, convert, is_converted, known_statistics
from fliprank.data.file_rows import FileRows
from fliprank.data.files import StrPath, atomic_write, drop_parts, locked, resolve
from fliprank.data.letor import UNJUDGED, cache_key
from fliprank.data.memory import DEFAULT_MEMORY
from fliprank.data.row_file import SUFFIX
from fliprank.data.store import cache_path, cached_file, content_digest, is_racy, signature
from fliprank.errors import InputError

__all__ = ["is_shards", "open_rows"]

STAMP = "source.json"
KEY = "shards 1"


@checked
def open_rows(
    path: StrPath | Iterable[StrPath], memory: str | int = DEFAULT_MEMORY, *, n_features: int | None = None
) -> FileRows:
    """Rows for `train`, `evaluate` and `rank` of which at most `memory` is held in memory, however many there are.

    `path` is a file, a folder, a pattern such as "shards/*.parquet", or several of these: files of rows that
    `fliprank convert` wrote, Parquet, CSV, or LETOR text. All must have the same columns, and each query stands in one.
    """
    given = [path] if isinstance(path, str | os.PathLike) else list(path)
    files = [file for each in given for file in _files_of(Path(each))]
    places = [place for file in files for place in _mapped(file, n_features)]
    rows = FileRows.open(places, memory)
    if len({place.parent for place in places}) == 1 and (known := known_statistics(places[0].parent, rows)) is not None:
        rows.__dict__["_statistics"] = known
    return rows


def is_shards(path: StrPath) -> bool:
    """Whether this names shards: a folder, a pattern, or a file of rows."""
    given = Path(path)
    return given.is_dir() or given.suffix == SUFFIX or (not given.exists() and glob.has_magic(str(path)))


def _files_of(path: Path) -> list[Path]:
    """The files that a path stands for, in the order of their names."""
    if path.is_dir():
        for kind in (SUFFIX, ".parquet"):
            if found := sorted(path.glob(f"*{kind}")):
                return found
        raise InputError("has no shards: files of rows or Parquet", path=path)
    if not path.exists() and glob.has_magic(str(path)):
        found = sorted(Path(each) for each in glob.glob(str(path)))
        if not found:
            raise InputError("no file fits this pattern", path=path)
        return found
    return [path if path.suffix in (SUFFIX, ".parquet") else resolve(path)]


def _mapped(path: Path, n_features: int | None) -> list[Path]:
    """The files of rows that hold what is in a file; made in the cache folder where that is needed."""
    if path.suffix == SUFFIX:
        return [path]
    source = resolve(path)
    if source.name.removesuffix(".gz").rpartition(".")[2] not in ("parquet", "csv", "tsv"):
        sizes = source.with_name(source.name.removesuffix(".gz") + ".query")
        if (known := cached_file(source, cache_key(sizes, UNJUDGED, "error", n_features))) is not None:
            return [known]
    base = cache_path(source)
    if base is None:
        raise InputError("can't be cached: there is no home folder", path=path, hint="set XDG_CACHE_HOME")
    folder = base.with_suffix(".shards")
    if not _is_fresh(folder, source, n_features):
        _fill(folder, source, n_features)
    return sorted(folder.glob(f"*{SUFFIX}"))


def _is_fresh(folder: Path, source: Path, n_features: int | None) -> bool:
    """Whether the shards in the cache are those of this file as it is now."""
    try:
        stamp, signed = json.loads((folder / STAMP).read_bytes()), signature(source)
        fresh = stamp["key"] == [KEY, n_features] and stamp["signature"] == signed and (folder / ABOUT).is_file()
        if fresh and is_racy(signed, (folder / STAMP).stat().st_mtime_ns):
            fresh = stamp["digest"] == content_digest(source)
        return bool(fresh)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def _fill(folder: Path, source: Path, n_features: int | None) -> None:
    """Convert a file into the cache, unless another process does so first, which is then waited for."""
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _drop_orphans(folder.parent)
        with locked(_lock_of(folder)):
            if not _is_fresh(folder, source, n_features):
                _convert(folder, source, n_features)
    except OSError as error:
        hint = "set XDG_CACHE_HOME to a folder with more room, or convert it yourself: fliprank convert"
        message = f"can't be cached in {folder.parent}: {error.strerror or error}"
        raise InputError(message, path=source, hint=hint) from error


def _convert(folder: Path, source: Path, n_features: int | None) -> None:
    """Convert a file in the place of what is cached, which others may be opening."""
    signed, digest = signature(source), content_digest(source)
    if not is_converted(folder):
        shutil.rmtree(folder, ignore_errors=True)  # damaged
    convert(source, folder, n_features=n_features, force=True)
    stamp = {"key": [KEY, n_features], "signature": signed, "digest": digest, "source": os.path.realpath(source)}
    with atomic_write(folder / STAMP) as file:
        file.write(json.dumps(stamp).encode())


def _lock_of(folder: Path) -> Path:
    return folder.with_suffix(".lock")


def _drop_orphans(folder: Path) -> None:
    """Remove the shards of files that are gone, and what killed processes left half-written."""
    drop_parts(folder)
    for place in folder.glob("*.shards"):
        try:
            gone = not os.path.lexists(json.loads((place / STAMP).read_bytes())["source"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            gone = False  # another process may be writing it
        if gone:
            shutil.rmtree(place, ignore_errors=True)
            _lock_of(place).unlink(missing_ok=True)
