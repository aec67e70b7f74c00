"""Who has which shard: as it was, unless a worker is gone, has nothing yet, or was given up.

A shard belongs to one worker, which keeps its rows or documents. It moves only if it must, or to a worker that joined
late and has none; the worker that had it forgets it with the next question.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from itertools import count
from threading import Lock
from typing import Any

from fliprank.errors import FliprankError

__all__ = ["AGAIN", "ClusterError", "Placement"]

AGAIN = "the checkpoint has all epochs that were done: start the same again with --resume"
LOOK = 1.0
"""Seconds between two looks at which workers there are."""


class ClusterError(FliprankError, RuntimeError):
    """A cluster that can't go on: no scheduler, no workers, or a worker that failed."""


class Placement:
    """The workers of a Dask client, and the owner of each shard by its number."""

    def __init__(self, client: Any, patience: float, say: Callable[[str], None] | None) -> None:
        self.client, self.patience = client, patience
        self.say = say or (lambda text: warnings.warn(text, UserWarning, stacklevel=3))
        self.owner: dict[int, str] = {}
        self.names: dict[int, str] = {}
        self.dead: list[str] = []
        """Names of what nobody will ask for again, wherever it is."""
        self._dropped: list[int] = []
        self._numbers, self._lock = count(), Lock()
        self._workers: dict[str, int] = {}
        self._looked = 0.0
        self._met: set[str] = set()
        self._gone: dict[str, list[str]] = {}

    def workers(self, look: bool = False) -> dict[str, int]:
        """The threads of each worker by its address; looked up again now and then, or now."""
        if look or time.monotonic() - self._looked > LOOK:
            try:
                self._workers = {address: int(threads) for address, threads in self.client.nthreads().items()}
            except Exception as error:
                raise self._lost(error) from error
            self._looked = time.monotonic()
            self._met &= self._workers.keys()
        return self._workers

    def _lost(self, error: BaseException | None = None) -> ClusterError:
        where = getattr(getattr(self.client, "scheduler", None), "address", "the scheduler")
        why = f" ({type(error).__name__}: {error})" if error is not None and str(error) else ""
        return ClusterError(f"the scheduler at {where} went away{why}; {AGAIN}")

    def _some_workers(self) -> dict[str, int]:
        """The workers, waiting for the first; raises where none comes."""
        until, told = time.monotonic() + self.patience, False
        while not (found := self.workers(look=told)):
            if not told:
                self.say(f"the cluster has no worker: waiting {self.patience:g} s for one")
            if time.monotonic() > until:
                raise ClusterError(f"the cluster has had no worker for {self.patience:g} s; {AGAIN}")
            told = True
            time.sleep(0.2)
        return found

    def new_shards(self, names: Sequence[str], beside: Sequence[int] | None = None) -> list[int]:
        """Numbers for new shards; `names` are of what they have. They belong to who has those `beside` which they are.

        Others get an owner when they are first asked about.
        """
        with self._lock:
            numbers = [next(self._numbers) for _ in names]
            self.names |= dict(zip(numbers, names, strict=True))
            for number, other in zip(numbers, beside or (), strict=False):
                if other in self.owner:
                    self.owner[number] = self.owner[other]
        return numbers

    def drop_shards(self, numbers: Sequence[int]) -> None:
        """Nobody will ask about these shards again: workers forget them with the next question.

        May be called at any time, by the garbage collector too: so it only notes which.
        """
        self._dropped.extend(numbers)

    def _drop(self) -> None:
        while self._dropped:
            number = self._dropped.pop()
            self.owner.pop(number, None)
            if (name := self.names.pop(number, None)) is not None:
                self.dead.append(name)

    def _give(self, number: int, worker: str) -> None:
        """Make a worker the owner of a shard; the one before forgets it."""
        before = self.owner.get(number)
        if before is not None and before != worker:
            self._gone.setdefault(before, []).append(self.names[number])
        self.owner[number] = worker

    def _place(self, numbers: Sequence[int], avoid: AbstractSet[str] = frozenset()) -> dict[str, list[int]]:
        """The shards by worker: as they are, those of nobody to who has least; a late worker takes over some."""
        workers = self._some_workers()
        allowed = sorted(workers.keys() - avoid) or sorted(workers)
        with self._lock:
            self._drop()
            load = Counter(owner for number, owner in self.owner.items() if owner in workers)
            for number in numbers:
                if self.owner.get(number) not in allowed:
                    least = min(allowed, key=lambda each: (load[each] / workers[each], each))
                    self._give(number, least)
                    load[least] += 1
            self._level(numbers, workers, load)
            groups: dict[str, list[int]] = {}
            for number in numbers:
                groups.setdefault(self.owner[number], []).append(number)
        return groups

    def _level(self, numbers: Sequence[int], workers: dict[str, int], load: Counter[str]) -> None:
        """Give one shard to a worker that has none, which joined late, from the one that has most."""
        for idle in sorted(address for address in workers if not load[address]):
            most = max(load, key=lambda each: (load[each], each), default="")
            mine = [number for number in numbers if self.owner[number] == most]
            if load[most] < 2 or not mine:
                return
            self._give(mine[-1], idle)
            load[most], load[idle] = load[most] - 1, 1
