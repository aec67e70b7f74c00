"""The queries of a data set can be evaluated in parts: values and gradients are those of the whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.candidates import Candidates
from fliprank.objectives import REGISTRY, LambdaRank, RankNet, SoftAP, SoftNDCG, SoftRank, parse_objective

NAMES = [name + ("@3" if name in ("softp", "softrecall") else "") for name in REGISTRY]
MORE = [
    "softndcg@3",
    "softrank@3",
    "softrank(method='recursion')",
    "softrank(method='sinkhorn')",
    "lambdarank(measure='AP')",
]


def problem(seed: int) -> tuple[np.random.Generator, np.ndarray, Candidates]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 12, 6)
    labels = rng.choice([0.0, 0.0, 1.0, 2.0, np.nan], sizes.sum())
    scores = rng.normal(size=sizes.sum()).round(1)
    return rng, scores, Candidates.of(labels, group=sizes, docids=[f"d{i}" for i in rng.permutation(sizes.sum())])


def assert_parts_add_up(objective, scores, rows, rng) -> None:
    share = rng.random(rows.queries) * (rng.random(rows.queries) < 0.8)
    values, gradient = objective.evaluate(scores, rows, share)
    part = rng.integers(0, 3, rows.queries)
    query = rows.query_of_rows()
    for k in range(3):
        queries, here = np.flatnonzero(part == k), np.flatnonzero(part[query] == k)
        found, pull = objective.take(here).evaluate(scores[here], rows.select(queries), share[queries])
        np.testing.assert_allclose(found, values[queries], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(pull, gradient[here], rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("name", NAMES + MORE)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=6, deadline=None)
def test_queries_evaluated_apart_have_the_same_values_and_gradients(name, seed):
    rng, scores, rows = problem(seed)
    assert_parts_add_up(parse_objective(name), scores, rows, rng)


@pytest.mark.parametrize("kind", [SoftNDCG, SoftAP, SoftRank])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=6, deadline=None)
def test_a_sigma_per_row_goes_with_its_rows(kind, seed):
    rng, scores, rows = problem(seed)
    assert_parts_add_up(kind(sigma=rng.uniform(0.1, 0.5, len(rows))), scores, rows, rng)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_chosen_pairs_go_with_their_rows(seed):
    rng, scores, rows = problem(seed)
    query = rows.query_of_rows()
    pairs = [(i, j) for i in range(len(rows)) for j in range(len(rows)) if i != j and query[i] == query[j]]
    chosen = rng.permutation(np.array(pairs, np.int64).reshape(-1, 2))[: len(pairs) // 2]
    for normalise in ("pairs", "none"):
        assert_parts_add_up(RankNet(pairs=chosen, normalise=normalise, target=0.8), scores, rows, rng)


def test_only_pairs_whose_rows_are_both_there_are_taken_and_renumbered():
    ranknet = RankNet(pairs=[[0, 1], [2, 4], [4, 5], [5, 2]])
    np.testing.assert_array_equal(ranknet.take([2, 4, 5]).pairs, [[0, 1], [1, 2], [2, 0]])
    np.testing.assert_array_equal(ranknet.take([0, 2, 5]).pairs, [[2, 1]])
    assert ranknet.take([]).pairs.shape == (0, 2)
    assert RankNet().take([1, 2]) == RankNet()
    np.testing.assert_array_equal(SoftNDCG(sigma=[1.0, 2.0, 3.0]).take([0, 2]).noise, [1.0, 3.0])
    assert SoftNDCG(sigma=0.3).take([0]) == SoftNDCG(sigma=0.3)
    assert LambdaRank().at(0.5) == LambdaRank()
