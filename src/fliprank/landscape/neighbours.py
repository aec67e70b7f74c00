"""Which cells of an arrangement lie on either side of a line, and along which stretch of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.landscape.arrangement import Arrangement

__all__ = ["Segments", "find_segments"]

NEAR = 1e-6
"""On the scale of the window: how far apart the middles of one edge, seen from either side, may be."""


@dataclass(frozen=True, eq=False)
class Segments:
    """Two cells, `cell[i]`, share the stretch of line `line[i]` from `start[i]` to `end[i]`.

    The first of them is on the positive side of the line.
    """

    cell: Ints
    line: Ints
    start: Floats
    end: Floats

    def __len__(self) -> int:
        return len(self.line)


def find_segments(cells: Arrangement, lines: Floats, window: tuple[float, float, float, float]) -> Segments:
    """All stretches of lines between two cells.

    No line crosses a cell, so that cells on either side of a line meet it in the same stretches: the edges of one side
    are matched with those of the other by where their middles are.
    """
    after = np.arange(1, len(cells.corner) + 1)
    after[cells.begin[1:] - 1] = cells.begin[:-1]
    inner = np.flatnonzero(cells.edge >= 0)
    start, end, line = cells.corner[inner], cells.corner[after[inner]], cells.edge[inner]
    cell = np.repeat(np.arange(len(cells)), np.diff(cells.begin))[inner]
    # With its inside to the left, a cell on the positive side of a x + b y + c = 0 has its edge run along (b, -a).
    above = (end[:, 0] - start[:, 0]) * lines[line, 1] - (end[:, 1] - start[:, 1]) * lines[line, 0] > 0
    corner, scale = np.array([window[0], window[2]]), np.array([window[1] - window[0], window[3] - window[2]])
    middle = ((start + end) / 2 - corner) / scale
    steep = np.abs(lines[line, 0] * scale[0]) > np.abs(lines[line, 1] * scale[1])
    key = 2.0 * line + np.where(steep, middle[:, 1], middle[:, 0])
    ours, theirs = np.flatnonzero(above), np.flatnonzero(~above)
    if not len(ours) or not len(theirs):
        none = np.empty((0, 2))
        return Segments(none.astype(np.int64), np.empty(0, np.int64), none, none)
    theirs = theirs[np.argsort(key[theirs])]
    place = np.searchsorted(key[theirs], key[ours])
    left, right = theirs[np.maximum(place - 1, 0)], theirs[np.minimum(place, len(theirs) - 1)]
    other = np.where(np.abs(key[left] - key[ours]) <= np.abs(key[right] - key[ours]), left, right)
    real = np.abs(key[other] - key[ours]) <= NEAR
    one, two = ours[real], other[real]
    return Segments(np.column_stack([cell[one], cell[two]]), line[one], start[one], end[one])
