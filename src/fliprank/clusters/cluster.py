"""What is asked of a cluster, whichever it is: texts cut into terms, the best documents, counts of terms.

Counts come in one of two ways: by document, all its terms at once (`VectorCluster`), or by term, all documents that
have it (`PostingCluster`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from math import isfinite
from typing import Any, ClassVar, NamedTuple

from fliprank.clusters.access import Access
from fliprank.clusters.calls import NotAllowedError
from fliprank.clusters.logs import hide_secrets_in_logs
from fliprank.errors import UsageError

__all__ = [
    "CLUSTERS",
    "Cluster",
    "FieldSettings",
    "Posting",
    "PostingCluster",
    "TermCounts",
    "VectorCluster",
    "connect",
    "in_order",
    "register",
]

CLUSTERS: dict[str, Callable[[Access], Cluster]] = {}
"""How to reach each kind of cluster, by the name of its engine."""
MODULES = ("elasticsearch", "solr", "vespa")
"""They register themselves."""


class FieldSettings(NamedTuple):
    """How a text field is cut into terms and scored: its analyzer for queries, the kind of its similarity, k1 and b."""

    analyzer: str
    similarity: str = "BM25"
    k: float = 1.2
    b: float = 0.75


class TermCounts(NamedTuple):
    """Of one document and one field: its length, and for the terms asked for (tf, df, occurrences in all documents).

    `documents` have something in this field, of `tokens` terms in all.
    """

    length: float
    terms: Mapping[str, tuple[float, float, float]]
    documents: float
    tokens: float


class Posting(NamedTuple):
    """Of one term in one field: how many documents have it, of how many, whose length is on average `average` (0: not
    told); and of the documents asked for that have it: (tf, length of the field, the term's score)."""

    df: float
    documents: float
    average: float
    found: Mapping[str, tuple[float, float, float]]


class Cluster(ABC):
    """One index of a cluster, read only. Methods raise errors that say what to do; busy clusters are asked again."""

    name: ClassVar[str]
    function: ClassVar[str]
    """The function of the engine by which `usual_request` ranks."""

    def __init__(self, access: Access) -> None:
        self.access = access
        hide_secrets_in_logs(access)

    def described(self) -> str:
        """Name and version of the server; the name alone for a user who may not ask for more."""
        try:
            return self.access.redacted(self.version())
        except NotAllowedError as error:
            if error.status == 401:
                raise
            return self.name

    @abstractmethod
    def version(self) -> str:
        """Name and version of the server."""

    @abstractmethod
    def fields(self) -> dict[str, FieldSettings]:
        """The text fields of the index; raises if it is closed or not there."""

    @abstractmethod
    def shards(self) -> int:
        """The parts of the index; each scores by its own statistics."""

    @abstractmethod
    def terms(self, field: str, texts: Sequence[str]) -> list[list[str]]:
        """Each text as the terms that a query in this field has."""

    @abstractmethod
    def search(self, bodies: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
        """The documents that each request finds, best first, with scores that fall."""

    @abstractmethod
    def usual_request(self, query: str, fields: Mapping[str, float], depth: int) -> dict[str, Any]:
        """A request for the best documents by `function`, the fields with these weights."""

    @abstractmethod
    def sized(self, request: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """A request of the user's own, for `depth` documents unless it says how many."""


class VectorCluster(Cluster):
    """A cluster that tells all terms of a document."""

    @abstractmethod
    def counts(
        self, docids: Sequence[str], fields: Sequence[str], terms: frozenset[str]
    ) -> dict[str, dict[str, TermCounts]]:
        """Of each document that is there, the counts of these terms by field."""


class PostingCluster(Cluster):
    """A cluster that tells all documents of a term."""

    @abstractmethod
    def present(self, docids: Sequence[str]) -> set[str]:
        """Which of these documents are there."""

    @abstractmethod
    def posting(self, field: str, term: str, docids: Sequence[str]) -> Posting:
        """The counts of a term in those of these documents that have it."""

    def settled(self, settings: FieldSettings, postings: Iterable[Posting]) -> tuple[FieldSettings, float]:
        """The settings of a field and its average length, once its postings are known."""
        told = [each.average for each in postings if each.average > 0]
        return settings, sum(told) / max(len(told), 1)


def in_order(hits: Sequence[tuple[str, float | None]]) -> dict[str, float]:
    """Documents in the order of the cluster. Its scores stay, if they say the same: a request may sort by others.

    >>> in_order([("a", 2.0), ("b", 2.0)]), in_order([("a", 1.0), ("b", 2.0)]), in_order([("a", None)])
    ({'a': 2.0, 'b': 2.0}, {'a': 2.0, 'b': 1.0}, {'a': 1.0})
    """
    scores = [score for _, score in hits if score is not None and isfinite(score)]
    if len(scores) < len(hits) or any(later > score for score, later in pairwise(scores)):
        return {docid: float(len(hits) - place) for place, (docid, _) in enumerate(hits)}
    return dict(zip((docid for docid, _ in hits), scores, strict=True))


def register(name: str) -> Callable[[Callable[[Access], Cluster]], Callable[[Access], Cluster]]:
    """Make a kind of cluster known."""

    def known(make: Callable[[Access], Cluster]) -> Callable[[Access], Cluster]:
        CLUSTERS[name] = make
        return make

    return known


def connect(engine: str, access: Access) -> Cluster:
    """The cluster, not asked anything yet."""
    for module in MODULES:
        import_module(f"fliprank.clusters.{module}")
    if engine not in CLUSTERS:
        raise UsageError(f"{engine} can't be asked over the network; these can: {', '.join(sorted(CLUSTERS))}")
    return CLUSTERS[engine](access)
