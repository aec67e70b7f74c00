"""Searches that only ask for the measure: each does what its paper says, gains, keeps to bounds, and can go on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.measures import Measure, parse_measure
from fliprank.models import Linear, Model, Network
from fliprank.models.parameters import Parameters
from fliprank.optimize.black_box import Evolution, Powell
from fliprank.optimize.fit import Epoch, Recorder
from fliprank.optimize.grid import Grid
from fliprank.optimize.line import Brent, Golden, Line

METHODS: dict[str, Any] = {
    "line": Line(samples=7, epochs=6),
    "golden": Golden(samples=7, epochs=6),
    "brent": Brent(samples=7, epochs=6),
    "powell": Powell(epochs=4),
    "evolution": Evolution(epochs=6, size=12),
    "grid": Grid(steps=6),
}


def problem(seed: int = 0, queries: int = 15, rows: int = 10, features: int = 3) -> Candidates:
    """Rows whose labels follow a random direction of their features, with noise."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(queries * rows, features))
    hidden = matrix @ rng.normal(size=features) + 0.5 * rng.normal(size=len(matrix))
    return Candidates.of(np.digitize(hidden, np.quantile(hidden, [0.6, 0.9])), group=[rows] * queries, features=matrix)


def without_bias(rows: Candidates, seed: int = 1) -> Linear:
    model = Linear().prepared(rows, seed)
    return model.at(model.params.fix("bias"))


def run(method: Any, model: Model, rows: Candidates, name: str = "AP", seed: int = 3, **given: Any) -> Recorder:
    recorder = Recorder(model, rows, None, parse_measure(name), **given)
    if given.get("checkpoint") is not None:
        recorder.resume()
    method.run(recorder, None, np.random.default_rng(seed))
    return recorder


def measured(model: Model, rows: Candidates, measure: Measure) -> Callable[[Floats], float]:
    def at(values: Floats) -> float:
        scores = model.at(model.params.with_free(values)).score(rows)
        return measure.aggregate(measure.per_query(scores, rows))

    return at


def taylor_2006(at: Callable[[Floats], float], start: Floats, samples: int, epochs: int) -> list[float]:
    """Section 2.2 word for word, for parameters without bounds and a width of 1: the measure after each epoch."""
    point, scale, idle, told = start, 1.0, 0, [at(start)]
    for _ in range(epochs):
        if idle == 3:
            break
        offsets = sorted(scale * np.linspace(-1, 1, samples), key=abs)
        promising = np.zeros(len(point))
        for i in range(len(point)):
            best = told[-1]
            for x in offsets:
                moved = point.copy()
                moved[i] += x
                if at(moved) > best + 1e-12:
                    best, promising[i] = at(moved), x
        best, step = told[-1], 0.0
        for x in offsets:
            if at(point + x * promising) > best + 1e-12:
                best, step = at(point + x * promising), x
        point, idle, scale = point + step * promising, 0 if step else idle + 1, 0.85 * scale
        told.append(best)
    return told


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["AP", "nDCG(dcg='exp-log2')@5"])
def test_line_is_the_procedure_of_taylor_2006(seed: int, name: str) -> None:
    rows = problem(seed)
    model = without_bias(rows)
    recorder = run(Line(samples=9, epochs=10), model, rows, name)
    plain = taylor_2006(measured(model, rows, recorder.measure), model.params.free_values, 9, 10)
    assert [epoch.train for epoch in recorder.trail] == pytest.approx(plain, abs=1e-12)
    assert len(plain) > 2
    np.testing.assert_allclose(
        [epoch.rate for epoch in recorder.trail[1:]], 0.85 ** np.arange(len(plain) - 1), rtol=1e-12
    )


def test_line_stops_after_three_epochs_without_gain_or_after_24() -> None:
    rows = problem(1)
    recorder = run(Line(samples=5), without_bias(rows), rows)
    assert len(recorder.trail) <= 25
    assert recorder.stopped == "no gain in 3 epochs"
    assert len({epoch.train for epoch in recorder.trail[-4:]}) == 1
    assert len(run(Line(samples=5, epochs=2), without_bias(rows), rows).trail) == 3


def test_line_is_the_same_whatever_the_number_of_threads() -> None:
    import numba

    rows, threads = problem(2), numba.get_num_threads()
    found = []
    for count in (1, threads):
        numba.set_num_threads(count)
        found.append(run(METHODS["line"], without_bias(rows), rows).trail)
    numba.set_num_threads(threads)
    assert repr(found[0]) == repr(found[1])


@pytest.mark.parametrize("name", ["AP", "ESL"])
def test_grid_is_brute_force(name: str) -> None:
    rows, given = problem(3, features=2), {"w.1": [-1.0, 0.3, 2.0], "w.2": [0.5, -0.5]}
    model = without_bias(rows)
    grid = Grid(values=given)
    recorder = run(grid, model, rows, name)
    surface, at = grid.surface(recorder), measured(model, rows, recorder.measure)
    plain = np.array([at(np.array(point)) for point in product(*given.values())]).reshape(3, 2)
    assert surface.names == ("w.1", "w.2")
    np.testing.assert_array_equal(surface.values, plain)
    assert recorder.best is not None
    pick = min if recorder.measure.smaller_is_better else max
    assert recorder.best.train == pick(plain.min() if pick is min else plain.max(), recorder.trail[0].train)
    assert len(recorder.trail) == 4


def test_grid_goes_from_bound_to_bound_and_takes_three_parameters_at_most() -> None:
    params = Parameters.of({"k": (1.2, 0, np.inf), "b": (0.7, 0, 1)})
    k, b = Grid(steps=3).axes(params)
    assert k.tolist() == pytest.approx([0, 1.2, 2.4])
    assert b.tolist() == [0, 0.5, 1]
    rows = problem(0, features=4)
    with pytest.raises(UsageError, match="1 to 3 free parameters, not 4"):
        run(Grid(), without_bias(rows), rows)
    with pytest.raises(UsageError, match="within its bounds"):
        Grid(values={"b": [2.0]}).axes(params)
    with pytest.raises(UsageError, match="no free parameter"):
        Grid(values={"c": [2.0]}).axes(params)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["AP", "ESL"])
def test_every_method_gains_and_keeps_the_best(method: str, name: str) -> None:
    rows = problem(4)
    recorder = run(METHODS[method], without_bias(rows), rows, name)
    sign = -1 if recorder.measure.smaller_is_better else 1
    assert recorder.best is not None
    assert sign * recorder.best.train > sign * recorder.trail[0].train
    found = measured(recorder.model, rows, recorder.measure)(recorder.fit().model.params.free_values)
    assert found == pytest.approx(recorder.best.train)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "grid"])
def test_methods_climb_models_that_are_not_linear(method: str) -> None:
    rows = problem(5)
    recorder = run(METHODS[method], Network(hidden=1).prepared(rows, 0), rows)
    assert recorder.best is not None
    assert recorder.best.train > recorder.trail[0].train


@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_to_bounds(method: str) -> None:
    rows = problem(6)
    model = without_bias(rows)
    count = len(model.params)
    narrow = Parameters(model.params.names, np.full(count, 0.5), np.full(count, 0.4), np.full(count, np.inf))
    recorder = run(METHODS[method], model.at(narrow.fix("bias")), rows)
    assert recorder.best_values is not None
    assert (recorder.best_values >= 0.4).all()
    recorder.fit().model.params.check_bounds()


@pytest.mark.parametrize("method", METHODS)
def test_a_run_that_was_interrupted_goes_on_as_if_it_had_not_been(tmp_path: Path, method: str) -> None:
    rows = problem(7)
    model, chosen = without_bias(rows), METHODS[method]
    whole = run(chosen, model, rows)
    for stop in (0, 2):
        path = tmp_path / f"{stop}.checkpoint"

        def watch(epoch: Epoch, stop: int = stop) -> None:
            if epoch.number == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(chosen, model, rows, checkpoint=path, watch=watch)
        again = run(chosen, model, rows, seed=99, checkpoint=path)
        assert repr(again.trail[: stop + 1]) == repr(whole.trail[: stop + 1])
        if method == "powell" and stop:  # its set of directions is not kept
            assert again.best is not None
            assert again.best.train >= whole.trail[stop].train
        else:
            assert repr(again.trail) == repr(whole.trail)


def test_a_seed_settles_what_is_random() -> None:
    rows = problem(8)
    one, same, other = (run(METHODS["evolution"], without_bias(rows), rows, seed=seed).trail for seed in (1, 1, 2))
    assert repr(one) == repr(same)
    assert repr(one) != repr(other)


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
