"""Regions of optimum in a plane of two parameters, with the flip boundaries that bound them (R & Z 2007, appendix).

Scores are base + x u + y v. The flip boundary of two documents of a query is the straight line on which they tie.
These lines divide the plane into cells, in each of which every ranking, and so the measure, is constant. Neighbouring
cells of equal value form a region: it is an optimum if the measure is less beyond each of its boundaries.

>>> rows = Candidates.of([1, 0], docids=["a", "c"])
>>> found = score_regions([0, 0], [1, 0], [0, 1], rows, "RR", window=(-1, 1, -1, 1))
>>> found.values.tolist(), [(best.value, best.area) for best in found.optima()]
([0.5, 1.0], [(1.0, 2.0)])
>>> found.boundaries.name(0)
'a,c'
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.order import order_rows
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import UsageError
from fliprank.landscape.arrangement import MOST_CELLS, Arrangement, arrange
from fliprank.landscape.batch import values_at
from fliprank.landscape.boundaries import Boundaries, Plane, find_boundaries
from fliprank.landscape.direction import direction_of, finite_reach
from fliprank.landscape.flips import line_of
from fliprank.landscape.neighbours import Segments, find_segments
from fliprank.measures import Measure, parse_measure
from fliprank.models.base import Model

__all__ = ["Region", "Regions", "regions", "score_regions"]

SAME = 1e-12
"""Values closer than this are equal."""

Window = tuple[float, float, float, float]
"""Left, right, bottom, top."""


class Region(NamedTuple):
    """Neighbouring cells of one value; `lines` are the flip boundaries that bound it, `clipped` if the window does."""

    number: int
    value: float
    cells: Ints
    area: float
    lines: Ints
    clipped: bool


@dataclass(frozen=True, eq=False)
class Regions:
    """Cells of the plane, the measure in each, and the number of the region that each belongs to.

    `segments` are the edges between neighbouring cells.
    """

    base: Floats
    u: Floats
    v: Floats
    candidates: Candidates
    measure: Measure
    window: Window
    boundaries: Boundaries
    cells: Arrangement
    values: Floats
    segments: Segments
    region: Ints

    def scores(self, x: float, y: float) -> Floats:
        """The score of each row at a point."""
        return self.base + x * self.u + y * self.v

    def polygon(self, cell: int) -> Floats:
        """The corners of a cell, counter-clockwise."""
        return self.cells.corner[self.cells.begin[cell] : self.cells.begin[cell + 1]]

    def ranking(self, cell: int, query: int = 0) -> list[int]:
        """The rows of a query as they rank in a cell."""
        x, y = self.middles[cell]
        order = order_rows(self.scores(x, y), self.candidates.offsets, self.candidates.docids)
        return [int(row) for row in order[self.candidates.offsets[query] : self.candidates.offsets[query + 1]]]

    @cached_property
    def middles(self) -> Floats:
        """A point inside each cell."""
        return self.cells.middles()

    def cell_at(self, x: float, y: float) -> int:
        """The cell of a point within the window."""
        left, right, bottom, top = self.window
        if not (left <= x <= right and bottom <= y <= top):
            raise UsageError(f"({x:g}, {y:g}) is outside the window")
        after = np.arange(1, len(self.cells.corner) + 1)
        after[self.cells.begin[1:] - 1] = self.cells.begin[:-1]
        ahead = self.cells.corner[after] - self.cells.corner
        left_of = ahead[:, 0] * (y - self.cells.corner[:, 1]) - ahead[:, 1] * (x - self.cells.corner[:, 0])
        return int(np.minimum.reduceat(left_of / np.hypot(*ahead.T), self.cells.begin[:-1]).argmax())

    def at(self, x: float, y: float) -> float:
        """The measure at a point, which is on no boundary."""
        return float(self.values[self.cell_at(x, y)])

    def all(self) -> list[Region]:
        """All regions, by number."""
        return self._described(np.arange(self._count))

    @property
    def _count(self) -> int:
        return int(self.region.max(initial=-1)) + 1

    def _described(self, numbers: Ints) -> list[Region]:
        """What bounds the regions of these numbers, and how large they are."""
        area = np.bincount(self.region, self.cells.areas(), self._count)
        clipped = np.zeros(self._count, bool)
        owner = np.repeat(self.region, np.diff(self.cells.begin))
        clipped[owner[self.cells.edge < 0]] = True
        cells, cell_begin = _grouped(self.region, self._count)
        sides = self.region[self.segments.cell]
        outer = sides[:, 0] != sides[:, 1]
        pairs = np.unique(np.column_stack([sides[outer].T.ravel(), np.tile(self.segments.line[outer], 2)]), axis=0)
        bounding, line_begin = _grouped(pairs[:, 0], self._count)
        out = []
        for n in numbers.tolist():
            own = cells[cell_begin[n] : cell_begin[n + 1]]
            lines = pairs[bounding[line_begin[n] : line_begin[n + 1]], 1]
            out.append(Region(n, float(self.values[own[0]]), own, float(area[n]), lines, bool(clipped[n])))
        return out

    def optima(self) -> list[Region]:
        """Regions whose neighbours are all worse, the best first, of equal ones the largest."""
        sign = self.measure.sign
        value = sign * self.values
        one, two = self.segments.cell.T
        beaten = np.zeros(self._count, bool)
        beaten[self.region[one[value[one] < value[two] - SAME]]] = True
        beaten[self.region[two[value[two] < value[one] - SAME]]] = True
        found = self._described(np.flatnonzero(~beaten))
        return sorted(found, key=lambda region: (-sign * region.value, -region.area))

    def best(self) -> list[Region]:
        """The regions with the best value in the window."""
        found = self.optima()
        return [region for region in found if abs(region.value - found[0].value) <= SAME]


def score_regions(
    base: ArrayLike,
    u: ArrayLike,
    v: ArrayLike,
    candidates: Candidates,
    measure: str | Measure,
    window: Window,
    *,
    neutral: bool = False,
    most: int = MOST_CELLS,
) -> Regions:
    """The regions of scores base + x u + y v in a window: left, right, bottom, top.

    Boundaries of documents with equal labels change no measure and are left out, unless `neutral` is true.
    """
    start, first = line_of(base, u, candidates, -np.inf, np.inf)[:2]
    second = line_of(base, v, candidates, -np.inf, np.inf).slope
    chosen = parse_measure(measure)
    boundaries = find_boundaries(Plane(start, first, second), candidates, window, neutral)
    cells = arrange(boundaries.line, window, most)
    points = cells.middles()
    values = values_at(lambda i: start + points[i, 0] * first + points[i, 1] * second, len(points), candidates, chosen)
    segments = find_segments(cells, boundaries.line, window)
    one, two = segments.cell.T
    region = _connected(len(cells), segments.cell[np.abs(values[one] - values[two]) <= SAME])
    return Regions(start, first, second, candidates, chosen, window, boundaries, cells, values, segments, region)


def _grouped(numbers: Ints, count: int) -> tuple[Ints, Ints]:
    """Indices by their number: those with n are order[begin[n]:begin[n + 1]]."""
    return np.argsort(numbers, kind="stable"), bounds(np.bincount(numbers, minlength=count))


def _connected(cells: int, links: Ints) -> Ints:
    """The number of the component of each cell."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(len(links)), links.T), shape=(cells, cells))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


def regions(
    model: Model,
    candidates: Candidates,
    parameters: tuple[str, str],
    measure: str | Measure = DEFAULT_MEASURE,
    window: Window | None = None,
    *,
    most: int = MOST_CELLS,
) -> Regions:
    """The regions of a model in the plane of two of its parameters, in whose values the window is.

    By default the window reaches to the bounds, or where there are none by twice the value's size to either side.
    """
    params = model.params
    along = [direction_of(params, name) for name in parameters]
    if not all(model.linear_along(direction) for direction in (*along, along[0] + along[1])):
        raise UsageError(f"regions need scores that are linear in {' and '.join(parameters)}: use `surface` instead")
    values = [params[name] for name in parameters]
    u, v = (model.slope(candidates, direction) for direction in along)
    base = model.score(candidates) - values[0] * u - values[1] * v
    if window is None:
        reaches = [finite_reach(params, params.free_values, direction) for direction in along]
        (left, right), (bottom, top) = (np.add(value, ends) for value, ends in zip(values, reaches, strict=True))
        window = (left, right, bottom, top)
    return score_regions(base, u, v, candidates, measure, window, most=most)
