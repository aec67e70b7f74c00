"""Rows in files that need not fit in memory, looked at a window of queries at a time.

A window is some consecutive queries of one file, as many as a share of `memory` holds. While it is looked at, its
features are views of the memory-mapped file; then its pages are let go of, but for those of the first windows, which
stay as long as they fit in their share. What is worked out from labels alone (ideal rankings, gains) is kept for as
many windows as fit in another share.

How many bytes each share has is settled in `memory.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fliprank.arrays import Ints
from fliprank.data.candidates import Candidates, joined
from fliprank.data.csr import bounds, span_indices, span_sizes
from fliprank.data.ids import Ids, find_duplicates
from fliprank.data.memory import DEFAULT_MEMORY, Grant, Memory, parse_memory, shares_of
from fliprank.data.row_digest import digest_of
from fliprank.data.row_file import SUFFIX, RowFile, read_queries, write_rows
from fliprank.data.scattered import ROW, ScatteredRows, row_bytes
from fliprank.data.store import allow_many_files
from fliprank.errors import InputError

__all__ = ["FileRows"]

T = TypeVar("T")


class Window(NamedTuple):
    """Queries low to high of a file; of them all, or the chosen ones (numbers within the file)."""

    file: int
    low: int
    high: int
    chosen: Ints | None = None


@dataclass(eq=False, repr=False)
class FileRows(ScatteredRows):
    """Rows in files, with at most `memory` bytes of them in memory; all of their queries, unless `windows` are given.

    What they keep comes back to the shares of `memory` when they are gone.
    """

    files: tuple[RowFile, ...]
    memory: Memory
    windows: tuple[Window, ...] = None  # type: ignore[assignment]
    _kept: dict[int, Candidates] = field(default_factory=dict, init=False)
    _grants: dict[tuple[str, int], Grant] = field(default_factory=dict, init=False)
    _finite: set[int] = field(default_factory=set, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        self._whole = self.windows is None
        if self._whole:
            self.windows = tuple(w for number, file in enumerate(self.files) for w in _cut(number, file, self.memory))
        self.feature_names = self.files[0].feature_names
        self.query_counts = np.array([len(self._numbers(w)) for w in self.windows], np.int64)
        self.row_counts = np.array([self._rows(w) for w in self.windows], np.int64)

    @cached_property
    def digest(self) -> str:  # type: ignore[override]
        """What tells these rows from all others, however files and windows part them."""
        if self._whole:
            return digest_of(self.files)
        first = np.cumsum([0, *(file.queries for file in self.files)])
        chosen = [self._numbers(window) + first[window.file] for window in self.windows]
        return digest_of(self.files, np.concatenate([np.empty(0, np.int64), *chosen]))

    @classmethod
    def open(cls, paths: Sequence[Path], memory: str | int = DEFAULT_MEMORY) -> FileRows:
        """The rows of these files, which must have the same columns, and each query in one of them."""
        if not paths:
            raise InputError("there are no files of rows")
        given = Memory(parse_memory(memory))
        given.warn_if_exceeded()
        allow_many_files()
        files = tuple(map(_mapped, paths))
        check_alike(files)
        return cls(files, given)

    def _numbers(self, window: Window) -> Ints:
        return np.arange(window.low, window.high) if window.chosen is None else window.chosen

    def _rows(self, window: Window) -> int:
        offsets = self.files[window.file].offsets
        if window.chosen is None:
            return int(offsets[window.high] - offsets[window.low])
        return int(span_sizes(offsets, window.chosen).sum())

    @cached_property
    def qids(self) -> Ids:
        own = [self.files[w.file].qids.take(self._numbers(w)).compact() for w in self.windows]
        return Ids.concat(own) if own else Ids.of([])

    @property
    def has_docids(self) -> bool:
        """Whether documents have ids."""
        return self.files[0].has_docids

    @contextmanager
    def window(self, number: int, *, ahead: bool = True) -> Iterator[Candidates]:
        """The rows of a window, for as long as the block lasts; with `ahead`, the next one is read at the same time."""
        window, known = self.windows[number], self._holds("labels", number, ROW)
        part = self._kept.get(number)
        if part is None:
            part = self._opened(window)
            if number in self._finite:
                part.memo["features are numbers"] = True
            if known:
                part = self._kept.setdefault(number, part)
        if ahead and number + 1 < len(self.windows):
            self._fetch(self.windows[number + 1])
        try:
            yield part
        finally:
            if "features are numbers" in part.memo:
                self._finite.add(number)
            if known:
                _drop_copies(part)
            self.release(number)

    def _opened(self, window: Window) -> Candidates:
        file = self.files[window.file]
        part = file.part(window.low, window.high) if window.chosen is None else read_queries([(file, window.chosen)])
        if file.finite:
            part.memo["features are numbers"] = True
        return part

    def _holds(self, what: str, number: int, size: int) -> bool:
        """Whether a window may keep so many bytes per row in memory: as soon as its share has room for it."""
        key, share = (what, number), getattr(shares_of(self.memory), what)
        if self.windows[number].chosen is not None:  # copied anew each time
            return False
        with self._lock:
            if key not in self._grants and (grant := share.take(size * int(self.row_counts[number]), self)) is not None:
                self._grants[key] = grant
            return key in self._grants

    def release(self, number: int) -> None:
        """Let go of the pages of a window that was looked at, but for those that stay."""
        window = self.windows[number]
        if window.chosen is None:
            self._holds("features", number, 4 * len(self.feature_names))
            self.files[window.file].release(window.low, window.high, **self._passing(number))

    def _passing(self, number: int) -> dict[str, bool]:
        """Which pages of a window do not stay: those of features, those of labels and ids."""
        return {what: (what, number) not in self._grants for what in ("features", "labels")}

    def let_go(self) -> None:
        """Keep nothing in memory, for others to keep more; what is looked at again is kept again."""
        with self._lock:
            for grant in self._grants.values():
                grant()
            self._grants.clear()
            self._kept.clear()
        for file in self.files:
            file.release(0, file.queries)

    def _fetch(self, window: Window) -> None:
        if window.chosen is None:
            self.files[window.file].fetch(window.low, window.high)

    def each(self, function: Callable[..., T], *given: Any, own: Sequence[Any] = ()) -> Iterator[T]:
        for number, *mine in zip(range(len(self.windows)), *own, strict=True):
            with self.window(number) as part:
                found = function(part, *given, *mine)
            yield found

    @cached_property
    def _first_query(self) -> Ints:
        return np.cumsum([0, *self.query_counts])

    def _owned(self, queries: Ints) -> Iterator[tuple[int, Ints]]:
        """Each window that has some of these queries (numbers that rise), and their numbers within its file."""
        owners = np.searchsorted(self._first_query, queries, "right") - 1
        begins = np.flatnonzero(np.diff(owners, prepend=-1))
        for number, some in zip(owners[begins].tolist(), np.split(queries, begins[1:]), strict=False):
            window, own = self.windows[number], some - self._first_query[number]
            yield number, (own + window.low if window.chosen is None else window.chosen[own])

    def select(self, queries: Ints) -> FileRows:
        """Some queries (numbers that rise), which stay in the files."""
        chosen = [self.windows[number]._replace(chosen=own) for number, own in self._owned(queries)]
        return FileRows(self.files, self.memory, tuple(chosen))

    def row_numbers(self, queries: Ints) -> Ints:
        """The numbers of the rows of these queries among all rows."""
        return span_indices(self._row_bounds, queries)

    @cached_property
    def _row_bounds(self) -> Ints:
        return bounds(np.concatenate([np.empty(0, np.int64), *map(self._sizes, self.windows)]))

    def rows_of(self, queries: Ints) -> int:
        """How many rows these queries have."""
        return sum(self._rows(self.windows[number]._replace(chosen=own)) for number, own in self._owned(queries))

    def _sizes(self, window: Window) -> Ints:
        return span_sizes(self.files[window.file].offsets, self._numbers(window))

    def gather(self, queries: Ints) -> Candidates:
        """Some queries (numbers that rise) in memory."""
        owned = [(self.files[self.windows[number].file], own) for number, own in self._owned(queries)]
        rows = read_queries(owned or [(self.files[0], queries)])
        if all(file.finite for file, _ in owned):
            rows.memo["features are numbers"] = True
        return rows

    def without_features(self) -> Candidates:
        """All rows with labels and ids, in memory."""
        return joined(*self.each(_bare)) if self.windows else _bare(self.gather(np.arange(0)))

    def rewritten(self, function: Callable[..., Candidates], *given: Any, own: Sequence[Any] = ()) -> FileRows:
        """What a function makes of each window, in files that go with the result. These rows keep nothing then."""
        if not self.windows:
            return self
        with TemporaryDirectory(prefix="fliprank-rows-") as folder:
            made = _Made(Path(folder), self.memory)
            try:
                for number, *mine in zip(range(len(self.windows)), *own, strict=True):
                    with self.window(number) as part:
                        made.add(function(part, *given, *mine))
                made.write_held()
            except OSError as error:
                message = f"rows in between can't be written: {error.strerror or error}"
                raise InputError(message, path=folder, hint="set TMPDIR to a folder with more room") from error
        self.let_go()
        return FileRows(tuple(made.files), self.memory)


class _Made:
    """Files that parts are written to. They are opened and lose their names at once, so that a crash leaves none.

    Small parts are held until they fill a window together: a file takes a file descriptor, and a window some time.
    """

    def __init__(self, folder: Path, memory: Memory) -> None:
        self.folder, self.most = folder, memory.window
        self.files, self.held, self.size = list[RowFile](), list[Candidates](), 0

    def add(self, part: Candidates) -> None:
        """Write a part, or hold a copy of it."""
        size = len(part) * row_bytes(len(part.feature_names))
        if self.size + size > self.most or 2 * size > self.most:
            self.write_held()
        if 2 * size > self.most:
            self._write(part)
        else:
            self.held.append(_copied(part))
            self.size += size

    def write_held(self) -> None:
        """Write what is held."""
        if self.held:
            self._write(joined(*self.held))
            self.held, self.size = [], 0

    def _write(self, part: Candidates) -> None:
        path = self.folder / f"{len(self.files):06d}{SUFFIX}"
        write_rows(path, part)
        self.files.append(_mapped(path))
        path.unlink()


def _mapped(path: Path) -> RowFile:
    """The opened file, without the pages that were read to check it."""
    file = RowFile(path)
    file.release(0, file.queries)
    return file


def _copied(part: Candidates) -> Candidates:
    """The same rows, of which nothing is a view of a file."""
    features = None if part.features is None else part.features.copy()
    docids = None if part.docids is None else part.docids.compact()
    labels, missed, qids = part.labels.copy(), part.missed_labels.copy(), part.qids.compact()
    return replace(part, labels=labels, missed_labels=missed, qids=qids, docids=docids, features=features)


def _bare(part: Candidates) -> Candidates:
    return _copied(replace(part, features=None, feature_names=()))


def _drop_copies(part: Candidates) -> None:
    """Forget copies of some columns, which a model of these made; another thread may be making one."""
    for key in list(part.memo):
        if isinstance(key, tuple) and key[0] == "features":
            part.memo.pop(key, None)


def _cut(number: int, file: RowFile, memory: Memory) -> Iterator[Window]:
    """The windows of a file: as many queries as a window holds, at least one."""
    most = max(1, memory.window // row_bytes(len(file.feature_names)))
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
