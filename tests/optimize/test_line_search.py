"""One line, searched exactly: never worse than a grid, within bounds, and by bracketing where scores are not linear."""

from __future__ import annotations

import numpy as np
import pytest
from runs import coarse_rows, text_rows

from fliprank.errors import UsageError
from fliprank.measures import parse_measure
from fliprank.models import BM25F, BM25Sum, Feature, Linear, Network, Stack
from fliprank.models.parameters import Parameters
from fliprank.optimize.line import line_search


@pytest.mark.parametrize("name", ["nDCG@5", "AP", "ERR@3", "GMAP", "CorrectPairs"])
def test_a_line_search_never_loses_to_a_grid(name: str) -> None:
    rows, measure = coarse_rows(4), parse_measure(name)
    model = Linear().prepared(rows, 2)
    found = line_search(model, rows, "w.2", measure)
    grid = [
        measure.aggregate(measure.per_query(model.at(model.params.replace({"w.2": w})).score(rows), rows))
        for w in np.linspace(-3, 3, 10_000 if name == "nDCG@5" else 500)
    ]
    assert found.value >= max(grid) - 1e-12
    assert found.value == pytest.approx(found.path.maximum.value, abs=1e-12)
    assert found.model.params["w.2"] == pytest.approx(model.params["w.2"] + found.step)


def test_a_line_search_keeps_to_bounds_and_moves_shared_parameters_together() -> None:
    rows, measure = coarse_rows(5), parse_measure("AP")
    model = Linear().prepared(rows, 2)
    names, count = model.params.names, len(model.params)
    narrow = Parameters(names, np.full(count, 0.5), np.full(count, 0.4), np.full(count, 0.6))
    tied = model.at(narrow.tie({"both": ["w.1", "w.2"]}).fix("bias"))
    found = line_search(tied, rows, "both", measure)
    assert found.path.low == pytest.approx(-0.1)
    assert found.path.high == pytest.approx(0.1)
    assert found.model.params["w.1"] == found.model.params["w.2"]
    found.model.params.check_bounds()
    assert found.value >= found.before
    slanted = line_search(tied, rows, [1.0, -1.0, 0.0, 0.0], measure)
    slanted.model.params.check_bounds()


def test_a_line_search_that_finds_nothing_better_stays() -> None:
    rows = coarse_rows(6)
    model = Linear().prepared(rows, 2)
    found = line_search(model, rows, "bias", parse_measure("AP"))
    assert (found.step, found.model) == (0.0, model)


def test_parameters_that_are_not_linear_are_searched_by_bracketing() -> None:
    rows, measure = coarse_rows(7), parse_measure("AP")
    model = Network(hidden=2).prepared(rows, 0)
    found = line_search(model, rows, "w21.1.1", measure)
    assert found.path.resolution > 0
    grid = [
        measure.aggregate(measure.per_query(model.at(model.params.replace({"w21.1.1": w})).score(rows), rows))
        for w in np.linspace(*(model.params["w21.1.1"] + np.array([found.path.low, found.path.high])), 200)
    ]
    assert found.value >= max(grid) - 0.002


def test_the_weights_of_a_stack_are_searched_exactly_and_the_rest_by_bracketing() -> None:
    rows, measure = text_rows(), parse_measure("AP")
    stack = Stack(BM25F(), Feature("pagerank", "log")).prepared(rows, 0)
    exact = [stack.linear_along(along) for along in np.eye(len(stack.params.free_names))]
    assert 0 < sum(exact) < len(exact)
    for name, linear in zip(stack.params.free_names, exact, strict=True):
        found = line_search(stack, rows, name, measure)
        assert (found.path.resolution == 0) == linear
        assert found.value >= found.before
        if linear:
            grid = [
                measure.aggregate(measure.per_query(found.path.scores(x), rows))  # type: ignore[attr-defined]
                for x in np.linspace(max(found.path.low, -3), min(found.path.high, 3), 100)
            ]
            assert found.value >= max(grid) - 1e-12


def test_the_weights_of_a_sum_of_bm25_are_searched_exactly_and_the_rest_by_bracketing() -> None:
    rows, measure = text_rows(), parse_measure("AP")
    model = BM25Sum().prepared(rows, 0)
    for name in model.params.free_names:
        found = line_search(model, rows, name, measure)
        assert (found.path.resolution == 0) == name.endswith(".w")
        grid = [
            measure.aggregate(measure.per_query(model.at(model.params.replace({name: value})).score(rows), rows))
            for value in (np.linspace(0.01, 9, 100) if name.endswith(".w") else [model.params[name]])
        ]
        assert found.value >= max(grid) - 1e-12


def test_a_direction_that_does_not_exist_is_an_error() -> None:
    rows = coarse_rows(0)
    with pytest.raises(UsageError, match="no free parameter"):
        line_search(Linear().prepared(rows, 0), rows, "w.9", parse_measure("AP"))
