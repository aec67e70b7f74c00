"""The exact trajectory of every measure against the measure itself, evaluated between every two neighbouring flips."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lines import Line, between, crossings, line, lines

from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.landscape import Trajectory, score_trajectory, trajectory
from fliprank.landscape.step_function import ascending
from fliprank.measures import Measure, parse_measure
from fliprank.models import Linear, Network, Parameters

NAMES = [
    "nDCG",
    "nDCG@1",
    "nDCG@3",
    "nDCG@10",
    "nDCG(dcg='exp-log2')@5",
    "nDCG(judged_only=True)@3",
    "DCG@4",
    "DCG(dcg='exp-letor')",
    "AP",
    "AP@1",
    "AP@3",
    "AP(rel=2)@5",
    "AP(judged_only=True)",
    "AP(norm='cutoff')@2",
    "P@1",
    "P@2",
    "P@5",
    "P(judged_only=True)@3",
    "R@1",
    "R@4",
    "RR",
    "RR@2",
    "RR(rel=2)@3",
    "Success@1",
    "Success@3",
    "Rprec",
    "Rprec(judged_only=True)",
    "Bpref",
    "Bpref(rel=2)",
    "ERR",
    "ERR@1",
    "ERR@3",
    "RBP",
    "RBP(p=0.5)@3",
    "RBP(rel=1)",
    "Judged@3",
    "CorrectPairs",
    "GMAP",
    "GMAP(rel=2)",
    "GMAP(eps=0.2)",
    "GM(nDCG@3,eps=0.1)",
    "nDCG(discount=-0.5)",
    "nDCG(discount=0.3)@3",
]
MEASURES = [parse_measure(name) for name in NAMES]


def value(measure: Measure, line: Line, x: float) -> float:
    return measure.aggregate(measure.per_query(line.base + x * line.slope, line.rows))


def follow(line: Line, measure: Measure, low: float = -np.inf, high: float = np.inf) -> Trajectory:
    return score_trajectory(line.base, line.slope, line.rows, measure, low, high)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@settings(max_examples=15, deadline=None)
@given(lines())
def test_between_any_two_flips_the_trajectory_is_the_measure(measure: Measure, line: Line) -> None:
    every = crossings(line)
    for low, high in ((-np.inf, np.inf), (-1.0, 0.75)):
        path = follow(line, measure, low, high)
        for x in between(every, low, high):
            each = measure.per_query(line.base + x * line.slope, line.rows)
            np.testing.assert_allclose(path.at(x), measure.aggregate(each), rtol=0, atol=1e-12)
            np.testing.assert_allclose(path.per_query(x), each, rtol=0, atol=1e-12)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), coincident=st.booleans())
def test_long_queries_lose_no_document_that_matters(measure: Measure, seed: int, coincident: bool) -> None:
    rng = np.random.default_rng(seed)
    many = line(rng, [90, 0, 60], coincident)
    path = follow(many, measure)
    for x in rng.choice(between(crossings(many)), 40):
        np.testing.assert_allclose(path.at(x), value(measure, many, x), rtol=0, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(lines(), st.sampled_from(MEASURES))
def test_every_break_is_a_flip_where_the_measure_changes(line: Line, measure: Measure) -> None:
    path = follow(line, measure)
    assert np.isin(path.breaks, crossings(line)).all()
    assert np.all(np.diff(path.breaks) > 0)
    assert np.all(np.abs(np.diff(path.values)) > 1e-14)
    assert len(path.values) == len(path.breaks) + 1


@settings(max_examples=60, deadline=None)
@given(lines(coincident=True), st.sampled_from(MEASURES))
def test_on_a_break_the_tie_rule_decides(line: Line, measure: Measure) -> None:
    path = follow(line, measure)
    for x in path.breaks:
        assert path.at(x) == value(measure, line, x)


@pytest.mark.parametrize("name", ["nDCG@5", "AP", "RR", "Bpref", "GMAP", "CorrectPairs", "ESL"])
def test_the_maximum_never_loses_to_a_grid(name: str) -> None:
    measure = parse_measure(name)
    some = line(np.random.default_rng(1), [12, 9, 14], coincident=False, every=True)
    path = follow(some, measure)
    sign = -1 if measure.smaller_is_better else 1
    grid = [value(measure, some, x) for x in np.linspace(-8, 8, 10_000)]
    assert sign * path.maximum.value >= max(sign * np.array(grid)) - 1e-12
    assert value(measure, some, path.best_point()) == pytest.approx(path.maximum.value, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(lines(coincident=False), st.sampled_from(["ESL", "ESL(n=2)"]))
def test_search_length_follows_the_law_where_no_documents_tie(line: Line, name: str) -> None:
    line.base += np.random.default_rng(0).normal(size=len(line.base)) / 100
    path, measure = follow(line, parse_measure(name)), parse_measure(name)
    for x in between(crossings(line)):
        assert path.at(x) == pytest.approx(value(measure, line, x), abs=1e-12)


def peaks(path: Trajectory) -> list[tuple[float, float]]:
    return [(peak.low, peak.high) for peak in path.local_maxima()]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_measures_that_respond_to_the_same_flips_share_all_local_optima(seed: int) -> None:
    """Theorem 1: along a line in general position only one flip happens at a time."""
    rng = np.random.default_rng(seed)
    rows = Candidates.of(rng.integers(0, 2, 60), group=[25, 15, 20])
    base, slope = rng.normal(size=(2, 60))
    for same in (["AP", "nDCG", "DCG(gains={1:7})", "GMAP"], ["nDCG@5", "AP@5", "RBP(p=0.5)@5"]):
        first, *others = (peaks(score_trajectory(base, slope, rows, name)) for name in same)
        assert len(first) > 1
        assert all(other == first for other in others)


def test_example_1_of_the_paper() -> None:
    """One query, two relevant documents a (highly) and b, 100 others: only the flip of a and b divides the measures."""
    rng = np.random.default_rng(2007)
    base, slope = rng.normal(size=(2, 102))
    base[:2] += 1.0
    slope[:2] += 1.0
    rows = Candidates.of([2, 1] + [0] * 100)
    plain, three, ten = (f"nDCG(gains={{1:1,2:{gain}}})" for gain in (1, 3, 10))
    paths = {name: score_trajectory(base, slope, rows, name) for name in ("AP", plain, three, ten)}
    assert peaks(paths["AP"]) == peaks(paths[plain])
    assert len(peaks(paths["AP"])) >= 4
    np.testing.assert_array_equal(paths["AP"].breaks, paths[plain].breaks)
    np.testing.assert_array_equal(paths[three].breaks, paths[ten].breaks)
    own = (base[0] - base[1]) / (slope[1] - slope[0])
    np.testing.assert_array_equal(np.setdiff1d(paths[three].breaks, paths["AP"].breaks), [own])


def test_identical_documents_keep_the_order_of_the_tie_rule() -> None:
    rows = Candidates.of([1, 0, 0, 1], docids=["a", "b", "c", "d"])
    for name, values in (("RR", [0.5, 1.0]), ("P@1", [0.0, 1.0]), ("nDCG@1", [0.0, 1.0])):
        path = score_trajectory([0, 0, 1, 0], [1, 1, 0, -1], rows, name)  # b before a everywhere; d leads at the left
        assert path.values[0] == 1.0
        assert path.values[-1] == values[0]


def test_the_best_point_is_in_the_middle_of_the_widest_or_nearest_best_stretch() -> None:
    rows = Candidates.of([1, 0, 0])
    path = score_trajectory([0, 1, 3], [0, 1, -1], rows, "RR")  # first only where both others are below 0: nowhere
    assert path.maximum.value == 0.5
    assert [tuple(peak) for peak in path.local_maxima()] == [(0.5, -np.inf, -1.0), (0.5, 3.0, np.inf)]
    assert path.best_point(start=0.0) == path.best_point("nearest", start=0.0) == -5.0
    assert path.best_point(start=2.5) == path.best_point("nearest", start=2.5) == 7.0
    assert score_trajectory([0, 1, 3], [0, 1, -1], rows, "RR", -2, 3.5).best_point("nearest", start=3.0) == 3.25
    assert score_trajectory([0, 1, 3], [0, 1, -1], rows, "RR", -2, 3.5).best_point("widest", start=3.0) == -1.5
    assert score_trajectory([0, 1, 3], [1, 1, 1], rows, "RR").best_point(start=0.25) == 0.25


def test_a_stretch_that_the_window_cuts_off_is_no_local_optimum_unless_the_line_ends_there() -> None:
    rows = Candidates.of([1, 0, 0])
    base, slope = [0, 1, 3], [0, 1, -1]  # 1/2 up to -1, 1/3 up to 3, then 1/2
    cut = score_trajectory(base, slope, rows, "RR", -2, 3.5)
    assert cut.true_ends == (False, False)
    assert (cut.local_maxima(), [tuple(each) for each in cut.cut_off()]) == ([], [(0.5, -2, -1), (0.5, 3, 3.5)])
    assert cut.maximum.value == 0.5
    assert cut.counts() == ("0, 2 cut off", "2")
    half = score_trajectory(base, slope, rows, "RR", -2, 3.5, true_ends=(True, False))
    assert [tuple(each) for each in half.local_maxima()] == [(0.5, -2, -1)]
    assert [tuple(each) for each in half.cut_off()] == [(0.5, 3, 3.5)]
    inner = score_trajectory(base, slope, rows, "RR", -0.5, 2)  # one stretch: what is beyond is not known
    assert (len(inner.local_maxima()), len(inner.cut_off())) == (0, 1)


def test_of_a_model_the_line_ends_at_bounds_and_is_cut_off_elsewhere() -> None:
    rows = Candidates.of([1, 0, 0, 1], features=[[5, 0.3], [9, 0.1], [4, 0.2], [1, 0.9]])
    model = Linear().prepared(rows, 0)
    bounded = Parameters(model.params.names, [0, 0.5, 1.0], [-np.inf, 0, -np.inf], [np.inf, 2, np.inf])
    ends = {
        (None, None): (True, True),
        (-0.5, 1.0): (True, False),
        (-0.25, 1.5): (False, True),
        (-0.25, 1.0): (False, False),
    }
    for (low, high), expected in ends.items():
        assert trajectory(model.at(bounded), rows, "w.1", "AP", low, high).true_ends == expected
    assert trajectory(model, rows, "w.1", "AP").true_ends == (True, True)
    net = Network(hidden=2).prepared(rows, 0)
    assert trajectory(net, rows, "w21.1.1", "AP").true_ends == (False, False)


def test_what_has_no_steps_is_refused() -> None:
    rows = Candidates.of([1, 0])
    with pytest.raises(UsageError, match="does not change with ranks"):
        score_trajectory([1, 0], [0, 1], rows, "SetF")
    with pytest.raises(UsageError, match="not on the line"):
        score_trajectory([1, 0], [0, 1], rows, "AP", -1, 1).at(2)


def test_room_grows_where_every_document_has_its_day_at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that touch a parabola: each is the first somewhere, so there are far more steps than room at first."""
    rng = np.random.default_rng(0)
    place = rng.uniform(-10, 10, 330)
    bent = Line(-(place**2), 2 * place, Candidates.of(rng.integers(0, 3, 330), group=[300, 30]))
    monkeypatch.setattr("fliprank.landscape.steps.BLOCK", 100)  # and crossings come in many blocks
    for measure in map(parse_measure, ("nDCG@5", "RR@3", "AP")):
        path = follow(bent, measure)
        assert len(path.breaks) > 150
        for x in rng.choice(between(crossings(bent)), 50):
            assert path.at(x) == pytest.approx(value(measure, bent, x), abs=1e-12)


def test_steps_are_put_in_order_also_where_they_nearly_coincide() -> None:
    rng = np.random.default_rng(0)
    near = 1.0 + rng.permutation(3000) * 2.0**-52
    for x in (
        rng.normal(size=5000),
        near,
        np.concatenate([near[:20], -near[:20], [0.0, -0.0], np.arange(5e3)]),
        near[:0],
    ):
        np.testing.assert_array_equal(x[ascending(x)], np.sort(x))


def test_no_rows_and_no_queries_are_lines_too() -> None:
    for rows in (Candidates.of([]), Candidates.of([], group=[0, 0]), Candidates.of([], group=[])):
        path = score_trajectory([], [], rows, "nDCG@10")
        assert len(path.breaks) == 0
        assert path.best_point(start=3.0) == 3.0
