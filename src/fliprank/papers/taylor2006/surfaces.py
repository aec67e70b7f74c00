"""Figure 1: what the training queries say about k and b, and what test queries say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import fliprank as fr
from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.landscape.surface import Surface, surface
from fliprank.optimize.problem import Problem
from fliprank.papers.part import Finding, Setting, part
from fliprank.papers.rules import Claims, larger
from fliprank.papers.taylor2006.collections import MEASURE, Collection, generated, web

TRAINED = 64
"""Training queries, as in the paper."""
DRAWS = 20
"""How many sets of so many training queries are looked at; the paper has one."""
POINTS = 21


@dataclass(frozen=True)
class _Draw:
    """How well the surfaces of one training set resemble that of the test queries, and how bumpy they are."""

    rnc: float
    ndcg: float
    scaled: float
    """The resemblance of RNC if scores are in units of their spread, so that k and b can't stretch them."""
    rnc_optima: int
    ndcg_optima: int


@part("taylor2006", "figure1", "RankNet's cost and NDCG over k and b", needs=("stanford-web",), minutes=0.5)
def figure1(setting: Setting) -> Finding:
    """Surfaces over k and b of the 2-parameter ranker, for several draws of 64 training queries."""
    rows, claims, shown, scaled = list[tuple[Any, ...]](), Claims(), None, list[str]()
    for data in (generated(setting), web(setting)):
        drawn, surfaces = _look(setting, data)
        rnc, ndcg = ([getattr(each, name) for each in drawn] for name in ("rnc", "ndcg"))
        claims.add(f"{data.name}: rank correlation with test NDCG, RNC less training NDCG", larger, rnc, ndcg)
        scaled.append(f"{np.mean([each.scaled for each in drawn]):.2f} on {data.name}")
        rnc_bumps, bumps = ([getattr(each, f"{name}_optima") for each in drawn] for name in ("rnc", "ndcg"))
        claims.add(f"{data.name}: local optima, training NDCG less RNC", larger, bumps, rnc_bumps)
        optima = [np.mean(rnc_bumps), np.mean(bumps), _optima(surfaces[2])]
        agree = [float(np.mean(rnc)), float(np.mean(ndcg)), 1.0]
        for name, each, r, count in zip(_NAMES, surfaces, agree, optima, strict=True):
            k, b, value = each.best
            there = _value_at(data, k, b)
            rows.append((data.name, name, k, b, float(value), there, r, float(count)))
        shown = shown or (surfaces, data)
    assert shown is not None
    return Finding(
        ("data", "surface", "best k", "best b", "best value", "test NDCG there", "rank correlation", "local optima"),
        tuple(rows),
        "RankNet's cost on chosen pairs of 64 training queries is a smooth surface over k and b that resembles test "
        "NDCG, while training NDCG is bumpy.",
        claims.sentence,
        claims.verdict,
        {
            "measure": str(MEASURE),
            "training_queries": TRAINED,
            "draws": len(drawn),
            "grid": POINTS if not setting.quick else 7,
            "seed": setting.seed,
            "data": {each.name: each.told() for each in (generated(setting), web(setting))},
        },
        partial(_figure, *shown),
        (*claims.notes,
         "Rank correlations are Spearman's, with test NDCG over the grid, and local optima are those of the grid; both "
         "are means over draws of 64 training queries. The best points are those of the first draw.",
         "The cost is of raw scores, as in the paper: k and b also stretch them. In units of their spread its rank "
         f"correlation with test NDCG is {' and '.join(scaled)}."),
    )  # fmt: skip


_NAMES = ("RNC, training", "NDCG, training", "NDCG, test")


def _look(setting: Setting, data: Collection) -> tuple[list[_Draw], list[Surface]]:
    """What each draw shows, and the three surfaces of the first."""
    points, draws = (7, 3) if setting.quick else (POINTS, DRAWS)
    test = _surface(data, data.test, MEASURE, points)
    found, first = [], list[Surface]()
    for draw in range(draws):
        setting.say(f"{data.name}: surfaces of draw {draw + 1} of {draws}")
        rng = np.random.default_rng([setting.seed, draw])
        few = min(TRAINED, data.rows.queries // 2)
        drawn = data.rows.select(np.sort(rng.choice(data.rows.queries, few, replace=False)))
        pairs = fr.subsample(drawn, rng, "average", at_most=None)
        rnc, ndcg = _surface(data, pairs, fr.RankNet(normalise="none"), points), _surface(data, drawn, MEASURE, points)
        first = first or [rnc, ndcg, test]
        alike = (_agreement(rnc, test), _agreement(ndcg, test), _agreement(_in_spreads(data, pairs, rnc), test))
        found.append(_Draw(*alike, _optima(rnc), _optima(ndcg)))
    return found, first


def _surface(data: Collection, rows: Candidates, of: object, points: int) -> Surface:
    model = data.two.prepared(rows, 0)
    grid = {"k": np.geomspace(0.1, 10, points), "b": np.linspace(0, 1, points)}
    return surface(model, rows, ("k", "b"), of, grid)  # type: ignore[arg-type]


def _in_spreads(data: Collection, pairs: Candidates, like: Surface) -> Surface:
    """RNC at the points of another surface, of scores in units of their spread."""
    model = data.two.prepared(pairs, 0)
    problem = Problem.of(model, pairs, MEASURE, fr.RankNet(normalise="none"), spread=True)
    points = [model.params.replace({"k": k, "b": b}) for k in like.axes[0] for b in like.axes[1]]
    values = np.array([problem.value(point.free_values) for point in points])
    return replace(like, values=values.reshape(like.values.shape))


def _signed(found: Surface) -> Floats:
    return found.values if found.larger_is_better else -found.values


def _agreement(one: Surface, other: Surface) -> float:
    """Spearman's rank correlation of two surfaces over the grid: 1 if both order all points alike."""
    found = float(spearmanr(_signed(one).ravel(), _signed(other).ravel()).statistic)
    return 0.0 if np.isnan(found) else found


def _optima(found: Surface) -> int:
    """Points of the grid that are better than each of their neighbours, or as good as some and better than others."""
    values = np.pad(_signed(found), 1, constant_values=-np.inf)
    inner = values[1:-1, 1:-1]
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    around = np.array([values[1 + i : len(values) - 1 + i, 1 + j : values.shape[1] - 1 + j] for i, j in shifts])
    lowest = np.where(np.isfinite(around), around, np.inf).min(axis=0)
    return int(((inner >= around.max(axis=0)) & (inner > lowest)).sum())


def _value_at(data: Collection, k: float, b: float) -> float:
    model = data.two.prepared(data.test, 0)
    return MEASURE.value(model.at(model.params.replace({"k": k, "b": b})).score(data.test), data.test)


def _figure(surfaces: list[Surface], data: Collection) -> object:
    from fliprank.report.plots import surface

    titles = [f"{name} ({data.name})" for name in _NAMES]
    return surface(surfaces, titles=titles, here=(1.0, 0.5))
