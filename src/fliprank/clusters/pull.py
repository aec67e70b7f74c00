"""Rows to tune on from a cluster that others run: nobody has to export a corpus.

The cluster is asked for the best documents of each query and for the term vectors of these and of the judged ones; its
own statistics (df, lengths, number of documents) come with them. All that is fetched is kept in a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.clusters.calls import ClusterError
from fliprank.clusters.cluster import Cluster, FieldSettings
from fliprank.clusters.kept import Kept
from fliprank.clusters.template import Template
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.ids import Ids
from fliprank.data.term_statistics import TermStatistics
from fliprank.data.trec import Qrels, Run, judge
from fliprank.errors import InputError

__all__ = ["Pulled", "answers", "pull"]

Progress = Callable[[str, int], None]
QUERIES_AT_ONCE, DOCUMENTS_AT_ONCE = 25, 100


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
    """What the cluster answers to each query, best first: by the template, or by a sum of the fields."""
    kept = kept or Kept(None, {})
    asked = kept.missing(queries)
    for first in range(0, len(asked), QUERIES_AT_ONCE):
        some = asked[first : first + QUERIES_AT_ONCE]
        requests = [
            cluster.usual_request(queries[qid], fields, depth)
            if template is None
            else template.request(queries[qid], depth)
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
    names, texts = list(settings), list(judged.values())
    of: dict[str, Any] = {"url": cluster.access.url, "index": cluster.access.index, "fields": names}
    terms = Kept(None if folder is None else folder / "queries.jsonl", of)
    lacking = terms.missing(judged)
    for qid in lacking:
        terms.add({qid: cluster.terms(names[0], [judged[qid]])[0]})
    words = {qid: list(map(str, terms.records[qid])) for qid in judged}
    asked = of | {"depth": depth, "template": None if template is None else dict(template.body), "texts": texts}
    hits = answers(
        cluster,
        judged,
        template,
        dict.fromkeys(names, 1.0),
        depth,
        Kept(None if folder is None else folder / "answers.jsonl", asked),
        progress,
    )
    run = _with_judged(hits, qrels, judged)
    vocabulary = frozenset(term for each in words.values() for term in each)
    counted = of | {"terms": sorted(vocabulary)}
    known = Kept(None if folder is None else folder / "documents.jsonl", counted)
    _count(cluster, sorted(set(run.docids.tolist())), names, vocabulary, known, progress)
    rows = _rows(run, qrels, words, names, known.records)
    return Pulled(rows, settings, Run.of(hits), tuple(_notes(cluster, run, known.records)))


def _settings(cluster: Cluster, fields: Sequence[str] | None) -> dict[str, FieldSettings]:
    """The fields to tune; raises where the engine scores or cuts them in ways that are not ours."""
    known = cluster.fields()
    if missing := [name for name in fields or () if name not in known]:
        raise ClusterError(f"{cluster.access.index} has no text field {missing[0]}", hint=f"it has {', '.join(known)}")
    chosen = {name: known[name] for name in fields or known}
    for name, each in chosen.items():
        if each.similarity != "BM25":
            usual = ", ".join(other for other, found in known.items() if found.similarity == "BM25") or "none"
            raise ClusterError(
                f"{name} is scored by {each.similarity}, not by BM25",
                hint=f"leave it out by --fields; fields with BM25: {usual}",
            )
    if len({each.analyzer for each in chosen.values()}) > 1:
        told = ", ".join(f"{name} by {each.analyzer}" for name, each in chosen.items())
        raise ClusterError(f"these fields cut queries in different ways: {told}", hint="name some by --fields")
    return chosen


def _with_judged(hits: Mapping[str, Mapping[str, float]], qrels: Qrels, queries: Mapping[str, str]) -> Run:
    """The documents of each query: the answers, then the judged that are not among them."""
    judged = qrels.to_dict()
    every = {qid: list(dict.fromkeys([*hits[qid], *judged.get(qid, {})])) for qid in queries}
    sizes = np.array([len(each) for each in every.values()], np.int64)
    docids = Ids.of([docid for each in every.values() for docid in each])
    return Run(bounds(sizes), Ids.of(list(every)), docids, np.zeros(len(docids)))


def _count(
    cluster: Cluster,
    docids: Sequence[str],
    fields: Sequence[str],
    terms: frozenset[str],
    kept: Kept,
    progress: Progress | None,
) -> None:
    asked = kept.missing(docids)
    for first in range(0, len(asked), DOCUMENTS_AT_ONCE):
        some = asked[first : first + DOCUMENTS_AT_ONCE]
        found = cluster.counts(some, fields, terms)
        kept.add({docid: found.get(docid) for docid in some})  # None: it is not there
        if progress is not None:
            progress("reading term vectors", len(kept.records))


def _rows(
    run: Run, qrels: Qrels, words: Mapping[str, list[str]], fields: Sequence[str], known: Mapping[str, Any]
) -> Candidates:
    """The rows of all documents that the index has, with their statistics."""
    there = np.array([known[docid] is not None for docid in run.docids.tolist()], bool)
    if not there.any():
        raise InputError("the index has none of the judged documents, and no answer to any query")
    owner = np.repeat(np.arange(len(run.qids)), np.diff(run.offsets))[there]
    kept = run.docids.take(np.flatnonzero(there))
    offsets = bounds(np.bincount(owner, minlength=len(run.qids)))
    union = Run(offsets, run.qids, kept, np.zeros(len(kept)))
    found = judge(qrels, union, missing="skip").candidates
    lookup = _Lookup.of(known, fields)
    terms, times, tf, sizes = [], [], [], []
    assert found.docids is not None
    names, ends, docids = found.qids.tolist(), found.offsets, found.docids.tolist()
    for q, qid in enumerate(names):
        distinct = list(dict.fromkeys(words[qid]))
        terms.append(distinct)
        times += [float(words[qid].count(term)) for term in distinct]
        for docid in docids[ends[q] : ends[q + 1]]:
            tf += [lookup.tf(docid, term) for term in distinct]
            sizes.append(len(distinct))
    flat = [term for each in terms for term in each]
    df, occurrences = (
        np.array([lookup.of_term(term, place) for term in flat]).reshape(-1, len(fields)) for place in (1, 2)
    )
    documents, tokens = lookup.documents, lookup.tokens
    most = float(documents.max())
    largest = df.max(axis=1, initial=0.0)
    statistics = TermStatistics(
        tuple(fields),
        bounds(np.array([len(each) for each in terms])),
        Ids.of(flat),
        np.log1p((most - largest + 0.5) / (largest + 0.5)),
        bounds(np.array(sizes)),
        np.array(tf, np.float32).reshape(-1, len(fields)),
        np.array([lookup.lengths(docid) for docid in docids], np.float32).reshape(-1, len(fields)),
        count=np.array(times),
        collection=occurrences,
        tokens=tokens,
        documents=round(most),
        field_df=df,
        field_documents=documents,
    )
    return Candidates(
        found.offsets,
        found.labels,
        found.qids,
        found.docids,
        None,
        (),
        statistics,
        found.missed_offsets,
        found.missed_labels,
    )


@dataclass(frozen=True, eq=False)
class _Lookup:
    """The counts by document, and means over documents of what each shard says of terms and fields."""

    known: Mapping[str, Any]
    fields: Sequence[str]
    by_term: dict[tuple[str, str], tuple[float, float, float]]
    documents: Floats
    tokens: Floats

    @classmethod
    def of(cls, known: Mapping[str, Any], fields: Sequence[str]) -> _Lookup:
        sums = dict[tuple[str, str], list[float]]()
        whole = {name: [0.0, 0.0, 0.0] for name in fields}
        for record in known.values():
            for name, (_, terms, documents, tokens) in (record or {}).items():
                _add(whole[name], documents, tokens)
                for term, (_, df, occurrences) in terms.items():
                    _add(sums.setdefault((name, term), [0.0, 0.0, 0.0]), df, occurrences)
        means = {key: (n, df / n, total / n) for key, (n, df, total) in sums.items()}
        each = [(total / max(n, 1.0), tokens / max(n, 1.0)) for n, total, tokens in whole.values()]
        documents, tokens = np.array(each).reshape(-1, 2).T
        return cls(known, fields, means, documents, tokens)

    def tf(self, docid: str, term: str) -> list[float]:
        record = self.known[docid]
        return [float(record[name][1].get(term, (0.0,))[0]) if name in record else 0.0 for name in self.fields]

    def lengths(self, docid: str) -> list[float]:
        record = self.known[docid]
        return [float(record[name][0]) if name in record else 0.0 for name in self.fields]

    def of_term(self, term: str, place: int) -> list[float]:
        return [self.by_term.get((name, term), (0.0, 0.0, 0.0))[place] for name in self.fields]


def _add(sums: list[float], first: float, second: float) -> None:
    sums[0] += 1.0
    sums[1] += first
    sums[2] += second


def _notes(cluster: Cluster, run: Run, known: Mapping[str, Any]) -> Iterator[str]:
    absent = sum(record is None for record in known.values())
    if absent:
        yield f"{absent:,} judged documents are not in {cluster.access.index}"
    if (parts := cluster.shards()) > 1:
        yield (
            f"{cluster.access.index} has {parts} shards, each with statistics of its own; means of these were taken, "
            "so scores differ a little from the cluster's"
        )
