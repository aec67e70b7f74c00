"""Many points of parameter space at once, because to start a kernel for a few rows costs more than the work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds, span_indices
from fliprank.measures import Measure

__all__ = ["BLOCK", "aggregates", "stacked", "values_at"]

BLOCK = 1 << 18
"""Rows that are ranked at a time."""


def stacked(rows: Candidates, queries: Ints) -> Candidates:
    """The judgements of these queries; a query may be named several times."""
    chosen = span_indices(rows.offsets, queries)
    return Candidates(
        bounds(rows.sizes[queries]),
        rows.labels[chosen],
        rows.qids.take(queries),
        None if rows.docids is None else rows.docids.take(chosen),
        missed_offsets=bounds(np.diff(rows.missed_offsets)[queries]),
        missed_labels=rows.missed_labels[span_indices(rows.missed_offsets, queries)],
    )


def values_at(scores: Callable[[int], Floats], points: int, candidates: Candidates, measure: Measure) -> Floats:
    """The measure at each point, from the scores of all rows there.

    >>> from fliprank.measures import parse_measure
    >>> rows = Candidates.of([1, 0])
    >>> values_at(lambda i: np.array([i, 1.5]), 4, rows, parse_measure("RR")).tolist()
    [0.5, 0.5, 1.0, 1.0]
    """
    at_once, out = max(1, min(points, BLOCK // max(len(candidates), 1))), np.empty((points, candidates.queries))
    rows = candidates if at_once == 1 else stacked(candidates, np.tile(np.arange(candidates.queries), at_once))
    for start in range(0, points, at_once):
        count = min(at_once, points - start)
        # The last block is filled up with its own first point, so that one stack serves all.
        block = [scores(start + (i if i < count else 0)) for i in range(at_once)]
        each = measure.per_query(np.concatenate(block), rows).reshape(at_once, candidates.queries)
        out[start : start + count] = each[:count]
    return aggregates(out, measure)


def aggregates(each: Floats, measure: Measure) -> Floats:
    """The mean of each row of values, as the measure takes it."""
    return np.array([measure.aggregate(row) for row in each])
