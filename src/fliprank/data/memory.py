"""How many bytes rows in files may take, and who holds which of them.

    memory = the process itself + windows under way + windows that stay + what is known of labels + scores per row

All rows of a process that were given the same memory draw from the same shares: training and validation rows, and what
a cascade makes of them. What one took comes back when it is gone.

>>> share = Share(100)
>>> class Owner: pass
>>> owner = Owner()
>>> grant = share.take(60, owner)
>>> share.take(60, owner) is None, share.taken
(True, 60)
>>> grant()                                                                    # given back before the owner is gone
>>> share.taken
0
"""

from __future__ import annotations

import re
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from fliprank.errors import UsageError

__all__ = ["AT_ONCE", "DEFAULT_MEMORY", "PROCESS", "Grant", "Memory", "Share", "parse_memory", "shares_of"]

DEFAULT_MEMORY = "2GB"
PROCESS = 400 << 20
"""Bytes that Python, the compiled kernels and what they work with take, whatever the rows."""

MOST_WINDOW = 64 << 20
"""Bytes of a window: a larger one is no faster."""

AT_ONCE = 4
"""Trials that run side by side at most, each of which looks at a window of its own."""

LEAST_DATA = 32 << 20
"""Bytes for rows that are taken even where the process itself leaves less."""

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}


def parse_memory(given: str | int) -> int:
    """Bytes from a number, or words such as 2GB or 512MiB.

    >>> parse_memory("2GB"), parse_memory("1.5 MiB"), parse_memory(4096)
    (2000000000, 1572864, 4096)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?\s*", str(given), re.IGNORECASE)
    size = 0 if found is None else int(float(found[1]) * UNITS.get((found[2] or "").lower(), 0))
    if size <= 0:
        raise UsageError(f"memory={given!r}: expected a size such as 2GB, 512MiB or a number of bytes")
    return size


@dataclass(frozen=True)
class Memory:
    """How a budget of bytes is shared out."""

    total: int

    @property
    def data(self) -> int:
        """What is left for rows beside the process itself; if that is too little, a little more."""
        return max(self.total - PROCESS, min(self.total // 4, LEAST_DATA))

    def warn_if_exceeded(self) -> None:
        """Say so where the process would take more than this whatever the rows."""
        if self.total < (least := PROCESS + LEAST_DATA):
            megabytes = [f"{-(-size // 10**6):,}MB" for size in (self.total, least)]
            message = f"memory={megabytes[0]} will be exceeded: the least that can be kept to is {megabytes[1]}"
            warnings.warn(message, UserWarning, stacklevel=5)  # where `open_rows` was called

    @property
    def window(self) -> int:
        """Bytes of one window: each of up to `AT_ONCE` trials may look at one."""
        return max(1, min(MOST_WINDOW, self.data // (4 * AT_ONCE)))

    @property
    def resident(self) -> int:
        """Bytes of features that stay, and the same again of what is known of labels, and of scores."""
        return self.data // 4


Grant = Callable[[], Any]
"""Called, it gives back what was taken: once, however often it is called."""


class Share:
    """So many bytes for all who draw from it."""

    def __init__(self, size: int) -> None:
        self.size, self._taken, self._lock = size, 0, threading.Lock()
        self._returned = deque[int]()  # an owner may go at any moment, even while this very thread holds the lock

    @property
    def taken(self) -> int:
        """Bytes that are held now."""
        with self._lock:
            return self._settled()

    def take(self, size: int, owner: Any) -> Grant | None:
        """Count so many bytes for as long as `owner` lives, or until the grant is called; None if there is no room."""
        with self._lock:
            if self._settled() + size > self.size:
                return None
            self._taken += size
        grant = weakref.finalize(owner, self._returned.append, size)
        grant.atexit = False
        return grant

    def _settled(self) -> int:
        while self._returned:
            self._taken -= self._returned.popleft()
        return self._taken


class Shares(NamedTuple):
    """What may stay in memory: features, what is known of labels, and scores of rows."""

    features: Share
    labels: Share
    scores: Share


@cache
def shares_of(memory: Memory) -> Shares:
    """The shares of all rows in this process that were given this memory."""
    return Shares(*(Share(memory.resident) for _ in Shares._fields))
