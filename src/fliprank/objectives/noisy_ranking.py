"""What soft measures share: scores with noise in ranked order, the work cut into tasks, and what comes back.

A document's contests pull at itself and at its neighbours in the ranking. A task holds the contests of some places of
one query's ranking and has room of its own for their pulls; sums run over tasks in a fixed order, so that a long query
keeps every core busy and yet the result does not depend on how many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.order import order_rows
from fliprank.errors import InputError, UsageError
from fliprank.kernels import parallel_kernel, prange
from fliprank.objectives.kernels import fast_kernel

__all__ = ["NoisyRanking", "Tasks", "checked_sigma", "gather", "noisy_ranking", "pull_apart", "tasks_of"]


@dataclass(frozen=True, eq=False)
class NoisyRanking:
    """Scores in falling order within each query, the row at each place, and the variance there (or one for all)."""

    order: Ints
    score: Floats
    variance: Floats

    def by_row(self, pull: Floats) -> Floats:
        """What stands by place, by row."""
        out = np.empty_like(pull)
        out[self.order] = pull
        return out


def noisy_ranking(scores: Floats, sigma: float | Floats, candidates: Candidates) -> NoisyRanking:
    """Rank the rows of each query; ties, whose contests are even, by row."""
    order = order_rows(scores, candidates.offsets)
    if isinstance(sigma, float):
        return NoisyRanking(order, scores[order], np.array([sigma * sigma]))
    if len(sigma) != len(scores):
        raise InputError(f"sigma has {len(sigma)} values for {len(scores)} rows")
    return NoisyRanking(order, scores[order], sigma[order] ** 2)


def checked_sigma(name: str, sigma: Any) -> float | Floats:
    """A noise that is one number, or a read-only array with one for each row."""
    given = np.asarray(sigma, np.float64)
    if given.ndim > 1 or not ((given > 1e-150) & (given < 1e150)).all():
        raise UsageError(f"{name}: sigma is a number above 0, or one for each row")
    return float(given) if given.ndim == 0 else frozen(given, np.float64)


@dataclass(frozen=True, eq=False)
class Tasks:
    """Task t: places start[t] to end[t] - 1 of query[t]; its pulls have room from room[t] to room[t + 1]."""

    query: Ints
    start: Ints
    end: Ints
    room: Ints

    @property
    def arrays(self) -> tuple[Ints, Ints, Ints, Ints]:
        return self.query, self.start, self.end, self.room


def tasks_of(candidates: Candidates) -> Tasks:
    """Parts of about 65,000 contests; most queries are one."""
    if "tasks" not in candidates.memo:
        sizes = candidates.sizes
        part = np.maximum(65_536 // np.maximum(sizes, 1), 1)
        parts = -(-sizes // part)
        query = np.repeat(np.arange(len(sizes)), parts)
        start = (np.arange(len(query)) - bounds(parts)[query]) * part[query]
        end = np.minimum(start + part[query], sizes[query])
        arrays = (query, start, end, bounds(sizes[query]))
        candidates.memo["tasks"] = Tasks(*(frozen(a, np.int64) for a in arrays))
    tasks: Tasks = candidates.memo["tasks"]
    return tasks


@fast_kernel
def pull_apart(factor: float, slope: Floats, density: Floats, count: int, above: int, j: int, pull: Floats) -> None:
    """Add the pulls of place j's contests, the first of them with place `above`: each on its opponent, less on j."""
    total, around = 0.0, pull[above : above + count]
    for i in range(count):
        push = factor * slope[i] * density[i]
        around[i] += push
        total += push
    pull[j] -= total


def gather(found: Floats, pulls: Floats, tasks: Tasks, candidates: Candidates) -> tuple[Floats, Floats]:
    """The sums over tasks, in their order: each query's value, and the pull at each place of its ranking."""
    if len(found) == candidates.queries and len(pulls) == len(candidates):  # each query is one task
        return found, pulls
    return _gather(found, pulls, candidates.offsets, tasks.query, tasks.room)


@parallel_kernel
def _gather(found: Floats, pulls: Floats, offsets: Ints, query: Ints, room: Ints) -> tuple[Floats, Floats]:
    values, pull = np.zeros(len(offsets) - 1), np.zeros(offsets[-1])
    for q in prange(len(offsets) - 1):
        task, size = np.searchsorted(query, q), offsets[q + 1] - offsets[q]
        while task < len(query) and query[task] == q:
            values[q] += found[task]
            for i in range(size):
                pull[offsets[q] + i] += pulls[room[task] + i]
            task += 1
    return values, pull
