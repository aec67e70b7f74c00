"""A fusion whose weights depend on the query, by what is known before anything is judged.

The weight of list j for a query is its weight for all queries times a factor that is linear in traits of the query:

    w_j(q) = w_j max(0.05, 1 + sum_t s_jt x_jt(q))

x are the traits (`data/list_traits.py`) in standard deviations from their mean over the training queries, cut at 3, so
that no odd query is extrapolated to. Engines take no weights below 0: a factor ends at 0.05, where the list still
breaks ties, and a query never loses all its lists. With slopes s of 0, which priors pull to, it is the plain fusion. An
engine that has one share `alpha` of two lists is sent w_2(q) / (w_1(q) + w_2(q)): see `query_weights`.

>>> from fliprank.data.fusion_rows import fusion_rows
>>> runs = {"bm25": {"p": {"a": 9, "b": 5}, "q": {"a": 4, "c": 3}}, "dense": {"p": {"a": 8}, "q": {"b": 7, "c": 6}}}
>>> model = AdaptiveFusion("elasticsearch-linear").prepared(fusion_rows(runs), 0)
>>> model.params.free_names[:3], len(model.params)
(('weight.bm25', 'weight.dense', 'slope.bm25.agreement'), 8)
>>> model.at([1, 1, 0.5, 0, 0, 0, 0, 0]).query_weights(fusion_rows(runs)).tolist()     # the lists agree on p, not on q
[[1.5, 1.0], [0.5, 1.0]]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fliprank.arrays import Floats, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.list_traits import OF_LISTS, with_traits
from fliprank.data.ranked_lists import COUNT, RankedLists
from fliprank.errors import UsageError
from fliprank.models.base import Seed, register, row_gradient
from fliprank.models.folder import Record
from fliprank.models.fusion.combine import fuse_queries, pull_queries
from fliprank.models.fusion.model import Fusion
from fliprank.models.parameters import Parameters

__all__ = ["LEAST", "AdaptiveFusion"]

LEAST, FURTHEST = 0.05, 3.0
"""The least factor of a weight; standard deviations at which traits are cut."""

USUAL_SLOPE = 0.3
"""How far off 0 a slope may well be: priors hold it in units of this."""

LATEST_TRAITS = "lists with traits"
"""Where a `Candidates` keeps its lists with their traits, if it came without them."""


@register
@dataclass(frozen=True, eq=False, init=False)
class AdaptiveFusion(Fusion):
    """A `Fusion` with a slope per list and trait, `slope.LIST.TRAIT`; `prepared` learns how traits are spread."""

    kind: ClassVar[str] = "adaptive-fusion"
    summary: ClassVar[str] = "several ranked lists fused with weights that depend on the query"
    traits: tuple[str, ...]
    centre: Floats
    scale: Floats

    def __init__(
        self,
        engine: str = "elasticsearch-linear",
        lists: Iterable[str] = (),
        *,
        traits: Iterable[str] = (),
        centre: ArrayLike = (),
        scale: ArrayLike = (),
        **settings: Any,
    ) -> None:
        names = tuple(traits)
        shape = (-1, len(names)) if names else (0, 0)
        middle, unit = (frozen(np.array(x, np.float64).reshape(shape), np.float64) for x in (centre, scale))
        self._set(traits=names, centre=middle, scale=unit)
        super().__init__(engine, lists if names else (), **settings)
        if not names:
            self._set(lists=(lists,) if isinstance(lists, str) else tuple(lists))

    @classmethod
    def like(cls, model: Fusion) -> AdaptiveFusion:
        """The adaptive version of a fusion, to be prepared."""
        return cls(model.engine, model.lists, **model.settings)

    def _parameters(self) -> Parameters:
        plain = super()._parameters()
        if self.rule.weights == "none":
            raise UsageError(f"{self.engine} with these settings has no weights that could depend on the query")
        shape = (len(self.lists), len(self.traits))
        if self.centre.shape != shape or self.scale.shape != shape or not (self.scale > 0).all():
            raise UsageError(f"centre and scale of the traits: expected {shape[0]} x {shape[1]} numbers, scale above 0")
        bounds = zip(plain.values.tolist(), plain.lower.tolist(), plain.upper.tolist(), strict=True)
        table: dict[str, float | tuple[float, float, float]] = dict(zip(plain.names, bounds, strict=True))
        table |= {f"slope.{name}.{trait}": (0.0, -inf, inf) for name in self.lists for trait in self.traits}
        return Parameters.of(table)

    @property
    def ready(self) -> bool:
        return bool(self.traits)

    def prepared(self, train: Candidates, rng: Seed) -> Self:
        """With the lists and traits of these rows, and how the traits are spread over their queries."""
        known = self._known(train)
        if self.ready:
            return self
        assert known.traits is not None
        there = _there(known)
        count = np.maximum(there.sum(axis=0), 1)
        centre = np.where(there, known.traits, 0.0).sum(axis=0) / count
        away = np.where(there, known.traits - centre, 0.0)
        scale = np.sqrt((away * away).sum(axis=0) / count)
        scale = np.where(scale > 1e-9, scale, 1.0)
        return type(self)(
            self.engine, known.names, traits=known.trait_names, centre=centre, scale=scale, **self.settings
        )

    def _known(self, candidates: Candidates) -> RankedLists:
        """The lists with their traits: those of the rows or, where what lists tell is enough, worked out once."""
        found = self._lists(candidates)
        if found.traits is None:
            if missing := [name for name in self.traits if name not in OF_LISTS]:
                hint = "with_query_traits(rows, queries, index) adds it"
                raise UsageError(f"this fusion needs {', '.join(missing)} of each query: {hint}")
            if LATEST_TRAITS not in candidates.memo:
                candidates.memo[LATEST_TRAITS] = with_traits(candidates).lists
            found = candidates.memo[LATEST_TRAITS]
        if not set(self.traits) <= set(found.trait_names):
            have = ", ".join(found.trait_names)
            raise UsageError(f"this fusion is by {', '.join(self.traits)}; these rows have {have}")
        return found

    def standardised(self, candidates: Candidates) -> Floats:
        """The traits (queries x lists x traits) in standard deviations from their mean over the training queries."""
        found = self._known(candidates)
        assert found.traits is not None
        columns = [found.trait_names.index(name) for name in self.traits]
        away = (found.traits[:, :, columns] - self.centre) / self.scale
        return np.where(_there(found), np.clip(away, -FURTHEST, FURTHEST), 0.0)

    @property
    def slopes(self) -> Floats:
        """The slopes (lists x traits)."""
        shape = len(self.lists), len(self.traits)
        return self.params.values[len(self.params) - shape[0] * shape[1] :].reshape(shape)

    def _factors(self, candidates: Candidates) -> tuple[Floats, Floats]:
        """1 + slopes times traits of each query and list, before it is cut at LEAST; and the traits."""
        traits = self.standardised(candidates)
        return 1.0 + np.einsum("qjt,jt->qj", traits, self.slopes), traits

    def query_weights(self, candidates: Candidates) -> Floats:
        """The weight of each list for each query (queries x lists)."""
        return self.weights * np.maximum(self._factors(candidates)[0], LEAST)

    def score(self, candidates: Candidates) -> Floats:
        weights = self.query_weights(candidates) * self.rule.factor
        return fuse_queries(self.normalised(candidates), self._combination(), weights, candidates.offsets)

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        given, (raw, traits) = row_gradient(candidates, dscores), self._factors(candidates)
        factors, rule = np.maximum(raw, LEAST), self.rule
        cells, weights = self.normalised(candidates), self.weights * factors * rule.factor
        by_query = pull_queries(cells, self._combination(), weights, candidates.offsets, given)
        by_weight, constants = by_query[:, : len(self.lists)], by_query[:, len(self.lists) :]
        plain = self._by_params(np.concatenate([(by_weight * factors).sum(axis=0), constants.sum(axis=0)]))
        by_factor = by_weight * self.weights * rule.factor * (raw > LEAST)
        return np.concatenate([plain, np.einsum("qj,qjt->jt", by_factor, traits).ravel()])

    def backward(self, candidates: Candidates, dscores: ArrayLike) -> tuple[Floats, Floats]:
        raise UsageError("a fusion with a weight per query has no gradient by the lists' scores: its traits have none")

    @property
    def penalty_weights(self) -> Floats:
        """Slopes are held more firmly than logarithms of weights: what varies from query to query is small."""
        plain = len(self.params) - self.slopes.size
        return np.concatenate([np.ones(plain), np.full(self.slopes.size, USUAL_SLOPE**-2)])

    @property
    def linear_in_params(self) -> bool:  # type: ignore[override]
        return False

    def linear_along(self, direction: ArrayLike) -> bool:
        """True where only weights of a sum move."""
        moving = self.params.direction(direction)
        slopes = moving[len(moving) - self.slopes.size :]
        return self.rule.combine != "dismax" and not slopes.any() and super().linear_along(direction)

    def slope(self, candidates: Candidates, direction: ArrayLike) -> Floats:
        if not self.linear_along(direction):
            raise UsageError("the scores of this fusion are linear along the weights of a sum only")
        moving = self.params.direction(direction)
        weights = np.array([-moving[0], moving[0]]) if self.rule.weights == "share" else moving[: len(self.lists)]
        own = weights * np.maximum(self._factors(candidates)[0], LEAST) * self.rule.factor
        return fuse_queries(self.normalised(candidates), self._combination(), own, candidates.offsets)

    def structure(self) -> dict[str, Any]:
        own = {"traits": list(self.traits), "centre": self.centre.tolist(), "scale": self.scale.tolist()}
        return {**super().structure(), **own}

    @classmethod
    def restore(cls, structure: Record) -> Self:
        plain = Fusion.restore(structure)
        traits = structure.data.get("traits")
        if not isinstance(traits, list) or not traits or not all(isinstance(name, str) for name in traits):
            structure.fail("traits", "a list of names")
        numbers = {}
        for name in ("centre", "scale"):
            try:
                numbers[name] = np.array(structure.data.get(name), np.float64)
            except (TypeError, ValueError):
                structure.fail(name, "numbers, one line per list")
            if numbers[name].shape != (len(plain.lists), len(traits)) or not np.isfinite(numbers[name]).all():
                structure.fail(name, f"{len(plain.lists)} lines of {len(traits)} numbers")
        if clash := {"traits", "centre", "scale"} & plain.settings.keys():
            structure.fail("settings", f"no {min(clash)}")
        return cls(plain.engine, plain.lists, traits=traits, **numbers, **plain.settings)


def _there(lists: RankedLists) -> NDArray[np.bool_]:
    """Which queries have something in each list (queries x lists x 1)."""
    return (lists.statistics[:, :, COUNT] > 0)[:, :, np.newaxis]
