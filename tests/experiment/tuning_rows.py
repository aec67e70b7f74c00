"""Rows whose labels follow from a BM25F with other parameters than the default ones."""

from __future__ import annotations

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.ids import Ids
from fliprank.data.term_statistics import TermStatistics
from fliprank.models import BM25F

TRUTH = {"title.w": 6.0, "body.w": 0.3, "title.b": 0.2, "body.b": 0.9}


def judged_rows(
    queries: int = 40,
    size: int = 20,
    seed: int = 0,
    noise: float = 0.2,
    unjudged: float = 0.0,
    truth: dict[str, float] = TRUTH,
) -> Candidates:
    """Queries of two terms; label 2 for the best 3 of a query by the truth and some noise, 1 for the next 4."""
    rng = np.random.default_rng(seed)
    count = queries * size
    tf = np.stack([rng.poisson(0.4, 2 * count), rng.poisson(2.0, 2 * count)], axis=1)
    length = np.stack([rng.integers(2, 12, count), rng.integers(20, 400, count)], axis=1) + tf.reshape(count, 2, 2).sum(
        1
    )
    terms = TermStatistics(
        ("title", "body"),
        bounds(np.full(queries, 2)),
        Ids.of(f"t{i}" for i in range(2 * queries)),
        rng.uniform(1, 5, 2 * queries),
        bounds(np.full(count, 2)),
        tf,
        length,
    )
    docids = Ids.of(f"d{i}" for i in range(count))
    rows = Candidates(
        bounds(np.full(queries, size)), np.zeros(count), Ids.of(f"q{i}" for i in range(queries)), docids, terms=terms
    )
    model = BM25F().prepared(rows, 0)
    worth = model.at(model.params.replace(truth)).score(rows) + noise * rng.normal(size=count)
    rank = (-worth.reshape(queries, size)).argsort(1).argsort(1).reshape(-1)
    labels = np.where(rank < 3, 2.0, np.where(rank < 7, 1.0, 0.0))
    labels[(labels == 0) & (rng.random(count) < unjudged)] = np.nan
    return Candidates(rows.offsets, labels, rows.qids, docids, terms=terms)
