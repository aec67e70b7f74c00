"""One run per folder: a second one would leave its model beside the other's figures.

The lock is the system's, on a file in the folder that says who holds it; it ends with the process, however that ends,
so that no lock is ever stale. Where the system has none (Windows), nothing is locked.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fliprank.data.files import drop_parts
from fliprank.errors import InputError, printable

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

__all__ = ["LOCK", "locked"]

LOCK = ".fliprank-lock"


@contextmanager
def locked(folder: Path) -> Iterator[Path]:
    """Hold `folder`, which is made if need be, for the length of the block; raises if another run holds it.

    What a killed run left half-written is removed first. A folder in which nothing was written is gone afterwards.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = _lock(folder)
    try:
        for place, _, _ in os.walk(folder):
            drop_parts(Path(place))
        yield folder
    finally:
        (folder / LOCK).unlink(missing_ok=True)  # before it is let go: whoever waits for it sees that it is gone
        os.close(handle)
        with suppress(OSError):  # not empty
            folder.rmdir()


def _lock(folder: Path) -> int:
    path = folder / LOCK
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still_there(path, handle):
                os.ftruncate(handle, 0)
                os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
                return handle
        except BlockingIOError:
            holder = printable(os.pread(handle, 200, 0).decode(errors="replace").strip()) or "another process"
            os.close(handle)
            hint = "wait until it ends, or give another folder"
            raise InputError(f"another run is writing here: {holder}", path=folder, hint=hint) from None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the one who held it removed it in between


def _is_still_there(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False
