"""The sum of BM25 per field: the formula in plain NumPy, finite differences, BM25 by BM25, edges, lines of weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_rows import finite_differences
from term_candidates import random_terms
from test_bm25 import one_row

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.models import BM25, BM25Sum, Feature, Model, Stack, load_model

SEEDS = st.integers(0, 10**9)


def plain_sum(rows: Candidates, average: Any, theta: np.ndarray) -> np.ndarray:
    """The formula, one document at a time; theta: fields x (w, k, b, a)."""
    terms, out = rows.terms, np.zeros(len(rows))
    assert terms is not None
    w, k, b, a = theta.T
    for q in range(rows.queries):
        idf = (terms.idf * terms.count)[terms.offsets[q] : terms.offsets[q + 1]]
        for row in range(rows.offsets[q], rows.offsets[q + 1]):
            tf, length = terms.of_row(row).astype(float), terms.length[row].astype(float)
            known = (length > 0) & (np.array(average) > 0)
            beta = 1 - b + b * np.where(known, length / np.where(known, average, 1), 1.0)
            x = np.where(tf > 0, tf**a, 0.0)
            part = np.divide(w * x, x + k * beta, out=np.zeros_like(x), where=x > 0)
            out[row] = (idf[:, None] * part).sum()
    return out


def random_theta(rng: np.random.Generator, fields: int) -> np.ndarray:
    columns = [rng.choice([0.0, 0.3, 1.0, 5.0], fields), rng.uniform(0.2, 3, fields)]
    columns += [rng.uniform(0, 1, fields), rng.choice([0.0, 0.4, 1.0, 1.7], fields)]
    return np.stack(columns, 1)


@given(SEEDS, st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_the_sum_is_its_formula(seed: int, fields: int) -> None:
    rng = np.random.default_rng(seed)
    rows, theta = random_terms(rng, fields=fields), random_theta(rng, fields)
    model = BM25Sum().prepared(rows, 0).at(theta.ravel())
    average = rows.terms.tokens / rows.terms.documents
    assert model.score(rows) == pytest.approx(plain_sum(rows, average, theta), rel=1e-6, abs=1e-9)


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_without_curves_it_is_bm25_of_each_field_weighted_and_added_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, theta = random_terms(rng), random_theta(rng, 3)
    theta[:, 3] = 1.0
    expected = np.zeros(len(rows))
    for name, (w, k, b, _) in zip(rows.terms.fields, theta, strict=True):
        expected += w * BM25(name).prepared(rows, 0).at([k, b]).score(rows)
    model = BM25Sum().prepared(rows, 0)
    assert model.params.default[3::4].tolist() == [1.0] * 3
    assert not model.params.free[3::4].any()
    assert model.at(theta.ravel()).score(rows) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(SEEDS, st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_pullback_is_the_gradient(seed: int, fields: int) -> None:
    rng = np.random.default_rng(seed)
    rows, theta = random_terms(rng, fields=fields), random_theta(rng, fields)
    theta[:, 0], theta[:, 3] = np.maximum(theta[:, 0], 0.05), np.maximum(theta[:, 3], 0.05)
    theta[:, 2] = np.minimum(theta[:, 2], 0.95)  # nearer to 1, short fields bend too sharply for finite differences
    model, dscores = BM25Sum(curves=True).prepared(rows, 0).at(theta.ravel()), rng.normal(size=len(rows))
    expected = finite_differences(model, rows, dscores)
    assert model.pullback(rows, dscores) == pytest.approx(expected, rel=1e-5, abs=1e-6)


@given(SEEDS, st.floats(-2, 2))
@settings(max_examples=20, deadline=None)
def test_scores_are_linear_along_weights_and_along_nothing_else(seed: int, x: float) -> None:
    rng = np.random.default_rng(seed)
    rows = random_terms(rng)
    model = BM25Sum(curves=True).prepared(rows, 0).at(random_theta(rng, 3).ravel())
    direction = np.zeros(12)
    direction[::4] = rng.normal(size=3)
    assert model.linear_along(direction)
    moved = model.at(model.params.values + x * direction).score(rows)
    assert moved == pytest.approx(model.score(rows) + x * model.slope(rows, direction), rel=1e-9, abs=1e-9)
    for i in (1, 2, 3):
        assert not model.linear_along(direction + np.eye(12)[i])
    with pytest.raises(UsageError, match="linear along its weights only"):
        model.slope(rows, np.eye(12)[5])


def test_a_curve_of_0_counts_whether_a_term_occurs_and_below_1_it_flattens() -> None:
    one, many = one_row([[1]], [10]), one_row([[9]], [10])
    known = BM25Sum(curves=True).prepared(one, 0)
    assert known.at([1, 1.2, 0, 0]).score(many) == pytest.approx(known.at([1, 1.2, 0, 0]).score(one))
    plain, half = (known.at([1, 1.2, 0, a]).score(many)[0] for a in (1.0, 0.5))
    assert (plain, half) == pytest.approx((9 / 10.2, 3 / 4.2))


def test_edges_have_values_and_finite_slopes() -> None:
    for tf, length, known, expected in (
        ([[0, 2]], [0, 5], {"tokens": [300, 500], "documents": 100}, 2 / 3.2),  # an empty field
        ([[0, 0]], [0, 0], {"tokens": [300, 500], "documents": 100}, 0.0),  # an empty document
        ([[0, 2]], [0, 0], {}, 2 / 3.2),  # all lengths unknown
        (np.zeros((0, 2)), [1, 1], {}, 0.0),  # a query without terms
    ):
        rows = one_row(tf, length, np.ones(len(tf)), **known)
        for b in (0.0, 1.0):
            model = BM25Sum().prepared(rows, 0).at([1, 1.2, b, 1] * 2)
            assert model.score(rows) == pytest.approx([expected])
            assert np.isfinite(model.pullback(rows, [1.0])).all()
    rows = one_row([[2, 0], [0, 3]], [4, 9], [1.0, 10.0])
    saturated = BM25Sum().prepared(rows, 0).at([1, 0, 0.5, 1, 2, 0, 0.5, 0])
    assert saturated.score(rows).tolist() == [21.0]
    assert saturated.pullback(rows, [1.0]) == pytest.approx([1, -1 / 2, 0, 0, 10, -20, 0, 0])


def test_all_weights_times_a_number_rank_alike() -> None:
    rng = np.random.default_rng(3)
    rows, theta = random_terms(rng, queries=20), random_theta(rng, 3)
    model, larger = BM25Sum().prepared(rows, 0), theta.copy()
    larger[:, 0] *= 7
    assert model.at(larger.ravel()).score(rows) == pytest.approx(7 * model.at(theta.ravel()).score(rows))


@pytest.mark.parametrize(
    "model", [BM25Sum(), BM25Sum(["body", "title"], curves=True), Stack(BM25Sum(), Feature("age"))]
)
def test_saved_models_come_back(model: Model, tmp_path: Path) -> None:
    rows = random_terms(np.random.default_rng(5), queries=20)
    ready = model.prepared(rows, 0).initialised(3)
    ready.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert type(loaded) is type(model)
    assert loaded.params.free_names == ready.params.free_names
    np.testing.assert_array_equal(loaded.score(rows), ready.score(rows))
    np.testing.assert_array_equal(loaded.pullback(rows, np.ones(len(rows))), ready.pullback(rows, np.ones(len(rows))))


def test_threads_change_no_bit_and_a_row_has_one_score_wherever_it_stands() -> None:
    rows = random_terms(np.random.default_rng(8), queries=300, rows=100)
    assert len(rows) > 8192  # several chunks
    model, dscores = BM25Sum().prepared(rows, 0), np.random.default_rng(9).normal(size=len(rows))
    scores, chosen = model.score(rows), np.arange(0, 300, 7)
    parts = [scores[slice(*rows.offsets[q : q + 2])] for q in chosen]
    np.testing.assert_array_equal(model.score(rows.select(chosen)), np.concatenate(parts))
    results = []
    try:
        for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
            numba.set_num_threads(threads)
            results.append(model.pullback(rows, dscores).tolist())
    finally:
        numba.set_num_threads(1)
    assert results[0] == results[1]
    cuts = range(0, 300, 30)
    pieces = [(rows.select(range(q, q + 30)), dscores[rows.offsets[q] : rows.offsets[q + 30]]) for q in cuts]
    assert results[0] == pytest.approx(sum(model.pullback(piece, own) for piece, own in pieces))


def test_wrong_use_is_told() -> None:
    rows = one_row([[1]], [1])
    with pytest.raises(UsageError, match=r"this bm25sum model knows no lengths yet.*prepared\(train, rng\)"):
        BM25Sum(["title"]).score(rows)
    with pytest.raises(InputError, match=r"lack: a .*they have title"):
        BM25Sum(["a"]).prepared(rows, 0)
    with pytest.raises(InputError, match="no term statistics"):
        BM25Sum().prepared(replace(rows, terms=None), 0)
