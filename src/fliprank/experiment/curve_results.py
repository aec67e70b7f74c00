"""What a learning curve came to: means with intervals, tests, the outlook, and tables of them.

A mean is over all repeats and test queries. Its interval counts both: repeats, which say how much depends on the draw
of training queries, and test queries (see `saturation.Resampled.half_width`). Tests are paired by test query, each with
its mean over the repeats that tested it: they say which of these curves is higher on such queries, given the training
sets that were drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import combinations, product
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.errors import UsageError, indented
from fliprank.experiment.saturation import Outlook, Resampled, outlook, resample
from fliprank.experiment.significance import holm, paired_t
from fliprank.measures import Measure

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CurvePoint", "LearningCurve", "RankerDifference"]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class CurvePoint:
    """A ranker at a size: the measure on test queries with its interval, and on its own training queries.

    `gain` is the difference to the smallest size, `p_smallest` that of the paired t-test against it (NaN there).
    """

    ranker: str
    size: int
    test: float
    low: float
    high: float
    training: float
    gain: float
    p_smallest: float


@dataclass(frozen=True)
class RankerDifference:
    """`ranker` minus `other` at a size, with the p of the paired t-test, plain and by Holm over all such tests."""

    size: int
    ranker: str
    other: str
    difference: float
    p: float
    p_holm: float


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve:
    """`values[ranker]` (sizes x repeats x test queries; NaN where not tested) and `training[ranker]` (sizes x repeats).

    Values are on the scale on which `measure` averages queries. `overlap` is the share of training queries that two
    repeats have in common; `crossed` says that all repeats were tested on the same queries; `present` is the number of
    training queries from which the outlook starts: all that there are.
    """

    measure: Measure
    sizes: tuple[int, ...]
    values: dict[str, Floats]
    training: dict[str, Floats]
    overlap: Floats
    crossed: bool
    present: int
    interrupted: bool = False
    settings: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        ends = [(ranker, [p for p in self.points() if p.ranker == ranker]) for ranker in self.values]
        told = [f"{name}: {p[0].test:.4f} with {p[0].size:,}, {p[-1].test:.4f} with {p[-1].size:,}" for name, p in ends]
        return indented(f"LearningCurve of {self.measure} by training queries, {self.repeats} repeats", *told)

    @property
    def repeats(self) -> int:
        """How many repeats are complete."""
        return int(next(iter(self.values.values())).shape[1])

    def at(self, sizes: Sequence[int]) -> LearningCurve:
        """The curve at some of its sizes: gains and tests are then against the smallest of these."""
        if missing := sorted(set(sizes) - set(self.sizes)):
            known = ", ".join(map(str, self.sizes))
            raise UsageError(f"the curve has no size {missing[0]}; it has {known}")
        kept = sorted(self.sizes.index(size) for size in set(sizes))
        return replace(
            self,
            sizes=tuple(self.sizes[i] for i in kept),
            values={ranker: values[kept] for ranker, values in self.values.items()},
            training={ranker: values[kept] for ranker, values in self.training.items()},
            overlap=self.overlap[kept],
        )

    def beside(self, other: LearningCurve) -> LearningCurve:
        """The rankers of both curves, which were drawn alike, at the sizes that both have."""
        if (self.settings, self.measure, self.repeats) != (other.settings, other.measure, other.repeats):
            raise UsageError("these curves have other queries, draws or measures: they can't be compared")
        shared = [size for size in self.sizes if size in other.sizes]
        if not shared:
            raise UsageError("these curves have no size in common")
        one, two = self.at(shared), other.at(shared)
        return replace(one, values=one.values | two.values, training=one.training | two.training)

    def by_query(self, ranker: str) -> Floats:
        """Sizes x test queries: the mean over the repeats that tested a query; NaN if none did."""
        values = self._values(ranker)
        known = ~np.isnan(values)
        count = known.sum(axis=1)
        total = np.where(known, values, 0.0).sum(axis=1)
        means: Floats = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
        return means

    def _values(self, ranker: str) -> Floats:
        if ranker not in self.values:
            raise UsageError(f"no curve of {ranker!r}: there are {', '.join(map(repr, self.values))}")
        return self.values[ranker]

    @cached_property
    def _resampled(self) -> dict[str, Resampled]:
        """Of each ranker, on the scale of the measure."""
        found = {}
        for ranker, values in self.values.items():
            drawn = resample(values, self.overlap, self.crossed)
            arrays = ("means", "by_repeats", "grown", "by_test")
            found[ranker] = drawn._replace(**{n: self.measure.unpaired(getattr(drawn, n)) for n in arrays})
        return found

    def points(self) -> list[CurvePoint]:
        """Every ranker at every size."""
        return list(self._points())

    def _points(self) -> Iterator[CurvePoint]:
        for ranker, drawn in self._resampled.items():
            queries = self.by_query(ranker)
            for i, size in enumerate(self.sizes):
                mean = float(drawn.means[i])
                half = drawn.half_width(itemgetter((slice(None), i)), CONFIDENCE)
                p = _paired(queries[i] - queries[0]) if i else float("nan")
                trained, gain = float(self.training[ranker][i].mean()), mean - float(drawn.means[0])
                yield CurvePoint(ranker, size, mean, mean - half, mean + half, trained, gain, p)

    def differences(self) -> list[RankerDifference]:
        """Every pair of rankers at every size."""
        found = []
        pairs = list(combinations(self.values, 2))
        for (i, size), (one, other) in product(enumerate(self.sizes), pairs):
            p = _paired(self.by_query(one)[i] - self.by_query(other)[i])
            means = [float(self._resampled[each].means[i]) for each in (one, other)]
            found.append((size, one, other, means[0] - means[1], p))
        return [RankerDifference(*each, float(q)) for each, q in zip(found, holm([f[-1] for f in found]), strict=True)]

    def outlook(self, ranker: str | None = None) -> Outlook:
        """Would more judgements help this ranker (by default the one that is best at the largest size)?"""
        chosen = self.best if ranker is None else ranker
        self._values(chosen)
        name = f"{self.measure}"
        return outlook(self.sizes, self._resampled[chosen], name, self.present, self.measure.sign, CONFIDENCE)

    @property
    def best(self) -> str:
        """The ranker with the best mean at the largest size."""
        return max(self._resampled, key=lambda ranker: self.measure.sign * self._resampled[ranker].means[-1])

    def records(self) -> list[dict[str, Any]]:
        """One record per ranker and size, for CSV files and frames."""
        return [asdict(point) for point in self.points()]

    def to_frame(self) -> pl.DataFrame:
        """The points as a polars frame."""
        import polars as pl

        return pl.DataFrame(self.records())

    def content(self) -> dict[str, Any]:
        """All of it, as JSON."""
        return {
            "measure": str(self.measure),
            "settings": self.settings,
            "sizes": list(self.sizes),
            "repeats": self.repeats,
            "test_queries": {"same_in_all_repeats": self.crossed},
            "interrupted": self.interrupted,
            "points": self.records(),
            "differences": [asdict(each) for each in self.differences()],
            "outlook": {ranker: asdict(self.outlook(ranker)) for ranker in self.values},
            "by_repeat": {
                ranker: self.measure.unpaired(_row_means(values)).tolist() for ranker, values in self.values.items()
            },
        }


def _row_means(values: Floats) -> Floats:
    """Sizes x repeats."""
    known = ~np.isnan(values)
    means: Floats = np.where(known, values, 0.0).sum(axis=2) / known.sum(axis=2)
    return means


def _paired(differences: Floats) -> float:
    known = differences[~np.isnan(differences)]
    return paired_t(known) if len(known) else float("nan")
