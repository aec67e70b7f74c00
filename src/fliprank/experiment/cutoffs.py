"""Cut-offs from data: how many documents each stage of a cascade should see, for what a query may cost.

Matveeva et al. 2006 took 2500, 1000, 100, 10 ("rather arbitrary", section 5.4). Here each stage scores the validation
rows once. To measure a choice of cut-offs then takes no scoring, only sorting, so that every choice on a grid is
measured exactly; a stage may also be left out. The result is the frontier: the best measure for each cost.

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

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from math import comb, inf
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.arrays import Ints
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.order import order_rows
from fliprank.data.store import read_arrays, write_arrays
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import UsageError
from fliprank.experiment.stage_costs import FeatureCosts, StageCosts, Timed, stage_costs, time_stages
from fliprank.experiment.task import Queries, Task
from fliprank.measures import Measure, parse_measure
from fliprank.models.cascade import Cascade
from fliprank.models.nested_rows import rank_scores, top_rows
from fliprank.optimize.fit import Fit, fingerprint
from fliprank.text.index import Index, Searchable

__all__ = ["Choice", "CutoffOptions", "Cutoffs", "check_for_cutoffs", "choose_cutoffs", "refit_with_cutoffs"]

GRID = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000)
MOST = 3000
"""Choices up to which all are measured; of more, those of a thinner grid, and what is near the best of them."""


@dataclass(frozen=True)
class Choice:
    """Which stages to keep (numbered from 0) and how many documents each sees; its cost per query, and the measure.

    `lost[s]` is the share of all relevant documents among the rows that do not reach kept stage s.
    """

    stages: tuple[int, ...]
    sizes: tuple[int, ...]
    cost: float
    value: float
    lost: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Cutoffs:
    """Every choice that was measured, and the cascade and costs that they belong to."""

    cascade: Cascade
    measure: Measure
    costs: StageCosts
    choices: tuple[Choice, ...]

    @property
    def frontier(self) -> tuple[Choice, ...]:
        """The choices that no other of at most their cost matches, by rising cost."""
        return tuple(_frontier(self.choices, self.measure))

    def within(self, budget: float) -> Choice:
        """The best choice that costs at most `budget` per query."""
        frontier = self.frontier
        if not frontier:
            raise UsageError(f"no falling cut-offs for all {len(self.cascade.stages)} stages: give a finer grid")
        affordable = [choice for choice in frontier if choice.cost <= budget]
        if not affordable:
            cheapest = f"{frontier[0].cost:.4g} {self.costs.unit}".strip()
            raise UsageError(f"the cheapest cascade costs {cheapest} per query, over the budget of {budget:g}")
        return affordable[-1]

    def apply(self, choice: Choice, cascade: Cascade | None = None) -> Cascade:
        """The cascade of this choice: of stages as they are, or of those of `cascade`, which are yet to be trained."""
        given = self.cascade if cascade is None else cascade
        return replace(given, stages=tuple(given.stages[s] for s in choice.stages), sizes=choice.sizes)

    def content(self, chosen: Choice, budget: float) -> dict[str, Any]:
        """For result.json: what was chosen, the frontier, and what costs are made of."""
        unit = self.costs.unit or "as given"
        return {
            "budget": budget,
            "unit": f"{unit}, per query",
            "cost_includes": self.costs.includes,
            "cost_per_document": list(self.costs.per_document(range(len(self.cascade.stages)))),
            "scoring_per_document": list(self.costs.scoring),
            "chosen": asdict(chosen),
            "frontier": [asdict(choice) for choice in self.frontier],
        }


@checked
def choose_cutoffs(
    cascade: Cascade,
    candidates: Candidates,
    *,
    costs: Sequence[float] | StageCosts | None = None,
    feature_costs: FeatureCosts | None = None,
    measure: str | Measure = DEFAULT_MEASURE,
    grid: Sequence[int] | None = None,
    drop: bool = True,
    rel: float = 1.0,
) -> Cutoffs:
    """Measure cascades with other cut-offs on these (validation) candidates.

    `costs` are those of a document in each stage, in any unit; if they are not given, scoring is timed, in
    microseconds. `feature_costs` of the features that a stage is the first to read are added (see `stage_costs`). The
    cost of a query is the sum over stages of cost x documents seen.

    `grid` has the cut-offs to try for the later stages, beside the cascade's own; those that are not below the size of
    the first stage are left out, since a cascade could not have them. The first stage sees all documents. With `drop`,
    some or all of the later stages are also left out. `rel` is the label from which a document is relevant in `lost`.
    Where there are at most 3000 choices, all are measured; else those of a thinner grid, and then steps from its
    frontier for as long as the frontier moves.
    """
    given = costs
    if not isinstance(given, StageCosts):
        given = stage_costs(cascade, candidates, given, feature_costs)
    largest = min(max(int(candidates.sizes.max(initial=0)), 2), cascade.sizes[0])
    tried = sorted({n for n in (*(GRID if grid is None else grid), *cascade.sizes[1:]) if 0 < n < largest})
    sweep = _Sweep(cascade, candidates, parse_measure(measure), given, rel)
    if _count(len(cascade.stages) - 1, len(tried), drop) <= MOST:
        choices = list(sweep.all(tried, drop))
    else:
        choices = sweep.climb(tried, drop)
    return Cutoffs(cascade, sweep.measure, given, tuple(choices))


def _count(stages: int, grid: int, drop: bool) -> int:
    """How many choices of falling cut-offs there are."""
    return sum(comb(stages, k) * comb(grid, k) for k in (range(stages + 1) if drop else (stages,)))


class _Sweep:
    """Scores of all stages for all rows, and what cut-offs make of them."""

    def __init__(
        self, cascade: Cascade, candidates: Candidates, measure: Measure, costs: StageCosts, rel: float
    ) -> None:
        self.candidates, self.measure, self.costs = candidates, measure, costs
        self.sizes, self.stages = cascade.sizes, len(cascade.stages)
        self.scores = [stage.score(candidates) for stage in cascade.stages]
        self.first = order_rows(self.scores[0], candidates.offsets, candidates.docids)
        self.relevant = np.nan_to_num(candidates.labels, nan=-np.inf) >= rel
        self.all_relevant = max(1, int(self.relevant.sum()))

    def refined(self, order: Ints, stage: int, size: int) -> Ints:
        """The order of all rows after `stage` has put the top `size` of each query in its own."""
        rows, place = self.candidates, top_rows(self.candidates.offsets, size)
        kept = np.sort(order[place])
        ids = None if rows.docids is None else rows.docids.take(kept)
        out = order.copy()
        out[place] = kept[order_rows(self.scores[stage][kept], bounds(np.minimum(rows.sizes, size)), ids)]
        return out

    def choice(self, stages: tuple[int, ...], sizes: tuple[int, ...], orders: Sequence[Ints]) -> Choice:
        """What a choice costs and gives; `orders` are the rows before each of its stages, and after the last."""
        rows = self.candidates
        value = self.measure.value(rank_scores(rows, orders[-1]), rows)
        seen = [rows.sizes, *(np.minimum(rows.sizes, size) for size in sizes[1:])]
        prices = self.costs.per_document(stages)
        cost = sum(price * float(count.mean()) for price, count in zip(prices, seen, strict=True))
        reached = [
            self.relevant[o[top_rows(rows.offsets, n)]].sum() for o, n in zip(orders[1:], sizes[1:], strict=False)
        ]
        return Choice(stages, sizes, cost, value, (0.0, *(float(1 - r / self.all_relevant) for r in reached)))

    def all(self, grid: Sequence[int], drop: bool) -> Iterator[Choice]:
        """Every choice of falling cut-offs; those that begin alike share the work of their beginning."""
        return self._from((0,), self.sizes[:1], [self.first, self.first], grid, drop)

    def _from(
        self, stages: tuple[int, ...], sizes: tuple[int, ...], orders: list[Ints], grid: Sequence[int], drop: bool
    ) -> Iterator[Choice]:
        if drop or len(stages) == self.stages:
            yield self.choice(stages, sizes, orders)
        later = range(stages[-1] + 1, self.stages)
        for stage in later if drop else later[:1]:
            for size in grid:
                if size < sizes[-1]:
                    order = self.refined(orders[-1], stage, size)
                    yield from self._from((*stages, stage), (*sizes, size), [*orders, order], grid, drop)

    def climb(self, grid: Sequence[int], drop: bool) -> list[Choice]:
        """All choices on a thinner grid; then single steps from those on the frontier, until it no longer moves."""
        later, thin = self.stages - 1, tuple(grid)
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


@dataclass(frozen=True)
class CutoffOptions:
    """What a query may cost, in microseconds, and what computing the features costs, if that is known."""

    budget: float = inf
    feature_costs: FeatureCosts | None = None


Refit = Callable[[Cascade, Sequence[int], Path], Fit]
"""Trains a cascade whose stages have these numbers in the first one, with checkpoints in a folder."""


def check_for_cutoffs(task: Task) -> Task:
    """The task, after the check that the rows that cut-offs would be chosen on are in memory."""
    chosen_on = "training" if task.valid is None else "validation"
    if not isinstance((task.valid or task.train).rows, Candidates):
        raise UsageError(
            f"cut-offs are chosen on rows in memory, and the {chosen_on} rows are in files or on a cluster: give "
            "--valid a file that is no shard, without --memory, or leave out --choose-cutoffs"
        )
    return task


def refit_with_cutoffs(
    fit: Fit, untrained: Cascade, task: Task, options: CutoffOptions, refit: Refit, place: Path, *, resume: bool = False
) -> Fit:
    """The cascade with the best sizes within the budget, trained again for them; `settings["cutoffs"]` says how.

    Sizes are chosen on validation queries (on training queries where there are none), with the stages as `fit` has
    them. What was timed is kept in `place`, so that a resumed run makes the same choice.
    """
    assert isinstance(fit.model, Cascade)
    assert fit.measure is not None
    queries = task.valid or task.train
    timed = _timed(fit.model, queries, task.index, place / "cutoffs" / "costs.checkpoint", resume)
    costs = stage_costs(fit.model, queries.rows, timed, options.feature_costs)
    found = choose_cutoffs(fit.model, queries.rows, costs=costs, measure=fit.measure)
    choice = found.within(options.budget)
    same = choice.sizes == untrained.sizes
    again = fit if same else refit(found.apply(choice, untrained), choice.stages, place / "cutoffs")
    content = {"on": "train" if task.valid is None else "valid", **found.content(choice, options.budget)}
    return replace(again, settings={**again.settings, "cutoffs": content})


def _timed(cascade: Cascade, queries: Queries, index: Searchable | None, path: Path, resume: bool) -> Timed:
    """What a document takes in each stage: as an earlier part of this run timed it, or timed now."""
    key = fingerprint(queries.rows, sizes=cascade.sizes, params=cascade.params.values.tolist())
    if resume and path.exists():
        header, arrays = read_arrays(path, check=True)
        if header.get("key") == key:
            gathering = arrays["gathering"].tolist()
            return Timed(tuple(arrays["scoring"].tolist()), *gathering)
    timed = time_stages(cascade, queries.rows, index if isinstance(index, Index) else None, queries.texts)
    gathering = [] if timed.gathering is None else [timed.gathering]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_arrays(path, {"key": key}, {"scoring": np.array(timed.scoring), "gathering": np.array(gathering)})
    return timed
