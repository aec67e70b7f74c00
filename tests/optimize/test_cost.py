"""Costs in units of the scores' spread: gradients by finite differences; how far apart scores are does not count."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fliprank.data.candidates import Candidates
from fliprank.models import Linear
from fliprank.objectives import parse_objective
from fliprank.optimize.cost import Cost, in_units_of_spread

OBJECTIVES = ["ranknet", "softndcg(sigma=0.3)", "softap"]


def rows_of(seed: int = 0, sizes: tuple[int, ...] = (6, 1, 4, 5)) -> Candidates:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, sum(sizes))
    return Candidates.of(labels, group=list(sizes), features=rng.normal(size=(sum(sizes), 3)))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_gradient_is_that_of_the_value(objective: str) -> None:
    rows, evaluate = rows_of(), parse_objective(objective).value_and_grad
    scores = 7 * np.random.default_rng(1).normal(size=len(rows))
    _, gradient = in_units_of_spread(evaluate, scores, rows, 1.0)
    for i, step in enumerate(1e-5 * np.eye(len(rows))):
        ends = [in_units_of_spread(evaluate, scores + sign * step, rows, 1.0)[0] for sign in (1, -1)]
        assert gradient[i] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-7)


@given(st.floats(1e-3, 1e3), st.integers(0, 99))
def test_scores_that_are_further_apart_cost_the_same(factor: float, seed: int) -> None:
    rows, evaluate = rows_of(seed), parse_objective("ranknet").value_and_grad
    scores = np.random.default_rng(seed).normal(size=len(rows))
    value, gradient = in_units_of_spread(evaluate, scores, rows, 1.0)
    scaled, smaller = in_units_of_spread(evaluate, factor * scores, rows, 1.0)
    assert scaled == pytest.approx(value)
    np.testing.assert_allclose(factor * smaller, gradient, atol=1e-9)
    assert gradient @ scores == pytest.approx(0.0, abs=1e-9)  # nothing is gained by being surer


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_to_tell_nothing_apart_is_no_way_out(objective: str) -> None:
    """Where labels contradict the features, equal scores would cost least; a descent must not end there."""
    rows = Candidates.of([0, 1] * 10, group=[2] * 10, features=np.tile([[2.0], [1.0]], (10, 1)))
    cost = Cost(Linear().prepared(rows, 0), rows, parse_objective(objective), spread=True)
    alike, wrong = (cost.value_and_grad(np.array([0.0, weight])) for weight in (0.0, 1.0))
    assert alike[0] > wrong[0]
    assert np.abs(alike[1]).max() > 0  # it is a place to start from all the same


def test_a_cost_by_parameters_has_its_gradient_too() -> None:
    rows = rows_of()
    model = Linear().prepared(rows, 0).at([0.0, 1.0, -2.0, 0.5])
    cost = Cost(model, rows, parse_objective("softndcg(sigma=0.3)"), 0.1, spread=True)
    values = model.params.free_values
    _, gradient = cost.value_and_grad(values)
    for i, step in enumerate(1e-5 * np.eye(len(values))):
        ends = [cost.value_and_grad(values + sign * step)[0] for sign in (1, -1)]
        assert gradient[i] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-6)
