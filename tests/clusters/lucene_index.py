"""A shop's documents in Lucene itself: frequencies, lengths and scores that the server tells are Lucene's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any

from fliprank.engines.lucene import Elasticsearch as Lucene
from fliprank.export.functions import engine_model
from fliprank.models import EngineText
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index

FUNCTIONS = {"elasticsearch": "most_fields", "opensearch": "most_fields", "solr": "edismax"}
END = 2**31 - 1
"""What Lucene says after the last document."""


class LuceneIndex:
    """Fields are scored by BM25 with k and b."""

    def __init__(self, documents: Mapping[str, Mapping[str, str]], fields: list[str], k: float, b: float):
        self.documents, self.fields, self.k, self.b = documents, fields, k, b
        pages = [{"_id": docid, **texts} for docid, texts in documents.items()]
        plain = Analyzer(lowercase=False, stopwords=None, stemmer=None)
        rows = Index.build(pages, fields=fields, analyzer=plain).rows({}, {})
        self.models = {
            name: engine_model(name, function, fields).prepared(rows, 0) for name, function in FUNCTIONS.items()
        }
        self.lucene = Lucene(documents, fields, self.models["elasticsearch"])
        self.reader, self.term = self.lucene.reader, self.lucene.java("index.Term")
        self.places = {docid: place for place, docid in enumerate(self.lucene.docids)}

    def close(self) -> None:
        self.lucene.close()

    def search(self, engine: str, words: Sequence[str], boosts: Mapping[str, float], depth: int) -> dict[str, float]:
        """By the engine's function; with these boosts, k and b as they are."""
        found = self.lucene.search(words, self.at(engine, boosts), depth)
        return {docid: score for docid, score in found.items() if score > 0}

    def at(self, engine: str, boosts: Mapping[str, float]) -> EngineText:
        model = self.models[engine]
        own = {f"{name}.{key}": value for name in self.fields for key, value in (("k", self.k), ("b", self.b))}
        return model.at(model.params.replace(own | {f"{name}.w": boosts.get(name, 0.0) for name in self.fields}))

    def explain(self, field: str, word: str, docid: str) -> dict[str, Any]:
        """Lucene's explanation of one term's score, as Solr gives it when it is to be structured."""
        model = self.at("solr", dict.fromkeys(self.fields, 1.0))
        self.lucene.searcher.setSimilarity(self.lucene._similarity(model))
        explained = self.lucene.searcher.explain(self.lucene._term(field, 1.0, word), self.places[docid])
        return told(str(explained.toString()))

    def df(self, field: str, word: str) -> int:
        return int(self.reader.docFreq(self.term(field, word)))

    def occurrences(self, field: str, word: str) -> int:
        return int(self.reader.totalTermFreq(self.term(field, word)))

    def count(self, field: str) -> int:
        """The documents that have something in a field."""
        return int(self.reader.getDocCount(field))

    def tokens(self, field: str) -> int:
        return int(self.reader.getSumTotalTermFreq(field))

    @cached_property
    def leaf(self) -> Any:
        [leaf] = self.reader.leaves()
        return leaf.reader()

    @cache  # noqa: B019  (lives as long as the tests)
    def posting(self, field: str, word: str) -> dict[str, int]:
        """How often a word stands in the documents that have it."""
        found, out = self.leaf.postings(self.term(field, word)), {}
        while found is not None and (place := int(found.nextDoc())) != END:
            out[self.lucene.docids[place]] = int(found.freq())
        return out

    @cached_property
    def lengths(self) -> dict[tuple[str, str], int]:
        """By field and document, exactly: Lucene's own are kept in one byte."""
        out = dict[tuple[str, str], int]()
        for field in self.fields:
            terms = self.leaf.terms(field).iterator()
            while (word := terms.next()) is not None:
                for docid, tf in self.posting(field, str(word.utf8ToString())).items():
                    out[field, docid] = out.get((field, docid), 0) + tf
        return out


def told(explanation: str) -> dict[str, Any]:
    """From lines of `value = description`, each as deep as it is indented: text crosses from Java at once."""
    above: list[dict[str, Any]] = []
    for line in explanation.splitlines():
        value, _, description = line.strip().partition(" = ")
        depth = (len(line) - len(line.lstrip())) // 2
        node: dict[str, Any] = {"match": True, "value": float(value), "description": description, "details": []}
        if depth:
            above[depth - 1]["details"].append(node)
        above[depth:] = [node]
    return above[0]
