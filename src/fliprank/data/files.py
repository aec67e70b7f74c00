"""Reading and writing files: plain or gzipped by content, whole or in chunks, and never half-written.

Input files are hostile until parsed: what can't be read or is not UTF-8 is an `InputError` that names file and line.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO, BinaryIO, cast

import numpy as np

from fliprank.arrays import Bytes
from fliprank.errors import InputError
from fliprank.forks import check_not_forked

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "atomic_write",
    "check_utf8",
    "check_writable",
    "drop_parts",
    "locked",
    "new_folder",
    "open_bytes",
    "open_text",
    "read_bytes",
    "read_chunks",
    "resolve",
    "sync_folder",
]

StrPath = str | PathLike[str]
GZIP_MAGIC = b"\x1f\x8b"
PART = re.compile(r"\.(?P<target>.+)\.[a-z0-9_]{8}\.part")
"""The name of a file or folder that is being written, which will be renamed to its target."""
FRESH, ANCIENT = 60, 86_400
"""Seconds: a part that was changed so shortly ago is always left alone; one so old is nobody's."""


def resolve(path: StrPath) -> Path:
    """`path`, or `path`.gz where only that exists; raises if neither does."""
    check_not_forked()  # before any file is read: a reader that waits forever says nothing
    given = Path(path)
    for candidate in (given, given.with_name(given.name + ".gz")):
        if candidate.is_file():
            return candidate
    if given.exists() and not given.is_dir():
        hint = "files are read more than once: write it to a file first"
        raise InputError("is a pipe or a device, not a file", path=given, hint=hint)
    raise InputError("is a folder, not a file" if given.is_dir() else "no such file", path=given)


@contextmanager
def open_bytes(path: StrPath) -> Iterator[BinaryIO]:
    """The bytes of a file, unzipped where its content is gzipped."""
    source = resolve(path)
    try:
        with source.open("rb", buffering=0) as start:
            zipped = start.read(2) == GZIP_MAGIC
        with source.open("rb") as raw:  # opened anew: a buffer that holds something makes `read()` copy the file
            yield cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if zipped else raw
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"broken gzip data: {error}", path=source) from error
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror or error}", path=source) from error


def read_bytes(path: StrPath) -> Bytes:
    """The whole file as an array that ends with a newline, checked to be UTF-8 and not empty."""
    with open_bytes(path) as file:
        data = file.read()
    if not data or data.isspace():
        raise InputError("the file is empty", path=path)
    check_utf8(data, path)
    return np.frombuffer(data if data.endswith(b"\n") else data + b"\n", np.uint8)


def read_chunks(path: StrPath, size: int = 1 << 24) -> Iterator[bytes]:
    """The file in chunks of about `size` bytes: whole lines, checked to be UTF-8; the last one gets its newline."""
    line, rest = 1, b""
    with open_bytes(path) as file:
        while block := file.read(size):
            cut = block.rfind(b"\n") + 1
            if not cut:
                rest += block
                continue
            chunk, rest = rest + block[:cut], block[cut:]
            check_utf8(chunk, path, line)
            line += chunk.count(b"\n")
            yield chunk
    if rest:
        check_utf8(rest, path, line)
        yield rest + b"\n"


def check_utf8(data: bytes, path: StrPath, line: int = 1) -> None:
    """Raise an error that names the line of the first byte that is not UTF-8; `data` starts at `line`."""
    if data.isascii():
        return
    try:
        data.decode()
    except UnicodeDecodeError as error:
        bad = line + data.count(b"\n", 0, error.start)
        raise InputError(f"byte 0x{data[error.start]:02x} is not UTF-8", path=path, line=bad) from error


@contextmanager
def open_text(path: StrPath) -> Iterator[Iterator[str]]:
    """The lines of a small text file, UTF-8 checked; for readers whose cost is not in the reading."""
    yield io.StringIO(read_bytes(path).tobytes().decode())


@contextmanager
def atomic_write(path: StrPath, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Write to a temporary file beside `path` and rename it when the block ends well; gzipped for a name in .gz.

    On an error or Ctrl-C the old file stays as it was and the temporary one is removed. A link is followed; a pipe or a
    device such as /dev/stdout is written to as it is. An `OSError` names `path`. What is `durable` survives a power
    cut: it is on the disk before it takes the name of the old file. A cache need not be.
    """
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as raw:  # a folder is an error here; to rename over a device would destroy it
                yield raw
            return
        with _renamed(Path(os.path.realpath(target)), durable) as raw:
            if target.suffix == ".gz":
                with gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0, compresslevel=6) as zipped:
                    yield cast(IO[bytes], zipped)
            else:
                yield raw
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(target)) from error


@contextmanager
def _renamed(target: Path, durable: bool) -> Iterator[IO[bytes]]:
    """A temporary file that becomes `target`. It is locked for as long as it is written: see `drop_parts`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    drop_parts(target.parent, target.name)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as raw:
            _lock(handle)
            yield raw
            raw.flush()
            if durable:
                os.fsync(handle)
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, target)  # before it is closed, which ends the lock
        if durable:
            sync_folder(target.parent)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A temporary folder beside `target`, for the block to fill and then rename; removed if the block ends badly.

    It is locked for as long as it is filled: see `drop_parts`.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    drop_parts(target.parent, target.name)
    place = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part"))
    try:
        handle = os.open(place, os.O_RDONLY)
        try:
            _lock(handle)
            yield place
        finally:
            os.close(handle)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def _lock(handle: int) -> None:
    """Show others that somebody is at work here, for as long as `handle` is open."""
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, after waiting for whoever holds it; nobody waits where a file system has no locks."""
    with path.open("ab") as file:
        if fcntl is not None:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def drop_parts(folder: Path, target: str | None = None) -> None:
    """Remove what killed processes left of files and folders that they were writing in `folder`; with `target`, of it.

    Whoever writes holds a lock on its part, which ends with the process: a part that nobody holds is nobody's. One that
    was changed in the last minute is left alone, and where there are no locks, one of the last day.
    """
    try:
        found = [entry.path for entry in os.scandir(folder) if entry.name.endswith(".part")]
    except OSError:
        return
    for path in map(Path, found):
        match = PART.fullmatch(path.name)
        if match is not None and target in (None, match["target"]):
            with suppress(OSError):  # somebody else removed it, or it is not ours to remove
                age, held = time.time() - path.stat(follow_symlinks=False).st_mtime, _is_held(path)
                if not held and age > (ANCIENT if held is None else FRESH):
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _is_held(path: Path) -> bool | None:
    """Whether some process is writing this file or folder; None where that can't be told."""
    if fcntl is None:
        return None
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
        finally:
            os.close(handle)
    except BlockingIOError:
        return True
    except OSError:
        return None


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk, where the system lets us: not every one can open a folder."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def check_writable(path: StrPath, *, folder: bool = False) -> None:
    """Raise, before any work is done, if the file (or folder) `path` can't be written or its folders can't be made."""
    place = Path(path)
    if place.is_dir() and not folder:
        raise InputError("is a folder, not a file to write", path=path)
    while not place.exists() and place.parent != place:
        place = place.parent
    made = place != Path(path)  # folders are to be made in `place`
    if made and not place.is_dir():
        raise InputError(f"can't be made: {place} is not a folder", path=path)
    if not os.access(place, os.W_OK | (os.X_OK if place.is_dir() else 0)):
        raise InputError(
            "can't be written to" if not made else f"can't be made: {place} can't be written to", path=path
        )


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
