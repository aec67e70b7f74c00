"""How queries are parted: into plain folds, and into folds with training, validation and test parts as LETOR has them.

>>> rows = Candidates.of([1, 0] * 10, group=[2] * 10)
>>> for train, valid, test in folds(rows):
...     print(train.queries, valid.queries, test.qids.tolist())
6 2 ['2', '9']
6 2 ['5', '7']
6 2 ['3', '8']
6 2 ['4', '6']
6 2 ['1', '10']
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import floor
from typing import NamedTuple

import numpy as np

from fliprank.arrays import Ints
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError

__all__ = ["Fold", "fold_queries", "folds", "folds_of"]

PARTS = (3, 1, 1)
"""Shares of the training, validation and test part: LETOR's."""


class Fold(NamedTuple):
    """Training, validation and test rows; a part whose share is 0 has no queries."""

    train: Candidates
    valid: Candidates
    test: Candidates


def folds_of(queries: int, folds: int, seed: int) -> list[Ints]:
    """The numbers of the queries of each fold, at random."""
    if not 2 <= folds <= queries:
        raise UsageError(f"{folds} folds of {queries} queries: there are at least 2, each with a query")
    return [np.sort(part) for part in np.array_split(_shuffled(queries, seed), folds)]


@checked
def folds(rows: Candidates, parts: Sequence[float] = PARTS, folds: int = 5, seed: int = 0) -> Iterator[Fold]:
    """Training, validation and test rows of each fold; `parts` are their shares, which each fold rotates by one step.

    The queries stand in a circle, in random order, and fold i begins i / `folds` of the way round. If the share of the
    test part is 1 / `folds`, as in LETOR's (3, 1, 1) in five folds, each query is tested on exactly once.
    """
    for numbers in fold_queries(rows.queries, parts, folds, seed):
        yield Fold(*map(rows.select, numbers))


def fold_queries(
    queries: int, parts: Sequence[float] = PARTS, folds: int = 5, seed: int = 0
) -> list[tuple[Ints, Ints, Ints]]:
    """The numbers of the training, validation and test queries of each fold: see `folds`."""
    if len(parts) != 3 or not all(0 <= part < float("inf") for part in parts) or parts[0] == 0:
        raise UsageError(f"parts={tuple(parts)}: expected shares for training, validation and test, like (3, 1, 1)")
    if not 2 <= folds <= queries:
        raise UsageError(f"{folds} folds of {queries} queries: there are at least 2, each with a query")
    shares = [Fraction(part).limit_denominator(1000) for part in parts]
    ends = [Fraction(0), *accumulate(shares)]
    order = _shuffled(queries, seed)

    def between(begin: Fraction, end: Fraction) -> Ints:
        first, last = (floor(place * queries + Fraction(1, 2)) for place in (begin, end))
        return np.sort(order[np.arange(first, last) % queries])

    found = []
    for fold in range(folds):
        places = [Fraction(fold, folds) + end / ends[-1] for end in ends]
        train, valid, test = (between(*span) for span in pairwise(places))
        for name, share, part in zip(("training", "validation", "test"), shares, (train, valid, test), strict=True):
            if share and not len(part):
                raise UsageError(f"{queries} queries in parts {tuple(parts)}: fold {fold + 1} has no {name} query")
        found.append((train, valid, test))
    return found


def _shuffled(queries: int, seed: int) -> Ints:
    return np.random.default_rng(seed).permutation(queries)
