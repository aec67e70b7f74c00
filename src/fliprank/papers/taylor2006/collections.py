"""The data of Taylor et al. 2006, as anyone can have it, and the paper's rankers on it.

The paper has 2,048 training, 512 validation and 512 test queries of a commercial search engine, 2,500 candidates each,
some 30 of them rated on five levels, and 367 weak features. Here:

- `generated`: as many queries from `fr.generate`, 100 candidates each, with term statistics and 367 weak features,
  of which PageRank is one;
- `stanford-web`: real judged web pages with term statistics and PageRank, no weak features. Training and validation
  queries are drawn from 2014-train and 2014-dev, tests are on 2013 without the queries that occur in 2014 too;
- `scifact`: real abstracts, with all features that `fr.features` makes; its own training and test queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import fliprank as fr
from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.experiment.learning_curve import default_sizes
from fliprank.models.base import Model
from fliprank.models.taylor2006 import FIELDS, many_parameter, nine_parameter, two_parameter
from fliprank.papers.data import some_queries, text_collection
from fliprank.papers.part import Setting
from fliprank.papers.web_pages import graded_web

__all__ = ["MEASURE", "Collection", "generated", "real_features", "web"]

MEASURE = fr.nDCG(10, gains={4: 31, 3: 15, 2: 7, 1: 3})
"""NDCG at 10 with the paper's gains (section 2.1)."""
STATIC = "pagerank"
WEIGHTS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Weights of the static feature to choose the fixed one from: the paper does not give its own."""
TRAIN, VALID, TEST = 2048, 512, 512
DOCUMENTS, WEAK = 100, 367


@dataclass(frozen=True, eq=False)
class Collection:
    """Queries to draw training and validation sets from, queries to test on, and what the paper's rankers are here."""

    name: str
    rows: Candidates
    test: Candidates
    fields: tuple[str, ...]
    static: float | None
    """The fixed weight of the static feature, chosen on 64 training queries; None if there is no such feature."""
    weak: int
    sample: str | float = "average"
    """How many unrated documents descent sees in each query: in the paper the average number rated (section 3.1)."""
    best: Floats | None = None
    """What each test query would have if its documents were ranked by their true utility."""

    @property
    def sizes(self) -> list[int]:
        """16 to 2,048 training queries in steps of sqrt(2), as far as they go with a fifth held for validation."""
        return [size for size in default_sizes(self.rows.queries - self.rows.queries // 5) if size <= TRAIN]

    @property
    def two(self) -> Model:
        """BM25 of all fields joined, and the static feature with a fixed weight: 2 parameters."""
        return two_parameter(None if self.static is None else STATIC, self.static or 0.0)

    @property
    def nine(self) -> Model:
        """BM25F and the static feature: 9 parameters of four fields; without such a feature 2 per field."""
        if self.static is None:
            return many_parameter(self.fields).models[0]
        return nine_parameter(self.fields, STATIC, self.static)

    @property
    def many(self) -> Model:
        """BM25F and every feature: 375 parameters of four fields and 367 features."""
        return many_parameter(self.fields)

    def told(self) -> dict[str, Any]:
        """What a finding's settings say of it."""
        judged = float((~np.isnan(self.rows.labels)).sum() / self.rows.queries)
        return {
            "queries": self.rows.queries,
            "test_queries": self.test.queries,
            "rows_per_query": round(len(self.rows) / self.rows.queries, 1),
            "rated_per_query": round(judged, 1),
            "features": self.weak,
            "static_weight": self.static,
        }


def generated(setting: Setting) -> Collection:
    """The collection that `fr.generate` makes."""
    return _generated(setting.quick, setting.seed)


@cache
def _generated(quick: bool, seed: int) -> Collection:
    documents, weak = (40, 12) if quick else (DOCUMENTS, WEAK)
    train, test = (60, 40) if quick else (TRAIN + VALID, TEST)
    # Text counts more than quality: the paper's BM25F is "a single strong content feature".
    model = fr.WebModel(documents=documents, weak=weak - 1, weights=(1.2, 0.3), seed=2006 + seed)
    rows, held = fr.generate(train, model=model).rows, fr.generate(test, first=train, model=model)
    best = MEASURE.per_query(held.utility, held.rows)
    return Collection("generated", rows, held.rows, FIELDS, _static_weight(rows, FIELDS), weak, best=best)


def web(setting: Setting) -> Collection:
    """Stanford's judged web pages."""
    rows, test = graded_web(setting)
    if setting.quick:
        rows, test = some_queries(rows, 60, setting.seed), some_queries(test, 40, setting.seed)
    return Collection("stanford-web", rows, test, FIELDS, _static_weight(rows, FIELDS), 0)


def real_features(setting: Setting, name: str = "scifact") -> Collection:
    """A text collection with every feature that the index can give, and its own test queries."""
    depth, select = (20, ["*.covered*", "*.phrase*"]) if setting.quick else (DOCUMENTS, None)
    task = text_collection(setting, name, depth)
    assert isinstance(task.index, fr.Index)
    assert task.test is not None
    parts = []
    for queries, most in ((task.train, 60), (task.test, 40)):
        rows = some_queries(queries.rows, most, setting.seed) if setting.quick else queries.rows
        parts.append(fr.features(task.index, rows, queries.texts, select=select))
    # With one rated document per query, as many unrated ones would be one pair: the paper's 30 are drawn instead.
    fields, weak = tuple(task.index.fields), len(parts[0].feature_names)
    return Collection(name, parts[0], parts[1], fields, None, weak, sample=30.0)


def _static_weight(rows: Candidates, fields: tuple[str, ...]) -> float:
    """The best weight of a few for the static feature beside BM25F as it starts, on 64 training queries."""
    first = rows.select(np.arange(min(64, rows.queries)))
    model = nine_parameter(fields, STATIC).prepared(first, 0)
    name = f"{STATIC}.weight"
    return fr.landscape.surface(model, first, name, MEASURE, {name: WEIGHTS}).best[0]
