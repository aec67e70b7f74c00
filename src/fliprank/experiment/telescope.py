"""Telescoping: train the stages of a cascade one after the other (Matveeva et al. 2006, sections 2 and 4, figure 1).

Stage s is trained on the `sizes[s]` documents of each query that stage s - 1 ranks highest: all labelled ones among
them and, drawn again at each stage, three times as many unlabelled ones, rated 0. The validation queries are telescoped
in the same way. Relevant documents that were cut still count in the ideal ranking, so that the measures of two stages
can be compared as long as each stage sees at least as many documents as the measure's cut-off.

>>> from fliprank.models import Linear
>>> rng = np.random.default_rng(0)
>>> features = rng.normal(size=(1200, 3))
>>> rows = Candidates.of(features[:, 0] + features[:, 1] > 1, group=[40] * 30, features=features)
>>> fit = telescope(Cascade([Linear(), Linear()], sizes=[40, 10]), *rows.split(0.7, 0.3), epochs=5, restarts=1)
>>> fit.model.sizes, len(fit.stages), fit.stages[1].best.valid > 0.9
((40, 10), 2, True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.arrays import Ints
from fliprank.checked import checked
from fliprank.data.candidates import Candidates, concat
from fliprank.data.files import StrPath
from fliprank.data.scattered import ScatteredRows
from fliprank.data.subsample import subsample, subsample_by_spec, subsample_parts
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import InputError, UsageError
from fliprank.experiment.training import check_in_memory, train
from fliprank.experiment.trials import Progress
from fliprank.measures import Measure, parse_measure
from fliprank.models import Model
from fliprank.models.cascade import Cascade
from fliprank.models.cascade_names import by_stage
from fliprank.models.feature_subset import FeatureSubset
from fliprank.models.trees import Trees
from fliprank.optimize.anywhere import AnyRows, cut_to_top, measured
from fliprank.optimize.fit import Epoch, Fit

__all__ = ["Blocks", "options_by_stage", "stage_options", "telescope"]

SEEDS = 100
"""The distance between the seeds of two stages: the random starts of a stage use the seeds in between."""

OF_TREES = {"objective", "restarts", "sweep", "average", "keep", "jobs"}
"""Options of `train` that trees have in common with other stages."""

OpenProgress = Callable[[str], AbstractContextManager[Progress | None]]
"""Opened for each stage with its name; gives the function that is called after each epoch."""


Blocks = Callable[[], Iterable[Candidates]]
"""Gives the training queries block by block, each time that it is called: for sets that memory does not hold."""


@checked
def telescope(
    cascade: Cascade,
    train: Candidates | ScatteredRows | Blocks,
    valid: Candidates | ScatteredRows | None = None,
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
    progress: OpenProgress | None = None,
    **common: Any,
) -> Fit:
    """Train each stage on the top of the one before; `common` are options of `train` for all stages.

    `options` has those of each stage (objective, method, l2, ...), which override the common ones; a stage with None is
    not trained but taken as it is. `sample` is the number of unlabelled documents to draw per labelled one (None: all).
    `valid_sample` keeps the labelled validation documents and so many unlabelled ones per query, drawn once, before the
    first stage.

    Two options are not in the paper, and off by default. With `warm`, a stage of the same kind and features as the one
    before starts where that one ended, not from random weights (it then has one start). With `only_better`, a stage
    that does not raise the measure on the validation queries is left out: later stages learn from less, and may
    overfit.

    `train` may be a function that gives the queries in blocks, the same ones at each call. Each stage then calls it
    again, cuts one block after the other, and keeps what it draws from each: only that must fit in memory. Which rows
    are left is remembered, so that a stage scores no more than what reached the one before.

    After Ctrl-C the cascade has the stages that were begun. With `checkpoint`, a folder, `resume=True` goes on from
    there: the same run, bit for bit.
    """
    given = options_by_stage(cascade, options, {"sample": sample, **common})
    chosen, held = parse_measure(measure), valid
    rows, parts = (None, _InBlocks(train)) if callable(train) else (train, None)
    for stage, own in zip(cascade.stages, given, strict=True):
        if own is not None:
            check_in_memory(stage, rows, held)
    if held is not None and valid_sample is not None:
        drawing = np.random.default_rng([seed, 1])
        few = subsample(held, drawing, valid_sample) if isinstance(held, Candidates) else None
        held = few or subsample_parts(held, drawing, valid_sample)  # type: ignore[arg-type]
    fits: list[Fit] = []
    sizes: list[int] = []
    for s, (stage, size) in enumerate(zip(cascade.stages, cascade.sizes, strict=True)):
        if fits:
            last = fits[-1].model
            rows, held = (None if each is None else cut_to_top(each, last, size) for each in (rows, held))
            if parts is not None:
                parts.cuts.append((last, size))
        place = None if checkpoint is None else Path(checkpoint) / f"stage-{s + 1}"
        name = f"stage {s + 1} of {len(cascade.stages)}, top {size}"
        own = given[s]
        if warm and fits and own is not None and _alike(stage, fits[-1].model):
            stage, own = fits[-1].model, {**own, "restarts": 1}
        with nullcontext() if progress is None else progress(name) as report:
            drawn: AnyRows | None = rows
            if own is not None and parts is not None:
                drawn = parts.draw(own.pop("sample"), [seed, 0, s])
            elif own is not None:
                assert rows is not None
                drawn = subsample_by_spec(rows, own.pop("sample"), np.random.default_rng([seed, 0, s]))
            work = _Stage(stage, drawn, held, chosen, seed + SEEDS * s, place, resume, report)
            try:
                fit = work.fit(own)
            except InputError as error:
                raise InputError(f"{name}: {error}") from error
        if not (only_better and fits and held is not None) or work.better(fit, fits[-1].model):
            fits.append(fit)
            sizes.append(size)
        if fit.interrupted:
            break
    trained = replace(cascade, stages=tuple(each.model for each in fits), sizes=tuple(sizes))
    each_stage = [{"size": size, **each.settings} for size, each in zip(sizes, fits, strict=True)]
    settings = {"measure": str(chosen), "seed": seed, "stages": each_stage}
    end = fits[-1]
    return Fit(trained, end.best, end.trail, fit.stopped, settings, measure=chosen, tried=end.tried, stages=tuple(fits))


def stage_options(cascade: Cascade, **words: str | None) -> list[dict[str, Any]]:
    """The `options` of each stage from names separated by commas; a single name is for all stages.

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


def options_by_stage(
    cascade: Cascade, options: Sequence[Mapping[str, Any] | None] | None, common: Mapping[str, Any]
) -> list[dict[str, Any] | None]:
    """The options of each stage: its own over those that all have in common; None for a stage that is not trained."""
    if options is None:
        return [dict(common) for _ in cascade.stages]
    if len(options) != len(cascade.stages):
        raise UsageError(f"options for {len(options)} stages, but the cascade has {len(cascade.stages)}")
    return [None if own is None else {**common, **own} for own in options]


@dataclass(eq=False)
class _InBlocks:
    """Training queries in blocks: which rows of each are left, and the cuts to be made when a stage asks for them."""

    blocks: Blocks
    left: list[Ints | None] = field(default_factory=list)
    cuts: list[tuple[Model, int]] = field(default_factory=list)

    def draw(self, sample: float | str | None, seed: list[int]) -> Candidates:
        """What a stage learns from: drawn of each block, after earlier stages have cut it."""
        drawn, left = list[Candidates](), list[Ints | None]()
        for number, block in enumerate(self.blocks()):
            kept = self.left[number] if self.left else None
            rows = block if kept is None else block.take(kept)
            for model, size in self.cuts:
                best = rows.top_rows(model.score(rows), size)
                rows, kept = rows.take(best), best if kept is None else kept[best]
            drawn.append(subsample_by_spec(rows, sample, np.random.default_rng([*seed, number])))
            left.append(kept)
        if not drawn:
            raise InputError("there are no blocks of training queries")
        self.left, self.cuts = left, []
        return concat(*drawn)


def _alike(stage: Model, last: Model) -> bool:
    """Whether the two models have the same kind and structure, whatever features they were prepared on."""
    if isinstance(stage, FeatureSubset) and isinstance(last, FeatureSubset):  # its names were patterns
        return stage.features == last.features and _alike(stage.model, last.model)
    mine, theirs = (
        {f.name: value for f in fields(model) if isinstance(value := getattr(model, f.name), int | float | str | tuple)}
        for model in (stage, last)
    )
    return type(stage) is type(last) and mine == theirs and not isinstance(stage, Trees)


@dataclass(frozen=True, eq=False)
class _Stage:
    """One stage to train, with the rows that reach it."""

    model: Model
    rows: AnyRows | None
    valid: AnyRows | None
    measure: Measure
    seed: int
    place: Path | None
    resume: bool
    progress: Progress | None

    def fit(self, options: dict[str, Any] | None) -> Fit:
        if options is None:
            return self._as_it_is()
        assert self.rows is not None
        if isinstance(self.model, Trees):  # the methods and settings of the other stages are not for it
            options = {name: value for name, value in options.items() if name in OF_TREES}
        return train(
            self.model,
            self.rows,
            self.valid,
            measure=self.measure,
            seed=self.seed,
            checkpoint=self.place,
            resume=self.resume,
            progress=self.progress,
            **options,
        )

    def better(self, fit: Fit, last: Model) -> bool:
        """Whether the stage ranks the validation documents better than the one before did."""
        assert self.valid is not None
        sign = self.measure.sign
        return sign * fit.best.valid > sign * measured(last, self.valid, self.measure)

    def _as_it_is(self) -> Fit:
        """The fit of a stage that is not trained: it has no epochs."""
        nan = float("nan")
        found = [nan if part is None else measured(self.model, part, self.measure) for part in (self.rows, self.valid)]
        epoch = Epoch(0, nan, *found)
        return Fit(self.model, epoch, (epoch,), "not trained", {}, measure=self.measure)
