"""What Elasticsearch and OpenSearch make of an index's settings and a search template, in Lucene.

Written from their documentation and code; what they would not understand is an error here, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from fliprank.engines.java import LuceneJars

LEGACY = "search.similarity.LegacyBM25Similarity"
SIMILARITIES = {
    "LMDirichlet": ("LMDirichletSimilarity", "mu"),
    "LMJelinekMercer": ("LMJelinekMercerSimilarity", "lambda"),
}


class ElasticIndex:
    """An index of the product ("elasticsearch", "opensearch", "opensearch 2"), made of the JSON that it is PUT with."""

    def __init__(
        self, java: LuceneJars, product: str, created: str, documents: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self.java, self.real = java, java.jpype.JFloat
        self.plus_one = product != "opensearch"
        told = json.loads(created)
        settings, self.mapping = only(told, "settings", "mappings")
        self.mapping = self.mapping["properties"]
        self.defined = settings["index"]["similarity"]
        for field in self.mapping.values():
            assert set(field) <= {"type", "similarity", "analyzer", "positive_score_impact"}
            assert field.get("similarity", "default") in {*self.defined, "default"}
            assert (
                field.get("analyzer", "fliprank") in settings.get("analysis", {"analyzer": {"fliprank": 0}})["analyzer"]
            )
        self.docids = list(documents)
        directory = java("store.ByteBuffersDirectory")()
        config = java("index.IndexWriterConfig")(java("analysis.core.WhitespaceAnalyzer")())
        writer = java("index.IndexWriter")(directory, config)
        for document in documents.values():
            writer.addDocument(self._document(document))
        writer.close()
        self.searcher = java("search.IndexSearcher")(java("index.DirectoryReader").open(directory))
        self.searcher.setSimilarity(self._similarities())

    def _document(self, values: Mapping[str, Any]) -> Any:
        document = self.java("document.Document")()
        for name, value in values.items():
            kind = self.mapping[name]["type"] if name in self.mapping else "none"
            if kind == "text":
                document.add(self.java("document.TextField")(name, value, self.java("document.Field$Store").NO))
            elif kind == "rank_feature":
                positive = self.mapping[name].get("positive_score_impact", True)
                feature = self.real(value if positive else 1 / value)
                document.add(self.java("document.FeatureField")("_feature", name, feature))
            elif kind == "date":
                moment = self.java.jpype.JLong(milliseconds(value))
                document.add(self.java("document.LongPoint")(name, moment))
                document.add(self.java("document.NumericDocValuesField")(name, moment))
        return document

    def _similarity(self, told: Mapping[str, Any]) -> Any:
        if told["type"] == "BM25":
            _, k, b = only(told, "type", "k1", "b")
            legacy = self.plus_one and self.java.has(LEGACY)
            kind = self.java(LEGACY if legacy else "search.similarities.BM25Similarity")
            return kind(self.real(k), self.real(b))
        kind, name = SIMILARITIES[told["type"]]
        return self.java(f"search.similarities.{kind}")(self.real(only(told, "type", name)[1]))

    def _similarities(self) -> Any:
        default = self._similarity(self.defined.get("default", {"type": "BM25", "k1": 1.2, "b": 0.75}))
        if set(self.defined) == {"default"}:
            return default
        each = {
            name: self._similarity(self.defined[m["similarity"]])
            for name, m in self.mapping.items()
            if "similarity" in m
        }
        return self.java.similarity_by_field(each, default)

    def search(self, stored: str, **params: Any) -> dict[str, float]:
        """The hits of a search by a stored template."""
        script = only(json.loads(stored), "script")[0]
        lang, source = only(script, "lang", "source")
        assert lang == "mustache"
        asked = json.loads(mustache(json.dumps(source), params))
        query, first, size = only(asked, "query", "from", "size")
        assert int(first) == 0
        hits = self.searcher.search(self.query(query), int(size)).scoreDocs
        return {self.docids[hit.doc]: float(hit.score) for hit in hits}

    def query(self, told: Mapping[str, Any]) -> Any:
        ((kind, inside),) = told.items()
        return getattr(self, f"_{kind}")(inside)

    def _multi_match(self, told: Mapping[str, Any]) -> Any:
        tie = {"most_fields": 1.0, "best_fields": 0.0}[told["type"]]
        text, _, fields = only({k: v for k, v in told.items() if k != "tie_breaker"}, "query", "type", "fields")
        of_fields = [
            self._boosted(self._should([self._term(name, word) for word in text.split()]), weight * self._factor(name))
            for name, weight in boosts(fields).items()
        ]
        several = self.java.jpype.java.util.ArrayList()
        for each in of_fields:
            several.add(each)
        return self.java("search.DisjunctionMaxQuery")(several, self.real(told.get("tie_breaker", tie)))

    def _combined_fields(self, told: Mapping[str, Any]) -> Any:
        text, fields = only(told, "query", "fields")
        assert set(self.defined) == {"default"}, "combined_fields can't be used with similarities by field"
        clauses = []
        for word in text.split():
            builder = self.java("sandbox.search.CombinedFieldQuery$Builder")()
            for name, weight in boosts(fields).items():
                assert weight >= 1
                builder.addField(name, self.real(weight))
            clauses.append(builder.addTerm(self.java("util.BytesRef")(word)).build())
        return self._boosted(self._should(clauses), self._factor(None))

    def _factor(self, field: str | None) -> float:
        """k1 + 1, where no class of Lucene's multiplies by it."""
        if not self.plus_one or self.java.has(LEGACY):
            return 1.0
        told = self.defined["default" if field is None else self.mapping[field]["similarity"]]
        return float(told["k1"] + 1) if told["type"] == "BM25" else 1.0

    def _bool(self, told: Mapping[str, Any]) -> Any:
        assert set(told) <= {"must", "should", "must_not"}
        builder, occur = self.java("search.BooleanQuery$Builder")(), self.java("search.BooleanClause$Occur")
        if set(told) == {"must_not"}:
            builder.add(self.java("search.MatchAllDocsQuery")(), occur.MUST)
        for name, clauses in told.items():
            for clause in clauses:
                builder.add(self.query(clause), getattr(occur, name.upper()))
        return builder.build()

    def _constant_score(self, told: Mapping[str, Any]) -> Any:
        inside, boost = only(told, "filter", "boost")
        return self._boosted(self.java("search.ConstantScoreQuery")(self.query(inside)), boost)

    def _exists(self, told: Mapping[str, Any]) -> Any:
        (name,) = only(told, "field")
        assert self.mapping[name]["type"] == "rank_feature"
        return self._term("_feature", name)

    def _rank_feature(self, told: Mapping[str, Any]) -> Any:
        (curve,) = set(told) - {"field", "boost"}
        name, inside, boost = only(told, "field", curve, "boost")
        assert self.mapping[name]["type"] == "rank_feature"
        assert boost > 0
        wanted = {"linear": (), "log": ("scaling_factor",), "saturation": ("pivot",), "sigmoid": ("pivot", "exponent")}
        assert self.mapping[name].get("positive_score_impact", True) or curve in ("saturation", "sigmoid")
        values = [self.real(value) for value in only(inside, *wanted[curve])]
        if curve == "linear" and self.java.version[0] < 9:
            raise AssertionError("Lucene 8.8 has no linear features: ask Lucene 9")
        make = getattr(self.java("document.FeatureField"), f"new{curve.capitalize()}Query")
        return self._boosted(make("_feature", name, self.real(1.0), *values), boost)

    def _distance_feature(self, told: Mapping[str, Any]) -> Any:
        name, origin, pivot, boost = only(told, "field", "origin", "pivot", "boost")
        assert self.mapping[name]["type"] == "date"
        long = self.java.jpype.JLong
        pivot = long(int(re.fullmatch(r"(\d+)ms", pivot)[1]))  # type: ignore[index]
        near = self.java("document.LongPoint").newDistanceFeatureQuery(
            name, self.real(1.0), long(milliseconds(origin)), pivot
        )
        return self._boosted(near, boost)

    def _term(self, field: str, word: str) -> Any:
        return self.java("search.TermQuery")(self.java("index.Term")(field, word))

    def _should(self, queries: list[Any]) -> Any:
        builder = self.java("search.BooleanQuery$Builder")()
        for query in queries:
            builder.add(query, self.java("search.BooleanClause$Occur").SHOULD)
        return builder.build()

    def _boosted(self, query: Any, boost: float) -> Any:
        return self.java("search.BoostQuery")(query, self.real(boost))


def only(told: Mapping[str, Any], *names: str) -> list[Any]:
    """The values of these names, which are all that there are."""
    assert set(told) == set(names), told
    return [told[name] for name in names]


def boosts(fields: list[str]) -> dict[str, float]:
    """{"title": 2.5} of ["title^2.5"]."""
    return {name: float(weight) for name, _, weight in (each.partition("^") for each in fields)}


def milliseconds(day: str) -> int:
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000)


def mustache(text: str, params: Mapping[str, Any]) -> str:
    """{{name}} and {{^name}}where it is missing{{/name}}, with values escaped as JSON."""
    text = re.sub(r"\{\{\^(\w+)\}\}(.*?)\{\{/\1\}\}", lambda m: "" if m[1] in params else m[2], text)
    return re.sub(r"\{\{(\w+)\}\}", lambda m: json.dumps(str(params.get(m[1], "")))[1:-1], text)
