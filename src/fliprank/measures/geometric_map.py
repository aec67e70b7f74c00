"""GMAP: the geometric mean of average precision, which weighs the worst queries most (R & Z 2007, section 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.measures.average_precision import AP
from fliprank.measures.base import Measure, register
from fliprank.measures.ranking import Ranking

__all__ = ["GMAP"]


@register()
@dataclass(frozen=True)
class GMAP(Measure):
    """The geometric mean of average precision; below `eps` it counts as `eps`, so that one bad query is not the end.

    >>> from fliprank.data.candidates import Candidates
    >>> two = Candidates.of([1, 0, 0, 1], group=[2, 2])
    >>> values = GMAP().per_query([2, 1, 2, 1], two)
    >>> values, round(GMAP().aggregate(values), 4)      # 1 and 1/2: the root of 1/2
    (array([1. , 0.5]), 0.7071)
    """

    name: ClassVar[str] = "GMAP"
    eps: float = 1e-5
    rel: float = 1

    def __post_init__(self) -> None:
        if not self.eps > 0:
            raise UsageError(f"GMAP(eps={self.eps}): eps must be above 0")

    def of(self, ranking: Ranking) -> Floats:
        return np.maximum(AP(rel=self.rel).of(ranking), self.eps)

    def flips(self, scores: ArrayLike, candidates: Candidates) -> Floats:
        plain = AP(rel=self.rel)
        before = np.repeat(plain.per_query(scores, candidates), candidates.sizes)
        after = before + plain.flips(scores, candidates)
        return np.maximum(after, self.eps) - np.maximum(before, self.eps)

    def aggregate(self, values: Floats) -> float:
        return float(np.exp(super().aggregate(self.paired(values))))

    def paired(self, values: Floats) -> Floats:
        """Logarithms: what the geometric mean averages."""
        return np.log(values)
