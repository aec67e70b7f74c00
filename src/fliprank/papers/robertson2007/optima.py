"""Optima on real training sets (Robertson & Zaragoza 2007, sections 3.2 and 3.4): which are shared, and how many.

Lines go through a linear model that was fitted to the training queries. Along a line scores are linear, so every flip,
and with them every local optimum, is known exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.experiment.training import train
from fliprank.landscape import Agreement, ModelTrajectory, share_optima, trajectory
from fliprank.models import Linear, Model
from fliprank.papers.checkpoint import finished
from fliprank.papers.data import letor_folds, some_queries
from fliprank.papers.part import Finding, Setting, part

__all__ = ["binary", "fitted", "lines_through", "training_sets"]

ALIKE = ("AP", "nDCG", "GMAP")
"""Measures that respond to the same flips where labels are binary."""
MEASURES = ("AP", "GMAP", "nDCG", "nDCG(dcg='exp-log2')", "nDCG@10", "P@10", "RR")
REACH = 1.0
"""How far lines go from the model, in lengths of its vector of weights."""
GRID = 65
"""Points of a search that samples a line."""
PANELS = (
    *("local optima", "height of an optimum", "width of the best", "variation"),
    *(f"variation on {GRID} points", f"optima on {GRID} points"),
)
FIT: dict[str, Any] = {"objective": "ranknet", "method": "lbfgs", "sweep": False, "restarts": 1, "epochs": 30}


def fitted(rows: Candidates, seed: int = 0) -> Model:
    """A linear model of these rows: a sensible place to look around from."""
    return finished(train(Linear(), rows, seed=seed, **FIT)).model


def binary(rows: Candidates) -> Candidates:
    """The same rows, relevant or not."""
    return replace(rows, labels=np.where(np.isnan(rows.labels), np.nan, rows.labels > 0))


def training_sets(setting: Setting) -> Iterator[tuple[str, Candidates]]:
    """The training queries of each fold; quick: 40 of the first."""
    for task in letor_folds(setting)[: 1 if setting.quick else None]:
        rows = task.train.rows
        yield task.name, some_queries(rows, 40, setting.seed) if setting.quick else rows


def lines_through(model: Model, number: int, seed: int) -> Floats:
    """Random directions, each as long as the vector of weights."""
    drawn = np.random.default_rng(seed).normal(size=(number, len(model.params.free_names)))
    length = float(np.linalg.norm(model.params.free_values))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True) * length)


@part("robertson2007", "theorem1", "Theorem 1 on real training sets", needs=("mq2008",), minutes=1)
def theorem1(setting: Setting) -> Finding:
    """Measures that respond to the same flips share all optima on lines; those that ignore some do not."""
    lines = 3 if setting.quick else 10
    rows, found = [], dict[tuple[str, ...], list[Agreement]]()
    for name, given in training_sets(setting):
        model, judged = fitted(given, setting.seed), binary(given)
        for measures in (ALIKE, ("AP", "nDCG@10")):
            setting.say(f"{name}, {', '.join(measures)}")
            each = share_optima(model, judged, lines_through(model, lines, setting.seed), measures)
            found.setdefault(measures, []).append(each)
            same, single = ("yes" if holds else "no" for holds in (each.same_flips, each.one_at_a_time))
            told = (judged.queries, lines, each.optima, same, single, len(each.differences))
            rows.append((name, ", ".join(measures), *told))
    counts = [(sum(a.optima for a in some), sum(len(a.differences) for a in some)) for some in found.values()]
    (optima, apart), (others, cut) = counts
    coincide = sum(not each.one_at_a_time for each in found[ALIKE])
    contradicted = any(not each.theorem_holds for some in found.values() for each in some)
    return Finding(
        ("training set", "measures", "queries", "lines", "optima", "same flips", "one flip at a time", "not shared"),
        tuple(rows),
        "Measures that respond to the same flips share all local optima, if a line meets one flip at a time.",
        f"Of {optima:,} local optima of {', '.join(ALIKE)} {apart:,} are not shared, though flips coincide in"
        f" {coincide} of {len(found[ALIKE])} training sets; of {others:,} of AP and nDCG@10, which ignores flips,"
        f" {cut:,} are not.",
        "holds" if not contradicted and not apart else "does not hold",
        {"data": "mq2008", "labels": "binary: above 0", "lines": lines, "seed": setting.seed, "model": "linear", **FIT},
        notes=("Optima are counted for each measure; shared: the same stretch of the line, from flip to flip.",),
    )


@part("robertson2007", "shared-lines", "How many optima measures share along lines", needs=("mq2008",), minutes=0.1)
def shared_lines(setting: Setting) -> Finding:
    """With graded labels: the optima of each measure that AP has, too, and where the global ones are."""
    number = 3 if setting.quick else 20
    given = next(training_sets(setting))[1]
    model = fitted(given, setting.seed)
    counts = {name: np.zeros(5) for name in MEASURES}
    for line, direction in enumerate(lines_through(model, number, setting.seed), 1):
        setting.say(f"line {line} of {number}")
        paths = {name: trajectory(model, given, direction, name, -REACH, REACH) for name in MEASURES}
        base = {(peak.low, peak.high) for peak in paths["AP"].local_maxima()}
        for name, path in paths.items():
            peaks = {(peak.low, peak.high) for peak in path.local_maxima()}
            best = (path.maximum.low, path.maximum.high)
            inside = any(low <= best[0] and best[1] <= high for low, high in base)
            same = abs(path.best_point() - paths["AP"].best_point()) <= 1e-12
            counts[name] += [len(path.breaks), len(peaks), len(peaks & base), inside, same]
    rows = tuple(
        (
            name,
            steps / number,
            optima / number,
            100 * shared / max(optima, 1),
            100 * within / number,
            100 * same / number,
        )
        for name, (steps, optima, shared, within, same) in counts.items()
    )
    by = {row[0]: row for row in rows}
    fewer = all(by[name][1] < by["AP"][1] and by[name][2] < by["AP"][2] for name in ("nDCG@10", "P@10", "RR"))
    return Finding(
        (
            "measure",
            "steps per line",
            "optima per line",
            "% shared with AP",
            "% global optima within one of AP's",
            "% global optima where AP's is",
        ),
        rows,
        "MAP and GMAP share all local optima though not the global one, and a measure that responds to fewer flips has"
        " fewer optima.",
        f"GMAP shares {by['GMAP'][3]:.1f}% of its optima with AP and has the global one in the same place on"
        f" {by['GMAP'][5]:.0f}% of {number} lines; nDCG@10 has {by['nDCG@10'][2] / by['AP'][2]:.2f} times the optima of"
        " AP.",
        "holds" if by["GMAP"][3] == 100 and by["GMAP"][5] < 100 and fewer else "does not hold",
        {
            "data": "mq2008 Fold1",
            "queries": given.queries,
            "lines": number,
            "reach": REACH,
            "seed": setting.seed,
            **FIT,
        },
        notes=("nDCG of three grades responds to flips of grades 2 and 1 that AP ignores, and so shares fewer.",),
    )


@part("robertson2007", "queries", "Optima against the number of training queries", needs=("mq2008",), minutes=0.2)
def queries(setting: Setting) -> Finding:
    """The paper's open question: how many optima, how high and wide, and what a sampled search sees of them."""
    number, measures = (2, ("AP", "nDCG@10")) if setting.quick else (12, ("AP", "nDCG", "nDCG@10", "P@10"))
    given = next(training_sets(setting))[1]
    model = fitted(given, setting.seed)
    orders, lines = _orders(given, number, setting.seed), lines_through(model, number, setting.seed)
    every = len(orders[0])
    sizes = [size for size in (5, 10, 20, 40, 80, 160, 320) if 1.2 * size < every] + [every]
    rows = []
    for measure in measures:
        for size in sizes:
            setting.say(f"{measure}, {size} queries")
            found = [
                _described(trajectory(model, given.select(np.sort(order[:size])), line, measure, -REACH, REACH))
                for order, line in zip(orders, lines, strict=True)
            ]
            rows.append((measure, size, *np.mean(found, axis=0).tolist()))
    slopes = {measure: _slopes([row for row in rows if row[0] == measure]) for measure in measures}
    optima, height, width, whole, seen = slopes["AP"][:5]
    holds = all(each[0] > 0 > each[1] and each[4] < min(0, each[3]) for each in slopes.values())
    return Finding(
        ("measure", "queries", *PANELS),
        tuple(rows),
        "The larger the training set the more local optima, the less significant each, and the smoother the surface"
        " where small variations are ignored.",
        f"With n queries AP has local optima as n^{optima:.2f}, of a height as n^{height:.2f}; the best stretch is as"
        f" wide as n^{width:.2f}. Its ups and downs add up to as much as n^{whole:.2f}, those that {GRID} points see"
        f" to n^{seen:.2f} (least squares of logarithms).",
        "holds" if holds else "does not hold",
        {
            "data": "mq2008 Fold1",
            "sizes": sizes,
            "lines": number,
            "reach": REACH,
            "grid": GRID,
            "seed": setting.seed,
            **FIT,
        },
        lambda: _sizes_chart(rows),
        (
            "Height: by how much an optimum is above the better of its neighbours. Variation: the sum of all ups and"
            " downs between neighbouring stretches, or points. Means over lines, each with its own draw of queries that"
            " have a relevant document; larger sets contain the smaller.",
        ),
    )


def _orders(rows: Candidates, number: int, seed: int) -> list[Ints]:
    """For each line, an order of the queries in which it takes them; those that nothing can change are left out."""
    relevant = np.bincount(rows.query_of_rows(), np.nan_to_num(rows.labels) > 0, rows.queries)
    counted = np.flatnonzero((relevant > 0) & (relevant < rows.sizes))
    return [np.random.default_rng([seed, line]).permutation(counted) for line in range(number)]


def _described(path: ModelTrajectory) -> tuple[float, ...]:
    """What `PANELS` names: of the whole line, and of what a search that samples it sees."""
    values = path.measure.sign * path.values
    inner = np.flatnonzero((values[1:-1] > values[:-2]) & (values[1:-1] > values[2:])) + 1
    height = values[inner] - np.maximum(values[inner - 1], values[inner + 1])
    points = np.array([path.at(x) for x in np.linspace(path.low, path.high, GRID)]) * path.measure.sign
    kept = points[np.append(True, points[1:] != points[:-1])]
    seen = int(((kept[1:-1] > kept[:-2]) & (kept[1:-1] > kept[2:])).sum()) if len(kept) > 2 else 0
    variation = (float(np.abs(np.diff(each)).sum()) for each in (values, points))
    return len(path.local_maxima()), float(height.mean()) if len(height) else 0.0, path.width, *variation, seen


def _slopes(rows: list[tuple[Any, ...]]) -> list[float]:
    """The powers of the number of queries with which the columns of `PANELS` change."""
    sizes, table = np.log([row[1] for row in rows]), np.array([row[2:] for row in rows])
    return [float(np.polyfit(sizes, np.log(np.maximum(column, 1e-12)), 1)[0]) for column in table.T]


def _sizes_chart(rows: list[tuple[Any, ...]]) -> Any:
    """Panels over the number of queries, logarithmic."""
    from fliprank.report.drawing import COLOURS, altair, styled

    alt = altair()
    names = list(dict.fromkeys(row[0] for row in rows))
    scale = alt.Scale(domain=names, range=COLOURS[: len(names)])
    panels = []
    for i, title in enumerate(PANELS, 2):
        values = [{"measure": row[0], "queries": row[1], "value": row[i]} for row in rows if row[i] > 0]
        log = alt.Scale(type="log", nice=False)
        lines = alt.Chart(alt.Data(values=values)).mark_line(point=True, strokeWidth=1.6)
        panels.append(
            lines.encode(
                x=alt.X("queries:Q", scale=log, title="training queries"),
                y=alt.Y("value:Q", scale=alt.Scale(type="log"), title=title),
                color=alt.Color("measure:N", scale=scale, title=None, legend=alt.Legend(orient="top")),
            ).properties(width=280, height=200)
        )
    return styled(alt.vconcat(*(alt.hconcat(*panels[i : i + 2]) for i in range(0, len(panels), 2))))
