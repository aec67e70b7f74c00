"""SoftP and SoftRecall: expected precision and recall at a cut-off of a noisy ranking, smooth in the scores.

>>> from fliprank.data.candidates import Candidates
>>> rows, scores = Candidates.of([1, 1, 0, 0]), [0.0, 0.0, 0.0, 0.0]
>>> round(SoftP(2).value_and_grad(scores, rows)[0], 6), round(SoftRecall(1).value_and_grad(scores, rows)[0], 6)
(0.5, 0.25)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.objectives.base import register
from fliprank.objectives.expectation import Paid
from fliprank.objectives.exponential_sum import nodes_of
from fliprank.objectives.softmeasure import Plan, SoftMeasure, relevant_rows

__all__ = ["SoftP", "SoftRecall"]


@register
@dataclass(frozen=True, eq=False)
class SoftP(SoftMeasure):
    """The expected share of relevant documents (label at least `rel`) among the first `cutoff` of a noisy ranking.

    Scores have Gaussian noise `sigma`. Exact to the tolerance `tol`.
    """

    name: ClassVar[str] = "softp"
    needs_cutoff: ClassVar[bool] = True
    cutoff: int | None = None
    rel: float = 1

    def plan_for(self, candidates: Candidates) -> Plan:
        depth = np.minimum(candidates.sizes, self.cutoff or 1)
        payment = self.payment(candidates, Paid.RANK, discount=np.ones(len(candidates)), depth=depth)
        none = nodes_of("log2", np.zeros(candidates.queries, np.int64), self.tol)
        return Plan(relevant_rows(candidates, self.rel), payment, none, self._scale(candidates))

    def _scale(self, candidates: Candidates) -> Floats | float:
        """What a relevant document among the first counts."""
        return 1.0 / (self.cutoff or 1)


@register
@dataclass(frozen=True, eq=False)
class SoftRecall(SoftP):
    """The expected share of the query's relevant documents that are among the first `cutoff` of a noisy ranking."""

    name: ClassVar[str] = "softrecall"

    def _scale(self, candidates: Candidates) -> Floats | float:
        out: Floats = 1.0 / np.maximum(candidates.judgements.count(self.rel), 1)
        return out
