"""Figures 3 to 7 of Matveeva et al. 2006: what nDCG sees, what RankNet does to it, what stages do to the top ten."""

from __future__ import annotations

from typing import Any

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.experiment.cascade_analysis import (
    LabelMoves,
    good_at_ranks,
    label_moves,
    opposed_query,
    top_labels,
)
from fliprank.experiment.significance import randomisation
from fliprank.measures import parse_measure
from fliprank.models import Cascade
from fliprank.papers.matveeva2006.sets import EPOCHS, NDCG, Scale, Sets, net, sets_of, trained
from fliprank.papers.part import Finding, Setting, Verdict, part

__all__ = ["swapped"]

PAIRS = "CorrectPairs"
PERFECT = (4, 4, 3, 3, 2, 2, 2, 1, 1, 1)


def swapped() -> list[float]:
    """nDCG@10 of the paper's perfect ranking with its first document swapped with each of the ten."""
    measure, out = parse_measure(NDCG), []
    rows = Candidates.of(list(PERFECT))
    for place in range(10):
        order = list(range(10))
        order[0], order[place] = order[place], order[0]
        scores = np.empty(10)
        scores[order] = np.arange(10, 0, -1)
        out.append(measure.value(scores, rows))
    return out


@part("matveeva2006", "figure3", "nDCG when the first of a perfect ranking is swapped", minutes=0.1)
def figure3(setting: Setting) -> Finding:
    """The first document of 4, 4, 3, 3, 2, 2, 2, 1, 1, 1 swapped with each other one."""
    values = swapped()
    drop = values[0] - values[4]
    return Finding(
        ("swapped with rank", "label", "nDCG@10", "change"),
        tuple((i + 1, PERFECT[i], value, round(value - 1, 12)) for i, value in enumerate(values)),
        "Swapping the first label 4 with the label 2 at rank 5 lowers nDCG by two percentage points.",
        f"By the formula as printed (gain 2^label - 1, logarithm of base 2) it lowers nDCG@10 by {100 * drop:.1f}"
        " points.",
        "holds" if abs(drop - 0.02) < 0.005 else "does not hold",
        {"ranking": list(PERFECT), "measure": NDCG},
        lambda: _swapped_chart(values),
        (
            "With the label itself as gain it would be 9.9 points: the paper may have used smaller gains than it"
            " prints.",
        ),
    )


def _swapped_chart(values: list[float]) -> Any:
    from fliprank.report.drawing import COLOURS, altair, styled

    alt = altair()
    points = [{"rank": i + 1, "value": value} for i, value in enumerate(values)]
    chart = alt.Chart(alt.Data(values=points)).mark_line(point=True, color=COLOURS[0])
    y = alt.Y("value:Q", title="nDCG@10", scale=alt.Scale(zero=False))
    return styled(chart.encode(x=alt.X("rank:O", title="swapped with rank"), y=y).properties(width=420, height=260))


@part("matveeva2006", "figure4", "nDCG against pairs in the right order over 30 epochs", minutes=2)
def figure4(setting: Setting) -> Finding:
    """Averaged over queries the two are correlated; from epoch to epoch they sometimes go apart."""
    scale = Scale.of("first", setting)
    setting.say("thirty epochs of the first stage")
    curves = sets_of(setting, scale).epochs
    steps = np.sign(np.diff(curves.values, axis=0))
    against = int((steps[:, 0] * steps[:, 1] < 0).sum())
    return Finding(
        ("epoch", "nDCG@10", "pairs in the right order"),
        tuple((epoch, float(line[0]), float(line[1])) for epoch, line in enumerate(curves.values)),
        "Averaged over queries nDCG and pair-wise accuracy are very well correlated over 30 epochs (0.946).",
        f"The correlation is {curves.correlation:.3f}; in {against} of {len(steps)} epochs one rises and the other"
        " falls.",
        "holds" if curves.correlation > 0.8 else "does not hold",
        scale.settings() | {"epochs": 30, "method": EPOCHS, "seed": setting.seed},
        lambda: _chart("epochs_chart", curves),
        (
            "On the validation queries, at the first stage; unlabelled documents count as label 0. Epoch 0 is the"
            " random start, which the correlation leaves out. The method averages weights over the way, so that epochs"
            " differ less than the paper's.",
        ),
    )


def _most_opposed(sets: Sets) -> tuple[LabelMoves, list[list[float]]]:
    """Of all validation queries: the ranks of its documents, and nDCG and pairs, after epochs 1 and 2."""
    one, two = (sets.epochs.models[epoch] for epoch in (1, 2))
    found = []
    for rows in sets.whole_valid():
        before, after = one.score(rows), two.score(rows)
        where = opposed_query(before, after, rows)
        values = [[float(parse_measure(m).per_query(s, rows)[where]) for s in (before, after)] for m in (NDCG, PAIRS)]
        apart = max(values[0][0] - values[0][1], 0.0) * max(values[1][1] - values[1][0], 0.0)
        found.append((apart, label_moves(before, after, rows, where), values))
    _, moves, values = max(found, key=lambda each: each[0])
    return moves, values


@part("matveeva2006", "figure5", "Labels over ranks of one query, between epochs 1 and 2", minutes=0.3)
def figure5(setting: Setting) -> Finding:
    """The query where pairs gain most while nDCG loses most, with all its documents."""
    scale = Scale.of("first", setting)
    sets = sets_of(setting, scale)
    setting.say("two epochs of the first stage")
    moves, values = _most_opposed(sets)
    risen = moves.before - moves.after
    rows = []
    for label in np.unique(moves.labels):
        own = risen[moves.labels == label]
        rows.append(
            (
                f"{label:g}",
                len(own),
                int((own > 0).sum()),
                int((own < 0).sum()),
                max(0, int(own.max())),
                max(0, int(-own.min())),
            )
        )
    opposed = values[0][1] < values[0][0] and values[1][1] > values[1][0]
    return Finding(
        ("label", "documents", "rise", "fall", "most ranks risen", "most ranks fallen"),
        tuple(rows),
        "For single queries pairs get better while nDCG gets worse: poor documents rise by many ranks (over 1,000 in"
        " the paper's example), highly relevant ones fall by a few.",
        f"Of the query where they go apart most nDCG@10 goes from {values[0][0]:.3f} to {values[0][1]:.3f}, pairs in"
        f" the right order from {values[1][0]:.4f} to {values[1][1]:.4f}; a document labelled 0 or 1 rises by up to"
        f" {int(risen[moves.labels <= 1].max()):,} ranks.",
        "holds" if opposed else "does not hold",
        scale.settings() | {"epochs": 2, "method": EPOCHS, "query": moves.query, "seed": setting.seed},
        lambda: _chart("moves_chart", moves, ("epoch 1", "epoch 2")),
        ("Label 0 includes unlabelled documents, which are rated 0.",),
    )


def _linear(setting: Setting) -> tuple[Cascade, Candidates, Scale]:
    """The cascade of Table 2's first line."""
    scale = Scale.of("first", setting)
    sets = sets_of(setting, scale)
    return trained(setting, sets, [net(0)] * 4, scale.sizes, "0 hidden nodes"), sets.test, scale


@part("matveeva2006", "figure6", "Labels among the top ten, from stage to stage", minutes=1)
def figure6(setting: Setting) -> Finding:
    """How each stage changes the number of documents of each label among the top ten."""
    cascade, test, scale = _linear(setting)
    found = top_labels(cascade, test)
    names = ["unlabelled" if np.isnan(level) else f"label {level:g}" for level in found.labels]
    owner, first, third = test.query_of_rows(), *(scores >= -10 for scores in cascade.by_stage(test)[:3:2])
    changes = []
    labels = np.nan_to_num(test.labels, nan=-1)
    for kind in (labels >= 1, np.isnan(test.labels), labels >= 3):
        differences = np.bincount(owner, (third & kind) * 1.0 - (first & kind), test.queries)
        changes.append((float(differences.mean()), randomisation(differences, seed=setting.seed)))
    (relevant, p), (unlabelled, q), (good, r) = changes
    opposed = (relevant < 0 and p < 0.05) or (unlabelled > 0 and q < 0.05)
    sure: Verdict = "holds" if max(p, q) < 0.05 else "can't be told at this size"
    return Finding(
        ("stage", *names),
        tuple((f"top {s:,}", *line) for s, line in zip(scale.sizes[1:], found.differences.tolist(), strict=True)),
        "The second and third stage bring more relevant documents into the top ten and fewer unlabelled ones.",
        f"From the first to the third stage there are {relevant:+.3f} documents labelled 1 to 4 (p {p:.2g}) and"
        f" {unlabelled:+.3f} unlabelled ones (p {q:.2g}) among the top ten per query; of those labelled 3 or 4,"
        f" {good:+.3f} (p {r:.2g}).",
        "does not hold" if opposed else sure,
        scale.settings() | {"seed": setting.seed},
        lambda: _chart("top_labels_chart", found),
    )


@part("matveeva2006", "figure7", "Good documents at each of the top ten ranks", minutes=0.1)
def figure7(setting: Setting) -> Finding:
    """The share of queries with a document labelled 3 or 4 at each rank, after each stage."""
    cascade, test, scale = _linear(setting)
    shares = good_at_ranks(cascade, test)
    more = int((shares[-1] > shares[0]).sum())
    return Finding(
        ("stage", *(f"rank {rank}" for rank in range(1, 11))),
        tuple((f"top {size:,}", *line) for size, line in zip(scale.sizes, shares.tolist(), strict=True)),
        "At seven of the ten ranks there are more good or excellent documents after the last stage than after the"
        " first.",
        f"There are more at {more} of the ten ranks.",
        "holds" if more >= 7 else "can't be told at this size" if more >= 4 else "does not hold",
        scale.settings() | {"seed": setting.seed},
        lambda: _chart("good_chart", shares, scale.sizes),
    )


def _chart(name: str, *given: Any) -> Any:
    from fliprank.report import cascade_plots

    return getattr(cascade_plots, name)(*given)
