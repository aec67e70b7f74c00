"""Objectives: SoftNDCG, value and gradient, against the paper's recursion (value only) and torch's rivals.

    python bench/objectives.py

A ratio is the peer's time over fliprank's, both warm, on the same numbers in the same run, each the best of several.
The recursion is plain, in Numba, over all cores, and skips irrelevant documents as we do; its value must agree. The
rivals are ApproxNDCG (Qin et al. 2010) and NeuralNDCG (Pobrotyn & Bialobrzeski 2021), from their formulas, in float32.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numba import njit, prange

from fliprank.data.candidates import Candidates
from fliprank.objectives import LambdaRank, Objective, RankNet, SoftNDCG

SIGMA = 0.1
TARGETS = {40: 2.0, 200: 6.0, 1000: 20.0, 2500: 35.0}
LETOR = Path(__file__).parents[2] / "shared/data/letor/MQ2008/Fold1/train.txt.gz"


def seconds(call: Callable[[], float], repeat: int) -> tuple[float, float]:
    """The best time of `repeat` calls, and the result."""
    best = np.inf
    for _ in range(repeat):
        start = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
    return best, result


def problem(size: int, queries: int) -> tuple[np.ndarray, Candidates]:
    """Standard normal scores and labels from 0 (half of them) to 4."""
    rng = np.random.default_rng(size)
    labels = rng.choice(5, size * queries, p=[0.5, 0.3, 0.12, 0.05, 0.03])
    return rng.normal(size=size * queries), Candidates.of(labels, group=[size] * queries)


@njit(parallel=True, fastmath=True)
def plain_recursion(scores, gains, offsets, query, discount, sigma):
    """The sum over documents of gain x E[discount], by eqs. (11), (12) and (15)."""
    values = np.zeros(len(scores))
    for j in prange(len(scores)):
        if gains[j] == 0.0:
            continue
        low, high = offsets[query[j]], offsets[query[j] + 1]
        p, seen = np.zeros(high - low + 1), 0
        p[0] = 1.0
        for i in range(low, high):
            if i == j:
                continue
            pi = 0.5 * math.erfc(-(scores[i] - scores[j]) / (2 * sigma))
            for r in range(seen + 1, 0, -1):
                p[r] = p[r - 1] * pi + p[r] * (1 - pi)
            p[0] *= 1 - pi
            seen += 1
        for r in range(high - low):
            values[j] += gains[j] * discount[r] * p[r]
    return values.sum()


def against_recursion() -> list[tuple[str, str, float, float]]:
    out = []
    for size, target in TARGETS.items():
        queries = max(8000 // size, 1)
        scores, candidates = problem(size, queries)
        soft = SoftNDCG(sigma=SIGMA)
        worth, discount = soft.plan(candidates).worth, 1 / np.log2(2.0 + np.arange(size))
        peer = (scores, worth, candidates.offsets, candidates.query_of_rows(), discount, SIGMA)
        plain_recursion(scores[:9], worth[:9], np.array([0, 9]), np.zeros(9, np.int64), discount, SIGMA)
        soft.value_and_grad(scores, candidates)
        ours, value = seconds(lambda: soft.value_and_grad(scores, candidates)[0], 15)  # noqa: B023
        theirs, total = seconds(lambda: plain_recursion(*peer), 1 if size > 1000 else 3)  # noqa: B023
        if abs(total / queries / value - 1) > 1e-6:
            raise AssertionError(f"the recursion found {total / queries}, fliprank {value}")
        what = f"SoftNDCG, value and gradient, {queries} x {size} ({ours * 1000:.1f} ms)"
        out.append((what, f"plain recursion, value only ({theirs * 1000:.1f} ms)", theirs / ours, target))
    return out


def against_torch() -> list[tuple[str, str, float, float]]:
    try:
        import torch
    except ImportError:
        print("torch is not installed: ApproxNDCG and NeuralNDCG are left out (pip install 'fliprank[torch]')")
        return []

    def approx_ndcg(s, gain, best):
        rank = 1 + torch.sigmoid((s[None, :] - s[:, None]) / SIGMA).sum(1) - 0.5
        return (gain / torch.log2(1 + rank)).sum() / best

    def neural_ndcg(s, gain, best):
        size = len(s)
        apart = (s[:, None] - s[None, :]).abs().sum(1)
        scaling = size + 1 - 2 * torch.arange(1, size + 1, dtype=s.dtype)
        p = torch.softmax((scaling[:, None] * s[None, :] - apart[None, :]) / SIGMA, dim=-1)
        for _ in range(50):  # Sinkhorn scaling, as its authors do
            p = p / p.sum(0, keepdim=True).clamp(min=1e-10)
            p = p / p.sum(1, keepdim=True).clamp(min=1e-10)
            if (p.sum(0) - 1).abs().max() < 1e-6:
                break
        return ((p @ gain) / torch.log2(2 + torch.arange(size, dtype=s.dtype))).sum() / best

    out = []
    for size in (200, 1000):
        scores, candidates = problem(size, 1)
        soft = SoftNDCG(sigma=SIGMA)
        soft.value_and_grad(scores, candidates)
        ours, _ = seconds(lambda: soft.value_and_grad(scores, candidates)[0], 30)  # noqa: B023
        gain = torch.tensor(2.0**candidates.labels - 1, dtype=torch.float32)
        best = float(np.sort(gain.numpy())[::-1] @ (1 / np.log2(2.0 + np.arange(size))))
        for rival in (approx_ndcg, neural_ndcg):

            def step(rival=rival, gain=gain, best=best, scores=scores) -> float:
                s = torch.tensor(scores, dtype=torch.float32, requires_grad=True)
                value = rival(s, gain, best)
                value.backward()
                return value.item()

            step()
            theirs, _ = seconds(step, 10)
            what = f"SoftNDCG, value and gradient, 1 x {size} ({ours * 1000:.2f} ms)"
            name = f"{'ApproxNDCG' if rival is approx_ndcg else 'NeuralNDCG'}, torch {torch.__version__}"
            out.append((what, f"{name} ({theirs * 1000:.2f} ms)", theirs / ours, 5.0))
    return out


def rows() -> list[tuple[str, str, float, float]]:
    """(what, peer, ratio, target) for each peer."""
    return [*against_recursion(), *against_torch()]


def passes() -> list[str]:
    """Time a row of one pass over a training set, and over lists of growing length."""
    objectives: list[Objective] = [RankNet(), LambdaRank(), LambdaRank(cutoff=10), SoftNDCG(sigma=SIGMA)]
    sets = [(f"{size} documents a query", *problem(size, max(16_000 // size, 1))) for size in (25, 100, 400, 1600)]
    if LETOR.exists():
        from fliprank.data.letor import read_letor

        train = read_letor(LETOR)
        scores = np.random.default_rng(0).normal(size=len(train))
        sets.insert(0, (f"MQ2008 train, {train.queries} queries, {len(train)} rows", scores, train))
    else:
        print(f"{LETOR} is absent: MQ2008 is left out")
    out = []
    for name, scores, candidates in sets:
        times = []
        for objective in objectives:
            objective.value_and_grad(scores, candidates)
            taken, _ = seconds(lambda o=objective, s=scores, c=candidates: o.value_and_grad(s, c)[0], 10)
            times.append(f"{objective} {taken / len(candidates) * 1e9:.0f} ns")
        out.append(f"{name}: a row, {', '.join(times)}")
    return out


def main() -> None:
    for what, peer, ratio, target in rows():
        print(f"{what} against {peer}: {ratio:.1f} times faster (target {target:.0f})")
    for line in passes():
        print(line)


if __name__ == "__main__":
    main()
