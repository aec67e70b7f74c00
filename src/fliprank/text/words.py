"""Words of many texts at once: a kernel cuts UTF-8 bytes into words and numbers them by its own vocabulary.

Each worker thread has a vocabulary to itself and takes a piece of every batch, so no thread waits for another; their
vocabularies become one at the end (`unite`). Stop words are the first entries of each, and are dropped as they are met.

>>> counter = WordCounter(Analyzer(), workers=1)
>>> [chunk] = counter.count(np.frombuffer(b"Red shoes, the red ones", np.uint8), np.array([0, 10, 23]))
>>> words, maps = counter.unite()
>>> words.take(maps[chunk.worker][chunk.stream]).tolist(), chunk.counts.tolist()
(['red', 'shoes', 'red', 'ones'], [2, 2])
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from fliprank.arrays import Bytes, Int32s, Ints
from fliprank.data.ids import Ids, factorize
from fliprank.kernels import kernel
from fliprank.text.analysis import ALONE, Analyzer, letters
from fliprank.text.vocabulary import (
    BYTE,
    DOCUMENT,
    ENTRIES,
    POOL,
    SAME,
    TOKENS,
    Vocabulary,
    Words,
    find,
    find_bytes,
    word_code,
)

__all__ = ["Chunk", "WordCounter", "balanced"]

_SEPARATOR, _BEYOND_ASCII = 0, 255


class Chunk(NamedTuple):
    """Texts that one worker has cut: the entries of its vocabulary in order, and how many words each text has."""

    worker: int
    stream: Int32s
    counts: Int32s


class WordCounter:
    """Cuts batches of texts into words, in parallel."""

    def __init__(self, analyzer: Analyzer, workers: int) -> None:
        self.letters = letters(analyzer.lowercase)
        self.ascii = np.full(256, _BEYOND_ASCII, np.uint8)
        self.ascii[:128] = self.letters[:128]
        stop = Ids.of(analyzer.stop_list)
        self.stop = len(stop)
        self.vocabularies = [Vocabulary(stop) for _ in range(workers)]
        self.pool = ThreadPoolExecutor(workers)

    def count(self, buffer: Bytes, offsets: Ints) -> list[Chunk]:
        """Cut the texts `buffer[offsets[i] : offsets[i + 1]]`; chunks are in the order of the texts."""
        cuts = balanced(offsets, len(self.vocabularies)).tolist()
        futures = [
            self.pool.submit(self._piece, p, buffer, offsets[cuts[p] : cuts[p + 1] + 1]) for p in range(len(cuts) - 1)
        ]
        return [future.result() for future in futures]

    def _piece(self, worker: int, buffer: Bytes, offsets: Ints) -> Chunk:
        """Cut one piece; the kernel comes back when its vocabulary is full, and goes on where it was."""
        vocabulary = self.vocabularies[worker]
        stream = np.empty((int(offsets[-1] - offsets[0]) + len(offsets)) // 2 + 1, np.int32)
        counts = np.zeros(len(offsets) - 1, np.int32)
        vocabulary.state[:3] = (0, offsets[0], 0)
        while True:
            words = vocabulary.slots, vocabulary.bytes, vocabulary.starts, vocabulary.state
            if _cut(buffer, offsets, self.ascii, SAME, self.letters, self.stop, *words, stream, counts):
                return Chunk(worker, stream[: vocabulary.state[TOKENS]].copy(), counts)
            document = int(vocabulary.state[DOCUMENT])
            vocabulary.grow(int(offsets[document + 1] - offsets[document]))

    def unite(self) -> tuple[Ids, list[Int32s]]:
        """All distinct words; for each worker the number among them of each entry of its vocabulary."""
        each = [vocabulary.words() for vocabulary in self.vocabularies]
        both = Ids.concat(each)
        numbers, first = factorize(both)
        ends = np.cumsum([len(words) for words in each])[:-1]
        return both.take(first).compact(), np.split(numbers.astype(np.int32), ends)

    def close(self) -> None:
        """End the threads."""
        self.pool.shutdown()


def balanced(offsets: Ints, pieces: int) -> Ints:
    """Cut consecutive groups of these bounds into pieces of about one size: the first group of each, and the end.

    >>> balanced(np.array([0, 10, 20, 40]), 2)
    array([0, 2, 3])
    """
    goals = offsets[0] + (offsets[-1] - offsets[0]) * np.arange(1, pieces) // pieces
    inner = np.searchsorted(offsets, goals)
    return np.concatenate([[0], inner, [len(offsets) - 1]]).astype(np.int64)


@kernel
def _letter(buffer: Bytes, i: int, table: Int32s) -> tuple[np.int64, np.int64]:
    """(what stands for the code point at byte i in a word, bytes it takes); the bytes are valid UTF-8."""
    byte = np.int64(buffer[i])
    if byte < 0xE0:
        return np.int64(table[(byte & 0x1F) << 6 | (buffer[i + 1] & 0x3F)]), np.int64(2)
    if byte < 0xF0:
        point = (byte & 0x0F) << 12 | np.int64(buffer[i + 1] & 0x3F) << 6 | np.int64(buffer[i + 2] & 0x3F)
        return np.int64(table[point]), np.int64(3)
    point = (byte & 0x07) << 18 | np.int64(buffer[i + 1] & 0x3F) << 12 | np.int64(buffer[i + 2] & 0x3F) << 6
    return np.int64(table[point | np.int64(buffer[i + 3] & 0x3F)]), np.int64(4)


@kernel
def _put(pool: Bytes, at: int, point: int) -> int:
    """Write a code point as UTF-8; where it ends."""
    if point < 0x80:
        pool[at] = point
        return at + 1
    if point < 0x800:
        pool[at], pool[at + 1] = 0xC0 | point >> 6, 0x80 | point & 0x3F
        return at + 2
    if point < 0x10000:
        pool[at], pool[at + 1], pool[at + 2] = 0xE0 | point >> 12, 0x80 | point >> 6 & 0x3F, 0x80 | point & 0x3F
        return at + 3
    pool[at], pool[at + 1] = 0xF0 | point >> 18, 0x80 | point >> 12 & 0x3F
    pool[at + 2], pool[at + 3] = 0x80 | point >> 6 & 0x3F, 0x80 | point & 0x3F
    return at + 4


@kernel
def _cut(
    buffer: Bytes,
    offsets: Ints,
    ascii_letters: Bytes,
    same: Bytes,
    table: Int32s,
    stop: int,
    slots: Words,
    pool: Bytes,
    starts: Ints,
    state: Ints,
    stream: Int32s,
    counts: Int32s,
) -> bool:
    """Go on from `state` to the end of the texts (True), or to where the vocabulary is full (False).

    The bytes of an ASCII word gather in two machine words, from which it is looked up; others are spelt in lower case
    behind the last entry of the pool, and looked up there. A new word stays there.
    """
    i, tokens, entries, tail = state[BYTE], state[TOKENS], state[ENTRIES], state[POOL]
    most = len(slots) // 4
    for document in range(state[DOCUMENT], len(offsets) - 1):
        state[DOCUMENT] = document
        end = offsets[document + 1]
        full, first = tail + 2 * (end - i) + 8 > len(pool), tokens
        while i < end and not full:
            begin, low, high, letter = i, np.uint64(0), np.uint64(0), np.uint8(0)
            while i < end:
                letter = ascii_letters[buffer[i]]
                if letter in (_SEPARATOR, _BEYOND_ASCII):
                    break
                high = high << np.uint64(8) | low >> np.uint64(56)
                low = low << np.uint64(8) | np.uint64(letter)
                i += 1
            if i < end and letter == _BEYOND_ASCII:
                i, at = _spell(buffer, begin, end, table, pool, tail)
                if at == tail:  # no letter
                    continue
                place, entry, code = find_bytes(slots, pool, starts, tail, at, same)
            elif i > begin:
                at = tail + i - begin
                code = word_code(low, high, i - begin, buffer, begin, ascii_letters)
                place, entry = find(slots, code, i - begin, buffer, begin, ascii_letters, pool, starts)
                i += 1
            else:
                i += 1
                continue
            if entry < 0:
                if entries >= most:
                    i, full = begin, True
                    break
                _spell(buffer, begin, end, table, pool, tail)
                entry = entries
                slots[place], slots[place + 1] = code, np.uint64(entry + 1)
                entries, tail = entries + 1, at
                starts[entries] = at
            if entry >= stop:
                stream[tokens] = entry
                tokens += 1
        counts[document] += tokens - first
        state[BYTE], state[TOKENS], state[ENTRIES], state[POOL] = min(i, end), tokens, entries, tail
        if full:
            return False
        i = end
    return True


@kernel
def _spell(buffer: Bytes, i: int, end: int, table: Int32s, pool: Bytes, at: int) -> tuple[int, int]:
    """Write the word at byte i to the pool at `at`; (where to go on, where it ends in the pool)."""
    first = at
    while i < end:
        if buffer[i] < 0x80:
            point, size = np.int64(table[buffer[i]]), np.int64(1)
        else:
            point, size = _letter(buffer, i, table)
        if point >= ALONE:
            if at > first:
                break
            return i + int(size), _put(pool, at, int(point - ALONE))
        i += int(size)
        if point == 0 or (point < 0 and at == first):
            break
        at = _put(pool, at, int(abs(point)))
    return i, at
