"""Rank distributions: probabilities, by whichever method, and the functions that they rest on."""

from __future__ import annotations

import numpy as np
import pytest
from plain_objectives import contest_matrix, recursion
from scipy.special import ndtr

from fliprank.errors import InputError, UsageError
from fliprank.objectives import rank_distribution
from fliprank.objectives.smooth import normal, softplus


@pytest.mark.parametrize("method", ["recursion", "generating"])
@pytest.mark.parametrize("size", [1, 2, 5, 60])
@pytest.mark.parametrize("sigma", [1e-3, 0.5, 30.0])
def test_exact_methods_equal_the_plain_recursion(method, size, sigma):
    scores = np.random.default_rng(size).normal(size=size)
    scores[::4] = scores[0]
    found = rank_distribution(scores, sigma, method)
    np.testing.assert_allclose(found, recursion(contest_matrix(scores, sigma)), atol=1e-10)


def test_a_noise_for_each_document_is_its_own():
    rng = np.random.default_rng(1)
    scores, sigma = rng.normal(size=12), rng.uniform(0.01, 2, 12)
    expected = recursion(contest_matrix(scores, sigma))
    for method in ("recursion", "generating"):
        np.testing.assert_allclose(rank_distribution(scores, sigma, method), expected, atol=1e-10)


@pytest.mark.parametrize("method", ["recursion", "generating", "normal", "sinkhorn", "true"])
def test_every_document_has_some_rank(method):
    found = rank_distribution(np.random.default_rng(2).normal(size=80), 0.5, method)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-9)
    assert found.min() > -1e-12


def test_sinkhorn_scaling_gives_every_rank_to_one_document():
    scores = np.random.default_rng(3).normal(size=40)
    plain, scaled = (rank_distribution(scores, 1.0, method) for method in ("recursion", "sinkhorn"))
    assert np.abs(plain.sum(0) - 1).max() > 0.05
    np.testing.assert_allclose(scaled.sum(0), 1, atol=1e-9)


def test_sinkhorn_scaling_is_nearer_to_the_ranks_of_sorted_samples():
    rng = np.random.default_rng(4)
    scores = rng.normal(size=6)
    ranks = np.argsort(np.argsort(-(scores + rng.normal(size=(100_000, 6))), axis=1), axis=1)
    true = np.stack([np.bincount(ranks[:, j], minlength=6) for j in range(6)]) / len(ranks)
    plain, scaled = (np.abs(rank_distribution(scores, 1.0, m) - true).max() for m in ("recursion", "sinkhorn"))
    assert scaled < 0.75 * plain


@pytest.mark.parametrize("noise", [0.7, [0.2, 1.5, 0.6, 0.6, 1.0, 0.05, 0.4]])
def test_the_true_distribution_is_that_of_sorted_samples(noise):
    rng, draws = np.random.default_rng(7), 400_000
    scores = rng.normal(size=7)
    ranks = np.argsort(np.argsort(-(scores + np.asarray(noise) * rng.normal(size=(draws, 7))), axis=1), axis=1)
    sampled = np.stack([np.bincount(ranks[:, j], minlength=7) for j in range(7)]) / draws
    found = rank_distribution(scores, noise, "true")
    assert np.abs(found - sampled).max() < 5 * 0.5 / np.sqrt(draws)
    assert np.abs(rank_distribution(scores, noise) - sampled).max() > 0.02  # what the paper's approximation is off by
    np.testing.assert_allclose(found.sum(0), 1, atol=1e-9)  # every rank is held by one document


def test_of_documents_that_tie_each_has_truly_every_rank_alike():
    np.testing.assert_allclose(rank_distribution(np.ones(200), 0.3, "true"), 1 / 200, atol=1e-9)


def test_the_normal_approximation_is_near_and_exact_at_the_edges():
    scores = np.random.default_rng(5).normal(size=150)
    exact, near = (rank_distribution(scores, 0.5, method) for method in ("recursion", "normal"))
    assert 1e-6 < np.abs(exact - near).max() < 0.005
    edges = np.argsort(-scores)[[0, 9, 140, 149]]
    np.testing.assert_allclose(near[edges], exact[edges], atol=1e-14)


def test_scores_that_are_none_are_refused():
    with pytest.raises(InputError):
        rank_distribution([1.0, np.nan], 1.0)
    with pytest.raises(InputError):
        rank_distribution([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(UsageError):
        rank_distribution([1.0, 2.0], 0.0)
    with pytest.raises(UsageError):
        rank_distribution([1.0, 2.0], 1.0, "sorted")
    assert rank_distribution([], 1.0).shape == (0, 0)


def test_polynomials_equal_the_normal_and_the_logistic_function_and_their_slopes():
    x = np.random.default_rng(6).uniform(-7, 7, 3000)
    found = np.array([normal(value) for value in x])
    np.testing.assert_allclose(found[:, 0], ndtr(x), atol=1e-12)
    np.testing.assert_allclose(found[:, 1], np.exp(-x * x / 2) / np.sqrt(2 * np.pi), atol=1e-10)
    x = np.concatenate([np.random.default_rng(7).uniform(-40, 40, 3000), [-800, 800, 0]])
    found = np.array([softplus(value) for value in x])
    np.testing.assert_allclose(found[:, 0], np.logaddexp(0, x), atol=1e-12)
    np.testing.assert_allclose(found[:, 1], np.exp(-np.logaddexp(0, -x)), atol=1e-11)
