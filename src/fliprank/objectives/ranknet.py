"""RankNet: the pairwise cost (SoftRank, section 2.3; Taylor 2006, section 2.4; Matveeva 2006, section 2.1).

A pair with scores s1 of the preferred document and s2 of the other costs log(1 + e^(s2 - s1)): linear where the order
is wrong, near 0 where it is right by a margin. Documents of equal label make no pair.

>>> from fliprank.data.candidates import Candidates
>>> cost, gradient = RankNet().value_and_grad([1.0, 0.0, 1.0], Candidates.of([1, 0, 0]))
>>> round(cost, 6), gradient.round(6)                 # (log(1 + 1/e) + log 2) / 2
(0.503204, array([-0.384471,  0.134471,  0.25    ]))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.errors import InputError, UsageError
from fliprank.kernels import parallel_kernel, prange
from fliprank.objectives.base import Objective, one_of, register
from fliprank.objectives.gains import labels_of
from fliprank.objectives.kernels import fast_kernel
from fliprank.objectives.smooth import softplus

__all__ = ["RankNet"]


@register
@dataclass(frozen=True, eq=False)
class RankNet(Objective):
    """The mean cost of the pairs of documents whose labels differ: how far each is from the right order.

    `target` is the probability with which the better label is preferred (1: judges are certain). `pairs`, rows
    (preferred, other) of one query each, replaces the choice of all pairs. `normalise="none"` sums instead of
    averaging. Time grows with the number of pairs, memory with the number of rows.
    """

    name: ClassVar[str] = "ranknet"
    maximise: ClassVar[bool] = False
    target: float = 1.0
    normalise: str = "pairs"
    pairs: Ints | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "normalise", "pairs", "none")
        if not 0.5 < self.target <= 1:
            raise UsageError(f"ranknet(target={self.target!r}): a target probability is above 0.5, and at most 1")
        if self.pairs is not None:
            chosen = frozen(self.pairs, np.int64)
            if chosen.ndim != 2 or chosen.shape[1] != 2:
                raise UsageError(f"ranknet: pairs of shape {chosen.shape}; give rows (preferred, other)")
            object.__setattr__(self, "pairs", chosen)

    def evaluate(self, scores: Floats, candidates: Candidates, share: Floats) -> tuple[Floats, Floats]:
        doubt, mean = 1.0 - self.target, self.normalise == "pairs"
        if self.pairs is not None:
            chosen = _by_query(self.pairs, candidates)
            return _chosen_pairs(scores, candidates.offsets, *chosen, share, doubt, mean)
        return _all_pairs(scores, candidates.offsets, *_by_label(candidates), share, doubt, mean)


def _by_label(candidates: Candidates) -> tuple[Ints, Ints]:
    """Rows of each query by falling label, and for each place where the rows of lower label begin."""
    if "rows by label" not in candidates.memo:
        labels, query = labels_of(candidates), candidates.query_of_rows()
        order = np.lexsort((-labels, query))
        level = np.cumsum(np.diff(labels[order], prepend=np.nan) != 0)  # equal numbers: equal labels, side by side
        lower = np.minimum(np.searchsorted(level, level, "right"), candidates.offsets[1:][query])
        candidates.memo["rows by label"] = frozen(order, np.int64), frozen(lower, np.int64)
    out: tuple[Ints, Ints] = candidates.memo["rows by label"]
    return out


@parallel_kernel
def _all_pairs(
    scores: Floats,
    offsets: Ints,
    order: Ints,
    lower: Ints,
    share: Floats,
    doubt: float,
    mean: bool,
) -> tuple[Floats, Floats]:
    values, gradient = np.zeros(len(offsets) - 1), np.zeros(len(scores))
    for q in prange(len(offsets) - 1):
        low, high = offsets[q], offsets[q + 1]
        ranked, pull = scores[order[low:high]], np.zeros(high - low)
        total, pairs = 0.0, 0
        for i in range(high - low):
            first = lower[low + i] - low
            total += _prefer(i, first, ranked, doubt, pull)
            pairs += high - low - first
        scale = 1.0 / max(pairs, 1) if mean else 1.0
        values[q] = total * scale
        for i in range(high - low):
            gradient[order[low + i]] = pull[i] * scale * share[q]
    return values, gradient


@fast_kernel
def _prefer(i: int, first: int, scores: Floats, doubt: float, pull: Floats) -> float:
    """The cost of the pairs of document i, which is preferred, with those from `first` on; their pulls are added."""
    own, total, push = scores[i], 0.0, 0.0
    lower, drag = scores[first:], pull[first:]
    for j in range(len(lower)):
        gap = lower[j] - own
        cost, slope = softplus(gap)
        total += cost - doubt * gap
        push += slope - doubt
        drag[j] += slope - doubt
    pull[i] -= push
    return total


def _by_query(pairs: Ints, candidates: Candidates) -> tuple[Ints, Ints]:
    """The pairs query by query, and where each query's begin; worked out once for these candidates."""
    key = ("ranknet pairs", id(pairs))
    if key not in candidates.memo:
        if pairs.size and (pairs.min() < 0 or pairs.max() >= len(candidates)):
            raise InputError(f"ranknet: pairs name rows {pairs.min()} to {pairs.max()} of {len(candidates)}")
        query = np.searchsorted(candidates.offsets, pairs, "right") - 1
        if (across := query[:, 0] != query[:, 1]).any():
            raise InputError(f"ranknet: pair {int(across.argmax())} joins rows of two queries")
        starts = bounds(np.bincount(query[:, 0], minlength=candidates.queries))
        chosen = frozen(pairs[np.argsort(query[:, 0], kind="stable")], np.int64)
        candidates.memo[key] = chosen, frozen(starts, np.int64), pairs  # kept, so that its id stays its own
    chosen, starts, _ = candidates.memo[key]
    return chosen, starts


@parallel_kernel
def _chosen_pairs(
    scores: Floats,
    offsets: Ints,
    pairs: Ints,
    starts: Ints,
    share: Floats,
    doubt: float,
    mean: bool,
) -> tuple[Floats, Floats]:
    values, gradient = np.zeros(len(offsets) - 1), np.zeros(len(scores))
    for q in prange(len(offsets) - 1):
        scale = 1.0 / max(starts[q + 1] - starts[q], 1) if mean else 1.0
        total = 0.0
        for p in range(starts[q], starts[q + 1]):
            preferred, other = pairs[p, 0], pairs[p, 1]
            gap = scores[other] - scores[preferred]
            cost, slope = softplus(gap)
            total += cost - doubt * gap
            gradient[other] += (slope - doubt) * scale * share[q]
            gradient[preferred] -= (slope - doubt) * scale * share[q]
        values[q] = total * scale
    return values, gradient
