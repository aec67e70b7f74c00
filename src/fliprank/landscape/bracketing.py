"""Steps of each query where scores are not linear, so that flips can't be solved for: by bracketing.

All queries are evaluated on a grid. In a cell at whose ends a query's value differs it must have a step, and where its
ranking differs to the measure's eye, it may: the cell is halved, for those queries only, until it is as narrow as
wanted. What can be missed is a flip and its undoing within one cell of the grid; steps of one query that are nearer
than the resolution become one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.order import order_rows
from fliprank.landscape.steps import Steps

__all__ = ["Evaluate", "bracket_steps", "signatures"]

Evaluate = Callable[[list[tuple[float, Ints]]], list[Floats]]
"""At each x, of some queries: their values, and in a second row a number that tells their rankings apart."""

SAME = 1e-12
"""Values closer than this, relative to the largest, are equal."""


class _Cell(NamedTuple):
    """A stretch of the line, the queries that differ at its ends, and what was evaluated there."""

    low: float
    high: float
    queries: Ints
    before: Floats
    after: Floats


def bracket_steps(evaluate: Evaluate, queries: int, low: float, high: float, cells: int, halvings: int) -> Steps:
    """The steps between `low` and `high`, each in the middle of a cell that is (high - low) / cells / 2^halvings wide.

    >>> def evaluate(points):
    ...     return [np.array([[x > 0.3, x > 2]] * 2, float)[:, queries] for x, queries in points]
    >>> steps = bracket_steps(evaluate, 2, 0, 1, cells=4, halvings=8)
    >>> steps.x.tolist(), steps.value.tolist(), steps.first.tolist()
    ([0.30029296875], [1.0], [0.0, 0.0])
    """
    grid, every = (low + (high - low) * np.arange(cells + 1) / cells).tolist(), np.arange(queries)
    grid[-1] = high
    found = evaluate([(x, every) for x in grid])
    same = SAME * np.max([np.abs(each).max(axis=1, initial=0.0) for each in found], axis=0)
    narrow = _differing([_Cell(grid[i], grid[i + 1], every, found[i], found[i + 1]) for i in range(cells)], same)
    for _ in range(halvings):
        middles = [cell.low + (cell.high - cell.low) / 2 for cell in narrow]
        there = evaluate([(x, cell.queries) for x, cell in zip(middles, narrow, strict=True)])
        halves = []
        for cell, x, value in zip(narrow, middles, there, strict=True):
            halves.append(_Cell(cell.low, x, cell.queries, cell.before, value))
            halves.append(_Cell(x, cell.high, cell.queries, value, cell.after))
        narrow = _differing(halves, same)
    return _joined(_differing(narrow, np.array([same[0], np.inf])), found[0][0])


def _differing(cells: list[_Cell], same: Floats) -> list[_Cell]:
    """Each cell with those of its queries that differ by more than `same`; none if there are none."""
    out = []
    for cell in cells:
        some = (np.abs(cell.before - cell.after) > same[:, None]).any(axis=0)
        if some.any():
            out.append(_Cell(cell.low, cell.high, cell.queries[some], cell.before[:, some], cell.after[:, some]))
    return out


def _joined(cells: list[_Cell], first: Floats) -> Steps:
    """The cells from left to right as steps, query by query."""
    query = np.concatenate([np.empty(0, np.int64), *(cell.queries for cell in cells)])
    value = np.concatenate([np.empty(0), *(cell.after[0] for cell in cells)])
    sizes = np.array([len(cell.queries) for cell in cells], np.int64)
    x = np.repeat(np.array([cell.low + (cell.high - cell.low) / 2 for cell in cells]), sizes)
    order = np.argsort(query, kind="stable")
    return Steps(bounds(np.bincount(query, minlength=len(first))), x[order], value[order], first)


def signatures(scores: Floats, candidates: Candidates, depth: int | None) -> Floats:
    """A number for each query that depends on its labels in ranked order, down to `depth`, and on nothing else.

    >>> rows = Candidates.of([1, 0, 0, 1], group=[2, 2])
    >>> one, other = signatures(np.array([2.0, 1, 1, 2]), rows, None)
    >>> bool(one == other)
    True
    """
    order, sizes = order_rows(scores, candidates.offsets, candidates.docids), candidates.sizes
    rank = np.arange(len(order)) - np.repeat(candidates.offsets[:-1], sizes)
    weight = np.random.default_rng(0).normal(size=int(sizes.max(initial=0)))
    weight[slice(depth, None) if depth is not None else slice(0)] = 0.0
    terms = np.append(np.nan_to_num(candidates.labels)[order] * weight[rank], 0.0)
    sums: Floats = np.where(sizes > 0, np.add.reduceat(terms, candidates.offsets[:-1]), 0.0)
    return sums
