"""Precision at levels of recall, as trec_eval interpolates it: the highest precision at this recall or a higher one.

At level l of a query with R relevant documents, floor(l R + 0.9) of them must be found; precision is then the best of
all ranks from there on, and 0 where the ranking never finds so many. A query without relevant documents has 0.

>>> found = precision_recall({"q": {"a": 1, "b": 0, "c": 1}}, {"run": {"q": {"a": 3, "b": 2, "c": 1}}})
>>> found.values["run"].round(3).tolist()
[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.667, 0.667, 0.667, 0.667, 0.667]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.checked import checked
from fliprank.data.order import order_rows
from fliprank.errors import UsageError, indented
from fliprank.experiment.evaluation import judged_runs
from fliprank.kernels import kernel

if TYPE_CHECKING:
    import polars as pl

__all__ = ["PrecisionRecall", "precision_recall"]

LEVELS = np.arange(11) / 10


@dataclass(frozen=True, eq=False, repr=False)
class PrecisionRecall:
    """`values[run][i]` is the mean over queries of the precision at recall `levels[i]`.

    Relevant are documents with a label from `rel` on.
    """

    levels: Floats
    values: dict[str, Floats]
    queries: int
    rel: float = 1.0

    def to_frame(self) -> pl.DataFrame:
        """A polars frame with one row per run and level."""
        import polars as pl

        parts = [
            pl.DataFrame({"run": [run] * len(self.levels), "recall": self.levels, "precision": values})
            for run, values in self.values.items()
        ]
        return pl.concat(parts)

    def __repr__(self) -> str:
        told = (f"{run}: {values[0]:.4f} at recall 0, {values[5]:.4f} at 0.5" for run, values in self.values.items())
        return indented(f"PrecisionRecall on {self.queries:,} queries", *told)


@checked
def precision_recall(qrels: Any, runs: Any, *, rel: float = 1.0) -> PrecisionRecall:
    """Interpolated precision at recall 0, 0.1, ..., 1, averaged over queries; `qrels` and `runs` as in `evaluate`.

    A document is relevant from the label `rel` on. Equal scores are settled as everywhere: by document id, descending.
    """
    if not rel > 0:
        raise UsageError(f"rel={rel}: a relevant document has a label above 0")
    values, queries = {}, 0
    for name, candidates, scores in judged_runs(qrels, runs):
        order = order_rows(scores, candidates.offsets, candidates.docids)
        hits = np.nan_to_num(candidates.labels[order], nan=-np.inf) >= rel
        relevant = candidates.judgements.count(rel)
        values[name] = _interpolated(hits, candidates.offsets, relevant, LEVELS).mean(axis=0)
        queries = candidates.queries
    return PrecisionRecall(LEVELS, values, queries, rel)


@kernel
def _interpolated(hits: Any, offsets: Ints, relevant: Ints, levels: Floats) -> Floats:
    """Queries x levels; `hits` tells which rows are relevant, best first within each query."""
    out = np.zeros((len(offsets) - 1, len(levels)))
    for q in range(len(offsets) - 1):
        size, found = offsets[q + 1] - offsets[q], 0
        for row in range(offsets[q], offsets[q + 1]):
            found += hits[row]
        best = 0.0
        for rank in range(size, 0, -1):  # from the end, so that the best precision from here on is known
            best = max(best, found / rank)
            hit = hits[offsets[q] + rank - 1]
            for i in range(len(levels)):
                needed = int(levels[i] * relevant[q] + 0.9)
                if relevant[q] > 0 and found >= needed:
                    out[q, i] = best
            found -= hit
    return out
