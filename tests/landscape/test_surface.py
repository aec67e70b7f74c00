"""Surfaces against the measure or objective of the model at each point."""

from __future__ import annotations

import numpy as np
import pytest

from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.landscape.batch import values_at
from fliprank.landscape.surface import surface
from fliprank.measures import parse_measure
from fliprank.models import Linear, Network
from fliprank.models.base import Model
from fliprank.objectives import parse_objective


def rows_of(seed: int) -> Candidates:
    rng = np.random.default_rng(seed)
    return Candidates.of(rng.integers(0, 3, 50), group=[20, 0, 30], features=rng.normal(size=(50, 3)))


@pytest.mark.parametrize("name", ["nDCG@5", "GMAP", "ranknet", "mse"])
@pytest.mark.parametrize("kind", [Linear(), Network(hidden=2)], ids=["linear", "network"])
def test_each_point_is_the_model_there(kind: Model, name: str) -> None:
    rows = rows_of(1)
    model = kind.prepared(rows, 0)
    first, second = model.params.free_names[1:3]
    found = surface(model, rows, (first, second), name, {first: [-1, 0, 2], second: [0.5, 1.5]})
    assert found.values.shape == (3, 2)
    for i, x in enumerate(found.axes[0]):
        for j, y in enumerate(found.axes[1]):
            scores = model.at(model.params.replace({first: x, second: y})).score(rows)
            if name in ("ranknet", "mse"):
                expected = parse_objective(name).value_and_grad(scores, rows)[0]
            else:
                measure = parse_measure(name)
                expected = measure.aggregate(measure.per_query(scores, rows))
            assert found.values[i, j] == pytest.approx(expected, abs=1e-9)
    better = found.values.max() if found.larger_is_better else found.values.min()
    assert found.best[2] == better
    assert found.larger_is_better == (name not in ("ranknet", "mse"))


def test_blocks_of_points_do_not_change_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, measure = rows_of(2), parse_measure("AP")
    scores = np.random.default_rng(0).normal(size=(7, 50))
    expected = [measure.aggregate(measure.per_query(each, rows)) for each in scores]
    for block in (1, 100, 170, 10_000):
        monkeypatch.setattr("fliprank.landscape.batch.BLOCK", block)
        np.testing.assert_allclose(values_at(lambda i: scores[i], 7, rows, measure), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [Linear(), Network(hidden=2)], ids=["linear", "network"])
def test_a_grid_has_as_many_sides_as_parameters(kind: Model) -> None:
    rows, measure = rows_of(4), parse_measure("AP")
    model = kind.prepared(rows, 0)
    names = model.params.free_names[1:4]
    grid = {name: [-0.5, 0.25, 1.0][: i + 1] for i, name in enumerate(names)}
    for count in (1, 3):
        found = surface(model, rows, names[:count], "AP", {name: grid[name] for name in names[:count]})
        assert found.values.shape == tuple(range(1, count + 1))
        for place in np.ndindex(found.values.shape):
            point = {name: axis[i] for name, axis, i in zip(names, found.axes, place, strict=False)}
            there = model.at(model.params.replace(point))
            assert found.values[place] == pytest.approx(measure.value(there.score(rows), rows), abs=1e-12)
        assert found.best[-1] == found.values.max()
    assert surface(model, rows, names[0], "AP").values.shape == (201,)


def test_the_grid_stays_within_bounds_and_two_parameters() -> None:
    rows = rows_of(3)
    model = Linear().prepared(rows, 0)
    found = surface(model, rows, ("w.1", "w.2"), "AP")
    assert (len(found.axes[0]), np.ptp(found.axes[0])) == (41, pytest.approx(4))
    with pytest.raises(UsageError, match="one to three parameters"):
        surface(model, rows, ("w.1", "w.1"), "AP")
    with pytest.raises(UsageError, match="one to three parameters"):
        surface(model, rows, ("bias", "w.1", "w.2", "w.3"), "AP")
    with pytest.raises(UsageError, match="takes numbers from"):
        surface(model, rows, ("w.1", "w.2"), "AP", {"w.1": [np.nan]})
    with pytest.raises(UsageError, match=r"given for w\.3"):
        surface(model, rows, ("w.1", "w.2"), "AP", {"w.3": [1]})
    with pytest.raises(UsageError, match="unknown measure"):
        surface(model, rows, ("w.1", "w.2"), "nDCK@5")
