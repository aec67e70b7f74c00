"""Cut-offs from data: how many documents each stage of a cascade should see, for what a query may cost.

Matveeva et al. 2006 took 2500, 1000, 100, 10 ("rather arbitrary", section 5.4). Here each stage scores the validation
rows once. A choice of cut-offs then costs no scoring at all, only sorts of what is left, so that every choice on a grid
is measured exactly; a stage may also be left out. The result is the frontier: the best measure for each cost.

>>> from fliprank.models import Linear
>>> rng = np.random.default_rng(0)
>>> x = rng.normal(size=(900, 2))
>>> rows = Candidates.of(x.sum(axis=1) > 1.5, group=[30] * 30, features=x)
>>> stages = [Linear().prepared(rows, 0).at(w) for w in ([0, 1, 0.5], [0, 1, 1])]
>>> found = choose_cutoffs(Cascade(stages, sizes=[30, 10]), rows, costs=[1, 20], measure="AP")
>>> [(choice.sizes, choice.cost) for choice in found.frontier][:2], found.within(300).sizes
([((30,), 30.0), ((30, 2), 70.0)], (30, 10))
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import comb

import numpy as np

from fliprank.arrays import Ints
from fliprank.data.candidates import Candidates
from fliprank.data.order import order_rows
from fliprank.errors import InputError, UsageError
from fliprank.experiment.training import DEFAULT_MEASURE
from fliprank.measures import Measure, parse_measure
from fliprank.models.cascade import Cascade
from fliprank.models.nested_rows import bare_rows, rank_scores, top_rows

__all__ = ["Choice", "Cutoffs", "choose_cutoffs", "measure_costs"]

GRID = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000)
MOST = 3000
"""Choices up to which all are measured; beyond, those of a thinner grid, and what is near the best of them."""


@dataclass(frozen=True)
class Choice:
    """Which stages to keep (from 0), how many documents each sees, and what that costs and gives on average.

    `lost[s]` is the share of all judged relevant documents among the rows that do not reach kept stage s.
    """

    stages: tuple[int, ...]
    sizes: tuple[int, ...]
    cost: float
    value: float
    lost: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Cutoffs:
    """What was found: every choice that was measured, and the cascade and costs they are of."""

    cascade: Cascade
    measure: Measure
    costs: tuple[float, ...]
    choices: tuple[Choice, ...]

    @property
    def frontier(self) -> tuple[Choice, ...]:
        """The choices that no other of at most their cost matches, by rising cost."""
        return tuple(_frontier(self.choices, self.measure))

    def within(self, budget: float) -> Choice:
        """The best choice that costs at most `budget` a query."""
        affordable = [choice for choice in self.frontier if choice.cost <= budget]
        if not affordable:
            raise UsageError(f"the cheapest cascade costs {self.frontier[0].cost:g} a query, over {budget:g}")
        return affordable[-1]

    def apply(self, choice: Choice) -> Cascade:
        """The cascade of this choice, with the stages as they are; `telescope` trains them for the new cut-offs."""
        return replace(self.cascade, stages=tuple(self.cascade.stages[s] for s in choice.stages), sizes=choice.sizes)


def measure_costs(cascade: Cascade, candidates: Candidates, *, tries: int = 5) -> tuple[float, ...]:
    """Seconds a document costs in each stage, timed on rows such as reach it: the least of several tries."""
    order = order_rows(cascade.stages[0].score(candidates), candidates.offsets, candidates.docids)
    costs = []
    for s, (stage, size) in enumerate(zip(cascade.stages, cascade.sizes, strict=True)):
        sizes = candidates.sizes if s == 0 else np.minimum(candidates.sizes, size)
        rows = np.sort(order if s == 0 else order[top_rows(candidates.offsets, size)])
        if not len(rows):
            raise InputError("costs can't be measured on no rows")
        few = bare_rows(candidates, rows, sizes)
        stage.score(few)  # warm: compiled, and checked to be numbers
        best = np.inf
        for _ in range(tries):
            start = time.perf_counter()
            stage.score(few)
            best = min(best, time.perf_counter() - start)
        costs.append(best / len(rows))
    return tuple(costs)


def choose_cutoffs(
    cascade: Cascade,
    candidates: Candidates,
    *,
    costs: Sequence[float] | None = None,
    measure: str | Measure = DEFAULT_MEASURE,
    grid: Sequence[int] | None = None,
    drop: bool = True,
    rel: float = 1.0,
) -> Cutoffs:
    """Measure cascades with other cut-offs on these (validation) candidates.

    `costs`: of a document in each stage, in any unit; without it they are timed. A query costs the sum over stages of
    cost x documents seen. `grid` are the cut-offs to try for the later stages (the cascade's own are added); the first
    stage sees all. `drop`: also try without one or several of the later stages. `rel`: from which label a document
    counts as relevant in `lost`. All choices on the grid are measured where there are at most 3000; else those of a
    thinner grid, and then steps from its frontier for as long as one moves it.
    """
    given = tuple(map(float, measure_costs(cascade, candidates) if costs is None else costs))
    if len(given) != len(cascade.stages) or not all(0 <= cost < np.inf for cost in given):
        raise UsageError(f"costs {given}: give one number for each of {len(cascade.stages)} stages, none negative")
    largest = int(candidates.sizes.max(initial=0))
    tried = sorted({n for n in (*(GRID if grid is None else grid), *cascade.sizes[1:]) if 0 < n < max(largest, 2)})
    sweep = _Sweep(cascade, candidates, parse_measure(measure), given, rel)
    if _count(len(cascade.stages) - 1, len(tried), drop) <= MOST:
        choices = list(sweep.all(tried, drop))
    else:
        choices = sweep.climb(tried, drop)
    return Cutoffs(cascade, sweep.measure, given, tuple(choices))


def _count(stages: int, grid: int, drop: bool) -> int:
    """How many falling choices of cut-offs there are."""
    return sum(comb(stages, k) * comb(grid, k) for k in (range(stages + 1) if drop else (stages,)))


class _Sweep:
    """Scores of all stages for all rows, and what cut-offs make of them."""

    def __init__(
        self, cascade: Cascade, candidates: Candidates, measure: Measure, costs: tuple[float, ...], rel: float
    ) -> None:
        self.candidates, self.measure, self.costs = candidates, measure, costs
        self.sizes = cascade.sizes
        self.scores = [stage.score(candidates) for stage in cascade.stages]
        self.first = order_rows(self.scores[0], candidates.offsets, candidates.docids)
        self.relevant = np.nan_to_num(candidates.labels, nan=-np.inf) >= rel
        self.all_relevant = max(1, int(self.relevant.sum()))

    def refined(self, order: Ints, stage: int, size: int) -> Ints:
        """The order of all rows after `stage` has put the top `size` of each query in its own."""
        rows, place = self.candidates, top_rows(self.candidates.offsets, size)
        kept = np.sort(order[place])
        few = np.minimum(rows.sizes, size)
        bounds = np.concatenate([[0], np.cumsum(few)])
        ids = None if rows.docids is None else rows.docids.take(kept)
        out = order.copy()
        out[place] = kept[order_rows(self.scores[stage][kept], bounds, ids)]
        return out

    def choice(self, stages: tuple[int, ...], sizes: tuple[int, ...], orders: Sequence[Ints]) -> Choice:
        """What a choice costs and gives; `orders` are the rows before each of its stages, and after the last."""
        rows = self.candidates
        value = self.measure.value(rank_scores(rows, orders[-1]), rows)
        seen = [rows.sizes, *(np.minimum(rows.sizes, size) for size in sizes[1:])]
        cost = sum(self.costs[s] * float(count.mean()) for s, count in zip(stages, seen, strict=True))
        reached = [
            self.relevant[o[top_rows(rows.offsets, n)]].sum() for o, n in zip(orders[1:], sizes[1:], strict=False)
        ]
        return Choice(stages, sizes, cost, value, (0.0, *(float(1 - r / self.all_relevant) for r in reached)))

    def all(self, grid: Sequence[int], drop: bool) -> Iterator[Choice]:
        """Every falling choice; those that begin alike share the work of their beginning."""
        return self._from((0,), self.sizes[:1], [self.first, self.first], grid, drop)

    def _from(
        self, stages: tuple[int, ...], sizes: tuple[int, ...], orders: list[Ints], grid: Sequence[int], drop: bool
    ) -> Iterator[Choice]:
        if drop or len(stages) == len(self.costs):
            yield self.choice(stages, sizes, orders)
        later = range(stages[-1] + 1, len(self.costs))
        for stage in later if drop else later[:1]:
            for size in grid:
                if len(sizes) == 1 or size < sizes[-1]:
                    order = self.refined(orders[-1], stage, size)
                    yield from self._from((*stages, stage), (*sizes, size), [*orders, order], grid, drop)

    def climb(self, grid: Sequence[int], drop: bool) -> list[Choice]:
        """All choices on a thinner grid; from those on the frontier one cut-off a step, until it no longer moves."""
        later, thin = len(self.costs) - 1, tuple(grid)
        while len(thin) > later and _count(later, len(thin), drop) > MOST:
            thin = thin[::-2][::-1]  # the largest stays
        known = {(choice.stages, choice.sizes): choice for choice in self.all(thin, drop)}
        seen: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
        while fresh := [
            key for c in _frontier(known.values(), self.measure) if (key := (c.stages, c.sizes)) not in seen
        ]:
            for key in fresh:
                seen.add(key)
                for stages, sizes in _steps(*key, grid, later, drop):
                    if (stages, sizes) not in known:
                        orders = [self.first, self.first]
                        for stage, size in zip(stages[1:], sizes[1:], strict=True):
                            orders.append(self.refined(orders[-1], stage, size))
                        known[stages, sizes] = self.choice(stages, sizes, orders)
        return list(known.values())


def _steps(
    stages: tuple[int, ...], sizes: tuple[int, ...], grid: Sequence[int], later: int, drop: bool
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Choices one step away: a cut-off one place up or down the grid, a stage left out, or one brought in."""
    cuts = dict(zip(stages[1:], sizes[1:], strict=True))
    trials = []
    for stage in range(1, later + 1):
        if stage in cuts:
            at = int(np.searchsorted(grid, cuts[stage]))
            trials += [{**cuts, stage: grid[i]} for i in (at - 1, at + 1) if 0 <= i < len(grid)]
            trials += [{s: n for s, n in cuts.items() if s != stage}] if drop else []
        else:
            trials += [{**cuts, stage: size} for size in grid]
    for trial in trials:
        kept = sorted(trial.items())
        if all(after[1] < before[1] for before, after in pairwise(kept)):
            yield (0, *(stage for stage, _ in kept)), (sizes[0], *(size for _, size in kept))


def _frontier(choices: Iterable[Choice], measure: Measure) -> list[Choice]:
    """The choices that no other of at most their cost matches, by rising cost."""
    sign = measure.sign
    kept: list[Choice] = []
    for choice in sorted(choices, key=lambda c: (c.cost, -sign * c.value, len(c.sizes))):
        if not kept or sign * choice.value > sign * kept[-1].value:
            kept.append(choice)
    return kept
