"""The two parameters of the two-stage language model, set on training queries (sections 2 and 3).

A direct search climbs the measure itself; coordinate descent goes down RankNet's cost, whatever the measure. The best
that is possible on test queries is what a direct search finds on these very queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.experiment.training import prepared
from fliprank.experiment.trials import Running, Trial, run_trial
from fliprank.measures import parse_measure
from fliprank.models import Model, TwoStageLM
from fliprank.objectives import RankNet
from fliprank.optimize.fit import Fit
from fliprank.optimize.methods import Metzler2007, Sampled
from fliprank.papers.checkpoint import finished

__all__ = [
    "GRID",
    "MEASURES",
    "METHODS",
    "Judged",
    "Split",
    "best_possible",
    "descend_ranknet",
    "direct_search",
    "halves",
]

MEASURES = ("AP", "Bpref", "P@10")
GRID = {"lambda": np.linspace(0, 0.9, 10).tolist(), "mu": np.geomspace(1, 30_000, 15).tolist()}
"""Where a direct search looks before it climbs: the measure has many optima, and two parameters can afford it."""
METHODS = {
    "direct": Trial(None, (Sampled(),)),
    "RankNet": Trial(RankNet(), (Metzler2007(tolerance=1e-4, samples=12),)),
}
"""Direct search climbs from the best point of the grid, RankNet descends from the usual defaults."""


@dataclass(frozen=True, eq=False)
class Judged:
    """Queries, and each measure of each of them at each point of the grid: subsets need not be scored again."""

    rows: Candidates
    grid: dict[str, Floats]

    @classmethod
    def of(cls, rows: Candidates) -> Judged:
        """Score the rows at every point: once for all measures, folds and halves."""
        model, found = prepared(TwoStageLM(), rows), dict[str, list[Floats]]()
        for point in _points():
            scores = model.at(model.params.replace(point)).score(rows)
            for name in MEASURES:
                found.setdefault(name, []).append(parse_measure(name).per_query(scores, rows))
        return cls(rows, {name: np.array(each) for name, each in found.items()})

    def select(self, queries: Ints) -> Judged:
        """Some of the queries."""
        return Judged(self.rows.select(queries), {name: each[:, queries] for name, each in self.grid.items()})

    def best_point(self, measure: str) -> dict[str, float]:
        """Where on the grid the measure is best, the first of several."""
        chosen = parse_measure(measure)
        return _points()[int(np.argmax([chosen.sign * chosen.aggregate(each) for each in self.grid[measure]]))]


def _points() -> list[dict[str, float]]:
    return [dict(zip(GRID, point, strict=True)) for point in product(*GRID.values())]


class Split(NamedTuple):
    """Queries to set parameters on, and to test them on."""

    train: Judged
    test: Judged


def halves(judged: Judged, seed: int) -> Split:
    """One random half of the queries for training, the other for testing."""
    order = np.random.default_rng(seed).permutation(judged.rows.queries)
    cut = (judged.rows.queries + 1) // 2
    return Split(judged.select(np.sort(order[:cut])), judged.select(np.sort(order[cut:])))


def direct_search(measure: str, judged: Judged, seed: int) -> Model:
    """The parameters that are best for the measure on these queries: the best of the grid, and a climb from there."""
    model = prepared(TwoStageLM(), judged.rows)
    start = model.at(model.params.replace(judged.best_point(measure)))
    return finished(_fit("direct", start, judged.rows, measure, "measure", seed)).model


def descend_ranknet(rows: Candidates, seed: int) -> Fit:
    """The parameters at which RankNet's cost is least, from the usual defaults and without a prior.

    The cost knows nothing of a measure: the last parameters are taken, not those that some measure likes best.
    """
    return finished(_fit("RankNet", prepared(TwoStageLM(), rows), rows, MEASURES[0], "last", seed))


def _fit(way: str, model: Model, rows: Candidates, measure: str, keep: str, seed: int) -> Fit | None:
    return run_trial(METHODS[way], model, rows, None, parse_measure(measure), Running(keep, seed=seed))


def best_possible(measure: str, judged: Judged, seed: int, rivals: list[Model]) -> Model:
    """The best that is known on these very queries: a direct search, or a rival that happens to be better here."""
    chosen, rows = parse_measure(measure), judged.rows
    known = [direct_search(measure, judged, seed), *rivals]
    return max(known, key=lambda model: chosen.sign * chosen.value(model.score(rows), rows))
