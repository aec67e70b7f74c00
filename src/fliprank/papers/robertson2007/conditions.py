"""Theorem 2 and its assumptions on real data, what jitter does, and the flips between epochs of a fit.

Robertson & Zaragoza 2007, sections A.4 to A.6, and the third section's remark that an optimiser goes in steps.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.experiment.training import train
from fliprank.landscape import Leg, Regions, along_trail, score_regions, score_trajectory
from fliprank.landscape.theorem import compare_optima
from fliprank.models import BM25, Linear, Model
from fliprank.papers.checkpoint import finished
from fliprank.papers.data import letor_folds, some_queries, stanford_web
from fliprank.papers.part import Finding, Setting, part
from fliprank.papers.robertson2007.optima import ALIKE, FIT, REACH, binary, fitted, lines_through, training_sets

__all__ = ["coinciding", "meetings", "twins"]

MOST_PAIRS = 60
"""Pairs of unlike label of a query that goes into a plane."""

FEATURES, DRAWS = (1, 2, 5, 10, 20), 10
"""Numbers of features of which linear functions are made, and how often these are drawn."""

JITTER = (0.0, 1e-9, 1e-6, 1e-3, 1e-1)
"""Sizes of the random part of a score, in standard deviations of scores within a query."""


@part("robertson2007", "theorem2", "Theorem 2: optima shared in planes", needs=("mq2008",), minutes=0.1)
def theorem2(setting: Setting) -> Finding:
    """In planes of two directions every region of optimum is known: those of AP, nDCG and GMAP, compared."""
    planes, sizes = (1, (3,)) if setting.quick else (4, (4, 8, 12))
    given = next(training_sets(setting))[1]
    model, rng = fitted(given, setting.seed), np.random.default_rng(setting.seed)
    rows, first = [], list[Regions]()
    for size in sizes:
        for plane in range(planes):
            setting.say(f"{size} queries, plane {plane + 1} of {planes}")
            some = binary(given).select(np.sort(_few_pairs(given, size, rng)))
            u, v = (model.slope(some, direction) for direction in lines_through(model, 2, plane + setting.seed))
            window = (-REACH, REACH, -REACH, REACH)
            found = [score_regions(model.score(some), u, v, some, name, window) for name in ALIKE]
            first = first or found[:1]
            optima = [{frozenset(each.cells.tolist()) for each in regions.optima()} for regions in found]
            best = {frozenset(regions.best()[0].cells.tolist()) for regions in found}
            lines = found[0].boundaries
            shape = (len(lines), int((np.diff(lines.begin) > 1).sum()), *meetings(lines.line, window))
            rows.append((size, plane + 1, *shape, len(set.union(*optima)), len(set.intersection(*optima)), len(best)))
    total, shared, crowded = (sum(row[i] for row in rows) for i in (6, 7, 5))
    return Finding(
        (
            *("queries", "plane", "flip boundaries", "of several pairs", "points of two", "points of more"),
            *("regions of optimum", "shared by all", "different global ones"),
        ),
        tuple(rows),
        "If no two flip boundaries coincide, and no multi-flip subspaces but those that must, measures that respond"
        " to the same flips share all local optima.",
        f"{', '.join(ALIKE)} share {shared:,} of their {total:,} regions of optimum in {len(rows)} planes, in which"
        f" {crowded:,} points are on more than two boundaries.",
        "holds" if shared == total > 0 else "does not hold",
        {"data": "mq2008 Fold1", "labels": "binary: above 0", "sizes": list(sizes), "reach": REACH, **FIT},
        lambda: _plane_chart(first[0]),
        (
            "Boundaries are of documents of unlike label. With binary labels no three of them must meet in a point:"
            " where d1/d2 and d2/d3 do, d1 and d3 are alike. Queries have at most 60 pairs of unlike label.",
        ),
    )


def meetings(lines: Floats, window: tuple[float, float, float, float]) -> tuple[int, int]:
    """The points of a window where two lines a x + b y + c = 0 meet, and those where three or more do."""
    one, two = np.triu_indices(len(lines), 1)
    (a, b, c), (d, e, f) = lines[one].T, lines[two].T
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y = (b * f - c * e) / (a * e - b * d), (c * d - a * f) / (a * e - b * d)
    left, right, bottom, top = window
    within = (x > left) & (x < right) & (y > bottom) & (y < top)
    points = np.column_stack([x, y])[within].round(9) + 0.0
    _, pairs = np.unique(points, axis=0, return_counts=True)
    return int((pairs == 1).sum()), int((pairs > 1).sum())


def _few_pairs(rows: Candidates, size: int, rng: np.random.Generator) -> Ints:
    """Queries that have documents of both kinds, and not too many of them for all cells of a plane."""
    relevant = np.bincount(rows.query_of_rows(), np.nan_to_num(rows.labels) > 0, rows.queries)
    pairs = relevant * (rows.sizes - relevant)
    return rng.choice(np.flatnonzero((pairs > 0) & (pairs <= MOST_PAIRS)), size, replace=False)


def _plane_chart(found: Regions) -> Any:
    from fliprank.report.planes import regions_chart

    return regions_chart(found, ("direction 1", "direction 2"))


@part(
    "robertson2007",
    "assumptions",
    "Theorem 2: how often flip boundaries coincide",
    needs=("mq2008", "stanford-web"),
    minutes=0.1,
)
def assumptions(setting: Setting) -> Finding:
    """Documents that look alike to a ranking function, and hyperplanes of a linear one that coincide."""
    few = 40 if setting.quick else 1_000_000
    letor = some_queries(letor_folds(setting)[0].train.rows, few, setting.seed)
    web = some_queries(stanford_web(setting)["2014-train"], few, setting.seed)
    setting.say("BM25")
    alike, unlike = twins(BM25().prepared(web, 0), web, setting.seed)
    every = len(letor.feature_names)
    rows: list[tuple[Any, ...]] = [
        ("BM25, web pages", web.queries, len(web), 100 * alike / len(web), float(unlike), float("nan"), float("nan"))
    ]
    for count in [each for each in FEATURES if each < every] + [every]:
        setting.say(f"{count} features")
        planes = coinciding(letor) if count == every else (float("nan"), float("nan"))
        found = np.mean([_twins_of_features(letor, count, draw) for draw in range(1 if count == every else DRAWS)], 0)
        name = f"linear, {count} of {every} features"
        rows.append((name, letor.queries, len(letor), 100 * found[0] / len(letor), float(found[1]), *planes))
    shares, whole = [row[3] for row in rows[1:]], rows[-1]
    falls = all(one > other for one, other in pairwise(shares))
    return Finding(
        (
            "ranking function",
            "queries",
            "documents",
            "% with a twin",
            "twins of unlike label",
            "boundaries",
            "% that coincide",
        ),
        tuple(rows),
        "Documents that share all features, so that their flips coincide, are conceivable with BM25, but functions of"
        " many features render them less and less probable.",
        f"{rows[0][3]:.1f}% of documents have a twin under BM25; with linear functions {shares[0]:.1f}% under one"
        f" feature and {shares[-1]:.1f}% under {every}, {'fewer' if falls else 'not always fewer'} with each step;"
        f" {whole[6]:.1f}% of {whole[5]:,.0f} boundaries of the linear function coincide with another.",
        "holds" if falls and rows[0][3] > 0 else "does not hold",
        {"data": ["mq2008 Fold1", "stanford-web 2014-train"], "queries": few if setting.quick else "all"},
        notes=(
            "Twins: documents of a query whose scores are equal for random parameters. Unlike: pairs that no parameters"
            f" part. Of some features: means over {DRAWS} draws of these.",
            "Boundaries: of documents of unlike label. They coincide if the differences of features are parallel to"
            " five digits, within a query or between two.",
        ),
    )


def _twins_of_features(rows: Candidates, count: int, draw: int) -> tuple[int, int]:
    """The twins under a linear function of some of the features."""
    assert rows.features is not None
    some = np.sort(np.random.default_rng(draw).choice(len(rows.feature_names), count, replace=False))
    fewer = replace(rows, features=rows.features[:, some], feature_names=tuple(rows.feature_names[i] for i in some))
    return twins(Linear().prepared(fewer, 0), fewer)


def twins(model: Model, rows: Candidates, seed: int = 0) -> tuple[int, int]:
    """How many rows have another of the same query with equal scores at random parameters; pairs of unlike label."""
    rng, values = np.random.default_rng(seed), model.params.free_values
    owner, labels = rows.query_of_rows(), np.nan_to_num(rows.labels)
    scores = [model.at(model.params.with_free(values * f)).score(rows) for f in rng.uniform(0.5, 1.0, (2, len(values)))]
    _, kind, size = np.unique(np.column_stack([owner, *scores]), axis=0, return_inverse=True, return_counts=True)
    pairs = size * (size - 1) // 2
    _, labelled = np.unique(np.column_stack([kind.ravel(), labels]), axis=0, return_counts=True)
    return int(size[size > 1].sum()), int(pairs.sum() - (labelled * (labelled - 1) // 2).sum())


def coinciding(rows: Candidates) -> tuple[int, float]:
    """The flip boundaries of a linear function between documents of unlike label, and the % that are not alone."""
    assert rows.features is not None
    features, labels = rows.features.astype(float), np.nan_to_num(rows.labels)
    found: list[Floats] = []
    for q in range(rows.queries):
        own = slice(rows.offsets[q], rows.offsets[q + 1])
        one, two = np.nonzero(labels[own][:, None] > labels[own])
        found.append(features[own][one] - features[own][two])
    normals = np.concatenate(found)
    normals = normals[np.abs(normals).max(axis=1) > 0]
    largest = np.abs(normals).argmax(axis=1)
    normals /= normals[np.arange(len(normals)), largest][:, None]
    _, number, size = np.unique(normals.round(5) + 0.0, axis=0, return_inverse=True, return_counts=True)
    return len(normals), 100 * float((size[number.ravel()] > 1).mean())


@part("robertson2007", "jitter", "What a small random addition to scores does", needs=("mq2008",), minutes=0.2)
def jitter(setting: Setting) -> Finding:
    """Along single weights, where flips coincide, with more and more of a random part in the scores."""
    given = next(training_sets(setting))[1]
    model, judged = fitted(given, setting.seed), binary(given)
    numbers = range(1, len(model.params.free_names), 15 if setting.quick else 3)  # 0 is the bias
    spread = float(np.median([_deviation(model.score(judged), judged, q) for q in range(judged.queries)]))
    drawn = np.random.default_rng(setting.seed).normal(size=len(judged))
    rows = []
    for size in JITTER:
        setting.say(f"jitter of {size:g}")
        single = optima = apart = 0
        best = []
        for number in numbers:
            direction = np.eye(len(model.params.free_names))[number]
            slope, base = model.slope(judged, direction), model.score(judged) + size * spread * drawn
            paths = [score_trajectory(base, slope, judged, name, -REACH, REACH) for name in ALIKE]
            found = compare_optima(paths)
            single, optima, apart = single + found.one_at_a_time, optima + found.optima, apart + len(found.differences)
            best.append(paths[0].maximum.value)
        rows.append((f"{size:g}", 100 * single / len(numbers), optima, apart, float(np.mean(best))))
    before, small = rows[0], rows[2]
    unchanged = abs(small[4] - before[4]) < 0.005
    return Finding(
        ("jitter", "% of lines with one flip at a time", "optima", "not shared", "best AP, mean of lines"),
        tuple(rows),
        "A small random addition to each score makes the theorem true almost everywhere, and can be as small as one"
        " likes and so affect nothing else.",
        f"Without it {before[3]} of {before[2]:,} optima are not shared, and {before[1]:.0f}% of the lines meet one"
        f" flip at a time; with 1e-06 of the spread {small[3]} of {small[2]:,}, and {small[1]:.0f}%. The best AP goes"
        f" from {before[4]:.4f} to {small[4]:.4f}.",
        "holds" if all(row[3] == 0 for row in rows[1:]) and unchanged else "does not hold",
        {"data": "mq2008 Fold1", "labels": "binary: above 0", "lines": len(numbers), "seed": setting.seed, **FIT},
        notes=(
            "Jitter is normal, in median standard deviations of scores within a query, the same along the whole line.",
        ),
    )


def _deviation(scores: Floats, rows: Candidates, query: int) -> float:
    return float(scores[rows.offsets[query] : rows.offsets[query + 1]].std())


@part("robertson2007", "epochs", "The flips that separate two epochs of a fit", needs=("mq2008",), minutes=0.1)
def epochs(setting: Setting) -> Finding:
    """Good and bad flips on the straight line from each epoch of L-BFGS to the next."""
    given = next(training_sets(setting))[1]
    fit = finished(train(Linear(), given, measure="AP", keep="last", seed=setting.seed, **FIT))
    assert fit.path is not None
    legs = along_trail(fit.model, fit.path, given, "AP")
    rows = tuple(_leg(leg) for leg in legs)
    good, bad = sum(leg.good for leg in legs), sum(leg.bad for leg in legs)
    gained, lost = sum(row[5] for row in rows), sum(row[6] for row in rows)
    many = float(np.median([leg.good + leg.bad for leg in legs])) > 1
    return Finding(
        ("epoch", "before", "after", "good flips", "bad flips", "gained", "lost"),
        rows,
        "Practical optimisers move in discrete steps that involve many flips, of which the measure shows the sum only.",
        f"{len(legs)} epochs made {good:,} good and {bad:,} bad flips: {gained:+.4f} and {lost:+.4f} of AP for a"
        f" change of {legs[-1].after - legs[0].before:+.4f}.",
        "holds" if many else "does not hold",
        {"data": "mq2008 Fold1", "queries": given.queries, "measure": "AP", "seed": setting.seed, **FIT},
    )


def _leg(leg: Leg) -> tuple[int, float, float, int, int, float, float]:
    gains = leg.path.flips.mean_gain if leg.path is not None else np.zeros(0)
    sums = (float(gains[gains > 0].sum()), float(gains[gains < 0].sum()))
    return leg.number, leg.before, leg.after, leg.good, leg.bad, *sums
