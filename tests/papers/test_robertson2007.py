"""Robertson & Zaragoza 2007: the examples are what the paper says, and counts agree with plain computations."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from fliprank.data.candidates import Candidates
from fliprank.landscape import trajectory
from fliprank.landscape.theorem import compare_optima
from fliprank.models import Linear
from fliprank.papers import PARTS, Finding, Setting
from fliprank.papers.robertson2007.conditions import coinciding, meetings, twins
from fliprank.papers.robertson2007.examples import WEIGHTS, _dominates, example_1, example_2, paths_1, ranks_1
from fliprank.papers.robertson2007.optima import GRID, _described, _slopes, binary

pytestmark = pytest.mark.long


def found(name: str) -> Finding:
    return PARTS["robertson2007", name].run(Setting(quick=True))


def test_example_1_has_the_optima_that_the_paper_says() -> None:
    rows, features = example_1()
    assert len(rows) == 102
    assert rows.labels.tolist() == [2.0, 1.0, *[0.0] * 100]
    told = found("figure2")
    assert [row[1] for row in told.rows] == [7, 7, 8, 8]
    assert told.verdict == "holds"
    assert found("figure1").verdict == "holds"
    # By brute force: the best AP on a fine grid of weights, from ranks alone.
    weights = np.linspace(*WEIGHTS, 20_001)
    scores = features[:, :1] + features[:, 1:] * weights
    ranks = np.sort((scores[None] > scores[:2, None]).sum(axis=1) + 1, axis=0)
    precision = (1 / ranks[0] + 2 / ranks[1]) / 2
    assert told.rows[0][2] == pytest.approx(precision.max())
    assert weights[precision.argmax()] == pytest.approx(0.8, abs=0.05)


def test_example_1_the_flip_of_a_and_b_is_all_that_divides_the_measures() -> None:
    paths = paths_1()
    same = compare_optima([paths["AP"], paths["NDCG(1)"]])
    assert same.same_flips
    assert same.share
    assert compare_optima([paths["NDCG(3)"], paths["NDCG(10)"]]).share
    parted = compare_optima([paths["AP"], paths["NDCG(3)"]])
    assert {round(d.x, 2) for d in parted.differences} == {2.82}
    assert parted.theorem_holds


def better_places(a: int, b: int) -> set[tuple[int, int]]:
    """All ranks of a and b that good flips lead to, one flip after another: of the rows above, the lowest flips."""
    seen, todo = set(), [(a, b)]
    while todo:
        a, b = todo.pop()
        moves = [(a - 1, b) if a - 1 != b else (a - 1, b + 1)] if a > 1 else []
        moves += [(a, b - 1)] if b > 1 and b - 1 != a else []  # b over a would be a bad flip
        new = set(moves) - seen
        seen |= new
        todo += new
    return seen


def test_good_flips_alone_lead_to_what_dominates() -> None:
    places = [(a, b) for a in range(1, 8) for b in range(1, 8) if a != b]
    for other in places:
        reached = better_places(*other)
        assert {place for place in places if _dominates(place, other)} == reached


def test_example_1_an_optimum_that_is_dominated_is_best_for_no_measure() -> None:
    told = found("example1")
    reached = {ranks_1(weight) for weight in np.linspace(*WEIGHTS, 4001)}
    for _, a, b, better, wanted in told.rows:
        assert isinstance(a, int)
        assert isinstance(b, int)
        assert (better != "none") == bool(better_places(a, b) & reached)
        if better != "none":
            assert not wanted


def test_example_2_the_notes_are_true() -> None:
    assert [row[2] for row in found("example2").rows] == ["yes"] * 6
    plain = example_2({"a": 1, "b": 1}, "AP")
    assert len(plain.cells) == 18
    assert len(plain.boundaries) == 6
    assert {row[0] for row in found("figure3").rows} == {
        *("abdc", "badc"),
        *("abcd", "bacd", "adbc", "bdac", "cabd", "cbad", "acbd", "bcad"),
        *("acdb", "bcda", "adcb", "bdca", "dabc", "dbac", "dacb", "dbca"),
    }


def test_example_2_measures_that_ignore_flips_extend_the_optimum() -> None:
    area = {name: example_2({"a": 1, "b": 1}, name).best()[0].area for name in ("AP", "nDCG", "P@1", "RR", "P@2")}
    assert area["AP"] == pytest.approx(area["nDCG"])
    assert area["AP"] == pytest.approx(area["P@2"])
    assert area["P@1"] == pytest.approx(area["RR"])
    assert area["P@1"] > 10 * area["AP"]


@pytest.fixture
def rows() -> Candidates:
    """Three queries; the first has two twins of unlike label, the second two of equal label."""
    rng = np.random.default_rng(3)
    features = rng.integers(0, 9, (18, 3)).astype(float)
    features[:6] += 20 * np.eye(6, 3)  # no two alike
    features[1], features[7] = features[0], features[6]
    labels = [1, 0, 2, 0, 0, 0, 1, 1, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0]
    return Candidates.of(labels, group=[6, 6, 6], features=features)


def test_twins_are_counted_as_by_hand(rows: Candidates) -> None:
    assert rows.features is not None
    with_twin, unlike = set(), 0
    for q in range(3):
        for i, j in combinations(range(6 * q, 6 * q + 6), 2):
            if (rows.features[i] == rows.features[j]).all():
                with_twin |= {i, j}
                unlike += rows.labels[i] != rows.labels[j]
    model = Linear().prepared(rows, 0)
    assert {0, 1, 6, 7} <= with_twin
    model = model.at(model.params.with_free(np.array([0.0, 1.0, 0.7, -0.4])))
    assert twins(model, rows) == (len(with_twin), unlike)


def test_boundaries_that_coincide_are_counted_as_by_hand(rows: Candidates) -> None:
    assert rows.features is not None
    normals = []
    for q in range(3):
        for i, j in combinations(range(6 * q, 6 * q + 6), 2):
            apart = rows.features[i].astype(float) - rows.features[j]
            if rows.labels[i] != rows.labels[j] and apart.any():
                normals.append(apart)
    alone = [all(np.cross(one, two).any() for two in normals if two is not one) for one in normals]
    assert coinciding(rows) == (len(normals), pytest.approx(100 * (1 - np.mean(alone))))


def test_points_where_lines_meet_are_counted() -> None:
    window = (-2.0, 2.0, -2.0, 2.0)
    through_the_middle = [[1.0, 0, 0], [0, 1.0, 0], [1.0, -1.0, 0]]  # x = 0, y = 0, x = y
    assert meetings(np.array(through_the_middle), window) == (0, 1)
    beside = [[1.0, 0, -1.0]]  # x = 1: meets y = 0 and x = y, and is parallel to x = 0
    assert meetings(np.array(through_the_middle + beside), window) == (2, 1)
    assert meetings(np.array([*through_the_middle, [1.0, 0, -3.0]]), window) == (0, 1)  # outside the window


def test_a_line_is_described_as_a_fine_grid_sees_it(rows: Candidates) -> None:
    model = Linear().prepared(rows, 0)
    path = trajectory(model, rows, [0.0, 1.0, -0.5, 0.25], "AP", -3.0, 3.0)
    optima, height, width, variation, coarse, seen = _described(path)
    fine = [path.at(x) for x in np.linspace(-3, 3, 200_001)]
    assert variation == pytest.approx(np.abs(np.diff(fine)).sum())
    assert coarse <= variation + 1e-12
    assert seen <= len(path.breaks)
    assert optima == len(path.local_maxima())
    assert width == pytest.approx(np.mean(np.isclose(fine, max(fine))) * 6, abs=1e-3)
    kept = np.array(fine)[np.append(True, np.diff(fine) != 0)]
    peaks = [i for i in range(1, len(kept) - 1) if kept[i] > kept[i - 1] and kept[i] > kept[i + 1]]
    assert height == pytest.approx(np.mean([kept[i] - max(kept[i - 1], kept[i + 1]) for i in peaks]))
    assert GRID < 200_001


def test_slopes_are_powers() -> None:
    assert _slopes([("AP", n, n**2.0, 3 / n, 1.0, 1.0, n**-0.5, 1.0) for n in (5, 50, 500)]) == pytest.approx(
        [2, -1, 0, 0, -0.5, 0], abs=1e-9
    )


def test_unjudged_documents_stay_so_where_labels_become_binary() -> None:
    rows = Candidates.of([2.0, 1.0, 0.0, float("nan")])
    assert binary(rows).labels.tolist()[:3] == [1.0, 1.0, 0.0]
    assert np.isnan(binary(rows).labels[3])
