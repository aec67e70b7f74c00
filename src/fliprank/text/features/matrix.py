"""The matrix of features: threads fill it, some rows at a time; nothing else of its size is kept.

For each row, frequencies are looked up in the postings and the places of query terms in the stream of terms; then every
kind is computed for every field (`terms.py`, `positions.py`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import log
from typing import NamedTuple

import numba
import numpy as np

from fliprank.arrays import Floats, Int32s, Ints, Matrix, frozen
from fliprank.kernels import kernel
from fliprank.text.features.kinds import TERM_KINDS
from fliprank.text.features.positions import Hits, find_hits, position_kinds, term_table
from fliprank.text.features.terms import SUMMARISED, FieldTerms, term_kinds
from fliprank.text.index_arrays import IndexArrays, Postings
from fliprank.text.search.gather_statistics import advance
from fliprank.text.search.queries import idf_of

__all__ = ["Words", "fill_matrix"]

SPAN = 1024
"""Rows that a thread takes at a time."""
OF_CONTENT = ("lm.absolute", "cosine")
"""Kinds that look at all terms of a document: the postings are read once for them."""

_idf = kernel(idf_of)


class Words(NamedTuple):
    """Queries as kernels read them (see `Queries`); `idf` and `background`, p, are fields x terms."""

    offsets: Ints
    number: Ints
    word_offsets: Ints
    sequence: Ints
    times: Floats
    idf: Floats
    background: Floats


class Fields(NamedTuple):
    """What kernels read of an index (see `IndexArrays`); `average` is the mean length per field, and of all joined."""

    postings: Postings
    field_df: Int32s
    length: Int32s
    tokens: Int32s
    token_offsets: Ints
    average: Floats


class Rows(NamedTuple):
    """The query and the document of each row, and the document's place in `content`; kind k of field s goes to column
    `columns[s, k]`, or nowhere if that is -1.
    """

    query: Ints
    document: Ints
    slot: Int32s
    content: Floats
    columns: Ints


class Room(NamedTuple):
    """Room to work in: frequencies (fields x terms); x, v, marks as kernels need them; where fields and hits begin."""

    tf: Floats
    x: Floats
    v: Floats
    place: Int32s
    term: Int32s
    marks: Ints
    bases: Ints
    hits: Ints


def fill_matrix(index: IndexArrays, words: Words, query: Ints, documents: Ints, columns: Ints, out: Matrix) -> None:
    """Write the features of each pair of query and document; `columns` as in `Rows`."""
    wanted = columns.max(axis=0) >= 0
    ordered = index.positions and bool(wanted[len(TERM_KINDS) :].any())
    tokens = np.append(index.field_tokens, index.field_tokens.sum())
    average = frozen(tokens / max(index.documents, 1), np.float64)
    source = Fields(index.postings, index.field_df, index.length, index.tokens, index.token_offsets, average)
    distinct, slot = np.unique(documents), np.full(index.documents, -1, np.int32)
    slot[distinct] = np.arange(len(distinct))
    rows = Rows(query, documents, slot[documents], np.zeros((len(distinct), len(columns), 3)), columns)
    fields, size = len(index.fields), int(np.diff(words.word_offsets).max(initial=1))
    longest = int(index.length[distinct].sum(1, dtype=np.int64).max(initial=1)) if ordered else 0

    def some_rows(begin: int) -> None:
        numbers = np.zeros((fields + 1, size)), np.zeros((SUMMARISED, size)), np.zeros(columns.shape[1])
        places, marks = np.empty((2, longest), np.int32), np.zeros((2, size), np.int64)
        bases, hits = np.zeros((2, fields + 1), np.int64)
        _fill(words, source, rows, Room(*numbers, places[0], places[1], marks, bases, hits), begin, out)

    def some_contents(low: int, high: int) -> None:
        _contents(source, slot, low, high, np.zeros(fields + 1), rows.content)

    workers = numba.get_num_threads()
    with ThreadPoolExecutor(workers) as pool:
        if any(wanted[k] for k, kind in enumerate(TERM_KINDS) if kind.name.startswith(OF_CONTENT)):
            cuts = np.linspace(0, len(distinct), workers + 1).astype(int).tolist()
            list(pool.map(some_contents, cuts[:-1], cuts[1:]))
        list(pool.map(some_rows, range(0, len(out), SPAN)))


@kernel
def _contents(source: Fields, slot: Int32s, low: int, high: int, idf: Floats, out: Floats) -> None:
    """For each field of documents with slots low:high: distinct terms, squared norms of tf idf and (1 + ln tf) idf."""
    (starts, docs, tf), documents = source.postings, len(slot)
    fields = tf.shape[1]
    for t in range(len(starts) - 1):
        first, end, ready = starts[t], starts[t + 1], False
        for p in range(first, end):
            own = slot[docs[p]]
            if low <= own < high:
                if not ready:
                    for s in range(fields + 1):
                        idf[s] = _idf(np.float64(source.field_df[t, s] if s < fields else end - first), documents)
                    ready = True
                joined = np.int64(0)
                for s in range(fields + 1):
                    count = np.int64(tf[p, s]) if s < fields else joined
                    joined += count
                    if count > 0:
                        out[own, s, 0] += 1.0
                        out[own, s, 1] += (count * idf[s]) ** 2
                        out[own, s, 2] += ((1.0 + log(count) if count > 1 else 1.0) * idf[s]) ** 2


@kernel
def _fill(words: Words, source: Fields, rows: Rows, room: Room, begin: int, out: Matrix) -> None:
    """The features of SPAN rows from `begin` on; without room for places, no features of term order."""
    tf, _, v, place, term, marks, bases, ends = room
    fields, columns = len(bases) - 1, rows.columns
    for r in range(begin, min(begin + SPAN, len(out))):
        query, document = rows.query[r], rows.document[r]
        low, high = words.offsets[query], words.offsets[query + 1]
        number, times = words.number[low:high], words.times[low:high]
        sequence = words.sequence[words.word_offsets[query] : words.word_offsets[query + 1]]
        _frequencies(source.postings, number, document, tf)
        for f in range(fields):
            bases[f + 1] = bases[f] + source.length[document, f]
        if len(place) > 0:
            _hits(source, number, document, room)
        for s in range(fields + 1):
            joined = s == fields
            base, stop = (0, bases[fields]) if joined else (bases[s], bases[s + 1])
            idf, background = words.idf[s, low:high], words.background[s, low:high]
            length, content = np.float64(stop - base), rows.content[rows.slot[r], s]
            at = term_kinds(FieldTerms(tf[s], idf, background, times, length, source.average[s], content), room.x, v)
            if len(place) > 0:
                first, last = (0, ends[fields]) if joined else (ends[s], ends[s + 1])
                own = place[first:last], term[first:last]
                position_kinds(Hits(own[0], own[1], base, length, high - low, sequence, marks), v, at)
            for k in range(columns.shape[1]):
                if columns[s, k] >= 0:
                    out[r, columns[s, k]] = v[k]


@kernel
def _hits(source: Fields, number: Ints, document: int, room: Room) -> None:
    """Find where query terms occur, words counted from the first field on; field f has hits[f]:hits[f + 1]."""
    table, tf, hits = term_table(number), room.tf, room.hits
    for f in range(len(hits) - 1):
        hits[f + 1] = hits[f]
        there = 0.0
        for t in range(len(number)):
            there += tf[f, t]
        if there > 0:
            tokens = source.tokens[source.token_offsets[f, document] : source.token_offsets[f, document + 1]]
            hits[f + 1] = find_hits(tokens, table, room.bases[f], room.place, room.term, hits[f])


@kernel
def _frequencies(postings: Postings, number: Ints, document: int, out: Floats) -> None:
    """How often each query term occurs in each field of the document, and in all of them (the last row)."""
    starts, docs, tf = postings
    fields = tf.shape[1]
    for t in range(len(number)):
        for f in range(fields + 1):
            out[f, t] = 0.0
        if number[t] >= 0:
            end = starts[number[t] + 1]
            at = advance(docs, starts[number[t]], end, document)
            if at < end and docs[at] == document:
                for f in range(fields):
                    out[f, t] = tf[at, f]
                    out[fields, t] += tf[at, f]
