"""Scoring and gradients of models on 1,000,000 rows of 46 features, against reading them once and against plain NumPy.

    python bench/models.py

A ratio is the peer's time over fliprank's, best of several, warm, in the same run; results must agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.models import Linear, Network

ROWS, FEATURES, HIDDEN = 1_000_000, 46, 10


def seconds(call: Callable[[], Any], repeat: int = 9) -> float:
    """The best time of `repeat` calls, after one that compiles."""
    call()
    best = np.inf
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def plain_scores(model: Network, standard: np.ndarray) -> np.ndarray:
    """The net as one writes it with NumPy, on features standardised before."""
    values, nodes = model.params.values, model.hidden
    w21, b2 = values[: nodes * FEATURES].reshape(nodes, FEATURES), values[-2 * nodes - 1 : -nodes - 1]
    return np.tanh(standard @ w21.T + b2) @ values[-nodes - 1 : -1] + values[-1]


def rows() -> list[tuple[str, str, float, float]]:
    """(what, peer, ratio, target) for each peer."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    candidates = Candidates.of(np.zeros(ROWS), group=np.full(ROWS // 100, 100), features=features)
    network, linear = Network(HIDDEN).prepared(candidates, rng), Linear().prepared(candidates, rng)
    dscores, standard = rng.normal(size=ROWS), network.scaler.standardised(candidates)
    np.testing.assert_allclose(network.score(candidates), plain_scores(network, standard), atol=1e-12)

    one_pass = seconds(lambda: features.sum())
    plain = seconds(lambda: plain_scores(network, standard), 3)
    score, pull = seconds(lambda: network.score(candidates)), seconds(lambda: network.pullback(candidates, dscores))
    line = seconds(lambda: linear.score(candidates))
    size = f"{ROWS:,} x {FEATURES}"
    net = f"network, {HIDDEN} hidden, scores of {size} ({score * 1000:.0f} ms)"
    gradient = f"network, gradient of {size} ({pull * 1000:.0f} ms)"
    return [
        (net, f"one features.sum() ({one_pass * 1000:.0f} ms)", one_pass / score, 0.2),
        (net, f"plain NumPy, float64 ({plain * 1000:.0f} ms)", plain / score, 4.0),
        (gradient, "its own scores", score / pull, 0.4),
        (f"linear, scores of {size} ({line * 1000:.0f} ms)", "one features.sum()", one_pass / line, 0.4),
    ]


def main() -> None:
    for what, peer, ratio, target in rows():
        print(f"{what} against {peer}: {ratio:.2f} times as fast (target {target})")


if __name__ == "__main__":
    main()
