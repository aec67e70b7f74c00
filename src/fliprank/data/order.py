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

from fliprank.arrays import Bytes, Floats, Int32s, Ints, frozen
from fliprank.data.ids import Ids, compare_ids
from fliprank.kernels import kernel, parallel_kernel, prange

__all__ = ["NO_IDS", "comes_first", "order_rows", "sort_rows"]

NO_IDS = Ids.of([])
"""Stands for absent document ids: ties go by row order."""


def order_rows(scores: Floats, offsets: Ints, docids: Ids | None = None) -> Ints:
    """Rows in ranked order: `out[offsets[q] + r]` is the row at rank r (from 0) of query q."""
    ids = NO_IDS if docids is None else docids
    return _order_rows(frozen(scores, np.float64), frozen(offsets, np.int64), *ids.arrays)


@kernel
def comes_first(a: int, b: int, scores: Floats, buffer: Bytes, start: Ints, length: Int32s) -> bool:
    """Whether row `a` ranks above row `b`."""
    if scores[a] != scores[b]:
        return bool(scores[a] > scores[b])
    if len(start) > 0:
        return bool(compare_ids(buffer, start[a], length[a], start[b], length[b]) > 0)
    return a < b


@kernel
def sort_rows(rows: Ints, scores: Floats, buffer: Bytes, start: Ints, length: Int32s) -> None:
    """Sort `rows` in place into ranked order: by score, then each run of equal scores by the tie rule."""
    keys = np.empty(len(rows))
    for i in range(len(rows)):
        keys[i] = -scores[rows[i]]
    rows[:] = rows[np.argsort(keys)]
    i = 0
    while i < len(rows):
        j = i + 1
        while j < len(rows) and scores[rows[j]] == scores[rows[i]]:
            j += 1
        if j - i > 1:
            _sort_ties(rows[i:j], scores, buffer, start, length)
        i = j


@kernel
def _sort_ties(rows: Ints, scores: Floats, buffer: Bytes, start: Ints, length: Int32s) -> None:
    """Merge sort, bottom up, by `comes_first`."""
    count = len(rows)
    source, target = rows.copy(), np.empty_like(rows)
    width = 1
    while width < count:
        for low in range(0, count, 2 * width):
            middle, high = min(low + width, count), min(low + 2 * width, count)
            i, j = low, middle
            for k in range(low, high):
                left = j >= high
                if not left and i < middle:
                    left = comes_first(source[i], source[j], scores, buffer, start, length)
                if left:
                    target[k] = source[i]
                    i += 1
                else:
                    target[k] = source[j]
                    j += 1
        source, target = target, source
        width *= 2
    rows[:] = source


@parallel_kernel
def _order_rows(scores: Floats, offsets: Ints, buffer: Bytes, start: Ints, length: Int32s) -> Ints:
    out = np.empty(len(scores), np.int64)
    for q in prange(len(offsets) - 1):
        rows = np.arange(offsets[q], offsets[q + 1])
        sort_rows(rows, scores, buffer, start, length)
        out[offsets[q] : offsets[q + 1]] = rows
    return out
