"""Logistic regression: predict relevance itself, document by document (Taylor 2006, section 2.3).

The cost of a document with score s is the log loss of the probability 1 / (1 + e^-s) that it is relevant,

    log(1 + e^-s)  if it is relevant (label at least rel),   log(1 + e^s)  otherwise,

averaged over the documents of a query. "The assumption is that if we can predict the relevance of each document well,
we can also do well on the regular IR measures."

>>> from fliprank.data.candidates import Candidates
>>> cost, gradient = Logistic().value_and_grad([0.0, 0.0], Candidates.of([2, 0]))       # log 2 each
>>> round(cost, 6), gradient
(0.693147, array([-0.25,  0.25]))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.objectives.base import Objective, register
from fliprank.objectives.gains import labels_of

__all__ = ["Logistic"]


@register
@dataclass(frozen=True, eq=False)
class Logistic(Objective):
    """The mean over the query's documents of the log loss of "relevant", which is a label of at least `rel`."""

    name: ClassVar[str] = "logistic"
    maximise: ClassVar[bool] = False
    rel: float = 1

    def evaluate(self, scores: Floats, candidates: Candidates, share: Floats) -> tuple[Floats, Floats]:
        relevant = labels_of(candidates) >= self.rel
        wrong = np.where(relevant, -scores, scores)
        query, size = candidates.query_of_rows(), np.maximum(candidates.sizes, 1)
        values: Floats = np.bincount(query, np.logaddexp(0.0, wrong), minlength=candidates.queries) / size
        slope = np.exp(-np.logaddexp(0.0, -wrong))
        gradient: Floats = np.where(relevant, -slope, slope) * (share / size)[query]
        return values, gradient

    def curvature(self, scores: Floats, candidates: Candidates, gradient: Floats) -> Floats:
        """p (1 - p) of each document, over the number of its query's."""
        bend: Floats = np.exp(-np.logaddexp(0.0, scores) - np.logaddexp(0.0, -scores))
        return bend / np.maximum(candidates.sizes, 1)[candidates.query_of_rows()]
