"""Term statistics from an index: for given documents of each query, how often each query term stands in each field.

The idf is Lucene's, ln(1 + (N - df + 0.5) / (df + 0.5)), with df counted over all fields together: never negative, and
largest for a term that no document has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Int32s, Ints, Matrix
from fliprank.data.csr import bounds
from fliprank.data.term_statistics import TermStatistics
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.text.search.queries import Queries

if TYPE_CHECKING:
    from fliprank.text.index import Index

__all__ = ["idf", "statistics"]


def idf(index: Index, queries: Queries) -> Floats:
    """The idf of each query term."""
    df = np.where(queries.number < 0, 0, index.starts[queries.number + 1] - index.starts[queries.number])
    return np.log1p((index.documents - df + 0.5) / (df + 0.5))


def statistics(index: Index, queries: Queries, offsets: Ints, documents: Ints) -> TermStatistics:
    """The statistics of documents (by number) `documents[offsets[q] : offsets[q + 1]]` for query q, in this order."""
    owner = np.repeat(np.arange(len(queries)), np.diff(offsets))
    starts = bounds(queries.sizes[owner])
    order = np.argsort(owner * max(index.documents, 1) + documents, kind="stable")
    tf = np.zeros((starts[-1], len(index.fields)), np.float32)
    _gather(queries.offsets, queries.number, offsets, documents, order, starts, index.starts, index.docs, index.tf, tf)
    known = queries.number >= 0
    collection = np.zeros((len(known), len(index.fields)))
    collection[known] = index.cf[queries.number[known]]
    return TermStatistics(
        index.fields,
        queries.offsets,
        queries.terms,
        idf(index, queries),
        starts,
        tf,
        index.length[documents].astype(np.float32),
        count=queries.count,
        collection=collection,
        tokens=index.field_tokens.astype(np.float64),
        documents=index.documents,
    )


@kernel
def advance(docs: Int32s, low: int, end: int, document: int) -> int:
    """The first posting from `low` on whose document is not before `document`: steps that double, then halves."""
    step = 1
    while low + step < end and docs[low + step] < document:
        low += step
        step *= 2
    high = min(low + step, end)
    while low < high:
        middle = (low + high) // 2
        if docs[middle] < document:
            low = middle + 1
        else:
            high = middle
    return low


@parallel_kernel
def _gather(
    term_offsets: Ints,
    number: Ints,
    row_offsets: Ints,
    documents: Ints,
    order: Ints,
    tf_starts: Ints,
    starts: Ints,
    docs: Int32s,
    tf: NDArray[np.uint16],
    out: Matrix,
) -> None:
    """Walk each term's postings beside the query's documents, both ascending (`order`), and copy what meets."""
    for q in prange(len(row_offsets) - 1):
        first = term_offsets[q]
        for t in range(first, term_offsets[q + 1]):
            if number[t] >= 0:
                at, end = starts[number[t]], starts[number[t] + 1]
                for i in range(row_offsets[q], row_offsets[q + 1]):
                    row = order[i]
                    at = advance(docs, at, end, documents[row])
                    if at == end:
                        break
                    if docs[at] == documents[row]:
                        for f in range(out.shape[1]):
                            out[tf_starts[row] + t - first, f] = tf[at, f]
