"""What is asked of a cluster, whichever it is: texts cut into terms, the best documents, their term vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from fliprank.clusters.access import Access
from fliprank.errors import UsageError

__all__ = ["CLUSTERS", "Cluster", "FieldSettings", "TermCounts", "connect", "register"]

CLUSTERS: dict[str, Callable[[Access], Cluster]] = {}
"""How to reach each kind of cluster, by the name of its engine."""


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


class Cluster(ABC):
    """One index of a cluster, read only. Methods raise errors that say what to do; busy clusters are asked again."""

    name: ClassVar[str]

    def __init__(self, access: Access) -> None:
        self.access = access

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
        """The documents that each request finds, best first, with their scores."""

    @abstractmethod
    def counts(
        self, docids: Sequence[str], fields: Sequence[str], terms: frozenset[str]
    ) -> dict[str, dict[str, TermCounts]]:
        """Of each document that is there, the counts of these terms by field."""

    @abstractmethod
    def usual_request(self, query: str, fields: Mapping[str, float], depth: int) -> dict[str, Any]:
        """A request for the best documents by a sum of fields with these weights."""


def register(name: str) -> Callable[[Callable[[Access], Cluster]], Callable[[Access], Cluster]]:
    """Make a kind of cluster known."""

    def known(make: Callable[[Access], Cluster]) -> Callable[[Access], Cluster]:
        CLUSTERS[name] = make
        return make

    return known


def connect(engine: str, access: Access) -> Cluster:
    """The cluster, not asked anything yet."""
    from fliprank.clusters import elasticsearch  # noqa: F401  (registers itself)

    if engine not in CLUSTERS:
        raise UsageError(f"{engine} can't be asked over the network; these can: {', '.join(sorted(CLUSTERS))}")
    return CLUSTERS[engine](access)
