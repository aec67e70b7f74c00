"""The trajectory of a model: exact where it is linear, bracketed elsewhere; and the flips behind its steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_trajectory import MEASURES as ALL_MEASURES

from fliprank import landscape
from fliprank.data.candidates import Candidates
from fliprank.data.ids import Ids
from fliprank.data.term_statistics import TermStatistics
from fliprank.errors import UsageError
from fliprank.landscape.direction import direction_of, reach
from fliprank.landscape.model_trajectory import RESOLUTION
from fliprank.measures import Measure, parse_measure
from fliprank.models import BM25F, Linear, Network
from fliprank.models.base import Model
from fliprank.models.parameters import Parameters

MEASURES = ["nDCG@3", "nDCG(dcg='exp-log2')@10", "AP", "RR", "GMAP", "ESL", "CorrectPairs"]


def feature_rows(seed: int, sizes: tuple[int, ...] = (12, 1, 9, 15), ids: bool = True) -> Candidates:
    rng = np.random.default_rng(seed)
    count = sum(sizes)
    names = [f"d{i}" for i in rng.permutation(count)]
    labels = rng.choice([0.0, 0, 1, 2, np.nan], count)
    return Candidates.of(labels, group=sizes, features=rng.normal(size=(count, 3)), docids=names if ids else None)


def value(model: Model, rows: Candidates, measure: str) -> float:
    chosen = parse_measure(measure)
    return chosen.aggregate(chosen.per_query(model.score(rows), rows))


@pytest.mark.parametrize("measure", MEASURES)
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_along_a_linear_model_the_trajectory_is_the_measure_between_any_two_breaks(measure: str, seed: int) -> None:
    rows = feature_rows(seed)
    model = Linear().prepared(rows, seed)
    direction = {"w.1": 1.0, "w.3": -0.7} if seed % 2 else "w.2"
    path = landscape.trajectory(model, rows, direction, measure)
    assert path.resolution == 0
    assert path.low == -np.inf
    wide = np.diff(path.edges) > 1e-9
    for x, expected in zip(path.middles()[wide], path.values[wide], strict=True):
        assert value(path.model_at(x), rows, measure) == pytest.approx(expected, abs=1e-12)


def test_the_line_ends_at_the_bounds_of_the_parameters() -> None:
    rows = feature_rows(1)
    model = Linear().prepared(rows, 0)
    lower = np.array([-np.inf, 0.0, -np.inf, -1.0])
    bounded = model.at(Parameters(model.params.names, np.array([0, 0.5, 1, 2.0]), lower, np.full(4, 2.0)))
    path = landscape.trajectory(bounded, rows, "w.1", "AP")
    assert (path.low, path.high) == (-0.5, 1.5)
    assert (path.parameter(path.low), path.offset(2.0), path.name) == (0.0, 1.5, "w.1")
    assert landscape.trajectory(bounded, rows, "w.1", "AP", low=-0.25, high=0.5).high == 0.5
    with pytest.raises(UsageError, match="leaves its bounds"):
        landscape.trajectory(bounded, rows, "w.1", "AP", low=-0.75)
    both = landscape.trajectory(bounded, rows, {"w.1": -1, "w.3": 1}, "AP")
    assert (both.low, both.high, both.name) == (-1.5, 0.0, None)
    with pytest.raises(UsageError, match="several parameters"):
        both.parameter(0.0)


def test_directions_that_lead_nowhere_are_refused() -> None:
    params = Parameters.of({"k": (1.2, 0, np.inf), "title.b": 0.7, "body.b": 0.5})
    tied = params.fix("k").tie({"b": ["title.b", "body.b"]})
    assert direction_of(tied, "body.b").tolist() == [1.0]
    assert reach(params, params.free_values, direction_of(params, "k")) == (-1.2, np.inf)
    with pytest.raises(UsageError, match="fixed at"):
        direction_of(tied, "k")
    with pytest.raises(UsageError, match=r"no free parameter.*title\.b"):
        direction_of(params, "title.c")
    with pytest.raises(UsageError, match="shape"):
        direction_of(params, [1.0])
    with pytest.raises(UsageError, match="not a finite number"):
        direction_of(params, [1.0, np.nan, 0])
    rows = feature_rows(0)
    with pytest.raises(UsageError, match="leads nowhere"):
        landscape.trajectory(Linear().prepared(rows, 0), rows, [0, 0, 0, 0], "AP")


@pytest.mark.parametrize("measure", MEASURES)
def test_where_scores_happen_to_be_linear_sampling_finds_every_step_that_exact_search_finds(
    measure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a linear model that says it is none, even with coarse cells: no pair swaps twice, so nothing is missed."""
    rows = feature_rows(5, (30, 20, 25))
    model = Linear().prepared(rows, 3)
    exact = landscape.trajectory(model, rows, "w.2", measure, -1, 1)
    monkeypatch.setattr(Linear, "linear_along", lambda self, direction: False)
    near = landscape.trajectory(model, rows, "w.2", measure, -1, 1, resolution=1 / 3)
    assert near.at_least
    np.testing.assert_array_equal(near.steps.query()[near.responds], exact.steps.query()[exact.responds])
    np.testing.assert_allclose(near.steps.x[near.responds], exact.steps.x[exact.responds], rtol=0, atol=1e-12)
    np.testing.assert_allclose(near.values, exact.values, rtol=0, atol=1e-12)


def test_along_a_net_the_values_are_those_of_the_net() -> None:
    rows = feature_rows(8, (20, 15, 25, 10))
    net = Network(hidden=3).prepared(rows, 1)
    net = net.at(net.params.values * 5)
    path = landscape.trajectory(net, rows, "w21.1.2", "nDCG@5", resolution=1e-4)
    assert len(path.breaks) > 10
    assert path.high - path.low == 2 * 2 * max(1.0, abs(net.params["w21.1.2"]))
    wide = np.diff(path.edges) > 4 * path.resolution
    missed = [
        x
        for x, expected in zip(path.middles()[wide], path.values[wide], strict=True)
        if abs(value(path.model_at(x), rows, "nDCG@5") - expected) > 1e-12
    ]
    assert len(missed) <= 0.05 * wide.sum()
    assert value(path.model_at(path.best_point()), rows, "nDCG@5") == pytest.approx(path.maximum.value)
    # On either side of each step, and far closer than the resolution, its query has the values that the step says.
    away, looked_at = 1e-3 * path.resolution, 0
    for q in range(rows.queries):
        each = slice(path.steps.begin[q], path.steps.begin[q + 1])
        where = path.steps.x[each]
        for x, before, after in zip(where, path.steps.before()[each], path.steps.value[each], strict=True):
            if np.count_nonzero(np.abs(where - x) < 3 * away) > 1:
                continue
            looked_at += 1
            for side, expected in ((-1, before), (1, after)):
                scores = path.model_at(x + side * away).score(rows)
                assert parse_measure("nDCG@5").per_query(scores, rows)[q] == pytest.approx(expected, abs=1e-12)
    assert looked_at >= 0.9 * len(path.steps.x)


@pytest.mark.parametrize("measure", [*ALL_MEASURES, parse_measure("ESL")], ids=str)
def test_along_a_net_every_measure_of_every_query_is_that_of_the_net(measure: Measure) -> None:
    rows = feature_rows(9, (20, 0, 1, 25, 30))
    net = Network(hidden=3).prepared(rows, 1)
    path = landscape.trajectory(net.at(net.params.values * 5), rows, "w21.1.2", measure)
    wrong, looked_at = 0, 0
    for x in np.random.default_rng(0).uniform(path.low, path.high, 60):
        expected, found = measure.per_query(path.scores(x), rows), path.per_query(x)
        wrong += np.count_nonzero(np.abs(expected - found) > 1e-12)
        looked_at += rows.queries
        assert measure.value(path.scores(x), rows) == pytest.approx(path.at(x), abs=1e-12) or wrong
    assert wrong <= 0.01 * looked_at  # a pair may swap and swap back within a cell
    assert path.steps.first.tolist() == pytest.approx(
        measure.per_query(path.scores(path.low + 1e-9), rows).tolist(), abs=1e-12
    )


def test_pairs_that_tie_at_an_end_do_not_step_there() -> None:
    """At b = 0 documents with equal counts tie: just after it, the shorter one leads."""
    same = TermStatistics(
        ("body",), [0, 1], Ids.of(["a"]), np.ones(1), np.arange(4), np.full((3, 1), 2), np.array([[30], [20], [10]])
    )
    rows = Candidates([0, 3], [1.0, 0.0, 0.0], Ids.of(["x"]), terms=same)
    model = BM25F().prepared(rows, 0)
    path = landscape.trajectory(model, rows, "body.b", "RR")
    assert (len(path.breaks), path.values.tolist()) == (0, [1 / 3])
    assert path.at(path.low) == 1.0  # all tie there: row order decides
    assert path.tied_share(path.low) == 1.0
    back = landscape.trajectory(model, rows, {"body.b": -1}, "RR")
    assert (len(back.breaks), back.values.tolist()) == (0, [1 / 3])


def test_bracketing_without_ends_or_with_a_silly_resolution_is_refused() -> None:
    rows = feature_rows(2)
    net = Network(hidden=2).prepared(rows, 0)
    with pytest.raises(UsageError, match="two ends"):
        landscape.trajectory(net, rows, "b2.1", "AP", high=np.inf)
    with pytest.raises(UsageError, match="resolution"):
        landscape.trajectory(net, rows, "b2.1", "AP", resolution=0)
    with pytest.raises(UsageError, match="nothing between"):
        landscape.trajectory(net, rows, "b2.1", "AP", 1, 1)


def net_path(rows: Candidates) -> landscape.ModelTrajectory:
    net = Network(hidden=2).prepared(rows, 1)
    return landscape.trajectory(net.at(net.params.values * 4), rows, "w32.1", "AP", resolution=1e-5)


def test_flips_name_the_documents_that_swap_there() -> None:
    rows = feature_rows(11, (14, 9, 12))
    linear = landscape.trajectory(Linear().prepared(rows, 2), rows, "w.1", "AP")
    docs = rows.docids.tolist()  # type: ignore[union-attr]
    for path, step in ((linear, 1e-9), (net_path(rows), 1e-5)):
        assert len(path.steps.x) >= len(path.flips) > 20
        assert np.all(np.diff(path.flips.mean_gain) <= 0)
        for flip in path.flips:
            up, down = docs.index(flip.up), docs.index(flip.down)
            width = max(step, path.resolution)
            before, after = path.model_at(flip.x - width).score(rows), path.model_at(flip.x + width).score(rows)
            assert before[up] <= before[down]
            assert after[up] >= after[down]
            labels = np.nan_to_num([flip.up_label, flip.down_label])
            assert flip.kind == {1: "good", -1: "bad"}[int(np.sign(labels[0] - labels[1]))]
            assert (flip.gain > 0) == (flip.kind == "good")
            assert rows.qids[int(rows.query_of_rows()[up])] == flip.qid
            assert flip.value == pytest.approx(path.parameter(flip.x))
            assert flip.together >= 1


def test_gains_of_flips_add_up_to_the_trajectory() -> None:
    rows = feature_rows(12)
    for name in ("AP", "nDCG@5", "ESL"):
        path = landscape.trajectory(Linear().prepared(rows, 2), rows, "w.1", name)
        sign = -1 if path.measure.smaller_is_better else 1
        assert path.flips.mean_gain.sum() == pytest.approx(sign * (path.values[-1] - path.values[0]), abs=1e-12)


def test_a_slice_of_flips_is_a_list_and_rows_without_ids_go_by_their_place() -> None:
    rows = feature_rows(12, ids=False)
    path = landscape.trajectory(Linear().prepared(rows, 2), rows, "w.1", "AP")
    best = path.flips[:3]
    assert isinstance(best, list)
    assert best[0] == path.flips[0]
    assert path.flips[-1].gain < 0
    assert best[0].up.startswith("row ")
    with pytest.raises(IndexError):
        path.flips[len(path.flips)]
    assert path.width == path.maximum.width
    assert path.value == pytest.approx(value(path.model, rows, "AP"), abs=1e-12)


def test_documents_alike_flip_together() -> None:
    rows = Candidates.of([1, 0, 0, 0], features=[[0, 1], [1, 0], [1, 0], [0.5, -1]], docids=["a", "b", "c", "d"])
    path = landscape.trajectory(Linear().prepared(rows, 0).at([0, 1, 0]), rows, "w.2", "AP")
    flip = path.flips[0]
    assert (flip.up, flip.kind, flip.together) == ("a", "good", 2)
    assert flip.down in ("b", "c")


def term_rows(seed: int) -> Candidates:
    """Three queries of two terms each, 30 documents of two fields."""
    rng = np.random.default_rng(seed)
    tf, length = rng.integers(0, 5, (60, 2)), rng.integers(5, 60, (30, 2))
    terms = TermStatistics(
        ("title", "body"), [0, 2, 4, 6], Ids.of(list("abcdef")), rng.uniform(1, 4, 6), np.arange(31) * 2, tf, length
    )
    labels = (tf.reshape(30, 2, 2).sum(axis=(1, 2)) + rng.normal(0, 4, 30) > 9).astype(float)
    return Candidates([0, 10, 20, 30], labels, Ids.of(["x", "y", "z"]), terms=terms)


@pytest.mark.parametrize("name", ["title.w", "body.b"])
def test_along_the_parameters_of_bm25f_the_best_point_is_as_good_as_it_says(name: str) -> None:
    rows = term_rows(4)
    model = BM25F().prepared(rows, 0)
    path = landscape.trajectory(model, rows, name, "AP")
    bounds = (-1.0, 2.0) if name == "title.w" else (-0.75, 0.25)
    assert (path.low, path.high) == bounds
    assert path.resolution == pytest.approx((bounds[1] - bounds[0]) * RESOLUTION)
    assert len(path.breaks) > 3
    grid = [value(path.model_at(x), rows, "AP") for x in np.linspace(*bounds, 400)]
    assert path.maximum.value >= max(grid) - 1e-12
    assert value(path.model_at(path.best_point()), rows, "AP") == pytest.approx(path.maximum.value)
    assert path.flips[0].gain > 0
