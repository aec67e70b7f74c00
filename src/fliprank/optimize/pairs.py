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
from fliprank.optimize.shards import Kept, Shards

__all__ = ["Pairs", "pairs_of"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs, shard by shard: `begin[s]` is the number of the first pair of shard s, which keeps `steps[s]`."""

    model: Model
    shards: Shards
    begin: Ints
    steps: Kept
    scored: Scored = field(default_factory=Scored)

    @classmethod
    def of(cls, model: Model, shards: Shards, scored: Scored | None = None) -> Pairs:
        counts, steps = shards.tell_and_keep(pair_steps_of, model)
        if not sum(counts):
            raise InputError("no query has two rows of different labels: there is no pair to learn from")
        return cls(model, shards, np.cumsum([0, *counts]), steps, scored or Scored())

    def __len__(self) -> int:
        return int(self.begin[-1])

    def descend(self, values: Floats, order: Ints, rate: float) -> Floats:
        """The free values after a step for each pair, in this order."""
        self.scored.add(2 * len(order))
        owner = np.searchsorted(self.begin, order, "right") - 1
        cuts = np.flatnonzero(np.diff(owner, prepend=-1, append=-1))
        for start, stop in pairwise(cuts.tolist()):
            shard = int(owner[start])
            own, steps = order[start:stop] - self.begin[shard], (self.steps[shard],)
            (values,) = self.shards.only(shard).tell(descend_pairs, values, own, rate, kept=(steps,))
        return values

    def total_cost(self, values: Floats) -> float:
        """RankNet's cost, summed over all pairs."""
        self.scored.add(self.shards.rows)
        model = self.model.at(self.model.params.with_free(values))
        costs = self.shards.tell(pair_costs_of, model)
        return float(np.concatenate(costs).sum())  # in the order of queries, wherever shards end


def pair_steps_of(shard: Shard, model: Model) -> tuple[int, PairSteps]:
    """Tells how many pairs a shard has; keeps what takes steps along them."""
    objective, labels = _ranknet(shard), labels_of(shard.rows)
    pairs = pairs_of(objective, shard.rows)
    targets = objective.targets(labels[pairs[:, 0]], labels[pairs[:, 1]])
    return len(pairs), pair_steps(model, shard.rows, pairs, targets)


def descend_pairs(shard: Shard, values: Floats, order: Ints, rate: float, steps: PairSteps) -> Floats:
    """Tells the free values after a step for each of these pairs of the shard."""
    return steps(values, order, rate)


def pair_costs_of(shard: Shard, model: Model) -> Floats:
    """Tells RankNet's cost of each query, summed over its pairs."""
    whole = replace(_ranknet(shard), normalise="none")
    return whole.per_query(model.score(shard.rows), shard.rows)


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
