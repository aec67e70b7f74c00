"""Rows enough for a picture: some of the queries, and of each the documents that can come to the top.

A surface asks for the measure hundreds of times. Pictures are drawn on at most MOST_ROWS rows, of queries spread evenly
over all, and say so where that is not all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.data.csr import positions
from fliprank.data.order import order_rows
from fliprank.models import Model

__all__ = ["Sample", "sample_rows"]

MOST_ROWS = 10_000
DEEP = 50
"""So many first rows of a query, by any of the models, are kept beside the judged ones."""


class Sample(NamedTuple):
    """The rows, and how many queries there were to choose from."""

    rows: Candidates
    of: int

    @property
    def said(self) -> str:
        """On which queries a picture was drawn."""
        if self.rows.queries == self.of:
            return f"all {self.of:,} training queries"
        return f"{self.rows.queries:,} of {self.of:,} training queries"


def sample_rows(rows: Candidates, *models: Model, most: int = MOST_ROWS, deep: int = DEEP) -> Sample:
    """Queries spread evenly, as many as give at most so many rows; all rows of them where a model needs all."""
    few, share = rows, most / max(1, int(np.minimum(rows.sizes, deep * len(models)).sum()))
    if share < 1:
        count = max(1, int(rows.queries * share))
        few = rows.select(np.unique(np.linspace(0, rows.queries - 1, count).round().astype(np.int64)))
    if any(model.whole_queries for model in models):
        return Sample(few, rows.queries)
    kept = ~np.isnan(few.labels)
    for model in models:
        order = order_rows(model.score(few), few.offsets, few.docids)
        kept[order[positions(few.offsets) < deep]] = True
    return Sample(few.take(kept), rows.queries)
