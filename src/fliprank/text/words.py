"""Words of many texts at once: a kernel cuts UTF-8 bytes into words and numbers them by its own vocabulary.

Each worker thread has its own vocabulary and takes a piece of every batch, so no thread waits for another; the
vocabularies are united at the end. Stop words are the first entries of each vocabulary, and are dropped when met.

>>> [chunk], words, [numbers] = cut_texts(["Red shoes,", "the red ones"], Analyzer())
>>> words.take(numbers[chunk.stream]).tolist(), chunk.counts.tolist()
(['red', 'shoes', 'red', 'ones'], [2, 2])
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl

from fliprank.arrays import Bytes, Int32s, Ints
from fliprank.data.csr import bounds
from fliprank.data.ids import Ids, factorize
from fliprank.kernels import kernel
from fliprank.text.analysis import ALONE, Analyzer, letters
from fliprank.text.vocabulary import (
    BYTE,
    ENTRIES,
    POOL,
    SAME,
    TEXT,
    TOKENS,
    Entries,
    Vocabulary,
    find,
    find_bytes,
    word_code,
)  # fmt: skip

__all__ = ["Chunk", "WordCounter", "balanced", "cut_texts", "pack"]

_SEPARATOR, _BEYOND_ASCII = 0, 255


class Chunk(NamedTuple):
    """Texts that one worker has cut: entries of its vocabulary in the order of the text, and words per text."""

    worker: int
    stream: Int32s
    counts: Int32s


class Letters(NamedTuple):
    """What stands for a character in a word: for each byte (`ascii`), for each code point (`table`); `same` is SAME."""

    ascii: Bytes
    same: Bytes
    table: Int32s


class WordCounter:
    """Cuts batches of texts into words, in parallel."""

    def __init__(self, analyzer: Analyzer, workers: int) -> None:
        table = letters(analyzer.lowercase)
        ascii_letters = np.full(256, _BEYOND_ASCII, np.uint8)
        ascii_letters[:128] = table[:128]
        self.letters = Letters(ascii_letters, SAME, table)
        stop = Ids.of(analyzer.stop_list)
        self.stop = len(stop)
        self.vocabularies = [Vocabulary(stop) for _ in range(workers)]
        self.pool = ThreadPoolExecutor(workers)

    def count(self, texts: Ids) -> list[Chunk]:
        """Cut packed texts; chunks are in the order of the texts."""
        offsets = bounds(texts.length.astype(np.int64))
        cuts = balanced(offsets, len(self.vocabularies)).tolist()
        pieces = [offsets[first : end + 1] for first, end in pairwise(cuts)]
        return [*self.pool.map(self._piece, range(len(pieces)), [texts.buffer] * len(pieces), pieces)]

    def _piece(self, worker: int, buffer: Bytes, offsets: Ints) -> Chunk:
        """Cut one piece; the kernel returns when its vocabulary is full, and continues where it stopped."""
        vocabulary = self.vocabularies[worker]
        chunk = Chunk(
            worker,
            np.empty((int(offsets[-1] - offsets[0]) + len(offsets)) // 2 + 1, np.int32),
            np.zeros(len(offsets) - 1, np.int32),
        )
        vocabulary.state[:3] = (0, offsets[0], 0)
        while not _cut(buffer, offsets, self.letters, self.stop, vocabulary.entries, vocabulary.state, chunk):
            text = int(vocabulary.state[TEXT])
            vocabulary.grow(int(offsets[text + 1] - offsets[text]))
        return chunk._replace(stream=chunk.stream[: vocabulary.state[TOKENS]].copy())

    def unite(self) -> tuple[Ids, list[Int32s]]:
        """All distinct words; for each worker, the word number of each entry of its vocabulary."""
        each = [vocabulary.words() for vocabulary in self.vocabularies]
        both = Ids.concat(each)
        numbers, first = factorize(both)
        ends = np.cumsum([len(words) for words in each])[:-1]
        return both.take(first).compact(), np.split(numbers.astype(np.int32), ends)

    def close(self) -> None:
        """End the threads."""
        self.pool.shutdown()


def cut_texts(texts: Iterable[str], analyzer: Analyzer, workers: int = 1) -> tuple[list[Chunk], Ids, list[Int32s]]:
    """The chunks of these texts, all distinct words, and for each worker the word number of each entry."""
    counter = WordCounter(analyzer, workers)
    chunks = counter.count(pack(pl.Series(analyzer.plain(texts), dtype=pl.String)))
    counter.close()
    return chunks, *counter.unite()


def pack(texts: pl.Series) -> Ids:
    """Strings packed one after the other; null is an empty string.

    >>> pack(pl.Series(["ab", None, "c"])).tolist()
    ['ab', '', 'c']
    """
    given = texts.fill_null("")
    length = given.str.len_bytes().to_numpy().astype(np.int32)
    joined = given.str.join("").cast(pl.Binary).item() if len(given) else b""
    return Ids(np.frombuffer(joined, np.uint8), np.cumsum(length, dtype=np.int64) - length, length)


def balanced(offsets: Ints, pieces: int) -> Ints:
    """Cut consecutive groups with these offsets into pieces of similar size: the first group of each, and the end.

    >>> balanced(np.array([0, 10, 20, 40]), 2)
    array([0, 2, 3])
    """
    goals = offsets[0] + (offsets[-1] - offsets[0]) * np.arange(1, pieces) // pieces
    inner = np.searchsorted(offsets, goals)
    return np.concatenate([[0], inner, [len(offsets) - 1]]).astype(np.int64)


@kernel
def _letter(buffer: Bytes, i: int, table: Int32s) -> tuple[np.int64, np.int64]:
    """(what stands in a word for the code point at byte i, how many bytes it takes); the bytes are valid UTF-8."""
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
    """Write a code point as UTF-8; returns where it ends."""
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
    buffer: Bytes, offsets: Ints, letters: Letters, stop: int, vocabulary: Entries, state: Ints, chunk: Chunk
) -> bool:
    """Continue from `state` to the end of the texts (True), or until the vocabulary is full (False).

    The bytes of an ASCII word gather in two machine words, from which it is looked up; other words are spelt in lower
    case behind the last entry of the pool, and looked up there. A new word stays there.
    """
    (ascii_letters, same, table), (slots, pool, starts) = letters, vocabulary
    stream, counts = chunk.stream, chunk.counts
    i, tokens, entries, tail = state[BYTE], state[TOKENS], state[ENTRIES], state[POOL]
    most = len(slots) // 4
    for text in range(state[TEXT], len(offsets) - 1):
        state[TEXT] = text
        end = offsets[text + 1]
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
                place, entry, code = find_bytes(vocabulary, tail, at, same)
            elif i > begin:
                at = tail + i - begin
                code = word_code(low, high, i - begin, buffer, begin, ascii_letters)
                place, entry = find(vocabulary, code, i - begin, buffer, begin, ascii_letters)
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
        counts[text] += tokens - first
        state[BYTE], state[TOKENS], state[ENTRIES], state[POOL] = min(i, end), tokens, entries, tail
        if full:
            return False
        i = end
    return True


@kernel
def _spell(buffer: Bytes, i: int, end: int, table: Int32s, pool: Bytes, at: int) -> tuple[int, int]:
    """Write the word at byte i to the pool at `at`; returns (where to continue, where the word ends in the pool)."""
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
