"""Expected measures of a noisy ranking, exactly, in time linear in the number of documents.

The contests of a document are not independent of each other: they share its score. Given its noisy score x they are,
and x can run over the same points for all documents of a query, so that each point serves all of them:

    E[measure] = integral over x of T(x) dx,     T(x) = sum over j of f_j(x) g_j E[what j is paid | score x]

T and its derivatives are in `given_score.py`. It is smooth and dies off like a Gaussian, so that the trapezoid rule
with steps of about sigma / 2 converges exponentially; with a sigma per document, Gauss-Legendre panels follow the
smallest sigma nearby. A document is open (neither surely above nor surely below x) for about 25 points; the others are
only counted. The cost is O(N x points x terms), with 9 to 20 terms, or k of them with a cut-off k.

A cut-off makes T steep where the k-th score is likely to be: many documents that tie there need smaller steps, in
proportion to the standard deviation of the number of documents above x.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.objectives.exponential_sum import Nodes, sum_of
from fliprank.objectives.given_score import (
    Points,
    Query,
    pay_by_curve,
    pay_by_rank,
    pay_first_relevant,
    pay_precision,
)
from fliprank.objectives.noisy_ranking import Noisy, Tasks, gather, tasks_of
from fliprank.objectives.smooth import normal

__all__ = ["Paid", "Payment", "expectations", "reach_of"]

PANEL, DENSER = 8, 0.55
"""Points of a Gauss-Legendre panel, and how much closer they lie than the trapezoid rule's."""

COARSEST = 0.6
"""The largest step of the trapezoid rule, in sigmas, that keeps six digits."""


class Rule(NamedTuple):
    """Points and weights of a panel, in units of its length, and the length between the first and the last point."""

    at: Floats
    weight: Floats
    span: float


def _gauss_legendre(count: int) -> Rule:
    x, weight = np.polynomial.legendre.leggauss(count)
    return Rule(frozen((x + 1) / 2, np.float64), frozen(weight / 2, np.float64), 1.0)


TRAPEZOID = Rule(frozen([0.0], np.float64), frozen([1.0], np.float64), 0.0)
GAUSS = _gauss_legendre(PANEL)


class Paid(IntEnum):
    """What a document is paid for: its rank, on a smooth curve or by a table that ends; precision at its rank; being
    the first relevant one, and its reciprocal rank."""

    CURVE = 0
    RANK = 1
    PRECISION = 2
    FIRST = 3


class Payment(NamedTuple):
    """How documents are paid: what for, by query.

    `alpha` bends the curve, `discount[offsets[q] + r]` is the table's entry for rank r, 0 from rank `depth[q]`. `reach`
    is how far from x, in sigmas, a document is open; `digits` is the number of digits that are wanted.
    """

    kind: Ints
    alpha: float
    discount: Floats
    depth: Ints
    reach: Floats
    digits: float


def reach_of(sizes: Ints, tol: float) -> Floats:
    """So far away, in sigmas, that the documents of a query are taken for surely above or below x at an error below
    `tol`."""
    return frozen(np.clip(-ndtri(0.1 * tol / np.maximum(sizes, 1)), 5.5, 7.0), np.float64)


def expectations(noisy: Noisy, payment: Payment, nodes: Nodes, candidates: Candidates) -> tuple[Floats, Floats]:
    """Each query's integral of T, and share x its derivative by the score at each place."""
    tasks = tasks_of(candidates, "points", lambda sizes: np.minimum(sizes // 1024, 8))
    found, pulls = _expectations(noisy, tasks, payment, nodes, TRAPEZOID if len(noisy.sigma) == 1 else GAUSS)
    return gather(found, pulls, tasks, candidates)


@parallel_kernel
def _expectations(noisy: Noisy, tasks: Tasks, payment: Payment, nodes: Nodes, rule: Rule) -> tuple[Floats, Floats]:
    """A task takes every so many-th panel of its query."""
    found, pulls = np.zeros(len(tasks.query)), np.zeros(tasks.room[-1])
    for task in prange(len(tasks.query)):
        q = tasks.query[task]
        low, high = noisy.offsets[q], noisy.offsets[q + 1]
        gain, known = noisy.worth[low:high], np.zeros(high - low + 1, np.int64)
        for i in range(high - low):
            known[i + 1] = known[i] + (gain[i] != 0.0)
        if known[-1] == 0:
            continue
        sigma = noisy.sigma[low:high] if len(noisy.sigma) > 1 else noisy.sigma
        score, kind, reach = noisy.score[low:high], payment.kind[q], payment.reach[q] * sigma.max()
        top, fall = _islands(score, reach)
        discount, depth = payment.discount[low:high], payment.depth[q]
        query = Query(top, fall, sigma, gain, known, payment.alpha, discount, depth)
        grid = _grid(score, query, kind, reach, payment.digits)
        points = _points(query, _limit(query, kind), grid, rule, tasks.part[task], tasks.parts[task])
        curve, share, pull = sum_of(nodes, q), noisy.share[q], pulls[tasks.room[task] : tasks.room[task + 1]]
        if kind == Paid.CURVE:
            found[task] = pay_by_curve(query, points, curve, share, pull)
        elif kind == Paid.RANK:
            found[task] = pay_by_rank(query, points, share, pull)
        elif kind == Paid.PRECISION:
            found[task] = pay_precision(query, points, curve, share, pull)
        else:
            found[task] = pay_first_relevant(query, points, curve, share, pull)
    return found, pulls


@kernel
def _islands(score: Floats, reach: float) -> tuple[Ints, Floats]:
    """The first place of each document's island, which ends where the next score is more than two `reach` away, and how
    far its score is below the score there: all that is needed of scores, and large scores lose no digits by it."""
    top, fall = np.zeros(len(score), np.int64), np.zeros(len(score))
    for i in range(1, len(score)):
        top[i] = i if score[i - 1] - score[i] > 2.0 * reach else top[i - 1]
        fall[i] = score[top[i]] - score[i]
    return top, fall


@kernel
def _points(query: Query, limit: int, grid: Grid, rule: Rule, part: int, parts: int) -> Points:
    """The points of every so many-th panel, island by island.

    Points where no document near has a gain, or with `limit` documents surely above, are left out.
    """
    none = Points(np.empty(0), np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
    count = _walk(query, limit, grid, rule, (part, parts), none)
    points = Points(np.empty(count), np.empty(count), np.empty(count, np.int64), np.empty(count, np.int64))
    _walk(query, limit, grid, rule, (part, parts), points)
    return points


@kernel
def _walk(query: Query, limit: int, grid: Grid, rule: Rule, turn: tuple[int, int], points: Points) -> int:
    """Count the points, and write them down if there is room."""
    top, fall, known, size, start, used, wait = query.top, query.fall, query.known, len(query.fall), 0, 0, turn[0]
    below, weight, firsts, lasts = points
    reach, several, fill = grid.reach, len(query.sigma) > 1, len(below) > 0
    length = min(grid.fine * query.sigma[0], grid.steep)
    while start < min(size, limit):
        end = start + 1
        while end < size and top[end] == start:
            end += 1
        first, last, at = start, start, -reach
        while at <= fall[end - 1] + reach:
            if several:
                length = _panel(query, grid, at, first, end)
            while fall[first] < at - reach:
                first += 1
            while last < end and fall[last] <= at + rule.span * length + reach:
                last += 1
            if first >= limit:
                break
            if wait == 0 and known[last] > known[first]:
                for k in range(len(rule.at) if fill else 0):
                    firsts[used + k], lasts[used + k] = first, last
                    below[used + k], weight[used + k] = at + rule.at[k] * length, rule.weight[k] * length
                used += len(rule.at)
            wait = wait - 1 if wait > 0 else turn[1] - 1
            at += length
        start = end
    return used


@kernel
def _limit(query: Query, kind: int) -> int:
    """With so many documents surely above it, no document is paid anything."""
    if kind == Paid.RANK:
        return query.depth
    limit = len(query.fall)
    if kind == Paid.FIRST:
        limit = 1
        while query.known[limit] == 0:
            limit += 1
    return limit


class Grid(NamedTuple):
    """How far from x a document is open; the step in sigmas; and the largest step that a cut-off allows."""

    reach: float
    fine: float
    steep: float


@kernel
def _grid(score: Floats, query: Query, kind: int, reach: float, digits: float) -> Grid:
    """Steps that keep so many digits: the more documents lie within two sigmas, the smaller.

    If n documents tie, T is as steep as the highest of n normal variables is narrow, about sigma / sqrt(2 log n). The
    constants keep six digits of E[RR] and E[nDCG] for 2 to 5000 documents that tie; `finer` scales them to others.
    """
    sigma, most, low = query.sigma.max(), 2, 0
    for i in range(len(score)):
        while score[low] - score[i] > 2.0 * sigma:
            low += 1
        most = max(most, i - low + 1)
    finer = math.sqrt(6.0 / digits)
    fine = finer * min(COARSEST, 0.98 / math.sqrt(math.log(most)) - 0.08)
    steep = np.inf
    if kind == Paid.RANK and query.depth < len(score):
        steep = finer * _width_at(score, query.sigma, query.depth, reach)
    return Grid(reach, fine, steep)


@kernel
def _width_at(score: Floats, sigma: Floats, depth: int, reach: float) -> float:
    """Over how many units of score x the chance to be among the first `depth` falls: the standard deviation of the
    number of documents above x, over their density there, where half a document less than `depth` is expected above."""
    middle, low, high = score[depth - 1], -reach, reach
    first, last = depth - 1, depth
    while first > 0 and score[first - 1] - middle <= 2.0 * reach:
        first -= 1
    while last < len(score) and middle - score[last] <= 2.0 * reach:
        last += 1
    mean, variance, density = 0.0, 0.0, 0.0
    for _ in range(10):
        x = 0.5 * (low + high)
        mean, variance, density = float(first), 0.0, 0.0
        for i in range(first, last):
            own = sigma[i] if len(sigma) > 1 else sigma[0]
            p, f = normal((score[i] - middle - x) / own)
            mean += p
            variance += p * (1.0 - p)
            density += f / own
        if mean > depth - 0.5:
            low = x
        else:
            high = x
    return 0.8 * math.sqrt(variance) / density if density > 0.0 else np.inf


@kernel
def _panel(query: Query, grid: Grid, at: float, first: int, end: int) -> float:
    """The length of the panel that begins `at` below the top of an island: PANEL points, as close as the smallest sigma
    of the documents that are open in it asks for."""
    room, widest = PANEL * DENSER, query.sigma.max()
    length, reach = room * min(grid.fine * widest, grid.steep), grid.reach / widest
    for i in range(first, end):
        below, sigma = query.fall[i], query.sigma[i]
        if below > at + length + grid.reach:
            break
        if below + reach * sigma > at:
            length = min(length, max(room * grid.fine * sigma, below - reach * sigma - at))
    return max(float(length), 1e-12 * grid.reach)
