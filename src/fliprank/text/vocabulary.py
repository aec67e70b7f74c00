"""A vocabulary that grows: words by number, found by a hash of their bytes.

Up to 16 bytes of a word gather in two machine words, of which the hash is made; for words of up to 7 bytes, most of any
text, equal hashes are equal words, and no bytes are compared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Bytes, Ints
from fliprank.data.ids import Ids
from fliprank.kernels import kernel

__all__ = [
    "BYTE",
    "DOCUMENT",
    "ENTRIES",
    "POOL",
    "SAME",
    "TOKENS",
    "Vocabulary",
    "Words",
    "find",
    "find_bytes",
    "word_code",
]

SHORT = np.uint64((1 << 63) - 1)
SAME = np.arange(256, dtype=np.uint8)
"""Letters that stand for themselves."""
DOCUMENT, BYTE, TOKENS, ENTRIES, POOL = range(5)
"""Of the state: where the text that is cut was left, terms written; entries of the vocabulary and bytes of its pool."""

Words = NDArray[np.uint64]


class Vocabulary:
    """Words by number: entry e is `bytes[starts[e] : starts[e + 1]]`; `slots` hash them: code, entry + 1, ..."""

    def __init__(self, first: Ids) -> None:
        self.slots = np.zeros(1 << 17, np.uint64)
        self.starts = np.zeros((1 << 15) + 1, np.int64)
        self.bytes = np.empty(1 << 20, np.uint8)
        self.state = np.zeros(5, np.int64)
        packed = first.compact()
        self.bytes[: len(packed.buffer)] = packed.buffer
        self.starts[1 : len(first) + 1] = np.cumsum(packed.length)
        self.state[ENTRIES], self.state[POOL] = len(first), len(packed.buffer)
        _fill(self.slots, self.bytes, self.starts, len(first), SAME)

    def grow(self, document: int) -> None:
        """Make room for more entries and for the words of a document of this many bytes."""
        entries, used = int(self.state[ENTRIES]), int(self.state[POOL])
        if 4 * (entries + 1) > len(self.slots):
            self.slots = np.zeros(2 * len(self.slots), np.uint64)
            self.starts = np.concatenate([self.starts, np.zeros(len(self.starts), np.int64)])
            _fill(self.slots, self.bytes, self.starts, entries, SAME)
        if used + 2 * document + 8 > len(self.bytes):
            room = np.empty(2 * max(len(self.bytes), used + 2 * document + 8), np.uint8)
            room[:used] = self.bytes[:used]
            self.bytes = room

    def words(self) -> Ids:
        starts = self.starts[: self.state[ENTRIES] + 1]
        return Ids(self.bytes[: self.state[POOL]], starts[:-1], np.diff(starts).astype(np.int32))


@kernel
def word_code(low: np.uint64, high: np.uint64, size: int, pool: Bytes, start: int, letters: Bytes) -> np.uint64:
    """The hash of a word whose last 16 bytes are `high` and `low`. Words of up to 7 bytes that differ, differ in it.

    (An odd factor permutes the numbers below 2^63.) Others have the top bit set: equal codes don't make them equal.
    """
    code = low
    if size > 16:
        for i in range(start, start + size):
            code = (code ^ np.uint64(letters[pool[i]])) * np.uint64(1099511628211)
    elif size > 7:
        code = (low ^ (low >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15) ^ high * np.uint64(0xC2B2AE3D27D4EB4F)
    code = (code * np.uint64(0x9E3779B97F4A7C15)) & SHORT
    code ^= code >> np.uint64(32)
    return code if size <= 7 else code | np.uint64(1 << 63)


@kernel
def find(
    slots: Words, code: np.uint64, size: int, by: Bytes, begin: int, letters: Bytes, pool: Bytes, starts: Ints
) -> tuple[np.int64, np.int64]:
    """(slot, entry) of the word `by[begin : begin + size]`, its bytes taken by `letters`; entry -1: not there."""
    mask = np.uint64(len(slots) // 2 - 1)
    slot = code & mask
    while True:
        place = np.int64(slot) * 2
        entry = np.int64(slots[place + 1]) - 1
        if entry < 0:
            return place, entry
        if slots[place] == code:
            if size <= 7:
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
def find_bytes(
    slots: Words, pool: Bytes, starts: Ints, start: int, end: int, same: Bytes
) -> tuple[np.int64, np.int64, np.uint64]:
    """(slot, entry, code) of the word `pool[start:end]`; `same` are the bytes 0 to 255."""
    low, high = np.uint64(0), np.uint64(0)
    for i in range(start, end):
        high = high << np.uint64(8) | low >> np.uint64(56)
        low = low << np.uint64(8) | np.uint64(pool[i])
    code = word_code(low, high, end - start, pool, start, same)
    place, entry = find(slots, code, end - start, pool, start, same, pool, starts)
    return place, entry, code


@kernel
def _fill(slots: Words, pool: Bytes, starts: Ints, entries: int, same: Bytes) -> None:
    for entry in range(entries):
        place, _, code = find_bytes(slots, pool, starts, starts[entry], starts[entry + 1], same)
        slots[place], slots[place + 1] = code, entry + 1
