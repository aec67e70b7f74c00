"""Which features does a model owe its quality to? Each is taken away in turn, and the queries say what that costs.

To take a feature away, all documents of a query get the mean of that query: the feature no longer says which of them is
better, and no value is far from those that the model knows. (Shuffling, `how="permute"`, keeps the values that occur
but adds noise, which costs more than the lack of a feature does.) A feature with one value per query gets the mean of
all rows. Of a text model, the terms of a field are taken away, or a parameter is set back to its default. Use queries
that the model was not trained on: on its own it seems to need whatever it has learnt by heart. Of two features that say
the same, each alone can be spared.

>>> rng = np.random.default_rng(0)
>>> x = rng.normal(size=(600, 2))
>>> rows = Candidates.of(x[:, 0] > 1, group=[20] * 30, features=x, feature_names=["good", "noise"])
>>> from fliprank.models import Linear
>>> found = importance(Linear().prepared(rows, 0).at([0, 1, 0.01]), rows, measure="AP")
>>> [(each.name, each.drop > 0.1, round(each.weight, 2)) for each in found.rows]
[('good', True, 1.0), ('noise', False, 0.01)]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import InputError, UsageError, indented
from fliprank.experiment.significance import bootstrap_interval, holm, p_value, randomisation
from fliprank.measures import Measure, parse_measure
from fliprank.models import Model
from fliprank.models.ablation import column_of, query_means, without_field, without_of
from fliprank.models.feature_subset import matching_features

if TYPE_CHECKING:
    import polars as pl

__all__ = ["HOW", "Importance", "Worth", "importance"]

HOW = ("mean", "permute")
"""How a feature is taken away: the mean of the query for all its rows, or its values shuffled among them."""

KINDS = ("feature", "field", "parameter")
"""What can be taken away from a model."""

SAMPLES = 2000
"""Of the bootstrap: there may be hundreds of features, and an interval to a few percent is enough here."""

SHOWN = 10
"""Rows that are shown when a person looks at it."""


@dataclass(frozen=True)
class Worth:
    """What the model loses without one `name`: how far the measure gets worse (`drop`, below 0 if it gets better).

    `low` to `high` is its interval over queries, `p` that of the paired randomisation test, `p_holm` corrected for all
    that were tested. `worse` of the queries get worse without it, `better` better. `weight` is how much of the spread
    of scores within a query comes from it: of a linear model the weight times the spread of the feature, over that of
    the scores; below 0 where larger values of a feature mean lower scores.
    """

    name: str
    kind: str
    drop: float
    low: float
    high: float
    p: float
    p_holm: float
    worse: int
    better: int
    weight: float


@dataclass(frozen=True, eq=False, repr=False)
class Importance:
    """`rows` are sorted by what they are worth; `value` is the mean of the measure with everything in place."""

    measure: Measure
    value: float
    queries: int
    rows: tuple[Worth, ...]
    how: str

    def records(self) -> list[dict[str, Any]]:
        """One record per row, for files and frames."""
        return [asdict(row) for row in self.rows]

    def to_frame(self) -> pl.DataFrame:
        """The rows as a polars frame."""
        import polars as pl

        return pl.DataFrame(self.records())

    def content(self) -> dict[str, Any]:
        """All of it, as JSON."""
        known = {"measure": str(self.measure), "value": self.value, "queries": self.queries, "how": self.how}
        return known | {"importance": self.records()}

    def __repr__(self) -> str:
        told = [
            f"{row.name}: {row.drop:+.4f} ({row.low:+.4f} to {row.high:+.4f}), p = {p_value(row.p_holm)}"
            for row in self.rows[:SHOWN]
        ]
        more = [f"... and {len(self.rows) - SHOWN} more"] if len(self.rows) > SHOWN else []
        heading = f"Importance: what {self.measure} of {self.value:.4f} on {self.queries:,} queries loses without"
        return indented(heading, *told, *more)


@checked
def importance(
    model: Model,
    candidates: Candidates,
    measure: str | Measure = DEFAULT_MEASURE,
    *,
    of: str | Iterable[str] | None = None,
    features: str | Iterable[str] | None = None,
    how: str = "mean",
    repeats: int = 5,
    confidence: float = 0.95,
    permutations: int = 20_000,
    seed: int = 0,
) -> Importance:
    """What `measure` on these queries loses when each feature, field or parameter is taken away.

    `of` says which of "feature", "field" and "parameter"; without it, what the model reads, and for text models the
    parameters too. `features` are names of features, in which a star stands for any letters. With `how="permute"` the
    values of a feature are shuffled within each query, `repeats` times.
    """
    _check(model, candidates, how, repeats)
    chosen, kinds = parse_measure(measure), _kinds(model, candidates, of)
    base = model.score(candidates)
    known = chosen.sign * chosen.paired(chosen.per_query(base, candidates))
    found = _Drops(chosen, candidates, base, known)
    for kind in kinds:
        if kind == "feature":
            found.add_features(model, features, how, repeats, seed)
        elif kind == "field":
            found.add_fields(model)
        else:
            found.add_parameters(model)
    rows = _tested(found, confidence, permutations, seed)
    counted = int((~np.isnan(known)).sum())
    return Importance(chosen, chosen.value(base, candidates), counted, rows, how)


@dataclass(frozen=True, eq=False)
class _Drops:
    """What was taken away so far: of each the drop of every query, and its weight."""

    measure: Measure
    candidates: Candidates
    base: Floats
    known: Floats
    found: list[tuple[str, str, Floats, float]] = field(default_factory=list)

    def _drop(self, scores: Floats) -> Floats:
        moved = self.measure.sign * self.measure.paired(self.measure.per_query(scores, self.candidates))
        drop: Floats = self.known - moved
        return drop

    def add(
        self, name: str, kind: str, scores: Floats, along: Floats | None = None, drop: Floats | None = None
    ) -> None:
        """One more; `along` is the feature itself, which gives the weight its sign."""
        offsets = self.candidates.offsets
        change, spread = self.base - scores, _within(self.base, offsets)
        change = change - query_means(change, offsets)
        size = float(np.sqrt(np.mean(change**2)) / spread) if spread > 0 else 0.0
        falls = along is not None and float(np.nansum(change * (along - query_means(along, offsets)))) < 0
        self.found.append((name, kind, self._drop(scores) if drop is None else drop, -size if falls else size))

    def add_features(self, model: Model, names: Any, how: str, repeats: int, seed: int) -> None:
        rows = self.candidates
        assert rows.features is not None
        wanted = (names,) if isinstance(names, str) else () if names is None else tuple(names)
        chosen = set(matching_features(wanted, rows.feature_names) if wanted else rows.feature_names)
        without = without_of(model, rows, column_of(rows.features, rows.offsets))
        shuffled = []
        if how == "permute":
            rngs = [np.random.default_rng([seed, i]) for i in range(repeats)]
            shuffled = [without_of(model, rows, _shuffled(rows, rng)) for rng in rngs]
        for k, name in enumerate(rows.feature_names):
            if name in chosen:
                drop = np.mean([self._drop(each(k)) for each in shuffled], axis=0) if shuffled else None
                self.add(name, "feature", without(k), rows.features[:, k].astype(np.float64), drop)

    def add_fields(self, model: Model) -> None:
        terms = self.candidates.terms
        assert terms is not None
        for k, name in enumerate(terms.fields):
            self.add(name, "field", model.score(without_field(self.candidates, k)))

    def add_parameters(self, model: Model) -> None:
        params = model.params
        back = params.at(params.default).free_values
        for slot, name in enumerate(params.free_names):
            values = params.free_values.copy()
            values[slot] = back[slot]
            self.add(name, "parameter", model.at(params.with_free(values)).score(self.candidates))


def _tested(drops: _Drops, confidence: float, permutations: int, seed: int) -> tuple[Worth, ...]:
    """Each with its interval and p, corrected together, what costs most first."""
    known = [(name, kind, drop[~np.isnan(drop)], weight) for name, kind, drop, weight in drops.found]
    p = [randomisation(drop, permutations, seed) for _, _, drop, _ in known]
    corrected, rows = holm(p), []
    for (name, kind, drop, weight), own, joint in zip(known, p, corrected, strict=True):
        interval = bootstrap_interval(drop, confidence, SAMPLES, seed)
        counts = int((drop > 0).sum()), int((drop < 0).sum())
        rows.append(Worth(name, kind, float(drop.mean()), *interval, own, float(joint), *counts, weight))
    return tuple(sorted(rows, key=lambda row: (-row.drop, -abs(row.weight))))


def _within(values: Floats, offsets: Any) -> float:
    """The standard deviation within queries."""
    return float(np.sqrt(np.mean((values - query_means(values, offsets)) ** 2)))


def _shuffled(rows: Candidates, rng: np.random.Generator) -> Any:
    """Values of a feature shuffled within each query: the same rows change places in every feature."""
    assert rows.features is not None
    order = np.lexsort((rng.random(len(rows)), rows.query_of_rows()))
    features = rows.features
    return lambda k: features[order, k]


def _kinds(model: Model, rows: Candidates, of: str | Iterable[str] | None) -> list[str]:
    """What is taken away, in the order of KINDS."""
    reads = {"feature": "features" in model.needs or (rows.features is not None and rows.terms is None)}
    reads |= {"field": "terms" in model.needs, "parameter": bool(model.params.free_names)}
    if of is None:
        return [kind for kind in KINDS if reads[kind] and (kind != "parameter" or reads["field"])]
    asked = {of} if isinstance(of, str) else set(of)
    for kind in asked:
        if kind not in KINDS:
            raise UsageError(f"of: one or more of {', '.join(KINDS)}, not {kind!r}")
        if not reads[kind]:
            raise UsageError(f"of={kind!r}: this {model.kind} model has no {kind} to take away")
    return [kind for kind in KINDS if kind in asked]


def _check(model: Model, rows: Candidates, how: str, repeats: int) -> None:
    if how not in HOW:
        raise UsageError(f"how: one of {', '.join(HOW)}, not {how!r}")
    if repeats < 1:
        raise UsageError(f"repeats is a whole number from 1, not {repeats}")
    if not model.ready:
        raise UsageError(f"this {model.kind} model is not trained yet: there is nothing that it could lose")
    if not len(rows):
        raise InputError("there are no rows to rank")
