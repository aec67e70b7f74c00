"""What a cascade saves: scoring all documents with its last stage, against scoring through the cascade.

    python bench/cascade.py

Queries are generated, with 2500 documents each, some 30 of them rated, whose relevance is not linear in the features.
The last stage is a net, or trees, trained on all documents; a linear model comes before it. The cut-off is the smallest
of a few at which validation queries lose no nDCG@10. Both ways are timed on test queries, after a first run that does
not count: the least of several tries, taken in turn.
"""

from __future__ import annotations

import numpy as np
from timing import Row, show, timed

import fliprank as fr
from fliprank.data.subsample import subsample
from fliprank.experiment.cutoffs import choose_cutoffs
from fliprank.models.cascade import Cascade
from fliprank.models.trees import Trees

DOCUMENTS, FEATURES = 2500, 60
CUTS = (10, 20, 50, 100, 200, 300, 500, 1000, 1500)
TRIES = 15


def collection(queries: int, seed: int) -> fr.Candidates:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((queries * DOCUMENTS, FEATURES), np.float32)
    match, quality = x[:, :20].sum(axis=1) / 4.5, x[:, 20:40].sum(axis=1) / 4.5
    utility = match + quality / (1 + np.exp(-3 * match)) + 0.5 * rng.standard_normal(len(x))
    labels = np.full(len(x), np.nan)
    for start in range(0, len(x), DOCUMENTS):
        top = np.argsort(-(utility[start : start + DOCUMENTS] + rng.standard_normal(DOCUMENTS)))
        rated = start + np.concatenate([top[:20], rng.choice(top[20:], 10, replace=False)])
        labels[rated] = np.searchsorted([0.5, 1.5, 2.5, 3.5], utility[rated])
    return fr.Candidates.of(labels, group=[DOCUMENTS] * queries, features=x)


def rows() -> list[Row]:
    train, valid, test = (collection(queries, seed) for seed, queries in enumerate((150, 60, 60)))
    options = {"objective": "ranknet", "restarts": 1, "sweep": False, "sample": 3, "epochs": 40, "l2": 0.01}
    first, net = (fr.train(model, train, valid, **options).model for model in (fr.Linear(), fr.Network(hidden=32)))
    few = subsample(train, 0, times=3, at_most=None)
    trees = Trees(rounds=200, patience=200, settings={"num_threads": 1}).grown(few, valid)
    return [*_rows(first, net, "a net of 32", valid, test), *_rows(first, trees, "200 trees", valid, test)]


def _rows(first: fr.Model, last: fr.Model, name: str, valid: fr.Candidates, test: fr.Candidates) -> list[Row]:
    measure = fr.parse_measure("nDCG(dcg='exp-log2')@10")
    nested = Cascade([first, last], [DOCUMENTS, 100])
    found = choose_cutoffs(nested, valid, costs=[1, 32], measure=measure, grid=CUTS, drop=False)
    level = measure.per_query(last.score(valid), valid).mean()
    enough = [choice for choice in found.choices if choice.value >= level] or [max(found.choices, key=lambda c: c.cost)]
    chosen = min(enough, key=lambda choice: choice.cost)
    cascade = found.apply(chosen)
    both = [measure.per_query(model.score(test), test).mean() for model in (cascade, last)]
    through, alone = np.inf, np.inf
    for _ in range(TRIES):  # in turn, so that other work on the machine slows down both
        through = min(through, timed(lambda: cascade.score(test), 1)[0])
        alone = min(alone, timed(lambda: last.score(test), 1)[0])
    what = f"rank 60 queries x {DOCUMENTS:,}: linear, then {name} for the top {chosen.sizes[1]}"
    peer = f"{name} for all"
    return [
        Row(what, peer, alone / through, "above 1"),
        Row(f"its test nDCG@10 {both[0]:.4f}, less", peer, both[0] - both[1], "about 0"),
    ]


if __name__ == "__main__":
    show(rows())
