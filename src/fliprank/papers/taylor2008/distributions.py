"""Figures 1 to 3 and 5: from noisy scores to rank distributions, to discounts, and the discounts that are tried."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import fliprank as fr
from fliprank.arrays import Floats
from fliprank.papers.part import Finding, Setting, part

SCORES = np.array([-0.5, 0.4, 2.0])
"""Three documents as in Figures 1 and 2: the third far ahead, the others near each other."""
NAMES = ("document 1", "document 2", "document 3")
SIGMA = 1.0
SIMILAR = 0.05
"""Rank distributions are similar if they differ by less than this in total variation, on average over documents."""
PAPER, SCALED, TRUE = "the paper's", "with Sinkhorn scaling", "true"
WAYS = {PAPER: "recursion", SCALED: "sinkhorn", TRUE: "true"}


@part("taylor2008", "figure1", "Scores without noise and their ranks", minutes=0.1)
def figure1(setting: Setting) -> Finding:
    """With next to no noise, every document has one rank."""
    found = fr.rank_distribution(SCORES, 1e-9)
    order = np.argsort(np.argsort(-SCORES))
    sure = bool((found[np.arange(3), order] > 1 - 1e-12).all())
    return Finding(
        ("document", "score", "rank 0", "rank 1", "rank 2"),
        tuple((name, float(score), *map(float, line)) for name, score, line in zip(NAMES, SCORES, found, strict=True)),
        "Scores without noise have ranks without doubt: the lowest is certain to be ranked in the lowest position, 2.",
        f"The lowest score has rank 2 with probability {found[0, 2]:.6f}; the others are as certain.",
        "holds" if sure else "does not hold",
        {"scores": SCORES.tolist(), "sigma": 1e-9},
        partial(_bars, {"without noise": found}),
    )


@part("taylor2008", "figure2", "From noisy scores to rank distributions", minutes=0.1)
def figure2(setting: Setting) -> Finding:
    """The paper's approximation beside the true distribution of ranks, for three documents and for many."""
    three = {name: fr.rank_distribution(SCORES, SIGMA, way) for name, way in WAYS.items()}
    rows: list[tuple[Any, ...]] = []
    for name, found in three.items():
        means = found @ np.arange(3)
        rows += [(f"three documents, {NAMES[j]}", name, float(means[j]), float(_variation(found, three[TRUE])[j]))
                 for j in range(3)]  # fmt: skip
    distance: dict[str, dict[str, float]] = {}
    for case, scores in ({"three documents": SCORES} | _cases(12 if setting.quick else 60)).items():
        true = fr.rank_distribution(scores, SIGMA, "true")
        distance[case] = {}
        for name, way in WAYS.items():
            apart = float(_variation(fr.rank_distribution(scores, SIGMA, way), true).mean())
            rows.append((case, name, float("nan"), apart))
            distance[case][name] = apart
    near = [each[PAPER] < SIMILAR for each in distance.values()]
    better = [each[SCALED] < each[PAPER] for each in distance.values()]
    told = "; ".join(f"{case}: {each[PAPER]:.3f}, scaled {each[SCALED]:.3f}" for case, each in distance.items())
    return Finding(
        ("documents", "distribution", "mean rank", "total variation from the true one"),
        tuple(rows),
        "Independent contests give rank distributions similar to those of sorted samples, and Sinkhorn scaling makes "
        "them more so.",
        f"Mean total variation from the true distribution: {told}. The mean rank of independent contests is the true "
        "one, their spread is too small.",
        "holds" if all(near) and all(better) else "does not hold",
        {"sigma": SIGMA, "similar_below": SIMILAR, "scores": SCORES.tolist()},
        partial(_bars, three),
    )


def _cases(size: int) -> dict[str, Floats]:
    """Scores whose spread is large, like and small beside the noise of 1."""
    spread = np.random.default_rng(0).normal(size=size)
    return {f"{size} documents, spread {factor:g} times the noise": factor * spread for factor in (10.0, 1.0, 0.1)}


def _variation(one: Floats, other: Floats) -> Floats:
    """Total variation of each document's two distributions."""
    apart: Floats = np.abs(one - other).sum(axis=1) / 2
    return apart


@part("taylor2008", "figure3", "From ranks to discounts, and SoftNDCG", minutes=0.1)
def figure3(setting: Setting) -> Finding:
    """The distribution of a document's discount, and the SoftNDCG that follows from its mean."""
    discount = fr.DCG().discounts(np.arange(3), np.full(3, 3))
    found = {name: fr.rank_distribution(SCORES, SIGMA, WAYS[name]) for name in (PAPER, TRUE)}
    rows: tuple[tuple[Any, ...], ...] = tuple(
        (NAMES[j], rank, float(discount[rank]), *(float(p[j, rank]) for p in found.values()))
        for j in range(3)
        for rank in range(3)
    )
    labels = np.array([0.0, 1.0, 2.0])
    judged, gains = fr.Candidates.of(labels), 2.0**labels - 1
    soft = {name: float(gains @ p @ discount / np.sort(gains)[::-1].dot(discount)) for name, p in found.items()}
    objectives = {PAPER: fr.SoftRank(sigma=SIGMA), TRUE: fr.SoftNDCG(sigma=SIGMA)}
    given = {name: objective.value_and_grad(SCORES, judged)[0] for name, objective in objectives.items()}
    same = all(abs(soft[name] - given[name]) < 1e-5 for name in soft)
    return Finding(
        ("document", "rank", "discount", "probability, the paper's", "probability, true"),
        rows,
        "A rank distribution becomes a distribution over discounts, whose mean replaces the discount: SoftNDCG.",
        f"With labels 0, 1 and 2 SoftNDCG is {soft[TRUE]:.6f} for true ranks and {soft[PAPER]:.6f} for the paper's; "
        f"the objectives softndcg and softrank give {given[TRUE]:.6f} and {given[PAPER]:.6f}.",
        "holds" if same else "does not hold",
        {"scores": SCORES.tolist(), "sigma": SIGMA, "labels": labels.tolist()},
        partial(_discount_bars, discount, found),
    )


@part("taylor2008", "figure5", "Discounts from super-linear to sub-linear", minutes=0.1)
def figure5(setting: Setting) -> Finding:
    """The family of discounts, and how each bends."""
    size, alphas = 100, (-1.0, -0.5, 0.0, 0.5, 1.0)
    ranks = np.arange(size)
    curves = {alpha: fr.DCG(discount=alpha).discounts(ranks, np.full(size, size)) for alpha in alphas}
    bends = {alpha: np.diff(curve, 2) for alpha, curve in curves.items()}
    shaped = all(
        (np.abs(bend) < 1e-9).all() if alpha == 0 else (np.sign(alpha) * bend > 0).all()
        for alpha, bend in bends.items()
    )
    shown = (0, 1, 4, 9, 49, 99)
    points = [
        {"rank": int(rank), "discount": float(curve[rank]), "alpha": f"alpha {alpha:g}"}
        for alpha, curve in curves.items()
        for rank in ranks
    ]
    return Finding(
        ("alpha", *(f"rank {rank}" for rank in shown)),
        tuple((alpha, *(float(curve[rank]) for rank in shown)) for alpha, curve in curves.items()),
        "Discounts range from super-linear (alpha = -1) through linear (0) to sub-linear, as NDCG's own (1).",
        "Every curve below 0 falls faster and faster, that of 0 evenly, every one above 0 more and more slowly."
        if shaped
        else "Not every curve bends as its alpha says.",
        "holds" if shaped else "does not hold",
        {"documents": size},
        partial(_lines, points),
    )


def _points(distributions: dict[str, Floats]) -> list[dict[str, Any]]:
    return [
        {"rank": rank, "probability": float(p[j, rank]), "distribution": name, "document": NAMES[j]}
        for name, p in distributions.items()
        for j in range(3)
        for rank in range(3)
    ]


def _bars(distributions: dict[str, Floats]) -> Any:
    from fliprank.report.series_plots import series_chart

    return series_chart(_points(distributions), "rank", "probability", "distribution", bars=True, panel="document")


def _discount_bars(discount: Floats, distributions: dict[str, Floats]) -> Any:
    from fliprank.report.series_plots import series_chart

    points = [each | {"discount": f"{discount[each['rank']]:.3f}"} for each in _points(distributions)]
    return series_chart(points, "discount", "probability", "distribution", bars=True, panel="document")


def _lines(points: list[dict[str, Any]]) -> Any:
    from fliprank.report.series_plots import series_chart

    return series_chart(points, "rank", "discount", "alpha")
