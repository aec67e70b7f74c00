"""Candidates with term statistics, for the tests of text models."""

from __future__ import annotations

from typing import Any

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.ids import Ids
from fliprank.data.term_statistics import TermStatistics

FIELDS = ("title", "body", "anchor", "url")


def random_terms(
    rng: np.random.Generator, queries: int = 4, fields: int = 3, rows: int = 6, terms: int = 3, **changes: Any
) -> Candidates:
    """Queries of 0 to `terms` terms and 0 to `rows` rows; many zeros, empty fields and documents, equal rows."""
    counts, sizes = rng.integers(0, terms + 1, queries), rng.integers(0, rows + 1, queries)
    blocks, names = np.repeat(counts, sizes), FIELDS[:fields]
    tf = rng.integers(0, 5, (blocks.sum(), fields)) * (rng.random((blocks.sum(), fields)) < 0.5)
    tf *= np.repeat(rng.random((len(blocks), fields)) < 0.8, blocks, axis=0)  # some fields have no match at all
    owner = np.repeat(np.arange(len(blocks)), blocks)
    length = np.zeros((len(blocks), fields), np.int64)
    np.add.at(length, owner, tf)
    length += rng.integers(0, 30, length.shape) * (rng.random(length.shape) < 0.7)
    collection = rng.integers(0, 50, (counts.sum(), fields)) * (rng.random((counts.sum(), 1)) < 0.9)
    collection += np.repeat(100, fields) * (collection.sum(axis=1, keepdims=True) > 0)
    known = {
        "count": rng.integers(1, 4, counts.sum()),
        "collection": collection,
        "tokens": rng.integers(5000, 10**6, fields),
        "documents": int(rng.integers(50, 1000)),
    }
    statistics = TermStatistics(
        names,
        bounds(counts),
        Ids.of(f"t{i}" for i in range(counts.sum())),
        rng.uniform(0.1, 8, counts.sum()),
        bounds(blocks),
        tf,
        length,
        **(known | changes),
    )
    features = np.abs(rng.normal(1, 2, (len(blocks), 3))).round(2)
    return Candidates(
        bounds(sizes),
        rng.integers(0, 3, len(blocks)),
        Ids.of(f"q{i}" for i in range(queries)),
        None,
        features,
        ("pagerank", "depth", "age"),
        statistics,
    )
