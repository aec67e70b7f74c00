"""Cells of the plane against brute force: the measure at random points, and flips at every boundary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.candidates import Candidates
from fliprank.data.order import order_rows
from fliprank.errors import UsageError
from fliprank.landscape.arrangement import arrange
from fliprank.landscape.regions import Regions, regions, score_regions
from fliprank.measures import parse_measure
from fliprank.models import Linear, Network

WINDOW = (-2.0, 2.0, -1.5, 1.0)


def plane(seed: int, sizes: tuple[int, ...] = (7, 1, 6), coincident: bool = False) -> Regions:
    rng = np.random.default_rng(seed)
    count = sum(sizes)
    rows = Candidates.of(rng.integers(0, 3, count), group=list(sizes), docids=[f"d{i}" for i in rng.permutation(count)])
    values = rng.integers(-3, 4, (3, count)).astype(float) if coincident else rng.normal(size=(3, count))
    name = ["AP", "nDCG@3", "RR", "P@2", "ESL"][seed % 5]
    return score_regions(*values, rows, name, WINDOW)


def brute(found: Regions, x: float, y: float) -> float:
    return found.measure.aggregate(found.measure.per_query(found.scores(x, y), found.candidates))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_value_of_a_cell_is_the_measure_at_every_point_of_it(seed: int, coincident: bool) -> None:
    found = plane(seed, coincident=coincident)
    rng = np.random.default_rng(seed)
    assert found.cells.areas().sum() == pytest.approx(4 * 2.5)
    assert (found.cells.areas() > 0).all()
    for _ in range(30):
        x, y = rng.uniform(WINDOW[::2], WINDOW[1::2])
        assert found.at(x, y) == pytest.approx(brute(found, x, y), abs=1e-12)


def general(a: np.ndarray, window: tuple[float, float, float, float]) -> int:
    """Cells of lines in general position: 1 + lines that cross the window + crossings inside it."""
    left, right, bottom, top = window
    corners = np.array([[x, y, 1] for x in (left, right) for y in (bottom, top)])
    inside = [line for line in a if (corners @ line).min() < 0 < (corners @ line).max()]
    count = 1 + len(inside)
    for i, one in enumerate(inside):
        for other in inside[:i]:
            x, y = np.linalg.solve([one[:2], other[:2]], [-one[2], -other[2]])
            count += left < x < right and bottom < y < top
    return count


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 25))
def test_lines_in_general_position_make_as_many_cells_as_euler_says(seed: int, count: int) -> None:
    lines = np.random.default_rng(seed).normal(size=(count, 3))
    assert len(arrange(lines, WINDOW)) == general(lines, WINDOW)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_across_each_boundary_two_neighbours_in_the_ranking_swap(seed: int) -> None:
    found = plane(seed)
    lines, rows = found.boundaries, found.candidates
    assert len(found.segments) >= len(lines)
    for i in range(len(found.segments)):
        start, end, line = found.segments.start[i], found.segments.end[i], int(found.segments.line[i])
        if np.hypot(*(end - start)) < 1e-4:
            continue
        middle, normal = (start + end) / 2, lines.line[line, :2]
        ranks = []
        for side in (1, -1):
            scores = found.scores(*(middle + side * 1e-7 * normal))
            rank = np.empty(len(rows), int)
            rank[order_rows(scores, rows.offsets, rows.docids)] = np.arange(len(rows))
            ranks.append(rank)
        up, down = lines.first[lines.begin[line]], lines.second[lines.begin[line]]
        assert ranks[0][up] < ranks[0][down]  # on the positive side the first leads
        assert ranks[1][up] > ranks[1][down]
        # Neighbours, but for documents of equal label, whose boundaries were left out.
        for rank in ranks:
            assert abs(rank[up] - rank[down]) == 1
        positive, negative = found.segments.cell[i]
        assert found.cell_at(*(middle + 1e-7 * normal)) == positive
        assert found.cell_at(*(middle - 1e-7 * normal)) == negative
        better = lines.kind[lines.begin[line]] * (found.values[positive] - found.values[negative])
        assert better * (-1 if found.measure.smaller_is_better else 1) >= -1e-12  # Assertion 1


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_regions_are_connected_and_optima_have_lesser_neighbours(seed: int) -> None:
    found = plane(seed)
    every = found.all()
    assert sum(region.area for region in every) == pytest.approx(10)
    for region in every:
        assert np.ptp(found.values[region.cells]) <= 1e-12
    sign = -1 if found.measure.smaller_is_better else 1
    optima = found.optima()
    best = found.best()
    assert best[0].value == pytest.approx(sign * (sign * found.values).max())
    numbers = {region.number for region in optima}
    for region in every:
        beyond = [
            sign * found.values[pair[1 - k]]
            for pair in found.segments.cell
            for k in (0, 1)
            if found.region[pair[k]] == region.number != found.region[pair[1 - k]]
        ]
        assert (region.number in numbers) == all(value < sign * region.value for value in beyond)


def test_boundaries_of_three_documents_meet_in_a_point() -> None:
    rng = np.random.default_rng(3)
    rows = Candidates.of([1, 0, 2], docids=["a", "b", "c"])
    found = score_regions(*rng.normal(size=(3, 3)) / [[4], [1], [1]], rows, "nDCG", (-9, 9, -9, 9))
    assert len(found.cells) == 6  # three lines through one point, not seven cells of three lines
    assert sorted(found.boundaries.name(i) for i in range(3)) == ["a,b", "a,c", "b,c"]
    assert len({tuple(found.ranking(cell)) for cell in range(6)}) == 6


def test_documents_alike_share_their_boundary() -> None:
    rows = Candidates.of([1, 0, 0], docids=["a", "b", "c"])
    found = score_regions([0, 0, 0], [1, 0, 0], [0, 1, 1], rows, "AP", (-1, 1, -1, 1))
    assert len(found.boundaries) == 1
    assert np.diff(found.boundaries.begin).tolist() == [2]
    assert sorted(found.values) == [pytest.approx(1 / 3), 1.0]


def test_a_model_is_cut_up_in_the_plane_of_two_of_its_parameters() -> None:
    rng = np.random.default_rng(0)
    rows = Candidates.of(rng.integers(0, 2, 30), group=[15, 15], features=rng.normal(size=(30, 3)))
    model = Linear().prepared(rows, 0)
    found = regions(model, rows, ("w.1", "w.3"), "AP", (-1, 1, -1, 1))
    measure = parse_measure("AP")
    for x, y in rng.uniform(-1, 1, (20, 2)):
        there = model.at(model.params.replace({"w.1": x, "w.3": y}))
        assert found.at(x, y) == pytest.approx(measure.aggregate(measure.per_query(there.score(rows), rows)))
    assert regions(model, rows, ("w.1", "w.3"), "AP").window[1] == model.params["w.1"] + 2
    with pytest.raises(UsageError, match="linear in"):
        regions(Network(hidden=2).prepared(rows, 0), rows, ("w32.1", "w21.1.1"), "AP")
    with pytest.raises(UsageError, match="smaller window"):
        regions(model, rows, ("w.1", "w.3"), "AP", most=100)
    with pytest.raises(UsageError, match="outside"):
        found.at(2, 0)
    with pytest.raises(UsageError, match="no inside"):
        regions(model, rows, ("w.1", "w.3"), "AP", (1, 1, 0, 1))
