"""ERR@n: expected reciprocal rank (Chapelle et al. 2009): the label of a document is a chance that users stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.measures.base import RankMeasure, register
from fliprank.measures.dcg import LARGEST_EXPONENT
from fliprank.measures.law import Above, Law, by_rank

__all__ = ["ERR"]


@register()
@dataclass(frozen=True)
class ERR(RankMeasure):
    """The expected 1 / rank at which a user who reads from the top stops, pleased.

    A document satisfies with probability (2^label - 1) / 2^max; `max` is the highest grade, 4 as in TREC's gdeval.

    >>> from fliprank.data.candidates import Candidates
    >>> ERR(max=1).per_query([2, 1], Candidates.of([1, 1]))      # 1/2 + 1/2 x 1/2 x 1/2
    array([0.625])
    """

    name: ClassVar[str] = "ERR"
    cutoff: int | None = None
    max: float = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.max <= LARGEST_EXPONENT:
            raise UsageError(f"ERR(max={self.max!r}): the highest grade is from 0 to {LARGEST_EXPONENT}")

    def law(self, candidates: Candidates) -> Law:
        judged = candidates.judgements
        highest = judged.ideal.max(initial=0.0)
        if highest > self.max:
            raise InputError(
                f"a label of {highest:g} is above ERR's highest grade",
                hint=f"use ERR(max={highest:g})"
                if highest <= LARGEST_EXPONENT
                else f"grades go up to {LARGEST_EXPONENT}",
            )
        stop = (np.exp2(np.maximum(judged.label, 0)) - 1) / 2**self.max
        reciprocal = by_rank(candidates, self.cutoff, np.reciprocal)
        return Law(stop, reciprocal, judged.total(judged.ideal > 0), above=Above.SURVIVAL)
