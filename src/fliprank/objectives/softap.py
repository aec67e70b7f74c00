"""SoftAP: the expected average precision of a noisy ranking, smooth in the scores.

SoftRank leaves it open: precision depends on which documents are above, not only on how many. Given the score x of a
relevant document, A relevant and B other documents above it are sums of independent coin flips, and
1 / (1 + r) = sum of a_m z_m^r, so that with G_A(z) = E[z^A] the expected precision (1 + A) / (1 + A + B) is the sum of
a_m (z G_A(z))' G_B(z) at z_m.

>>> from fliprank.data.candidates import Candidates
>>> rows = Candidates.of([1, 0, 1])
>>> round(SoftAP(sigma=0.01).value_and_grad([3, 2, 1], rows)[0], 6)         # (1/1 + 2/3) / 2: next to no noise
0.833333
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.objectives.base import register
from fliprank.objectives.expectation import Paid
from fliprank.objectives.exponential_sum import nodes_of
from fliprank.objectives.softmeasure import Plan, SoftMeasure, relevant_rows

__all__ = ["SoftAP"]


@register
@dataclass(frozen=True, eq=False)
class SoftAP(SoftMeasure):
    """The expected average precision of a ranking by scores with Gaussian noise `sigma`.

    Labels of at least `rel` are relevant. Exact to the relative tolerance `tol`.
    """

    name: ClassVar[str] = "softap"
    rel: float = 1

    def plan_for(self, candidates: Candidates) -> Plan:
        payment, nodes = self.payment(candidates, Paid.PRECISION), nodes_of("reciprocal", candidates.sizes, self.tol)
        count = np.maximum(candidates.judgements.count(self.rel), 1)
        return Plan(relevant_rows(candidates, self.rel), payment, nodes, 1.0 / count)
