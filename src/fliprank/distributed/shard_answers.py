"""Questions about rows, answered where the rows are (see `optimize/shard.py` for the questions).

A question comes with the names of what it is about: rows, which the worker reads or was sent, an objective, perhaps
some of the queries only, and things that earlier questions kept here. Of each such thing the client knows the recipe,
that is, the question that it came from; a worker that does not have it, since another one died, makes it anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Ints
from fliprank.data.candidates import Candidates
from fliprank.distributed.messages import Named, own_function, unpack
from fliprank.distributed.row_sources import read_source
from fliprank.distributed.worker import Session, collect_missing
from fliprank.errors import InputError
from fliprank.optimize.shard import MOST_SLOPES, Shard

__all__ = ["ask", "call", "describe_rows", "name_of"]

MOST_PARTS = 256
"""Parts of shards (batches, single queries) that are kept."""


def name_of(question: Callable[..., Any]) -> str:
    """The name under which a question travels: it must be a function of fliprank itself."""
    return f"{question.__module__}:{question.__qualname__}"


def describe_rows(session: Session, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Read the rows of these names, and say how many there are and what they have."""
    session.needs(request["rows"])
    return [_described(rows) for rows in collect_missing(lambda name: rows_named(session, name), request["rows"])]


def _described(rows: Candidates) -> dict[str, Any]:
    told: dict[str, Any] = {"queries": rows.queries, "rows": len(rows), "features": list(rows.feature_names)}
    told |= {"qids": rows.qids.compact(), "sizes": rows.sizes, "docids": rows.docids is not None}
    return told | {"fields": None if rows.terms is None else list(rows.terms.fields), "digests": digests_of(rows)}


def digests_of(rows: Candidates) -> NDArray[np.uint64]:
    """Eight bytes that tell each query's rows from others: all rows have the same, however they are cut into shards."""
    out = np.empty(rows.queries, np.uint64)
    for q, (low, high) in enumerate(pairwise(rows.offsets.tolist())):
        digest = blake2b(rows.labels[low:high].tobytes(), digest_size=8)
        if rows.features is not None:
            digest.update(np.ascontiguousarray(rows.features[low:high]).data)
        out[q] = int.from_bytes(digest.digest(), "little")
    return out


def rows_named(session: Session, name: str) -> Candidates:
    """The rows that were sent under this name, or read from where they are."""
    rows: Candidates = session.once(name, lambda: _read(session, name))
    return rows


def _read(session: Session, name: str) -> Candidates:
    """Rows from a file or a message; or what a function makes of other rows of this worker."""
    source = unpack(session.message(name), session.shared)
    if "of" in source:
        made: Candidates = source["function"](rows_named(session, source["of"]), *source["given"], *source["own"])
        return made
    rows = read_source(source)
    if "rows" in source:
        session.sent.pop(name, None)  # not twice in memory: who asks for it again is sent it again
    elif "digests" in source and not np.array_equal(digests_of(rows), source["digests"]):
        raise InputError("has other rows than when it was first read, here or on another worker", path=source["file"])
    return rows


def call(session: Session, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Call functions of fliprank's own; where one is given the name of rows, it gets the rows."""
    out = list[dict[str, Any]]()
    session.needs(each.name for own in request["calls"] for each in own["given"] if isinstance(each, Named))
    for own in request["calls"]:
        begun = time.perf_counter()
        given = [rows_named(session, each.name) if isinstance(each, Named) else each for each in own["given"]]
        out.append({"told": own["function"](*given), "seconds": time.perf_counter() - begun})
    return out


def ask(session: Session, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Ask each of these shards a question: what it tells, and how long that took."""
    question, given = own_function(request["question"]), request["given"]
    session.needs(name for own in request["shards"] for name in (own["rows"], own["objective"]) if name is not None)

    def ready(own: dict[str, Any]) -> tuple[float, _Place, list[Any]]:
        begun, place = time.perf_counter(), _Place(session, own["rows"], own["objective"], own["part"])
        rows_named(session, own["rows"])
        before = [place.kept(name) for name in own["kept"]]
        return time.perf_counter() - begun, place, before

    out = list[dict[str, Any]]()
    for own, (spent, place, before) in zip(request["shards"], collect_missing(ready, request["shards"]), strict=True):
        begun = time.perf_counter() - spent
        found = question(place.subject(request["bare"]), *given, *own["own"], *before)
        if request["keeps"] is not None:
            found, session.kept[place.key, request["keeps"]] = found
        out.append({"told": found, "seconds": time.perf_counter() - begun})
    return out


class _Place:
    """A shard, or a part of one, and what was kept about it."""

    def __init__(self, session: Session, rows: str, objective: str | None, part: Ints | None) -> None:
        self.session, self.rows, self.objective, self.part = session, rows, objective, part
        cut = "" if part is None else blake2b(part.tobytes(), digest_size=12).hexdigest()
        self.whole = f"{rows} {objective or ''}"
        self.key = f"{self.whole} {cut}"

    def subject(self, bare: bool) -> Shard | Candidates:
        """The shard; or with `bare`, its rows."""
        return rows_named(self.session, self.rows) if bare else self.shard()

    def shard(self) -> Shard:
        """The shard, with what it remembers from one question to the next."""
        whole: Shard = self.session.once(self.whole, self._make)
        if self.part is None:
            return whole
        parts = self.session.parts
        found: Shard = parts.pop(self.key, None) or whole.part(self.part)
        parts[self.key] = found
        while len(parts) > MOST_PARTS:
            gone, _ = parts.popitem(last=False)
            for key in [key for key in self.session.kept if key[0] == gone]:
                self.session.kept.pop(key, None)
        return found

    def _make(self) -> Shard:
        rows, shards = (
            rows_named(self.session, self.rows),
            sum(name.startswith("rows-") for name in list(self.session.made)),
        )
        objective = None if self.objective is None else unpack(self.session.message(self.objective))
        return Shard(rows, objective, MOST_SLOPES // max(1, shards))

    def kept(self, name: str) -> Any:
        """What an earlier question kept about this shard, made anew where it is not here."""
        if (known := self.session.kept.get((self.key, name))) is not None:
            return known
        line, found = [name], dict[str, Any]()
        while line:  # a long way of many moves, each of which needs the one before: no recursion
            if line[-1] in found:
                line.pop()
                continue
            recipe = unpack(self.session.message(line[-1]), self.session.shared)
            for each in recipe["kept"]:
                if each not in found and (known := self.session.kept.get((self.key, each))) is not None:
                    found[each] = known
            if absent := [each for each in recipe["kept"] if each not in found]:
                line += absent
                continue
            told = own_function(recipe["question"])(
                self.shard(), *recipe["given"], *(found[each] for each in recipe["kept"])
            )
            found[line.pop()] = told[1] if recipe["tells"] else told
        # What the way went through is not kept: nobody will ask for it, nor tell when to drop it.
        self.session.kept[self.key, name] = found[name]
        return found[name]
