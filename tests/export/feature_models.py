"""Trained models of features, of all kinds that are exported, and rows to score."""

from __future__ import annotations

from functools import cache

import numpy as np

import fliprank as fr

NAMES = ["title.bm25", "body.bm25", "clicks", "year", "constant", "depth"]


def make_rows(queries: int = 30, seed: int = 0, missing: bool = False) -> fr.Candidates:
    """Rows whose features have very different units; labels depend on some of them."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(queries * 12, 6))
    x = z * [4.0, 0.3, 120.0, 6.0, 0.0, 1.5] + [9.0, 0.2, 40.0, 2009.0, 7.0, 0.0]
    x[:, 2] = np.maximum(x[:, 2], 0.0)
    labels = np.clip(np.round(z[:, 0] + 0.5 * z[:, 1] * z[:, 5] + 0.5 * rng.normal(size=len(z))), 0, 3)
    if missing:
        x[rng.random(x.shape) < 0.15] = np.nan
    return fr.Candidates.of(labels, group=[12] * queries, features=x, feature_names=NAMES)


@cache
def trained() -> dict[str, fr.Model]:
    """By name; none has seen the rows of `make_rows(seed=1)`."""
    rows = make_rows()
    linear = fr.train(fr.Linear(), rows, objective="ranknet", method="lbfgs", epochs=5).model
    net = fr.train(fr.Network(5), rows, objective="ranknet", method="lbfgs", epochs=15).model
    trees = fr.train(fr.Trees(rounds=12, leaves=7, rate=0.3, leaf_rows=5), rows).model
    subset = fr.FeatureSubset(fr.Linear(), ["*.bm25"]).prepared(rows, 3)
    other = fr.FeatureSubset(fr.Network(2), ["clicks", "depth", "title.bm25"]).prepared(rows, 4)
    sums = [fr.Feature("title.bm25"), fr.Feature("clicks", transform="saturate"), fr.Feature("depth", transform="none")]
    stack = fr.Stack(*sums, fr.AllFeatures()).prepared(rows, 0)
    return {
        "linear": linear,
        "net": net,
        "trees": trees,
        "subset": subset,
        "linears": fr.Blend([linear, subset]).prepared(rows, 0).at([0.3, 0.7]),
        "nets": fr.Blend([net, other]).prepared(rows, 0).at([0.6, 0.4]),
        "forests": fr.Blend([trees, trees]).prepared(rows, 0).at([0.5, 0.25]),
        "blend": fr.Blend([linear, net, trees]).prepared(rows, 0).at([0.2, 0.3, 0.5]),
        "stack": stack.at(stack.initial(np.random.default_rng(5))),
    }


def columns_of(rows: fr.Candidates) -> dict[str, np.ndarray]:
    assert rows.features is not None
    return {name: rows.features[:, place] for place, name in enumerate(rows.feature_names)}
