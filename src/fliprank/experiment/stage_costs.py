"""What a document costs in each stage of a cascade: scoring it, and computing what the stage reads.

Scoring is timed. What a feature costs can't be seen in a feature file, so it is given: one number for all features, or
one for each. A stage pays only for features that no earlier stage has computed. Term statistics are timed where the
index is at hand. `includes` says which of these are in the figures.

>>> costs = StageCosts((1.0, 2.0), (frozenset("a"), frozenset("ab")), {"a": 5.0, "b": 7.0})
>>> costs.per_document([0, 1]), costs.per_document([1])                    # alone, the second computes both features
((6.0, 9.0), (14.0,))
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.data.files import open_text
from fliprank.data.order import order_rows
from fliprank.errors import InputError, UsageError
from fliprank.models.base import Model
from fliprank.models.cascade import Cascade
from fliprank.models.document_feature import Feature
from fliprank.models.feature_subset import FeatureSubset, matching_features
from fliprank.models.nested_rows import bare_rows, top_rows
from fliprank.models.stack import Stack
from fliprank.models.standardised import StandardisedModel
from fliprank.models.trees import Trees
from fliprank.text.index import Index
from fliprank.text.search.gather_statistics import statistics
from fliprank.text.search.queries import analyse

__all__ = ["FeatureCosts", "StageCosts", "Timed", "read_feature_costs", "stage_costs", "time_stages"]

FeatureCosts = float | Mapping[str, float]
"""What computing a feature of one document costs: the same for all, or by name; a star stands for any letters."""

TERMS = "term statistics"
"""What models of text read, beside the names of features."""

MICROSECONDS = "microseconds"


@dataclass(frozen=True)
class StageCosts:
    """`scoring` of a document by stage, what each stage `reads`, and the `prices` of what is read, in one unit."""

    scoring: tuple[float, ...]
    reads: tuple[frozenset[str], ...]
    prices: Mapping[str, float] = field(default_factory=dict)
    unit: str = ""
    includes: str = "as given"

    def per_document(self, stages: Sequence[int]) -> tuple[float, ...]:
        """The cost of a document in each of these stages, if these are all that the cascade has."""
        known, out = set[str](), []
        for stage in stages:
            new = sorted(self.reads[stage] - known)
            out.append(self.scoring[stage] + sum(self.prices.get(name, 0.0) for name in new))
            known |= self.reads[stage]
        return tuple(out)


class Timed(NamedTuple):
    """Microseconds per document: for scoring in each stage, and for gathering term statistics, if that was timed."""

    scoring: tuple[float, ...]
    gathering: float | None = None


def stage_costs(
    cascade: Cascade,
    rows: Candidates,
    scoring: Sequence[float] | Timed | None = None,
    feature_costs: FeatureCosts | None = None,
) -> StageCosts:
    """The costs of a cascade on these rows: scoring as given, in any unit, or timed; and features, in the same unit."""
    found = time_stages(cascade, rows) if scoring is None else scoring
    timed = found if isinstance(found, Timed) else None
    given = tuple(map(float, found.scoring if isinstance(found, Timed) else found))
    if len(given) != len(cascade.stages) or not all(0 <= cost < np.inf for cost in given):
        raise UsageError(f"costs {given}: give one number for each of {len(cascade.stages)} stages, none negative")
    reads = tuple(_reads(stage, rows) for stage in cascade.stages)
    prices = _prices(feature_costs, rows.feature_names)
    if timed is not None and timed.gathering is not None:
        prices[TERMS] = timed.gathering
    return StageCosts(given, reads, prices, MICROSECONDS if timed else "", _includes(timed is not None, reads, prices))


def _includes(timed: bool, reads: tuple[frozenset[str], ...], prices: Mapping[str, float]) -> str:
    """What is in the costs, and what is not, in words."""
    every = frozenset[str]().union(*reads)
    parts = ["scoring, timed on whole batches of rows" if timed else "scoring, as given"]
    if names := every - {TERMS}:
        priced = sum(name in prices for name in names)
        given = f"computing features, as given for {priced} of {len(names)}"
        parts.append(given if priced else "not computing the features, whose costs were not given")
    if TERMS in every:
        known = "gathering term statistics from the index, timed"
        unknown = "not gathering the term statistics, which can't be timed without the index"
        parts.append(known if TERMS in prices else unknown)
    return "; ".join(parts)


def time_stages(
    cascade: Cascade,
    rows: Candidates,
    index: Index | None = None,
    texts: Mapping[str, str] | None = None,
    *,
    tries: int = 5,
) -> Timed:
    """The time that a document takes in each stage, on as many rows as reach it: the least of several tries.

    Rows are scored all at once, on all cores: a batch takes less time per document than a single query would. With an
    index and the `texts` of the queries, gathering the term statistics is timed too.
    """
    order = order_rows(cascade.stages[0].score(rows), rows.offsets, rows.docids)
    scoring = []
    for s, (stage, size) in enumerate(zip(cascade.stages, cascade.sizes, strict=True)):
        sizes = rows.sizes if s == 0 else np.minimum(rows.sizes, size)
        reaching = np.sort(order if s == 0 else order[top_rows(rows.offsets, size)])
        if not len(reaching):
            raise InputError("costs can't be measured on no rows")
        few = bare_rows(rows, reaching, sizes)
        scoring.append(_least_time(partial(stage.score, few), tries) / len(reaching))
    if index is None or texts is None or rows.docids is None:
        return Timed(tuple(scoring))
    queries = analyse(index, {qid: texts[qid] for qid in rows.qids.tolist()})
    gather = partial(statistics, index, queries, rows.offsets, index.numbers_of(rows.docids))
    return Timed(tuple(scoring), _least_time(gather, tries) / len(rows))


def _least_time(work: Callable[[], object], tries: int) -> float:
    """Microseconds that the work takes at least; the first run, which may compile, does not count."""
    work()
    best = np.inf
    for _ in range(tries):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return 1e6 * best


def read_feature_costs(text: str) -> FeatureCosts:
    """One number for all features, or a file with lines NAME=MICROSECONDS, as on the command line.

    >>> read_feature_costs("2.5")
    2.5
    """
    try:
        return float(text)
    except ValueError:
        path = Path(text)
    if not path.is_file():
        raise UsageError(f"feature costs {text!r}: expected microseconds, or a file of NAME=MICROSECONDS lines")
    costs: dict[str, float] = {}
    with open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            name, _, cost = (part.strip() for part in line.rpartition("="))
            try:
                costs[name] = float(cost)
            except ValueError:
                message = f"{line.strip()[:60]!r}: expected NAME=MICROSECONDS"
                raise InputError(message, path=path, line=number) from None
    return costs


def _prices(given: FeatureCosts | None, names: tuple[str, ...]) -> dict[str, float]:
    """The price of each feature that has one; of several patterns that match, the last counts."""
    by_name = {} if given is None else dict(given) if isinstance(given, Mapping) else {"*": float(given)}
    if wrong := [cost for cost in by_name.values() if not 0 <= cost < np.inf]:
        raise UsageError(f"a feature costs {wrong[0]:g}: costs are finite and not negative")
    if not names and not isinstance(given, Mapping):
        return {}
    return {name: cost for pattern, cost in by_name.items() for name in matching_features((pattern,), names)}


def _reads(model: Model, rows: Candidates) -> frozenset[str]:
    """The names of the features that a model looks at, and `TERMS` if it looks at term statistics."""
    terms = frozenset({TERMS} if "terms" in model.needs else ())
    if isinstance(model, FeatureSubset):
        return _reads(model.model, rows) & {*model.features, TERMS}
    if isinstance(model, Trees):
        return frozenset(() if model.forest is None else model.forest.names)
    if isinstance(model, Feature):
        return frozenset({model.name})
    if isinstance(model, Stack | StandardisedModel):
        own = frozenset(() if model.scaler is None else model.scaler.names)
        parts = model.parts if isinstance(model, Stack) else ()
        return own.union(terms, *(_reads(part, rows) for part in parts if isinstance(part, Model)))
    return terms | frozenset(rows.feature_names if "features" in model.needs else ())
