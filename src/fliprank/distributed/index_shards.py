"""An index in shards on workers: documents that no machine holds, searched and tuned on as if they were in one index.

Each shard tells how many documents it has, how long their fields are, and how often the terms of the queries stand in
them; the sums are the statistics of the whole, by which every shard scores. So a score is, to the last bit, the one
that a single index would give, and the best of all shards, put in order, are the best of all documents. Only candidates
come back: some thousand documents per query, with their term statistics.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds, positions
from fliprank.data.fusion_rows import RunLike
from fliprank.data.ids import Ids
from fliprank.data.order import order_rows
from fliprank.data.term_statistics import TermStatistics
from fliprank.data.trec import Run
from fliprank.distributed.cluster import Cluster
from fliprank.distributed.messages import bases_in, pack
from fliprank.errors import InputError, UsageError, printable
from fliprank.models.base import Model
from fliprank.models.bm25 import BM25
from fliprank.models.hybrid import Hybrid
from fliprank.text.analysis import Analyzer
from fliprank.text.index_arrays import Progress
from fliprank.text.search.candidates import Pool, QrelsLike, find_candidates, pool
from fliprank.text.search.collection import Collection
from fliprank.text.search.hybrid import search_hybrid
from fliprank.text.search.queries import Queries, QueriesLike, Whole, idf_of, read_queries
from fliprank.text.search.retrieve import Scorer, numbers_of_rows

__all__ = ["IndexShards"]

MOST_HASHES = 1 << 24
"""Ids whose hashes are compared at a time, to see that no document is in two shards."""

MOST_NAMED = 1000
"""Hashes that occur twice whose ids are compared: by chance, not even one of 10^9 ids has the hash of another."""


class IndexShards(Collection):
    """Indexes on the workers of a `Cluster`, each of a part of the documents; see `fr.on(client).index`."""

    def __init__(self, cluster: Cluster, sources: Sequence[Mapping[str, Any]], check: bool = True) -> None:
        if not sources:
            raise InputError("there are no shards of documents")
        self.cluster, self.sources = cluster, list(sources)
        self.names = [f"index-{uuid4().hex}" for _ in sources]
        self._shard_of = {name: s for s, name in enumerate(self.names)}
        self.numbers = cluster.new_shards(self.names)
        weakref.finalize(self, cluster.drop_shards, self.numbers).atexit = False
        told = self._ask("describe")
        for own, source in zip(told, sources, strict=True):
            for what in ("fields", "columns", "analyzer"):
                if own[what] != told[0][what]:
                    hint = (
                        f"the first shard has {told[0][what]}, this one {own[what]}; name the fields to have the same"
                    )
                    raise InputError(f"shards with different {what}", path=source["file"], hint=hint)
        self.sizes = np.array([own["documents"] for own in told], np.int64)
        self.base, self.documents = bounds(self.sizes), int(self.sizes.sum())
        self.fields: tuple[str, ...] = tuple(told[0]["fields"])
        self.columns: tuple[str, ...] = tuple(told[0]["columns"])
        self.analyzer = Analyzer.from_json(told[0]["analyzer"])
        self.notes = tuple(dict.fromkeys(note for own in told for note in own["notes"]))
        if check:
            self._check_apart()

    def __len__(self) -> int:
        return self.documents

    def __repr__(self) -> str:
        size = f"{self.documents:,} documents in {len(self.names)} shards"
        return printable(f"IndexShards: {size}, fields {', '.join(self.fields)}")

    def _ask(self, question: str, *given: Any, own: Sequence[Sequence[Any]] | None = None) -> list[Any]:
        bases = bases_in(given)
        place = {number: s for s, number in enumerate(self.numbers)}

        def request(numbers: list[int]) -> dict[str, Any]:
            shards = [{"name": self.names[place[n]], "own": list(own[place[n]]) if own else []} for n in numbers]
            return {"question": question, "given": tuple(given), "shards": shards}

        def definitions(name: str) -> Mapping[str, bytes]:
            return {name: bases[name] if name in bases else pack(dict(self.sources[self._shard_of[name]]))}

        told = self.cluster.ask("documents", self.numbers, request, definitions, label=f"documents: {question}")
        return [each["told"] for each in told]

    def _check_apart(self) -> None:
        """Raise where two shards have a document of the same id."""
        parts = -(-self.documents // MOST_HASHES)
        for part in range(parts if len(self.names) > 1 else 0):
            hashes, times = np.unique(np.concatenate(self._ask("hashes", part, parts)), return_counts=True)
            if (times > 1).any():
                self._check_ids(hashes[times > 1][:MOST_NAMED])

    def _check_ids(self, hashes: NDArray[np.uint64]) -> None:
        """Raise where ids of these hashes, each of which occurs twice, are the same."""
        owner = dict[str, int]()
        for s, ids in enumerate(self._ask("with hashes", hashes)):
            for docid in ids.tolist():
                if docid in owner:
                    names = " and ".join(self.sources[each]["file"] for each in (owner[docid], s))
                    raise InputError(f"document {docid!r} is in two shards, {names}: each belongs to one")
                owner[docid] = s

    # What finding candidates asks

    def analysed(self, texts: Mapping[str, str]) -> Queries:
        """The queries, with the statistics of the whole: sums of what the shards have."""
        told = self._ask("analyse", dict(texts))
        first: Queries = told[0][0]
        df = np.sum([own.df for own, _ in told], axis=0)
        sums = {name: np.sum([own[name] for _, own in told], axis=0) for name in told[0][1] if name != "documents"}
        number = np.max([own.number for own, _ in told], axis=0)
        whole = Whole(self.documents, **sums)
        return replace(first, number=number, df=df, idf=idf_of(df, self.documents), whole=whole)

    def _ready(self, model: Scorer | None) -> Model:
        chosen = BM25() if model is None else model
        if not isinstance(chosen, Model):
            raise UsageError(
                "documents on workers are ranked by a model of fliprank's: workers are sent data, not code"
            )
        if chosen.ready:
            return chosen
        return chosen.prepared(self._no_rows, 0)  # without rows, it learns average lengths from the collection

    @cached_property
    def _no_rows(self) -> Candidates:
        return self.rows_of(self.analysed({}), np.zeros(1, np.int64), np.empty(0, np.int64), None)

    def top(self, queries: Queries, model: Scorer | None, depth: int) -> tuple[Ints, Ints]:
        return self._best(queries, model, depth, "or")[:2]

    def _best(
        self, queries: Queries, model: Scorer | None, depth: int, match: Literal["or", "and"]
    ) -> tuple[Ints, Ints, Floats, Ids]:
        """The best of all shards: (offsets per query, documents, scores, ids), best first."""
        if match not in ("or", "and") or depth < 1:
            raise UsageError(f"match must be 'or' or 'and' and depth at least 1, not {match!r} and {depth}")
        told = self._ask("top", queries, self._ready(model), depth, match)
        offsets, (documents, scores, which) = _side_by_side(
            [(own[0], (own[1] + self.base[s], own[2], np.arange(len(own[1])))) for s, own in enumerate(told)]
        )
        owner = np.searchsorted(self.base, documents, "right") - 1
        starts = bounds(np.array([len(own[1]) for own in told]))
        ids = Ids.concat([own[3] for own in told]).take(starts[owner] + which)
        best = order_rows(scores, offsets, ids)[positions(offsets) < depth]
        kept = bounds(np.minimum(np.diff(offsets), depth))
        return kept, documents[best], scores[best], ids.take(best)

    def matching(self, queries: Queries) -> tuple[Ints, Ints]:
        told = self._ask("match", queries)
        offsets, (documents,) = _side_by_side([(own[0], (own[1] + self.base[s],)) for s, own in enumerate(told)])
        return offsets, documents

    def numbers_of(self, docids: Ids) -> Ints:
        found = np.full(len(docids), -1, np.int64)
        for s, own in enumerate(self._ask("numbers", docids.compact())):
            found = np.where(own >= 0, own + self.base[s], found)
        return found

    def ids_of(self, documents: Ints) -> Ids:
        owner = np.searchsorted(self.base, documents, "right") - 1
        mine = [np.flatnonzero(owner == s) for s in range(len(self.names))]
        told = self._ask("ids", own=[(documents[at] - self.base[s],) for s, at in enumerate(mine)])
        return Ids.concat(told).take(np.argsort(np.concatenate(mine), kind="stable"))

    def rows_of(self, queries: Queries, offsets: Ints, documents: Ints, labels: Floats | None) -> Candidates:
        owner = np.searchsorted(self.base, documents, "right") - 1
        query = np.repeat(np.arange(len(queries)), np.diff(offsets))
        mine = [np.flatnonzero(owner == s) for s in range(len(self.names))]
        own = [
            (bounds(np.bincount(query[at], minlength=len(queries))), documents[at] - self.base[s])
            for s, at in enumerate(mine)
        ]
        parts: list[Candidates] = self._ask("rows", queries, own=own)
        order = np.argsort(np.concatenate(mine), kind="stable")  # where each row stands among those that came
        rows = _rejoined(parts, order, offsets)
        return rows if labels is None else replace(rows, labels=labels)

    # What users ask, as of an `Index`

    def search(
        self,
        queries: QueriesLike,
        model: Scorer | None = None,
        *,
        depth: int = 1000,
        match: Literal["or", "and"] = "or",
        progress: Progress | None = None,
        runs: Mapping[str, RunLike] | Sequence[RunLike] | None = None,
    ) -> Run:
        """See `Index.search`."""
        if isinstance(model, Hybrid) or runs is not None:
            return search_hybrid(self, queries, model, runs, depth=depth, match=match)
        asked = self.analysed(read_queries(queries))
        offsets, _, scores, ids = self._best(asked, model, depth, match)
        return Run(offsets, asked.qids, ids, scores, getattr(model, "name", "bm25"))

    def rows(self, queries: QueriesLike, documents: Mapping[str, Sequence[str]]) -> Candidates:
        """See `Index.rows`."""
        texts = read_queries(queries)
        if unknown := next((qid for qid in documents if qid not in texts), None):
            raise InputError("documents of a query that is not among the queries", query=unknown)
        asked = self.analysed(texts)
        offsets = bounds(np.array([len(documents.get(qid, ())) for qid in texts], np.int64))
        ids = Ids.of([docid for qid in texts for docid in documents.get(qid, ())])
        return self.rows_of(asked, offsets, numbers_of_rows(self, asked.qids, offsets, ids), None).validated()

    def candidates(self, queries: QueriesLike, qrels: QrelsLike | None = None, **options: Any) -> Candidates:
        """See `Index.candidates`."""
        return find_candidates(self, queries, qrels, **options)

    def pool(self, queries: QueriesLike, qrels: QrelsLike | None = None, **options: Any) -> Pool:
        """See `Index.pool`."""
        return pool(self, queries, qrels, **options)


def _side_by_side(parts: Sequence[tuple[Ints, tuple[Any, ...]]]) -> tuple[Ints, list[Any]]:
    """Columns of each query in each part, as columns of each query in all parts, in their order.

    >>> one = (np.array([0, 1, 2]), (np.array([5, 6]),))
    >>> _side_by_side([one, (np.array([0, 0, 1]), (np.array([9]),))])
    (array([0, 1, 3]), [array([5, 6, 9])])
    """
    owner = np.concatenate([np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)) for offsets, _ in parts])
    order = np.argsort(owner, kind="stable")
    columns = [np.concatenate(each)[order] for each in zip(*(own for _, own in parts), strict=True)]
    return bounds(np.bincount(owner, minlength=len(parts[0][0]) - 1)), columns


def _rejoined(parts: Sequence[Candidates], order: Ints, offsets: Ints) -> Candidates:
    """The rows of all parts, which have the same queries, in this order."""
    first = parts[0]
    assert first.terms is not None
    every = [part.terms for part in parts if part.terms is not None]
    lines = np.concatenate([np.diff(own.starts) for own in every])
    starts, begin = bounds(lines[order]), bounds(lines)[:-1]
    taken = np.arange(starts[-1]) + np.repeat(begin[order] - starts[:-1], lines[order])
    terms = TermStatistics(
        first.terms.fields,
        first.terms.offsets,
        first.terms.terms,
        first.terms.idf,
        starts,
        np.concatenate([own.tf for own in every])[taken],
        np.concatenate([own.length for own in every])[order],
        distinct=np.concatenate([own.distinct for own in every if own.distinct is not None])[order],
        **{name: getattr(first.terms, name) for name in OF_THE_WHOLE},
    )
    features = [part.features for part in parts if part.features is not None]
    docids = Ids.concat([part.docids for part in parts if part.docids is not None]).take(order)
    matrix = np.concatenate(features)[order] if features else None
    labels = np.full(len(order), np.nan)
    return Candidates(offsets, labels, first.qids, docids, matrix, first.feature_names, terms)


OF_THE_WHOLE = ("count", "collection", "tokens", "documents", "df", "field_df", "field_documents", "distinct_tokens")
