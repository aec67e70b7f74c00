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
from functools import cached_property
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from fliprank import __version__
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.files import atomic_write
from fliprank.data.fusion_rows import RunLike
from fliprank.data.trec import Qrels, Run, read_run, write_run
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import FliprankError, InputError, UsageError
from fliprank.experiment.adaptive_fusing import PerQuery, choose_per_query, with_query_traits, write_weights
from fliprank.experiment.coverage import Coverage, ToJudge, coverage_of_sides
from fliprank.experiment.evaluation import Evaluation
from fliprank.experiment.fit_folder import retire_result, write_fit, write_json
from fliprank.experiment.fusion_moves import csv_text, moved_documents, moves_of_fusion, query_figures
from fliprank.experiment.fusion_sides import TUNED, Side, judgements_of, proof_of, run_of
from fliprank.experiment.model_choice import choose_among
from fliprank.experiment.recipes import recipes_for
from fliprank.experiment.results import FoldResult, Proof, Result
from fliprank.experiment.tuning_moves import TuningMoves
from fliprank.experiment.verdict import Verdict, decide
from fliprank.experiment.weight_curve import as_good_range, weight_curve, weight_ranges
from fliprank.landscape.model_trajectory import ModelTrajectory
from fliprank.measures import Measure, parse_measure
from fliprank.models.fusion import Fusion, make_rule
from fliprank.optimize.fit import Fit
from fliprank.optimize.ranges import Range
from fliprank.text.index import Index
from fliprank.text.search.queries import QueriesLike

__all__ = ["TUNED", "VARIANTS", "Fused", "fuse", "weight_curve", "write_fused"]

VARIANTS: dict[str, dict[str, Sequence[Any]]] = {
    "plain": {"normalise": ("minmax", "zscore", "rank")},
    "elasticsearch-linear": {"normalise": ("none", "minmax", "l2_norm")},
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
    where the tuned one is cross-validated. `curve` is the exact measure over the weight of the second of two lists;
    `ranges` has the weights that are statistically as good as the best, by parameter. `rows` are those of the queries
    of `evaluation`; `moves` has the queries that were helped and hurt most.
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
    rows: Candidates | None = None
    per_query: PerQuery | None = None
    """What came of weights that depend on the query, where they were asked for."""

    @property
    def model(self) -> Fusion:
        """The tuned fusion, as it is set in the engine."""
        model = self.fit.model
        assert isinstance(model, Fusion)
        return model

    def content(self) -> dict[str, Any]:
        """For programs: what `result.json` has beside that of a tuning."""
        bound_figures = [
            {"unjudged": what, "difference": c.difference, "interval": list(c.interval), "p": c.p["randomisation"]}
            for what, c in self.coverage.bounds
        ]
        return {
            "kept": self.kept,
            "baselines": self.evaluation.means(),
            "coverage": {"bounds": bound_figures, "to_judge": len(self.coverage.to_judge)},
            "curve": self._curve_content(),
            "adaptive": None if self.per_query is None else self.per_query.content(),
        }

    @cached_property
    def ranges(self) -> dict[str, Range]:
        """The weights that are statistically as good as the best, by parameter."""
        assert self.fit.rows is not None
        assert self.fit.measure is not None
        return weight_ranges(self.model, self.fit.rows, self.fit.measure)

    @cached_property
    def as_good(self) -> Range | None:
        """Of two lists, the weights of the second that are statistically as good as the best."""
        return None if self.curve is None else as_good_range(self.curve)

    @cached_property
    def moves(self) -> TuningMoves:
        """The queries that were helped and hurt most, and the documents that moved in them."""
        assert self.rows is not None
        assert self.fit.measure is not None
        name = self.evaluation.readings[0].label
        values = self.evaluation.values[self.kept][name], self.evaluation.values[TUNED][name]
        runs = (self.kept_run, self.run)
        return moves_of_fusion(self.rows, *runs, values, next(iter(self.proofs)), self.fit.measure)

    def _curve_content(self) -> dict[str, Any] | None:
        if self.curve is None or self.as_good is None:
            return None
        best = self.curve.maximum
        return {"value": best.value, "low": best.low, "high": best.high, "as_good": list(self.as_good[:2])}

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
    adaptive: bool = False,
    queries: QueriesLike | None = None,
    index: Index | str | PathLike[str] | None = None,
    **options: Any,
) -> Fused:
    """The weights of several ranked lists from judgements, with the proof that they are better than what people have.

    `runs` by name, as runs, files or {query: {document: score}}; `test` has the judgements of other queries in the same
    runs. `settings` of the engine that are not given are chosen by cross-validation (`VARIANTS`). `depth` keeps so many
    of each list; in those named `ascending`, small scores are good. `options` are those of `tune`.

    With `adaptive`, weights that depend on the query (by what lists tell, texts of `queries` and an `index`) compete,
    and are taken where cross-validation shows that they are better than one weight for all.
    """
    if not adaptive and (queries is not None or index is not None):
        raise UsageError("queries and index are for weights that depend on the query: adaptive")
    select, lists = parse_measure(measure), _lists(runs)
    train = Side.of(lists, judgements_of(qrels), depth, ascending)
    train = _with_traits(train, queries, index) if adaptive else train
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
    fit, per_query = choose_among(movable, equal, train.rows, select, folds, seed, **known), None
    if adaptive:
        fit, per_query = choose_per_query(fit, movable, equal, train.rows, select, folds, seed, **known)
    assert isinstance(fit.model, Fusion)
    assert fit.held_out is not None
    model, held_out = fit.model.canonical(), train.ranked(fit.held_out)
    fit = replace(fit, model=model)
    baselines = _baselines(engine, tuple(lists), variants)
    measures = list(dict.fromkeys([str(select), *(str(parse_measure(name)) for name in reported), "Judged@10"]))
    before = train.baselines(baselines)
    on_train = train.evaluation(before | {TUNED: held_out}, measures)
    kept = _highest(on_train, select)
    proofs = {"cross_validated": proof_of(on_train, kept)}
    shown, evaluation, sides = train, on_train, (before[kept], held_out)
    if test is not None:
        shown = Side.of(lists, judgements_of(test), depth, ascending)
        shown = _with_traits(shown, queries, index) if adaptive else shown
        after = shown.baselines(baselines)
        sides = (after[kept], shown.ranked(model.score(shown.rows)))
        evaluation = shown.evaluation(after | {TUNED: sides[1]}, measures)
        proofs = {"test": proof_of(evaluation, kept), **proofs}
    return Fused(
        fit,
        kept,
        baselines,
        evaluation,
        proofs,
        _verdict(decide(proofs, kept=kept), per_query),
        coverage_of_sides(shown.rows, *sides, select),
        run_of(sides[1], TUNED),
        run_of(sides[0], kept),
        weight_curve(model, train.rows, select),
        (*train.notes, *(note for note in shown.notes if note not in train.notes)),
        shown.rows,
        None if per_query is None else per_query.on(shown.rows),
    )


def _verdict(found: Verdict, per_query: PerQuery | None) -> Verdict:
    """The verdict with what is said of a weight per query."""
    return found if per_query is None else replace(found, sentence=f"{found.sentence} {per_query.sentence}")


def write_fused(folder: Path, fused: Fused, adopt: str = "proven", depth: int | None = None) -> Result:
    """Write model, figures, the fused run and what to judge next; `adopt` as in `tune`. Gives what was written."""
    adopted = fused.verdict.adopted(adopt)
    model = fused.model if adopted else fused.baselines[fused.kept]
    retire_result(folder)
    write_fit(folder, fused.fit, "tuned-model")
    model.save(folder / "model")
    write_run(folder / "fused.run", replace(fused.run if adopted else fused.kept_run, name="fused"))
    _write_tables(folder, fused)
    write_weights(folder / "weights.csv", fused.model.lists, fused.per_query if adopted else None)
    rows = fused.fit.rows
    settings = {"model": "fusion", "engine": fused.model.engine, "lists": list(fused.model.lists), "depth": depth}
    settings |= {"version": __version__, "queries": 0 if rows is None else rows.queries}
    part = FoldResult(fused.fit, {"test" if "test" in fused.proofs else "train": fused.evaluation.means()[TUNED]})
    known: dict[str, Any] = {"ranges": fused.ranges, "notes": fused.notes, "moves": fused.moves}
    result = Result({"": part}, settings, fused.proofs, fused.verdict, adopted, **known)
    write_json(folder / "result.json", result.content() | fused.content())
    return result


def _write_tables(folder: Path, fused: Fused) -> None:
    """What to judge next, each query before and after, the documents that moved, and the curve of the weight."""
    assert fused.rows is not None
    assert fused.fit.measure is not None
    tables: dict[str, Iterable[Sequence[Any]]] = {
        "to-judge.csv": [ToJudge._fields, *fused.coverage.to_judge],
        "queries.csv": query_figures(fused.evaluation, fused.kept, TUNED),
        "moved.csv": moved_documents(fused.rows, fused.kept_run, fused.run, fused.fit.measure),
    }
    if fused.curve is not None:
        edges = fused.curve.edges.tolist()
        steps = zip(edges[:-1], edges[1:], fused.curve.values.tolist(), strict=True)
        tables["weight.csv"] = [("from", "to", "value"), *steps]
    for name, lines in tables.items():
        with atomic_write(folder / name) as file:
            file.write(csv_text(lines).encode())


def _with_traits(side: Side, queries: QueriesLike | None, index: Index | str | PathLike[str] | None) -> Side:
    return replace(side, rows=with_query_traits(side.rows, queries, index))


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
    """The baseline that is best by this measure."""
    every = evaluation.means().items()
    means = {name: measure.sign * each[str(measure)] for name, each in every if name != TUNED}
    return max(means, key=lambda name: means[name])
