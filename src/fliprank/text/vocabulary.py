"""A vocabulary that grows: words are numbered, and found by a hash of their bytes.

Up to 16 bytes of a word gather in two machine words, from which the hash is made. For words of up to 7 bytes, most of
any text, equal hashes mean equal words, and no bytes are compared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Bytes, Ints
from fliprank.data.ids import Ids
from fliprank.kernels import kernel

__all__ = [
    "BYTE",
    "ENTRIES",
    "POOL",
    "SAME",
    "TEXT",
    "TOKENS",
    "Entries",
    "Vocabulary",
    "find",
    "find_bytes",
    "word_code",
]

SHORT = 7
"""Bytes of a word whose hash no other word has."""
LOW_63 = np.uint64((1 << 63) - 1)
SAME = np.arange(256, dtype=np.uint8)
"""Letters that stand for themselves."""
TEXT, BYTE, TOKENS, ENTRIES, POOL = range(5)
"""Places in the state: the text and byte where cutting stopped, tokens written; entries and bytes of the vocabulary."""


class Entries(NamedTuple):
    """What kernels read: entry e is `pool[starts[e] : starts[e + 1]]`; `slots` hash them: code, entry + 1, code, ..."""

    slots: NDArray[np.uint64]
    pool: Bytes
    starts: Ints


class Vocabulary:
    """Words by number: `entries`, and the `state` of the kernel that adds to them."""

    def __init__(self, first: Ids) -> None:
        packed = first.compact()
        self.entries = Entries(
            np.zeros(1 << 17, np.uint64), np.empty(1 << 20, np.uint8), np.zeros((1 << 15) + 1, np.int64)
        )
        self.entries.pool[: len(packed.buffer)] = packed.buffer
        self.entries.starts[1 : len(first) + 1] = np.cumsum(packed.length)
        self.state = np.zeros(5, np.int64)
        self.state[ENTRIES], self.state[POOL] = len(first), len(packed.buffer)
        _fill(self.entries, len(first), SAME)

    def grow(self, size: int) -> None:
        """Make room for more entries, and for the words of a text of `size` bytes."""
        (slots, pool, starts), count, used = self.entries, int(self.state[ENTRIES]), int(self.state[POOL])
        if 4 * (count + 1) > len(slots):
            slots, starts = np.zeros(2 * len(slots), np.uint64), np.append(starts, np.zeros(len(starts), np.int64))
            _fill(Entries(slots, pool, starts), count, SAME)
        if used + 2 * size + 8 > len(pool):
            room = np.empty(2 * max(len(pool), used + 2 * size + 8), np.uint8)
            room[:used] = pool[:used]
            pool = room
        self.entries = Entries(slots, pool, starts)

    def words(self) -> Ids:
        """All entries."""
        starts = self.entries.starts[: self.state[ENTRIES] + 1]
        return Ids(self.entries.pool[: self.state[POOL]], starts[:-1], np.diff(starts).astype(np.int32))


@kernel
def word_code(low: np.uint64, high: np.uint64, size: int, pool: Bytes, start: int, letters: Bytes) -> np.uint64:
    """The hash of a word whose last 16 bytes are `high` and `low`; different short words have different hashes.

    (An odd factor permutes the numbers below 2^63.) Longer words have the top bit set: equal codes may differ as words.
    """
    code = low
    if size > 16:
        for i in range(start, start + size):
            code = (code ^ np.uint64(letters[pool[i]])) * np.uint64(1099511628211)
    elif size > SHORT:
        code = (low ^ (low >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15) ^ high * np.uint64(0xC2B2AE3D27D4EB4F)
    code = (code * np.uint64(0x9E3779B97F4A7C15)) & LOW_63
    code ^= code >> np.uint64(32)
    return code if size <= SHORT else code | np.uint64(1 << 63)


@kernel
def find(
    entries: Entries, code: np.uint64, size: int, by: Bytes, begin: int, letters: Bytes
) -> tuple[np.int64, np.int64]:
    """(slot, entry) of the word `by[begin : begin + size]`, its bytes mapped by `letters`; entry -1 if it is new."""
    slots, pool, starts = entries
    mask = np.uint64(len(slots) // 2 - 1)
    slot = code & mask
    while True:
        place = np.int64(slot) * 2
        entry = np.int64(slots[place + 1]) - 1
        if entry < 0:
            return place, entry
        if slots[place] == code:
            if size <= SHORT:
                return place, entry
            at, same = starts[entry], starts[entry + 1] - starts[entry] == size
            i = 0
            while same and i < size:
                same = pool[at + i] == letters[by[begin + i]]
                i += 1
            if same:
                return place, entry
        slot = (slot + np.uint64(1)) & mask


@kernel
def find_bytes(entries: Entries, start: int, end: int, same: Bytes) -> tuple[np.int64, np.int64, np.uint64]:
    """(slot, entry, code) of the word `pool[start:end]`; `same` is `SAME`."""
    pool, low, high = entries.pool, np.uint64(0), np.uint64(0)
    for i in range(start, end):
        high = high << np.uint64(8) | low >> np.uint64(56)
        low = low << np.uint64(8) | np.uint64(pool[i])
    code = word_code(low, high, end - start, pool, start, same)
    place, entry = find(entries, code, end - start, pool, start, same)
    return place, entry, code


@kernel
def _fill(entries: Entries, count: int, same: Bytes) -> None:
    """Enter the first `count` words into the empty slots."""
    for entry in range(count):
        place, _, code = find_bytes(entries, entries.starts[entry], entries.starts[entry + 1], same)
        entries.slots[place], entries.slots[place + 1] = code, entry + 1
