"""What an objective is: a smooth function of the scores, its exact gradient, and a name that round-trips.

An objective is a frozen dataclass; its fields are its parameters, written as `name(field=value, ...)@cutoff`. It values
each query and pulls at each score; models turn the pull on scores into a pull on parameters (SoftRank, eq. 16).

An unjudged row counts as label 0. A query that tells nothing (one document, all gains equal, nothing relevant)
contributes 0 and pulls at nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, frozen
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.naming import Named, same

__all__ = ["REGISTRY", "Objective", "register"]

REGISTRY: dict[str, type[Objective]] = {}
"""Objectives by name."""

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
        """Each query's value, and the gradient of the sum of share x value with respect to the scores.

        A query whose share is 0 gets its value and no gradient, which is cheaper.
        """

    def value_and_grad(
        self, scores: ArrayLike, candidates: Candidates, weights: ArrayLike | None = None
    ) -> tuple[float, Floats]:
        """The weighted mean over queries, and its gradient with respect to the scores.

        `weights` are one a query, equal by default, and are scaled to add up to 1.
        """
        share = _shares(weights, candidates)
        values, gradient = self.evaluate(_checked(scores, candidates), candidates, share)
        return float(values @ share), gradient

    def per_query(self, scores: ArrayLike, candidates: Candidates) -> Floats:
        """The value of each query."""
        return self.evaluate(_checked(scores, candidates), candidates, np.zeros(candidates.queries))[0]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    def __hash__(self) -> int:
        return hash(str(self))


def one_of(objective: Objective, field: str, *options: str) -> None:
    """An error that names the options where the field is none of them."""
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
        raise UsageError("weights of queries are finite, not below 0, and not all 0")
    out: Floats = given / given.sum()
    return out
