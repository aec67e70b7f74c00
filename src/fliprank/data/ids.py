"""Ids of queries and documents, packed so that kernels can compare and hash them.

All ids of a collection share one buffer of UTF-8 bytes; each is a start and a length in it. Ten million document ids
of a run file are then views of that file's bytes: no Python string is made until a person looks at one. The order of
bytes is the order that trec_eval compares document numbers in.

>>> ids = Ids.of(["d2", "d10", "é"])
>>> len(ids), ids[1], ids.take([2, 0]).tolist()
(3, 'd10', ['é', 'd2'])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fliprank.arrays import Bytes, Int32s, Ints, frozen
from fliprank.errors import InputError
from fliprank.kernels import kernel, parallel_kernel, prange

__all__ = ["Ids", "compare_ids", "factorize", "find_duplicates", "first_equal", "hashes_of", "locate", "match"]

SHOWN = 3
"""Ids that stand for all when a person looks at them."""


@dataclass(frozen=True, eq=False, repr=False)
class Ids:
    """A sequence of strings: `buffer[start[i] : start[i] + length[i]]` holds the bytes of the i-th."""

    buffer: Bytes
    start: Ints
    length: Int32s

    def __post_init__(self) -> None:
        for name, dtype in (("buffer", np.uint8), ("start", np.int64), ("length", np.int32)):
            object.__setattr__(self, name, frozen(getattr(self, name), dtype))

    def __repr__(self) -> str:
        more = f", ... {len(self):,} in all" if len(self) > SHOWN else ""
        return f"Ids({', '.join(repr(self[i]) for i in range(min(SHOWN, len(self))))}{more})"

    @classmethod
    def of(cls, values: Ids | Iterable[Any]) -> Ids:
        """Pack any values: strings as they are, numbers as Python prints them (7.0 as 7)."""
        if isinstance(values, Ids):
            return values
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            exact = np.abs(values) < 2**53
            if np.all(exact & (values == np.floor(values))):
                values = values.astype(np.int64)
        try:
            encoded = [
                value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else str(value).encode()
                for value in (values.tolist() if isinstance(values, np.ndarray) else values)
            ]
        except UnicodeEncodeError as error:
            raise InputError(f"the id {error.object!r:.60} is not valid text: half of a surrogate pair") from error
        length = np.fromiter(map(len, encoded), np.int32, len(encoded))
        start = np.cumsum(length, dtype=np.int64) - length
        return cls(np.frombuffer(b"".join(encoded), np.uint8), start, length)

    @classmethod
    def concat(cls, parts: Sequence[Ids]) -> Ids:
        """One after the other."""
        shifts = np.cumsum([0, *(len(part.buffer) for part in parts)])
        return cls(
            np.concatenate([part.buffer for part in parts]),
            np.concatenate([part.start + shift for part, shift in zip(parts, shifts, strict=False)]),
            np.concatenate([part.length for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, index: int) -> str:
        start = self.start[index]
        return self.buffer[start : start + self.length[index]].tobytes().decode(errors="replace")

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ids):
            return NotImplemented
        return len(self) == len(other) and bool(_all_equal(*self.arrays, *other.arrays))

    __hash__ = None  # type: ignore[assignment]

    @property
    def arrays(self) -> tuple[Bytes, Ints, Int32s]:
        """Buffer, starts and lengths, as kernels take them."""
        return self.buffer, self.start, self.length

    def tolist(self) -> list[str]:
        """As Python strings."""
        if not len(self.start):
            return []
        ends = self.start + self.length
        first = int(self.start.min())  # few ids of a large buffer: only the bytes around them are copied
        data = self.buffer[first : int(ends.max())].tobytes()
        spans = zip((self.start - first).tolist(), (ends - first).tolist(), strict=True)
        return [data[s:e].decode(errors="replace") for s, e in spans]

    def take(self, indices: ArrayLike) -> Ids:
        """Those at `indices`; they share this buffer."""
        chosen = np.asarray(indices)
        return Ids(self.buffer, self.start[chosen], self.length[chosen])

    def compact(self) -> Ids:
        """A copy whose buffer holds just these ids, in order: for a file, or to let go of a large buffer."""
        start = np.cumsum(self.length, dtype=np.int64) - self.length
        buffer = np.empty(int(self.length.sum()), np.uint8)
        _gather(*self.arrays, start, buffer)
        return Ids(buffer, start, self.length)


def factorize(ids: Ids) -> tuple[Ints, Ints]:
    """Number the distinct ids from 0 in order of appearance: (number of each id, index of each number's first id).

    >>> numbers, first = factorize(Ids.of(["b", "a", "b"]))
    >>> numbers.tolist(), first.tolist()
    ([0, 1, 0], [0, 1])
    """
    numbers, first, count = _factorize(*ids.arrays)
    return numbers, first[:count]


def find_duplicates(ids: Ids, offsets: Ints) -> Ints:
    """For each query (CSR `offsets`) the index of the first id that its query has already, or -1."""
    return _duplicates(*ids.arrays, frozen(offsets, np.int64))


def first_equal(ids: Ids, offsets: Ints) -> Ints:
    """For each id the index of the first equal id of its own query (CSR `offsets`): its own, where it is new.

    >>> first_equal(Ids.of(["a", "b", "a", "a"]), np.array([0, 3, 4])).tolist()
    [0, 1, 0, 3]
    """
    return _first_equal(*ids.arrays, frozen(offsets, np.int64))


def match(ids: Ids, offsets: Ints, other: Ids, other_offsets: Ints, partner: Ints) -> Ints:
    """For each of `ids` the index of the equal id among `other`, or -1.

    Only within groups: ids of query q are looked up among `other` of query `partner[q]` (-1: nowhere). Ids of one group
    of `other` must differ from each other.
    """
    return _match(
        *ids.arrays,
        frozen(offsets, np.int64),
        *other.arrays,
        frozen(other_offsets, np.int64),
        frozen(partner, np.int64),
    )


def locate(ids: Ids, other: Ids) -> Ints:
    """For each of `ids` the index of the equal id among `other`, which differ from each other, or -1.

    >>> locate(Ids.of(["b", "x"]), Ids.of(["a", "b"])).tolist()
    [1, -1]
    """
    return match(ids, np.array([0, len(ids)]), other, np.array([0, len(other)]), np.zeros(1, np.int64))


def hashes_of(ids: Ids) -> NDArray[np.uint64]:
    """Eight bytes of each id, the same on every machine.

    >>> len(set(hashes_of(Ids.of(["a", "b", "a"])).tolist()))
    2
    """
    return _hashes(*ids.arrays)


@parallel_kernel
def _hashes(buffer: Bytes, start: Ints, length: Int32s) -> NDArray[np.uint64]:
    out = np.empty(len(start), np.uint64)
    for i in prange(len(start)):
        out[i] = _hash(buffer, start[i], length[i])
    return out


@kernel
def compare_ids(buffer: Bytes, start_a: int, length_a: int, start_b: int, length_b: int) -> np.int64:
    """Negative, 0 or positive as the first of two ids of one buffer comes before, equals or comes after the second."""
    for i in range(min(length_a, length_b)):
        difference = np.int64(buffer[start_a + i]) - np.int64(buffer[start_b + i])
        if difference != 0:
            return difference
    return np.int64(length_a) - np.int64(length_b)


@kernel
def _equal(buffer_a: Bytes, start_a: int, length_a: int, buffer_b: Bytes, start_b: int, length_b: int) -> bool:
    if length_a != length_b:
        return False
    for i in range(length_a):
        if buffer_a[start_a + i] != buffer_b[start_b + i]:
            return False
    return True


@kernel
def _hash(buffer: Bytes, start: int, length: int) -> np.uint64:
    """FNV-1a, with a final mix so that its low bits serve as a table index."""
    code = np.uint64(14695981039346656037)
    for i in range(start, start + length):
        code = (code ^ np.uint64(buffer[i])) * np.uint64(1099511628211)
    return code ^ (code >> np.uint64(29))


@kernel
def _table(count: int) -> Ints:
    """An empty open-addressing table with room for `count` entries."""
    size = 8
    while size < 2 * count:
        size *= 2
    return np.full(size, -1, np.int64)


@kernel
def _find(
    table: Ints, index: int, buffer: Bytes, start: Ints, length: Int32s, by: Bytes, by_start: Ints, by_length: Int32s
) -> tuple[np.uint64, int]:
    """(slot, entry) of the id at `index` of `buffer` in a table of ids of `by`; entry -1 where it is not there."""
    mask = np.uint64(len(table) - 1)
    slot = _hash(buffer, start[index], length[index]) & mask
    while True:
        entry = table[slot]
        if entry < 0 or _equal(buffer, start[index], length[index], by, by_start[entry], by_length[entry]):
            return slot, entry
        slot = (slot + np.uint64(1)) & mask


@kernel
def _all_equal(
    buffer_a: Bytes, start_a: Ints, length_a: Int32s, buffer_b: Bytes, start_b: Ints, length_b: Int32s
) -> bool:
    for i in range(len(start_a)):
        if not _equal(buffer_a, start_a[i], length_a[i], buffer_b, start_b[i], length_b[i]):
            return False
    return True


@kernel
def _gather(buffer: Bytes, start: Ints, length: Int32s, target_start: Ints, target: Bytes) -> None:
    for i in range(len(start)):
        for b in range(length[i]):
            target[target_start[i] + b] = buffer[start[i] + b]


@kernel
def _factorize(buffer: Bytes, start: Ints, length: Int32s) -> tuple[Ints, Ints, int]:
    rows = len(start)
    numbers, first, count = np.empty(rows, np.int64), np.empty(rows, np.int64), 0
    table = _table(16)
    for i in range(rows):
        if i > 0 and _equal(buffer, start[i], length[i], buffer, start[i - 1], length[i - 1]):
            numbers[i] = numbers[i - 1]
            continue
        if 2 * (count + 1) > len(table):
            table = _table(2 * len(table))
            for number in range(count):
                slot, _ = _find(table, first[number], buffer, start, length, buffer, start, length)
                table[slot] = first[number]
        slot, entry = _find(table, i, buffer, start, length, buffer, start, length)
        if entry < 0:
            table[slot], first[count], numbers[i] = i, i, count
            count += 1
        else:
            numbers[i] = numbers[entry]
    return numbers, first, count


@parallel_kernel
def _duplicates(buffer: Bytes, start: Ints, length: Int32s, offsets: Ints) -> Ints:
    out = np.full(len(offsets) - 1, -1, np.int64)
    for q in prange(len(offsets) - 1):
        table = _table(offsets[q + 1] - offsets[q])
        for i in range(offsets[q], offsets[q + 1]):
            slot, entry = _find(table, i, buffer, start, length, buffer, start, length)
            if entry >= 0:
                out[q] = i
                break
            table[slot] = i
    return out


@parallel_kernel
def _first_equal(buffer: Bytes, start: Ints, length: Int32s, offsets: Ints) -> Ints:
    out = np.empty(len(start), np.int64)
    for q in prange(len(offsets) - 1):
        table = _table(offsets[q + 1] - offsets[q])
        for i in range(offsets[q], offsets[q + 1]):
            slot, entry = _find(table, i, buffer, start, length, buffer, start, length)
            if entry < 0:
                table[slot] = entry = i
            out[i] = entry
    return out


@parallel_kernel
def _match(
    buffer: Bytes,
    start: Ints,
    length: Int32s,
    offsets: Ints,
    by: Bytes,
    by_start: Ints,
    by_length: Int32s,
    by_offsets: Ints,
    partner: Ints,
) -> Ints:
    out = np.full(len(start), -1, np.int64)
    for q in prange(len(offsets) - 1):
        if partner[q] >= 0:
            low, high = by_offsets[partner[q]], by_offsets[partner[q] + 1]
            table = _table(high - low)
            for i in range(low, high):
                slot, _ = _find(table, i, by, by_start, by_length, by, by_start, by_length)
                table[slot] = i
            for i in range(offsets[q], offsets[q + 1]):
                _, out[i] = _find(table, i, buffer, start, length, by, by_start, by_length)
    return out
