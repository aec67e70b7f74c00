"""Bytes that several owners may hold at a time, counted: what one took comes back when the owner is gone.

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

import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["Grant", "Share"]

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
