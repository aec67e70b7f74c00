"""The shards of a problem on the workers of a cluster: questions go there, sums come back, rows and scores stay.

What a question keeps has a name here and a recipe: the question itself, with what it was given and the names of what it
needed. `keep` sends nothing at all; the recipe goes along with the next question that needs the thing. So a gradient
of a model without a shared spread is one trip, and one of a model with one is three.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import numpy as np

from fliprank.arrays import Ints
from fliprank.distributed.messages import bases_in, pack
from fliprank.distributed.shard_answers import name_of
from fliprank.objectives.base import Objective
from fliprank.optimize.shards import Kept, Shards

if TYPE_CHECKING:
    from fliprank.distributed.rows import ClusterRows

__all__ = ["RemoteShards"]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class _Recipe:
    """How a thing that workers keep is made; its recipe lives as long as something that is made of it."""

    name: str
    message: bytes
    bases: dict[str, bytes]
    before: tuple[_Recipe, ...]

    def messages(self) -> dict[str, bytes]:
        """All that a worker needs to make it from nothing."""
        found, line = dict[str, bytes](), [self]
        while line:
            recipe = line.pop()
            if recipe.name not in found:
                found[recipe.name] = recipe.message
                found |= recipe.bases
                line += recipe.before
        return found


class _Handle:
    """Stands for what every shard keeps under one name; when nobody holds it any more, workers drop that."""

    def __init__(self, recipe: _Recipe, dead: list[str]) -> None:
        self.recipe, self.made = recipe, False
        weakref.finalize(self, dead.append, recipe.name).atexit = False


class RemoteShards(Shards):
    """Shards of `ClusterRows` under one objective, all of them or some, whole or cut to some of their queries."""

    def __init__(
        self,
        rows: ClusterRows,
        objective: Objective | None,
        chosen: Sequence[int] | None = None,
        parts: Mapping[int, Ints] | None = None,
        counts: tuple[Ints, Ints] | None = None,
    ) -> None:
        self.source, self.objective, self.parts = rows, objective, parts or {}
        self.chosen = list(range(len(rows.shards))) if chosen is None else list(chosen)
        if counts is None:
            counts = (rows.query_counts[self.chosen], rows.row_counts[self.chosen])
        self.query_counts, self.row_counts = counts

    # Questions

    def tell(self, question: Callable[..., T], *given: Any, kept: Sequence[Kept] = ()) -> list[T]:
        return self._ask(question, given, kept, None)

    def keep(self, question: Callable[..., Any], *given: Any, kept: Sequence[Kept] = ()) -> Kept:
        return self._handles(question, given, kept, tells=False)

    def tell_and_keep(
        self, question: Callable[..., tuple[T, Any]], *given: Any, kept: Sequence[Kept] = ()
    ) -> tuple[list[T], Kept]:
        handles = self._handles(question, given, kept, tells=True)
        told = self._ask(question, given, kept, handles[0])
        handles[0].made = True
        return told, handles

    def _handles(
        self, question: Callable[..., Any], given: Sequence[Any], kept: Sequence[Kept], tells: bool
    ) -> Sequence[_Handle]:
        before = tuple(column[0].recipe for column in kept)
        names = [recipe.name for recipe in before]
        told = {"question": name_of(question), "given": tuple(given), "kept": names, "tells": tells}
        recipe = _Recipe(f"kept-{uuid4().hex}", pack(told), bases_in(given), before)
        return [_Handle(recipe, self.source.cluster.dead)] * len(self)

    def _ask(
        self, question: Callable[..., Any], given: Sequence[Any], kept: Sequence[Kept], keeps: _Handle | None
    ) -> list[Any]:
        handles = [[column[s] for column in kept] for s in range(len(self))]
        every = {id(handle): handle for own in handles for handle in own}.values()
        sent = {handle.recipe.name: handle.recipe.message for handle in every if not handle.made}
        recipes: dict[str, _Recipe] = {handle.recipe.name: handle.recipe for handle in every}
        bases = bases_in(given)
        place = {self.source.numbers[s]: at for at, s in enumerate(self.chosen)}
        common = {"question": name_of(question), "given": tuple(given), "bare": False}
        common["keeps"] = None if keeps is None else keeps.recipe.name

        def request(numbers: list[int]) -> dict[str, Any]:
            return {**common, "shards": [self._shard(place[n], handles[place[n]]) for n in numbers]}

        def definitions(name: str) -> Mapping[str, bytes]:
            if name in recipes:
                return recipes[name].messages()
            if name in bases:
                return {name: bases[name]}
            for recipe in recipes.values():  # something that a recipe needs
                if name in (known := recipe.messages()):
                    return known
            return {name: self._objectives[name]} if name in self._objectives else self.source.definitions(name)

        label = question.__name__
        numbers = [self.source.numbers[s] for s in self.chosen]
        told = self.source.cluster.ask("ask", numbers, request, definitions, sent, label)
        for handle in every:
            handle.made = True
        return [each["told"] for each in told]

    def _shard(self, at: int, handles: Sequence[_Handle]) -> dict[str, Any]:
        s = self.chosen[at]
        own = {"rows": self.source.names[s], "objective": self._objective_names[s], "part": self.parts.get(s)}
        return {**own, "own": [], "kept": [handle.recipe.name for handle in handles]}

    @cached_property
    def _objectives(self) -> dict[str, bytes]:
        """The objective of each shard by a name made of it: one for all, unless something is given by row."""
        return dict(self._by_shard.values())

    @cached_property
    def _objective_names(self) -> dict[int, str | None]:
        if self.objective is None:
            return dict.fromkeys(self.chosen)
        return {s: name for s, (name, _) in self._by_shard.items()}

    @cached_property
    def _by_shard(self) -> dict[int, tuple[str, bytes]]:
        if self.objective is None:
            return {}
        if self.objective.take(np.arange(0)) is self.objective:  # nothing is given by row
            return dict.fromkeys(self.chosen, _named(self.objective))
        begin, out = np.cumsum([0, *self.source.row_counts]), dict[int, tuple[str, bytes]]()
        for s in self.chosen:
            out[s] = _named(self.objective.take(np.arange(begin[s], begin[s + 1])))
        return out

    # Other shards of the same rows

    def select(self, queries: Ints) -> RemoteShards:
        if len(queries) == self.queries:
            return self
        chosen, parts, sizes = list[int](), dict[int, Ints](), list[tuple[int, int]]()
        for at, own in self.owners(queries):
            s = self.chosen[at]
            part = self.parts[s][own] if s in self.parts else own
            chosen.append(s)
            if len(part) < self.source.query_counts[s]:
                parts[s] = part
            sizes.append((len(part), int(self.source.sizes[s][part].sum())))
        counts = np.array(sizes, np.int64).reshape(-1, 2)
        return RemoteShards(self.source, self.objective, chosen, parts, (counts[:, 0], counts[:, 1]))

    def single(self, query: int) -> RemoteShards:
        return self.select(np.array([query]))

    def only(self, shard: int) -> RemoteShards:
        s = self.chosen[shard]
        counts = self.query_counts[[shard]], self.row_counts[[shard]]
        own = {s: self.parts[s]} if s in self.parts else {}
        return RemoteShards(self.source, self.objective, [s], own, counts)

    def with_objective(self, objective: Objective) -> RemoteShards:
        return RemoteShards(self.source, objective, self.chosen, self.parts, (self.query_counts, self.row_counts))


def _named(objective: Objective) -> tuple[str, bytes]:
    told = pack(objective)
    return f"objective-{blake2b(told, digest_size=12).hexdigest()}", told
