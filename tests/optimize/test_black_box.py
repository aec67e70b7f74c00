"""Searches that only ask for the measure: each gains, keeps to bounds, and climbs whatever the model is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from runs import measured, random_rows, record, run, train_rows, without_bias

from fliprank.errors import UsageError
from fliprank.models import Network
from fliprank.models.parameters import Parameters
from fliprank.optimize.methods import METHODS, Brent, Evolution, Exact, Golden, Grid, Line, Method, Powell, Sampled

DIRECT: dict[str, Method] = {
    "exact": Exact(epochs=4),
    "line": Line(samples=7, epochs=6),
    "golden": Golden(samples=7, epochs=6),
    "brent": Brent(samples=7, epochs=6),
    "sampled": Sampled(samples=7, epochs=4),
    "powell": Powell(epochs=4),
    "evolution": Evolution(epochs=6, size=12),
    "grid": Grid(steps=6),
}


def test_every_direct_method_is_tested() -> None:
    assert set(DIRECT) == {name for name, method in METHODS.items() if method.direct}


@pytest.mark.parametrize("name", ["AP", "ESL"])
def test_grid_is_brute_force(name: str) -> None:
    rows, given = random_rows(3, features=2), {"w.1": [-1.0, 0.3, 2.0], "w.2": [0.5, -0.5]}
    model = without_bias(rows)
    grid, recorder = Grid(values=given), record(model, rows, measure=name)
    run(grid, recorder)
    at = measured(model, rows, recorder.measure)
    plain = np.array([at(np.array(point)) for point in product(*given.values())]).reshape(3, 2)
    np.testing.assert_array_equal(grid.measures(recorder.problem, recorder), plain)
    assert [axis.tolist() for axis in grid.axes(model.params)] == list(given.values())
    assert recorder.best is not None
    pick = min if recorder.measure.smaller_is_better else max
    assert recorder.best.train == pick(plain.min() if pick is min else plain.max(), recorder.trail[0].train)
    assert len(recorder.trail) == 4


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_grid_over_one_two_or_three_parameters(count: int) -> None:
    rows = random_rows(3)
    model = without_bias(rows)
    model = model.at(model.params.fix(["w.1", "w.2", "w.3"][count:]))
    grid, recorder = Grid(steps=3), record(model, rows, measure="AP")
    found = grid.measures(recorder.problem, run(grid, recorder))
    at = measured(model, rows, recorder.measure)
    plain = [at(np.array(point)) for point in product(*grid.axes(model.params))]
    assert found.shape == (3,) * count
    assert found.ravel().tolist() == plain


def test_a_grid_that_was_stopped_says_which_points_it_did_not_reach() -> None:
    rows = random_rows(3, features=2)
    grid, recorder = Grid(steps=3), record(without_bias(rows), rows, measure="AP")
    recorder.enough = lambda: len(recorder.trail) == 3
    found = grid.measures(recorder.problem, run(grid, recorder))
    assert np.isnan(found).tolist() == [[False] * 3, [False] * 3, [True] * 3]


def test_grid_goes_from_bound_to_bound_and_takes_three_parameters_at_most() -> None:
    params = Parameters.of({"k": (1.2, 0, np.inf), "b": (0.7, 0, 1)})
    k, b = Grid(steps=3).axes(params)
    assert k.tolist() == pytest.approx([0, 1.2, 2.4])
    assert b.tolist() == [0, 0.5, 1]
    rows = random_rows(0, features=4)
    with pytest.raises(UsageError, match="1 to 3 free parameters, not 4"):
        run(Grid(), record(without_bias(rows), rows))
    with pytest.raises(UsageError, match="within its bounds"):
        Grid(values={"b": [2.0]}).axes(params)
    with pytest.raises(UsageError, match="no free parameter"):
        Grid(values={"c": [2.0]}).axes(params)


@pytest.mark.parametrize("method", DIRECT)
@pytest.mark.parametrize("name", ["AP", "ESL"])
def test_every_method_gains_and_keeps_the_best(method: str, name: str) -> None:
    rows = random_rows(4)
    recorder = run(DIRECT[method], record(without_bias(rows), rows, measure=name))
    sign = -1 if recorder.measure.smaller_is_better else 1
    assert recorder.best is not None
    assert sign * recorder.best.train > sign * recorder.trail[0].train
    fit = recorder.fit()
    found = measured(fit.model, rows, recorder.measure)(fit.model.params.free_values)
    assert found == pytest.approx(recorder.best.train)


@pytest.mark.parametrize("method", [name for name in DIRECT if name != "grid"])
def test_methods_climb_models_that_are_not_linear(method: str) -> None:
    rows = random_rows(5)
    recorder = run(DIRECT[method], record(Network(hidden=1).prepared(rows, 0), rows, measure="AP"))
    assert recorder.best is not None
    assert recorder.best.train > recorder.trail[0].train


@pytest.mark.parametrize("method", DIRECT)
def test_every_method_keeps_to_bounds(method: str) -> None:
    rows = random_rows(6)
    model = without_bias(rows)
    count = len(model.params)
    narrow = Parameters(model.params.names, np.full(count, 0.5), np.full(count, 0.4), np.full(count, np.inf))
    recorder = run(DIRECT[method], record(model.at(narrow.fix("bias")), rows, measure="AP"))
    assert (np.array(recorder.path) >= 0.4).all()
    recorder.fit().model.params.check_bounds()


def test_a_seed_settles_what_is_random() -> None:
    rows = random_rows(8)
    one, same, other = (
        run(DIRECT["evolution"], record(without_bias(rows), rows, measure="AP"), seed).trail for seed in (1, 1, 2)
    )
    assert repr(one) == repr(same)
    assert repr(one) != repr(other)


def test_powell_says_where_it_is_after_each_round() -> None:
    rows = random_rows(4)
    recorder = run(Powell(), record(without_bias(rows), rows, measure="AP"))
    assert recorder.stopped == "converged"
    at = measured(recorder.problem.model, train_rows(recorder), recorder.measure)
    assert [at(values) for values in recorder.path] == [epoch.objective for epoch in recorder.trail]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Line(samples=1),
        lambda: Line(factor=0.0),
        lambda: Line(epochs=0),
        lambda: Grid(steps=1),
        lambda: Powell(epochs=0),
        lambda: Evolution(size=4),
        lambda: Grid(span=0.0).axes(Parameters.of({"w": 1.0})),
    ],
)
def test_wrong_settings_are_errors(wrong: Callable[[], object]) -> None:
    with pytest.raises(UsageError):
        wrong()
