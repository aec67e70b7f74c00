"""The measures' formulas in plain Python, as oracles: `labels` in ranked order (None: unjudged), `missed` unranked."""

from __future__ import annotations

import math
from collections.abc import Sequence

Labels = Sequence[float | None]


def relevant(labels: Labels, rel: float = 1) -> list[bool]:
    return [label is not None and label >= rel for label in labels]


def total(labels: Labels, missed: Sequence[float], rel: float = 1) -> int:
    return sum(relevant(labels, rel)) + sum(label >= rel for label in missed)


def precision(labels: Labels, missed: Sequence[float], n: int, rel: float = 1) -> float:
    return sum(relevant(labels, rel)[:n]) / n


def recall(labels: Labels, missed: Sequence[float], n: int, rel: float = 1) -> float:
    count = total(labels, missed, rel)
    return sum(relevant(labels, rel)[:n]) / count if count else 0.0


def average_precision(labels: Labels, missed: Sequence[float], n: int = 10**9, rel: float = 1) -> float:
    good, count = relevant(labels, rel), total(labels, missed, rel)
    found = sum(sum(good[: r + 1]) / (r + 1) for r in range(min(n, len(good))) if good[r])
    return found / count if count else 0.0


def r_precision(labels: Labels, missed: Sequence[float], rel: float = 1) -> float:
    count = total(labels, missed, rel)
    return sum(relevant(labels, rel)[:count]) / count if count else 0.0


def reciprocal_rank(labels: Labels, missed: Sequence[float], n: int = 10**9, rel: float = 1) -> float:
    return next((1 / (r + 1) for r, good in enumerate(relevant(labels, rel)[:n]) if good), 0.0)


def success(labels: Labels, missed: Sequence[float], n: int, rel: float = 1) -> float:
    return float(any(relevant(labels, rel)[:n]))


def dcg(gains: Sequence[float], n: int = 10**9) -> float:
    return sum(gain / math.log2(2 + r) for r, gain in enumerate(gains[:n]))


def ndcg(labels: Labels, missed: Sequence[float], n: int = 10**9, exponential: bool = False) -> float:
    gains = [0.0 if label is None else (2**label - 1 if exponential else label) for label in labels]
    others = [2**label - 1 if exponential else label for label in missed]
    best = dcg(sorted([*gains, *others], reverse=True), n)
    return dcg(gains, n) / best if best else 0.0


def bpref(labels: Labels, missed: Sequence[float], rel: float = 1) -> float:
    judged = [label for label in labels if label is not None]
    count = total(labels, missed, rel)
    others = sum(label < rel for label in [*judged, *missed])
    value, above = 0.0, 0
    for label in judged:
        if label < rel:
            above += 1
        elif above:
            value += 1 - min(above, count) / min(count, others)
        else:
            value += 1
    return value / count if count else 0.0


def err(labels: Labels, missed: Sequence[float], n: int = 10**9, highest: float = 4) -> float:
    value, survive = 0.0, 1.0
    for r, label in enumerate(labels[:n]):
        stop = 0.0 if label is None else (2**label - 1) / 2**highest
        value += survive * stop / (r + 1)
        survive *= 1 - stop
    return value


def rbp(labels: Labels, missed: Sequence[float], p: float, rel: float = 1) -> float:
    return (1 - p) * sum(p**r for r, good in enumerate(relevant(labels, rel)) if good)


def judged(labels: Labels, missed: Sequence[float], n: int) -> float:
    top = labels[:n]
    return sum(label is not None for label in top) / len(top) if top else 0.0


def search_length(labels: Labels, missed: Sequence[float], n: int = 1, rel: float = 1) -> float:
    seen = others = 0
    for good in relevant(labels, rel):
        seen += good
        others += not good
        if seen == n:
            break
    return float(others)


def correct_pairs(labels: Labels, missed: Sequence[float]) -> float:
    known = [label for label in labels if label is not None]
    right = sum(known[i] > known[j] for i in range(len(known)) for j in range(i + 1, len(known)))
    right += sum(a > b for a in known for b in missed)
    everything = [*known, *missed]
    pairs = sum(everything[i] != everything[j] for i in range(len(everything)) for j in range(i))
    return right / pairs if pairs else 0.0
