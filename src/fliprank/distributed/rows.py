"""Rows on the workers of a cluster: files that they read, or rows that they are sent, in shards of whole queries.

Here only is known what is small: how many rows each query has, its id, the names of features. The rows are never
gathered.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Ints
from fliprank.data.candidates import Candidates
from fliprank.data.ids import Ids, find_duplicates
from fliprank.data.scattered import ScatteredRows
from fliprank.distributed.cluster import Cluster
from fliprank.distributed.messages import bases_in, pack
from fliprank.distributed.remote_shards import RemoteShards
from fliprank.distributed.shard_answers import name_of
from fliprank.errors import InputError
from fliprank.objectives.base import Objective
from fliprank.optimize.shards import Shards, shards_of

__all__ = ["ClusterRows", "cut_rows"]

T = TypeVar("T")


class ClusterRows(ScatteredRows):
    """Rows in shards on the workers of a `Cluster`; `sources` say where each comes from (see `row_sources`).

    `before` are the rows that these are made of, where that is so: a worker that lost its part makes it anew from them.
    """

    def __init__(
        self,
        cluster: Cluster,
        sources: Sequence[Mapping[str, Any]],
        labels: Sequence[str] | None = None,
        before: ClusterRows | None = None,
    ) -> None:
        if not sources:
            raise InputError("there are no shards of rows")
        self.cluster, self.shards, self.before = cluster, list(sources), before
        self.labels = list(labels or (f"shard {s + 1}" for s in range(len(sources))))
        self.names = [f"rows-{uuid4().hex}" for _ in sources]
        self._shard_of = {name: s for s, name in enumerate(self.names)}
        self._digests: list[NDArray[np.uint64]] = []
        self.numbers: list[int] = cluster.new_shards(self.names, None if before is None else before.numbers)
        self._place = {number: s for s, number in enumerate(self.numbers)}
        weakref.finalize(self, cluster.drop_shards, self.numbers).atexit = False
        told = cluster.ask("rows", self.numbers, self._named, self.definitions, label="read rows")
        self._check(told)
        self.query_counts = np.array([each["queries"] for each in told], np.int64)
        self.row_counts = np.array([each["rows"] for each in told], np.int64)
        self.sizes: list[Ints] = [each["sizes"] for each in told]
        self.feature_names: tuple[str, ...] = tuple(told[0]["features"])
        self.has_docids: bool = told[0]["docids"]
        self._qids = Ids.concat([each["qids"] for each in told])
        self._digests = [each["digests"] for each in told]
        self.digest = blake2b(np.concatenate(self._digests).data, digest_size=16).hexdigest()
        if (twice := find_duplicates(self.qids, np.array([0, len(self.qids)]))[0]) >= 0:
            owners = [s for s, own in enumerate(told) if self.qids[twice] in own["qids"].tolist()]
            names = " and ".join(self.labels[s] for s in owners[:2])
            raise InputError(f"the query is in two shards, {names}", query=self.qids[twice])

    def _named(self, numbers: list[int]) -> dict[str, Any]:
        return {"rows": [self.names[self._place[number]] for number in numbers]}

    def _check(self, told: Sequence[Mapping[str, Any]]) -> None:
        """Raise where shards do not fit together."""
        first = told[0]
        for s, own in enumerate(told):
            for what in ("features", "fields", "docids"):
                if own[what] != first[what]:
                    have = [each[what] for each in (first, own)]
                    counts = " and ".join(f"{len(each):,}" if isinstance(each, list) else str(each) for each in have)
                    hint = f"{self.labels[0]} and {self.labels[s]} have {counts}"
                    raise InputError(f"shards with different {what}", path=self.labels[s], hint=hint)
        if first["fields"] is not None:
            raise InputError("rows with term statistics are not taken in shards: give documents in shards")

    def definitions(self, name: str) -> Mapping[str, bytes]:
        """What a worker must be sent to have the rows of this name: where they come from, as far as it misses that.

        Of a file that was read before, also what tells its rows from others: they must still be the same.
        """
        if (s := self._shard_of.get(name)) is not None:
            source = dict(self.shards[s])
            if "file" in source and self._digests:
                source["digests"] = self._digests[s]
            return {name: pack(source), **bases_in(source)}
        return {} if self.before is None else self.before.definitions(name)

    @property
    def qids(self) -> Ids:
        return self._qids

    def each(self, function: Callable[..., T], *given: Any, own: Sequence[Any] = ()) -> Iterator[T]:
        return iter(self._told(self.numbers, function, given, own))

    def in_turn(self, function: Callable[..., T], *given: Any, own: Sequence[Any] = ()) -> Iterator[T]:
        many = max(1, sum(self.cluster.workers().values()))
        for low in range(0, len(self.numbers), many):
            yield from self._told(self.numbers[low : low + many], function, given, own)

    def _told(self, numbers: Sequence[int], function: Callable[..., T], given: Any, own: Sequence[Any]) -> list[T]:
        """function(rows, *given, *own) of these shards."""
        bases, columns = bases_in(given), [list(column) for column in own]
        common = {"question": name_of(function), "given": given, "bare": True, "keeps": None}

        def shard(s: int) -> dict[str, Any]:
            mine = [column[s] for column in columns]
            return {"rows": self.names[s], "objective": None, "part": None, "own": mine, "kept": []}

        def request(some: list[int]) -> dict[str, Any]:
            return {**common, "shards": [shard(self._place[number]) for number in some]}

        def definitions(name: str) -> Mapping[str, bytes]:
            return {name: bases[name]} if name in bases else self.definitions(name)

        told = self.cluster.ask("ask", numbers, request, definitions, label=function.__name__)
        return [each["told"] for each in told]

    def rewritten(self, function: Callable[..., Candidates], *given: Any, own: Sequence[Any] = ()) -> ClusterRows:
        """The rows that a function of fliprank's makes of each shard, which stay on its worker."""
        columns = [list(column) for column in own]
        sources = [
            {"of": name, "function": function, "given": tuple(given), "own": [column[s] for column in columns]}
            for s, name in enumerate(self.names)
        ]
        return ClusterRows(self.cluster, sources, self.labels, self)


@shards_of.register
def _on_cluster(rows: ClusterRows, objective: Objective | None) -> Shards:
    return RemoteShards(rows, objective)


def cut_rows(rows: Candidates, shards: int) -> list[Candidates]:
    """Rows as so many shards of whole queries, of about as many rows each.

    >>> [len(part) for part in cut_rows(Candidates.of([1, 0, 0, 1, 0, 0], group=[3, 1, 2]), 2)]
    [3, 3]
    """
    ends = np.searchsorted(rows.offsets, len(rows) * np.arange(1, shards) / shards)
    cuts = np.unique([0, *ends, rows.queries])
    return [rows.select(np.arange(a, b)) for a, b in pairwise(cuts)]
