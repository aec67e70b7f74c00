"""Arrays in a file: a checked JSON header, then raw little-endian arrays that are memory-mapped, not read.

`write_arrays` and `read_arrays` are the container; `cached` keeps the candidates of a slow format in one, in the user's
cache folder, and trusts it for as long as the content of their file is what it was. Nothing in such a file is executed
(no pickle), and no size in it is believed before it is checked against the length of the file.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "squares"
>>> write_arrays(path, {"power": 2}, {"values": np.arange(4) ** 2})
>>> header, arrays = read_arrays(path)
>>> header, arrays["values"].tolist()
({'power': 2}, [0, 1, 4, 9])
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import mmap
import os
import time
import warnings
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath, atomic_write, drop_parts
from fliprank.data.ids import Ids
from fliprank.errors import InputError

try:
    import resource
except ImportError:  # pragma: no cover
    resource = None  # type: ignore[assignment]

__all__ = [
    "allow_many_files",
    "cache_path",
    "cached",
    "cached_file",
    "content_digest",
    "is_racy",
    "map_arrays",
    "read_arrays",
    "signature",
    "write_arrays",
]

Arrays = dict[str, NDArray[Any]]

MAGIC = b"fliprank"
VERSION = 1
DTYPES = ("u1", "u2", "i4", "i8", "f4", "f8")
KINDS = {"offsets": "i8 1", "labels": "f8 1", "qid": "u1 1", "qid_length": "i4 1"}
KINDS |= {"docid": "u1 1", "docid_length": "i4 1", "features": "f4 2"}
"""Of the arrays of candidates: dtype and number of dimensions."""
ALIGNMENT = 64
LONGEST_HEADER = 1 << 26
MANY_FILES = (1 << 16, 10_240)
"""How many open files are asked for: about as many maps as Linux lets a process have; as many files as macOS allows."""
RACY = 2_000_000_000
"""Nanoseconds: a file changed so shortly before its cache was written may change again with no trace in its times."""


def write_arrays(path: StrPath, header: dict[str, Any], arrays: Arrays, *, durable: bool = True) -> None:
    """Write `header` (anything JSON) and `arrays` to `path`: whole or not at all; see `atomic_write` for `durable`."""
    table, end = {}, 0
    for name, array in arrays.items():
        kind = f"{array.dtype.kind}{array.dtype.itemsize}"
        if kind not in DTYPES:
            raise TypeError(f"array {name!r} is of {array.dtype}; a store holds {', '.join(DTYPES)}")
        table[name] = [kind, list(array.shape), end, zlib.crc32(_raw(array).data)]
        end = _aligned(end + array.nbytes)
    text = json.dumps({"version": VERSION, "header": header, "sum": _sum(header, table), "arrays": table}).encode()
    with atomic_write(path, durable=durable) as file:
        written = file.write(MAGIC + len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            file.write(bytes(_aligned(written) - written))
            raw = _raw(array)
            file.write(raw.data)
            written = _aligned(written) + raw.nbytes


def _raw(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)


def _sum(header: dict[str, Any], table: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps([header, table], sort_keys=True).encode())


def read_arrays(path: StrPath, *, check: bool = False) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a file of `write_arrays`; the arrays are read-only views of the file.

    The header must be what was written; with `check` the whole file is read and must be, byte by byte.
    """
    found, arrays, _ = map_arrays(path, check=check)
    return found["header"], arrays


def map_arrays(path: StrPath, *, check: bool = False) -> tuple[dict[str, Any], Arrays, mmap.mmap]:
    """The same with all that the file says of itself, and its map, which can be told to let go of pages."""
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise ValueError("not a regular file")
        with open(path, "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # ValueError: an empty file can't be mapped
        full = getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE)
        hint = "allow more of them by ulimit -n, or make fewer and larger shards: convert --shard" if full else None
        raise InputError(f"can't be read: {getattr(error, 'strerror', None) or error}", path=path, hint=hint) from error
    length = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 8], "little")
    start = len(MAGIC) + 8
    if data[: len(MAGIC)] != MAGIC or length > min(len(data) - start, LONGEST_HEADER):
        raise InputError("not a fliprank store, or cut off", path=path)
    try:
        found = json.loads(data[start : start + length])
        if found["version"] != VERSION or not isinstance(found["header"], dict):
            raise ValueError("another version")
        base = _aligned(start + length)
        if (check or "sum" in found) and found.get("sum") != _sum(found["header"], found["arrays"]):
            raise ValueError("its header is not what was written")
        arrays = {name: _view(data, base, *entry[:3]) for name, entry in found["arrays"].items()}
        if check:
            _check_sums(found, arrays)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"a damaged fliprank store: {error}", path=path) from error
    return found, arrays, data


def allow_many_files() -> None:
    """Let this process have more files open, as far as the system lets it: each map holds its file for its lifetime."""
    if resource is None:  # pragma: no cover
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for most in MANY_FILES:
        wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            return
        with suppress(OSError, ValueError):
            return resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _check_sums(found: dict[str, Any], arrays: Arrays) -> None:
    for name, array in arrays.items():
        if found["arrays"][name][3] != zlib.crc32(_raw(array).data):
            raise ValueError(f"{name} is not what was written")


def _view(data: mmap.mmap, base: int, kind: Any, shape: Any, offset: Any) -> NDArray[Any]:
    """The array that a header describes, after checking that it lies in the file."""
    if kind not in DTYPES or not isinstance(shape, list) or len(shape) > 8:
        raise ValueError(f"no array of {kind!r} and shape {shape!r}")
    if any(type(number) is not int or number < 0 for number in (*shape, offset)) or offset % ALIGNMENT:
        raise ValueError(f"an array of shape {shape!r} at {offset!r}")
    dtype, count = np.dtype(f"<{kind}"), math.prod(shape)
    if count == 0:
        return np.empty(shape, dtype)
    if base + offset + count * dtype.itemsize > len(data):
        raise ValueError("an array beyond the end of the file")
    return np.frombuffer(data, dtype, count, base + offset).reshape(shape)


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT) * ALIGNMENT


def cached(source: Path, key: str, parse: Callable[[], tuple[Candidates, str]]) -> tuple[Candidates, str]:
    """The candidates that `parse` makes of `source`, and its note: from the cache if that is up to date.

    `key` tells apart what different options make of one file; only the last one is kept. If there is no cache folder
    that can be written to, or the source changes while it is parsed, no cache is written.
    """
    try:
        if (found := _load(source, key)) is not None:
            return found
    except (InputError, OSError, KeyError, TypeError, IndexError, ValueError):
        pass  # none yet, cut off, or made by somebody else: parse
    signed = signature(source)
    with ThreadPoolExecutor(1) as pool:
        digest = pool.submit(content_digest, source)
        rows, note = parse()
    _save(source, {"key": key, "digest": digest.result(), "signature": signed, "note": note}, _to_arrays(rows))
    return rows, note


def content_digest(source: Path) -> str:
    """A hash of the bytes of `source`."""
    try:
        with source.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror or error}", path=source) from error


def _load(source: Path, key: str) -> tuple[Candidates, str] | None:
    """What is cached for `source`, if it is up to date.

    The cache's own time of change is `written`: one that was edited since is not trusted. The source is hashed again
    only if its signature differs, or says too little because the source was fresh when the cache was written.
    """
    path = cache_path(source)
    if path is None:
        return None
    stamp, arrays = read_arrays(path, check=True)
    signed, digest, note = signature(source), stamp["digest"], stamp["note"]
    if (
        not isinstance(note, str)
        or stamp["key"] != key
        or stamp["written"] != path.stat().st_mtime_ns
        or stamp["signature"][0] != signed[0]
    ):
        return None
    if stamp["signature"] != signed or is_racy(signed, stamp["written"]):
        if digest != content_digest(source):
            return None
        if not is_racy(signed, _clock()):
            _save(source, {**stamp, "signature": signed}, arrays)
    return _from_arrays(arrays), note


def cached_file(source: Path, key: str) -> Path | None:
    """The file in which the rows of `source` are cached, if it is up to date; its values are not read."""
    path = cache_path(source)
    try:
        if path is None or not path.is_file():
            return None
        stamp, signed = read_arrays(path)[0], signature(source)
        fresh = stamp["key"] == key and stamp["written"] == path.stat().st_mtime_ns and stamp["signature"] == signed
        if fresh and is_racy(signed, stamp["written"]):
            fresh = stamp["digest"] == content_digest(source)
        return path if fresh else None
    except (InputError, OSError, KeyError, TypeError, IndexError, ValueError):
        return None


def _save(source: Path, stamp: dict[str, Any], arrays: Arrays) -> None:
    path, now = cache_path(source), _clock()
    if path is None:
        return _say_uncached("the cache folder", "there is none, since there is no home folder")
    try:
        if signature(source) == stamp["signature"]:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _drop_orphans(path.parent)
            write_arrays(path, {**stamp, "source": os.path.realpath(source), "written": now}, arrays, durable=False)
            os.utime(path, ns=(now, now))
    except OSError as error:
        _say_uncached(str(path.parent), error.strerror or str(error))


@cache
def _say_uncached(folder: str, why: str) -> None:
    """Once per process and reason, not once per file."""
    hint = "set XDG_CACHE_HOME to a folder that can be written to"
    warnings.warn(f"{folder}: {why}; files are not cached but parsed every time ({hint})", UserWarning, stacklevel=2)


def cache_path(source: StrPath) -> Path | None:
    """Where the rows of `source` are cached: under a name made of its absolute path, in `$XDG_CACHE_HOME/fliprank`.

    Without that variable in `~/.cache/fliprank`; None where there is no home either.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # the XDG specification: other paths are to be ignored
        try:
            base = Path.home() / ".cache"
        except RuntimeError:
            return None
    name = hashlib.blake2b(os.fsencode(os.path.realpath(source)), digest_size=16).hexdigest()
    return base / "fliprank" / f"{name}.rows"


def _drop_orphans(folder: Path) -> None:
    """Remove the caches of files that are gone, for which nobody would ever ask again, and half-written ones."""
    drop_parts(folder)
    for path in folder.glob("*.rows"):
        try:
            source = read_arrays(path)[0]["source"]
            gone = not os.path.lexists(source)
        except (InputError, KeyError, TypeError, ValueError):
            gone = True  # damaged
        if gone and path.is_file():
            path.unlink(missing_ok=True)


def signature(source: Path) -> list[int]:
    """What changes when a file is written to: size, times of change (ctime can't be set back), inode."""
    stat = source.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]


def _clock() -> int:
    """Now in nanoseconds, cut to whole seconds: a time that every file system can keep."""
    return time.time_ns() // 1_000_000_000 * 1_000_000_000


def is_racy(signed: list[int], written: int) -> bool:
    """Whether a file may have changed since with no trace in its signature."""
    return max(signed[1:3]) > written - RACY


def _to_arrays(rows: Candidates) -> Arrays:
    arrays: Arrays = {"offsets": rows.offsets, "labels": rows.labels}
    for name, ids in (("qid", rows.qids), ("docid", rows.docids)):
        if ids is not None:
            packed = ids.compact()
            arrays |= {name: packed.buffer, f"{name}_length": packed.length}
    return arrays if rows.features is None else {**arrays, "features": rows.features}


def _from_arrays(arrays: Arrays) -> Candidates:
    """The candidates of `_to_arrays`; raises if these arrays can't be any. Values are not checked."""
    if any(f"{array.dtype.str[1:]} {array.ndim}" != KINDS.get(name) for name, array in arrays.items()):
        raise InputError("these are not the arrays of candidates")
    ids = {}
    for name in {"qid", "docid"} & arrays.keys():
        buffer, length = arrays[name], arrays[f"{name}_length"]
        if length.min(initial=0) < 0 or length.sum() != len(buffer):
            raise InputError(f"{name}: lengths that don't fill the buffer")
        ids[name] = Ids(buffer, np.cumsum(length, dtype=np.int64) - length, length)
    if arrays["offsets"].min(initial=0) < 0:
        raise InputError("negative offsets")
    return Candidates(arrays["offsets"], arrays["labels"], ids["qid"], ids.get("docid"), arrays.get("features"))
