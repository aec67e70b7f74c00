"""The matrix of features: threads fill it, some rows at a time; nothing of its size is held beside it.

A row looks its frequencies up in the postings and the places of its terms in the stream of terms, and then works out
every kind for every field (`feature_terms.py`, `feature_positions.py`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import log, log1p
from typing import TYPE_CHECKING, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Int32s, Ints, Matrix, frozen
from fliprank.kernels import kernel
from fliprank.text.features.kinds import TERM_KINDS
from fliprank.text.features.positions import find_hits, position_kinds
from fliprank.text.features.terms import term_kinds
from fliprank.text.search.gather_statistics import advance

if TYPE_CHECKING:
    from fliprank.text.index import Index

__all__ = ["Words", "fill_matrix"]

SPAN = 1024
"""Rows that a thread takes at a time."""
OF_CONTENT = ("lm.absolute", "cosine")
"""Kinds that look at all terms of a document: the postings are read once for them."""


class Words(NamedTuple):
    """Queries as kernels read them: terms as in `Queries`, idf and share p (fields x terms), words in order."""

    offsets: Ints
    number: Ints
    times: Floats
    idf: Floats
    background: Floats
    word_offsets: Ints
    sequence: Ints


class Source(NamedTuple):
    """What kernels read of an index (see `Index`); `average` is the mean length of each field and of all joined."""

    starts: Ints
    docs: Int32s
    tf: NDArray[np.uint16]
    field_df: Int32s
    length: Int32s
    tokens: Int32s
    token_offsets: Ints
    average: Floats


class Rows(NamedTuple):
    """The query and the document of each row, and where the document's contents are."""

    query: Ints
    document: Ints
    slot: Int32s


def fill_matrix(index: Index, words: Words, query: Ints, documents: Ints, columns: Ints, out: Matrix) -> None:
    """Write kind k of field s to `out[:, columns[s, k]]`, -1 for those that are not wanted, for rows of these pairs."""
    wanted = columns.max(axis=0) >= 0
    ordered = index.positions and bool(wanted[len(TERM_KINDS) :].any())
    tokens = np.append(index.field_tokens, index.field_tokens.sum())
    source = Source(
        frozen(index.starts, np.int64),
        frozen(index.docs, np.int32),
        frozen(index.tf, np.uint16),
        frozen(index.field_df, np.int32),
        frozen(index.length, np.int32),
        frozen(index.tokens, np.int32),
        frozen(index.token_offsets, np.int64),
        frozen(tokens / max(index.documents, 1), np.float64),
    )
    distinct, slot = np.unique(documents), np.full(index.documents, -1, np.int32)
    slot[distinct] = np.arange(len(distinct))
    rows = Rows(query, documents, slot[documents])
    content = np.zeros((len(distinct), len(columns), 3))
    fields, room = len(index.fields), int(np.diff(words.word_offsets).max(initial=1))
    longest = int(index.length[distinct].sum(1, dtype=np.int64).max(initial=1)) if ordered else 0

    def some_rows(begin: int) -> None:
        tf, x, v = np.zeros((fields + 1, room)), np.zeros((7, room)), np.zeros(columns.shape[1])
        places, marks = np.empty((2, longest), np.int32), np.zeros((2, room), np.int64)
        bases, hits = np.zeros((2, fields + 1), np.int64)
        _fill(
            words, source, rows, content, columns, tf, x, v, places[0], places[1], marks, bases, hits, begin, out
        )  # fmt: skip

    def some_contents(low: int, high: int) -> None:
        _contents(source, slot, low, high, np.zeros(fields + 1), content)

    workers = numba.get_num_threads()
    with ThreadPoolExecutor(workers) as pool:
        if any(wanted[k] for k, kind in enumerate(TERM_KINDS) if kind.name.startswith(OF_CONTENT)):
            cuts = np.linspace(0, len(distinct), workers + 1).astype(int).tolist()
            list(pool.map(some_contents, cuts[:-1], cuts[1:]))
        list(pool.map(some_rows, range(0, len(out), SPAN)))


@kernel
def _contents(source: Source, slot: Int32s, low: int, high: int, idf: Floats, out: Floats) -> None:
    """Of each field of documents with slots low:high: different terms, squared norms of tf idf and (1 + ln tf) idf."""
    fields, documents = source.tf.shape[1], len(slot)
    for t in range(len(source.starts) - 1):
        first, end, ready = source.starts[t], source.starts[t + 1], False
        for p in range(first, end):
            own = slot[source.docs[p]]
            if low <= own < high:
                if not ready:
                    for s in range(fields + 1):
                        df = np.float64(source.field_df[t, s]) if s < fields else np.float64(end - first)
                        idf[s] = log1p((documents - df + 0.5) / (df + 0.5))
                    ready = True
                joined = np.int64(0)
                for s in range(fields + 1):
                    tf = np.int64(source.tf[p, s]) if s < fields else joined
                    joined += tf
                    if tf > 0:
                        out[own, s, 0] += 1.0
                        out[own, s, 1] += (tf * idf[s]) ** 2
                        out[own, s, 2] += ((1.0 + log(tf) if tf > 1 else 1.0) * idf[s]) ** 2


@kernel
def _fill(
    words: Words, source: Source, rows: Rows, content: Floats, columns: Ints, tf: Floats, x: Floats, v: Floats,
    place: Int32s, term: Int32s, marks: Ints, bases: Ints, hits: Ints, begin: int, out: Matrix,
) -> None:  # fmt: skip
    """The features of SPAN rows from `begin` on, with room to work in; without `place`, none of order."""
    fields, ordered = source.tf.shape[1], len(place) > 0
    for r in range(begin, min(begin + SPAN, len(out))):
        query, document = rows.query[r], rows.document[r]
        low, high = words.offsets[query], words.offsets[query + 1]
        number, count, terms = words.number[low:high], words.times[low:high], high - low
        sequence = words.sequence[words.word_offsets[query] : words.word_offsets[query + 1]]
        _frequencies(source, number, document, tf)
        for f in range(fields):
            bases[f + 1] = bases[f] + source.length[document, f]
        if ordered:
            _hits(source, number, document, tf, bases, place, term, hits)
        for s in range(fields + 1):
            joined = s == fields
            base, stop = (0, bases[fields]) if joined else (bases[s], bases[s + 1])
            idf, background = words.idf[s, low:high], words.background[s, low:high]
            length, kinds = np.float64(stop - base), content[rows.slot[r], s]
            at = term_kinds(tf[s], terms, length, source.average[s], kinds, idf, background, count, x, v)
            if ordered:
                first, last = (0, hits[fields]) if joined else (hits[s], hits[s + 1])
                position_kinds(place[first:last], term[first:last], base, length, terms, sequence, marks, v, at)
            for k in range(columns.shape[1]):
                if columns[s, k] >= 0:
                    out[r, columns[s, k]] = v[k]


@kernel
def _hits(
    source: Source, number: Ints, document: int, tf: Floats, bases: Ints, place: Int32s, term: Int32s, hits: Ints
) -> None:
    """Where query terms stand, words counted from the first field on; field f has the hits hits[f]:hits[f + 1]."""
    table = _table(number)
    for f in range(len(hits) - 1):
        hits[f + 1] = hits[f]
        there = 0.0
        for t in range(len(number)):
            there += tf[f, t]
        if there > 0:
            first, end = source.token_offsets[f, document], source.token_offsets[f, document + 1]
            hits[f + 1] = find_hits(source.tokens[first:end], number, table, bases[f], place, term, hits[f])


@kernel
def _frequencies(source: Source, number: Ints, document: int, tf: Floats) -> None:
    """How often each query term stands in each field of the document, and in all of them (the last line)."""
    fields = source.tf.shape[1]
    for t in range(len(number)):
        for f in range(fields + 1):
            tf[f, t] = 0.0
        if number[t] >= 0:
            end = source.starts[number[t] + 1]
            at = advance(source.docs, source.starts[number[t]], end, document)
            if at < end and source.docs[at] == document:
                for f in range(fields):
                    tf[f, t] = source.tf[at, f]
                    tf[fields, t] += source.tf[at, f]


@kernel
def _table(number: Ints) -> Int32s:
    """Terms by a hash of their number, for `find_hits`; at least three slots of four are free."""
    size = 16
    while size < 4 * len(number):
        size *= 2
    table = np.zeros(size, np.int32)
    for t in range(len(number)):
        if number[t] >= 0:
            slot = number[t] & (size - 1)
            while table[slot] != 0:
                slot = (slot + 1) & (size - 1)
            table[slot] = t + 1
    return table
