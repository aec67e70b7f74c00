"""Groups of consecutive rows: group g owns `bounds[g]:bounds[g + 1]` (CSR)."""

from __future__ import annotations

import numpy as np

from fliprank.arrays import Ints

__all__ = ["bounds", "positions", "span_indices", "span_sizes"]


def bounds(sizes: Ints) -> Ints:
    """The bounds of consecutive groups of these sizes.

    >>> bounds(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def span_indices(limits: Ints, chosen: Ints) -> Ints:
    """The indices of the chosen groups, one group after the other.

    >>> span_indices(np.array([0, 2, 2, 5]), np.array([2, 0]))
    array([2, 3, 4, 0, 1])
    """
    sizes = span_sizes(limits, chosen)
    ends = np.cumsum(sizes)
    within = np.arange(ends[-1] if len(ends) else 0, dtype=np.int64)
    indices: Ints = within + np.repeat(limits[chosen] - (ends - sizes), sizes)
    return indices


def span_sizes(limits: Ints, chosen: Ints) -> Ints:
    """The sizes of the chosen groups (numbers from 0), which takes no longer for more groups that are not chosen.

    >>> span_sizes(np.array([0, 2, 2, 5]), np.array([2, 0]))
    array([3, 2])
    """
    sizes: Ints = limits[chosen + 1] - limits[chosen]
    return sizes


def positions(offsets: Ints) -> Ints:
    """The place of each row within its own span, counted from 0.

    >>> positions(np.array([0, 3, 3, 5])).tolist()
    [0, 1, 2, 0, 1]
    """
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
