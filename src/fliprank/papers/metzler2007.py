"""Metzler 2007, Using gradient descent to optimize language modeling smoothing parameters: Table 1.

The two parameters of the two-stage language model, set on training queries by a direct search on the measure, or by
coordinate descent on RankNet's cost; tested on other queries, beside the best that is possible on these.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.generate import generate
from fliprank.experiment.significance import compare_values
from fliprank.experiment.splits import fold_queries
from fliprank.experiment.task import DEPTH
from fliprank.experiment.training import prepared
from fliprank.experiment.trials import Running, Trial, run_trial
from fliprank.landscape import tied_share
from fliprank.measures import parse_measure
from fliprank.models import Model, TwoStageLM
from fliprank.objectives import RankNet
from fliprank.optimize.methods import Grid, Metzler2007, Sampled
from fliprank.papers.checkpoint import finished, kept
from fliprank.papers.data import COLLECTIONS, other_collections, some_queries, text_collection
from fliprank.papers.part import Finding, Setting, part

__all__ = ["Halves", "best_possible", "estimate", "halves", "table"]

MEASURES = ("AP", "Bpref", "P@10")
ESTIMATES = ("direct", "RankNet", "optimal")
GENERATED = "generated"
SURE = 0.05
TIED = 0.99
"""A share of tied pairs above which a ranking is the tie rule's, and no longer the model's."""
GRID = {"lambda": np.linspace(0, 0.9, 10).tolist(), "mu": np.geomspace(1, 30_000, 15).tolist()}
"""Where a direct search looks before it climbs: the measure has many optima, and two parameters can afford it."""
METHODS = {
    "direct": Trial(None, (Grid(values=GRID), Sampled())),
    "RankNet": Trial(RankNet(), (Metzler2007(tolerance=1e-4, samples=12),)),
}


class Halves(NamedTuple):
    """Queries to set parameters on, and to test them on."""

    train: Candidates
    test: Candidates


def halves(rows: Candidates, seed: int) -> Halves:
    """One random half of the queries for training, the other for testing."""
    order = np.random.default_rng(seed).permutation(rows.queries)
    cut = (rows.queries + 1) // 2
    return Halves(rows.select(np.sort(order[:cut])), rows.select(np.sort(order[cut:])))


def collections(setting: Setting) -> Iterator[tuple[str, Candidates, Candidates | None]]:
    """Each collection, with test queries where it has its own; the generated one last. Two of them when quick."""
    known = ["cranfield"] if setting.quick else list(COLLECTIONS)
    for name in [*known, *other_collections(setting, COLLECTIONS)]:
        setting.say(f"reading {name}")
        task = text_collection(setting, name, depth=100 if setting.quick else DEPTH)
        rows = some_queries(task.train.rows, 40, setting.seed) if setting.quick else task.train.rows
        yield name, rows, None if task.test is None else task.test.rows
    queries, documents = (40, 100) if setting.quick else (300, 500)
    yield GENERATED, generate(queries, documents=documents, seed=setting.seed).rows, None


def estimate(way: str, measure: str, rows: Candidates, seed: int) -> Model:
    """The two-stage language model with parameters from these queries, from the usual defaults and without a prior.

    RankNet's cost knows nothing of the measure: its last parameters are taken, not those that the measure likes best.
    """
    running = Running("measure" if way == "direct" else "last", seed=seed)
    ready = prepared(TwoStageLM(), rows)
    return finished(run_trial(METHODS[way], ready, rows, None, parse_measure(measure), running)).model


def best_possible(measure: str, rows: Candidates, seed: int, rivals: list[Model]) -> Model:
    """The best that is known on these very queries: a direct search, or a rival that happens to be better here."""
    chosen = parse_measure(measure)
    known = [estimate("direct", measure, rows, seed), *rivals]
    return max(known, key=lambda model: chosen.sign * chosen.value(model.score(rows), rows))


def _result(way: str, measure: str, split: Halves, seed: int, rivals: list[dict[str, Any]]) -> dict[str, Any]:
    """What an estimate gives on each test query, its parameters, and how much of the ranking is the tie rule's."""
    if way == "optimal":
        ready = prepared(TwoStageLM(), split.test)
        others = [ready.at(ready.params.replace(fit["parameters"])) for fit in rivals]
        model = best_possible(measure, split.test, seed, others)
    else:
        model = estimate(way, measure, split.train, seed)
    scores = model.score(split.test)
    return {
        "values": parse_measure(measure).per_query(scores, split.test).tolist(),
        "parameters": dict(zip(model.params.names, model.params.values.tolist(), strict=True)),
        "tied": tied_share(scores, split.test),
    }


class Cell(NamedTuple):
    """A collection and a measure: the values of each estimate on each test query, and what they come from."""

    values: dict[str, Floats]
    fits: dict[str, list[dict[str, Any]]]

    def p(self, one: str, other: str) -> tuple[float, float]:
        """The difference of two means, and its p by a randomisation test."""
        [found] = compare_values({name: {"m": self.values[name]} for name in (one, other)}, other)
        return found.difference, found.p["randomisation"]

    def better(self, one: str, other: str) -> bool:
        """Whether one is significantly better than the other."""
        difference, p = self.p(one, other)
        return difference > 0 and p < SURE

    def shown(self, way: str) -> str:
        """A mean with its marks."""
        others = [(mark, other) for mark, other in (("d", "direct"), ("r", "RankNet")) if other != way]
        marks = "".join(mark for mark, other in others if self.better(way, other))
        tied = " (all tied)" if max(fit["tied"] for fit in self.fits[way]) > TIED else ""
        return f"{self.values[way].mean():.4f}{' ' + marks if marks else ''}{tied}"


def table(setting: Setting, folds: int | None = None) -> tuple[list[str], dict[tuple[str, str], Cell | None]]:
    """The cells of Table 1, by measure and collection; None where a collection has no documents to judge Bpref by."""
    names, cells = [], dict[tuple[str, str], Cell | None]()
    for name, rows, own in collections(setting):
        names.append(name)
        if folds is not None:
            splits = _folds(rows, folds, setting.seed)
        else:
            splits = [halves(rows, setting.seed) if own is None else Halves(rows, own)]
        for measure in MEASURES:
            judged = all((part.labels == 0).any() for split in splits for part in split)
            cells[measure, name] = _cell(setting, name, measure, splits) if measure != "Bpref" or judged else None
    return names, cells


def _folds(rows: Candidates, folds: int, seed: int) -> list[Halves]:
    """Queries in folds: each is tested on once."""
    return [
        Halves(rows.select(train), rows.select(test))
        for train, _, test in fold_queries(rows.queries, (folds - 1, 0, 1), folds, seed)
    ]


def _cell(setting: Setting, name: str, measure: str, splits: list[Halves]) -> Cell:
    fits: dict[str, list[dict[str, Any]]] = {way: [] for way in ESTIMATES}
    for number, split in enumerate(splits, 1):
        rivals: list[dict[str, Any]] = []
        for way in ESTIMATES:
            compute = partial(_result, way, measure, split, setting.seed, list(rivals))
            rivals.append(kept(setting, f"{name}, {measure}, {way}, {number} of {len(splits)}", compute))
            fits[way].append(rivals[-1])
    return Cell({way: np.concatenate([fit["values"] for fit in each]) for way, each in fits.items()}, fits)


@part("metzler2007", "table1", "Direct search, RankNet and the optimum", needs=tuple(COLLECTIONS), minutes=8)
def table1(setting: Setting) -> Finding:
    """As in the paper: one set of training queries, one of test queries."""
    how = "The collection's own training and test queries (scifact, icecat), or random halves."
    return _finding(setting, *table(setting), how)


@part(
    "metzler2007",
    "table1-folds",
    "Direct search, RankNet and the optimum, by five-fold cross-validation",
    needs=tuple(COLLECTIONS),
    minutes=25,
)
def table1_folds(setting: Setting) -> Finding:
    """The same with more test queries: each is tested on once. Test queries of a collection's own stay out."""
    folds = 2 if setting.quick else 5
    how = (
        f"{folds} folds of the queries (of scifact and icecat the training queries); the optimum is that of each fold."
    )
    return _finding(setting, *table(setting, folds), how)


def _finding(setting: Setting, names: list[str], cells: dict[tuple[str, str], Cell | None], how: str) -> Finding:
    rows = []
    for measure in MEASURES:
        for way in ESTIMATES:
            shown = [cells[measure, name] for name in names]
            rows.append((measure, way, *("-" if cell is None else cell.shown(way) for cell in shown)))
    known = {key: cell for key, cell in cells.items() if cell is not None}
    worse, better, far = (
        [key for key, cell in known.items() if cell.better(*pair)]
        for pair in (("direct", "RankNet"), ("RankNet", "direct"), ("optimal", "direct"))
    )
    tied = [key for key, cell in known.items() if any(fit["tied"] > TIED for fit in cell.fits["RankNet"])]
    queries = {name: len(cell.values["direct"]) for (_, name), cell in known.items()}
    notes = [
        how,
        "d, r: significantly better than direct search, than RankNet (p < 0.05, randomisation over test queries,"
        " uncorrected). Bpref needs documents that were judged not relevant.",
        "Test queries: " + ", ".join(f"{name} {count}" for name, count in queries.items()) + ".",
        "The cost is of raw scores, as printed: parameters of a language model also stretch its scores, and where"
        " scores are close together the cost of wrong pairs is small.",
    ]
    if tied:
        named = ", ".join(f"{measure} on {name}" for measure, name in tied)
        notes.append(f"RankNet ended where all documents tie ({named}): the figure is the tie rule's.")
    by = ", ".join(f"{sum(key[0] == measure for key in worse)} for {measure}" for measure in MEASURES)
    return Finding(
        ("measure", "estimate", *names),
        tuple(rows),
        "RankNet is never significantly better than direct search, and is significantly worse on two of four"
        " collections for MAP and BPREF, on one for P@10.",
        f"RankNet is significantly better on {len(better)} of {len(known)} cells and worse on {len(worse)} ({by});"
        f" direct search is significantly below the optimum on {len(far)}.",
        "does not hold" if better else "holds" if worse else "can't be told at this size",
        {
            "seed": setting.seed,
            "methods": {way: str(trial) for way, trial in METHODS.items()},
            "cells": _details(known),
        },
        notes=tuple(notes),
    )


def _details(cells: dict[tuple[str, str], Cell]) -> dict[str, Any]:
    """Every digit: means, p-values and parameters."""
    return {
        f"{name}, {measure}": {
            "means": {way: float(cell.values[way].mean()) for way in ESTIMATES},
            "p direct against RankNet": cell.p("direct", "RankNet")[1],
            "p optimal against direct": cell.p("optimal", "direct")[1],
            "p optimal against RankNet": cell.p("optimal", "RankNet")[1],
            "parameters": {way: [fit["parameters"] for fit in cell.fits[way]] for way in ESTIMATES},
            "tied": {way: [fit["tied"] for fit in cell.fits[way]] for way in ESTIMATES},
        }
        for (measure, name), cell in cells.items()
    }
