"""Scoring and gradients of models on 1,000,000 rows of 46 features, against reading them once and against plain NumPy.

    python bench/models.py

A ratio is the peer's time over fliprank's: warm, the best of several tries, in the same run. Results must agree.
"""

from __future__ import annotations

import numpy as np
from timing import Row, best, show

from fliprank.data.candidates import Candidates
from fliprank.models import Linear, Network

ROWS, FEATURES, HIDDEN = 1_000_000, 46, 10


def plain_scores(model: Network, standard: np.ndarray) -> np.ndarray:
    """The net as one writes it with NumPy, on features standardised before."""
    values, nodes = model.params.values, model.hidden
    w21, b2 = values[: nodes * FEATURES].reshape(nodes, FEATURES), values[-2 * nodes - 1 : -nodes - 1]
    return np.tanh(standard @ w21.T + b2) @ values[-nodes - 1 : -1] + values[-1]


def rows() -> list[Row]:
    """(what, peer, ratio, target) for each peer."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    candidates = Candidates.of(np.zeros(ROWS), group=np.full(ROWS // 100, 100), features=features)
    network, linear = Network(HIDDEN).prepared(candidates, rng), Linear().prepared(candidates, rng)
    dscores, standard = rng.normal(size=ROWS), network.scaler.standardised(candidates)
    np.testing.assert_allclose(network.score(candidates), plain_scores(network, standard), atol=1e-12)

    one_pass = best(lambda: features.sum())
    plain = best(lambda: plain_scores(network, standard), 3)
    score, pull = best(lambda: network.score(candidates)), best(lambda: network.pullback(candidates, dscores))
    line = best(lambda: linear.score(candidates))
    size = f"{ROWS:,} x {FEATURES}"
    net = f"network, {HIDDEN} hidden, scores of {size}"
    return [
        Row(net, "one features.sum(): reading the matrix once", one_pass / score, "near 1"),
        Row(net, "plain NumPy, float64", plain / score, ">= 4"),
        Row(f"network, gradient of {size}", "its own scores", score / pull, ">= 0.4"),
        Row(f"linear, scores of {size}", "one features.sum()", one_pass / line, "near 1"),
    ]


if __name__ == "__main__":
    show(rows())
