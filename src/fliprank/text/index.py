"""The index that users see: built from documents, opened from a file, searched, asked for candidates.

>>> index = Index.build([{"_id": "a", "title": "Red shoes"}, {"_id": "b", "title": "Blue shoes", "text": "A shoe."}])
>>> index.fields, index.terms.tolist(), index.df.tolist()
(('title', 'text'), ['blue', 'red', 'shoe'], [1, 1, 2])
>>> index.search({"q": "blue shoe"}).to_dict()["q"].keys()
dict_keys(['b', 'a'])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields as attributes
from typing import Any, Literal, Protocol

from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath
from fliprank.data.fusion_rows import RunLike
from fliprank.data.term_statistics import TermStatistics
from fliprank.data.trec import Run
from fliprank.models.hybrid import Hybrid
from fliprank.text.analysis import Analyzer
from fliprank.text.build.build import build_arrays
from fliprank.text.build.documents import Source
from fliprank.text.index_arrays import VERSION, IndexArrays, Progress
from fliprank.text.search.candidates import Pool, QrelsLike, find_candidates, pool
from fliprank.text.search.hybrid import search_hybrid
from fliprank.text.search.queries import QueriesLike
from fliprank.text.search.retrieve import Scorer, named_rows, search

__all__ = ["VERSION", "Index", "Progress", "Searchable"]


class Searchable(Protocol):
    """What a tuning asks of documents, be they in one index or in many on other machines."""

    @property
    def fields(self) -> tuple[str, ...]: ...
    @property
    def analyzer(self) -> Analyzer: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    def __len__(self) -> int: ...
    def search(
        self,
        queries: QueriesLike,
        model: Scorer | None = None,
        *,
        depth: int = 1000,
        runs: Mapping[str, RunLike] | Sequence[RunLike] | None = None,
    ) -> Run: ...
    def rows(self, queries: QueriesLike, documents: Mapping[str, Sequence[str]]) -> Candidates: ...
    def candidates(self, queries: QueriesLike, qrels: QrelsLike | None = None, **options: Any) -> Candidates: ...
    def pool(
        self,
        queries: QueriesLike,
        qrels: QrelsLike | None = None,
        *,
        depth: int = 2500,
        sample: int = 0,
        seed: int = 0,
        ranker: Scorer | Sequence[Scorer | None] | None = None,
        runs: Mapping[str, RunLike] | Sequence[RunLike] | None = None,
    ) -> Pool: ...


class Index(IndexArrays):
    """The arrays of an index (see `IndexArrays`), with what can be done with them."""

    @classmethod
    def build(
        cls,
        source: Source,
        path: StrPath | None = None,
        *,
        fields: Sequence[str] | None = None,
        analyzer: Analyzer | None = None,
        anchors: StrPath | None = None,
        links: StrPath | None = None,
        positions: bool = True,
        progress: Progress | None = None,
    ) -> Index:
        """Index documents; with a `path`, the index is written there and opened.

        `fields`, in order: by default all text except ids and urls. Links within the documents (`links`: a list of
        `target` and `text`), a file `anchors` (target, text) and a file `links` (source, target) give the field
        `anchor` and the column `pagerank`; see `read_links`.
        """
        arrays = build_arrays(
            source, fields, analyzer or Analyzer(), anchors=anchors, links=links, positions=positions, progress=progress
        )
        if path is None:
            return cls(**{each.name: getattr(arrays, each.name) for each in attributes(arrays)})
        arrays.save(path)
        return cls.open(path)

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
        """The best `depth` of all documents that have some (`or`) or all (`and`) terms of a query, by any model.

        By default the model is BM25 over all fields joined. BM25, BM25F and BM25Sum are computed straight
        from the postings, and return documents with a score above 0 only. A `Hybrid` fuses the first `window` documents
        of its text model and of each of `runs`, its other lists.
        """
        if isinstance(model, Hybrid) or runs is not None:
            return search_hybrid(self, queries, model, runs, depth=depth, match=match)
        return search(self, queries, model, depth=depth, match=match, progress=progress)

    def rows(self, queries: QueriesLike, documents: Mapping[str, Sequence[str]]) -> Candidates:
        """Candidates of these documents (ids by query id), unjudged, with term statistics and columns."""
        return named_rows(self, queries, documents)

    def statistics(self, queries: QueriesLike, documents: Mapping[str, Sequence[str]]) -> TermStatistics:
        """Term statistics of these documents (ids by query id), in this order; queries in the order of `queries`."""
        return self.rows(queries, documents).terms  # type: ignore[return-value]

    def candidates(self, queries: QueriesLike, qrels: QrelsLike | None = None, **options: Any) -> Candidates:
        """The candidates of `pool`; `memo["notes"]` says what was left out."""
        return find_candidates(self, queries, qrels, **options)

    def pool(
        self,
        queries: QueriesLike,
        qrels: QrelsLike | None = None,
        *,
        depth: int = 2500,
        sample: int = 0,
        seed: int = 0,
        ranker: Scorer | Sequence[Scorer | None] | None = None,
        runs: Mapping[str, RunLike] | Sequence[RunLike] | None = None,
    ) -> Pool:
        """Candidates to tune on: for each query the `depth` best documents by `ranker` (or by each of several; None is
        BM25 over all fields joined), all judged documents, and a random `sample` of those that have all its terms.

        With `runs` of other retrievers, also the first `depth` of each, whose scores and ranks are the rows' `lists`.
        """
        return pool(self, queries, qrels, depth=depth, sample=sample, seed=seed, ranker=ranker, runs=runs)
