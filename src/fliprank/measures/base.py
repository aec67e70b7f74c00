"""What a measure is: a name that round-trips, a value for each query, and what it does on a flip.

A measure is a frozen dataclass in a file of its own; its fields are its parameters, in ir_measures' syntax
`Name(field=value, ...)@cutoff`. A rank-based one only says by which `Law` it pays; the kernels are shared.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.measures.law import Above, Law, Ranks, law_flips, law_values
from fliprank.measures.ranking import Ranking, rank
from fliprank.measures.ties import TiedRows, Ties, tied_values
from fliprank.naming import Named

__all__ = ["REGISTRY", "Measure", "RankMeasure", "register"]

REGISTRY: dict[str, type[Measure]] = {}
"""Measures by name, and by the other names that they answer to."""

M = TypeVar("M", bound="type[Measure]")
T = TypeVar("T")


def register(*aliases: str) -> Any:
    """Make a measure known by its `name` and by `aliases`."""

    def known(measure: M) -> M:
        for name in (measure.name, *aliases):
            REGISTRY[name] = measure
        return measure

    return known


class MeasureType(ABCMeta):
    """Lets a measure's class take a cut-off: `nDCG @ 10` is `nDCG(cutoff=10)`."""

    def __matmul__(cls: type[T], cutoff: int) -> T:
        if "cutoff" not in {f.name for f in fields(cls)}:  # type: ignore[arg-type]
            raise UsageError(f"{cls.name} has no cut-off")  # type: ignore[attr-defined]
        return cls(cutoff=cutoff)  # type: ignore[call-arg]


@dataclass(frozen=True)
class Measure(Named, metaclass=MeasureType):
    """A measure of a ranking. Subclasses give `name`, their parameters as fields, `of` and `flips`."""

    smaller_is_better: ClassVar[bool] = False

    def per_query(self, scores: ArrayLike, candidates: Candidates, *, ties: Ties = "docid", seed: int = 0) -> Floats:
        """The value of each query when its rows are ranked by `scores`; `ties` as in `measures.ties`."""
        return self.of(self.rank(scores, candidates, ties=ties, seed=seed))

    def rank(self, scores: ArrayLike, candidates: Candidates, *, ties: Ties = "docid", seed: int = 0) -> Ranking:
        """The ranking of the rows by `scores`, as deep as this measure needs, ties settled for it."""
        worth = self.worth(candidates) if ties in ("pessimistic", "optimistic") else None
        return rank(scores, candidates, depth=self.depth, ties=ties, worth=worth, seed=seed)

    @property
    def sign(self) -> float:
        """1.0 where larger values are better, -1.0 where smaller ones are: sign x value is always to be maximised."""
        return -1.0 if self.smaller_is_better else 1.0

    def value(self, scores: ArrayLike, candidates: Candidates, *, ties: Ties = "docid", seed: int = 0) -> float:
        """The one number for all queries when rows are ranked by `scores`."""
        return self.aggregate(self.per_query(scores, candidates, ties=ties, seed=seed))

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

    def worth(self, candidates: Candidates) -> Floats:
        """What each row is worth: of two neighbours, the one that is worth more had better rank first."""
        return np.nan_to_num(candidates.labels, nan=-np.inf)

    def empty(self, candidates: Candidates) -> NDArray[np.bool_]:
        """Which queries have no relevant document, so that no ranking can do well or badly."""
        return np.equal(candidates.judgements.count(getattr(self, "rel", None) or 1), 0)

    def aggregate(self, values: Floats) -> float:
        """One number for many queries: their mean on the scale of `paired`, NaN values left out."""
        known = values[~np.isnan(values)]
        return float(self.unpaired(self.paired(known).mean())) if len(known) else float("nan")

    def paired(self, values: Floats) -> Floats:
        """The values on the scale on which queries are averaged, and so compared."""
        return values

    def unpaired(self, means: Any) -> Any:
        """Means on the scale of `paired`, back on that of the measure."""
        return means


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

    def worth(self, candidates: Candidates) -> Floats:
        """The gain of each row, worked out once; 0 where nobody judged it."""
        key = (self, "gain of rows")
        if key not in candidates.memo:
            gain = np.zeros(len(candidates))
            gain[candidates.judgements.row] = self.law_for(candidates).gain
            candidates.memo[key] = gain
        found: Floats = candidates.memo[key]
        return found

    def of(self, ranking: Ranking) -> Floats:
        if ranking.ties in ("average", "together"):
            return self._of_tied(ranking)
        return law_values(ranking.entries, self.law_for(ranking.candidates).arrays)

    def _of_tied(self, ranking: Ranking) -> Floats:
        law, candidates, together = self.law_for(ranking.candidates), ranking.candidates, ranking.ties == "together"
        if (together and (law.above not in (Above.ANY, Above.COUNT) or law.ranks != Ranks.ALL)) or (
            law.ranks == Ranks.NONRELEVANT and law.above != Above.ANY
        ):
            raise UsageError(f"{self} has no formula for ties={ranking.ties!r}: settle them by another rule")
        entries = candidates.judgements.entry_of_row
        rows = TiedRows(candidates.offsets, ranking.scores, ranking.order(), entries)
        return tied_values(rows, law.arrays, together)

    def flips(self, scores: ArrayLike, candidates: Candidates) -> Floats:
        order, entries = rank(scores, candidates).order(), candidates.judgements.entry_of_row
        return law_flips(order, candidates.offsets, entries, self.law_for(candidates).arrays)

    @property
    def depth(self) -> int | None:
        return None if getattr(self, "judged_only", False) else getattr(self, "cutoff", None)

    def empty(self, candidates: Candidates) -> NDArray[np.bool_]:
        none: NDArray[np.bool_] = self.law_for(candidates).relevant == 0
        return none
