"""The pairs that RankNet learns from, over all shards, and descents along them one pair at a time.

Taylor et al. 2006, section 2.4: a pair is two documents of one query of which judges prefer one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from fliprank.arrays import Floats, Int32s, Ints
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.kernels import kernel
from fliprank.models.base import Model
from fliprank.models.pair_descent import PairSteps, pair_steps
from fliprank.objectives import RankNet
from fliprank.objectives.gains import labels_of
from fliprank.objectives.many_pairs import check_room, label_pairs
from fliprank.optimize.scored import Scored
from fliprank.optimize.shard import Shard

__all__ = ["Pairs", "pairs_of"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs, shard by shard: `begin[s]` is the number of the first pair of shard s."""

    model: Model
    shards: tuple[Shard, ...]
    begin: Ints
    steps: tuple[PairSteps, ...]
    scored: Scored = field(default_factory=Scored)

    @classmethod
    def of(cls, model: Model, shards: tuple[Shard, ...], scored: Scored | None = None) -> Pairs:
        counts, steps = [0], list[PairSteps]()
        for shard in shards:
            objective, labels = _ranknet(shard), labels_of(shard.rows)
            pairs = pairs_of(objective, shard.rows)
            targets = objective.targets(labels[pairs[:, 0]], labels[pairs[:, 1]])
            counts.append(len(pairs))
            steps.append(pair_steps(model, shard.rows, pairs, targets))
        if not sum(counts):
            raise InputError("no query has two rows of different labels: there is no pair to learn from")
        return cls(model, shards, np.cumsum(counts), tuple(steps), scored or Scored())

    def __len__(self) -> int:
        return int(self.begin[-1])

    def descend(self, values: Floats, order: Ints, rate: float) -> Floats:
        """The free values after a step for each pair, in this order."""
        self.scored.add(2 * len(order))
        if len(self.steps) == 1:
            return self.steps[0](values, order, rate)
        owner = np.searchsorted(self.begin, order, "right") - 1
        cuts = np.flatnonzero(np.diff(owner, prepend=-1, append=-1))
        for start, stop in pairwise(cuts.tolist()):
            shard = int(owner[start])
            values = self.steps[shard](values, order[start:stop] - self.begin[shard], rate)
        return values

    def total_cost(self, values: Floats) -> float:
        """RankNet's cost, summed over all pairs."""
        self.scored.add(sum(len(shard.rows) for shard in self.shards))
        model, costs = self.model.at(self.model.params.with_free(values)), list[Floats]()
        for shard in self.shards:
            whole = replace(_ranknet(shard), normalise="none")
            costs.append(whole.per_query(model.score(shard.rows), shard.rows))
        return float(np.concatenate(costs).sum())  # in the order of queries, wherever shards end


def _ranknet(shard: Shard) -> RankNet:
    if not isinstance(shard.objective, RankNet):
        raise UsageError(f"pair by pair, only RankNet's cost can be descended, not {shard.objective}")
    return shard.objective


def pairs_of(objective: RankNet, rows: Candidates) -> Int32s:
    """(preferred, other): the objective's own pairs, or all rows of one query whose labels differ.

    >>> pairs_of(RankNet(), Candidates.of([1, 0, 2, 0], group=[2, 2])).tolist()
    [[0, 1], [2, 3]]
    """
    if objective.pairs is not None:
        return objective.pairs.astype(np.int32)
    count = label_pairs(rows)
    check_room(f"pair by pair: a list of {count:,} pairs", 2 * np.dtype(np.int32).itemsize * count)
    return _all_pairs(labels_of(rows), rows.offsets)


@kernel
def _all_pairs(labels: Floats, offsets: Ints) -> Int32s:
    count = 0
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(offsets[q], offsets[q + 1]):
                count += labels[i] > labels[j]
    pairs, end = np.empty((count, 2), np.int32), 0
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(offsets[q], offsets[q + 1]):
                if labels[i] > labels[j]:
                    pairs[end, 0], pairs[end, 1] = i, j
                    end += 1
    return pairs
