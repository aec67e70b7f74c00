"""Lucene itself, in this process; it is also what Elasticsearch, OpenSearch and Solr score with.

Queries are built as these engines build them: `multi_match` is a disjunction of the fields' queries with a tie breaker
(1 for most_fields), `combined_fields` a CombinedFieldQuery per term, edismax a disjunction over fields per term.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from fliprank.engines.base import Runner, Texts, register
from fliprank.engines.java import LuceneJars, newest_lucene
from fliprank.errors import UsageError
from fliprank.models.engine import EngineText

__all__ = ["Elasticsearch", "Lucene", "OpenSearch", "Solr"]

COMBINED = "sandbox.search.CombinedFieldQuery"
LEGACY = "search.similarity.LegacyBM25Similarity"
SIMILARITIES = {"dirichlet": ("LMDirichletSimilarity", "mu"), "jelinek-mercer": ("LMJelinekMercerSimilarity", "lambda")}


@register
class Lucene(Runner):
    """An index of Lucene's in memory, in the newest Lucene that is found."""

    name = "lucene"
    label: ClassVar[str] = ""

    def __init__(self, documents: Texts, fields: Sequence[str], model: EngineText) -> None:
        self.java = newest_lucene()
        if model.formula.fields == "one_text" and not self.java.has(COMBINED):
            raise UsageError(
                f"combined_fields needs Lucene 9 or newer, here is {_told(self.java)}, whose own BM25F forgets fields: "
                "name the folder of its jars in FLIPRANK_LUCENE"
            )
        self.fields, self.docids = tuple(fields), list(documents)
        directory = self.java("store.ByteBuffersDirectory")()
        words = self.java("analysis.core.WhitespaceAnalyzer")()
        writer = self.java("index.IndexWriter")(directory, self.java("index.IndexWriterConfig")(words))
        text, stored = self.java("document.TextField"), self.java("document.Field$Store").NO
        for texts in documents.values():
            document = self.java("document.Document")()
            for name in self.fields:
                document.add(text(name, texts[name], stored))
            writer.addDocument(document)
        writer.forceMerge(1)
        writer.close()
        self.reader = self.java("index.DirectoryReader").open(directory)
        self.searcher = self.java("search.IndexSearcher")(self.reader)

    def search(self, words: Sequence[str], model: EngineText, depth: int) -> dict[str, float]:
        if not words:
            return {}
        self.searcher.setSimilarity(self._similarity(model))
        hits = self.searcher.search(self._query(words, model), depth).scoreDocs
        return {self.docids[hit.doc]: float(hit.score) for hit in hits}

    @classmethod
    def version(cls) -> str:
        return _told(newest_lucene()) + cls.label

    def close(self) -> None:
        self.reader.close()

    def _similarity(self, model: EngineText) -> Any:
        java, params, formula = self.java, model.params, model.formula
        if formula.fields == "one_text":
            return self._bm25(model, params["k"], params["b"])
        each = {}
        for name in self.fields:
            if formula.term == "bm25":
                each[name] = self._bm25(model, params[f"{name}.k"], params[f"{name}.b"])
            else:
                kind, own = SIMILARITIES[formula.term]
                each[name] = java(f"search.similarities.{kind}")(java.jpype.JFloat(params[f"{name}.{own}"]))
        return java.similarity_by_field(each, java("search.similarities.BM25Similarity")())

    def _bm25(self, model: EngineText, k: float, b: float) -> Any:
        legacy = model.formula.k_plus_1 and self.java.has(LEGACY)
        kind, real = self.java(LEGACY if legacy else "search.similarities.BM25Similarity"), self.java.jpype.JFloat
        return kind(real(k), real(b))

    def _query(self, words: Sequence[str], model: EngineText) -> Any:
        """The query of the function, from the engine's own parts."""
        params, formula = model.params, model.formula
        weights = {name: params[f"{name}.w"] for name in self.fields}
        if formula.k_plus_1 and not self.java.has(LEGACY):  # what the engine's own copy of this class does
            weights, factor = self._times_k_plus_1(model, weights)
        else:
            factor = 1.0
        if formula.fields == "one_text":
            return self._boosted(self._some([self._combined(word, weights) for word in words]), factor)
        tie = params["tie"] if "tie" in params.names else 1.0
        if formula.fields == "best_field_per_term":
            return self._some([self._best([self._term(n, w, word) for n, w in weights.items()], tie) for word in words])
        of_fields = [
            self._boosted(self._some([self._term(name, 1.0, word) for word in words]), weight)
            for name, weight in weights.items()
        ]
        return self._best(of_fields, tie)

    def _times_k_plus_1(self, model: EngineText, weights: dict[str, float]) -> tuple[dict[str, float], float]:
        if model.formula.fields == "one_text":
            return weights, model.params["k"] + 1.0
        return {name: weight * (model.params[f"{name}.k"] + 1.0) for name, weight in weights.items()}, 1.0

    def _term(self, field: str, weight: float, word: str) -> Any:
        return self._boosted(self.java("search.TermQuery")(self.java("index.Term")(field, word)), weight)

    def _boosted(self, query: Any, weight: float) -> Any:
        return query if weight == 1.0 else self.java("search.BoostQuery")(query, self.java.jpype.JFloat(weight))

    def _some(self, queries: Sequence[Any]) -> Any:
        builder, some = self.java("search.BooleanQuery$Builder")(), self.java("search.BooleanClause$Occur").SHOULD
        for query in queries:
            builder.add(query, some)
        return builder.build()

    def _best(self, queries: Sequence[Any], tie: float) -> Any:
        several = self.java.jpype.java.util.ArrayList()
        for query in queries:
            several.add(query)
        return self.java("search.DisjunctionMaxQuery")(several, self.java.jpype.JFloat(tie))

    def _combined(self, word: str, weights: dict[str, float]) -> Any:
        builder = self.java(f"{COMBINED}$Builder")()
        for name, weight in weights.items():
            builder.addField(name, self.java.jpype.JFloat(weight))
        return builder.addTerm(self.java("util.BytesRef")(word)).build()


@register
class Elasticsearch(Lucene):
    """What Elasticsearch asks of Lucene."""

    name = "elasticsearch"
    label = ", asked as Elasticsearch asks it"


@register
class OpenSearch(Lucene):
    """What OpenSearch asks of Lucene."""

    name = "opensearch"
    label = ", asked as OpenSearch asks it"


@register
class Solr(Lucene):
    """What Solr's edismax asks of Lucene."""

    name = "solr"
    label = ", asked as Solr asks it"


def _told(java: LuceneJars) -> str:
    return "Lucene " + ".".join(map(str, java.version))
