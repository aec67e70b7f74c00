"""Rows on the workers of a cluster: files that they read, or rows that they are sent, in shards of whole queries.

Here only is known what is small: how many rows each query has, its id, the names of features. The rows are never
gathered.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from fliprank.arrays import Ints
from fliprank.data.candidates import Candidates
from fliprank.data.ids import Ids, find_duplicates
from fliprank.distributed.cluster import Cluster
from fliprank.distributed.messages import base_of, pack
from fliprank.distributed.remote_shards import RemoteShards
from fliprank.distributed.shard_answers import name_of
from fliprank.errors import InputError
from fliprank.models.base import Model
from fliprank.objectives.base import Objective
from fliprank.optimize.shards import Shards, shards_of

__all__ = ["ClusterRows", "cut_rows"]

T = TypeVar("T")


class ClusterRows:
    """Rows in shards on the workers of a `Cluster`; `sources` say where each comes from (see `row_sources`)."""

    def __init__(self, cluster: Cluster, sources: Sequence[Mapping[str, Any]], labels: Sequence[str] | None = None):
        if not sources:
            raise InputError("there are no shards of rows")
        self.cluster, self.shards = cluster, list(sources)
        self.labels = list(labels or (f"shard {s + 1}" for s in range(len(sources))))
        self.names = [f"rows-{uuid4().hex}" for _ in sources]
        self.numbers = cluster.new_shards(self.names)
        weakref.finalize(self, cluster.drop_shards, self.numbers).atexit = False
        told = cluster.ask("rows", self.numbers, self._named, self.definition)
        self._check(told)
        self.query_counts = np.array([each["queries"] for each in told], np.int64)
        self.row_counts = np.array([each["rows"] for each in told], np.int64)
        self.sizes: list[Ints] = [each["sizes"] for each in told]
        self.feature_names: tuple[str, ...] = tuple(told[0]["features"])
        self.fields: tuple[str, ...] | None = None if told[0]["fields"] is None else tuple(told[0]["fields"])
        self.qids = Ids.concat([each["qids"] for each in told])
        self.digest = blake2b("".join(each["digest"] for each in told).encode(), digest_size=16).hexdigest()
        if (twice := find_duplicates(self.qids, np.array([0, len(self.qids)]))[0]) >= 0:
            owners = [s for s, own in enumerate(told) if self.qids[twice] in own["qids"].tolist()]
            names = " and ".join(self.labels[s] for s in owners[:2])
            raise InputError(f"the query is in two shards, {names}", query=self.qids[twice])

    def _named(self, numbers: list[int]) -> dict[str, Any]:
        return {"rows": [self.names[self.numbers.index(n)] for n in numbers]}

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

    def definition(self, name: str, others: Mapping[str, bytes] | None = None) -> Any:
        """The message that says what a worker is to have under a name."""
        if others is not None and name in others:
            return others[name]
        told = pack(dict(self.shards[self.names.index(name)]))
        return told if others is not None else {name: told}

    def __len__(self) -> int:
        return int(self.row_counts.sum())

    def __repr__(self) -> str:
        return f"ClusterRows: {self.queries:,} queries, {len(self):,} rows in {len(self.shards)} shards"

    @cached_property
    def queries(self) -> int:
        """How many queries there are."""
        return int(self.query_counts.sum())

    def each(self, function: Callable[..., T], *given: Any) -> Iterator[T]:
        """What a function of fliprank's gives of the rows of each shard, in the order of queries."""
        models = {base_of(each)[0]: each for each in given if isinstance(each, Model)}
        common = {"question": name_of(function), "given": tuple(given), "bare": True, "keeps": None}

        def request(numbers: list[int]) -> dict[str, Any]:
            named = (self.names[self.numbers.index(n)] for n in numbers)
            return {**common, "shards": [{"rows": n, "objective": None, "part": None, "kept": []} for n in named]}

        def definitions(name: str) -> Mapping[str, bytes]:
            return {name: base_of(models[name])[1] if name in models else self.definition(name, {})}

        told = self.cluster.ask("ask", self.numbers, request, definitions, label=function.__name__)
        return iter([each["told"] for each in told])


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
