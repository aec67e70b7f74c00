"""`train` for blends: each part is trained as it would be alone, then validation queries say how to weigh them.

Three choices compete: the best part alone, equal weights, and weights fitted by exact line searches on the measure
itself. Judged on the queries that they were set on, fitted weights always win; so all three are cross-validated over
the validation queries: set on four fifths, judged on the last, over several divisions. Equal weights need no choosing,
and are taken unless one of the others beats them by more than one standard error: few queries can't tell weights
apart, nor parts. The choice is then set on all validation queries.

>>> from fliprank.measures import parse_measure
>>> from fliprank.models import Linear
>>> x = np.random.default_rng(0).normal(size=(900, 3))
>>> labels = x @ [2, 1, 0.3] + np.random.default_rng(1).normal(size=900) > 2
>>> rows = Candidates.of(labels, group=[15] * 60, features=x)
>>> parts = [Linear().prepared(rows, 0).at([0, *weights]) for weights in ([1, 0, 0], [0, 1, 0], [0, -1, -1])]
>>> found = choose_weights(Blend(parts).prepared(rows, 0), rows, parse_measure("nDCG@10"))
>>> found.choice, found.weights.round(1).tolist()
('fitted weights', [0.6, 0.4, 0.0])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath
from fliprank.errors import InputError, MissingExtraError, UsageError
from fliprank.experiment.trials import Progress
from fliprank.measures import Measure
from fliprank.models import Blend, Model
from fliprank.optimize.fit import INTERRUPTED, Epoch, Fit, Recorder, Tried
from fliprank.optimize.methods import Exact
from fliprank.optimize.problem import Problem

__all__ = ["Choice", "choose_weights", "train_blend"]

FOLDS, DIVISIONS = 5, 4
"""The validation queries are divided into so many folds, so many times."""

PART, EQUAL, FITTED = "the best part", "equal weights", "fitted weights"

FitPart = Callable[..., Fit]
"""Trains one part, with options of `train`."""


@dataclass(frozen=True, eq=False)
class Choice:
    """How to weigh the parts: the choice, its weights, and the cross-validated measure of each choice."""

    choice: str
    weights: Floats
    judged: dict[str, float]


def choose_weights(blend: Blend, valid: Candidates, measure: Measure, seed: int = 0) -> Choice:
    """What validation queries say about a blend whose parts are trained."""
    count = len(blend.parts)
    if count == 1 or valid.queries < 2 * FOLDS:
        return Choice(EQUAL, np.full(count, 1.0 / count), {})
    held = {choice: np.zeros(valid.queries) for choice in SETTERS}
    rng = np.random.default_rng([seed, count])
    for _ in range(DIVISIONS):
        for fold in np.array_split(rng.permutation(valid.queries), FOLDS):
            own = np.sort(fold)
            rest, part = valid.select(np.setdiff1d(np.arange(valid.queries), own)), valid.select(own)
            for choice, weights_on in SETTERS.items():
                model = blend.at(weights_on(blend, rest, measure))
                held[choice][own] += measure.per_query(model.score(part), part) / DIVISIONS
    known = {choice: measure.sign * measure.paired(values) for choice, values in held.items()}
    gains = {each: known[each] - known[EQUAL] for each in (PART, FITTED)}
    gains = {each: gain[~np.isnan(gain)] for each, gain in gains.items()}
    sure = {each: gain for each, gain in gains.items() if gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain))}
    choice = max(sure, key=lambda each: float(sure[each].mean()), default=EQUAL)
    judged = {each: measure.aggregate(values) for each, values in held.items()}
    return Choice(choice, SETTERS[choice](blend, valid, measure), judged)


def _best_part(blend: Blend, rows: Candidates, measure: Measure) -> Floats:
    """All weight on the part that is best on these rows."""
    each = np.eye(len(blend.parts))
    values = [measure.sign * measure.value(blend.at(one).score(rows), rows) for one in each]
    weights: Floats = each[int(np.argmax(values))]
    return weights


def _equal(blend: Blend, rows: Candidates, measure: Measure) -> Floats:
    return np.full(len(blend.parts), 1.0 / len(blend.parts))


def _fitted(blend: Blend, rows: Candidates, measure: Measure) -> Floats:
    """The weights where exact line searches along each of them end, from equal weights; they add up to 1."""
    problem = Problem.of(blend.at(_equal(blend, rows, measure)), rows, measure)
    recorder = Recorder(problem, keep="last", measured=False)
    Exact(directions="axes").run(problem, recorder, np.random.default_rng(0))
    weights: Floats = recorder.fit().model.params.values
    scaled: Floats = weights / weights.sum()
    return scaled


SETTERS: dict[str, Callable[[Blend, Candidates, Measure], Floats]] = {
    PART: _best_part,
    EQUAL: _equal,
    FITTED: _fitted,
}
"""How the weights of each choice are set on some queries."""


def train_blend(
    model: Blend,
    rows: Candidates,
    valid: Candidates | None,
    measure: Measure,
    fit_part: FitPart,
    *,
    seed: int = 0,
    checkpoint: StrPath | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Fit:
    """The parts, each by `fit_part` with the same options, and the blend of them or the best one.

    A part that is ready is taken as it is; one whose library is not installed is left out, which `tried` says. After
    Ctrl-C the best part so far is the result. Without validation queries the weights are equal.
    """
    if odd := sorted(options.keys() - COMMON):
        raise UsageError(f"a blend has no setting {odd[0]}: give it to a part, or train the part alone")
    fits: dict[str, Fit] = {}
    left_out: list[str] = []
    for label, part in zip(model.labels, model.parts, strict=True):
        own = {"seed": seed, "checkpoint": None if checkpoint is None else Path(checkpoint) / label, **options}
        try:
            fits[label] = (
                _taken(part, rows, valid, measure)
                if part.ready
                else fit_part(part, progress=_named(label, progress), **own)
            )
        except MissingExtraError as error:
            left_out.append(f"{label}: left out, {error}")
            continue
        if fits[label].interrupted:
            break
    if not fits:
        raise InputError(f"no part of this blend can be trained: {'; '.join(left_out)}")
    return _blended(fits, left_out, rows, valid, measure, seed)


COMMON = {"keep", "restarts", "sweep", "average", "patience", "jobs", "resume", "epochs"}
"""Options of `train` that make sense for every part."""


def _named(label: str, progress: Progress | None) -> Progress | None:
    if progress is None:
        return None
    return lambda what, done, total, epoch: progress(f"{label}, {what}", done, total, epoch)


def _figures(model: Model, rows: Candidates, valid: Candidates | None, measure: Measure) -> Epoch:
    """The measure of a model, as an epoch of its own."""
    found = [float("nan") if part is None else measure.value(model.score(part), part) for part in (rows, valid)]
    return Epoch(0, float("nan"), *found)


def _taken(part: Model, rows: Candidates, valid: Candidates | None, measure: Measure) -> Fit:
    """A part that needs no training."""
    epoch = _figures(part, rows, valid, measure)
    return Fit(part, epoch, (epoch,), "not trained", measure=measure)


def _blended(
    fits: dict[str, Fit], left_out: list[str], rows: Candidates, valid: Candidates | None, measure: Measure, seed: int
) -> Fit:
    """The fit of the blend of these parts, or of the best of them."""
    blend = Blend([fit.model for fit in fits.values()]).prepared(rows, 0)
    interrupted = any(fit.interrupted for fit in fits.values())
    if interrupted:
        best = int(np.argmax([measure.sign * fit.chosen_by for fit in fits.values()]))
        found = Choice(PART, np.eye(len(fits))[best], {})
    elif valid is None:
        found = Choice(EQUAL, _equal(blend, rows, measure), {})
    else:
        found = choose_weights(blend, valid, measure, seed)
    model = blend.weighted(found.weights)
    weights = dict(zip(fits, found.weights.tolist(), strict=True))
    tried = [Tried(_said(label, fit), fit.chosen_by, weights[label]) for label, fit in fits.items()]
    tried += [
        Tried(f"{name}, cross-validated", value, float(name == found.choice)) for name, value in found.judged.items()
    ]
    tried += [Tried(note, float("nan")) for note in left_out]
    settings = {"measure": str(measure), "method": "blend", "seed": seed, "choice": found.choice}
    settings |= {"parts": [{"part": label, "weight": weights[label], **fit.settings} for label, fit in fits.items()]}
    epoch = _figures(model, rows, valid, measure)
    stopped = INTERRUPTED if interrupted else "all parts trained"
    return Fit(model, epoch, (epoch,), stopped, settings, measure=measure, tried=tuple(tried), rows=rows)


def _said(label: str, fit: Fit) -> str:
    """A part, with the setting that was chosen for it."""
    chosen = [each.what for each in fit.tried if each.weight]
    return f"{label}: {chosen[0]}" if chosen else label
