"""How many pairs an objective looks at, told before it does: a query of a million rows has some 10^11.

>>> label_pairs(Candidates.of([2, 1, 0, 0, 1, 1], group=[4, 2]))
5
"""

from __future__ import annotations

import os
import warnings

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError
from fliprank.objectives.gains import labels_of

__all__ = ["MANY_PAIRS", "check_room", "label_pairs", "warn_of_pairs"]

MANY_PAIRS = 10_000_000_000
"""So many take about a minute of one core, each time that the objective is evaluated."""

ADVICE = (
    "softndcg takes time in proportion to the rows; or give fewer rows per query, as by --sample or a smaller depth"
)


def label_pairs(candidates: Candidates) -> int:
    """The number of pairs of rows of one query whose labels differ."""
    if "pairs of labels" not in candidates.memo:
        labels, query = labels_of(candidates), candidates.query_of_rows()
        order = np.lexsort((labels, query))
        changes = np.diff(labels[order], prepend=np.nan) != 0
        changes |= np.diff(query[order], prepend=-1) != 0
        alike = np.diff(np.flatnonzero(changes), append=len(order))
        candidates.memo["pairs of labels"] = (
            sum(n * n for n in candidates.sizes.tolist()) - int((alike**2).sum())
        ) // 2
    out: int = candidates.memo["pairs of labels"]
    return out


def warn_of_pairs(what: object, candidates: Candidates, pairs: int | None = None) -> None:
    """Say, once for these rows, that there are very many pairs (unless given: of different labels), and what to do."""
    count = label_pairs(candidates) if pairs is None else pairs
    if count > MANY_PAIRS and ("warned of pairs", str(what)) not in candidates.memo:
        candidates.memo["warned of pairs", str(what)] = True
        q = int(candidates.sizes.argmax())
        largest = f"{candidates.sizes[q]:,} rows in query {candidates.qids[q]}"
        warnings.warn(
            f"{what} looks at {count:,} pairs of rows in each evaluation ({largest}): {ADVICE}",
            UserWarning,
            stacklevel=2,
        )


def check_room(what: str, size: int, query: str | None = None) -> None:
    """Raise before arrays of `size` bytes are made that this machine has no memory for."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # a system that does not tell
        return
    if size > memory // 2:
        raise InputError(f"{what} would take {size >> 30:,} GiB of memory", query=query, hint=ADVICE)
