"""The main job, from a task to a folder: tune, retrieve again and pool, prove it on held-out queries, write all down.

OUT/result.json     {"measure", "test": {"default", "tuned", "difference", "interval", "p"}, "cross_validated": {...},
                     "params": {"default": {...}, "tuned": {...}}, ...}
OUT/model/          the tuned model
OUT/default.run, OUT/tuned.run    rankings of the test queries (of the training queries where there are none)
OUT/documents-*.index             the index, which the next tuning of the same documents takes up again
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from fliprank import __version__
from fliprank.data.trec import write_run
from fliprank.experiment.evaluation import Evaluation, evaluate
from fliprank.experiment.fits import Note
from fliprank.experiment.ranges import Range
from fliprank.experiment.significance import Comparison
from fliprank.experiment.trained import write_json
from fliprank.experiment.tuning import Tuned, cross_validate, tune
from fliprank.experiment.tuning_task import DEPTH, Queries, Task, pooled
from fliprank.measures import Measure, parse_measure
from fliprank.models import Model

__all__ = ["Outcome", "Proof", "tune_and_write"]

SURE = 0.05
"""The p below which a difference counts as shown."""

ROUNDS = 3
"""How often it is tuned again, at most, because the tuned function brought up documents that were not tuned on."""


@dataclass(frozen=True, eq=False)
class Proof:
    """Default against tuned on queries that the tuning did not see: means, and each measure's comparison."""

    evaluation: Evaluation
    comparisons: list[Comparison]

    @classmethod
    def of(cls, judged: Any, default: Any, tuned: Any, measures: list[str]) -> Proof:
        found = evaluate(judged, {"default": default, "tuned": tuned}, measures)
        return cls(found, found.compare())

    @property
    def gain(self) -> float:
        """By how much the measure that was tuned for is better; below 0 where it is worse."""
        return self.evaluation.readings[0].measure.sign * self.comparisons[0].difference

    @property
    def sure(self) -> bool:
        """Whether that is more than chance gives (5%)."""
        return self.comparisons[0].p["randomisation"] < SURE

    def by_query(self) -> dict[str, tuple[float, float]]:
        """{query: (default, tuned)} of the measure that was tuned for."""
        name = self.comparisons[0].measure
        columns = (self.evaluation.values[run][name].tolist() for run in ("default", "tuned"))
        return dict(zip(self.evaluation.qids.tolist(), zip(*columns, strict=True), strict=True))

    def figures(self) -> dict[str, Any]:
        """For programs: those of the measure that was tuned for, under `measures` all, and it query by query."""
        means = self.evaluation.means()
        told = {
            c.measure: {
                "default": means["default"][c.measure],
                "tuned": means["tuned"][c.measure],
                "difference": c.difference,
                "interval": list(c.interval),
                "p": c.p["randomisation"],
                "better": c.better,
                "worse": c.worse,
                "queries": c.queries,
            }
            for c in self.comparisons
        }
        return {**next(iter(told.values())), "measures": told, "by_query": self.by_query()}


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a tuning. `test` and `cross_validated` are None where they were not asked for or cut short.

    `texts` says what the queries ask, where that is known.
    """

    tuned: Tuned
    test: Proof | None = None
    cross_validated: Proof | None = None
    ranges: dict[str, Range] = field(default_factory=dict)
    rounds: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False

    def figures(self) -> dict[str, Any]:
        """The content of result.json."""
        tuned, default = self.tuned.model.params, self.tuned.default.params
        return {
            "measure": str(self.tuned.measure),
            "test": None if self.test is None else self.test.figures(),
            "cross_validated": None if self.cross_validated is None else self.cross_validated.figures(),
            "params": {
                "default": dict(zip(default.names, default.values.tolist(), strict=True)),
                "tuned": dict(zip(tuned.names, tuned.values.tolist(), strict=True)),
                "free": list(tuned.free_names),
                "as_good": {name: [found.low, found.high] for name, found in self.ranges.items()},
            },
            "ways": [
                {"way": str(way), "held_out": value, "weight": self.tuned.weights.get(way, 0.0)}
                for way, value in self.tuned.tried.items()
            ],
            "new_documents": list(self.rounds),
            "interrupted": self.interrupted,
            "notes": list(self.notes),
            "settings": self.settings,
        }


def tune_and_write(
    model: Model,
    task: Task,
    folder: Path,
    progress: Callable[[str], AbstractContextManager[Note]],
    *,
    measure: str | Measure,
    folds: int = 5,
    cross_validated: bool = True,
    depth: int = DEPTH,
    **options: Any,
) -> Outcome:
    """Tune `model` on `task`, prove it, and write model, figures and runs to `folder`; `options` are those of `tune`.

    Ctrl-C while the figures are made loses only those that are not there yet: the tuned model was written before.
    """
    chosen = parse_measure(measure)
    with progress("tuning") as note:
        found = _until_stable(model, task, depth, folder, measure=chosen, folds=folds, note=note, **options)
    tuned, task = found.tuned, found.task
    shown = task.train if task.test is None else task.test
    runs = {name: task.run(shown, each, depth) for name, each in (("default", tuned.default), ("tuned", tuned.model))}
    for name, run in runs.items():
        write_run(folder / f"{name}.run", replace(run, name=name))
    settings = {"model": model.kind, "folds": folds, "depth": depth, "seed": options.get("seed", 0), **_made_of(task)}
    outcome = Outcome(tuned, rounds=found.rounds, notes=task.notes, settings=settings, texts=shown.texts)
    measures = list(dict.fromkeys([str(chosen), "AP", "RR"]))
    if task.test is not None:
        outcome = replace(outcome, test=_proof(task.test, tuned, runs, measures))
    write_json(folder / "result.json", outcome.figures())
    try:
        outcome = replace(outcome, ranges=tuned.ranges())
        if cross_validated:
            rows = task.train.rows
            with progress("proving it") as note:
                held = cross_validate(model, rows, measure=chosen, folds=folds, note=note, **options)
            outcome = replace(outcome, cross_validated=Proof.of(rows, held.default, held.tuned, measures))
    except KeyboardInterrupt:
        told = (*outcome.notes, "interrupted: some figures are missing")
        outcome = replace(outcome, notes=told, interrupted=True)
    write_json(folder / "result.json", outcome.figures())
    return outcome


def _made_of(task: Task) -> dict[str, Any]:
    """What was tuned on, for who wants to do it again."""
    told = {"version": __version__, "queries": task.train.rows.queries, "rows": len(task.train.rows)}
    if task.index is None:
        return told
    index = task.index
    return told | {"documents": len(index), "fields": list(index.fields), "analyzer": index.analyzer.to_json()}


class _Stable(NamedTuple):
    """A tuning, the task with all that was pooled, and how many documents were new at the top, round by round."""

    tuned: Tuned
    task: Task
    rounds: tuple[int, ...]


def _until_stable(model: Model, task: Task, depth: int, folder: Path, **options: Any) -> _Stable:
    """Tune; retrieve over the whole index with what came out; where new documents enter the top, tune on them too.

    What was tuned so far is in `folder`, and is the result if Ctrl-C ends a later round.
    """
    tuned, rounds = tune(model, task.train.rows, **options), list[int]()
    folder.mkdir(parents=True, exist_ok=True)
    tuned.model.save(folder / "model")
    while task.index is not None and len(rounds) < ROUNDS:
        wider, new = pooled(task, tuned.model, depth)
        rounds.append(new)
        if new == 0:
            break
        task = wider
        tuned = replace(tune(model, task.train.rows, **{**options, "recipes": tuned.weights}), tried=tuned.tried)
        tuned.model.save(folder / "model")
    return _Stable(tuned, task, tuple(rounds))


def _proof(queries: Queries, tuned: Tuned, runs: dict[str, Any], measures: list[str]) -> Proof:
    """On the test queries: by full retrieval where there is an index, else by the rows of the file.

    Full retrieval brings up documents that nobody judged; how many of the first ten were, `Judged@10` tells.
    """
    if queries.qrels is not None:
        return Proof.of(queries.qrels, runs["default"], runs["tuned"], [*measures, "Judged@10"])
    rows = queries.rows
    return Proof.of(rows, tuned.default.score(rows), tuned.model.score(rows), measures)
