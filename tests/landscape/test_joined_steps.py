"""Steps of parts of the queries, joined, are bit for bit those of all queries; and so is what adds up from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lines import line
from test_model_trajectory import feature_rows, term_rows
from test_trajectory import MEASURES

from fliprank import landscape
from fliprank.data.candidates import Candidates
from fliprank.landscape.flips import line_of
from fliprank.landscape.step_function import add_up, step_function
from fliprank.landscape.steps import Steps, find_steps, join_steps
from fliprank.measures import Measure, parse_measure
from fliprank.models import BM25F, Linear, Network
from fliprank.models.base import Model


def splits(rng: np.random.Generator, queries: int) -> list[np.ndarray]:
    """The queries in order, cut at random places; parts may be empty."""
    cuts = np.sort(rng.integers(0, queries + 1, rng.integers(0, 4)))
    return np.split(np.arange(queries), cuts)


def assert_same(one: Steps, two: Steps, measure: Measure) -> None:
    for name in Steps._fields:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), strict=True)
    for joined, whole in zip(add_up(one, measure), add_up(two, measure), strict=True):
        np.testing.assert_array_equal(joined, whole, strict=True)


@pytest.mark.parametrize("measure", [*MEASURES, parse_measure("ESL"), parse_measure("ESL(n=2)")], ids=str)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), coincident=st.booleans())
def test_steps_of_parts_joined_are_those_of_all(measure: Measure, seed: int, coincident: bool) -> None:
    rng = np.random.default_rng(seed)
    many = line(rng, rng.integers(0, 40, 6).tolist(), coincident, ids=bool(seed % 2))
    low, high = (-np.inf, np.inf) if seed % 3 else (-1.0, 0.5)
    parts = []
    for queries in splits(rng, many.rows.queries):
        rows, chosen = many.rows.select(queries), np.isin(many.rows.query_of_rows(), queries)
        parts.append(find_steps(line_of(many.base[chosen], many.slope[chosen], rows, low, high), rows, measure))
    whole = find_steps(line_of(many.base, many.slope, many.rows, low, high), many.rows, measure)
    assert_same(join_steps(parts), whole, measure)


@pytest.mark.parametrize("name", ["AP", "nDCG@5", "GMAP", "CorrectPairs", "Bpref", "RR", "ERR@3", "ESL"])
@pytest.mark.parametrize("kind", ["bm25f", "network", "linear"])
def test_trajectories_of_parts_joined_are_those_of_all(kind: str, name: str) -> None:
    rng, measure = np.random.default_rng(7), parse_measure(name)
    rows: Candidates = term_rows(4) if kind == "bm25f" else feature_rows(8, (20, 15, 0, 25, 10))
    model: Model = {"bm25f": BM25F(), "network": Network(hidden=3), "linear": Linear()}[kind].prepared(rows, 1)
    direction = "title.w" if kind == "bm25f" else np.random.default_rng(3).normal(size=len(model.params.free_names))
    path = landscape.trajectory(model, rows, direction, name)
    assert path.at_least == (kind != "linear")
    assert len(path.breaks) > 3 or kind == "bm25f"
    for _ in range(3):
        parts = [
            landscape.trajectory(model, rows.select(queries), direction, name).steps
            for queries in splits(rng, rows.queries)
        ]
        assert_same(join_steps(parts), path.steps, measure)
    alone = step_function(join_steps(parts), name, path.low, path.high, true_ends=path.true_ends)
    assert (alone.maximum, alone.best_point(), alone.local_maxima()) == (
        path.maximum,
        path.best_point(),
        path.local_maxima(),
    )
    np.testing.assert_array_equal(alone.middles(), path.middles())
