"""Who has which shard: as it was, unless a worker is gone, has nothing yet, or was given up.

A shard belongs to one worker, which keeps its rows or documents. It moves only if it must, or to a worker that joined
late and has fewer; the worker that had it forgets it with the next question.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from itertools import count
from threading import Lock
from typing import Any

from fliprank.errors import FliprankError

__all__ = ["AGAIN", "ClusterError", "Placement"]

AGAIN = "a training goes on from its checkpoint, which has all epochs that were done, if it is started with --resume"
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
        self._behind: set[str] = set()
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

    def give(self, numbers: Sequence[int], worker: str) -> None:
        """Make a worker the owner of shards; the one before forgets them."""
        with self._lock:
            for number in numbers:
                self._give(number, worker)

    def _give(self, number: int, worker: str) -> None:
        before = self.owner.get(number)
        if before is not None and before != worker:
            self._gone.setdefault(before, []).append(self.names[number])
        self.owner[number] = worker

    def able(self) -> dict[str, int]:
        """The threads of each worker that is not left behind, or of all where all are."""
        workers = self._some_workers()
        return {each: threads for each, threads in workers.items() if each not in self._behind} or workers

    def leave_behind(self, worker: str, future: Future[bytes]) -> None:
        """Give a worker nothing more to do until it has answered."""
        self._behind.add(worker)
        future.add_done_callback(lambda _: self._behind.discard(worker))

    def place(self, numbers: Sequence[int], avoid: AbstractSet[str] = frozenset()) -> dict[str, list[int]]:
        """The shards by worker: as they are, those of nobody to who has least; a late worker takes over some."""
        workers = self.able()
        allowed = (workers.keys() - avoid) or set(workers)
        with self._lock:
            self._drop()
            load = Counter(dict.fromkeys(workers, 0))
            load.update(owner for owner in self.owner.values() if owner in workers)
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
        """Give one shard of who has most to who has least, if that one then still has no more."""

        def share(worker: str, more: int = 0) -> tuple[float, str]:
            return (load[worker] + more) / workers[worker], worker

        most, least = max(workers, key=share), min(workers, key=share)
        if share(most)[0] > share(least, 1)[0] or (not load[least] and load[most] > 1):
            mine = next((number for number in reversed(numbers) if self.owner[number] == most), None)
            if mine is not None:
                self._give(mine, least)
