"""Pair-by-pair descent: steps per second of kernels, against the loop that any model can take and a linear model.

    python bench/pairs.py

Taylor et al. 2006 take one step per pair. The 9-parameter ranker runs on the judged web pages of ../shared/data where
they are there, else on generated rows. Everything is warm, the least of several tries, in one process.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from timing import Row, best, show

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.ids import Ids
from fliprank.data.term_statistics import TermStatistics
from fliprank.data.term_statistics_jsonl import read_statistics
from fliprank.models import BM25F, AllFeatures, Feature, Linear, Model, Network, Stack
from fliprank.models.pair_descent import PairSteps, model_steps, pair_steps

WEB = Path(__file__).parents[2] / "shared" / "data" / "text" / "stanford-web" / "2014-train.jsonl"
FIELDS = ("url", "title", "anchor", "body", "header")
RATE = 1e-3


def generated(features: int, queries: int = 200, documents: int = 50, terms: int = 3) -> Candidates:
    """Random rows of five fields."""
    rng, rows = np.random.default_rng(0), queries * documents
    tf = rng.geometric(0.4, (rows * terms, 5)) * (rng.random((rows * terms, 5)) < 0.3)
    length = 1 + rng.poisson(20, (rows, 5)) + tf.reshape(rows, terms, 5).sum(axis=1)
    words, counts = Ids.of(["term"] * (queries * terms)), np.full(queries, terms)
    idf = rng.uniform(1, 8, queries * terms)
    statistics = TermStatistics(FIELDS, bounds(counts), words, idf, bounds(np.full(rows, terms)), tf, length)
    matrix, names = rng.exponential(size=(rows, features)), ("pagerank", *(f"f{k}" for k in range(1, features)))
    labels, sizes = rng.integers(0, 3, rows), bounds(np.full(queries, documents))
    return Candidates(sizes, labels, Ids.of(range(queries)), None, matrix, names, statistics)


def random_pairs(rows: Candidates, count: int) -> np.ndarray:
    """Pairs of rows of one query, the one with the higher label first."""
    rng = np.random.default_rng(1)
    query = rng.integers(0, rows.queries, 4 * count)
    two = rows.offsets[query][:, None] + (rng.random((4 * count, 2)) * rows.sizes[query][:, None]).astype(int)
    labels = rows.labels[two]
    two[labels[:, 0] < labels[:, 1]] = two[labels[:, 0] < labels[:, 1]][:, ::-1]
    return two[labels[:, 0] != labels[:, 1]][:count].astype(np.int32)


def rate_of(steps: PairSteps, start: Floats, count: int) -> float:
    """Steps per second."""
    order = np.random.default_rng(2).permutation(count)
    return count / best(lambda: steps(start, order, RATE))


def rows() -> list[Row]:
    """(what, peer, ratio, target) for each comparison."""
    web = read_statistics(WEB) if WEB.exists() else generated(1)
    nine = Stack(BM25F(FIELDS[:4]), Feature("pagerank", transform="log", k=1)).prepared(web, 0)
    pairs = random_pairs(web, 200_000)
    by_kernel, by_model = pair_steps(nine, web, pairs), model_steps(nine, web, pairs)
    start, few = nine.params.free_values, np.arange(500)
    np.testing.assert_allclose(by_kernel(start, few, RATE), by_model(start, few, RATE), atol=1e-9)
    fast, slow = rate_of(by_kernel, start, len(pairs)), rate_of(by_model, start, 2000)

    wide = generated(374)
    plain = generated(385)
    rates = {}
    models: dict[str, tuple[Model, Candidates]] = {
        "linear": (Linear(), plain),
        "stack": (Stack(BM25F(), AllFeatures()), wide),
        "net": (Stack(BM25F(), AllFeatures(), hidden=10), wide),
        "network": (Network(10), plain),
    }
    for name, (model, data) in models.items():
        ready, pairs = model.prepared(data, 0), random_pairs(data, 50_000)
        assert name not in ("linear", "stack") or len(ready.params) == 386
        rates[name] = rate_of(pair_steps(ready, data, pairs), ready.params.free_values, len(pairs))
    where = "judged web pages" if WEB.exists() else "generated rows"
    stack, net = rates["linear"] / rates["stack"], rates["network"] / rates["net"]
    return [
        Row(f"9-parameter ranker, pair steps on {where}", "by score and pullback of the query", fast / slow, ">= 100"),
        Row("the same, steps per second", "1 step per second", fast, ">= 170,000"),
        Row("386-parameter stack: time of a step", "linear model of 386 parameters", stack, "<= 10"),
        Row("net of 10 nodes on BM25F and 374 features: time", "Network(10) of 385", net, "<= 2"),
    ]


if __name__ == "__main__":
    show(rows())
