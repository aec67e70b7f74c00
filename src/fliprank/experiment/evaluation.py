"""Judge rankings: the measures of one or more runs, query by query and on average, and which differences are real.

>>> qrels = {"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 2}}
>>> plain = {"q1": {"d1": 0.2, "d2": 0.9}, "q2": {"d3": 1.0}}
>>> better = {"q1": {"d1": 0.8, "d2": 0.1}, "q2": {"d3": 1.0}}
>>> result = evaluate(qrels, {"plain": plain, "better": better}, ["RR", "nDCG@10"])
>>> result.mean("plain", "RR"), result.mean("better", "RR")
(0.75, 1.0)
>>> [(c.run, c.measure, round(c.difference, 4)) for c in result.compare()]
[('better', 'RR', 0.25), ('better', 'nDCG@10', 0.1845)]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.checked import checked, is_numeric
from fliprank.data.candidates import Candidates
from fliprank.data.file_rows import FileRows
from fliprank.data.files import StrPath, open_bytes, open_text
from fliprank.data.ids import Ids
from fliprank.data.open_rows import is_shards, open_rows
from fliprank.data.readers import read_candidates
from fliprank.data.scattered import ScatteredRows
from fliprank.data.trec import Qrels, Run, judge, judge_rows, read_qrels, read_run
from fliprank.defaults import REPORTED_MEASURES
from fliprank.errors import InputError, UsageError, WrongTypeError, check_type, indented
from fliprank.experiment.significance import Comparisons, compare_values
from fliprank.measures.base import Measure
from fliprank.measures.conventions import EMPTY, Convention, Reading, find_convention
from fliprank.models.base import Model

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Evaluation", "compare", "evaluate", "judged_runs", "read_judgements"]

MOST_RUNS = 10
"""Runs that are shown when a person looks at an evaluation."""


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """`values[run][measure]` holds a number for each of `qids`; NaN where the convention leaves the query out."""

    qids: Ids
    values: dict[str, dict[str, Floats]]
    readings: tuple[Reading, ...]
    notes: tuple[str, ...] = ()

    def mean(self, run: str, measure: str) -> float:
        """The mean over queries (for GM and GMAP the geometric one)."""
        reading = next(reading for reading in self.readings if reading.label == measure)
        return reading.measure.aggregate(self.values[run][measure])

    def means(self) -> dict[str, dict[str, float]]:
        """{run: {measure: mean}}"""
        return {run: {r.label: self.mean(run, r.label) for r in self.readings} for run in self.values}

    def to_frame(self, per_query: bool = True) -> pl.DataFrame:
        """A polars frame with one row per run, query and measure; without `per_query`, with the means."""
        import polars as pl

        if not per_query:
            means = ((run, name, mean) for run, known in self.means().items() for name, mean in known.items())
            return pl.DataFrame(list(means), schema=["run", "measure", "mean"], orient="row")
        qids = self.qids.tolist()
        parts = [
            pl.DataFrame({"run": [run] * len(qids), "query": qids, "measure": [name] * len(qids), "value": column})
            for run, values in self.values.items()
            for name, column in values.items()
        ]
        return pl.concat(parts)

    def __repr__(self) -> str:
        rows = [(run, [f"{name} {mean:.4f}" for name, mean in means.items()]) for run, means in self.means().items()]
        told = [f"{run}: {', '.join(figures)}" for run, figures in rows[:MOST_RUNS]]
        more = [f"... and {len(rows) - MOST_RUNS} more runs"] if len(rows) > MOST_RUNS else []
        return indented(f"Evaluation on {len(self.qids):,} queries", *told, *more)

    def compare(self, baseline: str | None = None, **options: Any) -> Comparisons:
        """Every other run against `baseline` (the first): see `significance.compare_values`."""
        if len(self.values) < 2:
            return Comparisons()
        paired = {
            run: {r.label: r.measure.paired(values[r.label]) for r in self.readings}
            for run, values in self.values.items()
        }
        return compare_values(paired, baseline or next(iter(self.values)), **options)

    def explain(self) -> list[tuple[str, str]]:
        """(what, how) for everything that the printed numbers depend on."""
        convention = self.readings[0].convention
        told = [("convention", convention.name), *convention.explain()]
        for reading in self.readings:
            read_as = "" if str(reading.measure) == reading.label else f"read as {reading.measure}. "
            without = f" Queries without relevant documents {EMPTY[reading.empty]}." if reading.convention.rules else ""
            told.append((reading.label, read_as + reading.measure.meaning() + without))
        return told + [("note", note) for note in self.notes]


@checked
def evaluate(
    qrels: Any,
    runs: Any,
    measures: str | Measure | Iterable[str | Measure] = REPORTED_MEASURES,
    *,
    convention: str | Convention = "fliprank",
    ties: str | None = None,
    seed: int = 0,
) -> Evaluation:
    """Evaluate one run or several.

    `qrels` is a TREC or BEIR qrels file, a `Qrels`, {query: {document: label}}, or a frame; or rows with labels: a
    LETOR, Parquet or term-statistics file, shards (`open_rows`), or `Candidates`. A run is a TREC run file, a `Run`,
    {query: {document: score}}, or a frame; for rows it may also be a file with one score per line, or an array. `runs`
    is one run, a list of them, or {name: run}. `evaluate(model, rows, measures)` evaluates a model.

    `ties` says how documents of equal score are settled (see `measures.ties`; without it, as the convention does);
    `seed` is the random seed of ties="random".
    """
    settled = find_convention(convention, ties, seed)
    names = [measures] if isinstance(measures, str | Measure) else list(measures)
    readings = {reading.label: reading for reading in map(settled.read, names)}
    if not readings:
        raise UsageError("evaluate needs at least one measure")
    if isinstance(qrels, Model) and isinstance(runs, ScatteredRows):
        return _evaluate_in_parts(qrels, runs, settled, readings)
    qrels, runs = _ranked(qrels, runs)
    judgements = read_judgements(qrels)
    values: dict[str, dict[str, Floats]] = {}
    notes = list(judgements.notes) if isinstance(judgements, Qrels) else []
    for name, given in _named(runs).items():
        candidates, scores = _judged(judgements, given, name, notes)
        found = settled.values(readings.values(), scores, candidates)
        values[name] = dict(zip(readings, found, strict=True))
        if settled.missing == "skip":
            for column in values[name].values():
                column[candidates.sizes == 0] = np.nan
    if isinstance(judgements, Qrels) and judgements.unjudged:
        notes.append(f"{judgements.unjudged} judgements below 0 were taken as not judged")
    return Evaluation(judgements.qids, values, tuple(readings.values()), tuple(notes))


def judged_runs(qrels: Any, runs: Any) -> Iterator[tuple[str, Candidates, Floats]]:
    """(name, rows with labels, scores) of each run; `qrels` and `runs` as in `evaluate`."""
    qrels, runs = _ranked(qrels, runs)
    judgements = read_judgements(qrels)
    for name, given in _named(runs).items():
        yield name, *_judged(judgements, given, name, [])


def _ranked(qrels: Any, runs: Any) -> tuple[Any, Any]:
    """Judgements and runs; where the first argument is a model, the rows and its scores of them."""
    if not isinstance(qrels, Model):
        return qrels, runs
    check_type("runs", runs, Candidates, "Candidates where the first argument is a model: the rows to rank")
    return runs, {"model": qrels.score(runs)}


def _evaluate_in_parts(
    model: Model, rows: ScatteredRows, convention: Convention, readings: dict[str, Reading]
) -> Evaluation:
    """The measures of a model on rows that are not in one memory."""
    if convention.ties == "random":
        raise UsageError("ties in random order are drawn over all rows at once: read the rows, or choose another rule")
    parts = list(rows.each(_part_values, model, convention, tuple(readings.values())))
    values = {label: np.concatenate(column) for label, column in zip(readings, zip(*parts, strict=True), strict=True)}
    return Evaluation(rows.qids, {"model": values}, tuple(readings.values()))


def _part_values(part: Candidates, model: Model, convention: Convention, readings: tuple[Reading, ...]) -> list[Floats]:
    found = convention.values(readings, model.score(part), part)
    if convention.missing == "skip":
        for column in found:
            column[part.sizes == 0] = np.nan
    return found


@checked
def compare(
    qrels: Any,
    runs: Any,
    measures: str | Measure | Iterable[str | Measure] = REPORTED_MEASURES,
    *,
    baseline: str | None = None,
    convention: str | Convention = "fliprank",
    ties: str | None = None,
    seed: int = 0,
    **options: Any,
) -> Comparisons:
    """Evaluate several runs and compare each with `baseline` (the first): see `evaluate` and `Comparison`."""
    result = evaluate(qrels, runs, measures, convention=convention, ties=ties, seed=seed)
    return result.compare(baseline, seed=seed, **options)


def read_judgements(given: Any) -> Qrels | Candidates:
    """Judgements of any kind, or rows with labels: see `evaluate`."""
    if isinstance(given, Qrels | Candidates):
        return given
    if isinstance(given, FileRows):
        return given.without_features()
    if isinstance(given, str | PathLike):
        if is_shards(given):
            return open_rows(given).without_features()
        suffixes = {*PurePath(given).suffixes[-2:]}
        rows = suffixes & {".parquet", ".jsonl"} or _is_letor(given)
        return read_candidates(given) if rows else read_qrels(given)
    if not isinstance(given, Mapping) and not hasattr(given, "columns"):
        expected = "judgements (a file, a Qrels, labels by query and document, a frame), Candidates, or a model"
        raise WrongTypeError("qrels", given, expected)
    return Qrels.of(given) if isinstance(given, Mapping) else Qrels.from_frame(given)


def _is_letor(path: StrPath) -> bool:
    """Whether a file looks like LETOR's: its second word is qid:..., or, without queries, index:value."""
    with open_bytes(path) as file:
        start = next((line for line in file if line.strip() and not line.startswith(b"#")), b"")
    return re.match(rb"\S+\s+(qid:|\d+:[^\s:]+(\s|$))", start) is not None


def _named(runs: Any) -> dict[str, Any]:
    """Runs by name: a path is its own name, a run in memory has its tag or a number."""
    if isinstance(runs, Mapping):
        nested = all(isinstance(value, Mapping) for value in runs.values())
        numbers = nested and all(np.isscalar(v) for value in runs.values() for v in list(value.values())[:1])
        return {"run": runs} if numbers else dict(runs)
    several = list(runs) if isinstance(runs, list | tuple) and not _is_scores(runs) else [runs]
    named: dict[str, Any] = {}
    for i, run in enumerate(several, 1):
        name = fspath(run) if isinstance(run, str | PathLike) else (getattr(run, "name", None) or f"run {i}")
        if not isinstance(name, str) or name in named:
            name = f"{name} ({i})"
        named[name] = run
    if not named:
        raise UsageError("evaluate needs at least one run")
    return named


def _is_scores(values: list[Any] | tuple[Any, ...]) -> bool:
    return bool(values) and all(isinstance(value, int | float | np.number) for value in values)


def _judged(judgements: Qrels | Candidates, run: Any, name: str, notes: list[str]) -> tuple[Candidates, Floats]:
    """The rows of one run with their labels, queries as in the judgements; what did not fit is added to `notes`."""
    given = _read_run(run, scores_too=isinstance(judgements, Candidates))
    if isinstance(judgements, Candidates):
        if not isinstance(given, Run):
            if given.shape != judgements.labels.shape:
                hint = "one score per row, or a TREC run"
                raise InputError(f"{name} has {given.size} scores for {len(judgements)} rows", hint=hint)
            return judgements, given
        joined = judge_rows(judgements, given, name)
    elif isinstance(given, Run):
        joined = judge(judgements, given)
    if joined.unknown_queries:
        notes.append(f"{name}: {joined.unknown_queries} queries without judgements were left out")
    if joined.missing_queries:
        notes.append(f"{name}: nothing retrieved for {joined.missing_queries} judged queries")
    return joined.candidates, joined.scores


def _read_run(run: Any, scores_too: bool) -> Run | Floats:
    """A run of any kind; or scores, if they can be meant: a file of one column, or an array."""
    if isinstance(run, str | PathLike):
        return _read_scores(run) if scores_too and _has_one_column(run) else read_run(run)
    if isinstance(run, Run):
        return run
    if isinstance(run, Mapping):
        return Run.of(run)
    if scores_too and not hasattr(run, "columns") and is_numeric(run):
        return np.asarray(run, np.float64)
    if not hasattr(run, "columns"):
        scores = ", or an array of scores" if scores_too else ""
        raise WrongTypeError("runs", run, f"a file, a Run, scores by query and document, or a frame{scores}")
    return Run.from_frame(run)


def _has_one_column(path: StrPath) -> bool:
    with open_text(path) as lines:
        return len(next((line for line in lines if line.strip()), "").split()) <= 1


def _read_scores(path: StrPath) -> Floats:
    """One score per line."""
    scores: list[float] = []
    with open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                scores.append(float(line))
            except ValueError:
                if line.strip():
                    raise InputError(f"{line.strip()[:40]!r} is not a score", path=path, line=number) from None
    return np.array(scores)
