"""Expected measures of noisy rankings: against sampled rankings, the hard measures, and central differences.

A sampled ranking sorts scores + noise, so that the contests of a document are correlated, as they are in truth.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_objectives import central_difference

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.measures import AP, RR, P, R, nDCG
from fliprank.measures.discounts import discount_of
from fliprank.objectives import SoftAP, SoftNDCG, SoftP, SoftRank, SoftRecall, SoftRR, parse_objective

SOFT = [
    SoftNDCG(),
    SoftNDCG() @ 3,
    SoftNDCG(gain="linear", discount=-0.4),
    SoftNDCG(gain="exp0", discount=0.3),
    SoftNDCG(discount=0),
    SoftNDCG(discount=(1.0, 0.7, 0.7, 0.2)),
    SoftAP(),
    SoftAP(rel=2),
    SoftRR(),
    SoftP(4),
    SoftRecall(2),
]


def with_sigma(soft, sigma, **more):
    return type(soft)(**{**soft.parameters(), **more, "sigma": sigma})


def judged(rng: np.random.Generator, size: int) -> np.ndarray:
    labels = rng.choice([0.0, 1.0, 2.0], size, p=[0.6, 0.2, 0.2])
    labels[:2] = 0.0, 2.0  # some information
    return labels


def hard_values(soft, labels: np.ndarray) -> np.ndarray:
    """The hard measure of each row of labels, which are in ranked order: from its plain formula."""
    size, rank = labels.shape[1], np.arange(labels.shape[1])
    if isinstance(soft, SoftNDCG):
        gains = {"exp": 2.0**labels - 1, "linear": labels, "exp0": 2.0**labels}[soft.gain]
        table = discount_of(soft.discount, rank, np.full(size, size), soft.cutoff)
        return gains @ table / (np.sort(gains[0])[::-1] @ table)
    relevant = labels >= soft.rel
    if isinstance(soft, SoftAP):
        return (relevant * relevant.cumsum(1) / (1 + rank)).sum(1) / relevant[0].sum()
    if isinstance(soft, SoftRR):
        return 1 / (1 + relevant.argmax(1))
    top = relevant[:, : soft.cutoff].sum(1)
    return top / (relevant[0].sum() if isinstance(soft, SoftRecall) else soft.cutoff)


def sampled(soft, scores, labels, sigma, samples=40_000, seed=0) -> tuple[float, float]:
    """Mean over sampled rankings, and its standard error."""
    rng = np.random.default_rng(seed)
    order = np.argsort(-(scores + sigma * rng.normal(size=(samples, len(scores)))), axis=1)
    values = hard_values(soft, labels[order])
    return float(values.mean()), float(values.std() / np.sqrt(samples))


@pytest.mark.parametrize("soft", SOFT, ids=str)
@pytest.mark.parametrize("size", [2, 9, 60])
@pytest.mark.parametrize("noise", ["0.05", "0.4", "3", "per document", "very different"])
def test_the_value_is_the_mean_over_sampled_rankings(soft, size, noise):
    rng = np.random.default_rng(size)
    labels, scores = judged(rng, size), rng.normal(size=size).round(1)  # ties among them
    spans = {"per document": (0.1, 1.0), "very different": (0.001, 2.0)}
    sigma = rng.uniform(*spans[noise], size) if noise in spans else float(noise)
    value = with_sigma(soft, sigma).per_query(scores, Candidates.of(labels))[0]
    mean, error = sampled(soft, scores, labels, sigma)
    assert value == pytest.approx(mean, abs=4.5 * error + 1e-6)


def test_ten_relevant_documents_on_top_make_the_first_relevant_rank_sure():
    """Independent contests would give 0.02: each of the ten would have to win nine even ones."""
    labels = np.repeat([1.0, 0.0], [10, 20])
    scores = np.where(labels > 0, 5.0, 0.0)
    rows = Candidates.of(labels)
    assert SoftRR(sigma=0.1).per_query(scores, rows)[0] == pytest.approx(1.0, abs=1e-6)
    assert SoftAP(sigma=0.1).per_query(scores, rows)[0] == pytest.approx(1.0, abs=1e-6)
    assert SoftP(10, sigma=0.1).per_query(scores, rows)[0] == pytest.approx(1.0, abs=1e-6)
    assert (SoftNDCG(sigma=0.1) @ 10).per_query(scores, rows)[0] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("size", [3, 40, 1000, 5000])
def test_documents_that_tie_have_every_rank_with_equal_chance(size):
    labels = np.zeros(size)
    labels[:2] = 1.0, 2.0
    rows, scores, rank = Candidates.of(labels), np.full(size, 7.0), np.arange(size)
    log2 = 1 / np.log2(2.0 + rank)
    assert SoftNDCG().per_query(scores, rows)[0] == pytest.approx(4 * log2.mean() / (3 + log2[1]), rel=2e-6)
    top = log2 * (rank < 2)
    assert (SoftNDCG() @ 2).per_query(scores, rows)[0] == pytest.approx(4 * top.mean() / (3 + log2[1]), rel=5e-6)
    assert SoftP(2).per_query(scores, rows)[0] == pytest.approx(2 / size, rel=5e-6)
    line = discount_of(-0.5, rank, np.full(size, size))
    assert SoftNDCG(discount=-0.5).per_query(scores, rows)[0] == pytest.approx(
        4 * line.mean() / (3 + line[1]), rel=2e-6
    )
    first = 2 * (size - 1 - rank) / (size * (size - 1))  # the rank of the first of two
    assert SoftRR().per_query(scores, rows)[0] == pytest.approx((first / (1 + rank)).sum(), rel=5e-6)


@pytest.mark.parametrize("soft", SOFT, ids=str)
@pytest.mark.parametrize("sigma", [1e-3, 0.3, 40.0])
@pytest.mark.parametrize("per_document", [False, True])
def test_gradients_match_central_differences(soft, sigma, per_document):
    rng = np.random.default_rng(8)
    labels = np.concatenate([judged(rng, 22), [np.nan, 1.0, np.nan], [2.0]])
    candidates, scores = Candidates.of(labels, group=[22, 3, 1]), rng.integers(0, 30, 26) * sigma * 0.4
    noise = rng.uniform(0.4, 1.5, 26) * sigma if per_document else sigma
    soft, weights = with_sigma(soft, noise, tol=1e-9), [1.0, 3.0, 1.0]
    numeric = central_difference(soft, scores, candidates, weights, step=2e-3 * sigma)
    _, exact = soft.value_and_grad(scores, candidates, weights)
    assert np.abs(numeric).max() > 1e-3 / sigma
    np.testing.assert_allclose(exact, numeric, atol=2e-5 * np.abs(numeric).max())
    assert abs(exact.sum()) < 1e-5 * np.abs(exact).max()


@pytest.mark.parametrize("soft", SOFT, ids=str)
def test_a_smaller_tolerance_changes_no_more_than_the_tolerance(soft):
    rng = np.random.default_rng(3)
    for size, spread in ((7, 1.0), (50, 0.0), (50, 0.3), (300, 2.0), (300, 0.05)):
        labels, scores = judged(rng, size), rng.normal(size=size) * spread
        for sigma in (0.3, rng.uniform(0.1, 0.5, size)):
            found, pull = with_sigma(soft, sigma).value_and_grad(scores, Candidates.of(labels))
            exact, true = with_sigma(soft, sigma, tol=1e-9).value_and_grad(scores, Candidates.of(labels))
            assert found == pytest.approx(exact, rel=3e-6)
            np.testing.assert_allclose(pull, true, atol=1e-4 * np.abs(true).max() + 3e-6)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_without_noise_soft_measures_are_the_hard_ones(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 25, 5)
    labels = rng.choice([0.0, 0.0, 1.0, 2.0, np.nan], sizes.sum())
    starts = np.cumsum(sizes) - sizes
    labels[starts], labels[starts + 1] = 0.0, 2.0
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
    for soft, hard in (
        (SoftNDCG(sigma=1e-3), nDCG(dcg="exp-log2")),
        (SoftNDCG(sigma=1e-3, gain="linear") @ 4, nDCG() @ 4),
        (SoftAP(sigma=1e-3), AP()),
        (SoftRR(sigma=1e-3, rel=2), RR(rel=2)),
        (SoftP(3, sigma=1e-3), P(3)),
        (SoftRecall(3, sigma=1e-3, rel=2), R(3, rel=2)),
    ):
        np.testing.assert_allclose(soft.per_query(scores, rows), hard.per_query(scores, rows), rtol=3e-6)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1e-3, 1.0, 1e6, 1e17]), st.sampled_from(SOFT))
@settings(max_examples=40, deadline=None)
def test_nothing_overflows_and_no_digits_are_lost_beside_large_scores(seed, size, soft):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 12, 4)
    labels = rng.choice([0.0, 1.0, 3.0, np.nan], sizes.sum())
    steps = rng.integers(-3, 4, sizes.sum())
    candidates, soft = Candidates.of(labels, group=sizes), with_sigma(soft, 0.3)
    value, gradient = soft.value_and_grad(steps * size, candidates)
    assert 0 <= value <= 1 + 1e-6
    assert np.isfinite(gradient).all()
    if size >= 1e6:  # scores that differ are sure to be in order, those that tie are not
        assert value == pytest.approx(soft.value_and_grad(steps * 64.0, candidates)[0], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("labels", [[1.0], [0.0, 0.0, 0.0], [2.0, 2.0], [np.nan, 0.0], []])
@pytest.mark.parametrize("soft", SOFT, ids=str)
def test_a_query_without_information_contributes_nothing(soft, labels):
    rows = Candidates.of([*labels, 2.0, 0.0], group=[len(labels), 2])
    scores = np.arange(len(labels) + 2.0)
    assert soft.per_query(scores, rows)[0] == 0
    value, gradient = soft.value_and_grad(scores, rows, [1, 0])
    assert value == 0
    assert (gradient == 0).all()


@pytest.mark.parametrize("soft", [SoftNDCG() @ 10, SoftP(10)], ids=str)
@pytest.mark.parametrize("size", [40, 200, 1000])
def test_a_cut_off_starts_with_a_usable_gradient(soft, size):
    """Models start with scores of about 0.1: relevant documents beyond the cut-off must be pulled up from there.

    Independent contests push most of them down: a document whose rank is surely 20 has no chance at the first ten."""
    rng = np.random.default_rng(size)
    scores, labels = 0.1 * rng.normal(size=size), (rng.random(size) < 0.2).astype(float)
    beyond = (np.argsort(np.argsort(-scores)) >= 10) & (labels > 0)
    _, gradient = soft.value_and_grad(scores, Candidates.of(labels))
    assert (gradient[beyond] > -1e-6 * gradient.max()).all()
    assert np.median(gradient[beyond]) > 0.002 * gradient.max()
    _, apart = (SoftRank() @ 10).value_and_grad(scores, Candidates.of(labels))
    assert (apart[beyond] < 0).mean() > 0.5


def test_the_result_does_not_depend_on_the_number_of_threads():
    import numba

    rng = np.random.default_rng(2)
    rows, scores = Candidates.of(judged(rng, 4000)), rng.normal(size=4000)
    one = SoftNDCG().value_and_grad(scores, rows)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
        two = SoftNDCG().value_and_grad(scores, rows)
    finally:
        numba.set_num_threads(before)
    assert one[0] == two[0]
    np.testing.assert_array_equal(one[1], two[1])


def test_a_long_query_that_is_worked_on_in_parts_is_right_too():
    rng = np.random.default_rng(4)
    labels, scores = judged(rng, 2500), rng.normal(size=2500)
    for soft in (SoftNDCG(), SoftAP(), SoftNDCG() @ 20):
        value, gradient = with_sigma(soft, 0.2).value_and_grad(scores, Candidates.of(labels))
        mean, error = sampled(soft, scores, labels, 0.2, samples=2000)
        assert value == pytest.approx(mean, abs=4.5 * error)
        assert abs(gradient.sum()) < 1e-4 * np.abs(gradient).max()


@pytest.mark.parametrize("soft", SOFT, ids=str)
def test_the_value_is_the_same_with_and_without_its_gradient(soft):
    rng = np.random.default_rng(4)
    rows, scores = Candidates.of(judged(rng, 60)), rng.normal(size=60)
    assert soft.per_query(scores, rows)[0] == pytest.approx(soft.value_and_grad(scores, rows)[0], rel=1e-12)


def test_annealing_goes_by_equal_factors_and_plans_the_work_once():
    rng = np.random.default_rng(6)
    rows, scores = Candidates.of(judged(rng, 20)), rng.normal(size=20)
    annealed = SoftNDCG(sigma=1.0, anneal=0.01)
    assert annealed.at(0.0) == SoftNDCG(sigma=1.0)
    assert annealed.at(0.5).noise == pytest.approx(0.1)
    assert annealed.at(1.0).noise == pytest.approx(0.01)
    assert SoftNDCG(anneal=0.001).at(1.0).noise == pytest.approx(0.001)
    assert SoftNDCG(sigma=0.3).at(0.7) == SoftNDCG(sigma=0.3)
    np.testing.assert_allclose(SoftNDCG(sigma=[1.0, 4.0], anneal=1.0).at(0.5).noise, [1.0, 2.0])
    annealed.value_and_grad(scores, rows)
    known = len(rows.memo)
    for progress in (0.25, 0.5, 1.0):
        annealed.at(progress).value_and_grad(scores, rows)
    assert len(rows.memo) == known


def test_the_default_noise_can_be_told_from_the_same_noise_given():
    assert SoftNDCG().noise == SoftNDCG.default_sigma == 0.1
    assert str(SoftNDCG()) == "softndcg"
    assert str(SoftNDCG(sigma=0.1)) == "softndcg(sigma=0.1)"
    assert "sigma" not in SoftAP().parameters()
    rows = Candidates.of([0.0, 1.0, 0.0])
    np.testing.assert_array_equal(
        SoftAP().per_query([0.3, 0.2, 0.1], rows), SoftAP(sigma=0.1).per_query([0.3, 0.2, 0.1], rows)
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: SoftNDCG(sigma=0),
        lambda: SoftNDCG(sigma=np.nan),
        lambda: SoftNDCG(sigma=[0.1, -1]),
        lambda: SoftNDCG(sigma="large"),
        lambda: SoftNDCG(anneal=0),
        lambda: SoftNDCG(anneal=[0.1, 0.2]),
        lambda: SoftNDCG(gain="log"),
        lambda: SoftNDCG(discount="log10"),
        lambda: SoftNDCG(discount=1.5),
        lambda: SoftNDCG(discount=(0.5, 1.0)),
        lambda: SoftNDCG(tol=1e-15),
        lambda: SoftNDCG(cutoff=0),
        lambda: SoftRank(method="magic"),
        lambda: SoftP(),
    ],
)
def test_parameters_that_make_no_sense_are_refused(make):
    with pytest.raises(UsageError):
        make()


def test_input_that_makes_no_sense_is_refused_by_name():
    rows = Candidates.of([1, 0, 1], qid=["a", "a", "b"])
    with pytest.raises(InputError, match="shape"):
        SoftNDCG().value_and_grad([1.0], rows)
    with pytest.raises(InputError, match="query b"):
        SoftNDCG().value_and_grad([1.0, 2.0, np.nan], rows)
    with pytest.raises(InputError, match="sigma has 2 values"):
        SoftNDCG(sigma=[1.0, 2.0]).value_and_grad([1.0, 2.0, 3.0], rows)
    for weights in ([1.0], [0.0, 0.0], [-1.0, 2.0], [np.nan, 1.0]):
        with pytest.raises(UsageError, match="weights"):
            SoftNDCG().value_and_grad([1.0, 2.0, 3.0], rows, weights)


@pytest.mark.parametrize(
    "name", ["softndcg", "softndcg(gain='exp0')", "lambdarank@10", "mse(target='gain')", "softrank"]
)
def test_a_label_whose_exponential_gain_no_float_can_hold_is_refused(name: str) -> None:
    rows = Candidates.of([1024.0, 0.0, 1.0])
    with pytest.raises(InputError, match="a label of 1024"):
        parse_objective(name).value_and_grad(np.array([1.0, 2.0, 3.0]), rows)
