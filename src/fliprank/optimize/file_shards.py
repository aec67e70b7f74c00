"""Windows of files as the shards of a problem: read when they are asked, let go of when they have answered.

What a window keeps, such as a score per row, stays in memory as long as it fits in its share; beyond that it goes to a
scratch file, from which it is read again when the next question takes it.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Ints
from fliprank.data.candidates import Candidates
from fliprank.data.file_rows import FileRows
from fliprank.data.memory import Share, shares_of
from fliprank.data.row_file import AROUND
from fliprank.data.scattered import row_bytes
from fliprank.errors import InputError
from fliprank.objectives.base import Objective
from fliprank.optimize.shard import Shard
from fliprank.optimize.shards import Kept, MemoryShards, Shards, shards_of

__all__ = ["FileShards"]

T = TypeVar("T")

STEP_PAGES = 2 * AROUND
"""Bytes, at most, that come into memory when a step reads the two rows of a pair."""


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


class FileShards(Shards):
    """One shard per window. Nothing of it stays in memory but what `FileRows` keeps."""

    def __init__(self, rows: FileRows, objective: Objective | None) -> None:
        self.source, self.objective = rows, objective
        self.query_counts, self.row_counts = rows.query_counts, rows.row_counts
        self.room = shares_of(rows.memory).scores
        self._objectives = self._own_objectives()
        self._steps, self._stepped = 0, set[int]()

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
        size = row_bytes(len(self.source.feature_names)) * self.source.rows_of(queries)
        if 2 * size <= self.source.memory.window:  # the rows of each file, and all of them joined
            return self._in_memory(queries)
        return FileShards(self.source.select(queries), self._taken(queries))

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
        return FileShards(self.source, objective)

    def stepped(self, number: int) -> None:
        """Note that a step has read a few rows of a window; after many such steps, their pages are let go of."""
        self._steps += 1
        self._stepped.add(number)
        if self._steps * STEP_PAGES >= self.source.memory.window:
            for each in self._stepped:
                self.source.release(each)
            self._steps, self._stepped = 0, set()


class _OneWindow(FileShards):
    """One of the windows, asked as all of them are; it is opened only if a question looks at its rows."""

    def __init__(self, whole: FileShards, number: int) -> None:
        self.source, self.objective, self.room = whole.source, whole.objective, whole.room
        self.whole, self.number, self._objectives = whole, number, whole._objectives
        own = slice(number, number + 1)
        self.query_counts, self.row_counts = whole.query_counts[own], whole.row_counts[own]

    def _ask(self, question: Callable[..., T], given: Sequence[Any], kept: Sequence[Kept]) -> Iterator[T]:
        with ExitStack() as opened:
            shard = _ShardToOpen(self.source, self.number, opened, self._objectives[self.number])
            found = question(shard, *given, *(_back(column[0]) for column in kept))
        self.whole.stepped(self.number)
        yield found


class _ShardToOpen(Shard):
    """A shard that opens its window when its rows are asked for, until `opened` is closed."""

    def __init__(self, source: FileRows, number: int, opened: ExitStack, objective: Objective | None) -> None:
        self.objective, self.most_slopes, self.slopes = objective, 0, {}
        self._opened, self._window = opened, source.window(number, ahead=False)

    @cached_property
    def rows(self) -> Candidates:  # type: ignore[override]
        """The rows of the window."""
        return self._opened.enter_context(self._window)


class _Shelf:
    """Where the answers to one question are kept: in memory while there is room, then in one scratch file."""

    def __init__(self, room: Share) -> None:
        self.room = room
        self.scratch: Scratch | None = None

    def put(self, found: Any) -> Any:
        if isinstance(found, tuple) and hasattr(found, "_fields"):
            return type(found)(*(self.put(each) for each in found))
        if not isinstance(found, np.ndarray) or self.room.take(found.nbytes, found) is not None:
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
