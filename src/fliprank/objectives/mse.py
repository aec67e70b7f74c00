"""MSE: the mean squared error between score and label, the pointwise cost (SoftRank, section 2.2, eq. 3).

>>> from fliprank.data.candidates import Candidates
>>> MSE().value_and_grad([1.0, 0.5], Candidates.of([2, 0]))      # ((1 - 2)^2 + 0.5^2) / 2
(0.625, array([-1. ,  0.5]))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.objectives.base import Objective, one_of, register
from fliprank.objectives.gains import gain_of, labels_of

__all__ = ["MSE"]


@register
@dataclass(frozen=True, eq=False)
class MSE(Objective):
    """The mean over the query's documents of (score - target)^2; the target is the label, or the gain 2^l - 1."""

    name: ClassVar[str] = "mse"
    maximise: ClassVar[bool] = False
    target: str = "label"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "target", "label", "gain")

    def evaluate(self, scores: Floats, candidates: Candidates, share: Floats) -> tuple[Floats, Floats]:
        labels = labels_of(candidates)
        error = scores - (labels if self.target == "label" else gain_of(labels, "exp"))
        query, size = candidates.query_of_rows(), np.maximum(candidates.sizes, 1)
        values: Floats = np.bincount(query, error * error, minlength=candidates.queries) / size
        gradient: Floats = 2 * error * (share / size)[query]
        return values, gradient

    def curvature(self, scores: Floats, candidates: Candidates, gradient: Floats) -> Floats:
        return (2.0 / np.maximum(candidates.sizes, 1))[candidates.query_of_rows()]
