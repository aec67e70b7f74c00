"""Which function is worth its parameters? Every text model that these rows allow is tuned; held-out queries choose.

Taken is the function with the fewest free parameters among those that are within one standard error of the best on
held-out queries. The same choice is made again without each fold, by the other folds, and each fold is ranked by what
was chosen without it: so the figure that proves the result is corrected for having chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import FliprankError, UsageError
from fliprank.experiment.significance import holm, randomisation
from fliprank.experiment.splits import folds_of
from fliprank.experiment.tuning import tune
from fliprank.measures import Measure
from fliprank.models import Model
from fliprank.models.registry import make_model
from fliprank.optimize.fit import Fit, Tried

__all__ = ["CANDIDATES", "Rival", "baseline_for", "choose_among", "choose_and_tune"]

CANDIDATES = ("bm25", "bm25f", "bm25sum", "lm", "stack")
"""The models that compete, where the rows have what they need."""


@dataclass(frozen=True)
class Rival:
    """One of the models that competed: its free parameters, its figures by default and tuned (held out), and whether
    the tuned one differs from the default of the usual function: p, and p corrected for all that competed (Holm)."""

    name: str
    parameters: int
    default: float
    tuned: float
    difference: float
    p: float
    corrected: float


def baseline_for(rows: Candidates) -> Model:
    """The function that people have: BM25F, or BM25 where there is one field, with default parameters."""
    if rows.terms is None:
        raise UsageError("--model auto compares text functions, and these rows have no term statistics: see train")
    return make_model("bm25f" if len(rows.terms.fields) > 1 else "bm25", rows)


def choose_and_tune(rows: Candidates, *, measure: Measure, folds: int | None, seed: int = 0, **options: Any) -> Fit:
    """The fit of the function that is worth its parameters; `options` are those of `tune`.

    `start` is the usual function with its defaults, `tried` lists the functions, `settings["models"]` their figures.
    """
    if folds is None:
        raise UsageError("--model auto chooses by cross-validation: it can't be left out")
    baseline = baseline_for(rows).prepared(rows, seed)
    models, left_out = _possible(rows)
    fit = choose_among(models, baseline, rows, measure, folds, seed, **options)
    return replace(fit, settings={**fit.settings, "left_out": left_out})


def choose_among(
    models: Mapping[str, Model],
    baseline: Model,
    rows: Candidates,
    measure: Measure,
    folds: int,
    seed: int = 0,
    **options: Any,
) -> Fit:
    """The fit of the one of `models` that is worth its parameters, compared with `baseline`, which becomes `start`."""
    fits = {
        name: tune(model, rows, measure=measure, folds=folds, seed=seed, **options) for name, model in models.items()
    }
    values = {name: _held_out(fit, rows, measure) for name, fit in fits.items()}
    sizes = {name: len(fit.model.params.free_names) for name, fit in fits.items()}
    chosen = _smallest_of_the_best(values, sizes)
    scores, owner = np.empty(len(rows)), rows.query_of_rows()
    for part in folds_of(rows.queries, min(folds, rows.queries), seed):
        others = np.delete(np.arange(rows.queries), part)
        mine = fits[_smallest_of_the_best({name: found[others] for name, found in values.items()}, sizes)]
        assert mine.held_out is not None
        inside = np.isin(owner, part)
        scores[inside] = mine.held_out[inside]
    usual = measure.sign * measure.paired(measure.per_query(baseline.score(rows), rows))
    rivals = _rivals(fits, values, sizes, usual, measure, seed)
    tried = tuple(Tried(f"{r.name}, {r.parameters} parameters", r.tuned, float(r.name == chosen)) for r in rivals)
    fit = fits[chosen]
    told = {**fit.settings, "chosen": chosen, "models": [asdict(rival) for rival in rivals]}
    return replace(fit, start=baseline, tried=tried, settings=told, held_out=scores)


def _possible(rows: Candidates) -> tuple[dict[str, Model], dict[str, str]]:
    """The models that these rows allow, and why the others are left out."""
    found, left_out = dict[str, Model](), dict[str, str]()
    assert rows.terms is not None
    for name in CANDIDATES:
        if len(rows.terms.fields) == 1 and name in ("bm25f", "bm25sum"):
            left_out[name] = "there is one field"
            continue
        try:
            model = make_model(name, rows)
            model.prepared(rows, 0)
            found[name] = model
        except FliprankError as error:
            left_out[name] = str(error)
    return found, left_out


def _held_out(fit: Fit, rows: Candidates, measure: Measure) -> Floats:
    """The measure of each query by fits that did not see it; larger is better."""
    assert fit.held_out is not None
    return measure.sign * measure.paired(measure.per_query(fit.held_out, rows))


def _smallest_of_the_best(values: Mapping[str, Floats], sizes: Mapping[str, int]) -> str:
    """Of the models within one standard error of the best, the one with the fewest parameters."""
    best = max(values, key=lambda name: float(np.nanmean(values[name])))

    def near(name: str) -> bool:
        behind = values[best] - values[name]
        known = behind[~np.isnan(behind)]
        return name == best or (len(known) > 1 and bool(known.mean() <= known.std(ddof=1) / np.sqrt(len(known))))

    return min(filter(near, values), key=lambda name: (sizes[name], -float(np.nanmean(values[name]))))


def _rivals(
    fits: Mapping[str, Fit],
    values: Mapping[str, Floats],
    sizes: Mapping[str, int],
    usual: Floats,
    measure: Measure,
    seed: int,
) -> Sequence[Rival]:
    gaps = {name: found - usual for name, found in values.items()}
    p = {name: randomisation(gap[~np.isnan(gap)], seed=seed) for name, gap in gaps.items()}
    corrected = dict(zip(p, holm(list(p.values())), strict=True))
    out = []
    for name, fit in fits.items():
        assert fit.start is not None
        assert fit.rows is not None
        assert fit.held_out is not None
        default = measure.value(fit.start.score(fit.rows), fit.rows)
        tuned = measure.value(fit.held_out, fit.rows)
        gap = float(np.nanmean(gaps[name])) * measure.sign
        out.append(Rival(name, sizes[name], default, tuned, gap, p[name], float(corrected[name])))
    return out
