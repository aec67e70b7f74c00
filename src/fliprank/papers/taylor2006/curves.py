"""Sections 4.1 to 4.3, Figure 2 and Table 1: NDCG against the number of training queries, parameters and method."""

from __future__ import annotations

from functools import partial
from typing import Any

from fliprank.arrays import Floats
from fliprank.experiment.curve_results import LearningCurve
from fliprank.experiment.learning_curve import Fitter, Ranker
from fliprank.models.base import Model
from fliprank.papers.part import Finding, Setting, part
from fliprank.papers.rules import Claims, alike, interval, larger
from fliprank.papers.taylor2006.collections import MEASURE, Collection, generated, real_features, web
from fliprank.papers.taylor2006.rankers import (
    DRAWN_OFTEN,
    LineFew,
    LineRest,
    curves,
    descent,
    line_search,
    parameters,
    repeats_of,
)

__all__ = ["COLUMNS", "GENERATED", "at_size", "curve_figure", "curve_rows", "settings_of"]

COLUMNS = ("data", "ranker", "training queries", "NDCG@10", "low", "high", "training NDCG@10", "gain", "p of gain")
LINE_REST_MOST = 64
"""Training queries up to which hundreds of weights are searched line by line."""
NAN = float("nan")
GENERATED = (
    "Generated weak features are independent noisy views of all that relevance is made of: hundreds of them together"
    " tell far more than text, after a few training queries. The paper's were weaker, and those of scifact are."
)
"""Why hundreds of features do so well on generated data."""


@part("taylor2006", "section4.1", "The 2-parameter ranker by both methods", needs=("stanford-web",), minutes=1)
def section41(setting: Setting) -> Finding:
    """Both methods on k and b, against each other and against where they start."""
    shown, claims, rows = list[LearningCurve](), Claims(), list[tuple[Any, ...]]()
    gd, ls = "gradient descent 2", "line search 2"
    every = (generated(setting), web(setting))
    for data in every:
        curve = curves(setting, data, {gd: descent(data, data.two), ls: line_search(data.two)})
        start = _start(data.two, data)
        rows += [_fixed_row(data, "at the start", start), *curve_rows(data, curve)]
        for size in curve.sizes:
            values = {name: at_size(curve, name, size) for name in (gd, ls)}
            claims.add(f"{data.name}, {size} queries: {gd} less {ls}", alike, values[gd], values[ls])
            for name, own in values.items():
                claims.add(f"{data.name}, {size} queries: {name} less its start", alike, own, start)
        shown.append(curve)
    return Finding(
        COLUMNS,
        tuple(rows),
        "Gradient descent and line search on k and b perform almost identically at all training sizes, and neither "
        "improves significantly on k = 1, b = 0.5.",
        claims.sentence,
        claims.verdict,
        settings_of(setting, *every),
        partial(curve_figure, shown[0]),
        claims.notes,
    )


def few_and_many(setting: Setting, data: Collection) -> dict[str, Ranker | Fitter]:
    """The rankers of Figure 2, by the paper's names with the number of parameters that they have here."""
    few = parameters(data, data.nine)
    found: dict[str, Ranker | Fitter] = {
        f"line search {few}": LineFew(setting, data),
        f"gradient descent {few}": descent(data, data.nine),
    }
    if data.weak:
        found[f"gradient descent {parameters(data, data.many)}"] = descent(data, data.many)
    return found


@part(
    "taylor2006",
    "figure2",
    "NDCG by training size, number of parameters and method",
    needs=("stanford-web", "scifact"),
    minutes=6,
)
def figure2(setting: Setting) -> Finding:
    """All rankers on all collections that they can be trained on."""
    shown, rows, claims = list[LearningCurve](), list[tuple[Any, ...]](), Claims()
    every = (generated(setting), web(setting), real_features(setting))
    for data in every:
        curve = curves(setting, data, few_and_many(setting, data))
        _claims_of_figure2(claims, data, curve, list(few_and_many(setting, data)))
        rows += [_fixed_row(data, "at the start", _start(data.nine, data)), *curve_rows(data, curve)]
        rows += [] if data.best is None else [_fixed_row(data, "true utility", data.best)]
        shown.append(curve)
    data = every[0]
    rest: dict[str, Ranker | Fitter] = {f"line search {parameters(data, data.many)}": LineRest(data)}
    searched = curves(setting, data, rest, [size for size in data.sizes if size <= LINE_REST_MOST], repeats=1)
    rows += curve_rows(data, searched)
    return Finding(
        COLUMNS,
        tuple(rows),
        "Gradient descent and line search are comparable at 9 parameters and beat the start for all but the smallest "
        "sizes; 375 parameters are better from 256 training queries on and worse up to 45.",
        claims.sentence,
        claims.verdict,
        settings_of(setting, *every),
        partial(curve_figure, shown[0], searched),
        (
            *claims.notes,
            f"Line search of all weights: up to {LINE_REST_MOST} training queries, 8 epochs, one draw.",
            GENERATED,
        ),
    )


def _claims_of_figure2(claims: Claims, data: Collection, curve: LearningCurve, names: list[str]) -> None:
    """What the paper says of these curves, size by size."""
    line, gradient, *many = names
    start = _start(data.nine, data)
    for size in curve.sizes:
        at = {name: at_size(curve, name, size) for name in curve.values}
        where = f"{data.name}, {size} queries"
        claims.add(f"{where}: {gradient} less {line}", alike, at[gradient], at[line])
        if size > curve.sizes[0]:
            for name in (gradient, line):
                claims.add(f"{where}: {name} less its start", larger, at[name], start)
        for name in many:
            if size >= 256:
                claims.add(f"{where}: {name} less {gradient}", larger, at[name], at[gradient])
            elif size <= 45:
                claims.add(f"{where}: {gradient} less {name}", larger, at[gradient], at[name])


@part("taylor2006", "table1", "What more training queries bring", minutes=0.3)
def table1(setting: Setting) -> Finding:
    """NDCG at 64 training queries, and what 362 and 2,048 add to it (the curves are those of Figure 2)."""
    data, claims, rows = generated(setting), Claims(), list[tuple[Any, ...]]()
    rankers = few_and_many(setting, data)
    whole, largest = curves(setting, data, rankers), list(rankers)[-1]
    curve = whole.at((16, 23, 45) if setting.quick else (64, 362, 2048))
    first, *later = curve.sizes
    base = {point.ranker: point for point in curve.points() if point.size == first}
    for name in curve.values:
        at, cells = {size: at_size(curve, name, size) for size in curve.sizes}, list[float]()
        rule = larger if name == largest else alike
        for size in later:
            found = claims.add(f"{name}: {size} less {first} training queries", rule, at[size], at[first])
            cells += [found.mean, found.p]
        rows.append((name, base[name].test, base[name].low, base[name].high, *cells))
    columns = ["ranker", f"NDCG@10 at {first}", "low", "high"]
    columns += [name for size in later for name in (f"gain at {size}", f"p at {size}")]
    return Finding(
        tuple(columns),
        tuple(rows),
        "More training queries than 64 do not improve the 9-parameter rankers (-0.002 to +0.003 at 2,048), but do "
        "improve the 375-parameter ranker: +0.018 at 362 and +0.043 at 2,048.",
        claims.sentence,
        claims.verdict,
        settings_of(setting, data),
        None,
        (*claims.notes, GENERATED),
    )


def at_size(curve: LearningCurve, ranker: str, size: int) -> Floats:
    """Each test query's value, the mean over repeats."""
    values: Floats = curve.by_query(ranker)[curve.sizes.index(size)]
    return values


def _start(model: Model, data: Collection) -> Floats:
    """Each test query's value with the ranker as it starts."""
    return MEASURE.per_query(model.prepared(data.test, 0).score(data.test), data.test)


def curve_rows(data: Collection, curve: LearningCurve) -> list[tuple[Any, ...]]:
    """The points of curves as rows of a table."""
    return [
        (data.name, p.ranker, p.size, p.test, p.low, p.high, p.training, p.gain, p.p_smallest) for p in curve.points()
    ]


def _fixed_row(data: Collection, name: str, values: Floats) -> tuple[Any, ...]:
    """The row of a ranking that needs no training queries."""
    return (data.name, name, 0, *interval(values), NAN, NAN, NAN)


def settings_of(setting: Setting, *data: Collection) -> dict[str, Any]:
    """The settings of a finding."""
    return {
        "measure": str(MEASURE),
        "seed": setting.seed,
        "repeats": {f"up to {DRAWN_OFTEN} queries": repeats_of(setting), "above": 1},
        "descent": "taylor2006 on ranknet, rated and sampled unrated documents",
        "line_search": "line, all documents",
        "data": {each.name: each.told() | {"sizes": each.sizes, "sample": each.sample} for each in data},
    }


def curve_figure(*shown: LearningCurve) -> Any:
    """The curves on test queries."""
    from fliprank.report.plots import learning_curve

    return learning_curve(*shown, training=False)
