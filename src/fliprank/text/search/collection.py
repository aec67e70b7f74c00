"""What finding candidates asks of documents: of one index, or of many that have a part of the collection each.

Documents have numbers from 0 through the whole collection, in the order of its parts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Literal

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.ids import Ids
from fliprank.text.index_arrays import IndexArrays
from fliprank.text.search.queries import Queries, analyse
from fliprank.text.search.retrieve import Scorer, matching, rows_of, top

__all__ = ["Collection", "collection_of"]


class Collection(ABC):
    """Documents that can be searched."""

    documents: int

    @abstractmethod
    def analysed(self, texts: Mapping[str, str]) -> Queries:
        """The queries, cut into terms that are looked up."""

    @abstractmethod
    def top(self, queries: Queries, model: Scorer | None, depth: int) -> tuple[Ints, Ints]:
        """The best documents of each query, best first: (offsets per query, documents by number)."""

    @abstractmethod
    def matching(self, queries: Queries) -> tuple[Ints, Ints]:
        """The documents with all terms of each query: (offsets per query, documents by number, ascending)."""

    @abstractmethod
    def numbers_of(self, docids: Ids) -> Ints:
        """The number of each document, given its id; -1 where there is none."""

    @abstractmethod
    def ids_of(self, documents: Ints) -> Ids:
        """The ids of these documents, given by number."""

    @abstractmethod
    def rows_of(self, queries: Queries, offsets: Ints, documents: Ints, labels: Floats | None) -> Candidates:
        """Candidates of these documents (by number), with term statistics and columns."""


class _OneIndex(Collection):
    def __init__(self, index: IndexArrays) -> None:
        self.index, self.documents = index, index.documents

    def analysed(self, texts: Mapping[str, str]) -> Queries:
        return analyse(self.index, texts)

    def top(self, queries: Queries, model: Scorer | None, depth: int) -> tuple[Ints, Ints]:
        return top(self.index, queries, model, depth)[:2]

    def matching(self, queries: Queries) -> tuple[Ints, Ints]:
        every: Literal["and"] = "and"
        return matching(self.index, queries, every)

    def numbers_of(self, docids: Ids) -> Ints:
        return self.index.numbers_of(docids)

    def ids_of(self, documents: Ints) -> Ids:
        return self.index.docids.take(documents)

    def rows_of(self, queries: Queries, offsets: Ints, documents: Ints, labels: Floats | None) -> Candidates:
        return rows_of(self.index, queries, offsets, documents, labels)


def collection_of(index: IndexArrays | Collection) -> Collection:
    """An index as a collection; a collection as it is."""
    return index if isinstance(index, Collection) else _OneIndex(index)
