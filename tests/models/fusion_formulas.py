"""What engines compute when they fuse lists, written down in plain Python from their formulas: an oracle.

A list is [(document, score), ...], best first; a formula gives {document: fused score} of one query.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import fliprank as fr

Ranked = list[tuple[str, float]]
Fused = dict[str, float]

NAMES = ("text", "vector", "clicks")


def union(lists: list[Ranked]) -> list[str]:
    return list(dict.fromkeys(doc for each in lists for doc, _ in each))


def summed(lists: list[Ranked], weights: list[float], norm: Callable[[list[float]], list[float]]) -> Fused:
    out = dict.fromkeys(union(lists), 0.0)
    for each, weight in zip(lists, weights, strict=True):
        for (doc, _), value in zip(each, norm([score for _, score in each]), strict=True):
            out[doc] += weight * value
    return out


def rrf(lists: list[Ranked], weights: list[float], k: float, first: int = 1) -> Fused:
    return summed(lists, weights, lambda s: [1 / (k + first + i) for i in range(len(s))])


def minmax(flat: Callable[[float], float], eps: float = 0.0) -> Callable[[list[float]], list[float]]:
    def norm(s: list[float]) -> list[float]:
        if not s:
            return []
        low, high = min(s), max(s)
        return [flat(x) if abs(high - low) <= eps else (x - low) / (high - low) for x in s]

    return norm


def l2(s: list[float]) -> list[float]:
    size = math.sqrt(sum(x * x for x in s))
    return [x / size if size else 0.0 for x in s]


def three_sigma(flat: Callable[[float], float], less: int = 0) -> Callable[[list[float]], list[float]]:
    def norm(s: list[float]) -> list[float]:
        if len(set(s)) < 2:
            return [flat(x) for x in s]
        mean = sum(s) / len(s)
        sigma = math.sqrt(sum((x - mean) ** 2 for x in s) / (len(s) - less))
        return [(x - (mean - 3 * sigma)) / ((mean + 3 * sigma) - (mean - 3 * sigma)) for x in s]

    return norm


def opensearch(lists: list[Ranked], weights: list[float], normalise: str, combine: str) -> Fused:
    def norm(s: list[float]) -> list[float]:
        if normalise == "l2":
            return l2(s)
        if normalise == "min_max":
            return [0.001 if x == 0 else x for x in minmax(lambda x: 1.0)(s)]
        mean, out = float(np.mean(s)) if s else 0.0, []
        for x in s:
            if len(set(s)) == 1 or x == mean:
                out.append(1.0)
            else:
                z = (x - mean) / float(np.std(s))
                out.append(0.001 if z <= 0 else z)
        return out

    columns = [dict(zip([d for d, _ in each], norm([s for _, s in each]), strict=True)) for each in lists]
    fused = {}
    for doc in union(lists):
        scores = [column.get(doc, 0.0) for column in columns]
        pairs = [(w, n) for w, n in zip(weights, scores, strict=True) if n > 0 or combine == "arithmetic_mean"]
        total = sum(w for w, _ in pairs)
        if total == 0:
            fused[doc] = 0.0
        elif combine == "arithmetic_mean":
            fused[doc] = sum(w * n for w, n in pairs) / total
        elif combine == "geometric_mean":
            fused[doc] = math.exp(sum(w * math.log(n) for w, n in pairs) / total)
        else:
            fused[doc] = total / sum(w / n for w, n in pairs)
    return fused


def qdrant(lists: list[Ranked], weights: list[float], k: float) -> Fused:
    out = dict.fromkeys(union(lists), 0.0)
    for each, w in zip(lists, weights, strict=True):
        for position, (doc, _) in enumerate(each):
            out[doc] += 1 / (k - 1 + (position + 1) / w) if w > 0 else 0.0
    return out


def milvus(lists: list[Ranked], weights: list[float], metrics: list[str]) -> Fused:
    curves = {
        "cosine": lambda s: (1 + s) / 2,
        "ip": lambda s: 0.5 + math.atan(s) / math.pi,
        "bm25": lambda s: 2 * math.atan(s) / math.pi,
        "l2": lambda d: 1 - 2 * math.atan(d) / math.pi,
        "none": lambda s: s,
    }
    out = dict.fromkeys(union(lists), 0.0)
    for each, w, metric in zip(lists, weights, metrics, strict=True):
        for doc, score in each:
            out[doc] += w * curves[metric](score)
    return out


def edismax(lists: list[Ranked], weights: list[float], tie: float) -> Fused:
    out = {}
    for doc in union(lists):
        scores = [w * dict(each).get(doc, 0.0) for each, w in zip(lists, weights, strict=True)]
        out[doc] = max(scores) + tie * (sum(scores) - max(scores))
    return out


def lancedb(lists: list[Ranked], weight: float) -> Fused:
    text, vector = dict(lists[0]), dict(lists[1])
    return {
        doc: weight * ((1 - vector[doc]) if doc in vector else 0.0) + (1 - weight) * text.get(doc, 0.0)
        for doc in union(lists)
    }


def haystack_dbrf(lists: list[Ranked]) -> Fused:
    out: Fused = {}
    for each in lists:
        values = three_sigma(lambda x: x)([s for _, s in each])
        for (doc, _), value in zip(each, values, strict=True):
            out[doc] = max(out.get(doc, -math.inf), value)
    return out


def sign(x: float) -> float:
    return 1.0 if x > 0 else 0.0


def even(count: int) -> list[float]:
    return [1.0] * count


# (engine, settings, number of lists, parameter values) and its formula
Case = tuple[str, dict[str, object], int, list[float], Callable[[list[Ranked]], Fused]]
CASES: list[Case] = [
    ("elasticsearch-linear", {}, 3, [2, 0.5, 1], lambda x: summed(x, [2, 0.5, 1], lambda s: s)),
    (
        "elasticsearch-linear",
        {"normalise": "minmax"},
        3,
        [2, 0.5, 1],
        lambda x: summed(x, [2, 0.5, 1], minmax(lambda s: s, 1e-6)),
    ),
    ("elasticsearch-linear", {"normalise": "l2_norm"}, 2, [2, 0.5], lambda x: summed(x, [2, 0.5], l2)),
    ("elasticsearch-rrf", {}, 3, [2, 0.5, 1, 17], lambda x: rrf(x, [2, 0.5, 1], 17)),
    ("opensearch-rrf", {}, 2, [0.4, 0.6, 60], lambda x: rrf(x, [0.4, 0.6], 60)),
    ("weaviate", {}, 2, [0.6], lambda x: summed(x, [0.4, 0.6], minmax(lambda s: 1.0))),
    ("weaviate", {"method": "ranked"}, 2, [0.6], lambda x: rrf(x, [0.4, 0.6], 60, first=0)),
    ("qdrant", {}, 3, [3, 1, 0, 2], lambda x: qdrant(x, [3, 1, 0], 2)),
    ("qdrant", {}, 2, [0.5, 1.5, 60], lambda x: qdrant(x, [0.5, 1.5], 60)),
    ("qdrant", {"method": "dbsf"}, 3, [], lambda x: summed(x, even(3), three_sigma(lambda s: 0.5, 1))),
    ("milvus", {}, 2, [0.8, 0.2], lambda x: milvus(x, [0.8, 0.2], ["bm25", "cosine"])),
    ("milvus", {"normalise": ["ip", "l2", "none"]}, 3, [1, 2, 3], lambda x: milvus(x, [1, 2, 3], ["ip", "l2", "none"])),
    ("milvus", {"method": "rrf"}, 3, [60], lambda x: rrf(x, even(3), 60)),
    ("vespa", {}, 3, [1, 2, 0.3], lambda x: summed(x, [1, 2, 0.3], minmax(lambda s: 0.5))),
    ("vespa", {"method": "reciprocal_rank"}, 2, [1, 2, 33.3], lambda x: rrf(x, [1, 2], 33.3)),
    ("solr", {}, 3, [15], lambda x: rrf(x, even(3), 15)),
    ("solr", {"method": "edismax"}, 3, [1, 0.5, 2, 0.1], lambda x: edismax(x, [1, 0.5, 2], 0.1)),
    ("typesense", {}, 2, [0.3], lambda x: rrf(x, [0.7, 0.3], 0)),
    ("lancedb", {}, 2, [0.7], lambda x: lancedb(x, 0.7)),
    ("lancedb", {"method": "rrf"}, 2, [60], lambda x: rrf(x, even(2), 60)),
    ("langchain", {}, 3, [0.5, 0.3, 0.2, 60], lambda x: rrf(x, [0.5, 0.3, 0.2], 60)),
    ("llamaindex", {}, 3, [], lambda x: rrf(x, even(3), 60, first=0)),
    ("llamaindex", {"method": "relative_score"}, 2, [0.6, 0.4], lambda x: summed(x, [0.6, 0.4], minmax(sign))),
    ("llamaindex", {"method": "dist_based_score"}, 2, [0.6, 0.4], lambda x: summed(x, [0.6, 0.4], three_sigma(sign))),
    ("haystack", {}, 2, [0.3, 0.7], lambda x: {d: 61 * v for d, v in rrf(x, [0.3, 0.7], 61, first=0).items()}),
    ("haystack", {"method": "merge"}, 2, [0.3, 0.7], lambda x: summed(x, [0.3, 0.7], lambda s: s)),
    ("haystack", {"method": "distribution_based_rank_fusion"}, 3, [], haystack_dbrf),
    *(
        ("opensearch", {"normalise": n, "combine": c}, 3, [0.5, 0.3, 0.2],
         lambda x, n=n, c=c: opensearch(x, [0.5, 0.3, 0.2], n, c))
        for n in ("min_max", "l2", "z_score")
        for c in ("arithmetic_mean", "geometric_mean", "harmonic_mean")
    ),
]  # fmt: skip


def random_lists(rng: np.random.Generator, count: int) -> dict[str, list[Ranked]]:
    """Lists of some queries, best first (ties by id, descending): long, short, of one hit, empty, all equal."""
    out: dict[str, list[Ranked]] = {}
    for q in range(30):
        lists = []
        for _ in range(count):
            size = int(rng.choice([0, 1, 2, 5, 20]))
            docs = [f"d{i:02d}" for i in rng.choice(25, size, replace=False)]
            kind = rng.integers(4)
            scores = rng.gamma(2.0, 3.0, size) if kind < 2 else np.round(rng.gamma(2.0, 1.0, size))
            scores = np.full(size, 2.0) if kind == 3 and rng.uniform() < 0.5 else scores
            lists.append(sorted(zip(docs, scores.tolist(), strict=True), key=lambda x: (x[1], x[0]), reverse=True))
        if not any(lists):
            lists[0] = [("d00", 1.0)]
        out[f"q{q}"] = lists
    return out


def rows_of(lists: dict[str, list[Ranked]], qrels: object = None) -> fr.Candidates:
    """The same lists as rows."""
    count = len(next(iter(lists.values())))
    runs = {NAMES[j]: fr.Run.of({q: dict(each[j]) for q, each in lists.items() if each[j]}) for j in range(count)}
    return fr.fusion_rows(runs, qrels)


def fused(rows: fr.Candidates, scores: np.ndarray) -> dict[str, Fused]:
    return fr.fused_run(rows, scores).to_dict()
