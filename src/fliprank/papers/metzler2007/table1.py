"""Table 1: direct search, RankNet and the optimum on test queries, with tests of their differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.generate import generate
from fliprank.experiment.significance import holm, randomisation
from fliprank.experiment.splits import fold_queries
from fliprank.experiment.task import DEPTH
from fliprank.experiment.training import prepared
from fliprank.landscape import tied_share
from fliprank.measures import parse_measure
from fliprank.models import Model, TwoStageLM
from fliprank.papers.checkpoint import kept
from fliprank.papers.data import COLLECTIONS, other_collections, some_queries, text_collection
from fliprank.papers.metzler2007.estimates import (
    GRID,
    MEASURES,
    METHODS,
    Judged,
    Split,
    best_possible,
    descend_ranknet,
    direct_search,
    halves,
)
from fliprank.papers.part import Finding, Setting, part

__all__ = ["Cell", "end_of", "table"]

ESTIMATES = ("direct", "RankNet", "optimal")
GENERATED = "generated"
SURE = 0.05
TIED = 0.99
"""A share of tied pairs above which a ranking is the tie rule's, and no longer the model's."""
EDGE = 1e-6
"""A parameter below this is 0."""


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


def _tested(model: Model, test: Candidates, measures: Iterable[str]) -> dict[str, Any]:
    """What a model gives on each test query, its parameters, and how much of the ranking is the tie rule's."""
    scores = model.score(test)
    return {
        "values": {name: parse_measure(name).per_query(scores, test).tolist() for name in measures},
        "parameters": dict(zip(model.params.names, model.params.values.tolist(), strict=True)),
        "tied": tied_share(scores, test),
    }


def _descended(split: Split, measures: Iterable[str], seed: int) -> dict[str, Any]:
    fit = descend_ranknet(split.train.rows, seed)
    return _tested(fit.model, split.test.rows, measures) | {"epochs": len(fit.trail) - 1, "stopped": fit.stopped}


def _searched(way: str, measure: str, split: Split, seed: int, rivals: list[dict[str, Any]]) -> dict[str, Any]:
    if way == "direct":
        return _tested(direct_search(measure, split.train, seed), split.test.rows, [measure])
    ready = prepared(TwoStageLM(), split.test.rows)
    others = [ready.at(ready.params.replace(fit["parameters"])) for fit in rivals]
    return _tested(best_possible(measure, split.test, seed, others), split.test.rows, [measure])


PAIRS = (("direct", "RankNet"), ("optimal", "direct"), ("optimal", "RankNet"))


class Cell(NamedTuple):
    """A collection and a measure: the values of each estimate on each test query, and what they come from."""

    values: dict[str, Floats]
    fits: dict[str, list[dict[str, Any]]]
    p: dict[tuple[str, str], float]
    """Of a randomisation test, for each of `PAIRS`."""

    @classmethod
    def of(cls, values: dict[str, Floats], fits: dict[str, list[dict[str, Any]]]) -> Cell:
        """The cell, with its tests."""
        return cls(values, fits, {(a, b): randomisation(values[a] - values[b]) for a, b in PAIRS})

    def better(self, one: str, other: str) -> bool:
        """Whether one is significantly better than the other."""
        p = self.p[(one, other) if (one, other) in self.p else (other, one)]
        return bool(self.values[one].mean() > self.values[other].mean()) and p < SURE

    def shown(self, way: str) -> str:
        """A mean with its marks."""
        others = [(mark, other) for mark, other in (("d", "direct"), ("r", "RankNet")) if other != way]
        marks = "".join(mark for mark, other in others if self.better(way, other))
        tied = " (all tied)" if max(fit["tied"] for fit in self.fits[way]) > TIED else ""
        return f"{self.values[way].mean():.4f}{' ' + marks if marks else ''}{tied}"


Cells = dict[tuple[str, str], Cell | None]


def table(setting: Setting, folds: int | None = None) -> tuple[list[str], Cells]:
    """The cells of Table 1, by measure and collection; None where a collection has no documents to judge Bpref by."""
    names, cells = [], Cells()
    for name, rows, own in collections(setting):
        names.append(name)
        setting.say(f"{name}: the grid")
        judged = Judged.of(rows)
        if folds is not None:
            splits = _folds(judged, folds, setting.seed)
        else:
            splits = [halves(judged, setting.seed) if own is None else Split(judged, Judged.of(own))]
        known = all((part.rows.labels == 0).any() for split in splits for part in split)
        measures = [measure for measure in MEASURES if known or measure != "Bpref"]
        found = _cells(setting, name, measures, splits)
        cells |= {(measure, name): found.get(measure) for measure in MEASURES}
    return names, cells


def _folds(judged: Judged, folds: int, seed: int) -> list[Split]:
    """Queries in folds: each is tested on once."""
    parts = fold_queries(judged.rows.queries, (folds - 1, 0, 1), folds, seed)
    return [Split(judged.select(train), judged.select(test)) for train, _, test in parts]


def _cells(setting: Setting, name: str, measures: list[str], splits: list[Split]) -> dict[str, Cell]:
    """The cells of one collection. RankNet's parameters are the same for all measures: they are found once."""
    fits: dict[str, dict[str, list[dict[str, Any]]]] = {m: {way: [] for way in ESTIMATES} for m in measures}
    for number, split in enumerate(splits, 1):
        where = f"{number} of {len(splits)}"
        descended = kept(setting, f"{name}, RankNet, {where}", partial(_descended, split, measures, setting.seed))
        for measure in measures:
            own = fits[measure]
            own["RankNet"].append(descended)
            for way in ("direct", "optimal"):
                rivals = [descended, *own["direct"][number - 1 : number]]
                search = partial(_searched, way, measure, split, setting.seed, rivals)
                own[way].append(kept(setting, f"{name}, {measure}, {way}, {where}", search))
    return {
        measure: Cell.of({w: np.concatenate([fit["values"][measure] for fit in each]) for w, each in own.items()}, own)
        for measure, own in fits.items()
    }


@part("metzler2007", "table1", "Direct search, RankNet and the optimum", needs=tuple(COLLECTIONS), minutes=1.5)
def table1(setting: Setting) -> Finding:
    """As in the paper: one set of training queries, one of test queries."""
    how = "The collection's own training and test queries (scifact, icecat), or random halves."
    return _finding(setting, *table(setting), how)


@part(
    "metzler2007",
    "table1-folds",
    "Direct search, RankNet and the optimum, by five-fold cross-validation",
    needs=tuple(COLLECTIONS),
    minutes=4,
)
def table1_folds(setting: Setting) -> Finding:
    """The same with more test queries: each is tested on once. Test queries of a collection's own stay out."""
    folds = 2 if setting.quick else 5
    how = (
        f"{folds} folds of the queries (of scifact and icecat the training queries); the optimum is that of each fold."
    )
    return _finding(setting, *table(setting, folds), how)


def _finding(setting: Setting, names: list[str], cells: Cells, how: str) -> Finding:
    rows = []
    for measure in MEASURES:
        for way in ESTIMATES:
            shown = [cells[measure, name] for name in names]
            rows.append((measure, way, *("-" if cell is None else cell.shown(way) for cell in shown)))
    known = {key: cell for key, cell in cells.items() if cell is not None}
    worse, better, far, below = (
        [key for key, cell in known.items() if cell.better(*pair)]
        for pair in (("direct", "RankNet"), ("RankNet", "direct"), ("optimal", "direct"), ("optimal", "RankNet"))
    )
    by = ", ".join(f"{sum(key[0] == measure for key in worse)} for {measure}" for measure in MEASURES)
    clear = _after_holm(known)
    return Finding(
        ("measure", "estimate", *names),
        tuple(rows),
        "RankNet is never significantly better than direct search, and is significantly worse on two of four"
        " collections for MAP and BPREF, on one for P@10.",
        f"RankNet is significantly better on {len(better)} of {len(known)} cells and worse on {len(worse)} ({by});"
        f" corrected for so many cells by Holm's method, better on {clear.count(1)} and worse on {clear.count(-1)}."
        f" RankNet is significantly below the optimum on {len(below)}, direct search on {len(far)}.",
        "does not hold" if 1 in clear else "holds" if -1 in clear else "can't be told at this size",
        {
            "seed": setting.seed,
            "grid": GRID,
            "methods": {way: str(trial) for way, trial in METHODS.items()},
            "cells": _details(known),
        },
        notes=(how, *_notes(known)),
    )


def _after_holm(cells: dict[tuple[str, str], Cell]) -> list[int]:
    """For each cell, whether RankNet is better (1) or worse (-1) than direct search beyond chance in so many cells."""
    p = holm([cell.p["direct", "RankNet"] for cell in cells.values()])
    gains = [cell.values["RankNet"].mean() - cell.values["direct"].mean() for cell in cells.values()]
    return [int(np.sign(gain)) if each < SURE else 0 for gain, each in zip(gains, p, strict=True)]


def _notes(cells: dict[tuple[str, str], Cell]) -> Iterator[str]:
    queries = {name: len(cell.values["direct"]) for (_, name), cell in cells.items()}
    yield (
        "d, r: significantly better than direct search, than RankNet (p < 0.05, randomisation over test queries,"
        " uncorrected). The verdict goes by p after Holm's correction. Bpref needs documents that were judged not"
        " relevant."
    )
    yield "Test queries: " + ", ".join(f"{name} {count}" for name, count in queries.items()) + "."
    yield (
        "The cost is of raw scores, as printed: parameters of a language model also stretch its scores, and where"
        " scores are close together the cost of wrong pairs is small. RankNet's parameters are the same for all"
        " measures."
    )
    yield (
        "Descent ends after 50 rounds, or one that lowers the cost by less than 0.01%: where lambda and mu make up for"
        " each other, coordinate descent goes on slowly for longer than that."
    )
    for way in ESTIMATES:
        ends = dict[str, list[str]]()
        for (measure, name), cell in cells.items():
            for end in dict.fromkeys(filter(None, map(end_of, cell.fits[way]))):
                ends.setdefault(end, []).append(name if way == "RankNet" else f"{measure} on {name}")
        for end, where in ends.items():
            yield f"{way} ended {end}: {', '.join(dict.fromkeys(where))}."
    unfinished = {name for (_, name), cell in cells.items() if _unfinished(cell)}
    if unfinished:
        yield f"The cost was still falling after so many rounds: {', '.join(sorted(unfinished))}."


def _unfinished(cell: Cell) -> bool:
    return any(fit["stopped"] != "converged" for fit in cell.fits["RankNet"])


def end_of(fit: dict[str, Any]) -> str:
    """The degenerate end at which a fit is, if any: an edge of its parameters, or where documents tie."""
    mixing, mu = fit["parameters"]["lambda"], fit["parameters"]["mu"]
    if fit["tied"] > TIED or mixing >= 1:
        return "where all documents tie, and the figure is the tie rule's"
    if mixing <= EDGE:
        return "at lambda = 0, Dirichlet smoothing"
    return "at mu = 0, Jelinek-Mercer smoothing" if mu <= EDGE else ""


def _details(cells: dict[tuple[str, str], Cell]) -> dict[str, Any]:
    """Every digit: means, p-values and parameters."""
    return {
        f"{name}, {measure}": {
            "means": {way: float(cell.values[way].mean()) for way in ESTIMATES},
            **{f"p {one} against {other}": p for (one, other), p in cell.p.items()},
            "parameters": {way: [fit["parameters"] for fit in cell.fits[way]] for way in ESTIMATES},
            "tied": {way: [fit["tied"] for fit in cell.fits[way]] for way in ESTIMATES},
            "rounds of RankNet": [fit["epochs"] for fit in cell.fits["RankNet"]],
        }
        for (measure, name), cell in cells.items()
    }
