"""Windows of files as the shards of a problem: read when they are asked, let go of when they have answered.

What a window keeps, such as a score per row, stays in memory as long as it fits in its share; beyond that it goes to a
scratch file, from which it is read again when the next question takes it.
"""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Ints
from fliprank.data.file_rows import FileRows
from fliprank.errors import InputError
from fliprank.objectives.base import Objective
from fliprank.optimize.shard import Shard
from fliprank.optimize.shards import Kept, MemoryShards, Shards, shards_of

__all__ = ["FileShards"]

T = TypeVar("T")


class Spilled(NamedTuple):
    """An array in a scratch file, which is removed with the last array in it."""

    file: Any
    begin: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def read(self) -> NDArray[Any]:
        """The array."""
        out = np.empty(self.shape, self.dtype)
        self.file.read_into(out, self.begin)
        return out


class Scratch:
    """A file without a name, to which arrays are appended."""

    def __init__(self) -> None:
        self.lock, self.end = threading.Lock(), 0
        self.file = tempfile.TemporaryFile(prefix="fliprank-scores-")  # noqa: SIM115 (it lives as long as its arrays)

    def write(self, array: NDArray[Any]) -> Spilled:
        raw = np.ascontiguousarray(array)
        with self.lock:
            try:
                self.file.seek(self.end)
                self.file.write(raw.data)
                self.file.flush()
            except OSError as error:
                message = f"scores can't be written to a scratch file: {error.strerror or error}"
                hint = "set TMPDIR to a folder with more room, or give more --memory"
                raise InputError(message, path=tempfile.gettempdir(), hint=hint) from error
            begin, self.end = self.end, self.end + raw.nbytes
        return Spilled(self, begin, raw.shape, raw.dtype)

    def read_into(self, out: NDArray[Any], begin: int) -> None:
        with self.lock:
            self.file.seek(begin)
            self.file.readinto(out.reshape(-1).view(np.uint8).data)


class Room:
    """Bytes that kept arrays may take; counted down while they live."""

    def __init__(self, size: int) -> None:
        self.left, self.lock = size, threading.Lock()

    def take(self, array: NDArray[Any]) -> bool:
        """Whether there was room for an array, which is counted until it is gone."""
        with self.lock:
            if array.nbytes > self.left:
                return False
            self.left -= array.nbytes
        weakref.finalize(array, self._give_back, array.nbytes)
        return True

    def _give_back(self, size: int) -> None:
        with self.lock:
            self.left += size


ROOMS: weakref.WeakKeyDictionary[FileRows, Room] = weakref.WeakKeyDictionary()
"""All problems on the same rows share one room."""


class FileShards(Shards):
    """One shard per window. Nothing of it stays in memory but what `FileRows` keeps."""

    def __init__(self, rows: FileRows, objective: Objective | None, room: Room | None = None) -> None:
        self.source, self.objective = rows, objective
        self.query_counts, self.row_counts = rows.query_counts, rows.row_counts
        self.room = room or ROOMS.setdefault(rows, Room(rows.memory.resident))
        self._objectives = self._own_objectives()

    def _own_objectives(self) -> list[Objective | None]:
        """The objective of each window: another one only where something is given by row."""
        if self.objective is None or self.objective.take(np.arange(0)) is self.objective:
            return [self.objective] * len(self.row_counts)
        ends = np.cumsum([0, *self.row_counts])
        return [self.objective.take(np.arange(low, high)) for low, high in pairwise(ends)]

    def _ask(self, question: Callable[..., T], given: Sequence[Any], kept: Sequence[Kept]) -> Iterator[T]:
        for number, *own in zip(range(len(self)), *kept, strict=True):
            with self.source.window(number) as part:
                shard = Shard(part, self._objectives[number], most_slopes=0)
                found = question(shard, *given, *(_back(each) for each in own))
            yield found

    def tell(self, question: Callable[..., T], *given: Any, kept: Sequence[Kept] = ()) -> list[T]:
        return list(self._ask(question, given, kept))

    def keep(self, question: Callable[..., Any], *given: Any, kept: Sequence[Kept] = ()) -> Kept:
        shelf = _Shelf(self.room)
        return [shelf.put(found) for found in self._ask(question, given, kept)]

    def tell_and_keep(
        self, question: Callable[..., tuple[T, Any]], *given: Any, kept: Sequence[Kept] = ()
    ) -> tuple[list[T], Kept]:
        told, shelf, handles = list[T](), _Shelf(self.room), list[Any]()
        for answer, own in self._ask(question, given, kept):
            told.append(answer)
            handles.append(shelf.put(own))
        return told, handles

    def select(self, queries: Ints) -> Shards:
        """In memory where a window would hold them, such as the batches of Adam; else in windows again."""
        if len(queries) == self.queries:
            return self
        if 4 * len(self.source.feature_names) * self.source.rows_of(queries) <= self.source.memory.window:
            return self._in_memory(queries)
        return FileShards(self.source.select(queries), self._taken(queries), self.room)

    def single(self, query: int) -> Shards:
        return self._in_memory(np.array([query]))

    def _in_memory(self, queries: Ints) -> Shards:
        return MemoryShards([Shard(self.source.gather(queries), self._taken(queries), most_slopes=0)])

    def _taken(self, queries: Ints) -> Objective | None:
        if self.objective is None or self.objective.take(np.arange(0)) is self.objective:
            return self.objective
        return self.objective.take(self.source.row_numbers(queries))

    def only(self, shard: int) -> Shards:
        return _OneWindow(self, shard)

    def with_objective(self, objective: Objective) -> Shards:
        return FileShards(self.source, objective, self.room)


class _OneWindow(FileShards):
    """One of the windows, asked as all of them are."""

    def __init__(self, whole: FileShards, number: int) -> None:
        self.source, self.objective, self.room = whole.source, whole.objective, whole.room
        self.number, self._objectives = number, whole._objectives
        own = slice(number, number + 1)
        self.query_counts, self.row_counts = whole.query_counts[own], whole.row_counts[own]

    def _ask(self, question: Callable[..., T], given: Sequence[Any], kept: Sequence[Kept]) -> Iterator[T]:
        with self.source.window(self.number) as part:
            shard = Shard(part, self._objectives[self.number], most_slopes=0)
            found = question(shard, *given, *(_back(column[0]) for column in kept))
        yield found


class _Shelf:
    """Where the answers to one question are kept: in memory while there is room, then in one scratch file."""

    def __init__(self, room: Room) -> None:
        self.room, self.scratch = room, None if room.left else Scratch()

    def put(self, found: Any) -> Any:
        if isinstance(found, tuple) and hasattr(found, "_fields"):
            return type(found)(*(self.put(each) for each in found))
        if not isinstance(found, np.ndarray) or self.room.take(found):
            return found
        self.scratch = self.scratch or Scratch()
        return self.scratch.write(found)


def _back(kept: Any) -> Any:
    """What was kept, in memory."""
    if isinstance(kept, Spilled):
        return kept.read()
    if isinstance(kept, tuple) and hasattr(kept, "_fields"):
        return type(kept)(*(_back(each) for each in kept))
    return kept


@shards_of.register
def _of_files(rows: FileRows, objective: Objective | None) -> Shards:
    return FileShards(rows, objective)
