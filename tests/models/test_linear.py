"""The linear model and the scaler that it and the network carry."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_rows import finite_differences, random_rows

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.models import Linear, Network, Scaler


@given(st.integers(1, 9), st.sampled_from([0, 1, 2, 7, 8, 9, 130, 300]), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_scores_are_those_of_plain_numpy(features: int, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    train, test = random_rows(rng, 50, features), random_rows(rng, rows, features)
    model = Linear().prepared(train, rng)
    matrix = train.features.astype(float)
    spread = matrix.std(axis=0)
    spread[(matrix == matrix[0]).all(axis=0)] = np.inf
    standard = (test.features.astype(float) - matrix.mean(axis=0)) / spread
    expected = model.params.values[0] + standard @ model.params.values[1:]
    assert model.score(test) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(1, 9), st.sampled_from([0, 1, 2, 40, 150]), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_pullback_is_the_gradient(features: int, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    train, test, dscores = random_rows(rng, 30, features), random_rows(rng, rows, features), rng.normal(size=rows)
    model = Linear().prepared(train, rng)
    expected = finite_differences(model, test, dscores)
    assert model.pullback(test, dscores) == pytest.approx(expected, rel=1e-5, abs=1e-7 * np.abs(expected).max())


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_scores_are_linear_along_any_line_of_parameters(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, 40, 5)
    model = Linear().prepared(rows, rng)
    start, direction, x = rng.normal(size=6), rng.normal(size=6), rng.normal() * 10
    along = model.at(start).score(rows) + x * model.at(direction).score(rows)
    assert model.linear_in_params
    assert model.at(start + x * direction).score(rows) == pytest.approx(along, rel=1e-9, abs=1e-9)


def test_raw_weights_score_raw_features() -> None:
    rows = random_rows(np.random.default_rng(1), 60, 7)
    model = Linear().prepared(rows, 3).at(np.arange(1.0, 9.0))
    bias, weights = model.raw_weights()
    assert bias + rows.features.astype(float) @ weights == pytest.approx(model.score(rows), rel=1e-9)


def test_the_scaler_knows_training_rows_only() -> None:
    train = Candidates.of([0, 1], features=[[0.0], [2.0]])
    test = Candidates.of([0], features=[[1e6]])
    model = Linear().prepared(train, 0).at([0.0, 1.0])
    before = model.score(train).tolist()
    assert model.score(test).tolist() == [1e6 - 1]
    assert model.score(train).tolist() == before == [-1.0, 1.0]


def test_standardised_training_rows_have_mean_zero_and_deviation_one() -> None:
    rows = random_rows(np.random.default_rng(2), 20_000, 5)
    standard = Scaler.of(rows).standardised(rows)
    assert np.abs(standard.mean(axis=0)).max() < 1e-9
    assert standard.std(axis=0) == pytest.approx([1, 1, 1, 0, 1])


@pytest.mark.parametrize("constant", [0.1, 1e30, 3e38, -7.0])
def test_a_feature_that_is_constant_in_training_says_nothing(constant: float) -> None:
    train = Candidates.of(np.zeros(1001), features=np.full((1001, 1), constant))
    model = Linear().prepared(train, 0).at([0.0, 1.0])
    assert model.scaler.scale.tolist() == [0.0]
    assert model.score(Candidates.of([0, 0], features=[[5.0], [-5e30]])).tolist() == [0.0, 0.0]
    assert model.pullback(train, np.ones(1001)).tolist() == [1001.0, 0.0]


@pytest.mark.parametrize("model", [Linear(), Network(3)])
def test_the_largest_and_the_smallest_numbers_do_not_overflow(model: Linear | Network) -> None:
    features = np.array([[3.4e38, 1e-45], [-3.4e38, 0], [0, 0]], np.float32)
    rows = Candidates.of([0, 1, 0], features=features)
    ready = model.prepared(rows, 0)
    assert np.isfinite(ready.score(rows)).all()
    assert np.isfinite(ready.pullback(rows, [1.0, 2.0, 3.0])).all()


@pytest.mark.parametrize("model", [Linear(), Network(3)])
def test_a_row_has_one_score_wherever_it_stands(model: Linear | Network) -> None:
    rows = random_rows(np.random.default_rng(3), 9000, 6)
    ready = model.prepared(rows, 0)
    scores, chosen = ready.score(rows), np.random.default_rng(4).permutation(9000)[:333]
    np.testing.assert_array_equal(ready.score(rows.take(chosen)), scores[chosen])
    for row in chosen[:20]:
        assert ready.score(rows.take([row]))[0] == scores[row]


@pytest.mark.parametrize("model", [Linear(), Network(3)])
def test_threads_change_no_bit(model: Linear | Network) -> None:
    rows = random_rows(np.random.default_rng(5), 50_000, 6)
    ready, dscores = model.prepared(rows, 0), np.random.default_rng(6).normal(size=50_000)
    results = []
    try:
        for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
            numba.set_num_threads(threads)
            results.append((ready.score(rows).tolist(), ready.pullback(rows, dscores).tolist()))
    finally:
        numba.set_num_threads(1)
    assert results[0] == results[1]


@pytest.mark.parametrize("model", [Linear(), Network(3)])
def test_the_same_seed_gives_the_same_weights(model: Linear | Network) -> None:
    rows = random_rows(np.random.default_rng(7), 30, 4)
    first, again, other = (model.prepared(rows, seed).params.values for seed in (1, np.random.default_rng(1), 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    ready = model.prepared(rows, 1)
    np.testing.assert_array_equal(ready.initialised(2).params.values, other)


def test_initialising_again_leaves_fixed_parameters_alone() -> None:
    ready = Linear().prepared(random_rows(np.random.default_rng(7), 30, 4), 1)
    fixed = ready.at(ready.params.replace({"w.f0": 5.0}).fix("w.f0"))
    fresh = fixed.initialised(2)
    assert fresh.params["w.f0"] == 5.0
    assert (fresh.params.values[2:] != fixed.params.values[2:]).all()
    assert fixed.prepared(random_rows(np.random.default_rng(8), 30, 4), 3).params["w.f0"] == 5.0


FOUR = random_rows(np.random.default_rng(8), 10, 4)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (Candidates.of([0]), "have no features"),
        (
            Candidates.of([0], features=np.zeros((1, 3))),
            "trained on 4 features, these candidates have 3 .*n_features=4",
        ),
        (Candidates.of([0], features=np.zeros((1, 4))), "features that these candidates lack: f0, f1, f2, f3"),
        (
            Candidates.of([0], features=np.zeros((1, 4)), feature_names=["f0", "f2", "f1", "f3"]),
            "another order: feature 2 is f2, the model expects f1",
        ),
        (
            Candidates.of(
                [0, 0], features=[[1, 2, np.nan, 4], [1, np.nan, np.nan, 4]], feature_names=FOUR.feature_names
            ),
            r"numbers: f1 in 1 of 2 rows; f2 in 2 of 2 rows; the first is f1 in row 1 \(query 1\) .*Trees\(\)",
        ),
    ],
)
@pytest.mark.parametrize("model", [Linear(), Network(3)])
def test_candidates_that_do_not_fit_are_refused(model: Linear | Network, rows: Candidates, said: str) -> None:
    ready = model.prepared(FOUR, 0)
    with pytest.raises(InputError, match=said):
        ready.score(rows)
    with pytest.raises(InputError, match=said):
        ready.pullback(rows, np.zeros(len(rows)))


@pytest.mark.parametrize("model", [Linear(), Network(3)])
def test_rows_that_teach_nothing_are_refused(model: Linear | Network) -> None:
    with pytest.raises(InputError, match="nothing to learn from: 0 rows of 2 features"):
        model.prepared(Candidates.of([], features=np.zeros((0, 2))), 0)
    with pytest.raises(InputError, match="two features are called 'a'"):
        model.prepared(Candidates.of([0], features=[[1, 2]], feature_names=["a", "a"]), 0)
    with pytest.raises(InputError, match="1 in 1 of 1 rows"):
        model.prepared(Candidates.of([0], features=[[np.nan, 2]]), 0)
    with pytest.raises(UsageError, match=r"call prepared\(train, rng\)"):
        model.score(FOUR)


@pytest.mark.parametrize("model", [Linear(), Network(3)])
def test_wrong_arguments_are_refused(model: Linear | Network) -> None:
    ready = model.prepared(FOUR, 0)
    with pytest.raises(UsageError, match=r"a number for each of 10 rows, got shape \(9,\)"):
        ready.pullback(FOUR, np.zeros(9))
    with pytest.raises(UsageError, match=r"expected \d+ numbers"):
        ready.at([1.0])
    with pytest.raises(UsageError, match="not the parameters of this"):
        ready.at(Linear().prepared(random_rows(np.random.default_rng(0), 5, 2), 0).params)


@pytest.mark.parametrize("moved", [0, 1, 3, 12])
def test_the_slope_along_a_direction_is_what_a_step_adds_to_the_scores(moved: int) -> None:
    rng = np.random.default_rng(moved)
    rows = Candidates.of(rng.integers(0, 2, 50), features=rng.normal(3, 5, size=(50, 14)))
    model = Linear().prepared(rows, 0)
    along = np.zeros(15)
    along[rng.choice(15, moved, replace=False)] = rng.normal(size=moved)
    there = model.at(model.params.with_free(model.params.free_values + along))
    np.testing.assert_allclose(model.slope(rows, along), there.score(rows) - model.score(rows), atol=1e-9)
