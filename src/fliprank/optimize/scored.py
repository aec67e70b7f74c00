"""How many documents a fit scored: what it cost, whichever machine it ran on.

A document counts each time that its score is computed for other parameters: once per evaluation of the measure or the
objective, and once in each step for a pair that it belongs to. An exact search counts it once per line.

>>> scored = Scored()
>>> scored.add(10)
>>> scored.add(5)
>>> scored.documents
15
"""

from __future__ import annotations

from threading import Lock

__all__ = ["Scored"]


class Scored:
    """A count that threads can share."""

    def __init__(self, documents: int = 0) -> None:
        self.documents, self._lock = documents, Lock()

    def add(self, documents: int) -> None:
        """Count so many more."""
        with self._lock:
            self.documents += documents
