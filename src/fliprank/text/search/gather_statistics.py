"""Term statistics from an index: for given documents of each query, how often each query term occurs in each field."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fliprank.arrays import Int32s, Ints, Matrix
from fliprank.data.csr import bounds
from fliprank.data.term_statistics import TermStatistics
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.text.index_arrays import IndexArrays, Postings
from fliprank.text.search.queries import Queries, Whole

__all__ = ["advance", "statistics", "whole_of"]


class Rows(NamedTuple):
    """Query q owns rows `offsets[q]:offsets[q + 1]` and terms `term_offsets[q]:term_offsets[q + 1]`.

    `order` are the rows of each query by ascending document; row r has its frequencies from line `tf_starts[r]` on.
    """

    offsets: Ints
    documents: Ints
    order: Ints
    tf_starts: Ints
    term_offsets: Ints
    number: Ints


def statistics(index: IndexArrays, queries: Queries, offsets: Ints, documents: Ints) -> TermStatistics:
    """The statistics of the documents `documents[offsets[q] : offsets[q + 1]]` (by number) of each query q."""
    owner = np.repeat(np.arange(len(queries)), np.diff(offsets))
    starts = bounds(queries.sizes[owner])
    order = np.argsort(owner * max(index.documents, 1) + documents, kind="stable")
    tf = np.zeros((starts[-1], len(index.fields)), np.float32)
    _gather(Rows(offsets, documents, order, starts, queries.offsets, queries.number), index.postings, tf)
    whole = whole_of(index, queries) if queries.whole is None else queries.whole
    return TermStatistics(
        index.fields,
        queries.offsets,
        queries.terms,
        queries.idf,
        starts,
        tf,
        index.length[documents].astype(np.float32),
        count=queries.count,
        collection=whole.collection.astype(np.float64),
        tokens=whole.tokens.astype(np.float64),
        documents=whole.documents,
        df=queries.df.astype(np.float64),
        field_df=whole.field_df.astype(np.float64),
        field_documents=whole.field_documents.astype(np.float64),
        distinct=index.distinct[documents].astype(np.float32),
        distinct_tokens=whole.distinct_tokens,
    )


def whole_of(index: IndexArrays, queries: Queries) -> Whole:
    """What is known of the documents of an index, and of the terms of queries in them."""
    known = queries.number >= 0
    collection, field_df = np.zeros((2, len(known), len(index.fields)), np.int64)
    collection[known], field_df[known] = index.cf[queries.number[known]], index.field_df[queries.number[known]]
    fields = index.field_tokens, index.field_documents, index.distinct.sum(axis=0, dtype=np.float64)
    return Whole(index.documents, *fields, collection, field_df)


@kernel
def advance(docs: Int32s, low: int, end: int, document: int) -> int:
    """The first posting from `low` on whose document is not before `document`: by doubling steps, then by bisection."""
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
def _gather(rows: Rows, postings: Postings, out: Matrix) -> None:
    """Walk the postings of each term and the documents of its query together, both ascending, and copy frequencies."""
    starts, docs, tf = postings
    for q in prange(len(rows.offsets) - 1):
        first = rows.term_offsets[q]
        for t in range(first, rows.term_offsets[q + 1]):
            if rows.number[t] >= 0:
                at, end = starts[rows.number[t]], starts[rows.number[t] + 1]
                for i in range(rows.offsets[q], rows.offsets[q + 1]):
                    row = rows.order[i]
                    at = advance(docs, at, end, rows.documents[row])
                    if at == end:
                        break
                    if docs[at] == rows.documents[row]:
                        for f in range(out.shape[1]):
                            out[rows.tf_starts[row] + t - first, f] = tf[at, f]
