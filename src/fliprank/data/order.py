"""The order of documents: score descending, and what settles ties.

Ties go by document id, descending, as in trec_eval; without document ids by row order. The order never depends on
labels.

>>> import numpy as np
>>> from fliprank.data.ids import Ids
>>> order_rows(np.array([1.0, 3.0, 1.0]), np.array([0, 3]), Ids.of(["a", "b", "c"])).tolist()
[1, 2, 0]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Bytes, Floats, Int32s, Ints, frozen
from fliprank.data.ids import Ids, compare_ids
from fliprank.kernels import kernel, parallel_kernel, prange

__all__ = ["NO_IDS", "comes_first", "order_rows", "sort_rows"]

NO_IDS = Ids.of([])
"""Stands for absent document ids: ties go by row order."""


def order_rows(scores: Floats, offsets: Ints, docids: Ids | None = None) -> Ints:
    """Rows in ranked order: `out[offsets[q] + r]` is the row at rank r (from 0) of query q."""
    ids = NO_IDS if docids is None else docids
    values = frozen(scores, np.float64)
    return _order_rows(values, values.view(np.uint64), frozen(offsets, np.int64), *ids.arrays)


@kernel
def comes_first(a: int, b: int, scores: Floats, buffer: Bytes, start: Ints, length: Int32s) -> bool:
    """Whether row `a` ranks above row `b`."""
    if scores[a] != scores[b]:
        return bool(scores[a] > scores[b])
    if len(start) > 0:
        return bool(compare_ids(buffer, start[a], length[a], start[b], length[b]) > 0)
    return a < b


@kernel
def sort_rows(
    low: int,
    high: int,
    scores: Floats,
    bits: NDArray[np.uint64],
    buffer: Bytes,
    start: Ints,
    length: Int32s,
    rows: Ints,
) -> None:
    """Write rows low to high in ranked order to `rows`; `bits` are the scores' bits.

    A score and its row are packed into one word that sorts as the score does: no indirection, no branches. The row
    takes the place of the lowest bits, so words that are equal without it are put in order afterwards.
    """
    count, width = high - low, 1
    while width < count:
        width *= 2
    place = np.uint64(width - 1)
    keys, other = np.empty(count, np.uint64), np.empty(count, np.uint64)
    for i in range(count):
        word = bits[low + i]
        if scores[low + i] == 0.0:
            word = np.uint64(0)  # -0.0 is 0.0
        # Bits of negative numbers fall as the number rises; flip them, and the sign of the others, then invert all.
        ordered = ~word if word >> np.uint64(63) else word | np.uint64(1 << 63)
        keys[i] = (~ordered & ~place) | np.uint64(i)
    sort_words(keys, other)
    for i in range(count):
        rows[i] = low + np.int64(keys[i] & place)
    i = 0
    while i < count:
        j = i + 1
        while j < count and (keys[j] | place) == (keys[i] | place):
            j += 1
        if j - i > 1:
            _settle(rows, i, j, scores, buffer, start, length)
        i = j


@kernel
def sort_words(words: NDArray[np.uint64], other: NDArray[np.uint64]) -> None:
    """Sort `words` in place, ascending, with `other` as room: insertion in blocks, then merges, bottom up."""
    count, width = len(words), 8
    for i in range(count):
        word, at = words[i], i
        while at % width > 0 and words[at - 1] > word:
            words[at] = words[at - 1]
            at -= 1
        words[at] = word
    source, target = words, other
    while width < count:
        for low in range(0, count, 2 * width):
            middle, high = min(low + width, count), min(low + 2 * width, count)
            i, j, k = low, middle, low
            while i < middle and j < high:
                left, right = source[i], source[j]
                first = left <= right
                target[k] = left if first else right
                i += first
                j += not first
                k += 1
            for rest in range(i, middle):
                target[k] = source[rest]
                k += 1
            for rest in range(j, high):
                target[k] = source[rest]
                k += 1
        source, target = target, source
        width *= 2
    # After an odd number of rounds the sorted words are in `other`.
    rounds, width = 0, 8
    while width < count:
        rounds, width = rounds + 1, 2 * width
    if rounds % 2 == 1:
        for i in range(count):
            words[i] = other[i]


@kernel
def _settle(rows: Ints, low: int, high: int, scores: Floats, buffer: Bytes, start: Ints, length: Int32s) -> None:
    """Sort rows[low:high], whose scores are equal or nearly so, by `comes_first`: merges, bottom up."""
    width, count = 1, high - low
    other = np.empty(count, np.int64)
    while width < count:
        for first in range(0, count, 2 * width):
            middle, last = min(first + width, count), min(first + 2 * width, count)
            i, j = first, middle
            for k in range(first, last):
                if j >= last or (
                    i < middle and not comes_first(rows[low + j], rows[low + i], scores, buffer, start, length)
                ):
                    other[k] = rows[low + i]
                    i += 1
                else:
                    other[k] = rows[low + j]
                    j += 1
        for k in range(count):
            rows[low + k] = other[k]
        width *= 2


@parallel_kernel
def _order_rows(
    scores: Floats, bits: NDArray[np.uint64], offsets: Ints, buffer: Bytes, start: Ints, length: Int32s
) -> Ints:
    out = np.empty(len(scores), np.int64)
    for q in prange(len(offsets) - 1):
        low, high = offsets[q], offsets[q + 1]
        sort_rows(low, high, scores, bits, buffer, start, length, out[low:high])
    return out
