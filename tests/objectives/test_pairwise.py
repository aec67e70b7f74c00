"""MSE, logistic regression, RankNet and LambdaRank: against their formulas, brute-force swaps, and central
differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_objectives import central_difference

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.measures import parse_measure
from fliprank.objectives import MSE, LambdaRank, Logistic, RankNet, parse_objective

MEASURES = [
    "nDCG(dcg='exp-log2')",
    "nDCG",
    "nDCG(discount=-0.5)",
    "nDCG@3",
    "DCG@2",
    "AP",
    "AP@4",
    "RR",
    "RR@3",
    "P@3",
    "R@2",
    "Success@2",
    "RBP",
]


def problem(seed: int, ties: bool = False) -> tuple[np.ndarray, Candidates]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 10, 4)
    labels = rng.choice([0.0, 0.0, 1.0, 2.0, 3.0, np.nan], sizes.sum())
    scores = rng.integers(0, 3, sizes.sum()).astype(float) if ties else rng.normal(size=sizes.sum())
    docids = [f"d{rng.integers(1000)}-{i}" for i in range(sizes.sum())]
    return scores, Candidates.of(labels, group=sizes, docids=docids)


def pairs_of(candidates: Candidates) -> list[tuple[int, int, int]]:
    """(query, preferred row, other row) of every pair whose labels differ."""
    labels = np.nan_to_num(candidates.labels)
    return [
        (q, int(i), int(j))
        for q in range(candidates.queries)
        for i in range(candidates.offsets[q], candidates.offsets[q + 1])
        for j in range(candidates.offsets[q], candidates.offsets[q + 1])
        if labels[i] > labels[j]
    ]


def test_mse_is_the_mean_squared_error_of_each_query():
    rows = Candidates.of([2, np.nan, 1], group=[2, 1])
    np.testing.assert_allclose(MSE().per_query([1.0, 3.0, 4.0], rows), [(1 + 9) / 2, 9])
    np.testing.assert_allclose(MSE(target="gain").per_query([1.0, 3.0, 4.0], rows), [(4 + 9) / 2, 9])


@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.75]), st.booleans())
@settings(max_examples=50, deadline=None)
def test_ranknet_is_the_cross_entropy_of_the_pairs_whose_labels_differ(seed, target, ties):
    scores, rows = problem(seed, ties)
    sums, counts = np.zeros(rows.queries), np.zeros(rows.queries)
    for q, i, j in pairs_of(rows):
        p = 1 / (1 + np.exp(scores[j] - scores[i]))
        sums[q] += -target * np.log(p) - (1 - target) * np.log(1 - p)
        counts[q] += 1
    np.testing.assert_allclose(RankNet(target=target, normalise="none").per_query(scores, rows), sums, atol=1e-12)
    means = RankNet(target=target).per_query(scores, rows)
    np.testing.assert_allclose(means, sums / np.maximum(counts, 1), atol=1e-12)


TABLE = {(1, 0): 0.8, (2, 0): 0.95, (3, 0): 1.0, (2, 1): 0.7, (3, 1): 0.9, (3, 2): 0.6}


@pytest.mark.parametrize("target", [TABLE, lambda high, low: 0.6 + 0.1 * (high - low)])
@pytest.mark.parametrize("seed", range(6))
def test_targets_may_depend_on_the_labels_of_a_pair(target, seed):
    scores, rows = problem(seed)
    labels, sums = np.nan_to_num(rows.labels), np.zeros(rows.queries)
    for q, i, j in pairs_of(rows):
        wanted = target[labels[i], labels[j]] if isinstance(target, dict) else target(labels[i], labels[j])
        p = 1 / (1 + np.exp(scores[j] - scores[i]))
        sums[q] += -wanted * np.log(p) - (1 - wanted) * np.log(1 - p)
    ranknet = RankNet(target=target, normalise="none")
    np.testing.assert_allclose(ranknet.per_query(scores, rows), sums, atol=1e-12)
    chosen = RankNet(target=target, normalise="none", pairs=[(i, j) for _, i, j in pairs_of(rows)])
    for objective in (ranknet, chosen):
        value, gradient = objective.value_and_grad(scores, rows)
        assert value == pytest.approx(sums.mean())
        np.testing.assert_allclose(gradient, central_difference(objective, scores, rows, step=1e-6), atol=1e-7)


def test_targets_are_given_by_label_pair():
    ranknet = RankNet(target=TABLE)
    assert parse_objective(str(ranknet)) == ranknet
    np.testing.assert_array_equal(ranknet.targets([2, 1, 3], [0, 0, 2]), [0.95, 0.8, 0.6])
    np.testing.assert_array_equal(RankNet(target=0.9).targets([2, 1], 0), [0.9, 0.9])
    np.testing.assert_array_equal(RankNet(target=lambda a, b: 0.5 + (a - b) / 10).targets([2, 1], [0, 0]), [0.7, 0.6])
    with pytest.raises(InputError, match=r"labels \(4, 0\)"):
        ranknet.per_query([1.0, 2.0], Candidates.of([4, 0]))
    assert ranknet.per_query([1.0, 2.0, 0.0], Candidates.of([4, 1, 0], group=[1, 2]))[1] > 0  # 4 meets no other label
    with pytest.raises(UsageError, match="must give a probability"):
        RankNet(target=lambda high, low: high).targets([2], [0])


@pytest.mark.parametrize("target", [[0.9, 0.8], "sure", None, {}, {1: 0.9}, {(0, 1): 0.9}, {(1, 0): 0.4}, 1.5, 0.5])
def test_a_target_that_is_no_probability_is_refused(target):
    with pytest.raises(UsageError, match="target"):
        RankNet(target=target)


def test_logistic_regression_is_the_log_loss_of_relevance():
    scores, rows = np.array([2.0, -1.0, 0.5, 3.0]), Candidates.of([2, np.nan, 1, 0], group=[3, 1])
    p = 1 / (1 + np.exp(-scores))
    losses = np.where([True, False, True, False], -np.log(p), -np.log(1 - p))
    np.testing.assert_allclose(Logistic().per_query(scores, rows), [losses[:3].mean(), losses[3]])
    losses[2] = -np.log(1 - p[2])
    np.testing.assert_allclose(Logistic(rel=2).per_query(scores, rows), [losses[:3].mean(), losses[3]])


def test_chosen_pairs_replace_all_pairs():
    scores, rows = problem(7)
    every = np.array([(i, j) for _, i, j in pairs_of(rows)])
    assert len(every) > 20
    shuffled = np.random.default_rng(0).permutation(every)
    for normalise in ("pairs", "none"):
        value, gradient = RankNet(pairs=shuffled, normalise=normalise).value_and_grad(scores, rows)
        expected, exact = RankNet(normalise=normalise).value_and_grad(scores, rows)
        assert value == pytest.approx(expected)
        np.testing.assert_allclose(gradient, exact, atol=1e-13)
    one = RankNet(pairs=every[:1]).per_query(scores, rows)
    gap = scores[every[0, 1]] - scores[every[0, 0]]
    assert one.sum() == pytest.approx(np.log1p(np.exp(gap)))


def test_pairs_across_queries_or_of_no_row_are_refused():
    rows = Candidates.of([1, 0, 1], group=[2, 1])
    with pytest.raises(InputError, match="two queries"):
        RankNet(pairs=[[0, 1], [0, 2]]).per_query([1.0, 2.0, 3.0], rows)
    with pytest.raises(InputError, match="rows 0 to 3"):
        RankNet(pairs=[[0, 3]]).per_query([1.0, 2.0, 3.0], rows)
    with pytest.raises(UsageError, match="preferred"):
        RankNet(pairs=[0, 1])
    with pytest.raises(UsageError, match="probability"):
        RankNet(target=0.5)


def brute_force(measure, scores, rows, i, j) -> float:
    """What the measure of the query changes by if rows i and j swap ranks: their place in a ranking without ties."""
    order = np.lexsort((np.arange(len(rows)), scores))
    place = np.empty(len(rows))
    place[order] = np.arange(len(rows))
    swapped = place.copy()
    swapped[i], swapped[j] = place[j], place[i]
    return float((measure.per_query(swapped, rows) - measure.per_query(place, rows)).sum())


@pytest.mark.parametrize("name", MEASURES)
@given(seed=st.integers(0, 2**32 - 1), sigma=st.sampled_from([1.0, 2.5]))
@settings(max_examples=15, deadline=None)
def test_lambdarank_weighs_each_pair_by_what_the_measure_changes_on_a_swap(name, seed, sigma):
    scores, rows = problem(seed)
    measure, expected, pull = parse_measure(name), np.zeros(rows.queries), np.zeros(len(rows))
    for q, i, j in pairs_of(rows):
        change = abs(brute_force(measure, scores, rows, i, j))
        gap = sigma * (scores[j] - scores[i])
        expected[q] += change * np.logaddexp(0, gap)
        pull[i] -= sigma * change / (1 + np.exp(-gap))
        pull[j] += sigma * change / (1 + np.exp(-gap))
    objective = LambdaRank(measure=name, sigma=sigma)
    np.testing.assert_allclose(objective.per_query(scores, rows), expected, atol=1e-11)
    _, gradient = objective.value_and_grad(scores, rows)
    np.testing.assert_allclose(gradient * rows.queries, pull, atol=1e-11)


def test_lambdarank_pushes_a_wrongly_ordered_relevant_document_up():
    _, gradient = LambdaRank().value_and_grad([2.0, 1.0], Candidates.of([0, 1]))
    assert gradient[0] > 0 > gradient[1]  # a cost: descent raises the relevant one


def test_a_cut_off_can_be_given_to_lambdarank_or_to_its_measure():
    scores, rows = problem(3)
    np.testing.assert_array_equal(
        (LambdaRank(measure="nDCG") @ 3).per_query(scores, rows), LambdaRank(measure="nDCG@3").per_query(scores, rows)
    )


@pytest.mark.parametrize("name", ["Bpref", "ERR", "SetP", "nDCG(judged_only=True)"])
def test_lambdarank_refuses_measures_whose_swaps_it_can_not_weigh(name):
    with pytest.raises(UsageError, match="can't weigh"):
        LambdaRank(measure=name).per_query([1.0, 2.0], Candidates.of([0, 1]))


@pytest.mark.parametrize(
    "objective",
    [
        MSE(),
        MSE(target="gain"),
        RankNet(),
        RankNet(target=0.8, normalise="none"),
        Logistic(),
        *(LambdaRank(measure=name, sigma=1.5) for name in MEASURES),
    ],
    ids=str,
)
@given(seed=st.integers(0, 2**32 - 1), spread=st.sampled_from([0.01, 1.0, 30.0]))
@settings(max_examples=8, deadline=None)
def test_gradients_match_central_differences(objective, seed, spread):
    scores, rows = problem(seed)
    scores, weights = scores * spread, np.arange(1.0, 5.0)
    numeric = central_difference(objective, scores, rows, weights, step=1e-6 * max(spread, 0.1))
    np.testing.assert_allclose(
        objective.value_and_grad(scores, rows, weights)[1],
        numeric,
        atol=1e-6 + 1e-6 * np.abs(numeric).max(initial=0.0) + 1e-9 * spread**2,
    )


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(
    "objective",
    [MSE(), Logistic(), RankNet(), RankNet(target=0.9), LambdaRank(), LambdaRank(measure="AP")],
    ids=str,
)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_nothing_overflows(objective, size, seed):
    scores, rows = problem(seed, ties=True)
    value, gradient = objective.value_and_grad(scores * size, rows)
    assert np.isfinite(value)
    assert value >= 0
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("objective", [RankNet(), RankNet(target=0.7), LambdaRank(), LambdaRank(measure="P@2")])
@pytest.mark.parametrize("labels", [[], [3.0], [0.0, 0.0], [2.0, 2.0, 2.0], [np.nan, 0.0]])
def test_a_query_that_tells_nothing_contributes_nothing(objective, labels):
    rows = Candidates.of(labels)
    value, gradient = objective.value_and_grad(np.arange(len(labels) * 1.0), rows)
    assert value == 0
    assert (gradient == 0).all()


def test_no_queries_at_all_have_value_0():
    rows = Candidates.of([], group=[])
    for objective in (MSE(), Logistic(), RankNet(), RankNet(target=TABLE), LambdaRank()):
        value, gradient = objective.value_and_grad([], rows)
        assert value == 0
        assert gradient.shape == (0,)
