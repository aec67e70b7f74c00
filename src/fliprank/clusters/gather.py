"""Counts of terms, fetched in batches, each kept before the next is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fliprank.clusters.cluster import FieldSettings, Posting, PostingCluster, VectorCluster
from fliprank.clusters.counts import Counts, counts_of_documents, counts_of_postings
from fliprank.clusters.kept import Kept

__all__ = ["Progress", "gather_postings", "gather_vectors"]

Progress = Callable[[str, int], None]
Keep = Callable[[str, Mapping[str, Any]], Kept]

VECTORS_AT_ONCE, IDS_AT_ONCE = 100, 400


def gather_vectors(
    cluster: VectorCluster,
    docids: Sequence[str],
    fields: Sequence[str],
    terms: frozenset[str],
    keep: Keep,
    of: Mapping[str, Any],
    progress: Progress | None,
) -> Counts:
    """Document by document, all its terms."""
    kept = keep("documents.jsonl", {**of, "terms": sorted(terms)})
    for some in _batches(kept.missing(docids), VECTORS_AT_ONCE):
        found = cluster.counts(some, fields, terms)
        kept.add({docid: found.get(docid) for docid in some})  # None: it is not there
        if progress is not None:
            progress("reading term vectors", len(kept.records))
    return counts_of_documents(kept.records, fields)


def gather_postings(
    cluster: PostingCluster,
    wanted: Mapping[str, Sequence[str]],
    hits: Mapping[str, Mapping[str, float]],
    settings: Mapping[str, FieldSettings],
    keep: Keep,
    of: Mapping[str, Any],
    progress: Progress | None,
) -> tuple[Counts, dict[str, FieldSettings]]:
    """Term by term, in the documents that each is `wanted` of; and the fields' settings, as postings show them."""
    there = _present(cluster, wanted, hits, keep, of)
    asked = {term: [docid for docid in docids if docid in there] for term, docids in wanted.items()}
    kept = keep("postings.jsonl", {**of, "documents": asked})
    for key in kept.missing(json.dumps([field, term]) for term in asked for field in settings):
        field, term = json.loads(key)
        kept.add({key: _posting(cluster, field, term, asked[term])})
        if progress is not None:
            progress("reading term counts", len(kept.records))
    postings = {tuple(json.loads(key)): Posting(*record) for key, record in kept.records.items()}
    settled = {
        name: cluster.settled(each, [posting for (field, _), posting in postings.items() if field == name])
        for name, each in settings.items()
    }
    averages = {name: average for name, (_, average) in settled.items()}
    counts = counts_of_postings(postings, averages, there, list(settings))
    return counts, {name: each for name, (each, _) in settled.items()}


def _present(
    cluster: PostingCluster,
    wanted: Mapping[str, Sequence[str]],
    hits: Mapping[str, Mapping[str, float]],
    keep: Keep,
    of: Mapping[str, Any],
) -> set[str]:
    """The documents that are there: those that were found, and those of the others that the cluster knows."""
    there = {docid for found in hits.values() for docid in found}
    others = sorted({docid for docids in wanted.values() for docid in docids} - there)
    kept = keep("documents.jsonl", of)
    for some in _batches(kept.missing(others), IDS_AT_ONCE):
        found = cluster.present(some)
        kept.add({docid: docid in found for docid in some})
    return there | {docid for docid in others if kept.records[docid]}


def _posting(cluster: PostingCluster, field: str, term: str, docids: Sequence[str]) -> Posting:
    """In batches; means of what these say of the whole."""
    parts = [cluster.posting(field, term, some) for some in _batches(docids, IDS_AT_ONCE)]
    known = [part for part in parts if part.documents > 0]
    found = {docid: counts for part in parts for docid, counts in part.found.items()}
    whole = [(part.df, part.documents, part.average) for part in known] or [(0.0, 0.0, 0.0)]
    df, documents, average = (sum(each) / len(whole) for each in zip(*whole, strict=True))
    return Posting(df, documents, average, found)


def _batches(names: Sequence[str], size: int) -> list[Sequence[str]]:
    return [names[first : first + size] for first in range(0, len(names), size)]
