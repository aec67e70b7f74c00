"""Text and other lists under one fusion: BM25F's parameters and the fusion's weights as one model, with gradient.

The scores of a text model become the first list of a `Fusion`; the other lists come with the rows (`Candidates.lists`).
As in a search engine, the text list of a query is its first `window` documents with a score above 0; for all others the
list counts as one that lacks them. The list is normalised by its own extremes, mean and deviation, which move with
the text model's parameters: the gradient goes through them.

A row's score depends on the other rows of its query, so these must hold the first `window` of the text model:
`index.candidates(queries, qrels, runs=..., ranker=...)` makes such rows.

>>> from fliprank.data.ids import Ids
>>> from fliprank.data.ranked_lists import RankedLists
>>> from fliprank.data.term_statistics import TermStatistics
>>> from fliprank.models.bm25 import BM25
>>> terms = TermStatistics(("body",), [0, 1], Ids.of(["shoe"]), [2.0], [0, 1, 2, 3], [[3], [1], [0]], [[2], [2], [2]])
>>> dense = RankedLists.of(["dense"], [[0.2], [np.nan], [0.8]], np.array([0, 3]))
>>> rows = Candidates([0, 3], [1.0, 0.0, 0.0], Ids.of(["q"]), terms=terms, lists=dense)
>>> model = Hybrid(BM25()).prepared(rows, 0)
>>> model.params.names, model.score(rows).tolist()
(('k', 'b', 'weight.text', 'weight.dense'), [1.0, 0.0, 1.0])
"""

from __future__ import annotations

import copy
import weakref
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.csr import positions
from fliprank.data.order import order_rows
from fliprank.data.ranked_lists import RankedLists, statistics_of
from fliprank.errors import UsageError
from fliprank.models.base import UNKNOWN, Model, Seed, build, describe, register, row_gradient
from fliprank.models.bm25 import BM25F
from fliprank.models.field_model import FieldModel
from fliprank.models.folder import Record
from fliprank.models.fusion import Fusion
from fliprank.models.parameters import Parameters
from fliprank.models.stack_names import joined

__all__ = ["TEXT", "WINDOW", "Hybrid"]

TEXT = "text"
"""What the list of the text model is called."""

WINDOW = 100
"""Documents of each list that an engine fuses, unless said."""


@register
@dataclass(frozen=True, eq=False, init=False)
class Hybrid(Model):
    """The scores of `text` (BM25, BM25F or BM25Sum) fused with the lists of the rows by the function of `fusion`.

    Parameters: those of the text model, then those of the fusion, where the text is the list `text`: `weight.text`,
    `weight.dense`. The lists of a fusion that names none are those of the rows that the model is prepared on.
    """

    kind: ClassVar[str] = "hybrid"
    summary: ClassVar[str] = "BM25F fused with other lists: its parameters and the weights in one fit"
    needs: ClassVar[frozenset[str]] = frozenset({"terms", "lists"})
    whole_queries: ClassVar[bool] = True
    text: FieldModel
    fusion: Fusion
    window: int
    _latest: tuple[weakref.ref[Candidates] | None, Candidates | None] = field(repr=False)

    def __init__(self, text: Model | None = None, fusion: Fusion | None = None, window: int = WINDOW) -> None:
        text, fusion = BM25F() if text is None else text, Fusion("plain") if fusion is None else fusion
        if not isinstance(text, FieldModel):
            given = text.kind if isinstance(text, Model) else repr(text)
            raise UsageError(f"the text model of a hybrid is BM25, BM25F or BM25Sum, not {given}")
        if not isinstance(fusion, Fusion):
            raise UsageError(f"a hybrid is fused by a Fusion, not by {fusion!r}")
        if not isinstance(window, int) or window < 2:
            raise UsageError(f"window is a number of documents from 2, not {window!r}")
        _check_gradient(fusion)
        if fusion.lists and fusion.lists[0] != TEXT:
            raise UsageError(f"the first list of a hybrid's fusion is called {TEXT!r}, not {fusion.lists[0]!r}")
        self._set(text=text, fusion=fusion, window=window, params=UNKNOWN)
        if text.params is not UNKNOWN and fusion.lists:
            known = [text.params, fusion.params]
            # What is fixed or shared is a matter of the whole: inside, all parameters of the fusion are free.
            inside = fusion.at(fusion.params.release(fusion.params.names))
            self._set(params=joined([text.kind, fusion.kind], known, Parameters((), np.empty(0))), fusion=inside)

    def _set(self, **changes: Any) -> None:
        object.__setattr__(self, "_latest", (None, None))
        for name, value in changes.items():
            object.__setattr__(self, name, value)

    def at(self, values: ArrayLike | Parameters) -> Self:
        params, other = self.params_at(values), copy.copy(self)
        cut = len(self.text.params)
        text, fusion = self.text.at(params.values[:cut]), self.fusion.at(params.values[cut:])
        other._set(params=params, text=text, fusion=fusion)
        return other

    @property
    def ready(self) -> bool:
        return self.text.ready and self.fusion.ready

    def prepared(self, train: Candidates, rng: Seed) -> Self:
        """With the fields, average lengths and lists of these rows, unless it has them; parameters are kept."""
        text, names = self.text.prepared(train, rng), (TEXT, *_lists(train).names)
        if self.ready:
            self.with_text(train.select([]))
            return self
        if TEXT in names[1:]:
            raise UsageError(f"a list is called {TEXT!r}, as that of the text model is: give it another name")
        fusion = self.fusion if self.fusion.lists else Fusion(self.fusion.engine, names, **self.fusion.settings)
        made = type(self)(text, fusion, self.window)
        return made if self.params is UNKNOWN else made.at(self.params)

    def initial(self, rng: np.random.Generator) -> Floats:
        return np.concatenate([self.text.initial(rng), self.fusion.initial(rng)])

    @property
    def penalty_weights(self) -> Floats:
        return np.concatenate([self.text.penalty_weights, self.fusion.penalty_weights])

    def with_text(self, candidates: Candidates) -> Candidates:
        """The rows with the text list before the others. The latest are kept: a gradient follows upon the scores."""
        if not self.ready:
            raise UsageError("this hybrid is not ready: tune it, or call prepared(train, rng)")
        rows, latest = self._latest
        if rows is not None and latest is not None and rows() is candidates:
            return latest
        others = _lists(candidates)
        if others.names != self.fusion.lists[1:]:
            have, known = ", ".join(others.names), ", ".join(self.fusion.lists[1:])
            raise UsageError(f"this hybrid fuses text with {known}; these rows have {have}")
        latest = replace(candidates, lists=self._lists_with_text(candidates, others))
        object.__setattr__(self, "_latest", (weakref.ref(candidates), latest))
        return latest

    def _lists_with_text(self, candidates: Candidates, others: RankedLists) -> RankedLists:
        text, rank = self.text.score(candidates), np.empty(len(candidates), np.int64)
        rank[order_rows(text, candidates.offsets, candidates.docids)] = positions(candidates.offsets) + 1
        inside = (text > 0) & (rank <= self.window)
        text, rank = np.where(inside, text, np.nan)[:, None], np.where(inside, rank, 0)[:, None]
        statistics = np.concatenate([statistics_of(text, candidates.offsets), others.statistics], axis=1)
        scores, ranks = np.hstack([text, others.scores]), np.hstack([rank, others.ranks])
        return RankedLists(self.fusion.lists, scores, ranks, statistics)

    def score(self, candidates: Candidates) -> Floats:
        return self.fusion.score(self.with_text(candidates))

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        by_fusion, by_lists = self.fusion.backward(self.with_text(candidates), row_gradient(candidates, dscores))
        return np.concatenate([self.text.pullback(candidates, by_lists[:, 0]), by_fusion])

    def linear_along(self, direction: ArrayLike) -> bool:
        """True where only weights of a sum move."""
        moving = self.params.direction(direction)
        return not moving[: len(self.text.params)].any() and self.fusion.linear_along(self._of_fusion(moving))

    def _of_fusion(self, moving: Floats) -> Floats:
        """A direction of the fusion's own free parameters."""
        return moving[len(self.text.params) :]

    def slope(self, candidates: Candidates, direction: ArrayLike) -> Floats:
        if not self.linear_along(direction):
            raise UsageError("the scores of this hybrid are linear along the weights of a sum only")
        return self.fusion.slope(self.with_text(candidates), self._of_fusion(self.params.direction(direction)))

    def canonical(self) -> Self:
        """As it is set in the engine: weights that rank alike at any size add up to 1."""
        values = np.concatenate([self.text.params.values, self.fusion.canonical().params.values])
        return self.at(values)

    def structure(self) -> dict[str, Any]:
        return {"text": describe(self.text), "fusion": self.fusion.structure(), "window": self.window}

    @classmethod
    def restore(cls, structure: Record) -> Self:
        fusion = Fusion.restore(structure.record("fusion"))
        return cls(build(structure.record("text")), fusion, structure.integer("window"))


def _lists(candidates: Candidates) -> RankedLists:
    if candidates.lists is None:
        raise UsageError(
            "a hybrid fuses text with other lists, and these rows have none: give them by --run, from Python by "
            "index.candidates(queries, qrels, runs={'dense': 'dense.run'})"
        )
    return candidates.lists


def _check_gradient(fusion: Fusion) -> None:
    """Raise where the text list's scores do not count, so that no gradient reaches the text model."""
    if fusion.rule.norms[0].kind == "rank":
        raise UsageError(
            f"{fusion.engine} fuses ranks as it is set, and no gradient goes through ranks to the text model: take a "
            "function of scores, as plain, elasticsearch-linear or opensearch; or tune the text first, then fuse it"
        )
