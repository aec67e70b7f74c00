"""The shards of a problem, asked all at once: here in memory; elsewhere in windows of files, or on other machines.

Each shard is some queries with all their rows. `tell` asks each the same question (see `shard.py`) and brings the
answers back; `keep` leaves what was computed where the rows are and gives a handle per shard, which the next question
takes. Answers come in the order of shards, whichever was ready first, so that sums of them are the same every time.

`shards_of` makes the shards of any rows; another kind of rows registers itself there (`shards_of.register`).

>>> from fliprank.models import Linear
>>> from fliprank.optimize.shard import measure_of, scores_of
>>> from fliprank.measures import parse_measure
>>> rows = Candidates.of([1, 0, 0, 1], group=[2, 2], features=[[2.0], [0.0], [3.0], [1.0]])
>>> shards = shards_of([rows.select([0]), rows.select([1])], None)
>>> scores = shards.keep(scores_of, Linear().prepared(rows, 0).at([0.0, 1.0]))
>>> [told.tolist() for told in shards.tell(measure_of, parse_measure("RR"), kept=(scores,))]
[[1.0], [0.5]]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, singledispatch
from typing import Any, TypeVar

import numpy as np

from fliprank.arrays import Ints
from fliprank.data.candidates import Candidates
from fliprank.objectives.base import Objective
from fliprank.optimize.shard import Shard

__all__ = ["Kept", "MemoryShards", "Shards", "shards_of"]

T = TypeVar("T")
K = TypeVar("K")

Kept = Sequence[Any]
"""A handle per shard of what it keeps: the thing itself where that is here."""


class Shards(ABC):
    """All that a problem may ask of its rows. `query_counts` and `row_counts` are those of each shard."""

    query_counts: Ints
    row_counts: Ints

    @abstractmethod
    def tell(self, question: Callable[..., T], *given: Any, kept: Sequence[Kept] = ()) -> list[T]:
        """What question(shard, *given, *kept of this shard) tells, shard by shard."""

    @abstractmethod
    def keep(self, question: Callable[..., Any], *given: Any, kept: Sequence[Kept] = ()) -> Kept:
        """Handles of what the question keeps; nothing is brought back."""

    @abstractmethod
    def tell_and_keep(
        self, question: Callable[..., tuple[T, Any]], *given: Any, kept: Sequence[Kept] = ()
    ) -> tuple[list[T], Kept]:
        """Both, of a question whose answer is (what it tells, what it keeps)."""

    @abstractmethod
    def select(self, queries: Ints) -> Shards:
        """The shards of some of the queries (numbers that rise), with as many shards as these queries need."""

    @abstractmethod
    def single(self, query: int) -> Shards:
        """The one shard of one query, for methods that take a step per query."""

    @abstractmethod
    def only(self, shard: int) -> Shards:
        """One of the shards, for methods that take a step per pair."""

    @abstractmethod
    def with_objective(self, objective: Objective) -> Shards:
        """The same rows under another objective, of which nothing is given by row."""

    @cached_property
    def first_query(self) -> Ints:
        """The number of the first query of each shard, and at last of all queries."""
        return np.cumsum([0, *self.query_counts])

    @cached_property
    def queries(self) -> int:
        """How many queries there are."""
        return int(self.query_counts.sum())

    @cached_property
    def rows(self) -> int:
        """How many documents there are."""
        return int(self.row_counts.sum())

    def __len__(self) -> int:
        return len(self.query_counts)

    def owners(self, queries: Ints) -> Iterator[tuple[int, Ints]]:
        """Each shard that has some of these queries (numbers that rise), and their numbers within it."""
        cuts = np.searchsorted(queries, self.first_query)
        for s in np.flatnonzero(np.diff(cuts)).tolist():
            yield s, queries[cuts[s] : cuts[s + 1]] - self.first_query[s]

    def owner(self, query: int) -> tuple[int, int]:
        """The shard that has a query, and its number within it."""
        shard = int(np.searchsorted(self.first_query, query, "right")) - 1
        return shard, query - int(self.first_query[shard])


class MemoryShards(Shards):
    """Rows in memory."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = tuple(shards)
        self.query_counts = np.array([shard.rows.queries for shard in self.shards], np.int64)
        self.row_counts = np.array([len(shard.rows) for shard in self.shards], np.int64)
        self._singles: dict[int, MemoryShards] = {}

    def __iter__(self) -> Iterator[Shard]:
        return iter(self.shards)

    def tell(self, question: Callable[..., T], *given: Any, kept: Sequence[Kept] = ()) -> list[T]:
        return [question(shard, *given, *own) for shard, *own in zip(self.shards, *kept, strict=True)]

    def keep(self, question: Callable[..., Any], *given: Any, kept: Sequence[Kept] = ()) -> Kept:
        return tuple(self.tell(question, *given, kept=kept))

    def tell_and_keep(
        self, question: Callable[..., tuple[T, Any]], *given: Any, kept: Sequence[Kept] = ()
    ) -> tuple[list[T], Kept]:
        both = self.tell(question, *given, kept=kept)
        return [told for told, _ in both], tuple(own for _, own in both)

    def select(self, queries: Ints) -> MemoryShards:
        if len(queries) == self.queries:
            return self
        return MemoryShards([self.shards[s].part(own) for s, own in self.owners(queries)])

    def single(self, query: int) -> MemoryShards:
        """The shard of one query, which is kept."""
        if query not in self._singles:
            shard, number = self.owner(query)
            self._singles[query] = MemoryShards([self.shards[shard].part(np.array([number]))])
        return self._singles[query]

    def only(self, shard: int) -> MemoryShards:
        return MemoryShards([self.shards[shard]])

    def with_objective(self, objective: Objective) -> MemoryShards:
        return MemoryShards([Shard(shard.rows, objective) for shard in self.shards])


@singledispatch
def shards_of(rows: Any, objective: Objective | None) -> Shards:
    """The shards of some rows, or of a list of parts; row numbers of an objective count through all parts."""
    parts: list[Candidates] = list(rows)
    begin, shards = 0, list[Shard]()
    for part in parts:
        own = objective
        if objective is not None and len(parts) > 1:
            own = objective.take(np.arange(begin, begin + len(part)))
        shards.append(Shard(part, own))
        begin += len(part)
    return MemoryShards(shards)


@shards_of.register
def _of_candidates(rows: Candidates, objective: Objective | None) -> Shards:
    return MemoryShards([Shard(rows, objective)])
