"""Shards as another machine would have them: asked at once, ready in any order, and what they keep is out of reach.

A handle is a number that only its shard understands; each question and answer goes through pickle, as over a wire.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fliprank.arrays import Ints
from fliprank.objectives import Objective
from fliprank.optimize.shard import Shard
from fliprank.optimize.shards import Kept, Shards

T = TypeVar("T")


class Handle(NamedTuple):
    """What a shard keeps, by number."""

    number: int


class FarShard:
    """One shard behind a wire, with all that it keeps."""

    def __init__(self, shard: Shard) -> None:
        self.shard, self.store, self.lock = shard, dict[int, Any](), threading.Lock()

    def ask(self, wire: bytes, own: Sequence[Handle], answer: str, delay: float) -> bytes:
        question, given = pickle.loads(wire)
        time.sleep(delay)
        found = question(self.shard, *given, *(self.store[handle.number] for handle in own))
        if answer == "tell":
            return pickle.dumps((found, None))
        told, kept = (None, found) if answer == "keep" else found
        with self.lock:
            handle = Handle(len(self.store))
            self.store[handle.number] = kept
        return pickle.dumps((told, handle))


class FarShards(Shards):
    """Asked in threads; the delays make the order of answers another one each time."""

    def __init__(self, far: Sequence[FarShard], seed: int = 0) -> None:
        self.far, self.rng = tuple(far), np.random.default_rng(seed)
        self.query_counts = np.array([far.shard.rows.queries for far in self.far], np.int64)
        self.row_counts = np.array([len(far.shard.rows) for far in self.far], np.int64)

    @classmethod
    def of(cls, shards: Sequence[Shard], seed: int = 0) -> FarShards:
        return cls([FarShard(shard) for shard in shards], seed)

    def _ask(self, answer: str, question: Callable[..., Any], given: Any, kept: Sequence[Kept]) -> list[Any]:
        wire, delays = pickle.dumps((question, given)), 2e-4 * self.rng.permutation(len(self.far))
        with ThreadPoolExecutor(len(self.far)) as pool:
            futures = [
                pool.submit(far.ask, wire, own, answer, delay)
                for far, delay, *own in zip(self.far, delays, *kept, strict=True)
            ]
            return [pickle.loads(future.result()) for future in futures]

    def tell(self, question: Callable[..., T], *given: Any, kept: Sequence[Kept] = ()) -> list[T]:
        return [told for told, _ in self._ask("tell", question, given, kept)]

    def keep(self, question: Callable[..., Any], *given: Any, kept: Sequence[Kept] = ()) -> Kept:
        return [handle for _, handle in self._ask("keep", question, given, kept)]

    def tell_and_keep(
        self, question: Callable[..., tuple[T, Any]], *given: Any, kept: Sequence[Kept] = ()
    ) -> tuple[list[T], Kept]:
        both = self._ask("both", question, given, kept)
        return [told for told, _ in both], [handle for _, handle in both]

    def select(self, queries: Ints) -> FarShards:
        if len(queries) == self.queries:
            return self
        return FarShards.of([self.far[s].shard.part(own) for s, own in self.owners(queries)])

    def single(self, query: int) -> FarShards:
        return self.select(np.array([query]))

    def only(self, shard: int) -> FarShards:
        return FarShards([self.far[shard]])

    def with_objective(self, objective: Objective) -> FarShards:
        return FarShards.of([Shard(far.shard.rows, objective) for far in self.far])
