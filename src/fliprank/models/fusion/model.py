"""A fused score of several lists: what hybrid search ranks by, as a model with exact derivatives.

Scores of each list are normalised (`normalise.py`) and combined (`combine.py`) by the rule of an engine (`engines.py`).
Normalised scores do not depend on the parameters: they are worked out once for each `Candidates`. A weighted sum of
them, and reciprocal ranks at a given k, are linear in the weights, so that exact line searches apply.

All weights times a number rank alike in most rules. None of them is fixed for that, since its list might be the one
that is worth nothing; objectives see scores in units of their spread instead (`scales_freely` is False), so that
their common size is worth nothing to a fit, and `canonical` makes them add up to 1.

>>> from fliprank.data.fusion_rows import fusion_rows
>>> rows = fusion_rows({"bm25": {"q": {"a": 9, "b": 5, "d": 4}}, "dense": {"q": {"c": 0.6, "b": 0.8}}})
>>> model = Fusion("elasticsearch-linear", ["bm25", "dense"], normalise="minmax")
>>> model.params.names, model.score(rows).tolist()                                             # a, b, d, c
(('weight.bm25', 'weight.dense'), [1.0, 1.2, 0.0, 0.0])
>>> Fusion("elasticsearch-rrf", ["bm25", "dense"]).at([1, 2, 60]).score(rows).round(6).tolist()
[0.016393, 0.048916, 0.015873, 0.032258]
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.ranked_lists import RankedLists
from fliprank.errors import UsageError
from fliprank.models.base import UNKNOWN, Model, Seed, register, row_gradient
from fliprank.models.folder import Record
from fliprank.models.fusion.combine import LINEAR, MEANS, Settings, fuse, pull
from fliprank.models.fusion.engines import Rule, make_rule
from fliprank.models.fusion.normalise import Norm, NormTable, cells, pull_scores
from fliprank.models.parameters import Parameters

__all__ = ["Fusion"]

LATEST = "normalised scores of a fusion"
"""Where a `Candidates` keeps the normalised scores of its lists, of the latest way of normalising them."""


@register
@dataclass(frozen=True, eq=False, init=False)
class Fusion(Model):
    """The fused score of `lists` as `engine` computes it, with the engine's own settings: see `engines.py`.

    Parameters, as far as the engine has them: `weight.NAME` per list (from 0), or the one share of the second of two
    lists (`alpha`; `weight` for LanceDB), `k` of reciprocal ranks, `tie` of edismax. Lists that are not named are those
    of the rows that the model is prepared on. Engines that weigh text against vectors take the list of text first.
    """

    kind: ClassVar[str] = "fusion"
    summary: ClassVar[str] = "several ranked lists fused as a search engine does it"
    needs: ClassVar[frozenset[str]] = frozenset({"lists"})
    engine: str
    lists: tuple[str, ...]
    settings: Mapping[str, Any]
    rule: Rule

    def __init__(self, engine: str = "plain", lists: Iterable[str] = (), **settings: Any) -> None:
        names = (lists,) if isinstance(lists, str) else tuple(lists)
        self._set(engine=engine, lists=names, settings=settings, rule=make_rule(engine, **settings), params=UNKNOWN)
        if names:
            self._set(params=self._parameters())

    def _set(self, **changes: Any) -> None:
        for name, value in changes.items():
            object.__setattr__(self, name, value)

    def at(self, values: ArrayLike | Parameters) -> Self:
        other = copy.copy(self)
        other._set(params=self.params_at(values))
        return other

    def _parameters(self) -> Parameters:
        rule, count = self.rule, len(self.lists)
        if len(set(self.lists)) < count or not all(isinstance(name, str) and name for name in self.lists):
            raise UsageError(f"lists have names that differ, not {list(self.lists)}")
        if rule.weights == "share" and count != 2:
            raise UsageError(f"{self.engine} fuses two lists, text and vectors in this order, not {count}")
        if len(rule.norms) not in (1, count):
            raise UsageError(f"normalise has {len(rule.norms)} names for {count} lists: give one, or one per list")
        table: dict[str, float | tuple[float, float, float]] = {}
        if rule.weights == "each":
            table |= {f"weight.{name}": (rule.weight or 1.0 / count, 0.0, inf) for name in self.lists}
        elif rule.weights == "share":
            table[rule.share] = (rule.share_default, 0.0, 1.0)
        if rule.k is not None and rule.k[1] < rule.k[2]:
            table["k"] = rule.k
        if rule.tie is not None:
            table["tie"] = rule.tie
        return Parameters.of(table)

    @property
    def norms(self) -> tuple[Norm, ...]:
        """The normalisation of each list."""
        return self.rule.norms * (len(self.lists) if len(self.rule.norms) == 1 else 1)

    @property
    def ready(self) -> bool:
        return bool(self.lists)

    def prepared(self, train: Candidates, rng: Seed) -> Self:
        """With the lists of these rows, unless it has its own; raises if the rows lack one of them."""
        found = self._lists(train)
        return self if self.lists else type(self)(self.engine, found.names, **self.settings)

    def initial(self, rng: np.random.Generator) -> Floats:
        """Weights at random that add up to what the defaults do, a share at random; k and tie as they are."""
        start, weights = self.params.default.copy(), self._weight_places()
        if self.rule.weights == "share":
            start[0] = rng.uniform()
        elif len(weights):
            start[weights] = rng.dirichlet(np.ones(len(weights))) * start[weights].sum()
        return start

    def _weight_places(self) -> Ints:
        """Which parameters are weights of lists."""
        return np.flatnonzero([name.startswith("weight.") for name in self.params.names])

    @property
    def weights(self) -> Floats:
        """The weight of each list."""
        if self.rule.weights == "share":
            share = float(self.params.values[0])
            return np.array([1.0 - share, share])
        return self.params.values[: len(self.lists)] if self.rule.weights == "each" else np.ones(len(self.lists))

    @property
    def k(self) -> float | None:
        """The constant that is added to ranks, if it is a matter of ranks."""
        if self.rule.k is None:
            return None
        return self.params["k"] if "k" in self.params.names else self.rule.k[0]

    def _combination(self) -> Settings:
        ranked = np.array([norm.kind == "rank" for norm in self.norms])
        tie = float(self.params["tie"]) if self.rule.tie is not None else 0.0
        weights = frozen(self.weights * self.rule.factor, np.float64)
        return Settings(weights, ranked, MEANS[self.rule.combine], float(self.k or 0.0), tie)

    def _lists(self, candidates: Candidates) -> RankedLists:
        found = candidates.lists
        if found is None:
            raise UsageError("a fusion ranks rows with lists: make them of runs by fusion_rows(runs, qrels)")
        if self.lists and found.names != self.lists:
            raise UsageError(f"this fusion is of {', '.join(self.lists)}; these rows have {', '.join(found.names)}")
        return found

    def normalised(self, candidates: Candidates) -> Floats:
        """The normalised scores (rows x lists), NaN where a list is left out; of ranks, the ranks. Kept for later."""
        found = self._lists(candidates)
        if not self.lists:
            raise UsageError("this fusion knows no lists yet: name them, or call prepared(train, rng)")
        norms, matrix = candidates.memo.get(LATEST, (None, None))
        if norms != self.norms:
            matrix = frozen(cells(found, candidates.offsets, NormTable.of(self.norms)), np.float64)
            candidates.memo[LATEST] = (self.norms, matrix)
        out: Floats = matrix
        return out

    def score(self, candidates: Candidates) -> Floats:
        return fuse(self.normalised(candidates), self._combination())

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        given = row_gradient(candidates, dscores)
        return self._by_params(pull(self.normalised(candidates), self._combination(), given))

    def backward(self, candidates: Candidates, dscores: ArrayLike) -> tuple[Floats, Floats]:
        """The gradient by the parameters, and that by the scores of the lists (rows x lists).

        The second goes through the normalisation with its extremes, mean and deviation: what a model under a fusion
        needs, whose scores are one of the lists. It is 0 where a list lacks the document, and through ranks.
        """
        matrix, given = self.normalised(candidates), row_gradient(candidates, dscores)
        by_cell = np.zeros(matrix.shape)
        by_params = self._by_params(pull(matrix, self._combination(), given, by_cell))
        found = self._lists(candidates)
        return by_params, pull_scores(found, candidates.offsets, NormTable.of(self.norms), by_cell)

    def _by_params(self, total: Floats) -> Floats:
        """The gradient by the parameters, from that by the weights of all lists, k and tie."""
        by_weight, factor = total[: len(self.lists)], self.rule.factor
        every = {"k": total[-2], "tie": total[-1], self.rule.share: (by_weight[-1] - by_weight[0]) * factor}
        every |= {f"weight.{name}": by * factor for name, by in zip(self.lists, by_weight, strict=True)}
        return np.array([every[name] for name in self.params.names if name in every], np.float64)

    @property
    def linear_in_params(self) -> bool:  # type: ignore[override]
        """True of sums whose only free parameters are weights."""
        return self.rule.combine in LINEAR and "k" not in self.params.free_names

    def linear_along(self, direction: ArrayLike) -> bool:
        """True where only weights of a sum move, or the tie of edismax."""
        moving = self.params.direction(direction)
        names = {name for name, by in zip(self.params.names, moving, strict=True) if by != 0.0}
        return names <= {"tie"} if self.rule.combine == "dismax" else self.rule.combine in LINEAR and "k" not in names

    def slope(self, candidates: Candidates, direction: ArrayLike) -> Floats:
        if not self.linear_along(direction):
            raise UsageError("the scores of this fusion are linear along the weights of a sum only")
        moving, now = self.params.direction(direction), self._combination()
        if self.rule.combine == "dismax":
            tie = float(moving[self.params.names.index("tie")])
            matrix = self.normalised(candidates)
            return tie * (fuse(matrix, now._replace(tie=1.0)) - fuse(matrix, now._replace(tie=0.0)))
        weights = np.array([-moving[0], moving[0]]) if self.rule.weights == "share" else moving[: len(self.lists)]
        if self.rule.weights == "none":
            weights = np.zeros(len(self.lists))
        return fuse(self.normalised(candidates), now._replace(weights=frozen(weights * self.rule.factor, np.float64)))

    def canonical(self) -> Self:
        """As it is set in the engine: weights that rank alike at any size add up to 1, k is whole where it must be."""
        values, places = self.params.values.copy(), self._weight_places()
        if self.rule.scale_free and values[places].sum() > 0:
            values[places] /= values[places].sum()
        if self.rule.whole_k and "k" in self.params.names:
            at = self.params.names.index("k")
            values[at] = np.clip(np.rint(values[at]), self.params.lower[at], self.params.upper[at])
        return self.at(values)

    def structure(self) -> dict[str, Any]:
        return {"engine": self.engine, "lists": list(self.lists), "settings": dict(self.settings)}

    @classmethod
    def restore(cls, structure: Record) -> Self:
        lists = structure.data.get("lists")
        if not isinstance(lists, list) or not lists or not all(isinstance(name, str) for name in lists):
            structure.fail("lists", "a list of names")
        settings = structure.record("settings").data
        if clash := {"engine", "lists", "self"} & settings.keys():
            structure.fail("settings", f"no {min(clash)}")
        return cls(structure.text("engine"), lists, **settings)
