"""What a measure is: a name that round-trips, a value for each query, and what it does on a flip.

A measure is a frozen dataclass in a file of its own; its fields are its parameters, in ir_measures' syntax
`Name(field=value, ...)@cutoff`. A rank-based one only says by which `Law` it pays; the kernels are shared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.measures.law import Law, Ranks, law_flips, law_values, tied_values
from fliprank.measures.ranking import Ranking, rank
from fliprank.naming import Named

__all__ = ["REGISTRY", "Measure", "RankMeasure", "register"]

REGISTRY: dict[str, type[Measure]] = {}
"""Measures by name, and by the other names that they answer to."""

M = TypeVar("M", bound="type[Measure]")


def register(*aliases: str) -> Any:
    """Make a measure known by its `name` and by `aliases`."""

    def known(measure: M) -> M:
        for name in (measure.name, *aliases):
            REGISTRY[name] = measure
        return measure

    return known


@dataclass(frozen=True)
class Measure(Named, ABC):
    """A measure of a ranking. Subclasses give `name`, their parameters as fields, and `of`."""

    smaller_is_better: ClassVar[bool] = False

    def per_query(self, scores: ArrayLike, candidates: Candidates) -> Floats:
        """The value of each query when its rows are ranked by `scores`."""
        return self.of(rank(scores, candidates, depth=self.depth))

    @property
    def sign(self) -> float:
        """1.0 where larger values are better, -1.0 where smaller ones are: sign x value is always to be maximised."""
        return -1.0 if self.smaller_is_better else 1.0

    def value(self, scores: ArrayLike, candidates: Candidates) -> float:
        """The one number for all queries when rows are ranked by `scores`."""
        return self.aggregate(self.per_query(scores, candidates))

    @abstractmethod
    def of(self, ranking: Ranking) -> Floats:
        """The value of each query of a ranking that is at least `depth` deep."""

    @abstractmethod
    def flips(self, scores: ArrayLike, candidates: Candidates) -> Floats:
        """For each row, in ranked order, the change of its query's value if it and the row ranked next swapped.

        The value at `offsets[q] + r - 1` belongs to the flip of ranks r and r + 1 of query q; its last is 0.
        """

    @property
    def depth(self) -> int | None:
        """The last rank that can matter; None for all."""
        return None

    def empty(self, candidates: Candidates) -> NDArray[np.bool_]:
        """Which queries have no relevant document, so that no ranking can do well or badly."""
        return np.equal(candidates.judgements.count(getattr(self, "rel", None) or 1), 0)

    def aggregate(self, values: Floats) -> float:
        """One number for many queries: their mean, NaN values left out."""
        known = values[~np.isnan(values)]
        return float(known.mean()) if len(known) else float("nan")

    def paired(self, values: Floats) -> Floats:
        """The values on the scale on which queries are averaged, and so compared."""
        return values


@dataclass(frozen=True)
class RankMeasure(Measure):
    """A measure that pays by a `Law`: subclasses give `law(candidates)`, the rest follows."""

    @abstractmethod
    def law(self, candidates: Candidates) -> Law:
        """By what law it pays on these candidates."""

    def law_for(self, candidates: Candidates) -> Law:
        """The law on these candidates, worked out once."""
        if self not in candidates.memo:
            candidates.memo[self] = self.law(candidates)
        law: Law = candidates.memo[self]
        return law

    def of(self, ranking: Ranking) -> Floats:
        law = self.law_for(ranking.candidates)
        if ranking.ties == "average":
            return self._of_tied(ranking, law)
        found = (ranking.start, ranking.count, ranking.entry, ranking.rank)
        return law_values(*found, law.gain, law.discount, law.limit, law.above, law.ranks)

    def _of_tied(self, ranking: Ranking, law: Law) -> Floats:
        if law.above not in (-1, -2) or law.ranks != Ranks.ALL:
            raise UsageError(f"{self} is not defined where tied documents share their ranks")
        candidates = ranking.candidates
        return tied_values(
            candidates.offsets,
            ranking.scores,
            ranking.order(),
            candidates.judgements.entry_of_row,
            law.gain,
            np.concatenate([[0.0], np.cumsum(law.discount)]),
            law.above,
        )

    def flips(self, scores: ArrayLike, candidates: Candidates) -> Floats:
        law, ranking = self.law_for(candidates), rank(scores, candidates)
        entries = candidates.judgements.entry_of_row
        return law_flips(
            ranking.order(), candidates.offsets, entries, law.gain, law.discount, law.limit, law.above, law.ranks
        )

    @property
    def depth(self) -> int | None:
        return None if getattr(self, "judged_only", False) else getattr(self, "cutoff", None)

    def empty(self, candidates: Candidates) -> NDArray[np.bool_]:
        none: NDArray[np.bool_] = self.law_for(candidates).relevant == 0
        return none
