"""A problem over windows of files is the problem over the same rows in memory, however files and windows are cut.

Value and gradient are equal to 1e-10 (in fact to 1e-12), measures and exact searches to the last bit, for every
registered objective, measure and method; also where scores do not fit and are kept in a scratch file.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import without_bias
from test_shards import QUERIES, SETTINGS, SUMS_GRADIENTS, cuts, few, measures, objectives, points, run_on, split
from test_shards import rows_of as text_and_features

from fliprank.data.candidates import Candidates
from fliprank.data.file_rows import FileRows
from fliprank.data.memory import Memory
from fliprank.data.row_file import RowFile, write_rows
from fliprank.errors import InputError, UsageError
from fliprank.models import FeatureSubset, Linear, Model, Network
from fliprank.models.scaler import Scaler
from fliprank.objectives import RankNet
from fliprank.optimize.file_shards import STEP_PAGES, FileShards, Spilled
from fliprank.optimize.methods import METHODS, Exact
from fliprank.optimize.pairs import pairs_of
from fliprank.optimize.problem import Problem
from fliprank.optimize.shards import MemoryShards

MODELS: dict[str, Model] = {
    "linear": Linear(),
    "network": Network(2),
    "subset": FeatureSubset(Linear(), ["age", "length"]),
}


def rows_of(seed: int) -> Candidates:
    """The rows of test_shards.py without term statistics; judged documents that are not among the rows stay known."""
    return replace(text_and_features(seed), terms=None)


def in_files(rows: Candidates, ends: list[int], budget: int) -> FileRows:
    """The same rows in a file per part, with so little memory that windows hold a few queries, or one."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{number}.rows") for number in range(len(ends) - 1)]
        for path, part in zip(paths, split(rows, ends), strict=True):
            write_rows(path, part)
        return FileRows(tuple(map(RowFile, paths)), Memory(budget))  # the maps keep what the folder loses


budgets = st.sampled_from([1 << 8, 1 << 12, 1 << 14, 1 << 30])
"""From no room at all, where each query is a window and scores are on disk, to room for all."""


def both(
    model: Model, rows: Candidates, ends: list[int], budget: int, measure: Any = "AP", *objective: Any, **given: Any
) -> tuple[Problem, Problem]:
    sources = (rows, in_files(rows, ends, budget))
    whole, files = (Problem.of(model, each, measure, *objective, **given) for each in sources)
    assert isinstance(files.shards, FileShards)
    assert len(files.shards) >= len(ends) - 1
    return whole, files


@settings(max_examples=6, deadline=None)
@given(st.sampled_from(list(MODELS)), st.booleans(), st.integers(0, 99), cuts(), budgets)
def test_value_and_gradient_of_every_objective(
    kind: str, spread: bool, seed: int, ends: list[int], budget: int
) -> None:
    rows = rows_of(seed)
    model = MODELS[kind].prepared(rows, seed)
    for objective in objectives(rows):
        whole, files = both(model, rows, ends, budget, objective=objective, spread=spread)
        chosen = np.sort(np.random.default_rng(seed).permutation(QUERIES)[:5])
        for values in points(whole, seed):
            for queries in (None, chosen):
                (value, gradient), (other, pull) = (p.value_and_grad(values, queries) for p in (whole, files))
                assert other == pytest.approx(value, rel=1e-12, abs=1e-14), objective
                np.testing.assert_allclose(pull, gradient, atol=1e-12 * max(0.1, np.abs(gradient).max()), rtol=0)
            assert files.value(values) == pytest.approx(whole.value(values), rel=1e-12, abs=1e-14)


@settings(max_examples=6, deadline=None)
@given(st.sampled_from(list(MODELS)), st.integers(0, 99), cuts(), budgets)
def test_every_measure_and_every_trajectory_to_the_last_bit(kind: str, seed: int, ends: list[int], budget: int) -> None:
    rows = rows_of(seed)
    model = MODELS[kind].prepared(rows, seed)
    for measure in measures():
        whole, files = both(model, rows, ends, budget, measure)
        for values in points(whole, seed):
            np.testing.assert_array_equal(files.per_query(values), whole.per_query(values))
            places = [problem.place(values) for problem in (whole, files)]
            np.testing.assert_array_equal(places[1].measure, places[0].measure)
            assert files.ranks_nothing(places[1]) == whole.ranks_nothing(places[0])
        axes = np.eye(len(values))
        for direction in [axis for axis in axes if model.linear_along(axis)][:2] or [axes[0]]:
            try:
                path = whole.trajectory(places[0], direction, resolution=1 / 64)
            except UsageError:  # measures without steps
                with pytest.raises(UsageError):
                    files.trajectory(places[1], direction, resolution=1 / 64)
                continue
            other = files.trajectory(places[1], direction, resolution=1 / 64)
            assert (path is None) == (other is None)
            if path is not None and other is not None:
                assert other.breaks.tolist() == path.breaks.tolist()
                np.testing.assert_array_equal(other.values, path.values)


@pytest.mark.parametrize("name", METHODS)
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 99), ends=cuts(), budget=budgets)
def test_every_method_makes_the_same_run(name: str, seed: int, ends: list[int], budget: int) -> None:
    rows = rows_of(seed)
    method = METHODS[name](**SETTINGS.get(name, {}))
    model: Model = Linear().prepared(rows, seed)
    model = few(model) if name == "grid" else model
    problems = both(model, rows, ends, budget, "AP", None if method.direct else RankNet())
    one, other = (run_on(method, problem) for problem in problems)
    assert len(other.trail) == len(one.trail) > 1
    assert other.stopped == one.stopped
    tolerance = 1e-9 if name in SUMS_GRADIENTS else 0.0
    scale = np.maximum(np.abs(one.path), 1.0)
    np.testing.assert_allclose(np.array(other.path) / scale, np.array(one.path) / scale, rtol=0, atol=tolerance)
    for theirs, values in zip(one.trail, one.path, strict=True):
        assert problems[1].measure_at(values) == theirs.train


@settings(max_examples=4, deadline=None)
@given(st.sampled_from(["AP", "nDCG@5", "GMAP"]), st.integers(0, 99), cuts(), budgets)
def test_a_whole_exact_search_is_the_same_to_the_last_bit(name: str, seed: int, ends: list[int], budget: int) -> None:
    rows = rows_of(seed)
    method = Exact(directions="axes", epochs=4, restarts=2)
    problems = both(Linear().prepared(rows, seed), rows, ends, budget, name, RankNet())
    one, other = (run_on(method, problem) for problem in problems)
    assert repr(other.trail) == repr(one.trail)
    assert np.array(other.path).tolist() == np.array(one.path).tolist()


@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 99), ends=cuts(), budget=budgets)
def test_pairs_that_are_given_by_row_are_found_in_their_windows(seed: int, ends: list[int], budget: int) -> None:
    rows = rows_of(seed)
    objective = RankNet(pairs=pairs_of(RankNet(), rows)[::2])
    for name in ("taylor2006", "taylor2008"):
        problems = both(Linear().prepared(rows, seed), rows, ends, budget, "AP", objective)
        one, other = (run_on(METHODS[name](**SETTINGS[name]), problem) for problem in problems)
        assert np.array(other.path).tolist() == np.array(one.path).tolist()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 99), cuts(), budgets, st.integers(1, 40))
def test_a_model_is_prepared_on_files_as_in_memory(seed: int, ends: list[int], budget: int, block: int) -> None:
    """The scaler is the same to the last bit, wherever parts end within the blocks in which values are added up."""
    rows, patch = rows_of(seed), pytest.MonkeyPatch()
    with patch.context() as within:
        within.setattr("fliprank.data.scattered.BLOCK", block)
        whole, files = (Scaler.of(each) for each in (rows, in_files(rows, ends, budget)))
    assert files.names == whole.names
    np.testing.assert_array_equal(files.mean, whole.mean)
    np.testing.assert_array_equal(files.scale, whole.scale)


def test_steps_for_pairs_open_no_window_and_read_none_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step reads its two rows; pages are let go of when many steps have come together, and at last all are."""
    rows = rows_of(3)
    files, calls = in_files(rows, [0, 3, QUERIES], 1 << 31), Counter[str]()
    problem = Problem.of(without_bias(rows), files, "AP", RankNet())
    pairs, whole = problem.pairs, Problem.of(without_bias(rows), rows, "AP", RankNet()).pairs

    def counted(name: str) -> Any:
        really = getattr(RowFile, name)

        def call(*given: Any, **how: Any) -> Any:
            calls[name] += 1
            return really(*given, **how)

        return call

    for name in ("part", "fetch", "release"):
        monkeypatch.setattr(RowFile, name, counted(name))
    order = np.tile(np.random.default_rng(0).permutation(len(pairs)), 20)
    values = problem.params.free_values
    assert pairs.descend(values, order, 0.01).tolist() == whole.descend(values, order, 0.01).tolist()
    assert calls["part"] == calls["fetch"] == 0
    steps = 1 + np.count_nonzero(np.diff(np.searchsorted(pairs.begin, order, "right")))
    limit = files.memory.window // STEP_PAGES
    assert calls["release"] <= len(files.windows) * (steps // limit)
    assert steps > limit
    assert calls["release"] > 0


def test_with_little_memory_scores_are_on_disk_and_batches_in_memory() -> None:
    rows = rows_of(1)
    files = in_files(rows, [0, 3, QUERIES], 1 << 8)
    problem = Problem.of(without_bias(rows), files, "AP", RankNet())
    assert len(problem.shards) == QUERIES
    scores = problem.place(problem.params.free_values).scores
    assert all(isinstance(handle, Spilled) for handle, size in zip(scores, rows.sizes, strict=True) if size > 2)
    roomy = Problem.of(without_bias(rows), in_files(rows, [0, 3, QUERIES], 1 << 30), "AP", RankNet())
    assert isinstance(roomy.shards.select(np.array([1, 4])), MemoryShards)
    assert all(isinstance(handle, np.ndarray) for handle in roomy.place(problem.params.free_values).scores)


def test_a_full_disk_says_where_scores_could_not_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(1)
    problem = Problem.of(without_bias(rows), in_files(rows, [0, QUERIES], 1 << 8), "AP")
    monkeypatch.setattr("tempfile.TemporaryFile", lambda prefix: open("/dev/full", "r+b"))  # noqa: SIM115
    with pytest.raises(InputError, match=r"No space left.*TMPDIR"):
        problem.measure_at(problem.params.free_values)
