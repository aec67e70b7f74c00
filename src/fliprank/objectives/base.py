"""What an objective is: a smooth function of the scores, its exact gradient, and a name that round-trips.

An objective is a frozen dataclass; its fields are its parameters, written as `name(field=value, ...)@cutoff`. It gives
each query a value and each score a gradient; models turn the gradient by score into one by parameter (SoftRank, eq.
16).

An unjudged row counts as label 0. A query that carries no information (one document, all gains equal, nothing relevant)
has value 0 and gradient 0. The value of a query never depends on the other queries, so the queries of a data set can be
evaluated in parts, wherever they are: `take` gives the objective for a part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, frozen
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.naming import Named, same

__all__ = ["REGISTRY", "Objective", "register"]

REGISTRY: dict[str, type[Objective]] = {}
"""Objectives by name."""

FLAT = 1e-9
"""The curvature of a score that changes nothing: it weighs next to nothing in a leaf."""

O = TypeVar("O", bound="type[Objective]")  # noqa: E741


def register(objective: O) -> O:
    """Make an objective known by its `name`."""
    REGISTRY[objective.name] = objective
    return objective


@dataclass(frozen=True, eq=False)
class Objective(Named, ABC):
    """A smooth objective. Subclasses give `name`, `maximise`, their parameters as fields, and `evaluate`."""

    maximise: ClassVar[bool]

    @abstractmethod
    def evaluate(self, scores: Floats, candidates: Candidates, share: Floats) -> tuple[Floats, Floats]:
        """The value of each query, and the gradient of the sum of share x value with respect to the scores.

        A query whose share is 0 gets its value but no gradient, which is cheaper.
        """

    def value_and_grad(
        self, scores: ArrayLike, candidates: Candidates, weights: ArrayLike | None = None
    ) -> tuple[float, Floats]:
        """The weighted mean over queries, and its gradient with respect to the scores.

        `weights` has one weight per query (equal by default); they are scaled to add up to 1.
        """
        share = _shares(weights, candidates)
        values, gradient = self.evaluate(_checked(scores, candidates), candidates, share)
        return float(values @ share), gradient

    def per_query(self, scores: ArrayLike, candidates: Candidates) -> Floats:
        """The value of each query."""
        return self.evaluate(_checked(scores, candidates), candidates, np.zeros(candidates.queries))[0]

    def newton(self, scores: ArrayLike, candidates: Candidates) -> tuple[float, Floats, Floats]:
        """The mean over queries; and of the cost summed over queries, its gradient and a curvature above 0, by score.

        What boosted trees descend by: a leaf moves its rows by minus the sum of their gradients over the sum of their
        curvatures. The cost is to be made small (the sign of an objective that is maximised is turned), and summed, not
        averaged, so that a leaf of so many rows weighs the same in a small and in a large data set.
        """
        value, mean = self.value_and_grad(scores, candidates)
        gradient: Floats = mean * (-candidates.queries if self.maximise else candidates.queries)
        return value, gradient, np.maximum(self.curvature(_checked(scores, candidates), candidates, gradient), FLAT)

    def curvature(self, scores: Floats, candidates: Candidates, gradient: Floats) -> Floats:
        """The second derivative of the summed cost by each score, or where it may be negative, what stands for it.

        By default that is the mean of |gradient| and of its average over all rows that have one. A leaf then moves by
        at most 2 units of the scores, whichever they are, by more the more of its rows agree, and by little if its rows
        have gradients below the average. On held-out training queries of MQ2008 a constant was far worse, |gradient|
        alone as good or slightly worse.
        """
        size = np.abs(gradient)
        pulled = size > 0
        average = float(size[pulled].mean()) if pulled.any() else 0.0
        return np.where(pulled, (size + average) / 2, 0.0)

    def at(self, progress: float) -> Self:
        """The objective at this progress of the training, from 0 (start) to 1 (end): by default always the same."""
        return self

    def take(self, rows: ArrayLike) -> Self:
        """The same objective for candidates that consist of just these rows: rising row numbers of the whole.

        Only an objective with a parameter per row differs from the whole's.
        """
        return self

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    def __hash__(self) -> int:
        return hash(str(self))


def one_of(objective: Objective, field: str, *options: str) -> None:
    """Raises an error that lists the options if the field is none of them."""
    if (value := getattr(objective, field)) not in options:
        raise UsageError(f"{objective.name}({field}={value!r}): {field} is one of {', '.join(map(repr, options))}")


def _checked(scores: ArrayLike, candidates: Candidates) -> Floats:
    values = frozen(scores, np.float64)
    if values.shape != candidates.labels.shape:
        raise InputError(f"scores of shape {values.shape} for {len(candidates)} rows")
    if not np.isfinite(values).all():
        row = int((~np.isfinite(values)).argmax())
        query = int(np.searchsorted(candidates.offsets, row, "right")) - 1
        raise InputError(f"the score of row {row} is {values[row]}", query=candidates.qids[query])
    return values


def _shares(weights: ArrayLike | None, candidates: Candidates) -> Floats:
    if weights is None:
        return np.full(candidates.queries, 1.0 / max(candidates.queries, 1))
    given = np.asarray(weights, np.float64)
    if given.shape != (candidates.queries,):
        raise UsageError(f"weights of shape {given.shape} for {candidates.queries} queries")
    if not np.isfinite(given).all() or (given < 0).any() or (given.size and given.sum() == 0):
        raise UsageError("weights of queries must be finite, not below 0, and not all 0")
    out: Floats = given / given.sum()
    return out
