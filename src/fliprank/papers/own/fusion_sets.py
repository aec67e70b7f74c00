"""Ranked lists with judgements that fusions are proven on, and the queries that each proof fits to and tests on.

Six runs of TREC DL 2019, and BM25F by default parameters beside a dense list on four text collections. Where a
collection has no test queries of its own, five folds of its queries are tested in turn; every ranker has the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import fliprank as fr
from fliprank.data.trec import Qrels, Run, read_qrels, read_run
from fliprank.experiment.splits import folds_of
from fliprank.experiment.task import open_index
from fliprank.papers.data import COLLECTIONS, data_path
from fliprank.papers.part import Setting
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index
from fliprank.text.search.queries import read_queries

__all__ = ["SETS", "FusionSet", "fusion_set"]

SETS = ("dl19", "icecat", "scifact", "cranfield", "cacm")
RUNS = ("bm25", "bm25_rm3", "splade", "tasb", "ada2", "repllama")
DEPTH, FOLDS, QUICK_QUERIES = 100, 5, 12


@dataclass(frozen=True, eq=False)
class FusionSet:
    """Lists of a collection, and (training, test) judgements: one pair, or one per fold."""

    name: str
    runs: dict[str, Run]
    splits: list[tuple[Qrels, Qrels]]
    texts: dict[str, str]
    index: Index | None = None

    @property
    def budget(self) -> str:
        """What is fitted to and tested on, in words."""
        if len(self.splits) > 1:
            return f"{sum(len(test.qids) for _, test in self.splits)} queries, {len(self.splits)} folds"
        [(train, test)] = self.splits
        return f"{len(train.qids)} training, {len(test.qids)} test queries"


def fusion_set(setting: Setting, name: str) -> FusionSet:
    """The lists and judgements of this name; when quick, of a few queries."""
    folder = data_path(setting, name)
    if name == "dl19":
        runs = {run: read_run(folder / f"{run}.run.gz") for run in RUNS[: 3 if setting.quick else None]}
        return FusionSet(name, runs, _folds(setting, read_qrels(folder / "qrels.txt.gz")), {})
    texts, index = read_queries(folder), open_index(folder, setting.cache, COLLECTIONS[name], Analyzer())
    runs = {"bm25f": index.search(texts, fr.BM25F(), depth=DEPTH), "dense": read_run(folder / "dense.run.gz")}
    train, test = (folder / "qrels" / f"{part}.tsv" for part in ("train", "test"))
    if not train.exists():
        return FusionSet(name, runs, _folds(setting, read_qrels(test)), texts, index)
    pair = tuple(_some(setting, read_qrels(part)) for part in (train, test))
    return FusionSet(name, runs, [(pair[0], pair[1])], texts, index)


def _some(setting: Setting, qrels: Qrels) -> Qrels:
    return qrels.select(np.arange(len(qrels.qids)) < QUICK_QUERIES) if setting.quick else qrels


def _folds(setting: Setting, every: Qrels) -> list[tuple[Qrels, Qrels]]:
    """Each fold in turn with the queries of the others."""
    qrels = _some(setting, every)
    count, out = len(qrels.qids), []
    for part in folds_of(count, 2 if setting.quick else FOLDS, setting.seed):
        inside = np.isin(np.arange(count), part)
        out.append((qrels.select(~inside), qrels.select(inside)))
    return out
