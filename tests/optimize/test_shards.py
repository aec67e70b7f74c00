"""A problem over shards is the problem over all rows, wherever one shard ends and the next begins.

Value and gradient are equal to 1e-12, measures and exact searches to the last bit, for every registered objective,
measure and method. So a method can't tell whether rows are here, in windows of a file, or on other machines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pytest
from far_shards import FarShards
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import random_rows, text_rows, without_bias

from fliprank.data.candidates import Candidates, concat
from fliprank.errors import UsageError
from fliprank.measures import REGISTRY as MEASURES
from fliprank.measures import Measure
from fliprank.models import BM25F, BM25Sum, Feature, Linear, Model, Network, Stack
from fliprank.objectives import REGISTRY as OBJECTIVES
from fliprank.objectives import Objective, RankNet, parse_objective
from fliprank.optimize.fit import Recorder
from fliprank.optimize.methods import METHODS, Exact, Method
from fliprank.optimize.pairs import pairs_of
from fliprank.optimize.problem import Problem
from fliprank.optimize.scored import Scored
from fliprank.optimize.shards import MemoryShards

T = TypeVar("T")
QUERIES = 8
MODELS: dict[str, Model] = {
    "linear": Linear(),
    "network": Network(2),
    "bm25f": BM25F(),
    "sum": BM25Sum(),
    "stack": Stack(BM25F(), Feature("pagerank", "log")),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "line": {"samples": 7, "epochs": 4},
    "golden": {"samples": 7, "epochs": 4},
    "brent": {"samples": 7, "epochs": 4},
    "sampled": {"samples": 7, "epochs": 3},
    "exact": {"epochs": 3, "restarts": 2, "bag": 0.7},
    "evolution": {"epochs": 3, "size": 8},
    "powell": {"epochs": 2},
    "grid": {"steps": 3},
    "lbfgs": {"epochs": 3},
    "adam": {"epochs": 3, "batch": 2},
    "metzler2007": {"epochs": 2, "samples": 8},
    "taylor2006": {"epochs": 3, "rate": 0.05},
    "taylor2008": {"epochs": 4, "rate": 0.3, "patience": 2},
}
"""Short runs; a method that is not here runs with its own settings."""

SUMS_GRADIENTS = ("lbfgs", "adam", "metzler2007")
"""Methods that add up gradients of several queries: shards add them up in another order."""


def rows_of(seed: int) -> Candidates:
    """Rows with three features and term statistics; queries of 1 to 9 rows; some rows are unjudged, some missed."""
    plain = text_rows(QUERIES, 9, seed)
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(len(plain)) < 0.2, np.nan, plain.labels)
    sizes = rng.integers(3, 10, QUERIES)
    sizes[rng.permutation(QUERIES)[:2]] = 1, 2
    rank, names = np.arange(len(plain)) % 9, ("pagerank", "age", "length")
    features = np.column_stack([plain.features, rng.normal(size=(len(plain), 2))]).astype(np.float32)
    full = replace(plain, labels=labels, features=features, feature_names=names)
    return full.take(np.flatnonzero(rank < np.repeat(sizes, 9)))


def model_of(kind: str, rows: Candidates, seed: int) -> Model:
    return MODELS[kind].prepared(rows, seed)


@st.composite
def cuts(draw: st.DrawFn) -> list[int]:
    """Where 2 to 5 shards begin and end; among them single queries."""
    inner = draw(st.lists(st.integers(1, QUERIES - 1), min_size=1, max_size=4, unique=True))
    return [0, *sorted(inner), QUERIES]


def split(rows: Candidates, ends: list[int]) -> list[Candidates]:
    return [rows.select(np.arange(low, high)) for low, high in pairwise(ends)]


def both(
    model: Model, rows: Candidates, ends: list[int], measure: Any = "AP", objective: Any = None, **given: Any
) -> tuple[Problem, Problem]:
    """The problem over all rows, and over shards."""
    whole, parts = (Problem.of(model, part, measure, objective, **given) for part in (rows, split(rows, ends)))
    assert (len(whole.shards), len(parts.shards)) == (1, len(ends) - 1)
    return whole, parts


def points(problem: Problem, seed: int) -> list[np.ndarray]:
    """The start, and a random point within bounds."""
    params, rng = problem.params, np.random.default_rng(seed)
    moved = params.free_values + 0.3 * params.free_scale * rng.normal(size=len(params.free_names))
    return [params.free_values, np.clip(moved, params.free_lower, params.free_upper)]


def made(kind: Callable[..., T]) -> T:
    """An objective or a measure, with a cut-off where it needs one."""
    try:
        return kind()
    except UsageError:
        return kind(cutoff=3)


def objectives(rows: Candidates) -> list[Objective]:
    """Every registered objective, and those variants that know rows by number."""
    rng = np.random.default_rng(0)
    pairs = pairs_of(RankNet(), rows)
    known = [made(kind) for kind in OBJECTIVES.values()]
    cut = [parse_objective(name) for name in ("lambdarank@3", "softndcg(sigma=0.5)@3", "softap(sigma=1.0)")]
    return [*known, *cut, RankNet(pairs=pairs[rng.random(len(pairs)) < 0.5])]


def measures() -> list[Measure]:
    return [made(kind) for kind in dict.fromkeys(MEASURES.values())]


# The objective


@settings(max_examples=6, deadline=None)
@given(st.sampled_from(list(MODELS)), st.booleans(), st.integers(0, 99), cuts())
def test_value_and_gradient_of_every_objective(kind: str, spread: bool, seed: int, ends: list[int]) -> None:
    rows = rows_of(seed)
    model = model_of(kind, rows, seed)
    for objective in objectives(rows):
        whole, parts = both(model, rows, ends, objective=objective, spread=spread)
        chosen = np.sort(np.random.default_rng(seed).permutation(QUERIES)[:5])
        for values in points(whole, seed):
            for queries in (None, chosen):
                (value, gradient), (other, pull) = (p.value_and_grad(values, queries) for p in (whole, parts))
                assert other == pytest.approx(value, rel=1e-12, abs=1e-14), objective
                # Where pulls of about 1 cancel, what is left is rounding.
                np.testing.assert_allclose(pull, gradient, atol=1e-12 * max(0.1, np.abs(gradient).max()), rtol=0)


def test_a_spread_is_that_of_all_shards_also_where_one_has_none() -> None:
    """The first query's scores are equal at these weights: it has no spread of its own."""
    rows = Candidates.of([1, 0, 1, 0, 0], group=[2, 3], features=[[1, 0], [1, 5], [2, 0], [1, 1], [7, 2]])
    model = Linear().prepared(rows, 0)
    parts = [rows.select([0]), rows.select([1])]
    whole, shards = (Problem.of(model, each, "AP", RankNet(), spread=True) for each in (rows, parts))
    for weights in ([0.0, 1.0, 0.0], [0.0, 0.3, 0.4], [0.0, 0.0, 0.0]):
        (value, gradient), (other, pull) = (p.value_and_grad(np.array(weights)) for p in (whole, shards))
        assert other == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(pull, gradient, atol=1e-13)


# The measure


@settings(max_examples=6, deadline=None)
@given(st.sampled_from(list(MODELS)), st.integers(0, 99), cuts())
def test_every_measure_and_ties(kind: str, seed: int, ends: list[int]) -> None:
    rows = rows_of(seed)
    model = model_of(kind, rows, seed)
    for measure in measures():
        whole, parts = both(model, rows, ends, measure)
        for values in points(whole, seed):
            np.testing.assert_array_equal(parts.per_query(values), whole.per_query(values))
            np.testing.assert_array_equal(parts.measure_at(values), whole.measure_at(values), str(measure))
            ties = [problem.ranks_nothing(problem.place(values)) for problem in (parts, whole)]
            assert ties[0] == ties[1]
            line, other = (problem.line(values, points(whole, seed)[1]) for problem in (whole, parts))
            np.testing.assert_array_equal(other(0.1), line(0.1))


# Exact searches


@settings(max_examples=4, deadline=None)
@given(st.sampled_from(list(MODELS)), st.integers(0, 99), cuts())
def test_trajectories_of_every_measure_are_the_same_to_the_last_bit(kind: str, seed: int, ends: list[int]) -> None:
    rows = rows_of(seed)
    model, breaks = model_of(kind, rows, seed), 0
    for measure in measures():
        whole, parts = both(model, rows, ends, measure)
        first, second = (problem.place(points(whole, seed)[1]) for problem in (whole, parts))
        # Bracketing takes time: one of the directions that are not linear is enough.
        linear = [axis for axis in np.eye(len(first.values)) if model.linear_along(axis)]
        bent = [axis for axis in np.eye(len(first.values)) if not model.linear_along(axis)][:1]
        for direction in [*linear, *bent]:
            try:
                path = whole.trajectory(first, direction, resolution=1 / 64)
            except UsageError:  # measures without steps
                with pytest.raises(UsageError):
                    parts.trajectory(second, direction, resolution=1 / 64)
                continue
            other = parts.trajectory(second, direction, resolution=1 / 64)
            assert (path is None) == (other is None)
            if path is not None and other is not None:
                assert other.breaks.tolist() == path.breaks.tolist()
                np.testing.assert_array_equal(other.values, path.values)
                assert other.best_point() == path.best_point()
                breaks += len(path.breaks)
    assert breaks


@settings(max_examples=4, deadline=None)
@given(st.sampled_from(["linear", "stack"]), st.sampled_from(["AP", "nDCG@5", "GMAP"]), st.integers(0, 99), cuts())
def test_a_whole_exact_search_is_the_same_to_the_last_bit(kind: str, name: str, seed: int, ends: list[int]) -> None:
    rows = rows_of(seed)
    one, other = (
        run_on(Exact(directions="axes", epochs=4, restarts=2), problem)
        for problem in both(model_of(kind, rows, seed), rows, ends, name, RankNet())
    )
    assert repr(other.trail) == repr(one.trail)
    assert np.array(other.path).tolist() == np.array(one.path).tolist()
    assert other.stopped == one.stopped


# Methods


def run_on(method: Method, problem: Problem) -> Recorder:
    recorder = Recorder(problem)
    method.run(problem, recorder, np.random.default_rng(7))
    recorder.finish()
    return recorder


def few(model: Model) -> Model:
    """With three free parameters, which a full grid takes."""
    names = model.params.free_names
    return model.at(model.params.fix(names[:-3])) if len(names) > 3 else model


@pytest.mark.parametrize("kind", ["linear", "bm25f", "stack"])
@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 99), ends=cuts())
def test_every_method_makes_the_same_run(name: str, kind: str, seed: int, ends: list[int]) -> None:
    rows = rows_of(seed)
    method = METHODS[name](**SETTINGS.get(name, {}))
    model = model_of(kind, rows, seed)
    model = few(model) if name == "grid" else model
    objective = None if method.direct else RankNet()
    spread = not (method.direct or method.as_printed or model.scales_freely)
    problems = both(model, rows, ends, "AP", objective, spread=spread)
    one, other = (run_on(method, problem) for problem in problems)
    assert len(other.trail) == len(one.trail) > 1
    assert other.stopped == one.stopped
    tolerance = 1e-9 if name in SUMS_GRADIENTS else 0.0
    scale = np.maximum(np.abs(one.path), 1.0)
    np.testing.assert_allclose(np.array(other.path) / scale, np.array(one.path) / scale, rtol=0, atol=tolerance)
    for mine, theirs, values in zip(other.trail, one.trail, one.path, strict=True):
        assert mine.objective == pytest.approx(theirs.objective, rel=max(tolerance, 1e-12))
        # A step in the last bits may part documents that tie: so the measure is compared at the very same values.
        assert problems[1].measure_at(values) == theirs.train
        np.testing.assert_array_equal(mine.rate, theirs.rate)


@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 99), ends=cuts())
def test_pairs_that_are_given_by_row_are_found_in_their_shards(seed: int, ends: list[int]) -> None:
    rows = rows_of(seed)
    pairs = pairs_of(RankNet(), rows)[::2]
    for name in ("taylor2006", "taylor2008"):
        method = METHODS[name](**SETTINGS[name])
        one, other = (
            run_on(method, problem)
            for problem in both(Linear().prepared(rows, seed), rows, ends, "AP", RankNet(pairs=pairs))
        )
        # RankNet numbers pairs shard by shard: given in the order of queries, that is the same order.
        assert np.array(other.path).tolist() == np.array(one.path).tolist()


def test_a_shard_without_rows_changes_nothing() -> None:
    rows = random_rows(3)
    empty = rows.take(np.flatnonzero(rows.query_of_rows() != 0)).select([0])
    assert len(empty) == 0
    whole = concat(empty, rows.select(np.arange(1, 15)))
    parts = [empty, rows.select(np.arange(1, 9)), rows.select(np.arange(9, 15))]
    model = without_bias(rows)
    one, other = (Problem.of(model, each, "AP", RankNet(), spread=True) for each in (whole, parts))
    values = model.params.free_values
    assert other.measure_at(values) == one.measure_at(values)
    assert other.value_and_grad(values)[0] == pytest.approx(one.value_and_grad(values)[0], rel=1e-12)
    assert repr(run_on(Exact(directions="axes"), other).trail) == repr(run_on(Exact(directions="axes"), one).trail)


# Shards that are elsewhere


@pytest.mark.parametrize("kind", ["linear", "bm25f"])
@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=1, deadline=None)
@given(seed=st.integers(0, 99), ends=cuts())
def test_a_method_can_not_tell_shards_here_from_shards_that_are_far(
    name: str, kind: str, seed: int, ends: list[int]
) -> None:
    """In any order of answers, with nothing but pickled questions and handles between: the same run, bit for bit."""
    rows = rows_of(seed)
    method = METHODS[name](**SETTINGS.get(name, {}))
    model = model_of(kind, rows, seed)
    model = few(model) if name == "grid" else model
    spread = not (method.direct or method.as_printed or model.scales_freely)
    near = Problem.of(model, split(rows, ends), "AP", None if method.direct else RankNet(), spread=spread)
    assert isinstance(near.shards, MemoryShards)
    far = replace(near, shards=FarShards.of(list(near.shards), seed), scored=Scored())
    one, other = (run_on(method, problem) for problem in (near, far))
    assert repr(other.trail) == repr(one.trail)
    assert np.array(other.path).tolist() == np.array(one.path).tolist()
    assert other.stopped == one.stopped
    assert far.scored.documents == near.scored.documents
