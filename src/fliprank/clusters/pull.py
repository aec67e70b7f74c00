"""Rows to tune on from a cluster that others run: nobody has to export a corpus.

The cluster is asked for the best documents of each query and for counts of terms in these and in the judged ones; its
own statistics (df, lengths, number of documents) come with them. All that is fetched is kept in a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.clusters.calls import ClusterError
from fliprank.clusters.cluster import Cluster, FieldSettings, PostingCluster, VectorCluster
from fliprank.clusters.counts import Counts
from fliprank.clusters.gather import Progress, gather_postings, gather_vectors
from fliprank.clusters.kept import Kept
from fliprank.clusters.template import Template
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.ids import Ids
from fliprank.data.term_statistics import TermStatistics
from fliprank.data.trec import Qrels, Run, judge
from fliprank.errors import InputError

__all__ = ["Progress", "Pulled", "answers", "pull"]

QUERIES_AT_ONCE = 25


@dataclass(frozen=True, eq=False)
class Pulled:
    """Judged rows with term statistics; `settings` are the fields' own, `run` what the cluster answered."""

    rows: Candidates
    settings: dict[str, FieldSettings]
    run: Run
    notes: tuple[str, ...]

    def start(self) -> dict[str, float]:
        """The k and b of each field as the cluster has them now."""
        return {f"{name}.{key}": value for name, s in self.settings.items() for key, value in (("k", s.k), ("b", s.b))}


def answers(
    cluster: Cluster,
    queries: Mapping[str, str],
    template: Template | None,
    fields: Mapping[str, float],
    depth: int,
    kept: Kept | None = None,
    progress: Progress | None = None,
) -> dict[str, dict[str, float]]:
    """What the cluster answers to each query, best first: by the template, or by its usual function of the fields."""
    kept = kept or Kept(None, {})
    asked = kept.missing(queries)
    for first in range(0, len(asked), QUERIES_AT_ONCE):
        some = asked[first : first + QUERIES_AT_ONCE]
        requests = [
            cluster.usual_request(queries[qid], fields, depth)
            if template is None
            else cluster.sized(template.request(queries[qid]), depth)
            for qid in some
        ]
        kept.add(dict(zip(some, cluster.search(requests), strict=True)))
        if progress is not None:
            progress("searching", len(kept.records))
    return {qid: kept.records[qid] for qid in queries}


def pull(
    cluster: Cluster,
    queries: Mapping[str, str],
    qrels: Qrels,
    *,
    fields: Sequence[str] | None = None,
    template: Template | None = None,
    depth: int = 100,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Pulled:
    """Rows of the judged queries: the `depth` best documents as the cluster ranks now, and all judged ones."""
    judged = {qid: queries[qid] for qid in qrels.qids.tolist() if qid in queries}
    settings = _settings(cluster, fields)
    names = list(settings)
    of: dict[str, Any] = {"engine": cluster.name, "url": cluster.access.url, "index": cluster.access.index}
    of |= {"fields": names, "ids": cluster.access.id_field}
    keep = _keeper(folder)
    terms = keep("queries.jsonl", of | {"queries": judged})
    for qid in terms.missing(judged):
        terms.add({qid: cluster.terms(names[0], [judged[qid]])[0]})
    words = {qid: [str(word) for word in terms.records[qid]] for qid in judged}
    asked = of | {"depth": depth, "template": None if template is None else dict(template.body), "queries": judged}
    known = keep("answers.jsonl", asked)
    hits = answers(cluster, judged, template, dict.fromkeys(names, 1.0), depth, known, progress)
    run = _with_judged(hits, qrels, judged)
    if isinstance(cluster, PostingCluster):
        wanted = _documents_of_terms(run, words)
        counts, settings = gather_postings(cluster, wanted, hits, settings, keep, of, progress)
    else:
        assert isinstance(cluster, VectorCluster)
        vocabulary = frozenset(term for each in words.values() for term in each)
        counts = gather_vectors(cluster, sorted(set(run.docids.tolist())), names, vocabulary, keep, of, progress)
    rows = _rows(run, qrels, words, counts)
    return Pulled(rows, settings, Run.of(hits), tuple(_notes(cluster, run, counts, known)))


def _keeper(folder: Path | None) -> Callable[[str, Mapping[str, Any]], Kept]:
    return lambda name, of: Kept(None if folder is None else folder / name, of)


def _settings(cluster: Cluster, fields: Sequence[str] | None) -> dict[str, FieldSettings]:
    """The fields to tune; raises where the engine scores or cuts them in ways that are not ours."""
    known, told = cluster.fields(), cluster.access.redacted
    if missing := [name for name in fields or () if name not in known]:
        raise ClusterError(
            f"{cluster.access.index} has no text field {missing[0]}", hint=f"it has {told(', '.join(known))}"
        )
    chosen = {name: known[name] for name in fields or known}
    for name, each in chosen.items():
        if each.similarity != "BM25":
            usual = ", ".join(other for other, found in known.items() if found.similarity == "BM25") or "none"
            raise ClusterError(
                told(f"{name} is scored by {each.similarity}, not by BM25"),
                hint=told(f"leave it out by --fields; fields with BM25: {usual}"),
            )
    if len({each.analyzer for each in chosen.values()}) > 1:
        cut = ", ".join(f"{name} by {each.analyzer}" for name, each in chosen.items())
        raise ClusterError(told(f"these fields cut queries in different ways: {cut}"), hint="name some by --fields")
    return chosen


def _with_judged(hits: Mapping[str, Mapping[str, float]], qrels: Qrels, queries: Mapping[str, str]) -> Run:
    """The documents of each query: the answers, then the judged that are not among them."""
    judged = qrels.to_dict()
    every = {qid: list(dict.fromkeys([*hits[qid], *judged.get(qid, {})])) for qid in queries}
    sizes = np.array([len(each) for each in every.values()], np.int64)
    docids = Ids.of([docid for each in every.values() for docid in each])
    return Run(bounds(sizes), Ids.of(list(every)), docids, np.zeros(len(docids)))


def _documents_of_terms(run: Run, words: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """By term, the documents of all queries that have it."""
    out = dict[str, dict[str, None]]()
    for qid, documents in run.to_dict().items():
        for word in words[qid]:
            out.setdefault(word, {}).update(dict.fromkeys(documents))
    return {word: sorted(documents) for word, documents in out.items()}


def _rows(run: Run, qrels: Qrels, words: Mapping[str, list[str]], counts: Counts) -> Candidates:
    """The rows of all documents that the index has, with their statistics."""
    there = np.array([docid in counts.there for docid in run.docids.tolist()], bool)
    if not there.any():
        raise InputError("the index has none of the judged documents, and no answer to any query")
    owner = np.repeat(np.arange(len(run.qids)), np.diff(run.offsets))[there]
    kept = run.docids.take(np.flatnonzero(there))
    offsets = bounds(np.bincount(owner, minlength=len(run.qids)))
    union = Run(offsets, run.qids, kept, np.zeros(len(kept)))
    found = judge(qrels, union, missing="skip").candidates
    assert found.docids is not None
    return Candidates(
        found.offsets,
        found.labels,
        found.qids,
        found.docids,
        None,
        (),
        _statistics(found, words, counts),
        found.missed_offsets,
        found.missed_labels,
    )


def _statistics(found: Candidates, words: Mapping[str, list[str]], counts: Counts) -> TermStatistics:
    """The counts of each row's terms, and of the whole collection."""
    terms, times, tf, sizes = [], [], [], []
    names, ends, docids = found.qids.tolist(), found.offsets, found.document_ids().tolist()
    for q, qid in enumerate(names):
        distinct = list(dict.fromkeys(words[qid]))
        terms.append(distinct)
        times += [float(words[qid].count(term)) for term in distinct]
        for docid in docids[ends[q] : ends[q + 1]]:
            tf += [counts.tf(docid, term) for term in distinct]
            sizes.append(len(distinct))
    flat, width = [term for each in terms for term in each], len(counts.fields)
    df, most = counts.of_terms(flat, counts.df), float(counts.documents.max())
    largest = df.max(axis=1, initial=0.0)
    return TermStatistics(
        counts.fields,
        bounds(np.array([len(each) for each in terms])),
        Ids.of(flat),
        np.log1p(np.maximum(most - largest + 0.5, 0.0) / (largest + 0.5)),
        bounds(np.array(sizes)),
        np.array(tf, np.float32).reshape(-1, width),
        np.array([counts.length(docid) for docid in docids], np.float32).reshape(-1, width),
        count=np.array(times),
        collection=None if counts.occurrences is None else counts.of_terms(flat, counts.occurrences),
        tokens=counts.tokens,
        documents=round(most),
        field_df=df,
        field_documents=counts.documents,
    )


def _notes(cluster: Cluster, run: Run, counts: Counts, kept: Kept) -> Iterator[str]:
    absent = len(set(run.docids.tolist()) - counts.there)
    if absent:
        yield f"{absent:,} judged documents are not in {cluster.access.index}"
    if (parts := cluster.shards()) > 1:
        yield (
            f"{cluster.access.index} has {parts} shards, each with statistics of its own; means of these were taken, "
            "so scores differ a little from the cluster's"
        )
    if kept.found and kept.path is not None:
        yield (
            f"the answers to {kept.found:,} queries were fetched by an earlier run: to ask the cluster anew, remove "
            f"{kept.path.parent}"
        )
