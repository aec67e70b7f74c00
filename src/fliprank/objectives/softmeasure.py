"""What softndcg, softap, softrr, softp and softrecall have in common: each is an expected measure of a noisy ranking.

All scores get Gaussian noise at once, and documents are ranked by the result: the expectation is over such rankings,
exactly (`expectation.py`), to the relative tolerance `tol`. SoftRank (section 3.2) instead lets each document meet each
other one with noise drawn anew; that approximation is `softrank`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, fields
from math import log10

import numpy as np

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.objectives.expectation import Payment, expectations, reach_of
from fliprank.objectives.exponential_sum import Nodes, checked_tol
from fliprank.objectives.gains import informative, labels_of
from fliprank.objectives.noisy_ranking import NoisyObjective, by_row, noisy_ranking

__all__ = ["Plan", "SoftMeasure", "relevant_rows"]


@dataclass(frozen=True, eq=False)
class Plan:
    """What does not depend on scores: what each row is `worth`, how it is paid (a curve as a sum of exponentials), and
    the `scale` of each query."""

    worth: Floats
    payment: Payment
    nodes: Nodes
    scale: Floats | float = 1.0


@dataclass(frozen=True, eq=False)
class SoftMeasure(NoisyObjective):
    """An expected measure of a noisy ranking. Subclasses give `plan_for`."""

    tol: float = field(default=1e-6, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_tol(self.name, self.tol)

    def evaluate(self, scores: Floats, candidates: Candidates, share: Floats) -> tuple[Floats, Floats]:
        plan = self.plan(candidates)
        noisy, order = noisy_ranking(scores, self.noise, plan.worth, candidates, share * plan.scale)
        values, pull = expectations(noisy, plan.payment, plan.nodes, candidates)
        return values * plan.scale, by_row(pull, order)

    def plan(self, candidates: Candidates) -> Plan:
        """Worked out once for these candidates; it holds for any noise."""
        key = (type(self), *(getattr(self, f.name) for f in fields(self) if f.name not in ("sigma", "anneal")))
        if key not in candidates.memo:
            candidates.memo[key] = self.plan_for(candidates)
        plan: Plan = candidates.memo[key]
        return plan

    @abstractmethod
    def plan_for(self, candidates: Candidates) -> Plan:
        """What the documents are paid for; their worth is 0 in a query without information."""

    def payment(
        self,
        candidates: Candidates,
        kind: int | Ints,
        alpha: float = 1.0,
        discount: Floats | None = None,
        depth: Ints | None = None,
    ) -> Payment:
        """The parts of a `Payment` that are given, and the rest."""
        sizes = candidates.sizes
        return Payment(
            frozen(np.broadcast_to(kind, sizes.shape), np.int64),
            alpha,
            frozen(np.zeros(len(candidates)) if discount is None else discount, np.float64),
            frozen(sizes if depth is None else depth, np.int64),
            reach_of(sizes, self.tol),
            -log10(self.tol),
        )


def relevant_rows(candidates: Candidates, rel: float) -> Floats:
    """1 for each row whose label is at least `rel`, 0 for others and in a query without information."""
    relevant = (labels_of(candidates) >= rel).astype(np.float64)
    return frozen(relevant * informative(relevant, candidates.offsets)[candidates.query_of_rows()], np.float64)
