"""From the terms of each document to the documents of each term: a counting sort, in parallel over documents.

Documents are divided into pieces; each thread counts the postings of its piece, and then knows where in every term's
list its own postings begin.

>>> inverted = invert(Stream(np.array([1, 0, 1, 0], np.int32), np.array([[0, 3, 4]])), terms=2, workers=1)
>>> inverted.starts.tolist(), inverted.docs.tolist(), inverted.tf.tolist()
([0, 2, 3], [0, 1, 0], [[1], [1], [2]])
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Int32s, Ints
from fliprank.data.csr import bounds
from fliprank.kernels import kernel
from fliprank.text.words import balanced

__all__ = ["MOST_TF", "Inverted", "Stream", "invert"]

MOST_TF = 65535
"""A term that occurs more often in one field of one document counts this often."""


class Stream(NamedTuple):
    """Document d has the terms `tokens[offsets[f, d] : offsets[f, d + 1]]` in field f."""

    tokens: Int32s
    offsets: Ints


class Inverted(NamedTuple):
    """`starts` (terms + 1), `docs` and `tf` (postings), `field_df` and `cf` (terms x fields), as in `IndexArrays`."""

    starts: Ints
    docs: Int32s
    tf: NDArray[np.uint16]
    field_df: Int32s
    cf: Ints


class Cursor(NamedTuple):
    """Per term: the last document of this piece that had it, and where its next posting goes (or how many it has)."""

    last: Int32s
    next: Ints


def invert(stream: Stream, terms: int, workers: int) -> Inverted:
    """The postings of all terms, documents ascending."""
    offsets = stream.offsets
    pieces = list(pairwise(balanced((offsets - offsets[:, :1]).sum(0), workers).tolist()))
    size, fields = len(pieces), len(offsets)
    last, counts = np.full((size, terms), -1, np.int32), np.zeros((size, terms), np.int64)
    field_df, cf = (np.zeros((size, terms, fields), np.int32) for _ in range(2))
    with ThreadPoolExecutor(size) as pool:
        list(pool.map(lambda p: _count(stream, *pieces[p], Cursor(last[p], counts[p])), range(size)))
        starts = bounds(counts.sum(0))
        cursors = starts[:-1] + np.cumsum(counts, 0) - counts
        docs, tf = np.empty(starts[-1], np.int32), np.zeros((starts[-1], fields), np.uint16)
        last.fill(-1)

        def place(p: int) -> None:
            _place(stream, *pieces[p], Cursor(last[p], cursors[p]), Inverted(starts, docs, tf, field_df[p], cf[p]))

        list(pool.map(place, range(size)))
    return Inverted(starts, docs, tf, field_df.sum(0, dtype=np.int32), cf.sum(0, dtype=np.int64))


@kernel
def _count(stream: Stream, first: int, end: int, cursor: Cursor) -> None:
    """Count for each term the documents `first:end` that have it."""
    (tokens, offsets), (last, counts) = stream, cursor
    for d in range(first, end):
        for f in range(len(offsets)):
            for i in range(offsets[f, d], offsets[f, d + 1]):
                term = tokens[i]
                if last[term] != d:
                    last[term] = d
                    counts[term] += 1


@kernel
def _place(stream: Stream, first: int, end: int, cursor: Cursor, out: Inverted) -> None:
    """Write the postings of the documents `first:end`, and count documents and occurrences per field."""
    (tokens, offsets), (last, following), (_, docs, tf, field_df, cf) = stream, cursor, out
    for d in range(first, end):
        for f in range(len(offsets)):
            for i in range(offsets[f, d], offsets[f, d + 1]):
                term = tokens[i]
                if last[term] != d:
                    last[term] = d
                    docs[following[term]] = d
                    following[term] += 1
                at = following[term] - 1
                before = tf[at, f]
                field_df[term, f] += before == 0
                cf[term, f] += 1
                if before < MOST_TF:
                    tf[at, f] = before + 1
