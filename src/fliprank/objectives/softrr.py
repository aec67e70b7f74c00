"""SoftRR: the expected reciprocal rank of the first relevant document of a noisy ranking, smooth in the scores.

Given the score x of a relevant document, it is the first one with the product over other relevant documents of their
probability to be below x; other documents above are a sum of independent coin flips, and 1 / (1 + r) a sum of
exponentials.

>>> from fliprank.data.candidates import Candidates
>>> round(SoftRR(sigma=0.5).value_and_grad([0, 0, -9], Candidates.of([1, 0, 1]))[0], 6)   # rank 1 or 2, equal chances
0.75
>>> round(SoftRR(sigma=0.1).value_and_grad([5.0] * 10 + [0.0] * 20, Candidates.of([1] * 10 + [0] * 20))[0], 6)
1.0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fliprank.data.candidates import Candidates
from fliprank.objectives.base import register
from fliprank.objectives.expectation import Paid
from fliprank.objectives.exponential_sum import nodes_of
from fliprank.objectives.softmeasure import Plan, SoftMeasure, relevant_rows

__all__ = ["SoftRR"]


@register
@dataclass(frozen=True, eq=False)
class SoftRR(SoftMeasure):
    """The expected 1 / rank of the first relevant document of a ranking by scores with Gaussian noise `sigma`.

    Labels of at least `rel` are relevant. Exact to the relative tolerance `tol`.
    """

    name: ClassVar[str] = "softrr"
    rel: float = 1

    def plan_for(self, candidates: Candidates) -> Plan:
        payment, nodes = self.payment(candidates, Paid.FIRST), nodes_of("reciprocal", candidates.sizes, self.tol)
        return Plan(relevant_rows(candidates, self.rel), payment, nodes)
