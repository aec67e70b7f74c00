"""What lists tell of a query before anything is judged: how far they agree, how their scores are spread.

    agreement   documents that the first 10 of a list share with the first 10 of another, over 10 (or the shorter
                length): the mean over the other lists
    spread      the deviation of a list's scores, in units of the way from its lowest to its highest
    gap         from the first score to the second, in the same units

All are between 0 and 1 and do not depend on the scale of scores, so that they can be compared between queries. A list
that is empty, or whose scores are all equal, has spread and gap 0. Other numbers of a query, such as how many words it
has, stand beside them and are the same for all lists.

>>> from fliprank.data.fusion_rows import fusion_rows
>>> rows = fusion_rows({"bm25": {"q": {"a": 9, "b": 5, "d": 4}}, "dense": {"q": {"c": 0.6, "b": 0.8}}})
>>> lists = with_traits(rows, terms=[2.0]).lists
>>> lists.trait_names, lists.traits[0].round(3).tolist()
(('agreement', 'spread', 'gap', 'terms'), [[0.5, 0.432, 0.8, 2.0], [0.5, 0.5, 1.0, 2.0]])
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.ranked_lists import COUNT, DEVIATION, HIGH, LOW, RankedLists
from fliprank.errors import UsageError

__all__ = ["OF_LISTS", "TOP", "with_traits"]

OF_LISTS = ("agreement", "spread", "gap")
"""The traits that lists tell themselves."""
TOP = 10
"""The first ranks whose documents are compared."""


def with_traits(rows: Candidates, **others: ArrayLike) -> Candidates:
    """The rows with the traits of their lists, and `others`: one number per query each. Rows must be whole lists."""
    found = rows.lists
    if found is None:
        raise UsageError("traits are those of lists: make rows of runs by fusion_rows(runs, qrels)")
    owner, there = rows.query_of_rows(), found.ranks > 0
    here = np.stack([np.bincount(owner[column], minlength=rows.queries) for column in there.T], axis=1)
    if (here != found.statistics[:, :, COUNT]).any():
        raise UsageError("these rows are not whole lists any more: add traits before rows are taken")
    columns = [_agreement(rows, found), *_shape(rows, found)]
    for name, values in others.items():
        given = np.asarray(values, np.float64)
        if given.shape != (rows.queries,) or not np.isfinite(given).all():
            raise UsageError(f"{name}: expected a finite number for each of {rows.queries} queries")
        columns.append(np.repeat(given[:, np.newaxis], len(found.names), axis=1))
    lists = replace(found, trait_names=(*OF_LISTS, *others), traits=np.stack(columns, axis=2))
    return replace(rows, lists=lists)


def _agreement(rows: Candidates, found: RankedLists) -> Floats:
    """The mean overlap of the first ranks of each list with those of the others."""
    owner, top = rows.query_of_rows(), (found.ranks > 0) & (found.ranks <= TOP)
    sizes, count = np.minimum(found.statistics[:, :, COUNT], TOP), len(found.names)
    total = np.zeros((rows.queries, count))
    for i in range(count):
        for j in range(i):
            both = np.bincount(owner[top[:, i] & top[:, j]], minlength=rows.queries)
            share = both / np.maximum(np.minimum(sizes[:, i], sizes[:, j]), 1.0)
            total[:, i] += share
            total[:, j] += share
    return total / max(count - 1, 1)


def _shape(rows: Candidates, found: RankedLists) -> tuple[Floats, Floats]:
    """Spread and gap of each list."""
    width = found.statistics[:, :, HIGH] - found.statistics[:, :, LOW]
    unit = np.where(width > 0, width, 1.0)
    first, second = np.zeros(width.shape), np.zeros(width.shape)
    for rank, target in ((1, first), (2, second)):
        row, column = np.nonzero(found.ranks == rank)
        target[rows.query_of_rows()[row], column] = found.scores[row, column]
    known = (width > 0) & (found.statistics[:, :, COUNT] > 1)
    spread: Floats = np.where(known, found.statistics[:, :, DEVIATION] / unit, 0.0)
    gap: Floats = np.where(known, np.abs(first - second) / unit, 0.0)
    return spread, gap
