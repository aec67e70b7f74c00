"""Objectives: SoftNDCG, value and gradient, against SoftRank's own way, the paper's recursion and torch's rivals.

    python bench/objectives.py

A ratio is the peer's time over fliprank's, both warm, on the same numbers in the same run, each the best of several.
`softndcg` is the true expectation, `softrank` the paper's approximation by generating functions. The recursion is
plain, in Numba, over all cores, and skips irrelevant documents as we do; its value must agree with softrank's. The
rivals are ApproxNDCG (Qin et al. 2010) and NeuralNDCG (Pobrotyn & Bialobrzeski 2021), from their formulas, in float32.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numba import njit, prange
from timing import Row, best, show, timed

from fliprank.data.candidates import Candidates
from fliprank.objectives import LambdaRank, Objective, RankNet, SoftAP, SoftNDCG, SoftRank, SoftRR

SIGMA = 0.1
TARGETS = {40: 2, 200: 6, 1000: 20, 2500: 35}
LETOR = Path(__file__).parents[2] / "shared/data/letor/MQ2008/Fold1/train.txt.gz"


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


def against_recursion() -> list[Row]:
    out = []
    for size, target in TARGETS.items():
        queries = max(8000 // size, 1)
        scores, candidates = problem(size, queries)
        soft = SoftRank(sigma=SIGMA)
        worth, discount = soft.plan(candidates).worth, 1 / np.log2(2.0 + np.arange(size))
        peer = (scores, worth, candidates.offsets, candidates.query_of_rows(), discount, SIGMA)
        plain_recursion(scores[:9], worth[:9], np.array([0, 9]), np.zeros(9, np.int64), discount, SIGMA)
        soft.value_and_grad(scores, candidates)
        ours, value = timed(lambda: soft.value_and_grad(scores, candidates)[0], 15)  # noqa: B023
        theirs, total = timed(lambda: plain_recursion(*peer), 1 if size > 1000 else 3)  # noqa: B023
        if abs(total / queries / value - 1) > 1e-6:
            raise AssertionError(f"the recursion found {total / queries}, fliprank {value}")
        what = f"softrank, value and gradient, {queries} x {size}"
        out.append(Row(what, "plain recursion, value only", theirs / ours, f">= {target}"))
    return out


def expectation_against_softrank() -> list[Row]:
    """The true expectation against independent contests, which take time quadratic in the documents."""
    out = []
    for size in (40, 200, 1000, 2500, 10_000, 100_000):
        queries = max(8000 // size, 1)
        scores, candidates = problem(size, queries)
        pairs = [(SoftNDCG(sigma=SIGMA), SoftRank(sigma=SIGMA))]
        if size <= 10_000:
            pairs.append((SoftNDCG(10, sigma=SIGMA), SoftRank(10, sigma=SIGMA)))
        for soft, peer in pairs:
            ours = best(lambda o=soft: o.value_and_grad(scores, candidates), 9)  # noqa: B023
            if size <= 10_000:
                theirs, said = best(lambda o=peer: o.value_and_grad(scores, candidates), 9 if size < 10_000 else 2), ""  # noqa: B023
            else:  # on a tenth of the rows, times 100
                few, part = problem(size // 10, 1)
                theirs, said = 100 * best(lambda o=peer: o.value_and_grad(few, part), 1), ", from 10,000 rows"  # noqa: B023
            target = ">= 1" if size < 10_000 else "far above 1"
            what = f"{soft}, value and gradient, {queries} x {size}"
            out.append(Row(what, f"{peer}{said}", theirs / ours, target))
    return out


def against_torch() -> list[Row]:
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
        ours, _ = timed(lambda: soft.value_and_grad(scores, candidates)[0], 30)  # noqa: B023
        gain = torch.tensor(2.0**candidates.labels - 1, dtype=torch.float32)
        ideal = float(np.sort(gain.numpy())[::-1] @ (1 / np.log2(2.0 + np.arange(size))))
        for rival in (approx_ndcg, neural_ndcg):

            def step(rival=rival, gain=gain, ideal=ideal, scores=scores) -> float:
                s = torch.tensor(scores, dtype=torch.float32, requires_grad=True)
                value = rival(s, gain, ideal)
                value.backward()
                return value.item()

            step()
            theirs, _ = timed(step, 10)
            name = "ApproxNDCG" if rival is approx_ndcg else "NeuralNDCG"
            out.append(Row(f"softndcg, value and gradient, 1 x {size}", f"{name}, torch", theirs / ours, ">= 5"))
    return out


def growth() -> list[Row]:
    """Time per row of one pass: on MQ2008 against RankNet's, and on longer lists against that at 25 per query."""
    soft: list[Objective] = [SoftRank(sigma=SIGMA), SoftNDCG(sigma=SIGMA), SoftAP(sigma=SIGMA), SoftRR(sigma=SIGMA)]
    objectives: list[Objective] = [RankNet(), LambdaRank(), LambdaRank(cutoff=10), *soft]
    out = []
    if LETOR.exists():
        from fliprank.data.letor import read_letor

        train = read_letor(LETOR, cache=False)
        scores = np.random.default_rng(0).normal(size=len(train))
        times = [best(lambda o=o: o.value_and_grad(scores, train), 10) for o in objectives]
        for objective, taken in zip(objectives, times, strict=True):
            what = f"{objective}: a pass over MQ2008 train, {taken / len(train) * 1e9:.0f} ns per row"
            out.append(Row(what, "ranknet's time over its own", times[0] / taken, ""))
    sets = [problem(size, max(16_000 // size, 1)) for size in (25, 100, 400, 1600)]
    for objective in objectives:
        a_row = [best(lambda s=s, c=c, o=objective: o.value_and_grad(s, c), 5) / len(c) for s, c in sets]
        told = ", ".join(f"{time / a_row[0]:.1f}" for time in a_row[1:-1])
        what = f"{objective}: time per row at 1600 documents per query (at 100 and 400: {told})"
        out.append(Row(what, "at 25 documents", a_row[-1] / a_row[0], "at most 64: linear in documents"))
    return out


def rows() -> list[Row]:
    return [*expectation_against_softrank(), *against_recursion(), *against_torch(), *growth()]


if __name__ == "__main__":
    show(rows())
