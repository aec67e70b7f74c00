"""The multiple nested ranker: each stage orders the top of the one before (Matveeva et al. 2006, section 2, figure 2).

Stage s sees the `sizes[s]` best documents of stage s - 1 and puts them in a new order; the ranks below are fixed. So a
document that is cut keeps the score of its stage, and those above it get higher scores, 1 apart. Later stages score
only what reaches them, and nothing below a cut is ever sorted. `experiment/telescope.py` trains cascades.

>>> from fliprank.models.linear import Linear
>>> from fliprank.models.feature_subset import FeatureSubset
>>> x = [[9, 0], [8, 1], [7, 2], [6, 3]]
>>> rows = Candidates.of([0, 1, 0, 0], features=x, feature_names=["bm25", "clicks"])
>>> stages = [FeatureSubset(Linear(), "bm25"), FeatureSubset(Linear(), "clicks")]
>>> nested = Cascade(stages, sizes=[4, 2]).prepared(rows, 0)
>>> nested.params.names
('stage1.bias', 'stage1.w.bm25', 'stage2.bias', 'stage2.w.clicks')
>>> nested.at([0, 1, 0, 1]).score(rows).round(3).tolist()        # the two best by bm25 are in the order of clicks
[0.553, 1.553, -0.447, -1.342]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.order import order_rows
from fliprank.errors import InputError, UsageError
from fliprank.models.base import Model, Seed, build, describe, register
from fliprank.models.folder import Record
from fliprank.models.nested_rows import bare_rows, lifted, rank_scores, select_rows, top_rows
from fliprank.models.parameters import Parameters

__all__ = ["Cascade"]


@register
@dataclass(frozen=True, eq=False)
class Cascade(Model):
    """`stages[s]` orders the `sizes[s]` best documents of `stages[s - 1]`; what is below a cut keeps its rank.

    The first stage scores all rows, even if a query has more than `sizes[0]`: no earlier ranking says which of them to
    leave out. `sizes[0]` says how deep the candidates were retrieved. The parameters are those of the stages, called
    `stage1.*`, `stage2.*`, and so on.
    """

    kind: ClassVar[str] = "cascade"
    summary: ClassVar[str] = "nested rankers: each orders the top of the one before"
    stages: tuple[Model, ...]
    sizes: tuple[int, ...]

    def __init__(
        self, stages: Sequence[Model], sizes: Sequence[int] = (2500, 1000, 100, 10), *, params: Parameters | None = None
    ) -> None:
        for name, value in (("stages", tuple(stages)), ("sizes", tuple(sizes))):
            object.__setattr__(self, name, value)
        self._check()
        own = _joined([stage.params for stage in self.stages])
        given = params is not None and params.names == own.names and np.array_equal(params.values, own.values)
        object.__setattr__(self, "params", params if given else own)

    def _check(self) -> None:
        if len(self.stages) != len(self.sizes) or not self.stages:
            raise UsageError(f"{len(self.stages)} stages and {len(self.sizes)} sizes: a cascade has one for each")
        for size in self.sizes:
            if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
                raise UsageError(f"a stage of {size!r} documents: sizes are whole numbers from 1")
        if any(later >= size for size, later in pairwise(self.sizes)):
            raise UsageError(f"sizes {', '.join(map(str, self.sizes))}: each stage sees fewer documents than the last")
        if any(isinstance(stage, Cascade) for stage in self.stages):
            raise UsageError("a stage of a cascade can't be a cascade: give its stages")
        object.__setattr__(self, "sizes", tuple(map(int, self.sizes)))

    def prepared(self, train: Candidates, rng: Seed) -> Self:
        """With every stage prepared on all rows; `telescope` prepares each on what reaches it."""
        random = np.random.default_rng(rng)
        return replace(self, stages=tuple(stage.prepared(train, random) for stage in self.stages))

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """What its stages read."""
        return frozenset[str]().union(*(stage.needs for stage in self.stages))

    @property
    def ready(self) -> bool:
        return all(stage.ready for stage in self.stages)

    def initial(self, rng: np.random.Generator) -> Floats:
        return np.concatenate([stage.initial(rng) for stage in self.stages])

    def at(self, values: ArrayLike | Parameters) -> Self:
        params = values if isinstance(values, Parameters) else self.params.at(values)
        if params.names != self.params.names:
            raise UsageError("these are not the parameters of this cascade: they have other names")
        cuts = np.cumsum([len(stage.params) for stage in self.stages])[:-1]
        parts = np.split(params.values, cuts)
        stages = tuple(stage.at(part) for stage, part in zip(self.stages, parts, strict=True))
        return replace(self, stages=stages, params=params)

    def through(self, stage: int) -> Self:
        """The first `stage` stages alone."""
        return replace(self, stages=self.stages[:stage], sizes=self.sizes[:stage])

    def score(self, candidates: Candidates) -> Floats:
        """Scores in the order of the last stage; a cascade of one stage has the scores of its model."""
        parts = [(candidates, _scores(self.stages[0], candidates, 1), np.empty(0))]
        for number, (stage, size) in enumerate(zip(self.stages[1:], self.sizes[1:], strict=True), 2):
            rows, best_below = select_rows(parts[-1][0], parts[-1][1], size)
            few = bare_rows(parts[-1][0], rows, np.minimum(parts[-1][0].sizes, size))
            parts.append((few, _scores(stage, few, number), best_below))
        scores = parts[-1][1]
        for (_, before, _), (few, _, best_below) in zip(parts[-2::-1], parts[:0:-1], strict=True):
            raised, scores = lifted(few, scores, best_below), before.copy()
            scores[few.memo["rows"]] = raised
        return scores

    def by_stage(self, candidates: Candidates) -> list[Floats]:
        """The ranking after each stage, in one pass: minus the rank of each row in its query."""
        order = order_rows(_scores(self.stages[0], candidates, 1), candidates.offsets, candidates.docids)
        orders = [order]
        for number, (stage, size) in enumerate(zip(self.stages[1:], self.sizes[1:], strict=True), 2):
            place = top_rows(candidates.offsets, size)
            few = bare_rows(candidates, np.sort(order[place]), np.minimum(candidates.sizes, size))
            best = order_rows(_scores(stage, few, number), few.offsets, few.docids)
            order = order.copy()
            order[place] = few.memo["rows"][best]
            orders.append(order)
        return [rank_scores(candidates, order) for order in orders]

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        raise UsageError("a cascade has no gradient, its scores are ranks: train it stage by stage with telescope()")

    def structure(self) -> dict[str, Any]:
        pairs = zip(self.stages, self.sizes, strict=True)
        return {"stages": [{"size": size, **describe(stage)} for stage, size in pairs]}

    @classmethod
    def restore(cls, structure: Record) -> Self:
        stages = structure.records("stages")
        for stage in stages:
            if stage.text("kind") == "cascade":  # before it is built: nesting has an end
                stage.fail("kind", "a model that is no cascade")
        return cls([build(stage) for stage in stages], [stage.integer("size") for stage in stages])


def _scores(stage: Model, candidates: Candidates, number: int) -> Floats:
    scores = stage.score(candidates)
    if not np.isfinite(scores).all():
        row = int(np.isfinite(scores).argmin())
        query = int(np.searchsorted(candidates.offsets, row, "right")) - 1
        raise InputError(f"stage {number} gives the score {scores[row]}", query=candidates.qids[query])
    return scores


def _joined(parts: Sequence[Parameters]) -> Parameters:
    """The parameters of all stages, named after them; what is fixed or shared in a stage stays fixed or shared."""
    names, drivers = [], []
    for number, part in enumerate(parts, 1):
        names += [f"stage{number}.{name}" for name in part.names]
        drivers += [None if key is None else f"stage{number}.{key}" for key in part.drivers()]
    values, lower, upper, default = (
        np.concatenate([getattr(part, column) for part in parts]) for column in ("values", "lower", "upper", "default")
    )
    return Parameters(tuple(names), values, lower, upper, default).driven_by(drivers)
