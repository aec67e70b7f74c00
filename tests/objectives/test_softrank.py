"""SoftRank's own SoftRank: against the plain recursion, sampled independent contests, the hard measure."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit, prange
from plain_objectives import central_difference, contest_matrix, soft_sum

from fliprank.data.candidates import Candidates
from fliprank.measures import nDCG
from fliprank.measures.discounts import discount_of
from fliprank.objectives import SoftRank
from fliprank.objectives.exponential_sum import CURVES, exponential_sum

METHODS = ("generating", "recursion", "normal", "sinkhorn")
DISCOUNTS = ("log2", 1.0, 0.5, 0.0, -0.4, -1.0, (1.0, 0.7, 0.7, 0.2))


def log2(size: int) -> np.ndarray:
    return 1 / np.log2(2.0 + np.arange(size))


def judged(rng: np.random.Generator, size: int) -> np.ndarray:
    labels = rng.choice([0.0, 1.0, 2.0, 4.0], size, p=[0.6, 0.2, 0.1, 0.1])
    labels[:2] = 0.0, 1.0  # some information
    return labels


@pytest.mark.parametrize("curve", ["log2", "reciprocal"])
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("size", [1, 2, 8, 64, 2500, 20_000])
def test_an_exponential_sum_keeps_its_tolerance_at_every_rank_with_positive_weights(curve, tol, size):
    short, rank = exponential_sum(curve, size, tol), np.arange(size)
    assert np.abs((short.z ** rank[:, None]) @ short.weight / CURVES[curve](rank) - 1).max() < tol
    assert (short.weight >= 0).all()
    assert short.z.min() > 0.002
    assert short.z.max() <= 1


@pytest.mark.parametrize("sigma", [1e-4, 0.01, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("size", [2, 3, 17, 90])
def test_generating_functions_agree_with_the_plain_recursion(sigma, size):
    rng = np.random.default_rng(size)
    labels, scores = judged(rng, size), rng.normal(size=size)
    scores[size // 2 :: 5] = scores[0]  # ties
    gains = 2.0**labels - 1
    expected = soft_sum(scores, sigma, gains, log2(size)) / (np.sort(gains)[::-1] @ log2(size))
    for method, tol in (("generating", 1e-6), ("recursion", 1e-9)):
        value, _ = SoftRank(sigma=sigma, method=method).value_and_grad(scores, Candidates.of(labels))
        assert value == pytest.approx(expected, rel=tol)


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("gain", ["exp", "linear", "exp0"])
@pytest.mark.parametrize("cutoff", [None, 5])
def test_every_discount_and_gain_agrees_with_the_plain_recursion(discount, gain, cutoff):
    rng = np.random.default_rng(3)
    labels, scores, size = judged(rng, 40), rng.normal(size=40), 40
    gains = {"exp": 2.0**labels - 1, "linear": labels, "exp0": 2.0**labels}[gain]
    table = discount_of(discount, np.arange(size), np.full(size, size), cutoff)
    expected = soft_sum(scores, 0.3, gains, table) / (np.sort(gains)[::-1] @ table)
    for method in ("generating", "recursion"):
        soft = SoftRank(sigma=0.3, gain=gain, discount=discount, cutoff=cutoff, method=method)
        assert soft.per_query(scores, Candidates.of(labels))[0] == pytest.approx(expected, rel=1e-6)


@njit(parallel=True)
def fast_recursion(scores, gains, discount, pi_of):  # pragma: no cover
    value = np.zeros(len(scores))
    for j in prange(len(scores)):
        if gains[j] == 0:
            continue
        p = np.zeros(len(scores) + 1)
        p[0], seen = 1.0, 0
        for i in range(len(scores)):
            if i != j:
                for r in range(seen + 1, 0, -1):
                    p[r] = p[r - 1] * pi_of[i, j] + p[r] * (1 - pi_of[i, j])
                p[0] *= 1 - pi_of[i, j]
                seen += 1
        value[j] = gains[j] * (p[: len(discount)] @ discount)
    return value.sum()


def test_generating_functions_agree_with_the_recursion_for_2500_documents():
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(2500) < 0.02, rng.integers(1, 5, 2500), 0).astype(float)
    scores, gains = rng.normal(size=2500), 2.0**labels - 1
    expected = fast_recursion(scores, gains, log2(2500), contest_matrix(scores, 0.1))
    value, gradient = SoftRank(sigma=0.1).value_and_grad(scores, Candidates.of(labels))
    assert value == pytest.approx(expected / (np.sort(gains)[::-1] @ log2(2500)), rel=1e-6)
    assert abs(gradient.sum()) < 1e-12


def test_the_value_is_the_mean_over_sampled_independent_contests():
    rng = np.random.default_rng(5)
    labels, scores = np.array([2.0, 0, 1, 0, 0, 1]), rng.normal(size=6)
    wins = rng.random((200_000, 6, 6)) < contest_matrix(scores, 0.7)[None]
    ranks = wins.sum(1)
    gains = 2.0**labels - 1
    best = np.sort(gains)[::-1] @ log2(6)
    sampled = (gains * log2(6)[ranks]).sum(1) / best
    rows = Candidates.of(labels)
    deviation = sampled.std() / np.sqrt(len(sampled))
    assert SoftRank(sigma=0.7).per_query(scores, rows)[0] == pytest.approx(sampled.mean(), abs=5 * deviation)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("discount", ["log2", -0.5, (1.0, 0.5, 0.1)])
@pytest.mark.parametrize("sigma", [1e-4, 0.05, 1.0, 100.0])
def test_gradients_match_central_differences(method, discount, sigma):
    rng = np.random.default_rng(8)
    labels = np.concatenate([judged(rng, 30), [np.nan, 1.0, np.nan], [2.0]])
    candidates = Candidates.of(labels, group=[30, 3, 1])
    scores = rng.permutation(34) * sigma * 0.7  # neighbours' contests are open at any noise
    soft, weights = SoftRank(sigma=sigma, discount=discount, method=method), [1.0, 3.0, 1.0]
    numeric = central_difference(soft, scores, candidates, weights, step=1e-4 * sigma)
    _, exact = soft.value_and_grad(scores, candidates, weights)
    assert np.abs(numeric).max() > 1e-3 / sigma
    np.testing.assert_allclose(exact, numeric, atol=1e-5 * np.abs(numeric).max())


@pytest.mark.parametrize("soft", [SoftRank(sigma=0.4) @ 5, SoftRank(sigma=0.4, gain="exp0") @ 3], ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_gradients_with_a_cut_off_match_central_differences(soft, method):
    rng = np.random.default_rng(9)
    soft = type(soft)(**{**soft.parameters(), "method": method})
    scores, candidates = rng.normal(size=25), Candidates.of(judged(rng, 25))
    numeric = central_difference(soft, scores, candidates)
    assert np.abs(numeric).max() > 0.01
    np.testing.assert_allclose(soft.value_and_grad(scores, candidates)[1], numeric, atol=1e-7)


def test_gradients_with_a_noise_for_each_row_match_central_differences_and_the_recursion():
    rng = np.random.default_rng(10)
    labels, scores, sigma = judged(rng, 30), rng.normal(size=30), rng.uniform(0.05, 1.5, 30)
    gains, rows = 2.0**labels - 1, Candidates.of(labels)
    expected = soft_sum(scores, sigma, gains, log2(30)) / (np.sort(gains)[::-1] @ log2(30))
    for method in ("generating", "recursion", "normal", "sinkhorn"):
        soft = SoftRank(sigma=sigma, method=method)
        value, gradient = soft.value_and_grad(scores, rows)
        np.testing.assert_allclose(gradient, central_difference(soft, scores, rows), atol=1e-7)
        if method in ("generating", "recursion"):
            assert value == pytest.approx(expected, rel=1e-6)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1e-3, 1.0, 1e6]), st.sampled_from(METHODS))
@settings(max_examples=60, deadline=None)
def test_nothing_overflows_and_shifts_change_nothing(seed, size, method):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 12, 4)
    labels = rng.choice([0.0, 1.0, 3.0, np.nan], sizes.sum())
    scores = rng.integers(-3, 4, sizes.sum()) * size
    candidates = Candidates.of(labels, group=sizes)
    for soft in (SoftRank(sigma=0.3, method=method), SoftRank(method=method) @ 3):
        value, gradient = soft.value_and_grad(scores, candidates)
        assert 0 <= value <= 1.5
        assert np.isfinite(gradient).all()
        assert abs(gradient.sum()) < 1e-9 * (1 + np.abs(gradient).max())
        shifted = soft.value_and_grad(scores + 64.0, candidates)[0]
        assert shifted == pytest.approx(value, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("labels", [[1.0], [0.0, 0.0, 0.0], [2.0, 2.0], [np.nan, 0.0], []])
def test_a_query_that_tells_nothing_contributes_nothing(labels):
    for soft in (SoftRank(), SoftRank(gain="exp0"), SoftRank() @ 2, SoftRank(method="sinkhorn")):
        rows = Candidates.of([*labels, 1.0, 0.0], group=[len(labels), 2])
        scores = np.arange(len(labels) + 2.0)
        assert soft.per_query(scores, rows)[0] == 0
        value, gradient = soft.value_and_grad(scores, rows, [1, 0])
        assert value == 0
        assert (gradient == 0).all()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_without_noise_soft_measures_are_the_hard_ones(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 25, 5)
    labels = rng.choice([0.0, 0.0, 1.0, 2.0, np.nan], sizes.sum())
    starts = np.cumsum(sizes) - sizes
    labels[starts], labels[starts + 1] = 0.0, 1.0
    plain = Candidates.of(labels, group=sizes)
    missed = np.bincount(rng.integers(0, 5, 4), minlength=5)
    rows = Candidates(
        plain.offsets,
        plain.labels,
        plain.qids,
        missed_offsets=np.concatenate([[0], np.cumsum(missed)]),
        missed_labels=rng.integers(0, 3, 4).astype(float),
    )
    scores = rng.permutation(sizes.sum()).astype(float)
    for soft, hard, tol in (
        (SoftRank(sigma=1e-3), nDCG(dcg="exp-log2"), 1e-6),
        (SoftRank(sigma=1e-3, gain="linear") @ 4, nDCG() @ 4, 1e-12),
        (SoftRank(sigma=1e-3, method="normal"), nDCG(dcg="exp-log2"), 1e-12),
    ):
        np.testing.assert_allclose(soft.per_query(scores, rows), hard.per_query(scores, rows), rtol=tol, atol=1e-13)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_with_little_noise_a_good_flip_raises_and_a_bad_one_lowers_the_objective(seed):
    """Robertson & Zaragoza 2007: the objective orders two rankings a flip apart as the measure does."""
    rng = np.random.default_rng(seed)
    labels, order = rng.integers(0, 4, 12).astype(float), rng.permutation(12)
    labels[order[0]], labels[order[1]] = 0.0, 1.0
    rows, scores = Candidates.of(labels), np.empty(12)
    scores[order] = -np.arange(12.0)
    at = int(rng.integers(0, 11))
    flipped = scores.copy()
    flipped[order[at]], flipped[order[at + 1]] = scores[order[at + 1]], scores[order[at]]
    hard = nDCG(dcg="exp-log2")
    change = hard.per_query(flipped, rows)[0] - hard.per_query(scores, rows)[0]
    soft = SoftRank(sigma=0.05)
    soft_change = soft.per_query(flipped, rows)[0] - soft.per_query(scores, rows)[0]
    assert np.sign(np.round(soft_change, 5)) == np.sign(np.round(change, 5))


def test_bent_discounts_run_from_the_mirror_image_through_the_line_to_ndcgs():
    rank, size = np.arange(50), np.full(50, 50)
    curves = [discount_of(alpha, rank, size) for alpha in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    for upper, lower in pairwise(curves):
        assert (upper[1:-1] > lower[1:-1]).all()
        np.testing.assert_allclose(upper[[0, -1]], lower[[0, -1]])
    np.testing.assert_allclose(np.diff(curves[2], 2), 0, atol=1e-15)
    assert (np.diff(curves[0], 2) < 0).all()
    np.testing.assert_allclose(curves[4], log2(50))


def test_weights_of_queries_are_shares():
    rng = np.random.default_rng(1)
    labels = np.concatenate([judged(rng, 10), judged(rng, 10)])
    rows, scores = Candidates.of(labels, group=[10, 10]), rng.normal(size=20)
    values = SoftRank().per_query(scores, rows)
    assert SoftRank().value_and_grad(scores, rows, [2, 6])[0] == pytest.approx(0.25 * values[0] + 0.75 * values[1])
    _, gradient = SoftRank().value_and_grad(scores, rows, [0, 5])
    assert (gradient[:10] == 0).all()
    assert np.abs(gradient[10:]).max() > 0


def test_the_result_does_not_depend_on_the_number_of_threads():
    import numba

    rng = np.random.default_rng(2)
    rows, scores = Candidates.of(judged(rng, 700)), rng.normal(size=700)
    one = SoftRank().value_and_grad(scores, rows)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
        two = SoftRank().value_and_grad(scores, rows)
    finally:
        numba.set_num_threads(before)
    assert one[0] == two[0]
    np.testing.assert_array_equal(one[1], two[1])


@pytest.mark.parametrize("method", METHODS)
def test_the_value_is_the_same_with_and_without_its_gradient(method):
    rng = np.random.default_rng(4)
    rows, scores = Candidates.of(judged(rng, 60)), rng.normal(size=60)
    for soft in (SoftRank(sigma=0.4, method=method), SoftRank(sigma=0.4, method=method) @ 7):
        assert soft.per_query(scores, rows)[0] == pytest.approx(soft.value_and_grad(scores, rows)[0], rel=1e-12)


@pytest.mark.parametrize("discount", ["log2", -1.0, 0.0])
def test_all_documents_tied_share_every_rank_evenly(discount):
    """Each contest is even: the rank is binomial, whichever of 1000 documents it is."""
    labels = np.zeros(1000)
    labels[:3] = 1.0
    rank = np.arange(1000)
    even = np.exp(
        [np.sum(np.log(np.arange(r + 1, 1000)) - np.log(np.arange(1, 1000 - r))) for r in rank] - 999 * np.log(2)
    )
    table = discount_of(discount, rank, np.full(1000, 1000))
    value, gradient = SoftRank(sigma=0.1, discount=discount).value_and_grad(np.full(1000, 7.0), Candidates.of(labels))
    assert value == pytest.approx(3 * (even @ table) / table[:3].sum(), rel=1e-6)
    assert gradient[0] > 0 > gradient[-1]
    assert gradient[0] == pytest.approx(gradient[2])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cutoff", [None, 3])
def test_large_scores_that_tie_still_meet_in_even_contests(method, cutoff):
    rng = np.random.default_rng(3)
    labels, steps = judged(rng, 30), rng.integers(0, 6, 30)
    soft, rows = SoftRank(cutoff, sigma=0.5, method=method), Candidates.of(labels)
    near, pull = soft.value_and_grad(steps * 1e3, rows)
    far, pull_far = soft.value_and_grad(steps * 1e17, rows)
    assert far == pytest.approx(near, rel=1e-12)
    np.testing.assert_allclose(pull_far, pull, rtol=1e-12, atol=1e-15)


def test_sinkhorn_scaling_of_many_documents_that_tie_has_a_finite_gradient():
    rng = np.random.default_rng(0)
    scores, labels = 0.1 * rng.normal(size=600), judged(rng, 600)
    soft = SoftRank(sigma=1.0, method="sinkhorn")
    value, gradient = soft.value_and_grad(scores, Candidates.of(labels))
    assert 0 < value < 1
    assert np.isfinite(gradient).all()
    step, row = 1e-4, int(np.abs(gradient).argmax())
    moved = np.array([scores + step * (np.arange(600) == row), scores - step * (np.arange(600) == row)])
    high, low = (soft.per_query(s, Candidates.of(labels))[0] for s in moved)
    assert gradient[row] == pytest.approx((high - low) / (2 * step), rel=1e-4)


def test_sinkhorn_scaling_says_when_it_did_not_converge():
    """1200 documents that tie: no number is small enough for their chance at the first rank."""
    rows = Candidates.of(np.arange(1200.0) % 2)
    with pytest.warns(RuntimeWarning, match="did not converge for 1 of 1 queries"):
        _, gradient = SoftRank(sigma=1.0, method="sinkhorn").value_and_grad(np.zeros(1200), rows)
    assert np.isfinite(gradient).all()
