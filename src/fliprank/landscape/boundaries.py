"""Flip boundaries in a plane of two parameters: the lines on which two documents of a query tie (R & Z 2007, A.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.errors import UsageError
from fliprank.kernels import kernel

__all__ = ["Boundaries", "Plane", "find_boundaries"]

MOST_LINES = 1 << 16
"""Boundaries within a window; cells grow with their square."""


class Plane(NamedTuple):
    """Scores base + x u + y v."""

    base: Floats
    u: Floats
    v: Floats


@dataclass(frozen=True, eq=False)
class Boundaries:
    """Line i is `line[i] = (a, b, c)`: a x + b y + c = 0, beyond which (> 0) the pairs' first row ranks above.

    Pairs `begin[i]:begin[i + 1]` of rows `first` and `second` tie on it: one pair, unless boundaries coincide. `kind`
    of a pair is 1 if the positive side is good, -1 if it is bad, 0 if labels are equal.
    """

    line: Floats
    begin: Ints
    query: Ints
    first: Ints
    second: Ints
    kind: NDArray[np.int8]
    candidates: Candidates

    def __len__(self) -> int:
        return len(self.line)

    def name(self, i: int) -> str:
        """The documents of its first pair, such as 'a,c'."""
        ids, at = self.candidates.docids, int(self.begin[i])
        one, two = int(self.first[at]), int(self.second[at])
        offset = int(self.candidates.offsets[self.query[at]])
        names = sorted([ids[one], ids[two]]) if ids is not None else [str(one - offset + 1), str(two - offset + 1)]
        return ",".join(names)


def find_boundaries(
    plane: Plane, candidates: Candidates, window: tuple[float, float, float, float], neutral: bool = False
) -> Boundaries:
    """The boundaries that cross the window; of documents with equal labels only if `neutral`."""
    base, u, v = plane
    labels = np.nan_to_num(candidates.labels)
    corners = np.array([[x, y] for x in window[:2] for y in window[2:]], np.float64)
    first, second = _crossing_pairs(plane, labels, candidates.offsets, corners, neutral, MOST_LINES)
    if len(first) > MOST_LINES:
        raise UsageError(f"more than {MOST_LINES:,} flip boundaries cross this window: choose a smaller one")
    line = np.column_stack([u[first] - u[second], v[first] - v[second], base[first] - base[second]])
    # One way round, so that lines which coincide are found to.
    size = np.hypot(line[:, 0], line[:, 1])
    flipped = (line[:, 0] < 0) | ((line[:, 0] == 0) & (line[:, 1] < 0))
    line[flipped] *= -1
    first, second = np.where(flipped, second, first), np.where(flipped, first, second)
    unit = line / size[:, None]
    order = np.lexsort(np.round(unit, 9).T[::-1])
    unit, first, second = unit[order], first[order], second[order]
    fresh = np.append(True, (np.abs(np.diff(unit, axis=0)) > 1e-9).any(axis=1))[: len(unit)]
    query = np.searchsorted(candidates.offsets, first, "right") - 1
    kind = np.sign(labels[first] - labels[second]).astype(np.int8)
    sizes = np.diff(np.append(np.flatnonzero(fresh), len(unit)))
    return Boundaries(unit[fresh], bounds(sizes), query, first, second, kind, candidates)


@kernel
def _crossing_pairs(
    plane: Plane, labels: Floats, offsets: Ints, corners: Floats, neutral: bool, most: int
) -> tuple[Ints, Ints]:
    """Pairs of rows whose boundary passes between the corners of the window; stops with more than `most`."""
    base, u, v = plane
    first, second, count = np.empty(most + 1, np.int64), np.empty(most + 1, np.int64), 0
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(i + 1, offsets[q + 1]):
                if labels[i] == labels[j] and not neutral:
                    continue
                above, below = False, False
                for k in range(len(corners)):
                    lead = base[i] - base[j] + corners[k, 0] * (u[i] - u[j]) + corners[k, 1] * (v[i] - v[j])
                    above, below = above or lead > 0, below or lead < 0
                if above and below:
                    first[count], second[count] = i, j
                    count += 1
                    if count > most:
                        return first, second
    return first[:count], second[:count]
