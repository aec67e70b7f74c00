"""What an index must hold and find, in plain Python: dictionaries, loops and the formulas of the papers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from fliprank.text.analysis import Analyzer

Documents = Sequence[Mapping[str, str]]


class PlainIndex:
    """Terms of each document by field, as `Analyzer.terms` gives them."""

    def __init__(self, documents: Documents, fields: Sequence[str], analyzer: Analyzer) -> None:
        self.fields, self.analyzer = list(fields), analyzer
        self.ids = [str(document["_id"]) for document in documents]
        self.terms = [[analyzer.terms(document.get(f) or "") for f in fields] for document in documents]
        self.counts = [[Counter(terms) for terms in row] for row in self.terms]

    def df(self, term: str) -> int:
        return sum(any(count[term] for count in row) for row in self.counts)

    def idf(self, term: str) -> float:
        df = self.df(term)
        return math.log(1 + (len(self.ids) - df + 0.5) / (df + 0.5))

    def matching(self, query: str, every_term: bool = False) -> list[int]:
        terms = set(self.analyzer.terms(query))
        met = [sum(any(count[term] for count in row) for term in terms) for row in self.counts]
        return [d for d, n in enumerate(met) if n > 0 and (not every_term or n == len(terms))]

    def bm25(self, query: str, d: int, k: float, b: float) -> float:
        lengths = [sum(map(len, row)) for row in self.terms]
        norm = 1 - b + b * lengths[d] / (sum(lengths) / len(lengths))
        total = 0.0
        for term in self.analyzer.terms(query):
            tf = sum(count[term] for count in self.counts[d])
            total += self.idf(term) * tf / (k * norm + tf) if tf else 0.0
        return total

    def bm25f(self, query: str, d: int, k: float, b: float, weights: Mapping[str, float]) -> float:
        total = 0.0
        for term in self.analyzer.terms(query):
            x = 0.0
            for f, name in enumerate(self.fields):
                mean = sum(len(row[f]) for row in self.terms) / len(self.ids)
                if self.counts[d][f][term]:
                    x += weights[name] * self.counts[d][f][term] / (1 - b + b * len(self.terms[d][f]) / mean)
            total += self.idf(term) * x / (k + x) if x else 0.0
        return total

    def ranked(self, scores: Mapping[int, float], depth: int) -> list[str]:
        """Ids by score, ties by id, both descending."""
        best = sorted(scores, key=lambda d: (scores[d], self.ids[d].encode()), reverse=True)
        return [self.ids[d] for d in best[:depth]]
