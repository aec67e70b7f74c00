"""The rows that a fit looks at: the judged ones, the top of the ranking as it is, and some at random.

What a fit comes to may bring up others that it did not see; then these are added and it goes on, until the top holds
only rows that were seen. With thousands of rows per query this saves most of the time, and changes little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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

TOP, DEEP, MORE = 20, 200, 100
"""Rows of a query that fits look at beside the judged ones: its first ranks (twice the cut-off of the measure, from TOP
to DEEP), and for gradients so many at random of the rest."""

ROUNDS = 4
"""A fit goes on while rows that it did not see come up among the first ranks, at most so many rounds."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RowPool:
    """Which rows the fits of one model look at."""

    model: Model
    rows: Candidates
    measure: Measure
    seed: int = 0

    def refit_until_top_was_seen(
        self, fit: Callable[[Model, Candidates, bool], Model], model: Model, queries: Ints, gradient: bool
    ) -> Model:
        """Fit on the rows that matter, add those that come up, and go on from there; `fit` is told the first round."""
        seen = self.for_gradients if gradient else self.best | (self._ranks(model) < self.top)
        mine = np.zeros(self.rows.queries, bool)
        mine[queries] = True
        own = np.repeat(mine, self.rows.sizes)
        for number in range(ROUNDS):
            model = fit(model, self.rows.take(seen & own).select(queries), number == 0)
            rank = self._ranks(model)
            if not (own & ~seen & (rank < self.top // 2)).any():
                break
            seen = seen | (rank < self.top)
        return model

    def _ranks(self, model: Model) -> Ints:
        """The rank of each row in its query, from 0."""
        rank = np.empty(len(self.rows), np.int64)
        rank[order_rows(model.score(self.rows), self.rows.offsets, self.rows.docids)] = positions(self.rows.offsets)
        return rank

    @property
    def top(self) -> int:
        """How many first ranks of a query a fit looks at."""
        return DEEP if self.measure.depth is None else min(max(TOP, 2 * self.measure.depth), DEEP)

    @cached_property
    def best(self) -> Mask:
        """The judged rows and those of the first ranks."""
        return ~np.isnan(self.rows.labels) | (self._ranks(self.model) < self.top)

    @cached_property
    def for_gradients(self) -> Mask:
        """The rows that a gradient looks at first: the best, and some at random."""
        below = np.maximum(self.rows.sizes - self.top, 1)[self.rows.query_of_rows()]
        return self.best | (np.random.default_rng(self.seed).random(len(self.rows)) < MORE / below)
