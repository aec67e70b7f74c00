"""GM and GMAP: geometric means over queries, which weigh the worst queries most (R & Z 2007, section 2.2).

"A current approach to emphasizing poor performance is to take a geometric mean of the measure rather than the usual
arithmetic mean - or equivalently to apply a log transformation to the measure before averaging."
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.measures.average_precision import AP
from fliprank.measures.base import Measure, register
from fliprank.measures.ranking import Ranking

__all__ = ["GM", "GMAP", "GeometricMean"]


@dataclass(frozen=True)
class GeometricMean(Measure):
    """The geometric mean of the `plain` measure; below `eps` it counts as `eps`, so that one bad query is not the end.

    Where ties are averaged, it is the geometric mean of the plain measure's averages.
    """

    eps: float = field(default=1e-5, kw_only=True)

    def __post_init__(self) -> None:
        if not self.eps > 0:
            raise UsageError(f"{self.name}(eps={self.eps}): eps must be above 0")
        object.__setattr__(self, "smaller_is_better", self.plain.smaller_is_better)

    @property
    @abstractmethod
    def plain(self) -> Measure:
        """The measure whose geometric mean it is."""

    @property
    def depth(self) -> int | None:
        return self.plain.depth

    def worth(self, candidates: Candidates) -> Floats:
        return self.plain.worth(candidates)

    def empty(self, candidates: Candidates) -> NDArray[np.bool_]:
        return self.plain.empty(candidates)

    def of(self, ranking: Ranking) -> Floats:
        return self.floored(self.plain.of(ranking))

    def floored(self, values: Floats) -> Floats:
        """Values of the plain measure, those below `eps` raised to it."""
        return np.maximum(values, self.eps)

    def flips(self, scores: ArrayLike, candidates: Candidates) -> Floats:
        before = np.repeat(self.plain.per_query(scores, candidates), candidates.sizes)
        return self.floored(before + self.plain.flips(scores, candidates)) - self.floored(before)

    def paired(self, values: Floats) -> Floats:
        """Logarithms: what the geometric mean averages."""
        return np.log(values)

    def unpaired(self, means: Any) -> Any:
        return np.exp(means)


@register()
@dataclass(frozen=True)
class GM(GeometricMean):
    """The geometric mean over queries of a measure; values below `eps` count as `eps`.

    >>> from fliprank.data.candidates import Candidates
    >>> from fliprank.measures.reciprocal_rank import RR
    >>> two = Candidates.of([1, 0, 0, 1], group=[2, 2])
    >>> str(GM(RR() @ 5)), round(GM(RR() @ 5).value([2, 1, 2, 1], two), 4)      # 1 and 1/2: the root of 1/2
    ('GM(RR@5)', 0.7071)
    """

    name: ClassVar[str] = "GM"
    measure: Measure = field(default_factory=AP)

    def __post_init__(self) -> None:
        if isinstance(self.measure, GeometricMean):
            raise UsageError(f"GM({self.measure}): {self.measure} is a geometric mean already")
        super().__post_init__()

    @property
    def plain(self) -> Measure:
        return self.measure

    def __str__(self) -> str:
        return f"GM({self.measure}" + (f",eps={self.eps!r})" if self.eps != 1e-5 else ")")

    def meaning(self) -> str:
        return f"{super().meaning()} {self.measure}: {self.measure.meaning()}"


@register()
@dataclass(frozen=True)
class GMAP(GeometricMean):
    """The geometric mean of average precision: GM(AP) by its usual name.

    >>> from fliprank.data.candidates import Candidates
    >>> two = Candidates.of([1, 0, 0, 1], group=[2, 2])
    >>> values = GMAP().per_query([2, 1, 2, 1], two)
    >>> values, round(GMAP().aggregate(values), 4)      # 1 and 1/2: the root of 1/2
    (array([1. , 0.5]), 0.7071)
    """

    name: ClassVar[str] = "GMAP"
    rel: float = 1

    @property
    def plain(self) -> Measure:
        return AP(rel=self.rel)
