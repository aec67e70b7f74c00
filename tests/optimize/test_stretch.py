"""Descents and climbs in stretched parameters: gradients by finite differences, known optima, bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.measures import parse_measure
from fliprank.models import Linear
from fliprank.models.parameters import Parameters
from fliprank.optimize.metric import Metric
from fliprank.optimize.stretch import CEILING, FLOOR, Stretch, climb, descend

PARAMS = Parameters.of({"w": (2.0, 0.0, np.inf), "b": (0.75, 0.0, 1.0), "bias": 0.5, "mu": (2000.0, 1.0, np.inf)})


@given(st.floats(1e-3, 1e3), st.floats(0, 1), st.floats(-9, 9), st.floats(1, 1e6))
def test_there_and_back_is_the_same(w: float, b: float, bias: float, mu: float) -> None:
    stretch, values = Stretch.of(PARAMS), np.array([w, b, bias, mu])
    np.testing.assert_allclose(stretch.outer(stretch.inner(values)), values, rtol=1e-12)


def test_a_weight_at_the_floor_is_zero() -> None:
    stretch = Stretch.of(PARAMS)
    assert stretch.outer(stretch.inner(np.array([0.0, 0.5, 0.0, 2000.0])))[0] == 0.0
    assert stretch.outer(stretch.inner(np.array([3 * FLOOR, 0.5, 0.0, 2000.0])))[0] > 0.0


def distance(target: Floats) -> object:
    scale = np.array([1.0, 1.0, 1.0, 1e-3])
    return lambda values: (float(scale * (values - target) ** 2 @ scale), 2 * scale**2 * (values - target))


def test_a_descent_finds_the_optimum_of_parameters_of_any_size() -> None:
    target = np.array([0.05, 0.2, -1.0, 300.0])
    cost, found = descend(distance(target), PARAMS, pull=0.0)  # type: ignore[arg-type]
    assert cost < 1e-6
    np.testing.assert_allclose(found, target, rtol=1e-2)


def test_a_firm_hold_keeps_the_defaults_and_bounds_are_kept() -> None:
    found = descend(distance(np.array([9.0, 5.0, 3.0, 4000.0])), PARAMS, pull=1e6)[1]  # type: ignore[arg-type]
    np.testing.assert_allclose(found, PARAMS.values, rtol=1e-3)
    found = descend(distance(np.array([9.0, 5.0, 3.0, 0.1])), PARAMS, pull=0.0)[1]  # type: ignore[arg-type]
    assert found[1] == 1.0
    assert found[3] == pytest.approx(1.0)


def test_a_cost_that_falls_for_ever_ends_at_the_ceiling() -> None:
    found = descend(lambda values: (-float(values[0]), np.array([-1.0, 0, 0, 0])), PARAMS, pull=0.0)[1]
    assert found[0] == pytest.approx(CEILING * 2.0)


def test_where_the_cost_is_flat_the_hold_leads_back_to_the_defaults() -> None:
    cost, found = descend(lambda values: (0.0, np.zeros(4)), PARAMS.at([4.0, 0.1, 0.5, 9.0]), pull=1.0)
    assert cost == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(found, PARAMS.values, rtol=1e-4)


def test_a_climb_finds_what_a_grid_finds_and_never_loses() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 2))
    rows = Candidates.of(features @ [1.0, -0.5] + 0.5 * rng.normal(size=400) > 1, group=[20] * 20, features=features)
    measure = parse_measure("AP")
    model = Linear().prepared(rows, 0).at([0.0, 1.0, 1.0])
    metric = Metric(model, rows, measure)
    found = metric.at(climb(metric))
    grid = max(metric.at(np.array([0.0, 1.0, x])) for x in np.linspace(-3, 3, 200))
    assert found >= metric.at(model.params.free_values)
    assert found > grid - 0.02
