"""SoftAP and SoftRR: against enumerated and sampled contests, the hard measures, and central differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_objectives import central_difference, contest_matrix

from fliprank.data.candidates import Candidates
from fliprank.measures import AP, RR
from fliprank.objectives import SoftAP, SoftRR


def enumerated(scores, sigma, relevant) -> tuple[float, float]:
    """(AP, RR) by summing over every outcome of each relevant document's contests."""
    pi, ap, rr = contest_matrix(scores, sigma), 0.0, 0.0
    for j in np.flatnonzero(relevant):
        others = [i for i in range(len(scores)) if i != j]
        for wins in itertools.product((0, 1), repeat=len(others)):
            chance = np.prod([pi[i, j] if won else 1 - pi[i, j] for i, won in zip(others, wins, strict=True)])
            good = sum(won for i, won in zip(others, wins, strict=True) if relevant[i])
            ap += chance * (1 + good) / (1 + sum(wins))
            rr += chance * (good == 0) / (1 + sum(wins))
    return ap / relevant.sum(), rr


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.01, 0.5, 20.0]))
@settings(max_examples=25, deadline=None)
def test_they_are_the_expectation_over_all_outcomes_of_the_contests(seed, sigma):
    rng = np.random.default_rng(seed)
    scores, labels = rng.integers(0, 5, 7) * 0.4, rng.choice([0.0, 1.0, np.nan], 7)
    labels[:2] = 1.0, 0.0
    ap, rr = enumerated(scores, sigma, labels == 1)
    rows = Candidates.of(labels)
    assert SoftAP(sigma=sigma).per_query(scores, rows)[0] == pytest.approx(ap, rel=1e-10)
    assert SoftRR(sigma=sigma).per_query(scores, rows)[0] == pytest.approx(rr, rel=1e-10)


@pytest.mark.parametrize("size", [16, 17, 60, 400])
def test_they_agree_with_the_exact_integral_for_any_number_of_documents(size):
    """E[(1 + A) / (1 + A + B)] and P(A = 0) E[1 / (1 + B)] from the distributions of A and B."""
    rng = np.random.default_rng(size)
    scores, relevant = rng.normal(size=size), rng.random(size) < 0.2
    relevant[:2] = True, False
    pi, ap, rr = contest_matrix(scores, 0.3), 0.0, 0.0
    for j in np.flatnonzero(relevant):
        counts = []
        for group in (relevant, ~relevant):
            p = np.ones(1)
            for i in np.flatnonzero(group):
                if i != j:
                    p = np.convolve(p, [1 - pi[i, j], pi[i, j]])
            counts.append(p)
        a, b = np.arange(len(counts[0]))[:, None], np.arange(len(counts[1]))[None, :]
        ap += (counts[0][:, None] * counts[1] * (1 + a) / (1 + a + b)).sum()
        rr += counts[0][0] * (counts[1] / (1 + b[0])).sum()
    rows = Candidates.of(relevant.astype(float))
    assert SoftAP(sigma=0.3).per_query(scores, rows)[0] == pytest.approx(ap / relevant.sum(), rel=1e-6)
    assert SoftRR(sigma=0.3).per_query(scores, rows)[0] == pytest.approx(rr, rel=1e-6)


@pytest.mark.parametrize("kind", [SoftAP, SoftRR])
@given(seed=st.integers(0, 2**32 - 1), sigma=st.sampled_from([1e-3, 0.3, 50.0]))
@settings(max_examples=15, deadline=None)
def test_gradients_match_central_differences(kind, seed, sigma):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 25, 3)
    labels = rng.choice([0.0, 0.0, 1.0, 2.0, np.nan], sizes.sum())
    scores = rng.integers(-8, 8, sizes.sum()) * sigma * 0.5
    rows, weights = Candidates.of(labels, group=sizes), [1.0, 2.0, 0.5]
    noise = sigma if seed % 2 else rng.uniform(0.5, 2.0, sizes.sum()) * sigma
    soft = kind(sigma=noise, rel=1 + seed % 3 // 2)
    numeric = central_difference(soft, scores, rows, weights, step=1e-4 * sigma)
    _, exact = soft.value_and_grad(scores, rows, weights)
    np.testing.assert_allclose(exact * sigma, numeric * sigma, atol=1e-6)
    assert abs(exact.sum()) * sigma < 1e-12


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_without_noise_they_are_the_hard_ones(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 40, 4)
    labels = rng.choice([0.0, 0.0, 1.0, 2.0, np.nan], sizes.sum())
    starts = np.cumsum(sizes) - sizes
    labels[starts], labels[starts + 1] = 0.0, 1.0
    rows, scores = Candidates.of(labels, group=sizes), rng.permutation(sizes.sum()).astype(float)
    for soft, hard in ((SoftAP(sigma=1e-3), AP()), (SoftRR(sigma=1e-3), RR())):
        np.testing.assert_allclose(soft.per_query(scores, rows), hard.per_query(scores, rows), rtol=1e-6)


@pytest.mark.parametrize("kind", [SoftAP, SoftRR])
@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_nothing_overflows_and_nothing_is_said_where_nothing_is_told(kind, size):
    rng = np.random.default_rng(0)
    labels = np.concatenate([rng.integers(0, 2, 30), [1.0], [0.0, 0.0], [1.0, 1.0]])
    rows = Candidates.of(labels, group=[30, 1, 2, 2, 0])
    value, gradient = kind().value_and_grad(rng.integers(-2, 3, 35) * size, rows)
    assert 0 < value <= 1
    assert np.isfinite(gradient).all()
    assert (gradient[30:] == 0).all()
    assert (kind().per_query(rng.normal(size=35), rows)[1:] == 0).all()
