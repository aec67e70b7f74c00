"""One file of rows that is memory-mapped, and of which some queries at a time are looked at.

It is a store of arrays (see `store.py`) as `fliprank convert` writes it, or as `read_letor` caches a text. A window of
it is `Candidates` whose arrays are views of the map; `release` tells the system to let go of its pages, which then
count as free memory again, whatever the size of the file.

>>> import tempfile
>>> rows = Candidates.of([1, 0, 2], group=[2, 1], features=[[1.0], [2.0], [3.0]], feature_names=["bm25"])
>>> path = Path(tempfile.mkdtemp(), "part.rows")
>>> write_rows(path, rows)
>>> file = RowFile(path)
>>> file.queries, file.part(1, 2).features.tolist(), read_queries([(file, np.array([0]))]).labels.tolist()
(2, [[3.0]], [1.0, 0.0])
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Bytes, Int32s, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds, span_indices, span_sizes
from fliprank.data.files import StrPath
from fliprank.data.ids import Ids
from fliprank.data.store import KINDS, map_arrays, write_arrays
from fliprank.errors import InputError

__all__ = ["AROUND", "SUFFIX", "RowFile", "read_queries", "write_rows"]

SUFFIX = ".rows"
FORMAT = "rows 1"
OWN_KINDS = KINDS | {"missed_offsets": "i8 1", "missed_labels": "f8 1"}
"""Of the arrays of a file of rows: dtype and number of dimensions."""

AROUND = 1 << 21
"""Bytes, at most, that come into memory with any one of them: the system maps pages around what is read, too."""


def write_rows(path: StrPath, rows: Candidates, *, durable: bool = False) -> None:
    """Write candidates as a file of rows, whole or not at all; term statistics and lists have no place in it.

    See `atomic_write` for `durable`.
    """
    arrays: dict[str, NDArray[Any]] = {"offsets": rows.offsets, "labels": rows.labels}
    for name, ids in (("qid", rows.qids), ("docid", rows.docids)):
        if ids is not None:
            packed = ids.compact()
            arrays |= {name: packed.buffer, f"{name}_length": packed.length}
    if rows.features is not None:
        arrays["features"] = rows.features
    if len(rows.missed_labels):
        arrays |= {"missed_offsets": rows.missed_offsets, "missed_labels": rows.missed_labels}
    finite = rows.features is None or bool(np.isfinite(rows.features).all())
    header = {"format": FORMAT, "feature_names": list(rows.feature_names), "finite": finite}
    write_arrays(path, header, arrays, durable=durable)


class RowFile:
    """The opened file: what it holds is checked, but for the values of labels and features, which are not read."""

    def __init__(self, path: StrPath) -> None:
        self.path = Path(path)
        with suppress(OSError):  # which `map_arrays` tells
            self._identity = _identity(os.stat(path))
        found, arrays, self.map = map_arrays(self.path)
        header = found["header"]
        if any(f"{array.dtype.str[1:]} {array.ndim}" != OWN_KINDS.get(name) for name, array in arrays.items()):
            raise InputError("no file of rows: these are not the arrays of candidates", path=self.path)
        try:
            self.arrays, self.finite = arrays, bool(header.get("finite"))
            self.sums = {name: (int(found["arrays"][name][3]), array.nbytes) for name, array in arrays.items()}
            self.offsets, self.labels, self.features = arrays["offsets"], arrays["labels"], arrays.get("features")
            self.qids = self._query_ids()
            names = header.get("feature_names")
            width = 0 if self.features is None else self.features.shape[1]
            if width > len(self.map):  # rows or names of them would take more bytes; without either, any width is said
                raise InputError(f"a damaged file of rows: {width:,} features in {len(self.map):,} bytes", path=path)
            self.feature_names = tuple(map(str, names if isinstance(names, list) else range(1, width + 1)))
            self._check(width)
        except (KeyError, TypeError, IndexError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"a damaged file of rows: {error}", path=self.path) from error

    def _check(self, width: int) -> None:
        """Raise if arrays do not fit together."""
        rows, queries, offsets = len(self.labels), len(self.offsets) - 1, self.offsets
        if not _rise(offsets, rows):
            raise InputError("a damaged file of rows: its offsets do not rise from 0 to its rows", path=self.path)
        if len(self.qids) != queries or len(self.feature_names) != width:
            raise InputError("a damaged file of rows: ids or names are missing", path=self.path)
        if self.features is not None and len(self.features) != rows:
            raise InputError(f"{len(self.features)} rows of features for {rows} labels", path=self.path)
        self.has_docids, self._docid_begin = "docid" in self.arrays, bounds(np.empty(0, np.int64))
        if self.has_docids:
            length = self.arrays["docid_length"]
            if len(length) != rows or length.min(initial=0) < 0 or length.sum() != len(self.arrays["docid"]):
                raise InputError("a damaged file of rows: document ids that do not fill their buffer", path=self.path)
            some, sums = np.diff(offsets) > 0, np.zeros(queries, np.int64)
            if some.any():
                sums[some] = np.add.reduceat(length, offsets[:-1][some], dtype=np.int64)
            self._docid_begin = bounds(sums)
        missed = self.arrays.get("missed_offsets")
        if missed is not None and (len(missed) != queries + 1 or not _rise(missed, len(self.arrays["missed_labels"]))):
            raise InputError("a damaged file of rows: missed labels that do not fit", path=self.path)

    def _query_ids(self) -> Ids:
        buffer, length = self.arrays["qid"], self.arrays["qid_length"]
        if length.min(initial=0) < 0 or length.sum() != len(buffer):
            raise InputError("a damaged file of rows: query ids that do not fill their buffer", path=self.path)
        return Ids(buffer, np.cumsum(length, dtype=np.int64) - length, length)

    @property
    def queries(self) -> int:
        """How many queries there are."""
        return len(self.offsets) - 1

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, low: int, high: int) -> Candidates:
        """Queries low to high, as views of the map."""
        first, last = int(self.offsets[low]), int(self.offsets[high])
        docids = missed = missed_labels = None
        if self.has_docids:
            length = self.arrays["docid_length"][first:last]
            docids = _consecutive(self.arrays["docid"], int(self._docid_begin[low]), length)
        if (offsets := self.arrays.get("missed_offsets")) is not None:
            missed = offsets[low : high + 1] - offsets[low]
            missed_labels = self.arrays["missed_labels"][offsets[low] : offsets[high]]
        return Candidates(
            self.offsets[low : high + 1] - first,
            self.labels[first:last],
            _consecutive(self.qids.buffer, int(self.qids.start[low]) if low < high else 0, self.qids.length[low:high]),
            docids,
            None if self.features is None else self.features[first:last],
            self.feature_names,
            None,
            missed,  # type: ignore[arg-type]
            missed_labels,  # type: ignore[arg-type]
        )

    def read(self, name: str, first: int, last: int, out: NDArray[Any]) -> None:
        """Copy entries first to last of an array to `out`, past the map, which would bring all around them along.

        A file that has lost its name, or whose name another one has by now, is read by the map.
        """
        if last <= first:
            return
        if self._handle is None:
            out[:] = self.arrays[name][first:last]
            self._advise("MADV_DONTNEED", self.arrays[name], first, last)
            return
        begin, width = self._places[name]
        view, at = out.reshape(-1).view(np.uint8).data, begin + first * width
        while len(view):
            done = os.preadv(self._handle, [view], at)
            if done <= 0:
                raise InputError("is shorter than it was", path=self.path)
            view, at = view[done:], at + done

    @cached_property
    def _handle(self) -> int | None:
        """The file that is mapped, opened once more."""
        if not hasattr(os, "preadv"):
            return None
        with suppress(OSError):
            handle = os.open(self.path, os.O_RDONLY)
            weakref.finalize(self, os.close, handle)
            if _identity(os.fstat(handle)) == self._identity:
                return handle
        return None

    @cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        """Where each array begins in the file, and the bytes of an entry."""
        base = np.frombuffer(self.map, np.uint8, 1).ctypes.data
        return {name: (array.ctypes.data - base, array.strides[0]) for name, array in self.arrays.items()}

    def release(self, low: int, high: int, *, features: bool = True, labels: bool = True) -> None:
        """Let go of the pages of these queries' features, labels and ids: they are read again when asked for."""
        first, last = int(self.offsets[low]), int(self.offsets[high])
        if features:
            self._advise("MADV_DONTNEED", self.features, first, last)
        if labels:
            self._advise("MADV_DONTNEED", self.labels, first, last)
            if self.has_docids:
                self._advise("MADV_DONTNEED", self.arrays["docid_length"], first, last)
                begin, end = int(self._docid_begin[low]), int(self._docid_begin[high])
                self._advise("MADV_DONTNEED", self.arrays["docid"], begin, end)

    def fetch(self, low: int, high: int) -> None:
        """Have the system read the pages of these queries' features ahead."""
        self._advise("MADV_WILLNEED", self.features, int(self.offsets[low]), int(self.offsets[high]))

    def _advise(self, what: str, array: NDArray[Any] | None, first: int, last: int) -> None:
        """Tell the system what becomes of the pages of some entries of an array of the file."""
        advice = getattr(mmap, what, None)
        if advice is None or array is None or last <= first:
            return
        begin, end = (array.ctypes.data + row * array.strides[0] for row in (first, last))
        base = np.frombuffer(self.map, np.uint8, 1).ctypes.data
        start, stop = max(begin // AROUND * AROUND, base), min(-(-end // AROUND) * AROUND, base + len(self.map))
        with suppress(OSError, ValueError):  # advice only
            self.map.madvise(advice, start - base, stop - start)


def _rise(offsets: Ints, last: int) -> bool:
    """Whether offsets rise from 0 to `last`; they are compared, since differences of any integers can overflow."""
    return len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == last and bool((offsets[1:] >= offsets[:-1]).all())


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def read_queries(parts: Sequence[tuple[RowFile, Ints]]) -> Candidates:
    """Some queries of each of these files (numbers that rise), copied."""
    first, some = parts[0][0], [span_sizes(file.offsets, own) for file, own in parts]
    offsets = bounds(np.concatenate(some))
    labels, begin, texts = np.empty(offsets[-1]), 0, [np.empty(0, np.uint8)]
    features = None if first.features is None else np.empty((len(labels), first.features.shape[1]), np.float32)
    lengths = np.empty(len(labels) if first.has_docids else 0, np.int32)
    for file, own in parts:
        for low, high in _runs(own):
            rows = int(file.offsets[low]), int(file.offsets[high])
            here = slice(begin, begin := begin + rows[1] - rows[0])
            file.read("labels", *rows, labels[here])
            if features is not None:
                file.read("features", *rows, features[here])
            if first.has_docids:
                file.read("docid_length", *rows, lengths[here])
                limits = int(file._docid_begin[low]), int(file._docid_begin[high])
                texts.append(np.empty(limits[1] - limits[0], np.uint8))
                file.read("docid", *limits, texts[-1])
    docids = _consecutive(np.concatenate(texts), 0, lengths) if first.has_docids else None
    qids = Ids.concat([file.qids.take(own).compact() for file, own in parts])
    return Candidates(offsets, labels, qids, docids, features, first.feature_names, None, *_missed(parts))


def _missed(parts: Sequence[tuple[RowFile, Ints]]) -> tuple[Any, Any]:
    """Offsets and labels of judged documents that are not among the rows; None where no file has any."""
    if not any("missed_offsets" in file.arrays for file, _ in parts):
        return None, None
    sizes, labels = list[Ints](), list[NDArray[Any]]()
    for file, own in parts:
        limits = file.arrays.get("missed_offsets", np.zeros(file.queries + 1, np.int64))
        sizes.append(span_sizes(limits, own))
        labels.append(file.arrays.get("missed_labels", np.empty(0))[span_indices(limits, own)])
    return bounds(np.concatenate(sizes)), np.concatenate(labels)


def _runs(numbers: Ints) -> Iterator[tuple[int, int]]:
    """Numbers that rise, as stretches without a gap: (first, one after the last)."""
    cuts = np.flatnonzero(np.diff(numbers) != 1) + 1
    ends = [0, *cuts.tolist(), len(numbers)]
    for low, high in pairwise(ends if len(numbers) else []):
        yield int(numbers[low]), int(numbers[high - 1]) + 1


def _consecutive(buffer: Bytes, begin: int, length: Int32s) -> Ids:
    """Ids that stand one after the other from `begin` on, without the rest of the buffer."""
    ends = np.cumsum(length, dtype=np.int64)
    return Ids(buffer[begin : begin + int(ends[-1]) if len(ends) else begin], ends - length, length)
