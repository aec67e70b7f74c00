"""The normalised scores of a document combined to one, and the gradient of that.

    sum         sum w n                     arithmetic  sum w n / sum w     over lists that count
    geometric   exp(sum w ln n / sum w)     harmonic    sum w / sum (w / n)     over lists with n > 0; 0 without any
    max         max n                       dismax      max w n + tie x (the rest of sum w n)
    rrf         n is 1 / (k + rank)         qdrant      sum 1 / (k - 1 + rank / w)

A list that is left out has NaN. Lists that are `ranked` hold ranks, infinite where a document is missing.

>>> settings = Settings(np.array([1.0, 3.0]), np.array([False, False]), MEANS["geometric"], 60.0, 0.0)
>>> fuse(np.array([[0.5, 0.25], [0.5, 0.0]]), settings).round(6).tolist()
[0.297302, 0.5]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Ints, frozen
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.models.standardised import chunks_of

__all__ = ["COMBINATIONS", "LINEAR", "MEANS", "Settings", "fuse", "fuse_queries", "pull", "pull_queries"]

COMBINATIONS = {
    "sum": "weighted sum",
    "arithmetic": "weighted mean",
    "geometric": "weighted geometric mean",
    "harmonic": "weighted harmonic mean",
    "max": "the best",
    "dismax": "the best, and tie times the rest",
    "qdrant": "Qdrant's reciprocal ranks, weights inside",
}
MEANS = {name: number for number, name in enumerate(COMBINATIONS)}
SUM, ARITHMETIC, GEOMETRIC, HARMONIC, MAX, DISMAX, QDRANT = range(len(COMBINATIONS))
LINEAR = ("sum",)
"""Combinations that are linear in the weights. An arithmetic mean in which all lists count is a sum."""


class Settings(NamedTuple):
    """How to combine: weights and kind of each list, the combination, k of ranks and tie of dismax."""

    weights: Floats
    ranked: NDArray[np.bool_]
    combine: int
    k: float
    tie: float


def fuse(cells: Floats, settings: Settings) -> Floats:
    """The fused score of each row."""
    out = np.empty(len(cells))
    if _is_plain_sum(settings):
        _sum(cells, settings.weights, chunks_of(len(cells)), out)
    else:
        _fuse(cells, settings, chunks_of(len(cells)), out)
    return out


def _is_plain_sum(settings: Settings) -> bool:
    """Whether it is a weighted sum of normalised scores: what most fusions are, and what fits spend their time on."""
    return settings.combine == SUM and not settings.ranked.any()


def pull(cells: Floats, settings: Settings, dscores: Floats, by_cell: Floats | None = None) -> Floats:
    """The gradient by each weight, by k and by tie; that by the cells goes to `by_cell` (0 for ranks)."""
    lists = cells.shape[1]
    parts = np.zeros((chunks_of(len(cells)), lists + 2))
    if by_cell is None and _is_plain_sum(settings):
        _pull_sum(cells, dscores, parts)
        return np.asarray(parts.sum(axis=0))
    wanted = by_cell is not None
    target = by_cell if by_cell is not None else np.empty((0, lists))
    _pull(cells, settings, dscores, wanted, target, parts)
    total: Floats = parts.sum(axis=0)
    return total


def fuse_queries(cells: Floats, settings: Settings, weights: Floats, offsets: Ints) -> Floats:
    """The fused score of each row, with the weights of its query (queries x lists)."""
    out = np.empty(len(cells))
    _fuse_queries(cells, settings, frozen(weights, np.float64), offsets, out)
    return out


def pull_queries(cells: Floats, settings: Settings, weights: Floats, offsets: Ints, dscores: Floats) -> Floats:
    """The gradient by each query's weights, by k and by tie (queries x (lists + 2))."""
    out = np.zeros((len(weights), cells.shape[1] + 2))
    _pull_queries(cells, settings, frozen(weights, np.float64), offsets, dscores, out)
    return out


@kernel
def _value(cell: float, ranked: bool, k: float) -> float:
    return 1.0 / (k + cell) if ranked else cell


@kernel
def _best(cells: Floats, settings: Settings) -> int:
    """The list with the largest w n, or -1."""
    best, top = -1, -np.inf
    for j in range(len(cells)):
        n = _value(cells[j], settings.ranked[j], settings.k) * settings.weights[j]
        if n > top:
            best, top = j, n
    return best


@kernel
def _fuse_row(cells: Floats, settings: Settings) -> float:
    combine, total, weight = settings.combine, 0.0, 0.0
    for j in range(len(cells)):
        w, n = settings.weights[j], _value(cells[j], settings.ranked[j], settings.k)
        if combine == QDRANT:
            total += 1.0 / (settings.k - 1.0 + cells[j] / w) if w > 0.0 else 0.0
        elif np.isnan(n):
            continue
        elif combine in (GEOMETRIC, HARMONIC):
            if n > 0.0:
                total += w * (np.log(n) if combine == GEOMETRIC else 1.0 / n)
                weight += w
        else:
            total += w * n
            weight += w
    if combine in (SUM, QDRANT):
        return total
    if combine in (MAX, DISMAX):
        best = _best(cells, settings)
        top = _value(cells[best], settings.ranked[best], settings.k) * settings.weights[best] if best >= 0 else 0.0
        return top + settings.tie * (total - top)
    if weight <= 0.0:
        return 0.0
    if combine == GEOMETRIC:
        return float(np.exp(total / weight))
    return weight / total if combine == HARMONIC else total / weight


@parallel_kernel
def _fuse(cells: Floats, settings: Settings, chunks: int, out: Floats) -> None:
    rows = len(out)
    for c in prange(chunks):
        for row in range(rows * c // chunks, rows * (c + 1) // chunks):
            out[row] = _fuse_row(cells[row], settings)


@parallel_kernel
def _sum(cells: Floats, weights: Floats, chunks: int, out: Floats) -> None:
    rows, lists = cells.shape
    for c in prange(chunks):
        for row in range(rows * c // chunks, rows * (c + 1) // chunks):
            total = 0.0
            for j in range(lists):
                n = cells[row, j]
                total += weights[j] * (n if n == n else 0.0)  # NaN: the list is left out
            out[row] = total


@parallel_kernel
def _pull_sum(cells: Floats, dscores: Floats, parts: Floats) -> None:
    rows, lists, chunks = cells.shape[0], cells.shape[1], len(parts)
    for c in prange(chunks):
        total = np.zeros(lists)
        for row in range(rows * c // chunks, rows * (c + 1) // chunks):
            given = dscores[row]
            for j in range(lists):
                n = cells[row, j]
                total[j] += given * (n if n == n else 0.0)
        parts[c, :lists] = total


@kernel
def _pull_row(cells: Floats, settings: Settings, given: float, by_cell: Floats, total: Floats) -> None:
    """Set `by_cell` to the gradient by the cells of a row, and add to `total` that by weights, k and tie."""
    combine, lists = settings.combine, len(cells)
    fused, best, weight, inverse = 0.0, -1, 0.0, 0.0
    if combine in (MAX, DISMAX):
        best = _best(cells, settings)
    elif combine not in (SUM, QDRANT):
        fused = _fuse_row(cells, settings)
        for j in range(lists):
            n = _value(cells[j], settings.ranked[j], settings.k)
            if not np.isnan(n) and (n > 0.0 or combine == ARITHMETIC):
                weight += settings.weights[j]
                inverse += settings.weights[j] / n if combine == HARMONIC else 0.0
    for j in range(lists):
        w, cell, ranked = settings.weights[j], cells[j], settings.ranked[j]
        n, by_w, by_n = _value(cell, ranked, settings.k), 0.0, 0.0
        by_cell[j] = 0.0
        if combine == QDRANT:
            if w > 0.0 and cell < np.inf:
                # 1 / (k - 1 + cell / w) = w / (w (k - 1) + cell)
                bottom = w * (settings.k - 1.0) + cell
                total[j] += given * cell / (bottom * bottom)
                total[lists] -= given * (w / bottom) * (w / bottom)
            elif cell < np.inf:
                total[j] += given / cell
            continue
        if np.isnan(n):
            continue
        if combine == SUM:
            by_w, by_n = n, w
        elif combine in (MAX, DISMAX):
            share = 1.0 if j == best else settings.tie
            by_w, by_n = share * n, share * w
            total[lists + 1] += 0.0 if j == best else given * w * n
        elif weight > 0.0 and combine == ARITHMETIC:
            by_w, by_n = (n - fused) / weight, w / weight
        elif weight > 0.0 and n > 0.0 and combine == GEOMETRIC:
            by_w, by_n = fused * (np.log(n) - np.log(fused)) / weight, fused * w / (weight * n)
        elif weight > 0.0 and n > 0.0:
            by_w, by_n = (1.0 - fused / n) / inverse, weight / (inverse * inverse) * w / (n * n)
        total[j] += given * by_w
        if ranked:
            total[lists] -= given * by_n * n * n
        else:
            by_cell[j] = given * by_n


@parallel_kernel
def _pull(cells: Floats, settings: Settings, dscores: Floats, wanted: bool, by_cell: Floats, parts: Floats) -> None:
    rows, chunks = len(dscores), len(parts)
    for c in prange(chunks):
        scratch = np.empty(cells.shape[1])
        for row in range(rows * c // chunks, rows * (c + 1) // chunks):
            if wanted:
                _pull_row(cells[row], settings, dscores[row], by_cell[row], parts[c])
            elif dscores[row] != 0.0:
                _pull_row(cells[row], settings, dscores[row], scratch, parts[c])


@kernel
def _with(settings: Settings, weights: Floats) -> Settings:
    return Settings(weights, settings.ranked, settings.combine, settings.k, settings.tie)


@parallel_kernel
def _fuse_queries(cells: Floats, settings: Settings, weights: Floats, offsets: Ints, out: Floats) -> None:
    for q in prange(len(weights)):
        own = _with(settings, weights[q])
        for row in range(offsets[q], offsets[q + 1]):
            out[row] = _fuse_row(cells[row], own)


@parallel_kernel
def _pull_queries(
    cells: Floats, settings: Settings, weights: Floats, offsets: Ints, dscores: Floats, out: Floats
) -> None:
    for q in prange(len(weights)):
        own, scratch = _with(settings, weights[q]), np.empty(cells.shape[1])
        for row in range(offsets[q], offsets[q + 1]):
            if dscores[row] != 0.0:
                _pull_row(cells[row], own, dscores[row], scratch, out[q])
