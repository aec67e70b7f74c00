"""Search coordinates: there and back, floors, units, gradients by finite differences, the prior."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fliprank.arrays import Floats
from fliprank.errors import UsageError
from fliprank.models.parameters import Parameters
from fliprank.optimize.space import CEILING, FLOOR, Space, box_of, stepped, widths_of

PARAMS = Parameters.of({"w": (2.0, 0.0, np.inf), "b": (0.75, 0.0, 1.0), "bias": 0.5, "mu": (2000.0, 1.0, np.inf)})


@given(st.floats(1e-3, 1e3), st.floats(0, 1), st.floats(-9, 9), st.floats(1, 1e6), st.booleans())
def test_there_and_back_is_the_same(w: float, b: float, bias: float, mu: float, factors: bool) -> None:
    space, values = Space.of(PARAMS, factors=factors), np.array([w, b, bias, mu])
    np.testing.assert_allclose(space.from_search(space.to_search(values)), values, rtol=1e-12)


def test_a_weight_at_the_floor_is_zero() -> None:
    space = Space.of(PARAMS, factors=True)
    assert space.from_search(space.to_search(np.array([0.0, 0.5, 0.0, 2000.0])))[0] == 0.0
    assert space.from_search(space.to_search(np.array([3 * FLOOR, 0.5, 0.0, 2000.0])))[0] > 0.0


def test_bounds_and_defaults_are_search_coordinates() -> None:
    by_factors, plain = Space.of(PARAMS, factors=True), Space.of(PARAMS)
    low = [np.log(FLOOR * 2.0), 0.0, -np.inf, 0.0]
    high = [np.log(CEILING * 2.0), 1.0, np.inf, np.log(CEILING * 2000.0)]
    np.testing.assert_allclose([by_factors.low, by_factors.high], [low, high])
    np.testing.assert_allclose(by_factors.default, [np.log(2.0), 0.75, 1.0, np.log(2000.0)])
    np.testing.assert_allclose([plain.low, plain.default], [[0, 0, -np.inf, 1 / 2000], [1, 0.75, 1, 1]])


@pytest.mark.parametrize("factors", [False, True])
def test_a_gradient_by_search_coordinates_is_that_of_the_value_there(factors: bool) -> None:
    space, values = Space.of(PARAMS, factors=factors), np.array([0.3, 0.2, -1.0, 900.0])
    point, weights = space.to_search(values), np.array([1.0, -2.0, 0.5, 1e-3])

    def at(point: Floats) -> float:
        return float(np.sin(weights * space.from_search(point)).sum())

    gradient = space.pull(values, weights * np.cos(weights * values))
    for i, step in enumerate(1e-6 * np.eye(4)):
        assert gradient[i] == pytest.approx((at(point + step) - at(point - step)) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("factors", [False, True])
def test_the_prior_is_the_squared_distance_from_the_defaults_in_search_coordinates(factors: bool) -> None:
    held = np.array([1.0, 1.0, 0.0, 1.0])  # not the bias
    space, values = Space.of(PARAMS, held, factors=factors, prior=0.3), np.array([0.3, 0.2, -1.0, 900.0])
    cost, gradient = space.prior_cost(values)
    away = [np.log(0.3 / 2.0), 0.2 - 0.75, np.log(0.45)] if factors else [0.15 - 1, 0.2 - 0.75, 0.45 - 1]
    assert cost == pytest.approx(0.3 * np.square(away).sum())
    point = space.to_search(values)
    for i, step in enumerate(1e-6 * np.eye(4)):
        ends = [space.prior_cost(space.from_search(point + sign * step))[0] for sign in (1, -1)]
        assert gradient[i] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-9)
    assert gradient[2] == 0.0


def test_parameters_that_share_a_value_are_one_coordinate_that_is_held_once() -> None:
    few = PARAMS.tie({"both": ["w", "mu"]}).fix("b")
    space = Space.of(few, np.ones(4), prior=0.5)
    assert few.free_names == ("both", "bias")
    assert space.prior.tolist() == [0.5, 0.5]


def test_a_step_stays_within_bounds_and_leaves_what_does_not_move() -> None:
    found = stepped(PARAMS, np.array([1.0, 0.9, 0.1, 5.0]), np.array([-1.0, 1.0, 0.0, 0.0]), 2.0)
    assert found.tolist() == [0.0, 1.0, 0.1, 5.0]


def test_widths_and_boxes_follow_bounds_or_the_size_of_values() -> None:
    assert widths_of(PARAMS, 2.0).tolist() == [4.0, 1.0, 2.0, 4000.0]
    low, high = box_of(PARAMS, 1.0)
    assert low.tolist() == [0.0, 0.0, -0.5, 1.0]
    assert high.tolist() == [4.0, 1.0, 1.5, 4000.0]
    for span in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(UsageError, match="span is a number above 0"):
            widths_of(PARAMS, span)
