"""Models of every kind that the page computes, on rows that all of them can rank."""

from __future__ import annotations

import numpy as np

import fliprank as fr
from fliprank.data.ids import Ids
from fliprank.data.ranked_lists import RankedLists
from fliprank.data.term_statistics import TermStatistics
from fliprank.models import BM25, BM25F, BM25Sum, Feature, Fusion, Linear, Model, Stack, TwoStageLM
from fliprank.models.stack import AllFeatures

__all__ = ["MODELS", "some_rows"]

LISTS = ("text", "dense")
MODELS: dict[str, Model] = {
    "bm25": BM25(),
    "bm25f": BM25F(free_k=True),
    "bm25f, one b": BM25F(share_b=True),
    "bm25sum": BM25Sum(),
    "language": TwoStageLM(),
    "mixture": TwoStageLM(mixture=True, share_mu=False),
    "linear": Linear(),
    "stack": Stack(BM25F(), Feature("age", transform="recency"), Feature("rank", transform="sigmoid"), AllFeatures()),
    "two texts": Stack(BM25("title"), TwoStageLM(("body",)), Feature("rank", transform="log")),
    "curves": Stack(Feature("rank", transform="saturate"), Feature("signed", transform="signed"), Feature("age")),
    "minmax": Fusion("plain", LISTS, normalise="minmax"),
    "rrf": Fusion("elasticsearch-rrf", LISTS),
    "geometric": Fusion("opensearch", LISTS, normalise="min_max", combine="geometric_mean"),
    "harmonic": Fusion("opensearch", LISTS, normalise="l2", combine="harmonic_mean"),
    "weaviate": Fusion("weaviate", LISTS),
    "edismax": Fusion("solr", LISTS, method="edismax"),
    "qdrant": Fusion("qdrant", LISTS, method="rrf"),
}


def some_rows(queries: int = 8, size: int = 15, seed: int = 3) -> fr.Candidates:
    """Two terms, two fields (some of them empty), three features, two lists that lack some of the documents."""
    rng, count = np.random.default_rng(seed), queries * size
    offsets, ends = np.arange(queries + 1) * size, 2 * np.arange(count + 1)
    tf = rng.poisson([0.6, 2.0], (2 * count, 2))
    length = rng.integers(0, [6, 90], (count, 2)) + tf.reshape(count, 2, 2).sum(axis=1)
    terms = TermStatistics(
        ("title", "body"), 2 * np.arange(queries + 1), Ids.of(f"t{i}" for i in range(2 * queries)),
        rng.uniform(0.5, 5, 2 * queries), ends, tf, length, collection=rng.integers(1, 90, (2 * queries, 2)),
        tokens=[4000, 90_000], documents=1000,
    )  # fmt: skip
    features = np.stack([rng.integers(0, 900, count), rng.gamma(1, 5, count), rng.normal(0, 2, count)], axis=1)
    scores = np.stack([rng.gamma(2, 3, count), rng.uniform(0.1, 1, count)], axis=1)
    scores[rng.random(scores.shape) < 0.3] = np.nan
    labels = rng.choice([0.0, 0.0, 1.0, 2.0, np.nan], count)
    docids, qids = Ids.of(f"d{i:03}" for i in range(count)), Ids.of(f"q{i}" for i in range(queries))
    lists = RankedLists.of(LISTS, scores, offsets, docids)
    return fr.Candidates(
        offsets, labels, qids, docids, features=features.astype(np.float32), feature_names=("age", "rank", "signed"),
        terms=terms, lists=lists,
    )  # fmt: skip
