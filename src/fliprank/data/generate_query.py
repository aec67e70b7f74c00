"""How one query of a generated collection is drawn: kernels; what they draw is said in `generate.py`.

All that is random in a query comes from seeds of its own, so that it depends on no other query, block or thread.
"""
# ruff: noqa: NPY002  (in a kernel, `np.random` is Numba's own, per thread, and seeded anew for each query)

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Ints, Matrix
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.random_words import random_word

__all__ = ["ASPECTS", "MATCH", "Drawn", "Plan", "Weak", "World", "draw", "query_terms"]

MATCH, QUALITY = 4, 4
ASPECTS = MATCH + QUALITY
NOISE_UNIT = float(np.sqrt(3.0) / 65536)
"""One over the standard deviation of a sum of four numbers from 0 to 65,535."""


class Weak(NamedTuple):
    """How weak features mix aspects (aspects x features), where they are cut, and how noisy they are."""

    mix: Matrix
    threshold: NDArray[np.float32]
    noise: NDArray[np.float32]


class Drawn(NamedTuple):
    """What is drawn of a block: one row each, but `tf` has one line per row and term."""

    tf: Matrix
    length: Matrix
    features: Matrix
    labels: Floats
    utility: Floats


class World(NamedTuple):
    """Numbers of a `WebModel`, and the terms of a block's queries with their shares of the collection."""

    topical: Floats
    rated: Floats
    grades: Floats
    fields: Floats
    terms: Ints
    shares: Floats


class Plan(NamedTuple):
    """Single numbers of a `WebModel`."""

    documents: int
    text: bool
    two: bool
    shift: float
    match: float
    quality: float
    static: float
    basic: float
    error: float
    strictness: float


@kernel
def _seed_of(key: np.uint64, counter: int) -> int:
    """32 bits for the random numbers of one query."""
    word: int = np.int64(random_word(key ^ np.uint64(0x9E3779B97F4A7C15), counter) >> np.uint64(32))  # type: ignore[assignment]
    return word


@kernel
def query_terms(key: np.uint64, first: int, queries: int, rarest: float, commonest: float) -> tuple[Ints, Floats]:
    """How many terms each query has (1 to 5), and each term's share of the tokens of the collection."""
    counts, shares, used = np.empty(queries, np.int64), np.empty(5 * queries), 0
    for q in range(queries):
        np.random.seed(_seed_of(key, 2 * (first + q)))
        counts[q] = 1 + min(np.random.poisson(1.4), 4)
        for _ in range(counts[q]):
            shares[used] = rarest * (commonest / rarest) ** np.random.random()
            used += 1
    return counts, shares[:used].copy()


@parallel_kernel
def draw(
    key: np.uint64,
    first: int,
    plan: Plan,
    world: World,
    weak: Weak,
    out: Drawn,
) -> None:
    """Fill the arrays, query by query; all that is random in a query comes from its own seed."""
    n, fields, terms = plan.documents, world.fields, world.terms
    tf, length, features, labels, utility = out  # Numba drops what a parallel loop writes to a field of a tuple
    for q in prange(len(terms) - 1):
        np.random.seed(_seed_of(key, 2 * (first + q) + 1))
        topical = np.random.beta(world.topical[0], world.topical[1]) if plan.two else 0.0
        scale, level = _query_scales(len(weak.noise))
        stream = random_word(key ^ np.uint64(0xD1B54A32D192ED03), first + q)
        own = world.shares[terms[q] : terms[q + 1]]
        begin = n * terms[q]
        aspects = np.empty(ASPECTS)
        for row in range(q * n, (q + 1) * n):
            utility[row] = _draw_utility(plan, topical, aspects)
            features[row, 0] = np.exp(plan.static * aspects[MATCH] + np.random.standard_normal())
            if plan.text:
                for f in range(MATCH):
                    length[row, f] = _draw_length(fields[f])
                place = begin + (row - q * n) * len(own)
                for t in range(len(own)):
                    _draw_term(own[t], fields, aspects, length[row], tf[place + t])
            _draw_weak(weak, aspects, scale, level, stream, (row - q * n) * len(weak.noise), features[row, 1:])
        _rate(plan, world.rated, world.grades, utility[q * n : (q + 1) * n], labels[q * n : (q + 1) * n])


@kernel
def _draw_utility(plan: Plan, topical: float, aspects: Floats) -> float:
    """Draw the aspects of a document, and return what it is worth."""
    match, quality = 0.0, 0.0
    for a in range(ASPECTS):
        aspects[a] = np.random.standard_normal()
        if a < MATCH:
            match += aspects[a] / 2
        else:
            quality += aspects[a] / 2
    if not plan.two:
        return plan.match * match + plan.quality * quality
    if np.random.random() >= topical:
        return plan.match * match - 1.0
    aspects[:MATCH] += plan.shift
    return plan.shift + plan.match * match + plan.quality * quality


@kernel
def _draw_length(field: Floats) -> float:
    if np.random.random() < field[2]:
        return 0.0
    tokens: float = np.floor(field[0] * np.exp(field[1] * np.random.standard_normal()) + 0.5)
    return max(1.0, tokens)


@kernel
def _draw_term(share: float, fields: Floats, aspects: Floats, length: Matrix, out: Matrix) -> None:
    """How often one term occurs in each field; somewhere it does."""
    total = 0.0
    for f in range(MATCH):
        out[f] = 0.0
        if length[f] > 0:
            median, _, _, base, slope, power, shape = fields[f]
            mean = base * np.exp(slope * aspects[f]) * (length[f] / median) ** power + share * length[f]
            out[f] = min(np.float64(np.random.poisson(mean * np.random.gamma(shape, 1 / shape))), length[f])
        total += out[f]
    if total == 0:
        out[2] = 1.0


@kernel
def _query_scales(count: int) -> tuple[Floats, Floats]:
    """The scale and the level of each weak feature in one query."""
    scale, level = np.empty(count), np.empty(count)
    for k in range(count):
        scale[k] = np.exp(0.3 * np.random.standard_normal())
        level[k] = 0.5 * np.random.standard_normal()
    return scale, level


@kernel
def _draw_weak(
    weak: Weak, aspects: Floats, scale: Floats, level: Floats, stream: np.uint64, begin: int, out: Matrix
) -> None:
    """One quarter each: plain, cut off at 0, heavy-tailed counts, logarithms of counts.

    Noise is the sum of four uniform numbers, cut from one random word: nearly normal, and ten times as fast.
    """
    count, low, quarters = len(out), np.uint64(0xFFFF), 4
    for k in range(count):
        word, total = random_word(stream, begin + k), 0.0
        for _ in range(quarters):
            total += np.float64(word & low)
            word >>= np.uint64(16)
        out[k] = weak.noise[k] * (total - 131070.0) * NOISE_UNIT
    for a in range(ASPECTS):
        for k in range(count):
            out[k] += aspects[a] * weak.mix[a, k]
    for k in range(count):
        value = out[k] * scale[k] + level[k] - weak.threshold[k]
        kind = 4 * k // count
        if kind == 3:
            value = np.log1p(max(np.floor(3 * value), 0.0))
        elif kind == 2:
            value = np.floor(np.exp(min(0.5 * value, 6.0)))
        elif kind == 1:
            value = max(value, 0.0)
        out[k] = value


@kernel
def _rate(plan: Plan, rated: Floats, grades: Floats, utility: Floats, labels: Floats) -> None:
    """Grade those that a basic ranker puts on top, and some others."""
    count = len(utility)
    basic = np.empty(count)
    for i in range(count):
        basic[i] = -(utility[i] + plan.basic * np.random.standard_normal())
    order = np.argsort(basic)
    top = min(count, max(5, np.random.poisson(rated[0])))
    more = min(count - top, np.random.poisson(rated[1]))
    for i in range(top, top + more):  # the next of a shuffled rest
        other = i + int(np.random.random() * (count - i))
        order[i], order[other] = order[other], order[i]
    strictness = plan.strictness * np.random.standard_normal()
    for i in range(top + more):
        seen = utility[order[i]] + plan.error * np.random.standard_normal() + strictness
        labels[order[i]] = np.searchsorted(grades, seen)
