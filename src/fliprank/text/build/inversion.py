"""From the terms of each document to the documents of each term: a counting sort, in parallel over documents.

Posting p says that a term occurs in document `docs[p]`, `tf[p, f]` times in field f; those of term t are
`starts[t]:starts[t + 1]`, by document. Documents are cut into pieces; each thread counts the postings of its piece, and
then knows where in every term's list its own ones begin.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Int32s, Ints
from fliprank.data.csr import bounds
from fliprank.kernels import kernel
from fliprank.text.words import balanced

__all__ = ["MOST", "Postings", "invert"]

MOST = 65535
"""A term that occurs more often in one field of one document counts as often as this."""


@dataclass(frozen=True, eq=False)
class Postings:
    """`starts` (terms + 1), `docs` and `tf` (postings); `field_df`, `cf` (terms x fields): documents, occurrences."""

    starts: Ints
    docs: Int32s
    tf: NDArray[np.uint16]
    field_df: Int32s
    cf: Ints


def invert(tokens: Int32s, offsets: Ints, terms: int, workers: int) -> Postings:
    """Invert the stream `tokens`: document d has terms `tokens[offsets[f, d] : offsets[f, d + 1]]` in field f."""
    pieces = list(pairwise(balanced((offsets - offsets[:, :1]).sum(0), workers).tolist()))
    last = np.full((len(pieces), terms), -1, np.int32)
    counts = np.zeros((len(pieces), terms), np.int64)
    with ThreadPoolExecutor(len(pieces)) as pool:

        def each(work: Callable[..., Any], *more: Any) -> list[Any]:
            jobs = [
                pool.submit(work, tokens, offsets, *piece, last[p], *(m[p] for m in more))
                for p, piece in enumerate(pieces)
            ]
            return [job.result() for job in jobs]

        each(_count, counts)
        starts = bounds(counts.sum(0))
        cursors = starts[:-1] + np.cumsum(counts, 0) - counts
        docs, tf = np.empty(starts[-1], np.int32), np.zeros((starts[-1], len(offsets)), np.uint16)
        field_df, cf = (np.zeros((len(pieces), terms, len(offsets)), np.int32) for _ in range(2))
        last.fill(-1)
        each(_place, cursors, [docs] * len(pieces), [tf] * len(pieces), field_df, cf)
    return Postings(starts, docs, tf, field_df.sum(0, dtype=np.int32), cf.sum(0, dtype=np.int64))


@kernel
def _count(tokens: Int32s, offsets: Ints, first: int, end: int, last: Int32s, counts: Ints) -> None:
    """Count for each term the documents from `first` to `end` that have it; `last` is the last one seen."""
    for d in range(first, end):
        for f in range(len(offsets)):
            for i in range(offsets[f, d], offsets[f, d + 1]):
                term = tokens[i]
                if last[term] != d:
                    last[term] = d
                    counts[term] += 1


@kernel
def _place(
    tokens: Int32s,
    offsets: Ints,
    first: int,
    end: int,
    last: Int32s,
    cursor: Ints,
    docs: Int32s,
    tf: NDArray[np.uint16],
    field_df: Int32s,
    cf: Int32s,
) -> None:
    """Write the postings of these documents; `cursor` is where each term's next one goes."""
    for d in range(first, end):
        for f in range(len(offsets)):
            for i in range(offsets[f, d], offsets[f, d + 1]):
                term = tokens[i]
                if last[term] != d:
                    last[term] = d
                    docs[cursor[term]] = d
                    cursor[term] += 1
                at = cursor[term] - 1
                held = tf[at, f]
                field_df[term, f] += held == 0
                cf[term, f] += 1
                if held < MOST:
                    tf[at, f] = held + 1
