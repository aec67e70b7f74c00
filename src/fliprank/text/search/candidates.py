"""Candidates of queries: what a ranking function is tuned on.

For each query the top of a basic ranker (2500 documents in Taylor 2006), all judged documents, and, if wished, a random
sample of the documents that have all its terms. What can't be used (queries without judgements, judgements of documents
that the index does not have, queries with no terms) is counted and told; it is an error only when nothing is left.

>>> from fliprank.text.index import Index
>>> index = Index.build([{"_id": "a", "t": "red shoe"}, {"_id": "b", "t": "blue shoe"}, {"_id": "c", "t": "sky"}])
>>> found = pool(index, {"q": "red"}, {"q": {"c": 0, "a": 2, "zz": 1}})
>>> found.candidates.docids.tolist(), found.candidates.labels.tolist(), found.candidates.missed_labels.tolist()
(['a', 'c'], [2.0, 0.0], [1.0])
>>> found.notes
('1 of 3 judged documents are not in the index: zz',)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds, span_indices
from fliprank.data.files import StrPath
from fliprank.data.ids import Ids, match
from fliprank.data.trec import Qrels, read_qrels
from fliprank.errors import InputError, UsageError
from fliprank.text.search.queries import Queries, QueriesLike, analyse, read_queries
from fliprank.text.search.retrieve import Bm25, Scorer, matching, rows_of, top

if TYPE_CHECKING:
    from fliprank.text.index import Index

__all__ = ["Pool", "QrelsLike", "list_some", "pool"]

Ranker = Scorer | Bm25 | None
"""What finds candidates; None is BM25 over all fields taken as one text."""

QrelsLike = Qrels | Mapping[str, Mapping[str, float]] | StrPath
"""Judgements: as read, by query and document, or a file of them."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidates, notes on what was left out, and how many queries have no term that some document has."""

    candidates: Candidates
    notes: tuple[str, ...]
    lost: int = 0


def pool(
    index: Index,
    asked: QueriesLike,
    judged: QrelsLike | None = None,
    *,
    depth: int = 2500,
    sample: int = 0,
    seed: int = 0,
    ranker: Ranker | Sequence[Ranker] = None,
) -> Pool:
    """See `Index.pool`."""
    if sample < 0 or depth < 0:
        raise UsageError(f"depth and sample must not be negative: {depth}, {sample}")
    texts, notes = read_queries(asked), list[str]()
    qrels = None if judged is None else _qrels(judged)
    if qrels is not None:
        texts = _judged_queries(texts, qrels, notes)
    if not texts:
        raise InputError("no queries")
    queries = analyse(index, texts)
    lost = _note_lost_queries(queries, notes)
    owners, documents = [], []
    for each in (ranker if isinstance(ranker, Sequence) else [ranker]) if depth > 0 else ():
        offsets, found, _ = top(index, queries, each or Bm25(), depth)
        owners.append(np.repeat(np.arange(len(queries)), np.diff(offsets)))
        documents.append(found)
    judgements = None if qrels is None else _Judgements.of(index, queries, qrels, notes)
    if judgements is not None:
        owners.append(judgements.owner)
        documents.append(judgements.document)
    if sample > 0:
        owner, drawn = _sample(index, queries, sample, seed)
        owners.append(owner)
        documents.append(drawn)
    offsets, chosen = _united(owners, documents, len(queries), index.documents)
    labels = np.full(len(chosen), np.nan)
    if judgements is None:
        return Pool(rows_of(index, queries, offsets, chosen, labels), tuple(notes), lost)
    judgements.label_rows(offsets, chosen, index.documents, labels)
    rows = rows_of(index, queries, offsets, chosen, labels)
    missed = bounds(np.bincount(judgements.missed_owner, minlength=len(queries)))
    return Pool(replace(rows, missed_offsets=missed, missed_labels=judgements.missed), tuple(notes), lost)


def _qrels(judged: QrelsLike) -> Qrels:
    if isinstance(judged, Qrels):
        return judged
    return Qrels.of(judged) if isinstance(judged, Mapping) else read_qrels(Path(judged))


def list_some(of: int, what: str, names: Ids) -> str:
    """A note that lists the first few."""
    some = ", ".join(names[i] for i in range(min(3, len(names))))
    return f"{len(names):,} of {of:,} {what}: {some}" + (", ..." if len(names) > 3 else "")


def _note_lost_queries(queries: Queries, notes: list[str]) -> int:
    """Note the queries that find nothing, of stop words only or of words that no document has; count them."""
    owner = np.repeat(np.arange(len(queries)), queries.sizes)
    empty, found = queries.sizes == 0, np.bincount(owner[queries.number >= 0], minlength=len(queries)) > 0
    for lost, what in ((empty, "queries have no terms left"), (~empty & ~found, "queries have no term in the index")):
        if lost.any():
            notes.append(list_some(len(queries), what, queries.qids.take(np.flatnonzero(lost))))
    return int((~found).sum())


def _judged_queries(texts: Mapping[str, str], qrels: Qrels, notes: list[str]) -> dict[str, str]:
    """The queries that have judgements."""
    judged = dict.fromkeys(qrels.qids.take(np.flatnonzero(np.diff(qrels.offsets))).tolist())
    kept = {qid: text for qid, text in texts.items() if qid in judged}
    if not kept:
        have, want = ", ".join(list(texts)[:3]), ", ".join(list(judged)[:3])
        raise InputError("no query has judgements", hint=f"queries: {have or 'none'}; judged: {want or 'none'}")
    if len(kept) < len(texts):
        without = Ids.of([qid for qid in texts if qid not in kept])
        notes.append(list_some(len(texts), "queries have no judgements", without))
    if unknown := [qid for qid in judged if qid not in texts]:
        notes.append(list_some(len(judged), "judged queries are not among the queries", Ids.of(unknown)))
    return kept


@dataclass(frozen=True, eq=False)
class _Judgements:
    """QrelsLike documents of the index by query and number, and the labels of those that can't be rows."""

    owner: Ints
    document: Ints
    label: Floats
    missed_owner: Ints
    missed: Floats

    @classmethod
    def of(cls, index: Index, queries: Queries, qrels: Qrels, notes: list[str]) -> _Judgements:
        partner = match(
            queries.qids, np.array([0, len(queries)]), qrels.qids, np.array([0, len(qrels.qids)]), np.zeros(1, np.int64)
        )
        rows = span_indices(qrels.offsets, partner)
        owner = np.repeat(np.arange(len(queries)), np.diff(qrels.offsets)[partner])
        ids, label = qrels.docids.take(rows), qrels.labels[rows]
        document = index.numbers_of(ids)
        if (unknown := document < 0).any():
            absent = ids.take(np.flatnonzero(unknown))
            notes.append(list_some(len(ids), "judged documents are not in the index", absent))
            if unknown.all():
                raise InputError(
                    "no judged document is in the index", hint=f"judged: {absent[0]}; indexed: {index.docids[0]}"
                )
        used = ~unknown & (queries.sizes[owner] > 0)
        return cls(owner[used], document[used], label[used], owner[~used], label[~used])

    def label_rows(self, offsets: Ints, chosen: Ints, documents: int, labels: Floats) -> None:
        """Write the label of each judged row."""
        key = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)) * documents + chosen
        order = np.argsort(key)
        at = np.searchsorted(key, self.owner * documents + self.document, sorter=order)
        labels[order[at]] = self.label


def _sample(index: Index, queries: Queries, sample: int, seed: int) -> tuple[Ints, Ints]:
    """Up to `sample` documents of each query that have all its terms, at random."""
    offsets, documents = matching(index, queries, "and")
    owner = np.repeat(np.arange(len(queries)), np.diff(offsets))
    order = np.lexsort((np.random.default_rng(seed).random(len(owner)), owner))
    kept = np.sort(order[np.arange(len(owner)) - offsets[owner] < sample])
    return owner[kept], documents[kept]


def _united(owners: list[Ints], documents: list[Ints], queries: int, size: int) -> tuple[Ints, Ints]:
    """Each query's documents in the order given, each once: (offsets, documents)."""
    owner = np.concatenate([np.empty(0, np.int64), *owners])
    document = np.concatenate([np.empty(0, np.int64), *documents])
    _, first = np.unique(owner * size + document, return_index=True)
    first = np.sort(first)
    first = first[np.argsort(owner[first], kind="stable")]
    return bounds(np.bincount(owner[first], minlength=queries)), document[first]
