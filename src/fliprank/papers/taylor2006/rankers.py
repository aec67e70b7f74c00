"""The ways in which the paper's rankers are trained, and their learning curves (sections 2.2, 2.4, 3 and 4.3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import fliprank as fr
from fliprank.data.candidates import Candidates
from fliprank.experiment.curve_results import LearningCurve
from fliprank.experiment.learning_curve import Fitter, Ranker
from fliprank.experiment.parameter_settings import ParameterSettings
from fliprank.models.base import Model
from fliprank.optimize.fit import fingerprint
from fliprank.papers.checkpoint import kept
from fliprank.papers.part import Setting
from fliprank.papers.taylor2006.collections import MEASURE, Collection

__all__ = [
    "DRAWN_OFTEN",
    "LineFew",
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
DRAWN_OFTEN = 256
"""Training queries up to which a size is drawn several times."""
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
class LineFew:
    """Line search of the 9-parameter ranker. What it found is kept: Figure 3 needs what Figure 2 made."""

    setting: Setting
    data: Collection

    def parameters(self, rows: Candidates, valid: Candidates | None, seed: int) -> dict[str, float]:
        """The parameters where the search ends."""
        held = None if valid is None else fingerprint(valid)
        what = f"line search of few parameters {fingerprint(rows, valid=held, seed=seed, model=str(self.data.nine))}"
        return dict(
            kept(
                replace(self.setting, cache=self.setting.fits, progress=None),
                what,
                partial(self._fit, rows, valid, seed),
            )
        )

    def _fit(self, rows: Candidates, valid: Candidates | None, seed: int) -> dict[str, float]:
        found = line_search(self.data.nine).fit(rows, valid, seed, MEASURE).params
        return dict(zip(found.names, found.values.tolist(), strict=True))

    def __call__(self, rows: Candidates, valid: Candidates | None, seed: int) -> Model:
        ready = self.data.nine.prepared(rows, seed)
        return ready.at(ready.params.replace(self.parameters(rows, valid, seed)))


@dataclass(frozen=True)
class Precooked:
    """BM25F as the line search of the 9-parameter ranker leaves it, then descent on the other weights (Figure 3)."""

    setting: Setting
    data: Collection

    def __call__(self, rows: Candidates, valid: Candidates | None, seed: int) -> Model:
        cooked = LineFew(self.setting, self.data).parameters(rows, valid, seed)
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
    """How many draws of training queries a curve has up to `DRAWN_OFTEN`; the paper has one."""
    return 1 if setting.quick else 3


def curve_of(
    setting: Setting, data: Collection, name: str, fitter: Ranker | Fitter, sizes: list[int], repeats: int
) -> LearningCurve:
    """The learning curve of one ranker, over the draws that all rankers of a collection share.

    Small sizes are drawn several times, large ones, which cost most and of which two draws share most queries, once.
    Fits are kept for all parts: Figure 2, Figure 3 and Table 1 share some.
    """
    setting.say(f"{data.name}: {name}")
    often, once = ([s for s in sizes if (s <= DRAWN_OFTEN) == small] for small in (True, False))
    draw = partial(
        fr.learning_curve, {name: fitter}, data.rows, test=data.test, measure=MEASURE, seed=setting.seed,
        checkpoint=setting.fits, progress=partial(_tell, setting, data.name),
    )  # fmt: skip
    # Large sizes first: cores that have nothing left to do are then idle for less long.
    large = draw(sizes=once, repeats=1) if once else None
    small = draw(sizes=often, repeats=repeats) if often else None
    if large is None or small is None:
        found = large or small
        assert found is not None
        return found
    return _continued(small, large)


def _continued(small: LearningCurve, large: LearningCurve) -> LearningCurve:
    """One curve: the single draw of each large size stands for as many as the small ones have."""
    times = small.repeats
    return replace(
        small,
        sizes=small.sizes + large.sizes,
        values={n: np.concatenate([each, np.repeat(large.values[n], times, 1)]) for n, each in small.values.items()},
        training={
            n: np.concatenate([each, np.repeat(large.training[n], times, 1)]) for n, each in small.training.items()
        },
        overlap=np.concatenate([small.overlap, np.ones(len(large.sizes))]),
        present=large.present,
    )


def curves(
    setting: Setting,
    data: Collection,
    rankers: dict[str, Ranker | Fitter],
    sizes: list[int] | None = None,
    repeats: int | None = None,
) -> LearningCurve:
    """The learning curves of several rankers, side by side, with so many draws of small sizes (`repeats_of`)."""
    often = repeats_of(setting) if repeats is None else repeats
    found = [curve_of(setting, data, name, ranker, sizes or data.sizes, often) for name, ranker in rankers.items()]
    joined = found[0]
    for other in found[1:]:
        joined = joined.beside(other)
    return joined


def _tell(setting: Setting, name: str, what: str, done: int, total: int, _: Any) -> None:
    setting.say(f"{name}: {what} ({done} of {total})")
