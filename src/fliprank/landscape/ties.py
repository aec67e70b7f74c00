"""How much of a ranking is left to the tie rule: where scores tie, a measure is that of the tie rule, not the model's.

>>> rows = Candidates.of([1, 0, 0, 1, 0], group=[3, 2])
>>> tied_share([2.0, 2.0, 1.0, 5.0, 5.0], rows)     # 2 of the 3 + 1 pairs
0.5
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, frozen
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError

__all__ = ["tied_share"]


def tied_share(scores: ArrayLike, candidates: Candidates) -> float:
    """The share of pairs of rows of the same query that have equal scores; 0 if no query has two rows.

    1 says that all scores tie: the ranking, and every measure of it, is that of the tie rule.
    """
    given: Floats = frozen(scores, np.float64)
    if given.shape != (len(candidates),):
        raise InputError(f"scores of shape {given.shape} for {len(candidates)} rows")
    pairs = int((candidates.sizes * (candidates.sizes - 1) // 2).sum())
    query = candidates.query_of_rows()
    order = np.lexsort((given, query))
    same = (np.diff(given[order]) == 0) & (np.diff(query[order]) == 0)
    ends = np.flatnonzero(~np.concatenate([[False], same, [False]]))
    runs = np.diff(ends)  # so many rows of one query have one score
    return float((runs * (runs - 1) // 2).sum()) / pairs if pairs else 0.0
