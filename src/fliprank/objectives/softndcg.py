"""SoftNDCG: the expected NDCG of a noisy ranking, smooth in the scores (SoftRank, section 3.3, as an exact
expectation).

>>> from fliprank.data.candidates import Candidates
>>> value, gradient = SoftNDCG(sigma=0.5).value_and_grad([0.0, 0.5], Candidates.of([1, 0]))
>>> round(value, 6), gradient.round(6)      # pi = Phi(0.5 / sqrt(0.5)) = 0.76025; 1 - pi + pi / log2(3)
(0.719414, array([ 0.162166, -0.162166]))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.csr import positions
from fliprank.measures.discounts import alpha_of, checked_discount, discount_of
from fliprank.objectives.base import one_of, register
from fliprank.objectives.expectation import Paid
from fliprank.objectives.exponential_sum import nodes_of
from fliprank.objectives.gains import GAINS, gain_of, ideal_gains, informative, labels_of
from fliprank.objectives.softmeasure import Plan, SoftMeasure

__all__ = ["SoftNDCG"]


@register
@dataclass(frozen=True, eq=False)
class SoftNDCG(SoftMeasure):
    """The expected NDCG of a ranking by scores with Gaussian noise `sigma`.

    `gain` is "exp" (2^l - 1), "linear" (l) or "exp0" (the paper's 2^l); `discount` is "log2", a number from -1 to 1
    that bends it, or a tuple by rank (see `discounts.py`). Exact to the relative tolerance `tol`.
    """

    name: ClassVar[str] = "softndcg"
    cutoff: int | None = None
    gain: str = "exp"
    discount: str | float | tuple[float, ...] = "log2"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "gain", *GAINS)
        object.__setattr__(self, "discount", checked_discount(self.discount, self.name))

    def plan_for(self, candidates: Candidates) -> Plan:
        table, depth = self.by_rank(candidates)
        alpha = alpha_of(self.discount)
        smooth = (depth == candidates.sizes) & (alpha is not None)
        kind = np.where(smooth, int(Paid.CURVE), int(Paid.RANK))
        nodes = nodes_of("log2", np.where(smooth, candidates.sizes, 1), self.tol)
        payment = self.payment(candidates, kind, 0.0 if alpha is None else alpha, table, depth)
        return Plan(self.worth(candidates), payment, nodes)

    def by_rank(self, candidates: Candidates) -> tuple[Floats, Ints]:
        """The discount of rank r of query q at `offsets[q] + r`, and the rank from which it is 0 in each query."""
        sizes, query = candidates.sizes, candidates.query_of_rows()
        table = discount_of(self.discount, positions(candidates.offsets), sizes[query], self.cutoff)
        depth = np.bincount(query, table > 0, minlength=candidates.queries)
        return frozen(table, np.float64), frozen(depth, np.int64)

    def worth(self, candidates: Candidates) -> Floats:
        """The gain of each row, over the best DCG of its query; 0 throughout a query without information."""
        gains, query, rank = ideal_gains(candidates, lambda labels: gain_of(labels, self.gain))
        paid = gains * discount_of(self.discount, rank, candidates.sizes[query], self.cutoff)
        best = np.bincount(query, paid, minlength=candidates.queries)
        own = gain_of(labels_of(candidates), self.gain)
        scale = informative(own, candidates.offsets) / np.where(best > 0, best, 1.0)
        return frozen(own * scale[candidates.query_of_rows()], np.float64)
