"""The ways in which the paper's rankers are trained, and their learning curves (sections 2.2, 2.4, 3 and 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import fliprank as fr
from fliprank.data.candidates import Candidates
from fliprank.experiment.curve_results import LearningCurve
from fliprank.experiment.learning_curve import Fitter, Ranker
from fliprank.experiment.parameter_settings import ParameterSettings
from fliprank.models.base import Model
from fliprank.papers.part import Setting
from fliprank.papers.taylor2006.collections import MEASURE, Collection

__all__ = [
    "LineRest",
    "Precooked",
    "curve_of",
    "curves",
    "descent",
    "line_search",
    "parameters",
    "repeats_of",
    "untuned",
]

ONE_RUN: dict[str, Any] = {"sweep": False, "restarts": 1}
"""The paper has one start and sweeps nothing."""
LINE_REST_EPOCHS = 8
"""Epochs of the line search along hundreds of weights, which the paper runs for 24."""


def descent(data: Collection, model: Model, **options: Any) -> Ranker:
    """Gradient descent on RankNet's cost, pair by pair, over rated and some unrated documents (sections 2.4, 3.1)."""
    return Ranker(model, "taylor2006", "ranknet", options={"sample": data.sample, **ONE_RUN, **options})


def line_search(model: Model, **options: Any) -> Ranker:
    """Line search on NDCG over all documents (section 2.2)."""
    return Ranker(model, "line", options={**ONE_RUN, **options})


def untuned(data: Collection) -> Ranker:
    """Gradient descent on the weights of all features; BM25F stays as it starts (Figure 3)."""
    return descent(data, data.many, parameters=_fixed(data))


@dataclass(frozen=True)
class Precooked:
    """BM25F as the line search of the 9-parameter ranker leaves it, then descent on the other weights (Figure 3)."""

    data: Collection

    def __call__(self, rows: Candidates, valid: Candidates | None, seed: int) -> Model:
        cooked = line_search(self.data.nine).fit(rows, valid, seed, MEASURE).params
        rest = descent(self.data, self.data.many, parameters=_fixed(self.data, cooked))
        return rest.fit(rows, valid, seed, MEASURE)


@dataclass(frozen=True)
class LineRest:
    """Descent on BM25F's parameters alone, then line search on the weights: the paper's "Line search 375"."""

    data: Collection

    def __call__(self, rows: Candidates, valid: Candidates | None, seed: int) -> Model:
        alone = self.data.many.prepared(rows, seed)
        weights: dict[str, float | None] = {name: None for name in alone.params.free_names if name.startswith("w.")}
        tuned = descent(self.data, alone, parameters=ParameterSettings(fix=weights)).fit(rows, valid, seed, MEASURE)
        rest = line_search(self.data.many, epochs=LINE_REST_EPOCHS, parameters=_fixed(self.data, tuned.params))
        return rest.fit(rows, valid, seed, MEASURE)


def _fixed(data: Collection, values: Any = None) -> ParameterSettings:
    """BM25F's parameters held where they start, or at the values given."""
    names = [f"{field}.{kind}" for field in data.fields for kind in "wb"]
    return ParameterSettings(fix={name: None if values is None else float(values[name]) for name in names})


def parameters(data: Collection, model: Model) -> int:
    """How many parameters a ranker has here."""
    return len(model.prepared(data.rows, 0).params.free_names)


def repeats_of(setting: Setting) -> int:
    """How many draws of training queries a curve has; the paper has one."""
    return 1 if setting.quick else 3


_DRAWN: dict[tuple[Any, ...], LearningCurve] = {}
"""Curves that other parts drew in this process: Figure 2, Figure 3 and Table 1 share some."""


def curve_of(setting: Setting, data: Collection, name: str, fitter: Ranker | Fitter, sizes: list[int]) -> LearningCurve:
    """The learning curve of one ranker, over the draws that all rankers of a collection share."""
    key = (setting.quick, setting.seed, str(setting.data.get(data.name)), data.name, name, tuple(sizes))
    if key not in _DRAWN:
        setting.say(f"{data.name}: {name}")
        place = setting.cache / data.name
        _DRAWN[key] = fr.learning_curve(
            {name: fitter}, data.rows, sizes, data.test, repeats=repeats_of(setting), measure=MEASURE,
            seed=setting.seed, checkpoint=place, progress=partial(_tell, setting, data.name),
        )  # fmt: skip
    return _DRAWN[key]


def curves(
    setting: Setting, data: Collection, rankers: dict[str, Ranker | Fitter], sizes: list[int] | None = None
) -> LearningCurve:
    """The learning curves of several rankers, side by side."""
    found = [curve_of(setting, data, name, ranker, sizes or data.sizes) for name, ranker in rankers.items()]
    joined = found[0]
    for other in found[1:]:
        joined = joined.beside(other)
    return joined


def _tell(setting: Setting, name: str, what: str, done: int, total: int, _: Any) -> None:
    setting.say(f"{name}: {what} ({done} of {total})")
