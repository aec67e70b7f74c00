"""Rows in files that need not fit in memory, looked at a window of queries at a time.

A window is some consecutive queries of one file, as many as a share of `memory` holds. While it is looked at, its
features are views of the memory-mapped file; then its pages are let go of, but for those of the first windows, which
stay as long as they fit in their share. What is worked out from labels alone (ideal rankings, gains) is kept for as
many windows as fit in another share.

    memory = the process itself + windows under way + windows that stay + what is known of labels + scores per row
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fliprank.arrays import Ints
from fliprank.data.candidates import Candidates, joined
from fliprank.data.ids import Ids, find_duplicates
from fliprank.data.row_file import SUFFIX, RowFile, write_rows
from fliprank.data.scattered import ScatteredRows
from fliprank.errors import InputError, UsageError

__all__ = ["AT_ONCE", "DEFAULT_MEMORY", "FileRows", "Memory", "parse_memory"]

T = TypeVar("T")

DEFAULT_MEMORY = "2GB"
PROCESS = 400 << 20
"""Bytes that Python, the compiled kernels and what they work with take, whatever the rows."""

MOST_WINDOW = 64 << 20
"""Bytes of a window: a larger one is no faster."""

AT_ONCE = 4
"""Trials that run side by side at most, each of which looks at a window of its own."""

PER_ROW = 64
"""Bytes that are kept of a row for what is known of its label."""

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}


def parse_memory(given: str | int) -> int:
    """Bytes from a number, or words such as 2GB or 512MiB.

    >>> parse_memory("2GB"), parse_memory("1.5 MiB"), parse_memory(4096)
    (2000000000, 1572864, 4096)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?\s*", str(given), re.IGNORECASE)
    size = 0 if found is None else int(float(found[1]) * UNITS.get((found[2] or "").lower(), 0))
    if size <= 0:
        raise UsageError(f"memory={given!r}: expected a size such as 2GB, 512MiB or a number of bytes")
    return size


@dataclass(frozen=True)
class Memory:
    """How a budget of bytes is shared out."""

    total: int

    @property
    def data(self) -> int:
        """What is left for rows beside the process itself."""
        return max(self.total - PROCESS, self.total // 4)

    @property
    def window(self) -> int:
        """Bytes of one window: each of up to `AT_ONCE` trials may look at one."""
        return max(1, min(MOST_WINDOW, self.data // (4 * AT_ONCE)))

    @property
    def resident(self) -> int:
        """Bytes of features that stay, and the same again of what is known of labels, and of scores."""
        return self.data // 4


class Window(NamedTuple):
    """Queries low to high of a file; of them all, or the chosen ones (numbers within the file)."""

    file: int
    low: int
    high: int
    chosen: Ints | None = None


@dataclass(eq=False, repr=False)
class FileRows(ScatteredRows):
    """Rows in files, with at most `memory` bytes of them in memory. `folder` is removed when nobody needs it."""

    files: tuple[RowFile, ...]
    memory: Memory
    windows: tuple[Window, ...] = ()
    folder: TemporaryDirectory[str] | None = None
    _kept: dict[int, Candidates] = field(default_factory=dict, init=False)
    _finite: set[int] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        if not self.windows:
            self.windows = tuple(w for number, file in enumerate(self.files) for w in _cut(number, file, self.memory))
        self.feature_names = self.files[0].feature_names
        self.query_counts = np.array([len(self._numbers(w)) for w in self.windows], np.int64)
        self.row_counts = np.array([self._rows(w) for w in self.windows], np.int64)
        digest = blake2b(" ".join(file.digest for file in self.files).encode(), digest_size=16)
        for window in self.windows:
            if window.chosen is not None:
                digest.update(np.ascontiguousarray(window.chosen).data)
        self.digest = digest.hexdigest()
        width = 4 * len(self.feature_names)
        whole = np.array([w.chosen is None for w in self.windows])
        self._stays = (np.cumsum(self.row_counts * width) <= self.memory.resident) & whole
        self._known = (np.cumsum(self.row_counts * PER_ROW) <= self.memory.resident) & whole

    @classmethod
    def open(cls, paths: Sequence[Path], memory: str | int = DEFAULT_MEMORY) -> FileRows:
        """The rows of these files, which must have the same columns, and each query in one of them."""
        if not paths:
            raise InputError("there are no files of rows")
        files = tuple(RowFile(path) for path in paths)
        check_alike(files)
        return cls(files, Memory(parse_memory(memory)))

    def _numbers(self, window: Window) -> Ints:
        return np.arange(window.low, window.high) if window.chosen is None else window.chosen

    def _rows(self, window: Window) -> int:
        offsets = self.files[window.file].offsets
        if window.chosen is None:
            return int(offsets[window.high] - offsets[window.low])
        return int((offsets[window.chosen + 1] - offsets[window.chosen]).sum())

    @cached_property
    def qids(self) -> Ids:
        return Ids.concat([self.files[w.file].qids.take(self._numbers(w)).compact() for w in self.windows])

    @property
    def has_docids(self) -> bool:
        """Whether documents have ids."""
        return self.files[0].has_docids

    @contextmanager
    def window(self, number: int) -> Iterator[Candidates]:
        """The rows of a window, for as long as the block lasts."""
        window = self.windows[number]
        file, part = self.files[window.file], self._kept.get(number)
        if part is None:
            part = file.part(window.low, window.high) if window.chosen is None else file.pick(window.chosen)
            if file.finite or number in self._finite:
                part.memo["features are numbers"] = True
            if self._known[number]:
                self._kept[number] = part
        if number + 1 < len(self.windows):
            self._fetch(self.windows[number + 1])
        try:
            yield part
        finally:
            if "features are numbers" in part.memo:
                self._finite.add(number)
            if self._known[number]:
                for key in [key for key in part.memo if isinstance(key, tuple) and key[0] == "features"]:
                    part.memo.pop(key, None)  # a copy of some columns
            if not self._stays[number]:
                file.release(int(file.offsets[window.low]), int(file.offsets[window.high]))

    def _fetch(self, window: Window) -> None:
        if window.chosen is None:
            file = self.files[window.file]
            file.fetch(int(file.offsets[window.low]), int(file.offsets[window.high]))

    def each(self, function: Callable[..., T], *given: Any, own: Sequence[Any] = ()) -> Iterator[T]:
        for number, *mine in zip(range(len(self.windows)), *own, strict=True):
            with self.window(number) as part:
                found = function(part, *given, *mine)
            yield found

    @cached_property
    def _first_query(self) -> Ints:
        return np.cumsum([0, *self.query_counts])

    def _owned(self, queries: Ints) -> Iterator[tuple[Window, Ints]]:
        """Each window that has some of these queries (numbers that rise), and their numbers within its file."""
        cuts = np.searchsorted(queries, self._first_query)
        for number, window in enumerate(self.windows):
            if cuts[number] < cuts[number + 1]:
                own = queries[cuts[number] : cuts[number + 1]] - self._first_query[number]
                yield window, (own + window.low if window.chosen is None else window.chosen[own])

    def select(self, queries: Ints) -> FileRows:
        """Some queries (numbers that rise), which stay in the files."""
        chosen = [window._replace(chosen=own) for window, own in self._owned(queries)]
        return FileRows(self.files, self.memory, tuple(chosen), self.folder)

    def row_numbers(self, queries: Ints) -> Ints:
        """The numbers of the rows of these queries among all rows."""
        sizes = np.concatenate([self._sizes(window) for window in self.windows])
        ends = np.cumsum(sizes)
        return np.concatenate([np.empty(0, np.int64), *(np.arange(ends[q] - sizes[q], ends[q]) for q in queries)])

    def rows_of(self, queries: Ints) -> int:
        """How many rows these queries have."""
        return sum(self._rows(window._replace(chosen=own)) for window, own in self._owned(queries))

    def _sizes(self, window: Window) -> Ints:
        offsets, numbers = self.files[window.file].offsets, self._numbers(window)
        sizes: Ints = offsets[numbers + 1] - offsets[numbers]
        return sizes

    def gather(self, queries: Ints) -> Candidates:
        """Some queries (numbers that rise) in memory."""
        owned = list(self._owned(queries))
        rows = joined(*(self.files[window.file].pick(own) for window, own in owned))
        if all(self.files[window.file].finite for window, _ in owned):
            rows.memo["features are numbers"] = True
        return rows

    def without_features(self) -> Candidates:
        """All rows with labels and ids, in memory."""
        return joined(*self.each(_bare))

    def rewritten(self, function: Callable[..., Candidates], *given: Any, own: Sequence[Any] = ()) -> FileRows:
        """What a function makes of each window, in files of their own, which are removed with the result."""
        folder = TemporaryDirectory(prefix="fliprank-rows-")
        paths = list[Path]()
        try:
            for number, part in enumerate(self.each(function, *given, own=own)):
                paths.append(Path(folder.name, f"{number:06d}{SUFFIX}"))
                write_rows(paths[-1], part)
        except OSError as error:
            folder.cleanup()
            message = f"rows in between can't be written: {error.strerror or error}"
            raise InputError(message, path=folder.name, hint="set TMPDIR to a folder with more room") from error
        except BaseException:
            folder.cleanup()
            raise
        return FileRows(tuple(map(RowFile, paths)), self.memory, folder=folder)


def _bare(part: Candidates) -> Candidates:
    docids = None if part.docids is None else part.docids.compact()
    missed = part.missed_offsets, part.missed_labels.copy()
    return Candidates(part.offsets, part.labels.copy(), part.qids.compact(), docids, None, (), None, *missed)


def _cut(number: int, file: RowFile, memory: Memory) -> Iterator[Window]:
    """The windows of a file: as many queries as a window holds, at least one."""
    most = max(1, memory.window // max(4 * len(file.feature_names), 1))
    low = 0
    while low < file.queries:
        high = int(np.searchsorted(file.offsets, file.offsets[low] + most, "right")) - 1
        high = min(max(high, low + 1), file.queries)
        yield Window(number, low, high)
        low = high


def check_alike(files: Sequence[RowFile]) -> None:
    """Raise, with the names of both files, if two have other columns or the same query."""
    first = files[0]
    for file in files[1:]:
        if file.feature_names != first.feature_names:
            raise InputError(_unlike(file, first), path=file.path, hint=f"compared with {first.path}")
        if file.has_docids != first.has_docids:
            with_ids, without = (file, first) if file.has_docids else (first, file)
            raise InputError(f"has no document ids, but {with_ids.path} has", path=without.path)
    qids = Ids.concat([file.qids for file in files])
    twice = int(find_duplicates(qids, np.array([0, len(qids)]))[0])
    if twice >= 0:
        ends = np.cumsum([file.queries for file in files])
        here = int(np.searchsorted(ends, twice, "right"))
        other = next(f for f in files if qids[twice] in f.qids.tolist())
        where = "twice in this file" if other is files[here] else f"in {other.path}, too"
        raise InputError(f"the query is {where}", path=files[here].path, query=qids[twice])


def _unlike(file: RowFile, first: RowFile) -> str:
    """What is different about the features of two files."""
    here, there = set(file.feature_names), set(first.feature_names)
    if missing := [name for name in first.feature_names if name not in here]:
        return f"lacks the feature {missing[0]!r}" + (f" and {len(missing) - 1} more" if missing[1:] else "")
    if more := [name for name in file.feature_names if name not in there]:
        return f"has another feature, {more[0]!r}" + (f", and {len(more) - 1} more" if more[1:] else "")
    return "has its features in another order"
