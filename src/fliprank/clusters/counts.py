"""Counts of terms as rows need them, however a cluster told them: by document or by term.

Where a cluster has several shards, each tells its own df, number of documents and lengths; means of these are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.clusters.cluster import Posting, TermCounts

__all__ = ["Counts", "counts_of_documents", "counts_of_postings"]

Key = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Counts:
    """By (field, document): its frequencies by term, and its length; by (field, term): df, occurrences in all.

    `documents` have something in each field, of `tokens` terms in all. `occurrences` is None where it is not told.
    """

    fields: tuple[str, ...]
    there: frozenset[str]
    frequencies: Mapping[Key, Mapping[str, float]]
    lengths: Mapping[Key, float]
    df: Mapping[Key, float]
    occurrences: Mapping[Key, float] | None
    documents: Floats
    tokens: Floats

    def tf(self, docid: str, term: str) -> list[float]:
        """How often a term stands in each field of a document."""
        return [self.frequencies.get((name, docid), {}).get(term, 0.0) for name in self.fields]

    def length(self, docid: str) -> list[float]:
        """How long each field of a document is; 0 where that is not known, which no score depends on."""
        return [self.lengths.get((name, docid), 0.0) for name in self.fields]

    def of_terms(self, terms: Sequence[str], by: Mapping[Key, float]) -> Floats:
        """terms x fields"""
        table = [[by.get((name, term), 0.0) for name in self.fields] for term in terms]
        return np.array(table, np.float64).reshape(-1, len(self.fields))


class _Means:
    """Means by key of numbers that are added one by one."""

    def __init__(self) -> None:
        self.sums = dict[Any, list[float]]()

    def add(self, key: Any, value: float) -> None:
        entry = self.sums.setdefault(key, [0.0, 0.0])
        entry[0] += 1.0
        entry[1] += value

    def all(self) -> dict[Any, float]:
        return {key: total / number for key, (number, total) in self.sums.items()}

    def of(self, names: Iterable[str]) -> Floats:
        known = self.all()
        return np.array([known.get(name, 0.0) for name in names], np.float64)


def counts_of_documents(records: Mapping[str, Mapping[str, Sequence[Any]] | None], fields: Sequence[str]) -> Counts:
    """From `TermCounts` by document and field; None for a document that is not there."""
    df, occurrences, documents, tokens = _Means(), _Means(), _Means(), _Means()
    frequencies, lengths = dict[Key, dict[str, float]](), dict[Key, float]()
    for docid, record in records.items():
        for name, told in (record or {}).items():
            one = TermCounts(*told)
            documents.add(name, one.documents)
            tokens.add(name, one.tokens)
            lengths[name, docid] = one.length
            frequencies[name, docid] = {term: each[0] for term, each in one.terms.items()}
            for term, (_, in_documents, in_all) in one.terms.items():
                df.add((name, term), in_documents)
                occurrences.add((name, term), in_all)
    return Counts(
        tuple(fields),
        frozenset(docid for docid, record in records.items() if record is not None),
        frequencies,
        lengths,
        df.all(),
        occurrences.all(),
        documents.of(fields),
        tokens.of(fields),
    )


def counts_of_postings(
    postings: Mapping[Key, Posting], averages: Mapping[str, float], there: Iterable[str], fields: Sequence[str]
) -> Counts:
    """From postings by (field, term), and the average length of each field."""
    documents = _Means()
    frequencies, lengths = dict[Key, dict[str, float]](), dict[Key, float]()
    for (name, term), posting in postings.items():
        if posting.documents > 0:
            documents.add(name, posting.documents)
        for docid, (tf, length, _) in posting.found.items():
            frequencies.setdefault((name, docid), {})[term] = tf
            lengths[name, docid] = length
    number = documents.of(fields)
    return Counts(
        tuple(fields),
        frozenset(there),
        frequencies,
        lengths,
        {key: posting.df for key, posting in postings.items()},
        None,
        number,
        number * np.array([averages[name] for name in fields]),
    )
