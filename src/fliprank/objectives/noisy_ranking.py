"""What soft measures share: the noise of the scores, rows in ranked order, and the work cut into tasks.

A soft measure is the expectation of a measure when Gaussian noise is added to every score (SoftRank, section 3.1). Its
gradient at one document involves the documents near it in the ranking. A task handles a part of one query and has its
own room for the gradient; sums run over tasks in a fixed order, so that a long query keeps every core busy and the
result still does not depend on the number of cores.

>>> from fliprank.objectives.softndcg import SoftNDCG
>>> annealed = SoftNDCG(sigma=1.0, anneal=0.01)
>>> [annealed.at(progress).noise for progress in (0.0, 0.5, 1.0)]
[1.0, 0.1, 0.01]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.order import order_rows
from fliprank.errors import InputError, UsageError
from fliprank.kernels import parallel_kernel, prange
from fliprank.objectives.base import Objective

__all__ = ["Noisy", "NoisyObjective", "Tasks", "by_row", "checked_sigma", "gather", "noisy_ranking", "tasks_of"]

DEFAULT_SIGMA = 0.1


@dataclass(frozen=True, eq=False)
class NoisyObjective(Objective):
    """An objective on scores with Gaussian noise.

    `sigma` is the standard deviation of the noise: one number, or one per row; None means `default_sigma`, which leaves
    the choice to whoever trains. `anneal` is the sigma at the end of the training, reached by equal factors.
    """

    maximise: ClassVar[bool] = True
    default_sigma: ClassVar[float] = DEFAULT_SIGMA
    sigma: float | Floats | None = field(default=None, kw_only=True)
    anneal: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma is not None:
            object.__setattr__(self, "sigma", checked_sigma(self.name, self.sigma))
        if self.anneal is not None and not isinstance(checked_sigma(self.name, self.anneal, "anneal"), float):
            raise UsageError(f"{self.name}: anneal is one number, the sigma at the end of the training")

    @property
    def noise(self) -> float | Floats:
        """`sigma`, or its default."""
        return self.default_sigma if self.sigma is None else self.sigma

    def curvature(self, scores: Floats, candidates: Candidates, gradient: Floats) -> Floats:
        """As of any objective, with the noise as the unit of the scores: trees then learn the same with any sigma."""
        return super().curvature(scores, candidates, gradient) / self.noise

    def at(self, progress: float) -> Self:
        if self.anneal is None:
            return self
        return replace(self, sigma=self.noise ** (1.0 - progress) * self.anneal**progress, anneal=None)

    def take(self, rows: ArrayLike) -> Self:
        return replace(self, sigma=self.sigma[np.asarray(rows)]) if isinstance(self.sigma, np.ndarray) else self


def checked_sigma(name: str, sigma: Any, field: str = "sigma") -> float | Floats:
    """The noise as one number, or as a read-only array with one number per row."""
    try:
        given = np.asarray(sigma, np.float64)
    except (TypeError, ValueError):
        given = np.full(1, np.nan)
    if given.ndim > 1 or not ((given > 1e-150) & (given < 1e150)).all():
        raise UsageError(f"{name}({field}={sigma!r}): {field} is a number above 0, or one number per row")
    return float(given) if given.ndim == 0 else frozen(given, np.float64)


class Noisy(NamedTuple):
    """A noisy ranking as kernels read it. Query q has places `offsets[q]:offsets[q + 1]`, scores fall within it.

    `sigma` holds one number per place, or one for all; `worth` is what a place is paid per unit of discount; `share` is
    the factor of each query in the gradient.
    """

    score: Floats
    sigma: Floats
    worth: Floats
    offsets: Ints
    share: Floats


def noisy_ranking(
    scores: Floats, sigma: float | Floats, worth: Floats, candidates: Candidates, share: Floats
) -> tuple[Noisy, Ints]:
    """The rows of each query in ranked order (ties, whose contests are even, by row), and the row at each place."""
    if isinstance(sigma, np.ndarray) and len(sigma) != len(scores):
        raise InputError(f"sigma has {len(sigma)} values for {len(scores)} rows")
    order = order_rows(scores, candidates.offsets)
    by_place = sigma[order] if isinstance(sigma, np.ndarray) else np.array([sigma])
    ranked, sigmas, paid = (frozen(a, np.float64) for a in (scores[order], by_place, worth[order]))
    return Noisy(ranked, sigmas, paid, candidates.offsets, frozen(share, np.float64)), order


def by_row(by_place: Floats, order: Ints) -> Floats:
    """What is listed by place, by row."""
    out = np.empty_like(by_place)
    out[order] = by_place
    return out


class Tasks(NamedTuple):
    """Task t does part[t] of the parts[t] of query[t]; its gradient has room from room[t] to room[t + 1]."""

    query: Ints
    part: Ints
    parts: Ints
    room: Ints


def tasks_of(candidates: Candidates, kind: str, parts: Callable[[Ints], Ints]) -> Tasks:
    """Each query in as many parts as `parts` says for its number of rows (at least 1); remembered by `kind`."""
    key = ("tasks", kind)
    if key not in candidates.memo:
        counts = np.maximum(parts(candidates.sizes), 1)
        query = np.repeat(np.arange(candidates.queries), counts)
        part = np.arange(len(query)) - bounds(counts)[query]
        arrays = (query, part, counts[query], bounds(candidates.sizes[query]))
        candidates.memo[key] = Tasks(*(frozen(a, np.int64) for a in arrays))
    tasks: Tasks = candidates.memo[key]
    return tasks


def gather(found: Floats, pulls: Floats, tasks: Tasks, candidates: Candidates) -> tuple[Floats, Floats]:
    """The sums over tasks, in their order: the value of each query, and the gradient at each place."""
    if len(found) == candidates.queries:  # each query is one task
        return found, pulls
    return _gather(found, pulls, candidates.offsets, tasks)


@parallel_kernel
def _gather(found: Floats, pulls: Floats, offsets: Ints, tasks: Tasks) -> tuple[Floats, Floats]:
    values, pull = np.zeros(len(offsets) - 1), np.zeros(offsets[-1])
    for q in prange(len(offsets) - 1):
        task, size = np.searchsorted(tasks.query, q), offsets[q + 1] - offsets[q]
        while task < len(tasks.query) and tasks.query[task] == q:
            values[q] += found[task]
            for i in range(size):
                pull[offsets[q] + i] += pulls[tasks.room[task] + i]
            task += 1
    return values, pull
