"""Fuse ranked lists: weights from judgements, or the advice to leave them alone.

The function of an engine comes in variants (how scores are normalised and combined). Each is tuned, and the one that
is worth its parameters is taken, as `tune --model auto` does it. What people have already competes with it: each list
alone, reciprocal ranks with k = 60, equal weights, the engine's own defaults. Only what beats the best of those on
held-out queries is adopted. Without test queries it is the best of them on the very queries on which it is compared:
having been picked there flatters it, never the tuned fusion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from fliprank import __version__
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.csv_cells import safe_cell
from fliprank.data.files import atomic_write
from fliprank.data.fusion_rows import RunLike, fused_run, fusion_rows
from fliprank.data.trec import Qrels, Run, read_qrels, read_run, write_run
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import FliprankError, InputError, UsageError
from fliprank.experiment.coverage import Coverage, ToJudge, coverage_of
from fliprank.experiment.evaluation import Evaluation, evaluate
from fliprank.experiment.fit_folder import retire_result, write_fit, write_json
from fliprank.experiment.model_choice import choose_among
from fliprank.experiment.recipes import recipes_for
from fliprank.experiment.results import FoldResult, Proof, Result
from fliprank.experiment.verdict import Verdict, decide
from fliprank.landscape.model_trajectory import ModelTrajectory, trajectory
from fliprank.measures import Measure, parse_measure
from fliprank.models.fusion import Fusion, make_rule
from fliprank.optimize.fit import Fit

__all__ = ["TUNED", "VARIANTS", "Fused", "fuse", "weight_curve", "write_fused"]

TUNED = "tuned"
"""What the tuned fusion is called in tables."""

VARIANTS: dict[str, dict[str, Sequence[Any]]] = {
    "plain": {"normalise": ("minmax", "zscore", "rank")},
    "elasticsearch-linear": {"normalise": ("minmax", "l2_norm")},
    "opensearch": {
        "normalise": ("min_max", "l2", "z_score"),
        "combine": ("arithmetic_mean", "geometric_mean", "harmonic_mean"),
    },
    "weaviate": {"method": ("relativeScore", "ranked")},
    "vespa": {"method": ("normalize_linear", "reciprocal_rank")},
    "solr": {"method": ("rrf", "edismax")},
    "lancedb": {"method": ("linear", "rrf")},
    "milvus": {"method": ("weighted", "rrf")},
    "qdrant": {"method": ("rrf", "dbsf")},
    "llamaindex": {"method": ("reciprocal_rerank", "relative_score", "dist_based_score")},
    "haystack": {"method": ("reciprocal_rank_fusion", "merge")},
}
"""The settings of an engine that are tried where they are not given; the first of each is its default."""


@dataclass(frozen=True, eq=False)
class Fused:
    """What came of `fuse`. `fit` has the tuned fusion; `kept` is the best of what people have, and stays if not beaten.

    `evaluation` has every baseline and the tuned fusion on the test queries or, without them, on the training queries,
    where the tuned one is cross-validated. `curve` is the exact measure over the weight of the second of two lists.
    """

    fit: Fit
    kept: str
    baselines: dict[str, Fusion]
    evaluation: Evaluation
    proofs: dict[str, Proof]
    verdict: Verdict
    coverage: Coverage
    run: Run
    kept_run: Run
    curve: ModelTrajectory | None = None
    notes: tuple[str, ...] = ()

    @property
    def model(self) -> Fusion:
        """The tuned fusion, as it is set in the engine."""
        model = self.fit.model
        assert isinstance(model, Fusion)
        return model

    def content(self) -> dict[str, Any]:
        """For programs: what `result.json` has beside that of a tuning."""
        best = None if self.curve is None else self.curve.maximum
        bound_figures = [
            {"unjudged": what, "difference": c.difference, "interval": list(c.interval), "p": c.p["randomisation"]}
            for what, c in self.coverage.bounds
        ]
        return {
            "kept": self.kept,
            "baselines": self.evaluation.means(),
            "coverage": {"bounds": bound_figures, "to_judge": len(self.coverage.to_judge)},
            "curve": None if best is None else {"value": best.value, "low": best.low, "high": best.high},
        }

    def __repr__(self) -> str:
        return f"Fused({self.model.engine}: {', '.join(self.model.lists)}; {self.verdict.sentence})"


@checked
def fuse(
    runs: Mapping[str, RunLike] | Sequence[RunLike],
    qrels: Qrels | str | PathLike[str] | Mapping[Any, Mapping[Any, float]],
    *,
    test: Qrels | str | PathLike[str] | Mapping[Any, Mapping[Any, float]] | None = None,
    engine: str = "plain",
    settings: Mapping[str, Any] | None = None,
    measure: str | Measure = DEFAULT_MEASURE,
    reported: Iterable[str] = ("AP", "RR"),
    folds: int = 5,
    depth: int | None = None,
    ascending: Iterable[str] = (),
    seed: int = 0,
    **options: Any,
) -> Fused:
    """The weights of several ranked lists from judgements, with the proof that they are better than what people have.

    `runs` by name, as runs, files or {query: {document: score}}; `test` has the judgements of other queries in the same
    runs. `settings` of the engine that are not given are chosen by cross-validation (`VARIANTS`). `depth` keeps so many
    of each list; in those named `ascending`, small scores are good. `options` are those of `tune`.
    """
    select, lists = parse_measure(measure), _lists(runs)
    train = _Side.of(lists, _judgements(qrels), depth, ascending)
    if train.rows.queries < 2 or folds < 2:
        raise UsageError(
            f"cross-validation needs two folds and two queries: {folds} folds, {train.rows.queries} queries"
        )
    variants = _variants(engine, tuple(lists), settings or {})
    equal = next(iter(variants.values()))
    movable = {name: model for name, model in variants.items() if model.params.free_names}
    if not movable:
        raise UsageError(f"{engine} has no weights or constants to set; see `fliprank evaluate` for how lists compare")
    known = {"recipes": recipes_for(select), **options}
    fit = choose_among(movable, equal, train.rows, select, folds, seed, **known)
    assert isinstance(fit.model, Fusion)
    assert fit.held_out is not None
    model, held_out = fit.model.canonical(), fused_run(train.rows, fit.held_out, TUNED)
    fit = replace(fit, model=model)
    baselines = _baselines(engine, tuple(lists), variants)
    measures = list(dict.fromkeys([str(select), *(str(parse_measure(name)) for name in reported), "Judged@10"]))
    before = train.baseline_runs(baselines)
    on_train = evaluate(train.qrels, before, measures)
    kept = _highest(on_train, select)
    proofs = {"cross_validated": Proof.of(train.qrels, before[kept], held_out, measures)}
    shown, kept_run, run = train, before[kept], held_out
    evaluation = evaluate(train.qrels, {**before, TUNED: held_out}, measures)
    if test is not None:
        shown = _Side.of(lists, _judgements(test), depth, ascending)
        after = shown.baseline_runs(baselines)
        kept_run, run = after[kept], fused_run(shown.rows, model.score(shown.rows), TUNED)
        proofs = {"test": Proof.of(shown.qrels, kept_run, run, measures), **proofs}
        evaluation = evaluate(shown.qrels, {**after, TUNED: run}, measures)
    return Fused(
        fit,
        kept,
        baselines,
        evaluation,
        proofs,
        decide(proofs, kept=kept),
        coverage_of(shown.qrels, shown.rows, kept_run, run, select),
        run,
        kept_run,
        weight_curve(model, train.rows, select),
        (*train.notes, *(note for note in shown.notes if note not in train.notes)),
    )


def write_fused(folder: Path, fused: Fused, adopt: str = "proven", depth: int | None = None) -> Result:
    """Write model, figures, the fused run and what to judge next; `adopt` as in `tune`. Gives what was written."""
    adopted = fused.verdict.adopted(adopt)
    model = fused.model if adopted else fused.baselines[fused.kept]
    retire_result(folder)
    write_fit(folder, fused.fit, "tuned-model")
    model.save(folder / "model")
    write_run(folder / "fused.run", replace(fused.run if adopted else fused.kept_run, name="fused"))
    lines = [ToJudge._fields, *fused.coverage.to_judge]
    with atomic_write(folder / "to-judge.csv") as file:
        file.write("".join(",".join(map(_cell, line)) + "\n" for line in lines).encode())
    rows = fused.fit.rows
    settings = {"model": "fusion", "engine": fused.model.engine, "lists": list(fused.model.lists), "depth": depth}
    settings |= {"version": __version__, "queries": 0 if rows is None else rows.queries}
    part = FoldResult(fused.fit, {"test" if "test" in fused.proofs else "train": fused.evaluation.means()[TUNED]})
    result = Result({"": part}, settings, fused.proofs, fused.verdict, adopted, notes=fused.notes)
    write_json(folder / "result.json", result.content() | fused.content())
    return result


def _cell(value: object) -> str:
    return '"' + str(safe_cell(value)).replace('"', '""') + '"' if isinstance(value, str) else str(value)


def weight_curve(model: Fusion, rows: Candidates, measure: str | Measure) -> ModelTrajectory | None:
    """The measure for every weight of the second list from 0 to 1, the first having the rest; None of other fusions.

    It is exact: a step function that is known whole, whose maximum no grid can exceed.
    """
    if len(model.lists) != 2:
        return None
    if model.rule.weights == "share":
        start, direction = model.at(np.concatenate([[0.0], model.params.values[1:]])), {model.rule.share: 1.0}
    elif model.rule.weights == "each" and model.rule.combine == "sum":
        first, second = (f"weight.{name}" for name in model.lists)
        start, direction = model.at(model.params.replace({first: 1.0, second: 0.0})), {first: -1.0, second: 1.0}
    else:
        return None
    return trajectory(start, rows, direction, measure, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class _Side:
    """The lists of some judged queries."""

    rows: Candidates
    qrels: Qrels
    notes: tuple[str, ...]

    @classmethod
    def of(cls, lists: Mapping[str, Run], qrels: Qrels, depth: int | None, ascending: Iterable[str]) -> _Side:
        rows = fusion_rows(lists, qrels, depth=depth, ascending=ascending)
        return cls(rows, qrels, tuple(_notes(lists, rows)))

    def baseline_runs(self, baselines: Mapping[str, Fusion]) -> dict[str, Run]:
        """The run of each baseline; of a list alone, the list and nothing else."""
        out = dict[str, Run]()
        assert self.rows.lists is not None
        for place, (name, model) in enumerate(baselines.items()):
            run = fused_run(self.rows, model.score(self.rows), name)
            if place < len(self.rows.lists.names):
                there = self.rows.lists.ranks[:, place] > 0
                sizes = np.bincount(self.rows.query_of_rows()[there], minlength=self.rows.queries)
                by_rank = -self.rows.lists.ranks[there, place].astype(np.float64)
                run = Run(bounds(sizes), run.qids, run.docids.take(np.flatnonzero(there)), by_rank, name)
            out[name] = run
        return out


def _judgements(given: Any) -> Qrels:
    if isinstance(given, Qrels):
        return given
    return Qrels.of(given) if isinstance(given, Mapping) else read_qrels(given)


def _lists(runs: Mapping[str, RunLike] | Sequence[RunLike]) -> dict[str, Run]:
    """The runs by name; raises where there are fewer than two, or two that are the same."""
    pairs: Iterable[tuple[str | None, Any]] = (
        runs.items() if isinstance(runs, Mapping) else ((None, run) for run in runs)
    )
    found = dict[str, Run]()
    for number, (name, given) in enumerate(pairs, 1):
        run = given if isinstance(given, Run) else Run.of(given) if isinstance(given, Mapping) else read_run(given)
        called = name or run.name or f"list{number}"
        if called in found:
            raise UsageError(f"two lists are called {called!r}: name them, as in bm25=first.run")
        for other, before in found.items():
            if len(run) == len(before) and np.array_equal(run.scores, before.scores) and run.docids == before.docids:
                raise InputError(f"{other} and {called} are the same list, twice")
        found[called] = run
    if len(found) < 2:
        raise UsageError(f"fusing takes two lists or more, not {len(found)}")
    return found


def _notes(lists: Mapping[str, Run], rows: Candidates) -> Iterable[str]:
    """What a person should know of these lists: queries that they lack, scores that say nothing."""
    found = rows.lists
    assert found is not None
    count, low, high = (found.statistics[:, :, column] for column in (0, 1, 2))
    for place, name in enumerate(lists):
        lacking = int((count[:, place] == 0).sum())
        if lacking == rows.queries:
            raise InputError(f"the list {name} has none of the judged queries")
        if lacking:
            yield f"{name} has nothing for {lacking:,} of {rows.queries:,} judged queries"
        flat = int(((count[:, place] > 1) & (low[:, place] == high[:, place])).sum())
        if flat:
            yield f"all scores of {name} are equal in {flat:,} of {rows.queries:,} queries"
    if np.isnan(rows.labels).all():
        raise InputError("no judged document is in any of the lists", hint="are the document ids of the same kind?")


def _variants(engine: str, lists: tuple[str, ...], settings: Mapping[str, Any]) -> dict[str, Fusion]:
    """The functions of the engine, by what sets them apart: all values of settings that are not given."""
    if settings:
        make_rule(engine, **settings)  # a setting that the engine does not have is an error now
    open_ones = {name: each for name, each in VARIANTS.get(engine, {}).items() if name not in settings}
    out, first = dict[str, Fusion](), None
    for values in product(*open_ones.values()):
        chosen = {**settings, **dict(zip(open_ones, values, strict=True))}
        try:
            out[", ".join(map(str, values)) or engine] = Fusion(engine, lists, **chosen)
        except FliprankError as error:
            first = first or error
    if first is not None and not out:
        raise first
    return out


def _baselines(engine: str, lists: tuple[str, ...], variants: Mapping[str, Fusion]) -> dict[str, Fusion]:
    """What people have: each list alone (first), reciprocal ranks, equal weights, the engine as it comes."""
    ranks, even = Fusion("plain", lists, normalise="rank"), Fusion("plain", lists, normalise="minmax")
    usual = next(iter(variants.values()))
    alone = {f"{name} alone": _alone(usual, even, place) for place, name in enumerate(lists)}
    own = (
        {}
        if engine == "plain"
        else {f"{engine}, {what}" if what != engine else engine: m for what, m in variants.items()}
    )
    return {**alone, "RRF, k = 60": ranks, "equal weights, min-max": even, **own}


def _alone(usual: Fusion, even: Fusion, place: int) -> Fusion:
    """All weight on one list: by the engine's function, so that it can be set there, where that has weights."""
    weights = np.eye(len(usual.lists))[place]
    if usual.rule.weights == "share":
        return usual.at([weights[1], *usual.params.values[1:]])
    return (
        usual.at([*weights, *usual.params.values[len(weights) :]]) if usual.rule.weights == "each" else even.at(weights)
    )


def _highest(evaluation: Evaluation, measure: Measure) -> str:
    """The run that is best by this measure."""
    means = {name: measure.sign * each[str(measure)] for name, each in evaluation.means().items()}
    return max(means, key=lambda name: means[name])
