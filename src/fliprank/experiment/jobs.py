"""From a task to a folder: what `fliprank train` and `fliprank tune` do.

Both make a fit and write it down. `train` looks at validation and test rows, fold by fold; `tune` also retrieves again
with what it found, fits to the documents that came up, and proves the result on held-out queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from fliprank import __version__
from fliprank.data.candidates import Candidates
from fliprank.data.trec import write_run
from fliprank.experiment.cascade_analysis import AfterStage, after_stages
from fliprank.experiment.curve_results import LearningCurve
from fliprank.experiment.cutoffs import CutoffOptions, refit_with_cutoffs
from fliprank.experiment.fit_folder import retire_result, write_fit, write_json
from fliprank.experiment.learning_curve import HELD_OUT, Ranker, learning_curve
from fliprank.experiment.model_choice import baseline_for
from fliprank.experiment.parameter_settings import ParameterSettings
from fliprank.experiment.proving import proof_on_rows, references
from fliprank.experiment.recipes import Recipes, recipes_for
from fliprank.experiment.results import FoldResult, Proof, Result
from fliprank.experiment.row_pool import RowPool
from fliprank.experiment.saturation import Outlook
from fliprank.experiment.task import DEPTH, Task, pooled
from fliprank.experiment.telescope import stage_options, telescope
from fliprank.experiment.training import train
from fliprank.experiment.trials import KEEP_DEFAULTS, Progress, Trial
from fliprank.experiment.tuning import tune
from fliprank.experiment.tuning_moves import moves_of_tuning
from fliprank.experiment.verdict import decide
from fliprank.measures import Measure, parse_measure
from fliprank.models import Model
from fliprank.models.cascade import Cascade
from fliprank.optimize.anywhere import AnyRows, figures_of
from fliprank.optimize.fit import Fit

__all__ = ["train_and_write", "tune_and_write"]

UNTOLD = ("resume", "parameters")
"""Options of `train` that result.json does not repeat."""

ROUNDS = 3
"""How often it is tuned again, at most, because the tuned function brought up documents that it was not tuned on."""

CURVE, SMALLEST_SET = (0.125, 0.25, 0.5, 1.0), 4
"""Sizes of training sets on the learning curve, as shares of what there is, and the least number of queries."""

OpenProgress = Callable[[str], AbstractContextManager[Progress | None]]
"""Opened with the name of a piece of work; gives what is called while it goes on."""


def train_and_write(
    model_for: Callable[[Candidates], Model],
    tasks: Iterable[Task],
    folder: Path,
    progress: OpenProgress,
    *,
    measure: str | Measure,
    reported: Iterable[str] = (),
    by_stage: Mapping[str, str | None] | None = None,
    cutoffs: CutoffOptions | None = None,
    **options: Any,
) -> Result:
    """Train on each of `tasks`, write models and figures to `folder`; `options` are those of `train`.

    `measure` is what settings and epochs are chosen by, `reported` are the measures of the figures. Of a cascade,
    `by_stage` has options with commas between stages, and `cutoffs` asks for sizes that are chosen on validation
    queries within a budget.
    """
    select = parse_measure(measure)
    named = list(dict.fromkeys([str(select), *(str(parse_measure(name)) for name in reported)]))
    folds: dict[str, FoldResult] = {}
    notes: list[str] = []
    settings: dict[str, Any] = {name: value for name, value in options.items() if name not in UNTOLD}
    first: Task | None = None
    for task in tasks:
        first = first or task
        place, model = folder / task.name, model_for(task.train.rows)
        own = {"measure": select, **options}
        if isinstance(model, Cascade):
            fit = _fit_cascade(model, task, place / "checkpoint", progress, own, by_stage or {}, cutoffs)
        else:
            fit = _fit(model, task, place / "checkpoint", progress, own)
        retire_result(folder)
        write_fit(place, fit)
        figures = {part: _figures(fit.model, queries.rows, named) for part, queries in task.parts().items()}
        folds[task.name] = FoldResult(fit, figures, _stages(fit, task, select))
        notes += task.notes
        settings |= {"model": model.kind, **_made_of(task)} if not task.name else {"model": model.kind}
        if fit.interrupted:
            notes.append(_where_it_ended(list(folds)))
            break
    result = Result(folds, settings, notes=tuple(notes), interrupted=fit.interrupted, task=first)
    write_json(folder / "result.json", result.content())
    return result


def _where_it_ended(folds: Sequence[str]) -> str:
    """What an interrupted training has, and how to go on; the last of the folds is the one that was not done."""
    if folds == [""]:
        return "interrupted: this is the best epoch so far; --resume goes on"
    done = f"done: {', '.join(folds[:-1])}" if folds[1:] else "none is done"
    return f"interrupted in {folds[-1]}, whose figures are those so far; of the folds {done}; --resume goes on"


def _fit(model: Model, task: Task, checkpoint: Path, progress: OpenProgress, options: dict[str, Any]) -> Fit:
    """The fit of one fold."""
    valid = None if task.valid is None else task.valid.rows
    with progress(task.name or "training") as report:
        return train(model, task.train.rows, valid, checkpoint=checkpoint, progress=report, **options)


def _fit_cascade(
    model: Cascade,
    task: Task,
    checkpoint: Path,
    progress: OpenProgress,
    options: dict[str, Any],
    by_stage: Mapping[str, str | None],
    cutoffs: CutoffOptions | None,
) -> Fit:
    """The same, stage by stage; with `cutoffs`, sizes are chosen afterwards and the stages trained again for them."""
    valid = None if task.valid is None else task.valid.rows
    own = {name: value for name, value in options.items() if name != "parameters"}
    own["sample"] = 3 if own.get("sample") is None else own["sample"]

    def named(stage: str) -> AbstractContextManager[Progress | None]:
        return progress(f"{task.name} {stage}".strip())

    words = stage_options(model, **by_stage)

    def fit(cascade: Cascade, kept: Sequence[int], place: Path) -> Fit:
        stages = [words[s] for s in kept]
        return telescope(cascade, task.train.rows, valid, options=stages, checkpoint=place, progress=named, **own)

    first = fit(model, range(len(words)), checkpoint)
    if cutoffs is None or first.interrupted:
        return first
    return refit_with_cutoffs(first, model, task, cutoffs, fit, checkpoint, resume=bool(options.get("resume")))


def _figures(model: Model, rows: AnyRows, measures: Iterable[str]) -> dict[str, float]:
    chosen = [parse_measure(name) for name in measures]
    return dict(zip(map(str, chosen), figures_of(model, rows, chosen), strict=True))


def _stages(fit: Fit, task: Task, measure: Measure) -> tuple[AfterStage, ...]:
    """Of a cascade, what each stage does, on the test queries or the nearest to them that there are."""
    if not isinstance(fit.model, Cascade):
        return ()
    part = task.test or task.valid or task.train
    return tuple(after_stages(fit.model, part.rows, measure))


def tune_and_write(
    model: Model | str,
    task: Task,
    folder: Path,
    progress: OpenProgress,
    *,
    measure: str | Measure,
    recipes: Recipes | None = None,
    reported: Iterable[str] = ("AP", "RR"),
    folds: int | None = 5,
    adopt: str = "proven",
    curve: bool = True,
    depth: int = DEPTH,
    **options: Any,
) -> Result:
    """Tune `model` on `task`, prove it, and write model, figures and runs to `folder`; `options` are those of `tune`.

    `adopt` says whether the tuned function or the defaults are written as the model: "proven" leaves it to the verdict.
    With `folds=None` nothing is cross-validated, and with `curve=False` it is not asked whether more judgements would
    help. Ctrl-C loses only what is not there yet: what was fitted so far is in
    `folder`/tuned-model.
    """
    select = parse_measure(measure)
    options |= {"measure": select, "recipes": recipes_for(select) if recipes is None else recipes}
    with progress("tuning") as report:
        task, rounds = _with_what_comes_up(model, task, depth, folder, **options)
        fit = tune(model, task.train.rows, folds=folds, progress=report, **options)
    retire_result(folder)
    write_fit(folder, fit, "tuned-model")
    assert fit.start is not None
    shown = task.train if task.test is None else task.test
    runs = {name: task.run(shown, each, depth) for name, each in (("default", fit.start), ("tuned", fit.model))}
    for name, run in runs.items():
        write_run(folder / f"{name}.run", replace(run, name=name))
    settings = {
        "model": fit.model.kind,
        "folds": folds,
        "depth": depth,
        "seed": options.get("seed", 0),
        **_made_of(task),
    }
    measures = list(dict.fromkeys([str(select), *(str(parse_measure(name)) for name in reported)]))
    figures = {part: _figures(fit.model, queries.rows, measures) for part, queries in task.parts().items()}
    proofs = _proofs(task, fit, runs, measures)
    held = None if task.test is None else task.test.rows
    verdict = decide(proofs, references(fit, task.train.rows, held, select))
    result = Result({"": FoldResult(fit, figures)}, settings, proofs, verdict, verdict.adopted(adopt))
    result = replace(result, new_documents=rounds, notes=task.notes, texts=shown.texts, task=task, runs=runs)
    (fit.model if result.adopted else fit.start).save(folder / "model")
    write_json(folder / "result.json", result.content())
    try:
        result = replace(result, moves=moves_of_tuning(task, fit, runs, proofs, select))
        result = replace(result, ranges=fit.ranges())
        if curve:
            outlook, points = _outlook(fit, **options)
            result = replace(result, outlook=outlook, curve=points)
    except KeyboardInterrupt:
        notes = (*result.notes, "interrupted: some figures are missing")
        result = replace(result, notes=notes, interrupted=True)
    write_json(folder / "result.json", result.content())
    return result


def _made_of(task: Task) -> dict[str, Any]:
    """What was fitted to, to reproduce it."""
    known: dict[str, Any] = {"version": __version__, "queries": task.train.rows.queries, "rows": len(task.train.rows)}
    known |= {"sources": task.sources} if task.sources else {}
    if task.index is None:
        return known
    index = task.index
    return known | {"documents": len(index), "fields": list(index.fields), "analyzer": index.analyzer.to_json()}


def _with_what_comes_up(
    model: Model | str, task: Task, depth: int, folder: Path, *, recipes: Recipes, **options: Any
) -> tuple[Task, tuple[int, ...]]:
    """The task with the documents that a tuned function brings to the top, and how many were new, round by round.

    One recipe goes ahead: it is fitted, ranks the whole index, and what is new at the top joins the next round.
    """
    rounds = list[int]()
    if model == "auto":
        model = baseline_for(task.train.rows)
    while task.index is not None and len(rounds) < ROUNDS:
        ahead = tune(model, task.train.rows, recipes=[_middle(recipes)], folds=None, **options)
        retire_result(folder)
        write_fit(folder, ahead, "tuned-model")
        task, new = pooled(task, ahead.model, depth)
        rounds.append(new)
        if new == 0:
            break
    return task, tuple(rounds)


def _middle(recipes: Recipes) -> Trial:
    """The recipe that stands for all where one is enough: of those down the first objective, the middle one."""
    moving = [recipe for recipe in recipes if recipe.methods]
    alike = [recipe for recipe in moving if recipe.objective == moving[0].objective]
    return alike[len(alike) // 2] if alike else KEEP_DEFAULTS


def _outlook(
    fit: Fit, *, measure: Measure, recipes: Recipes, parameters: ParameterSettings | None = None, **options: Any
) -> tuple[Outlook, LearningCurve | None]:
    """Whether more judged queries would help, by a learning curve of one recipe over the training queries."""
    assert fit.rows is not None
    few = RowPool.of(fit.model, fit.rows, measure).for_gradients
    most = few.queries - -(-few.queries // HELD_OUT)
    sizes = sorted({round(most * share) for share in CURVE if most * share >= SMALLEST_SET})
    if not sizes:
        return Outlook("too few", f"Too few queries to tell what more judgements would bring: {few.queries}."), None
    start = fit.model.at(fit.model.params.at(fit.model.params.default))
    own = {"recipes": [_middle(recipes)], "folds": None, "parameters": parameters}
    ranker = Ranker(start, "tune", options=own)
    found = learning_curve({"tuned": ranker}, few, sizes, measure=measure, seed=options.get("seed", 0))
    return found.outlook(), found


def _proofs(task: Task, fit: Fit, runs: dict[str, Any], measures: list[str]) -> dict[str, Proof]:
    """On the test queries, and on the training queries by fits that did not see them.

    With an index test queries are judged by full retrieval. That brings up documents that nobody judged; `Judged@10`
    says how many of the first ten were.
    """
    test = task.test
    found = proof_on_rows(fit, task.train.rows, None if test is None or test.qrels is not None else test.rows, measures)
    if test is not None and test.qrels is not None:
        whole = Proof.of(test.qrels, runs["default"], runs["tuned"], [*measures, "Judged@10"])
        found = {"test": whole, **found}
    return found
