"""Candidates of queries: the rows on which a ranking function is tuned.

For each query: the top of a basic ranker (2500 documents in Taylor 2006), all judged documents and, if wanted, a random
sample of the documents that have all its terms. What can't be used (queries without judgements, judgements of documents
that the index does not have, queries without terms) is counted and noted; it is an error only when nothing is left.

>>> from fliprank.text.index import Index
>>> index = Index.build([{"_id": "a", "t": "red shoe"}, {"_id": "b", "t": "blue shoe"}, {"_id": "c", "t": "sky"}])
>>> found = pool(index, {"q": "red"}, {"q": {"c": 0, "a": 2, "zz": 1}})
>>> found.candidates.docids.tolist(), found.candidates.labels.tolist(), found.candidates.missed_labels.tolist()
(['a', 'c'], [2.0, 0.0], [1.0])
>>> found.notes, found.left_out.keys() == {LeftOut.UNKNOWN_DOCUMENTS}
(('1 of 3 judged documents are not in the index: zz',), True)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds, positions, span_indices
from fliprank.data.files import StrPath
from fliprank.data.fusion_rows import RunLike
from fliprank.data.ids import Ids, locate
from fliprank.data.trec import Qrels, read_qrels
from fliprank.errors import InputError, UsageError
from fliprank.models.hybrid import Hybrid
from fliprank.text.index_arrays import IndexArrays
from fliprank.text.search.collection import Collection, collection_of
from fliprank.text.search.queries import Queries, QueriesLike, read_queries
from fliprank.text.search.retrieve import Scorer
from fliprank.text.search.run_documents import RunDocuments

__all__ = ["LeftOut", "Pool", "QrelsLike", "find_candidates", "list_some", "pool", "under_ids_of"]

QrelsLike = Qrels | Mapping[str, Mapping[str, float]] | StrPath
"""Judgements: as read, as labels by query and document, or a file."""


class LeftOut(Enum):
    """What of the input could not be used."""

    UNJUDGED_QUERIES = "queries have no judgements"
    UNKNOWN_QUERIES = "judged queries are not among the queries"
    EMPTY_QUERIES = "queries have no terms left"
    UNMATCHED_QUERIES = "queries have no term in the index"
    UNKNOWN_DOCUMENTS = "judged documents are not in the index"


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidates, a note on each kind of input that was left out, and how many queries no document can match."""

    candidates: Candidates
    left_out: dict[LeftOut, str] = field(default_factory=dict)
    unmatched: int = 0
    run_notes: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """All notes."""
        return (*self.left_out.values(), *self.run_notes)


def find_candidates(
    index: IndexArrays | Collection, queries: QueriesLike, qrels: QrelsLike | None = None, **options: Any
) -> Candidates:
    """See `Index.candidates`."""
    found = pool(index, queries, qrels, **options)
    found.candidates.memo["notes"] = found.notes
    return found.candidates


def pool(
    index: IndexArrays | Collection,
    queries: QueriesLike,
    qrels: QrelsLike | None = None,
    *,
    depth: int = 2500,
    sample: int = 0,
    seed: int = 0,
    ranker: Scorer | Sequence[Scorer | None] | None = None,
    runs: Mapping[str, RunLike] | Sequence[RunLike] | None = None,
) -> Pool:
    """See `Index.pool`."""
    if sample < 0 or depth < 0:
        raise UsageError(f"depth and sample must not be negative: {depth}, {sample}")
    texts, left_out = read_queries(queries), dict[LeftOut, str]()
    judged = None if qrels is None else under_ids_of(texts, _qrels(qrels))
    if judged is not None:
        texts = _judged_queries(texts, judged, left_out)
    if not texts:
        raise InputError("no queries")
    source = collection_of(index)
    asked = source.analysed(texts)
    unmatched = _note_unmatched(asked, left_out)
    owners, documents = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for each in (ranker if isinstance(ranker, Sequence) else [ranker]) if depth > 0 else ():
        offsets, found = source.top(asked, each.text if isinstance(each, Hybrid) else each, depth)
        owners.append(_owners(offsets))
        documents.append(found)
    listed = None if runs is None else RunDocuments.of(source, asked.qids, runs, depth or None)
    if listed is not None:
        owners.append(listed.owner)
        documents.append(listed.document)
    labelled = None if judged is None else _Labelled.of(source, asked, judged, left_out, listed is not None)
    if labelled is not None:
        owners.append(labelled.owner)
        documents.append(labelled.document)
    if sample > 0:
        owner, sampled = _sample(source, asked, sample, seed)
        owners.append(owner)
        documents.append(sampled)
    offsets, chosen = _united(np.concatenate(owners), np.concatenate(documents), len(asked), source.documents)
    labels = None if labelled is None else labelled.labels_of(offsets, chosen, source.documents)
    rows = source.rows_of(asked, offsets, chosen, labels)
    if labelled is not None:
        missed = bounds(np.bincount(labelled.missed_owner, minlength=len(asked)))
        rows = replace(rows, missed_offsets=missed, missed_labels=labelled.missed)
    if listed is None:
        return Pool(rows, left_out, unmatched)
    return Pool(listed.beside(rows, chosen, source.documents), left_out, unmatched, listed.notes)


def _owners(offsets: Ints) -> Ints:
    """The query of each row."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _qrels(qrels: QrelsLike) -> Qrels:
    if isinstance(qrels, Qrels):
        return qrels
    return Qrels.of(qrels) if isinstance(qrels, Mapping) else read_qrels(Path(qrels))


def under_ids_of(texts: Mapping[str, str], qrels: Qrels) -> Qrels:
    """The judgements under the ids that `texts` has for their queries, where these come with texts of their own.

    >>> judged = replace(Qrels.of({"red_shoes": {"d": 1}}), texts={"red_shoes": "red shoes"})
    >>> under_ids_of({"q1": "red  shoes"}, judged).to_dict()
    {'q1': {'d': 1.0}}
    """
    by_text = {" ".join(text.split()): qid for qid, text in texts.items()}
    old = qrels.qids.tolist() if qrels.texts else []
    new = [qid if qid in texts else by_text.get(qrels.texts.get(qid, ""), qid) for qid in old]
    if new == old or len(set(new)) < len(new):
        return qrels
    own = {name: qrels.texts[qid] for name, qid in zip(new, old, strict=True) if qid in qrels.texts}
    return replace(qrels, qids=Ids.of(new), texts=own)


def list_some(total: int, what: str, names: Ids) -> str:
    """A note that counts the names and lists the first three.

    >>> list_some(9, "queries are empty", Ids.of(["q1", "q2", "q3", "q4"]))
    '4 of 9 queries are empty: q1, q2, q3, ...'
    """
    some = ", ".join(names[i] for i in range(min(3, len(names))))
    return f"{len(names):,} of {total:,} {what}: {some}" + (", ..." if len(names) > 3 else "")


def _note(left_out: dict[LeftOut, str], kind: LeftOut, total: int, names: Ids) -> None:
    if len(names):
        left_out[kind] = list_some(total, kind.value, names)


def _note_unmatched(queries: Queries, left_out: dict[LeftOut, str]) -> int:
    """Note and count the queries that find nothing: all words are stop words, or no document has any of them."""
    empty, unmatched = queries.sizes == 0, queries.postings == 0
    for kind, which in ((LeftOut.EMPTY_QUERIES, empty), (LeftOut.UNMATCHED_QUERIES, unmatched & ~empty)):
        _note(left_out, kind, len(queries), queries.qids.take(np.flatnonzero(which)))
    return int(unmatched.sum())


def _judged_queries(texts: Mapping[str, str], qrels: Qrels, left_out: dict[LeftOut, str]) -> dict[str, str]:
    """The queries that have judgements; raises if none has."""
    judged = dict.fromkeys(qrels.qids.take(np.flatnonzero(np.diff(qrels.offsets))).tolist())
    kept = {qid: text for qid, text in texts.items() if qid in judged}
    if not kept:
        have, want = ", ".join(list(texts)[:3]), ", ".join(list(judged)[:3])
        raise InputError("no query has judgements", hint=f"queries: {have or 'none'}; judged: {want or 'none'}")
    _note(left_out, LeftOut.UNJUDGED_QUERIES, len(texts), Ids.of([qid for qid in texts if qid not in kept]))
    _note(left_out, LeftOut.UNKNOWN_QUERIES, len(judged), Ids.of([qid for qid in judged if qid not in texts]))
    return kept


@dataclass(frozen=True, eq=False)
class _Labelled:
    """Judged documents of the index by query and number, and the labels of those that can't be rows."""

    owner: Ints
    document: Ints
    label: Floats
    missed_owner: Ints
    missed: Floats

    @classmethod
    def of(
        cls, index: Collection, queries: Queries, qrels: Qrels, left_out: dict[LeftOut, str], without_terms: bool
    ) -> _Labelled:
        """`without_terms`: whether a query that has no terms can have rows, too."""
        partner = locate(queries.qids, qrels.qids)
        rows = span_indices(qrels.offsets, partner)
        owner = np.repeat(np.arange(len(queries)), np.diff(qrels.offsets)[partner])
        ids, label = qrels.docids.take(rows), qrels.labels[rows]
        document = index.numbers_of(ids)
        absent = ids.take(np.flatnonzero(document < 0))
        if len(absent) == len(ids):
            hint = f"judged: {absent[0]}; indexed: {index.ids_of(np.zeros(1, np.int64))[0]}"
            raise InputError("no judged document is in the index", hint=hint)
        _note(left_out, LeftOut.UNKNOWN_DOCUMENTS, len(ids), absent)
        used = (document >= 0) & ((queries.sizes[owner] > 0) | without_terms)
        return cls(owner[used], document[used], label[used], owner[~used], label[~used])

    def labels_of(self, offsets: Ints, chosen: Ints, documents: int) -> Floats:
        """The label of each row; NaN if it is not judged."""
        labels = np.full(len(chosen), np.nan)
        key = _owners(offsets) * documents + chosen
        order = np.argsort(key)
        at = np.searchsorted(key, self.owner * documents + self.document, sorter=order)
        labels[order[at]] = self.label
        return labels


def _sample(index: Collection, queries: Queries, sample: int, seed: int) -> tuple[Ints, Ints]:
    """For each query, up to `sample` random documents that have all its terms: (queries, documents)."""
    offsets, documents = index.matching(queries)
    owner = _owners(offsets)
    order = np.lexsort((np.random.default_rng(seed).random(len(owner)), owner))
    kept = np.sort(order[positions(offsets) < sample])
    return owner[kept], documents[kept]


def _united(owner: Ints, document: Ints, queries: int, size: int) -> tuple[Ints, Ints]:
    """The documents of each query in the order given, without repetition: (offsets, documents)."""
    _, first = np.unique(owner * size + document, return_index=True)
    first = np.sort(first)
    first = first[np.argsort(owner[first], kind="stable")]
    return bounds(np.bincount(owner[first], minlength=queries)), document[first]
