"""CorrectPairs: pairs of judged documents in the right order (Robertson & Zaragoza 2007, section 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.measures.base import Measure, register
from fliprank.measures.ranking import Ranking, rank

__all__ = ["CorrectPairs"]


@register()
@dataclass(frozen=True)
class CorrectPairs(Measure):
    """The share of pairs of judged documents with different labels that are ranked in the right order.

    Judged documents that were not retrieved come after all that were; two of them are never in the right order.

    >>> from fliprank.data.candidates import Candidates
    >>> CorrectPairs().per_query([3, 2, 1], Candidates.of([1, 0, 2]))      # 1 > 0; 1 < 2 and 0 < 2 are wrong
    array([0.33333333])
    """

    name: ClassVar[str] = "CorrectPairs"

    def pairs(self, candidates: Candidates) -> Floats:
        """How many pairs with different labels each query has, at least 1."""
        judged = candidates.judgements
        size = np.diff(judged.ideal_offsets)
        new_level = (np.diff(judged.ideal, prepend=np.inf) != 0) | (np.diff(judged.owner, prepend=-1) != 0)
        run = np.diff(np.append(np.flatnonzero(new_level), len(judged.ideal)))
        same = np.bincount(judged.owner[new_level], weights=run * (run - 1) / 2, minlength=candidates.queries)
        pairs: Floats = np.maximum(size * (size - 1) / 2 - same, 1)
        return pairs

    def empty(self, candidates: Candidates) -> NDArray[np.bool_]:
        judged = candidates.judgements
        lowest = np.full(candidates.queries, np.nan)
        lowest[judged.owner] = judged.ideal  # labels fall within a query: the last one written is its lowest
        different: NDArray[np.bool_] = judged.total(judged.ideal > lowest[judged.owner]) > 0
        return ~different

    def of(self, ranking: Ranking) -> Floats:
        if ranking.ties == "average":  # either order of a tied pair is equally likely
            both = [self.per_query(ranking.scores, ranking.candidates, ties=t) for t in ("optimistic", "pessimistic")]
            return (both[0] + both[1]) / 2
        judged = ranking.candidates.judgements
        levels, level = np.unique(judged.label, return_inverse=True)
        missed = ranking.candidates.missed_labels
        below = np.searchsorted(levels, missed, "right")
        correct = _correct_pairs(
            ranking.start,
            ranking.count,
            ranking.entry,
            level.astype(np.int64),
            len(levels),
            ranking.candidates.missed_offsets,
            below.astype(np.int64),
        )
        return correct / self.pairs(ranking.candidates)

    def flips(self, scores: ArrayLike, candidates: Candidates) -> Floats:
        labels = candidates.labels[rank(scores, candidates).order()]
        change = np.append(np.nan_to_num(np.sign(np.diff(labels))), 0.0)
        change[candidates.offsets[1:][candidates.sizes > 0] - 1] = 0.0
        return change / np.repeat(self.pairs(candidates), candidates.sizes)


@kernel
def _seen_from(tree: Ints, level: int) -> int:
    """How many documents of at least this level a Fenwick tree over reversed levels holds."""
    total, i = 0, len(tree) - 1 - level
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@parallel_kernel
def _correct_pairs(
    start: Ints, count: Ints, entry: Ints, level: Ints, levels: int, missed_offsets: Ints, missed_below: Ints
) -> Floats:
    out = np.zeros(len(count))
    for q in prange(len(count)):
        tree, correct = np.zeros(levels + 1, np.int64), 0
        for i in range(start[q], start[q] + count[q]):
            own = level[entry[i]]
            correct += _seen_from(tree, own + 1)
            at = levels - own
            while at <= levels:
                tree[at] += 1
                at += at & -at
        for i in range(missed_offsets[q], missed_offsets[q + 1]):
            correct += _seen_from(tree, missed_below[i])
        out[q] = correct
    return out
