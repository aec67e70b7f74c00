"""The cells into which straight lines divide a window of the plane, each a convex polygon.

A polygon is cut by one of the lines that cross it; each part goes on with those that cross it, until none does. So the
work is of the order of the number of cells, and no cell is compared with lines that stay away from it. Corners nearer
to a line than `NEAR` count as on it: flip boundaries of three documents meet in one point, and rounding must not make
a cell of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.errors import UsageError
from fliprank.kernels import kernel

__all__ = ["Arrangement", "arrange"]

NEAR = 1e-10
"""How near is on a line, on the scale of the window."""

MOST_CELLS = 1 << 20


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Cell c has the corners `corner[begin[c]:begin[c + 1]]`, counter-clockwise.

    `edge` is, for each corner, the line on which lies the edge from it to the next: -1 to -4 is the window's border.
    """

    begin: Ints
    corner: Floats
    edge: Ints

    def __len__(self) -> int:
        return len(self.begin) - 1

    def middles(self) -> Floats:
        """A point inside each cell: the mean of its corners."""
        sizes = np.diff(self.begin)
        sums: Floats = np.add.reduceat(self.corner, self.begin[:-1], axis=0)
        return sums / sizes[:, None]

    def areas(self) -> Floats:
        """The area of each cell."""
        x, y = self.corner[:, 0], self.corner[:, 1]
        after = np.arange(1, len(x) + 1)
        after[self.begin[1:] - 1] = self.begin[:-1]
        total: Floats = np.add.reduceat(x * y[after] - x[after] * y, self.begin[:-1]) / 2
        return total


def arrange(lines: Floats, window: tuple[float, float, float, float], most: int = MOST_CELLS) -> Arrangement:
    """The cells of lines a x + b y + c = 0, rows (a, b, c), in the window (left, right, bottom, top).

    >>> found = arrange(np.array([[1.0, 0, -0.5], [0, 1, -0.25]]), (0, 1, 0, 1))
    >>> len(found), sorted(found.areas().tolist())
    (4, [0.125, 0.125, 0.375, 0.375])
    """
    left, right, bottom, top = window
    wide, high = right - left, top - bottom
    if not (wide > 0 and high > 0 and np.isfinite([wide, high]).all()):
        raise UsageError(f"the window from {left:g} to {right:g} and from {bottom:g} to {top:g} has no inside")
    # On the unit square, with normals of length 1, distances mean the same for every line.
    a, b, c = np.asarray(lines, np.float64).reshape(-1, 3).T
    unit = np.column_stack([a * wide, b * high, a * left + b * bottom + c])
    length = np.hypot(unit[:, 0], unit[:, 1])
    known = np.flatnonzero(length > 0)
    unit = unit[known] / length[known, None]
    order = np.random.default_rng(0).permutation(len(unit))  # so that cuts are about even in whatever order lines come
    begin, corner, edge, cells = _cut_up(unit[order], NEAR, most)
    if cells > most:
        raise UsageError(f"{len(lines)} flip boundaries make more than {most:,} cells here: choose a smaller window")
    names = np.concatenate([known[order], [-4, -3, -2, -1]])
    return Arrangement(begin, corner * [wide, high] + [left, bottom], names[edge])


@kernel
def _cut_up(lines: Floats, near: float, most: int) -> tuple[Ints, Floats, Ints, int]:
    """(begin, corners, edges, number) of all cells in the unit square; stops with more than `most`."""
    begin, cells = np.zeros(64, np.int64), 0
    corner, edge, used = np.empty((256, 2)), np.empty(256, np.int64), 0
    # What is still to be cut: polygon i owns open_corner[corners[i]:corners[i + 1]] and open_line[crossed[i]: ...].
    open_corner, open_edge = np.zeros((256, 2)), np.zeros(256, np.int64)
    open_line = np.arange(max(len(lines), 1))
    corners, crossed, count = np.zeros(len(lines) + 8, np.int64), np.zeros(len(lines) + 8, np.int64), 1
    open_corner[1, 0], open_corner[2, 0], open_corner[2, 1], open_corner[3, 1] = 1.0, 1.0, 1.0, 1.0
    open_edge[:4] = np.array([-4, -3, -2, -1])
    corners[1], size = 4, 0
    for i in range(len(lines)):
        if _crosses(lines[i], open_corner[:4], near):
            open_line[size] = i
            size += 1
    crossed[1] = size
    while count > 0 and cells <= most:
        count -= 1
        polygon = open_corner[corners[count] : corners[count + 1]].copy()
        sides = open_edge[corners[count] : corners[count + 1]].copy()
        own = open_line[crossed[count] : crossed[count + 1]].copy()
        if len(own) == 0:
            corner, edge = _room(corner, used + len(polygon)), _room_for(edge, used + len(polygon))
            corner[used : used + len(polygon)], edge[used : used + len(polygon)] = polygon, sides
            used, cells = used + len(polygon), cells + 1
            begin = _room_for(begin, cells + 1)
            begin[cells] = used
            continue
        for side in (1.0, -1.0):
            part, part_sides = _half(polygon, sides, lines[own[0]], own[0], side, near)
            at, to = corners[count], crossed[count]
            open_corner, open_edge = _room(open_corner, at + len(part)), _room_for(open_edge, at + len(part))
            open_corner[at : at + len(part)], open_edge[at : at + len(part)] = part, part_sides
            open_line = _room_for(open_line, to + len(own))
            for i in own[1:]:
                if _crosses(lines[i], part, near):
                    open_line[to] = i
                    to += 1
            count += 1
            corners, crossed = _room_for(corners, count + 1), _room_for(crossed, count + 1)
            corners[count], crossed[count] = at + len(part), to
    return begin[: cells + 1], corner[:used], edge[:used], cells


@kernel
def _room(array: Floats, size: int) -> Floats:
    """The array, or a longer copy of it."""
    if size <= len(array):
        return array
    out = np.empty((2 * size, 2))
    out[: len(array)] = array
    return out


@kernel
def _room_for(array: Ints, size: int) -> Ints:
    if size <= len(array):
        return array
    out = np.zeros(2 * size, np.int64)
    out[: len(array)] = array
    return out


@kernel
def _crosses(line: Floats, polygon: Floats, near: float) -> bool:
    """Whether the polygon has corners on both sides."""
    above, below = False, False
    for i in range(len(polygon)):
        away = line[0] * polygon[i, 0] + line[1] * polygon[i, 1] + line[2]
        above, below = above or away > near, below or away < -near
    return above and below


@kernel
def _half(polygon: Floats, sides: Ints, line: Floats, number: int, side: float, near: float) -> tuple[Floats, Ints]:
    """The part of a polygon on one side of a line that crosses it, and the lines of its edges."""
    out, edges, count = np.empty((len(polygon) + 2, 2)), np.empty(len(polygon) + 2, np.int64), 0
    for i in range(len(polygon)):
        j = i + 1 if i + 1 < len(polygon) else 0
        here = side * (line[0] * polygon[i, 0] + line[1] * polygon[i, 1] + line[2])
        there = side * (line[0] * polygon[j, 0] + line[1] * polygon[j, 1] + line[2])
        if here >= -near:
            out[count], edges[count] = polygon[i], sides[i]
            if here <= near and there < -near:  # a corner on the line, from which the border leaves this side
                edges[count] = number
            count += 1
        if (here > near and there < -near) or (here < -near and there > near):
            share = here / (here - there)
            out[count] = polygon[i] + share * (polygon[j] - polygon[i])
            edges[count] = number if here > near else sides[i]
            count += 1
    return out[:count], edges[:count]
