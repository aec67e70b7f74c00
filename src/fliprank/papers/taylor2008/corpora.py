"""Three corpora in the place of the paper's three (sections 4.1 to 4.4), each in five folds of 3 : 1 : 1.

- `.GOV` is `stanford-web` here: BM25F of body, title and anchor text (6 parameters), and PageRank, into a net with 3
  hidden nodes; the gradient goes through the net to BM25F's own parameters.
- `Enterprise` is `cranfield`: all features that `fr.features` makes of its four fields, into a net with 4 hidden nodes.
  Training queries are sampled as the paper does, validation and test queries keep all their candidates.
- `Web` is `mq2008`: its 46 features into a net with 10 hidden nodes; its own five folds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import fliprank as fr
from fliprank.experiment.splits import Fold
from fliprank.models.base import Model
from fliprank.papers.data import letor_folds, some_queries, text_collection
from fliprank.papers.part import Setting
from fliprank.papers.web_pages import graded_web

__all__ = ["CORPORA", "NEEDS", "Corpus", "corpus"]

NEEDS = ("stanford-web", "cranfield", "mq2008")
DEPTH = 100
"""Candidates per query of a text collection."""
QUICK_QUERIES, QUICK_FOLDS = 60, 2


@dataclass(frozen=True, eq=False)
class Corpus:
    """Folds, the paper's net for them, and whether training rows are sampled."""

    name: str
    stands_for: str
    folds: list[Fold]
    model: Model
    sample: str | None = None

    def told(self) -> dict[str, Any]:
        """What a finding's settings say of it."""
        first = self.folds[0]
        return {
            "in place of": self.stands_for,
            "folds": len(self.folds),
            "queries": [part.queries for part in first],
            "rows_per_query": round(len(first.test) / first.test.queries, 1),
            "features": len(first.train.feature_names),
            "sample": self.sample,
        }


def _web_pages(setting: Setting) -> Corpus:
    rows = fr.concat(*graded_web(setting))
    text = fr.BM25F(("body", "title", "anchor"))
    net = fr.Stack(text.at(text.params.fix("k")), fr.Feature("pagerank", transform="log", k=1.0), hidden=3)
    return Corpus("stanford-web", ".GOV", _folds(rows, setting), net)


def _collection(setting: Setting) -> Corpus:
    task = text_collection(setting, "cranfield", 30 if setting.quick else DEPTH)
    assert isinstance(task.index, fr.Index)
    select = ["*.bm25*", "*.covered*"] if setting.quick else None
    rows = fr.features(task.index, task.train.rows, task.train.texts, select=select)
    return Corpus("cranfield", "Enterprise", _folds(rows, setting), fr.Network(hidden=4), "rated")


def _letor(setting: Setting) -> Corpus:
    folds = []
    for task in letor_folds(setting, "mq2008"):
        assert task.valid is not None
        assert task.test is not None
        folds.append(Fold(task.train.rows, task.valid.rows, task.test.rows))
    if setting.quick:
        few = QUICK_QUERIES // 3
        folds = [Fold(*(some_queries(part, few, setting.seed) for part in fold)) for fold in folds[:QUICK_FOLDS]]
    return Corpus("mq2008", "Web", folds, fr.Network(hidden=10))


def _folds(rows: fr.Candidates, setting: Setting) -> list[Fold]:
    if setting.quick:
        return list(fr.folds(some_queries(rows, QUICK_QUERIES, setting.seed), seed=setting.seed))[:QUICK_FOLDS]
    return list(fr.folds(rows, seed=setting.seed))


CORPORA: dict[str, Callable[[Setting], Corpus]] = {
    "stanford-web": _web_pages,
    "cranfield": _collection,
    "mq2008": _letor,
}


def corpus(setting: Setting, name: str) -> Corpus:
    """A corpus by its name."""
    made = CORPORA[name](setting)
    assert all(np.intersect1d(fold.train.qids.tolist(), fold.test.qids.tolist()).size == 0 for fold in made.folds)
    return made
