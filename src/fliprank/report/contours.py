"""Contours of values on a grid: where they pass a level, as few long lines (marching squares)."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from fliprank.arrays import Floats

__all__ = ["contours", "levels_of"]

Point = tuple[int, int, int]
"""An edge of the grid: row, column, and 0 if it runs along the row, 1 if along the column."""


def levels_of(values: Floats, count: int = 10) -> Floats:
    """Levels between even ones and quantiles, nearer to these: so flat parts of a surface, which are large, show lines.

    >>> levels_of(np.array([[0.0, 1.0]]), 4).round(2).tolist()
    [0.18, 0.39, 0.61, 0.82]
    """
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if not low < high:
        return np.empty(0)
    spread: Floats = np.quantile(values[np.isfinite(values)], (np.arange(count) + 1) / (count + 1))
    even = low + (high - low) * (np.arange(count) + 0.5) / count
    return np.unique(0.7 * spread + 0.3 * even)


def contours(x: Floats, y: Floats, values: Floats, level: float) -> list[Floats]:
    """The lines on which values[j, i], at (x[i], y[j]), pass `level`; each an array of points. Closed ones come back.

    >>> [line.tolist() for line in contours(np.array([0.0, 1]), np.array([0.0, 1]), np.array([[0.0, 1], [0, 1]]), 0.25)]
    [[[0.25, 0.0], [0.25, 1.0]]]
    """
    above = values > level
    links: dict[Point, list[Point]] = defaultdict(list)
    mixed = np.argwhere(
        (above[:-1, :-1] != above[1:, 1:]) | (above[:-1, 1:] != above[1:, :-1]) | (above[:-1, :-1] != above[:-1, 1:])
    )
    for j, i in mixed.tolist():
        edges: list[Point] = [(j, i, 0), (j, i + 1, 1), (j + 1, i, 0), (j, i, 1)]  # bottom, right, top, left
        corners = [above[j, i], above[j, i + 1], above[j + 1, i + 1], above[j + 1, i]]
        cut = [edges[k] for k in range(4) if corners[k] != corners[(k + 1) % 4]]
        if len(cut) == 4 and (values[j : j + 2, i : i + 2].mean() > level) == corners[0]:
            cut = cut[1:] + cut[:1]  # a saddle: the middle says which corners belong together
        for one, two in zip(cut[::2], cut[1::2], strict=True):
            links[one].append(two)
            links[two].append(one)
    return [_points(line, x, y, values, level) for line in _chained(links)]


def _chained(links: dict[Point, list[Point]]) -> list[list[Point]]:
    """Segments put end to end: first the lines that have ends, then the closed ones."""
    lines = []
    for start in sorted(links, key=lambda point: len(links[point])):
        while links[start]:
            line = [start]
            while links[line[-1]]:
                ahead = links[line[-1]].pop()
                links[ahead].remove(line[-1])
                line.append(ahead)
            lines.append(line)
    return lines


def _points(line: list[Point], x: Floats, y: Floats, values: Floats, level: float) -> Floats:
    j, i, upright = np.array(line).T
    j2, i2 = j + upright, i + 1 - upright
    share = (level - values[j, i]) / (values[j2, i2] - values[j, i])
    points: Floats = np.column_stack([x[i] + share * (x[i2] - x[i]), y[j] + share * (y[j2] - y[j])])
    return points
