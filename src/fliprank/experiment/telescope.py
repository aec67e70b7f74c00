"""Telescoping: train the stages of a cascade one after the other (Matveeva et al. 2006, sections 2 and 4, figure 1).

Stage s is trained on the `sizes[s]` documents of each query that stage s - 1 ranks highest: all labelled ones among
them and, drawn anew at each stage, three times as many unlabelled ones, rated 0. The validation queries are telescoped
alike. Relevant documents that were cut still count in the ideal ranking, so measures of stages can be compared, as long
as a stage sees no fewer documents than the measure's cut-off.

>>> from fliprank.models import Linear
>>> rng = np.random.default_rng(0)
>>> features = rng.normal(size=(1200, 3))
>>> rows = Candidates.of(features[:, 0] + features[:, 1] > 1, group=[40] * 30, features=features)
>>> fit = telescope(Cascade([Linear(), Linear()], sizes=[40, 10]), *rows.split(0.7, 0.3), epochs=5, restarts=1)
>>> fit.model.sizes, len(fit.stages), fit.stages[1].best.valid > 0.9
((40, 10), 2, True)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath
from fliprank.data.store import read_arrays, write_arrays
from fliprank.data.subsample import subsample, subsample_by_spec
from fliprank.errors import InputError, UsageError
from fliprank.experiment.training import DEFAULT_MEASURE, Watch, train
from fliprank.measures import Measure, parse_measure
from fliprank.models import Model, load_model
from fliprank.models.cascade import Cascade
from fliprank.models.cascade_names import by_stage
from fliprank.models.feature_subset import FeatureSubset
from fliprank.models.trees import Trees
from fliprank.optimize.fit import Epoch, Fit, fingerprint

__all__ = ["Telescoped", "stage_options", "telescope"]

SEEDS = 100
"""Between the seeds of two stages: random starts of a stage take the next few."""

Progress = Callable[[str], AbstractContextManager[Watch | None]]
"""Opened for each stage with what it is called; gives what is called after each epoch."""


@dataclass(frozen=True, eq=False)
class Telescoped(Fit):
    """A trained cascade. `best` and `trail` are its last stage's; `stages` are the fits of all."""

    stages: tuple[Fit, ...] = ()


def telescope(
    cascade: Cascade,
    train: Candidates,
    valid: Candidates | None = None,
    *,
    options: Sequence[Mapping[str, Any] | None] | None = None,
    sample: float | str | None = 3,
    valid_sample: int | None = None,
    warm: bool = False,
    only_better: bool = False,
    measure: str | Measure = DEFAULT_MEASURE,
    seed: int = 0,
    checkpoint: StrPath | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    **common: Any,
) -> Telescoped:
    """Train each stage on the top of the one before; `common` are options of `train` for all stages.

    `options` has those of each stage, over the common ones (objective, method, l2, ...); None takes a stage as it is,
    untrained. `sample`: how many unlabelled documents to draw a labelled one (None: all). `valid_sample` keeps the
    labelled and so many unlabelled validation documents a query, once, before the first stage.

    Not in the paper, and off: `warm` lets a stage that is a model like the one before, of the same features, start
    from where that one ended, not from random weights (it then has one start); `only_better` leaves out a stage that
    does not raise the measure on the validation queries. Later stages learn from less, and may overfit.

    After Ctrl-C the cascade has the stages that were begun; with `checkpoint`, a folder, `resume=True` goes on there.
    """
    given = _options(cascade, options, {"sample": sample, **common})
    chosen, rows, held = parse_measure(measure), train, valid
    if held is not None and valid_sample is not None:
        held = subsample(held, np.random.default_rng([seed, 1]), valid_sample)
    fits: list[Fit] = []
    sizes: list[int] = []
    for s, (stage, size) in enumerate(zip(cascade.stages, cascade.sizes, strict=True)):
        if fits:
            last = fits[-1].model
            rows, held = _top(last, rows, size), None if held is None else _top(last, held, size)
        place = None if checkpoint is None else Path(checkpoint) / f"stage-{s + 1}"
        name = f"stage {s + 1} of {len(cascade.stages)}, top {size}"
        own, start = given[s], cast(Model | _Warm, stage)
        if warm and fits and own is not None and _alike(stage, fits[-1].model):
            start, own = _Warm(fits[-1].model), {**own, "restarts": 1}
        with nullcontext() if progress is None else progress(name) as watch:
            few = (
                rows if own is None else subsample_by_spec(rows, own.pop("sample"), np.random.default_rng([seed, 0, s]))
            )
            work = _Stage(start, few, held, chosen, seed + SEEDS * s, place, resume, watch)
            try:
                fit = work.fit(own)
            except InputError as error:
                raise InputError(f"{name}: {error}") from error
        if not (only_better and fits and held is not None) or work.better(fit, fits[-1].model):
            fits.append(fit)
            sizes.append(size)
        if fit.stopped == "interrupted":
            break
    done = replace(cascade, stages=tuple(each.model for each in fits), sizes=tuple(sizes))
    told = [{"size": size, **each.settings} for size, each in zip(sizes, fits, strict=True)]
    settings = {"measure": str(chosen), "seed": seed, "stages": told}
    return Telescoped(done, fits[-1].best, fits[-1].trail, fit.stopped, settings, tuple(fits))


def stage_options(cascade: Cascade, **words: str | None) -> list[dict[str, Any]]:
    """`options` of each stage from words with commas: objective="ranknet,ranknet,lambdarank@10"; one is for all.

    >>> from fliprank.models import Linear
    >>> stage_options(Cascade([Linear()] * 2, [100, 10]), objective="ranknet,lambdarank@10", method=None)
    [{'objective': 'ranknet'}, {'objective': 'lambdarank@10'}]
    """
    out: list[dict[str, Any]] = [{} for _ in cascade.stages]
    for name, text in words.items():
        if text is not None:
            for own, word in zip(out, by_stage(text, len(out), f"{name}s"), strict=True):
                own[name] = word
    return out


def _options(
    cascade: Cascade, options: Sequence[Mapping[str, Any] | None] | None, common: dict[str, Any]
) -> list[dict[str, Any] | None]:
    if options is None:
        return [dict(common) for _ in cascade.stages]
    if len(options) != len(cascade.stages):
        raise UsageError(f"options for {len(options)} stages, but the cascade has {len(cascade.stages)}")
    return [None if own is None else {**common, **own} for own in options]


def _top(model: Model, rows: Candidates, size: int) -> Candidates:
    return rows.top(model.score(rows), size)


class _Warm:
    """Stands for a model that is trained further: ready to train, it is that model."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def prepared(self, train: Candidates, rng: Any) -> Model:
        return self.model


def _alike(stage: Model, last: Model) -> bool:
    """Whether the two are models of one kind and structure, before either learnt its features."""
    if isinstance(stage, FeatureSubset) and isinstance(last, FeatureSubset):  # its names were patterns
        return stage.features == last.features and _alike(stage.model, last.model)
    mine, theirs = (
        {f.name: value for f in fields(model) if isinstance(value := getattr(model, f.name), int | float | str | tuple)}
        for model in (stage, last)
    )
    return type(stage) is type(last) and mine == theirs and not isinstance(stage, Trees)


@dataclass(frozen=True, eq=False)
class _Stage:
    """One stage to train, on what reaches it."""

    model: Model | _Warm
    rows: Candidates
    valid: Candidates | None
    measure: Measure
    seed: int
    place: Path | None
    resume: bool
    watch: Watch | None

    def fit(self, options: dict[str, Any] | None) -> Fit:
        if options is None:
            assert isinstance(self.model, Model)
            return self._told(self.model, self.rows, 0, "not trained", {})
        if isinstance(self.model, Trees):
            return self._grow()
        return train(
            cast(Model, self.model),
            self.rows,
            self.valid,
            measure=self.measure,
            seed=self.seed,
            checkpoint=self.place,
            resume=self.resume,
            watch=self.watch,
            **options,
        )

    def better(self, fit: Fit, last: Model) -> bool:
        """Whether the stage ranks the validation documents better than the one before did."""
        assert self.valid is not None
        sign = self.measure.sign
        return sign * fit.best.valid > sign * self._measure(last.score(self.valid), self.valid)

    def _grow(self) -> Fit:
        """LightGBM's trees: how many is chosen by the measure on validation queries."""
        assert isinstance(self.model, Trees)
        rows, valid = self.rows, self.valid
        key = fingerprint(rows, valid=fingerprint(valid), measure=str(self.measure), seed=self.seed, trees=self.model)
        model = self._kept(key) if self.resume else None
        if model is None:
            sign = self.measure.sign
            judge = None if valid is None else lambda scores: sign * self._measure(scores, valid)
            model = self.model.grown(rows, valid, judge, self.seed)
            self._keep(model, key)
        count = 0 if model.forest is None else len(model.forest.roots)
        return self._told(model, rows, count, "all trees grown", {"model": "trees", "trees": count, "seed": self.seed})

    def _kept(self, key: str) -> Trees | None:
        """The trees of an earlier run of this stage on the same rows."""
        if self.place is None or not (self.place / "trees.checkpoint").exists():
            return None
        if read_arrays(self.place / "trees.checkpoint")[0].get("key") != key:
            raise InputError("the checkpoint is of another run", path=self.place, hint="delete it to start anew")
        model = load_model(self.place / "model")
        return model if isinstance(model, Trees) else None

    def _keep(self, model: Trees, key: str) -> None:
        if self.place is not None:
            model.save(self.place / "model")
            write_arrays(self.place / "trees.checkpoint", {"key": key}, {})

    def _told(self, model: Model, rows: Candidates, number: int, stopped: str, settings: dict[str, Any]) -> Fit:
        """A fit of one epoch."""
        parts = [float("nan") if p is None else self._measure(model.score(p), p) for p in (rows, self.valid)]
        epoch = Epoch(number, float("nan"), parts[0], parts[1])
        return Fit(model, epoch, (epoch,), stopped, settings)

    def _measure(self, scores: Any, rows: Candidates) -> float:
        return self.measure.value(scores, rows)
