"""Conventions: what else must be settled before a measure is a number, and how each tool settles it.

Same scores and labels, five values of nDCG@3: tools differ in the gain of a label, in the order of tied documents, in
what a query without relevant documents is worth, in whether a query that a run lacks counts. fliprank's own convention
is explicit about each; the others reproduce what the tool of that name would print.

>>> from fliprank.data.candidates import Candidates
>>> rows = Candidates.of([0, 2, 1])                                    # all tied
>>> for name in ("fliprank", "lightgbm", "sklearn"):
...     reading = CONVENTIONS[name].read("nDCG@3")
...     print(name, reading.measure, reading.per_query([1, 1, 1], rows).round(4))
fliprank nDCG@3 [0.6697]
lightgbm nDCG(dcg='exp-log2')@3 [0.659]
sklearn nDCG@3 [0.81]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.measures.base import Measure
from fliprank.measures.names import parse_measure
from fliprank.measures.ranking import Ranking, rank
from fliprank.measures.ties import TIES, Ties, checked_ties

__all__ = ["CONVENTIONS", "Convention", "Reading", "find_convention"]

Empty = Literal["zero", "one", "skip"]
Missing = Literal["zero", "skip"]
Rule = tuple[Callable[[Any], Measure], Empty]


@dataclass(frozen=True)
class Convention:
    """How a tool settles ties, queries without relevant documents (`empty`), and queries that a run lacks (`missing`).

    `rules` holds, for each measure that the tool has, what the tool means by it and what an empty query is worth; no
    rules: every measure, as it is. `single` says that the tool rounds scores to single precision before it sorts.
    `seed` is the random seed of ties that are settled at random.
    """

    name: str
    ties: Ties = "docid"
    empty: Empty = "zero"
    missing: Missing = "zero"
    single: bool = False
    rules: Mapping[str, Rule] = field(default_factory=dict)
    seed: int = 0

    def read(self, name: str | Measure) -> Reading:
        """What a measure's name means under this convention."""
        measure = parse_measure(name)
        if not self.rules:
            return Reading(str(measure), measure, self, self.empty)
        if measure.name not in self.rules:
            raise UsageError(f"{self.name} has no measure {measure}; under its convention: {', '.join(self.rules)}")
        adapt, empty = self.rules[measure.name]
        return Reading(str(measure), adapt(measure), self, empty)

    def values(self, readings: Iterable[Reading], scores: ArrayLike, candidates: Candidates) -> list[Floats]:
        """What each reading gives per query, for rows that this tool ranks by `scores`: from one ranking if it can."""
        exact = np.asarray(scores, np.float64)
        rounded = exact.astype(np.float32).astype(np.float64) if self.single else exact
        chosen = list(readings)
        if self.ties in ("pessimistic", "optimistic"):  # the worst order for one measure need not be that for another
            each = (r.measure.rank(rounded, candidates, ties=self.ties) for r in chosen)
            return [reading.of(ranking) for reading, ranking in zip(chosen, each, strict=True)]
        depths = [reading.measure.depth for reading in chosen]
        depth = None if None in depths else max(d for d in depths if d is not None)
        ranking = rank(rounded, candidates, depth=depth, ties=self.ties, seed=self.seed)
        return [reading.of(ranking) for reading in chosen]

    def explain(self) -> list[tuple[str, str]]:
        """(question, answer) for each thing that a printed number depends on."""
        precision = " (scores rounded to single precision)" if self.single else ""
        empty = [] if self.rules else [("queries without relevant documents", EMPTY[self.empty])]
        return [
            ("ties", TIES[self.ties] + precision),
            ("unjudged documents", "count as not relevant; judged_only=True leaves them out, Judged@k counts them"),
            ("queries that a run lacks", MISSING[self.missing]),
            *empty,
        ]


@dataclass(frozen=True)
class Reading:
    """A measure as read under a convention; `label` is the name that was asked for."""

    label: str
    measure: Measure
    convention: Convention
    empty: Empty

    def of(self, ranking: Ranking) -> Floats:
        """The value of each query, with empty ones as the convention has it; NaN is left out of means."""
        values = self.measure.of(ranking)
        if self.empty != "zero":
            nothing = self.measure.empty(ranking.candidates)
            values = np.where(nothing, 1.0 if self.empty == "one" else np.nan, values)
        return values

    def per_query(self, scores: ArrayLike, candidates: Candidates) -> Floats:
        """The value of each query when its rows are ranked by `scores`."""
        return self.convention.values([self], scores, candidates)[0]


MISSING = {"zero": "count, with nothing retrieved", "skip": "are left out of the mean"}
EMPTY = {"zero": "score 0 and count", "one": "score 1 and count", "skip": "are left out of the mean"}


def _as_it_is(measure: Measure) -> Measure:
    return measure


def _changed(**parameters: Any) -> Callable[[Any], Measure]:
    """The measure with some parameters as the tool has them; the cut-off and relevance level stay."""
    return lambda measure: replace(measure, **parameters)


def _needing_cutoff(**parameters: Any) -> Callable[[Any], Measure]:
    def adapt(measure: Any) -> Measure:
        if measure.cutoff is None:
            raise UsageError(f"this tool needs a cut-off: {measure.name}@10, say")
        return _changed(**parameters)(measure)

    return adapt


_PLAIN: Rule = (_as_it_is, "zero")
_TREC = ("P", "R", "AP", "GMAP", "Rprec", "RR", "Success", "nDCG", "Bpref", "SetP", "SetR", "SetF")
_RANX = ("P", "R", "AP", "Rprec", "RR", "Success", "DCG", "nDCG", "RBP")

CONVENTIONS: dict[str, Convention] = {
    convention.name: convention
    for convention in (
        Convention("fliprank"),
        Convention("trec_eval", missing="skip", single=True, rules=dict.fromkeys(_TREC, _PLAIN)),
        Convention(
            "lightgbm",
            ties="rows",
            rules={"nDCG": (_needing_cutoff(dcg="exp-log2"), "one"), "AP": (_needing_cutoff(norm="cutoff"), "one")},
        ),
        Convention(
            "xgboost",
            ties="rows",
            single=True,
            rules={
                "nDCG": (_needing_cutoff(dcg="exp-log2"), "one"),
                "AP": (_needing_cutoff(norm="cutoff"), "one"),
                "P": (_changed(norm="retrieved"), "zero"),
            },
        ),
        Convention("sklearn", ties="together", rules=dict.fromkeys(("nDCG", "DCG", "AP"), _PLAIN)),
        Convention("ranx", ties="rows", rules=dict.fromkeys(_RANX, _PLAIN)),
        Convention(
            "letor", ties="rows", rules={"nDCG": (_changed(dcg="exp-letor"), "zero"), "AP": _PLAIN, "P": _PLAIN}
        ),
    )
}


def find_convention(name: str | Convention, ties: str | None = None, seed: int = 0) -> Convention:
    """The convention of this name; with `ties` it settles ties by that rule instead of its own."""
    if not isinstance(name, Convention):
        if name not in CONVENTIONS:
            raise UsageError(f"unknown convention {name!r}; there are {', '.join(CONVENTIONS)}")
        name = CONVENTIONS[name]
    return name if ties is None else replace(name, ties=checked_ties(ties), seed=seed)
