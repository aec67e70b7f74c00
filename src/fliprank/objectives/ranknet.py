"""RankNet: the pairwise cost (SoftRank, section 2.3; Taylor 2006, section 2.4; Matveeva 2006, section 2.1).

With P the target probability that the document of the better label is ranked above the other, and Y = s2 - s1 the
difference of the other's score and its own, a pair costs the cross entropy log(1 + e^Y) - (1 - P) Y. With P = 1 it is
log(1 + e^Y): linear where the order is wrong, near 0 where it is right by a margin. Equal labels make no pair.

>>> from fliprank.data.candidates import Candidates
>>> cost, gradient = RankNet().value_and_grad([1.0, 0.0, 1.0], Candidates.of([1, 0, 0]))
>>> round(cost, 6), gradient.round(6)                 # (log(1 + 1/e) + log 2) / 2
(0.503204, array([-0.384471,  0.134471,  0.25    ]))
>>> RankNet(target={(2, 0): 0.95, (1, 0): 0.8, (2, 1): 0.7}).targets([2, 1], [0, 0])
array([0.95, 0.8 ])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.errors import InputError, UsageError
from fliprank.kernels import parallel_kernel, prange
from fliprank.objectives.base import Objective, one_of, register
from fliprank.objectives.gains import labels_of
from fliprank.objectives.kernels import fast_kernel
from fliprank.objectives.many_pairs import warn_of_pairs
from fliprank.objectives.smooth import softplus

__all__ = ["RankNet"]

Table = tuple[tuple[tuple[float, float], float], ...]
"""A map from (higher label, lower label) to the probability."""


@register
@dataclass(frozen=True, eq=False)
class RankNet(Objective):
    """The mean cost of the pairs of documents whose labels differ: how far each is from the right order.

    `target` is the probability that the better label is to be preferred (1: judges are certain): a number above 0.5, a
    table by label pair, {(2, 0): 0.95, (1, 0): 0.8, (2, 1): 0.7}, or a function of two arrays (higher labels, lower
    labels). `pairs`, rows (preferred, other) of one query each, replaces the choice of all pairs. `normalise="none"`
    sums instead of averaging. Time grows with the number of pairs, memory with the number of rows.
    """

    name: ClassVar[str] = "ranknet"
    maximise: ClassVar[bool] = False
    target: float | dict[tuple[float, float], float] | Table | Callable[[Floats, Floats], Floats] = 1.0
    normalise: str = "pairs"
    pairs: Ints | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "normalise", "pairs", "none")
        if not callable(self.target):
            object.__setattr__(self, "target", _checked_target(self.target))
        if self.pairs is not None:
            chosen = frozen(self.pairs, np.int64)
            if chosen.ndim != 2 or chosen.shape[1] != 2:
                raise UsageError(f"ranknet: pairs of shape {chosen.shape}; give rows (preferred, other)")
            object.__setattr__(self, "pairs", chosen)

    def targets(self, high: ArrayLike, low: ArrayLike) -> Floats:
        """The target probability of each pair, from the labels of the preferred and of the other document."""
        above, below = np.broadcast_arrays(np.asarray(high, np.float64), np.asarray(low, np.float64))
        if callable(self.target):
            found = np.asarray(self.target(above, below), np.float64)
            if found.shape not in (above.shape, ()) or not ((found > 0.5) & (found <= 1)).all():
                raise UsageError("ranknet: the target function must give a probability above 0.5, at most 1, per pair")
            return np.broadcast_to(found, above.shape).copy()
        if isinstance(self.target, float):
            return np.full(above.shape, self.target)
        out, table = np.full(above.shape, np.nan), dict[tuple[float, float], float](self.target)
        for (higher, lower), probability in table.items():
            out[(above == higher) & (below == lower)] = probability
        if np.isnan(out).any():
            k = int(np.isnan(out).ravel().argmax())
            pair = (_short(above.ravel()[k]), _short(below.ravel()[k]))
            raise InputError(f"ranknet: the table of targets has no probability for the labels {pair}")
        return out

    def take(self, rows: ArrayLike) -> Self:
        if self.pairs is None:
            return self
        kept = np.asarray(rows)
        place = np.minimum(np.searchsorted(kept, self.pairs), max(len(kept) - 1, 0))
        there = (kept[place] == self.pairs).all(axis=1) if len(kept) else np.zeros(len(self.pairs), bool)
        return replace(self, pairs=place[there])

    def evaluate(self, scores: Floats, candidates: Candidates, share: Floats) -> tuple[Floats, Floats]:
        mean = self.normalise == "pairs"
        if self.pairs is None:
            warn_of_pairs(self.name, candidates)
            return _all_pairs(scores, candidates.offsets, _by_label(candidates), self._doubts(candidates), share, mean)
        chosen = _by_query(self.pairs, candidates)
        labels = labels_of(candidates)[chosen.rows]
        doubt = 1.0 - self.targets(labels[:, 0], labels[:, 1]) if len(labels) else np.zeros(0)
        return _chosen_pairs(scores, candidates.offsets, chosen, doubt, share, mean)

    def curvature(self, scores: Floats, candidates: Candidates, gradient: Floats) -> Floats:
        """The sum over the pairs of a document of rho (1 - rho), rho = 1 / (1 + e^(s1 - s2)), whatever the targets."""
        mean = self.normalise == "pairs"
        if self.pairs is None:
            return _all_bends(scores, candidates.offsets, _by_label(candidates), mean)
        chosen = _by_query(self.pairs, candidates)
        gap = scores[chosen.rows[:, 1]] - scores[chosen.rows[:, 0]]
        counts = np.diff(chosen.starts)
        bend = np.exp(-np.logaddexp(0.0, gap) - np.logaddexp(0.0, -gap))
        bend = bend / np.repeat(counts, counts) if mean else bend
        return np.bincount(chosen.rows.ravel(), np.repeat(bend, 2), minlength=len(scores)).astype(np.float64)

    def _doubts(self, candidates: Candidates) -> Floats:
        """1 - target for each pair of label levels; one number if it is the same for all."""
        if isinstance(self.target, float):
            return np.full((1, 1), 1.0 - self.target)
        levels = _by_label(candidates).levels
        out, (high, low) = np.zeros((len(levels), len(levels))), _level_pairs(candidates)
        out[high, low] = 1.0 - self.targets(levels[high], levels[low])
        return out


def _checked_target(target: Any) -> float | Table:
    """The target as a number, or as a table with the pairs in order."""
    if isinstance(target, Mapping | tuple):
        try:
            table = {(_short(a), _short(b)): float(p) for (a, b), p in dict(target).items()}
        except (TypeError, ValueError):
            raise UsageError(f"ranknet(target={target!r}): a table looks like {{(2, 0): 0.95, (1, 0): 0.8}}") from None
        if wrong := [pair for pair in table if not pair[0] > pair[1]]:
            raise UsageError(f"ranknet(target=...): {wrong[0]} is not (higher label, lower label)")
        if table and all(0.5 < p <= 1 for p in table.values()):
            return tuple(sorted(table.items(), reverse=True))
    elif isinstance(target, int | float | np.number) and 0.5 < target <= 1:
        return float(target)
    hint = "a number, a table such as {(2, 0): 0.95, (1, 0): 0.8}, or a function of two arrays of labels"
    raise UsageError(f"ranknet(target={target!r}): a target is a probability above 0.5, at most 1: {hint}")


def _short(label: Any) -> float:
    """A label as an int if it is whole, so that names stay short."""
    return int(label) if float(label).is_integer() else float(label)


class ByLabel(NamedTuple):
    """Rows of each query by falling label; for each place, where the rows of lower label begin, and its level."""

    order: Ints
    lower: Ints
    level: Ints
    levels: Floats


def _by_label(candidates: Candidates) -> ByLabel:
    if "rows by label" not in candidates.memo:
        labels, query = labels_of(candidates), candidates.query_of_rows()
        order = np.lexsort((-labels, query))
        run = np.cumsum(np.diff(labels[order], prepend=np.nan) != 0)  # equal numbers: equal labels, side by side
        lower = np.minimum(np.searchsorted(run, run, "right"), candidates.offsets[1:][query])
        levels, level = np.unique(labels[order], return_inverse=True)
        ints = [frozen(a, np.int64) for a in (order, lower, level)]
        candidates.memo["rows by label"] = ByLabel(ints[0], ints[1], ints[2], frozen(levels, np.float64))
    out: ByLabel = candidates.memo["rows by label"]
    return out


def _level_pairs(candidates: Candidates) -> tuple[Ints, Ints]:
    """The pairs of levels (higher, lower) that some query has: the table need not know others."""
    if "pairs of levels" not in candidates.memo:
        by_label, query = _by_label(candidates), candidates.query_of_rows()
        there = np.zeros((candidates.queries, len(by_label.levels)))
        there[query, by_label.level] = 1.0
        candidates.memo["pairs of levels"] = np.nonzero(np.tril(there.T @ there, -1))
    high, low = candidates.memo["pairs of levels"]
    return high, low


@parallel_kernel
def _all_pairs(
    scores: Floats, offsets: Ints, rows: ByLabel, doubts: Floats, share: Floats, mean: bool
) -> tuple[Floats, Floats]:
    values, gradient = np.zeros(len(offsets) - 1), np.zeros(len(scores))
    one_doubt = len(doubts) == 1
    for q in prange(len(offsets) - 1):
        low, high = offsets[q], offsets[q + 1]
        ranked, pull = scores[rows.order[low:high]], np.zeros(high - low)
        total, pairs = 0.0, 0
        for i in range(low, high):
            first = rows.lower[i]
            pairs += high - first
            while first < high:  # the rows of one label at a time, unless all have the same target
                last = high if one_doubt else rows.lower[first]
                doubt = doubts[0, 0] if one_doubt else doubts[rows.level[i], rows.level[first]]
                total += _prefer(i - low, first - low, last - low, ranked, doubt, pull)
                first = last
        scale = 1.0 / max(pairs, 1) if mean else 1.0
        values[q] = total * scale
        for i in range(high - low):
            gradient[rows.order[low + i]] = pull[i] * scale * share[q]
    return values, gradient


@parallel_kernel
def _all_bends(scores: Floats, offsets: Ints, rows: ByLabel, mean: bool) -> Floats:
    """The second derivative by each score of the sum of all queries' costs."""
    out = np.zeros(len(scores))
    for q in prange(len(offsets) - 1):
        low, high = offsets[q], offsets[q + 1]
        pairs = 0
        for i in range(low, high):
            pairs += high - rows.lower[i]
        scale = 1.0 / max(pairs, 1) if mean else 1.0
        for i in range(low, high):
            for j in range(rows.lower[i], high):
                slope = softplus(scores[rows.order[j]] - scores[rows.order[i]])[1]
                out[rows.order[i]] += slope * (1.0 - slope) * scale
                out[rows.order[j]] += slope * (1.0 - slope) * scale
    return out


@fast_kernel
def _prefer(i: int, first: int, last: int, scores: Floats, doubt: float, pull: Floats) -> float:
    """The cost of the pairs of document i, which is preferred, with those from first to last - 1; adds to `pull`."""
    own, total, push = scores[i], 0.0, 0.0
    lower, drag = scores[first:last], pull[first:last]
    for j in range(len(lower)):
        gap = lower[j] - own
        cost, slope = softplus(gap)
        total += cost - doubt * gap
        push += slope - doubt
        drag[j] += slope - doubt
    pull[i] -= push
    return total


class Chosen(NamedTuple):
    """Pairs of rows (preferred, other), those of query q from starts[q] to starts[q + 1] - 1."""

    rows: Ints
    starts: Ints


def _by_query(pairs: Ints, candidates: Candidates) -> Chosen:
    """The pairs query by query; worked out once for these candidates."""
    key = ("ranknet pairs", id(pairs))
    if key not in candidates.memo:
        if pairs.size and (pairs.min() < 0 or pairs.max() >= len(candidates)):
            raise InputError(f"ranknet: pairs name rows {pairs.min()} to {pairs.max()} of {len(candidates)}")
        query = np.searchsorted(candidates.offsets, pairs, "right") - 1
        if (across := query[:, 0] != query[:, 1]).any():
            raise InputError(f"ranknet: pair {int(across.argmax())} joins rows of two queries")
        starts = bounds(np.bincount(query[:, 0], minlength=candidates.queries))
        rows = pairs[np.argsort(query[:, 0], kind="stable")]
        # The pairs are kept too, so that no other array can get their id.
        candidates.memo[key] = Chosen(frozen(rows, np.int64), frozen(starts, np.int64)), pairs
    out: Chosen = candidates.memo[key][0]
    return out


@parallel_kernel
def _chosen_pairs(
    scores: Floats, offsets: Ints, chosen: Chosen, doubt: Floats, share: Floats, mean: bool
) -> tuple[Floats, Floats]:
    values, gradient = np.zeros(len(offsets) - 1), np.zeros(len(scores))
    for q in prange(len(offsets) - 1):
        first, last = chosen.starts[q], chosen.starts[q + 1]
        scale = 1.0 / max(last - first, 1) if mean else 1.0
        total = 0.0
        for k in range(first, last):
            preferred, other = chosen.rows[k, 0], chosen.rows[k, 1]
            gap = scores[other] - scores[preferred]
            cost, slope = softplus(gap)
            total += cost - doubt[k] * gap
            gradient[other] += (slope - doubt[k]) * scale * share[q]
            gradient[preferred] -= (slope - doubt[k]) * scale * share[q]
        values[q] = total * scale
    return values, gradient
