"""The two-layer net against its formula."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_rows import finite_differences, random_rows

from fliprank.errors import UsageError
from fliprank.models import Network
from fliprank.models.network import tanh


def formula(model: Network, standard: np.ndarray) -> np.ndarray:
    """b3 + sum_j w32_j tanh(b2_j + sum_k w21_jk x_k), parameter by parameter, by name."""
    out = np.full(len(standard), model.params["b3"])
    for j in range(1, model.hidden + 1):
        inner = np.full(len(standard), model.params[f"b2.{j}"])
        for k, feature in enumerate(model.scaler.names):
            inner += model.params[f"w21.{j}.{feature}"] * standard[:, k]
        out += model.params[f"w32.{j}"] * np.tanh(inner)
    return out


@given(st.integers(1, 9), st.integers(1, 7), st.sampled_from([0, 1, 2, 7, 128, 129, 300]), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_scores_are_those_of_the_formula(features: int, hidden: int, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    train, test = random_rows(rng, 50, features), random_rows(rng, rows, features)
    model = Network(hidden).prepared(train, rng)
    model = model.at(rng.normal(size=len(model.params)))
    expected = formula(model, model.scaler.standardised(test))
    assert model.score(test) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(st.integers(1, 6), st.integers(1, 5), st.sampled_from([0, 1, 2, 40, 150]), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_pullback_is_the_gradient(features: int, hidden: int, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    train, test, dscores = random_rows(rng, 30, features), random_rows(rng, rows, features), rng.normal(size=rows)
    model = Network(hidden).prepared(train, rng)
    model = model.at(rng.normal(size=len(model.params)))
    expected = finite_differences(model, test, dscores)
    assert model.pullback(test, dscores) == pytest.approx(expected, rel=1e-5, abs=1e-8 * max(1, np.abs(dscores).sum()))


def test_pullback_of_many_rows_adds_up_those_of_few() -> None:
    rng = np.random.default_rng(0)
    rows, dscores = random_rows(rng, 20_000, 5), rng.normal(size=20_000)
    model = Network(3).prepared(rows, rng)
    parts = np.array_split(np.arange(20_000), 37)
    total = sum(model.pullback(rows.take(part), dscores[part]) for part in parts)
    assert model.pullback(rows, dscores) == pytest.approx(total, rel=1e-10, abs=1e-10)


def test_a_net_too_large_for_one_matrix_product_has_the_same_gradient() -> None:
    rng = np.random.default_rng(1)
    rows, dscores = random_rows(rng, 200, 300), rng.normal(size=200)
    model = Network(41).prepared(rows, rng)
    standard, values = model.scaler.standardised(rows), model.params.values
    w21, b2, w32 = values[: 41 * 300].reshape(41, 300), values[-83:-42], values[-42:-1]
    nodes = np.tanh(standard @ w21.T + b2)
    delta = dscores[:, None] * w32 * (1 - nodes**2)
    expected = np.concatenate([(delta.T @ standard).ravel(), delta.sum(0), dscores @ nodes, [dscores.sum()]])
    assert model.pullback(rows, dscores) == pytest.approx(expected, rel=1e-9, abs=1e-11)


def test_tanh_is_right_to_the_last_digits() -> None:
    x = np.concatenate([np.linspace(-25, 25, 200_001), np.logspace(-300, 2, 1000), [0.0, 1e300, -1e300]])
    found, expected = x.copy(), np.tanh(x)
    tanh(found)
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=0)


def test_initial_nodes_are_unsaturated_and_scores_small() -> None:
    rng = np.random.default_rng(2)
    rows = random_rows(rng, 2000, 40)
    model = Network(10).prepared(rows, rng)
    first, standard = model.params.values[:400].reshape(10, 40), model.scaler.standardised(rows)
    assert (np.abs(np.tanh(standard @ first.T)) < 0.99).mean() > 0.98
    assert 0.005 < model.score(rows).std() < 0.3


def test_no_hidden_nodes_is_another_model() -> None:
    with pytest.raises(UsageError, match=r"use Linear\(\)"):
        Network(hidden=0)
    for wrong in (-1, 2.5):
        with pytest.raises(UsageError, match="a number of nodes"):
            Network(hidden=wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="over 4,000,000 parameters"):
        Network(10**6).prepared(random_rows(np.random.default_rng(0), 5, 3), 0)
