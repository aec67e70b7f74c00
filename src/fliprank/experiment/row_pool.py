"""The rows that a fit looks at: the judged ones, the top of the ranking as it is, and some at random.

What a fit comes to may bring up others that it did not see; then these are added and it goes on, until the top holds
only rows that were seen. With thousands of rows per query this saves most of the time, and changes little.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import positions
from fliprank.data.order import order_rows
from fliprank.measures import Measure
from fliprank.models import Model

__all__ = ["RowPool"]

TOP, DEEP, MORE = 20, 200, 60
"""Rows of a query that fits look at beside the judged ones: its first ranks (twice the cut-off of the measure, from TOP
to DEEP), and for gradients so many at random of the rest."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RowPool:
    """Which rows the fits of one model look at: `chosen`, and for gradients `more` of the others."""

    rows: Candidates
    top: int
    chosen: Mask
    more: Mask

    @classmethod
    def of(cls, model: Model, rows: Candidates, measure: Measure, seed: int = 0) -> RowPool:
        """The judged rows and the first ranks of this model, and some at random.

        All rows, where scores depend on the other rows of a query.
        """
        top = DEEP if measure.depth is None else min(max(TOP, 2 * measure.depth), DEEP)
        if model.whole_queries:
            return cls(rows, top, np.ones(len(rows), bool), np.zeros(len(rows), bool))
        chosen = ~np.isnan(rows.labels) | (_ranks(model, rows) < top)
        below = np.maximum(rows.sizes - top, 1)[rows.query_of_rows()]
        return cls(rows, top, chosen, np.random.default_rng(seed).random(len(rows)) < MORE / below)

    @cached_property
    def for_searches(self) -> Candidates:
        """The rows that a search on the measure looks at."""
        return self.rows.take(self.chosen)

    @cached_property
    def for_gradients(self) -> Candidates:
        """The rows that a gradient looks at: it also learns from documents far down."""
        return self.rows.take(self.chosen | self.more)

    def with_top_of(self, models: Iterable[Model]) -> RowPool | None:
        """The pool with the first ranks of these models too; None where the upper half of them was there."""
        seen, missed = self.chosen | self.more, False
        chosen = self.chosen
        for model in models:
            rank = _ranks(model, self.rows)
            missed |= bool((~seen & (rank < self.top // 2)).any())
            chosen = chosen | (rank < self.top)
        return replace(self, chosen=chosen) if missed else None


def _ranks(model: Model, rows: Candidates) -> Ints:
    """The rank of each row in its query, from 0."""
    rank = np.empty(len(rows), np.int64)
    rank[order_rows(model.score(rows), rows.offsets, rows.docids)] = positions(rows.offsets)
    return rank
