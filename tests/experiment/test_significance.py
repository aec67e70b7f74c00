"""Significance tests agree with scipy, with plain enumeration and with themselves."""

from __future__ import annotations

import itertools
import json
import math

import numba
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from fliprank.errors import InputError, UsageError
from fliprank.experiment import significance
from fliprank.experiment.significance import (
    bootstrap_interval,
    compare_values,
    holm,
    max_t,
    paired_t,
    randomisation,
    wilcoxon,
)

RNG = np.random.default_rng
TENTHS = st.integers(-5, 5).map(lambda i: i / 10)  # zeros, equal values, and sums that rounding splits


def all_signs(queries):
    return np.array(list(itertools.product([1, -1], repeat=queries)))


def brute_randomisation(differences):
    sums = np.abs((all_signs(len(differences)) * differences).sum(axis=1))
    return np.mean(sums >= abs(np.sum(differences)) - 1e-9)


def students_t(rows):
    """|t| of each row; infinite for equal values other than 0, and 0 for a row of zeros."""
    mean, error = np.abs(rows.mean(axis=-1)), rows.std(axis=-1, ddof=1) / np.sqrt(rows.shape[-1])
    equal = np.ptp(rows, axis=-1) < 1e-12
    return np.where(mean < 1e-12, 0.0, np.where(equal, np.inf, mean / np.where(equal, 1.0, error)))


def brute_max_t(rows):
    """The book's step-down on Student's t itself."""
    observed = students_t(rows)
    null = np.array([students_t(rows * signs) for signs in all_signs(rows.shape[1])])
    order = np.argsort(-observed)
    adjusted, previous = np.empty(len(rows)), 0.0
    for k, row in enumerate(order):
        largest = null[:, order[k:]].max(axis=1)
        previous = max(previous, np.mean(largest >= observed[row] * (1 - 1e-9)))
        adjusted[row] = previous
    return adjusted


def splitmix64(state, count):
    """The first `count` outputs, by the published sequential recipe."""
    mask, out = 2**64 - 1, []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        out.append(z ^ (z >> 31))
    return out


def two_runs(seed, queries=40):
    rng = RNG(seed)
    return rng.uniform(size=queries), rng.uniform(size=queries)


# One comparison


@pytest.mark.parametrize("queries", [2, 3, 50, 1000])
def test_paired_t_is_scipys(queries):
    a, b = two_runs(queries, queries)
    assert paired_t(a - b) == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-10)


def test_paired_t_does_not_depend_on_the_unit():
    d = RNG(1).normal(0.3, 1, 20)
    assert paired_t(d * 1e-300) == pytest.approx(paired_t(d), rel=1e-10)
    assert paired_t(d * 1e300) == pytest.approx(paired_t(d), rel=1e-10)


def test_paired_t_at_the_edges():
    assert paired_t([0.0, 0.0, 0.0]) == 1.0
    assert paired_t([0.0]) == 1.0
    assert math.isnan(paired_t([0.3]))
    assert paired_t([0.1, 0.1, 0.1]) == 0.0


def test_wilcoxon_is_scipys():
    a, b = two_runs(2, 200)
    a[:20] = b[:20]
    assert wilcoxon(a - b) == pytest.approx(stats.wilcoxon(a, b, zero_method="wilcox").pvalue, rel=1e-12)
    assert wilcoxon(b - a) == wilcoxon((a - b)[::-1]) == wilcoxon(a - b)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 70), st.integers(0, 2**32 - 1), st.sampled_from([0.3, 3.0, 1000.0]))
def test_wilcoxon_is_scipys_with_and_without_ties(size, seed, grain):
    values = np.round(np.random.default_rng(seed).normal(0.3, 1, size) * grain) / grain
    some = values[values != 0]
    if len(some):
        assert wilcoxon(values) == pytest.approx(stats.wilcoxon(some).pvalue, rel=1e-9, abs=1e-14)


def test_wilcoxon_drops_zeros():
    assert wilcoxon([1, 2, 3, 4, 5]) == pytest.approx(2 / 32)
    assert wilcoxon([0, 1, 2, 0, 3, 4, 5]) == pytest.approx(2 / 32)
    assert wilcoxon([0.0, 0.0]) == 1.0


@given(st.lists(TENTHS, min_size=1, max_size=10))
@settings(max_examples=100, deadline=None)
def test_randomisation_enumerates_every_sign_pattern(d):
    assert randomisation(d) == pytest.approx(brute_randomisation(d), abs=1e-12)


@pytest.mark.parametrize("queries", [4, 9, 12])
def test_exact_randomisation_is_scipys(queries):
    a, b = two_runs(queries, queries)
    peer = stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", vectorized=True
    )
    assert peer.null_distribution.size == 2**queries
    assert randomisation(a - b) == pytest.approx(peer.pvalue, abs=1e-12)


def test_rounding_never_excludes_a_tie():
    d = [0.1, 0.2, -0.3]  # the sum is 2.8e-17 or 5.6e-17 by the order of adding; it is 0
    assert randomisation(d) == 1.0
    sixths = np.array([0.9 - 0.8, 0.8 - 0.7, 0.7 - 0.6, 0.6 - 0.5, 0.5 - 0.4, -(0.4 - 0.3)])
    assert len(set(np.abs(sixths))) > 1
    assert randomisation(sixths) == 14 / 64  # none or one of six of the other sign, either way


def test_zeros_do_not_count_among_the_patterns():
    d = RNG(3).normal(size=12)
    assert randomisation(np.append(d, np.zeros(100)), permutations=4096) == brute_randomisation(d)


@pytest.mark.parametrize("queries", [1, 3, 4, 63, 64, 65, 130])
@pytest.mark.parametrize("permutations", [1, 1023, 1024, 2100])
def test_sampled_randomisation_is_the_plain_formula(queries, permutations):
    d = RNG(queries).normal(0.1, 1, queries)
    if 2**queries <= permutations:
        assert randomisation(d, permutations, seed=7) == pytest.approx(brute_randomisation(d))
        return
    words = -(-queries // 64)
    stream = splitmix64(splitmix64(7, 1)[0], permutations * words)
    bits = np.array([[(word >> k) & 1 for k in range(64)] for word in stream]).reshape(permutations, 64 * words)
    sums = ((1 - 2 * bits[:, :queries]) * np.sort(np.abs(d))).sum(axis=1)
    expected = (np.sum(np.abs(sums) >= abs(d.sum()) - 1e-9) + 1) / (permutations + 1)
    assert randomisation(d, permutations, seed=7) == pytest.approx(expected, abs=1e-12)


def test_random_words_are_splitmix64():
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]  # published for the seed 1234567
    assert splitmix64(1234567, 3) == expected
    assert [int(significance.random_word(np.uint64(1234567), i)) for i in range(3)] == expected


def test_sampling_comes_near_enumeration():
    d = RNG(4).normal(0.4, 1, 14)
    exact, sampled = randomisation(d, 2**14), randomisation(d, 2**14 - 1)
    assert exact != sampled
    assert abs(exact - sampled) < 4 * math.sqrt(exact * (1 - exact) / 2**14)


def test_seeds_differ_and_repeat():
    d = RNG(5).normal(0.1, 1, 100)
    draws = [randomisation(d, 5000, seed) for seed in (0, 1, 2, -1, 2**70, np.int64(0))]
    assert len(set(draws[:4])) > 1
    assert draws[0] == draws[5]
    assert bootstrap_interval(d, seed=0) != bootstrap_interval(d, seed=1)


def test_p_is_uniform_when_the_runs_are_alike():
    rng = RNG(6)
    p = [randomisation(rng.standard_t(3, size=80), 2000, seed) for seed in range(600)]
    assert stats.kstest(p, "uniform").statistic < 1.63 / math.sqrt(600)  # the 1% point
    assert 0.03 < np.mean(np.array(p) <= 0.05) < 0.07


def test_p_falls_as_the_difference_grows():
    d = RNG(7).normal(size=200)
    p = [randomisation(d - d.mean() + shift, 20_000) for shift in (0, 0.1, 0.2, 0.5)]
    assert p[0] == 1.0
    assert p == sorted(p, reverse=True)
    assert p[3] == 1 / 20_001


@given(st.lists(st.floats(-1, 1, width=16), min_size=1, max_size=40), st.randoms())
@settings(max_examples=50, deadline=None)
def test_nothing_minds_the_sign_or_the_order_of_queries(d, random):
    def first_of_two(x):
        return max_t([x, np.multiply(x, np.abs(x))], 3000)[0]

    shuffled = random.sample(d, len(d))
    for test in (lambda x: randomisation(x, 3000), first_of_two, paired_t):
        assert test(shuffled) == pytest.approx(test(d), rel=1e-9, abs=1e-15, nan_ok=True)
        assert test(np.negative(d)) == pytest.approx(test(d), rel=1e-9, abs=1e-15, nan_ok=True)
    assert bootstrap_interval(shuffled, samples=500) == pytest.approx(bootstrap_interval(d, samples=500), nan_ok=True)


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one thread only")
def test_the_number_of_threads_changes_nothing():
    rows = RNG(8).normal(0.1, 1, (3, 150))
    before, results = numba.get_num_threads(), []
    try:
        for threads in (1, 2):
            numba.set_num_threads(threads)
            results.append((randomisation(rows[0], 30_000), max_t(rows, 30_000).tolist(), bootstrap_interval(rows[0])))
    finally:
        numba.set_num_threads(before)
    assert results[0] == results[1]


# The interval


@pytest.mark.parametrize(("method", "peer"), [("bca", "BCa"), ("percentile", "percentile")])
@pytest.mark.parametrize("queries", [9, 60, 301])
def test_intervals_are_scipys(method, peer, queries):
    d = RNG(queries).exponential(size=queries) ** 1.5 - 0.5
    expected = stats.bootstrap((d,), np.mean, n_resamples=40_000, method=peer, rng=RNG(1)).confidence_interval
    low, high = bootstrap_interval(d, samples=40_000, method=method)
    width = expected.high - expected.low  # an end's Monte Carlo error at 40,000 samples is about 0.5% of the width
    assert low == pytest.approx(expected.low, abs=0.03 * width)
    assert high == pytest.approx(expected.high, abs=0.03 * width)


def test_bca_corrects_the_median_bias():
    d = np.exp(2 * RNG(2).normal(size=12))  # without the outer z0 the upper end would be 6% of the width too low
    expected = stats.bootstrap((d,), np.mean, n_resamples=200_000, batch=10_000, method="BCa", rng=RNG(1))
    low, high = expected.confidence_interval
    assert bootstrap_interval(d, samples=200_000) == pytest.approx((low, high), abs=0.02 * (high - low))


def test_bca_differs_from_percentile_by_skewness():
    d = RNG(9).exponential(size=30) ** 2
    bca, percentile = bootstrap_interval(d), bootstrap_interval(d, method="percentile")
    assert bca[0] > percentile[0]
    assert bca[1] > percentile[1]


def test_bca_counts_means_equal_but_for_rounding_as_half():
    d = np.array([-0.1, 0.0, 0.1] * 4) + 0.7  # symmetric: no bias to correct, though many means tie with the observed
    low, high = bootstrap_interval(d, 0.9, samples=100_000)
    assert low + high == pytest.approx(1.4, abs=0.003)


def test_intervals_cover_the_mean_as_often_as_they_say():
    rng = RNG(10)
    intervals = [bootstrap_interval(rng.normal(0.2, 1, 50), 0.9, samples=2000, seed=i) for i in range(500)]
    coverage = np.mean([low <= 0.2 <= high for low, high in intervals])
    assert 0.86 < coverage < 0.93


def test_more_confidence_is_a_wider_interval():
    d = RNG(11).normal(size=25)
    (a, b), (c, e) = bootstrap_interval(d, 0.8), bootstrap_interval(d, 0.99)
    assert c < a < d.mean() < b < e


@given(st.lists(TENTHS, min_size=1, max_size=8), st.sampled_from(["bca", "percentile"]), st.integers(1, 50))
@example([0.0, 0.5, 0.5, 0.5], "bca", 1)  # no mean below the observed one: an infinite bias, were it not held back
@settings(max_examples=100, deadline=None)
def test_intervals_at_the_edges(d, method, samples):
    low, high = bootstrap_interval(d, 0.999, samples, method=method)
    if len(d) == 1:
        assert math.isnan(low)
        assert math.isnan(high)
    elif min(d) == max(d):
        assert (low, high) == (d[0], d[0])
    else:
        assert min(d) - 1e-12 <= low <= high <= max(d) + 1e-12


# Many comparisons


def test_holm_by_hand():
    assert holm([0.01, 0.02, 0.03, 0.04]).tolist() == pytest.approx([0.04, 0.06, 0.06, 0.06])
    assert holm([0.9, 0.01, 0.8]).tolist() == pytest.approx([1.0, 0.03, 1.0])
    assert holm([0.02]).tolist() == [0.02]
    assert holm([]).tolist() == []


@given(st.lists(st.floats(0, 1) | st.just(math.nan), max_size=12))
def test_holm_is_the_definition(p):
    known = sorted(x for x in p if not math.isnan(x))
    adjusted = holm(p)
    for x, y in zip(p, adjusted, strict=True):
        if math.isnan(x):
            assert math.isnan(y)
        else:
            steps = [min(1.0, (len(known) - k) * q) for k, q in enumerate(known) if q <= x]
            assert y == pytest.approx(max(steps))


@given(st.integers(1, 4), st.integers(2, 7), st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
def test_max_t_enumerates_the_studentised_step_down(comparisons, queries, seed):
    rows = RNG(seed).integers(-4, 5, (comparisons, queries)) / 10
    assert max_t(rows) == pytest.approx(brute_max_t(rows), abs=1e-12)


def test_max_t_of_one_comparison_is_the_single_test():
    d = RNG(12).normal(0.3, 1, 9)
    assert max_t([d])[0] == pytest.approx(brute_max_t(d[np.newaxis])[0])
    assert max_t([d])[0] == pytest.approx(brute_randomisation(d))
    long = RNG(13).normal(0.1, 1, 200)
    assert max_t([long, long, -3 * long]).tolist() == [randomisation(long)] * 3  # copies cost nothing


def test_max_t_adjusts_upwards_and_less_than_holm_when_runs_are_alike():
    rng = RNG(14)
    rows = rng.normal(0.1, 1, 300) + 0.2 * rng.normal(size=(6, 300))
    single = np.array([randomisation(row, 20_000) for row in rows])
    adjusted = max_t(rows, 20_000)
    assert (adjusted >= single - 0.01).all()
    assert (adjusted < holm(single)).all()


@given(st.integers(1, 5), st.integers(1, 9), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_exact_max_t_is_never_below_the_single_test(comparisons, queries, seed):
    rows = RNG(seed).integers(-3, 4, (comparisons, queries)) / 10
    adjusted, single = max_t(rows), np.array([randomisation(row) for row in rows])
    assert (adjusted >= single - 1e-12).all()
    assert (adjusted[(rows == 0).all(axis=1)] == 1.0).all()


def test_rows_of_zeros_have_p_one_and_cost_the_others_nothing():
    rows = RNG(15).normal(0.2, 1, (2, 100))
    adjusted = max_t(np.insert(rows, 1, 0.0, axis=0), 5000)
    assert adjusted[1] == 1.0
    assert adjusted[[0, 2]].tolist() == max_t(rows, 5000).tolist()
    assert max_t(np.zeros((2, 3))).tolist() == [1.0, 1.0]


def test_max_t_keeps_the_familywise_error():
    rng = RNG(16)
    smallest = [max_t(rng.normal(size=60) + rng.normal(size=(5, 60)), 1000, seed).min() for seed in range(600)]
    assert 0.03 < np.mean(np.array(smallest) <= 0.05) < 0.07


def test_max_t_does_not_depend_on_the_unit_or_the_order_of_comparisons():
    rows = RNG(17).normal(0.1, 1, (4, 90))
    units = np.array([[1.0], [1e-200], [1e200], [7.0]])
    assert max_t(rows * units, 5000).tolist() == max_t(rows, 5000).tolist()
    assert max_t(rows[::-1], 5000)[::-1].tolist() == max_t(rows, 5000).tolist()


# Runs


def test_compare_values_says_what_the_tests_say():
    rng = RNG(18)
    base = rng.uniform(size=80)
    values = {
        "good": {"AP": base + 0.1 * rng.uniform(size=80), "P": base.round(1)},
        "base": {"AP": base, "P": base.round(1)},
        "odd": {"P": base[::-1].round(1), "AP": base[::-1]},
    }
    results = compare_values(values, "base", permutations=4000, confidence=0.9, seed=3)
    assert [(c.run, c.measure) for c in results] == [("good", "AP"), ("good", "P"), ("odd", "AP"), ("odd", "P")]
    rows = np.array([np.subtract(values[c.run][c.measure], values["base"][c.measure]) for c in results])
    corrected = holm([randomisation(row, 4000, 3) for row in rows]), max_t(rows, 4000, 3)
    for i, (c, row) in enumerate(zip(results, rows, strict=True)):
        assert c.baseline == "base"
        assert c.difference == pytest.approx(row.mean())
        assert c.interval == bootstrap_interval(row, 0.9, seed=3)
        assert c.p == {"t": paired_t(row), "randomisation": randomisation(row, 4000, 3), "wilcoxon": wilcoxon(row)}
        assert c.corrected == {"holm": corrected[0][i], "max_t": corrected[1][i]}
        assert (c.queries, c.better, c.worse, c.tied) == (80, (row > 0).sum(), (row < 0).sum(), (row == 0).sum())
    assert (results[0].better, results[1].tied) == (80, 80)
    assert results[0].corrected["max_t"] < 0.01 < results[1].corrected["max_t"] == 1.0


def test_queries_without_a_value_are_left_out():
    rng = RNG(19)
    a, b, c = rng.uniform(size=(3, 30))
    a[3] = b[3] = b[5] = c[7] = np.nan
    ab, ac = compare_values({"a": {"AP": a}, "b": {"AP": b}, "c": {"AP": c}}, "a")
    assert (ab.queries, ac.queries) == (28, 28)
    assert ab.p["t"] == pytest.approx(stats.ttest_rel(b, a, nan_policy="omit").pvalue)
    shared = np.setdiff1d(np.arange(30), [3, 5, 7])
    joint = max_t(np.array([b - a, c - a])[:, shared])
    assert [ab.corrected["max_t"], ac.corrected["max_t"]] == joint.tolist()


def test_a_pair_without_queries_has_no_numbers_and_spoils_no_other():
    a, b = two_runs(20, 15)
    nothing = np.full(15, np.nan)
    values = {"a": {"AP": a}, "b": {"AP": b}, "none": {"AP": nothing}}
    ab, none = compare_values(values, "a")
    assert ab == compare_values({"a": {"AP": a}, "b": {"AP": b}}, "a")[0]
    assert none.as_dict() == {
        "run": "none", "baseline": "a", "measure": "AP", "difference": None, "interval": [None, None],
        "p": {"t": None, "randomisation": None, "wilcoxon": None}, "corrected": {"holm": None, "max_t": None},
        "queries": 0, "better": 0, "worse": 0, "tied": 0,
    }  # fmt: skip
    halves = np.where(np.arange(15) < 7, [b, nothing], [nothing, b])  # no query that both pairs share
    split = compare_values({"a": {"AP": a}, "b": {"AP": halves[0]}, "c": {"AP": halves[1]}}, "a")
    assert [math.isnan(x.corrected["max_t"]) for x in split] == [True, True]
    assert [math.isnan(x.corrected["holm"]) for x in split] == [False, False]


def test_as_dict_is_json():
    a, b = two_runs(21)
    (result,) = compare_values({"a": {"AP": a}, "b": {"AP": b}}, "a", permutations=500)
    again = json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert again == result.as_dict()
    assert again["interval"] == list(result.interval)
    assert again["p"] == result.p
    (single,) = compare_values({"a": {"AP": a[:1]}, "b": {"AP": b[:1]}}, "a")
    assert json.loads(json.dumps(single.as_dict(), allow_nan=False))["p"]["t"] is None


# Errors


@pytest.mark.parametrize("test", [paired_t, wilcoxon, randomisation, bootstrap_interval])
@pytest.mark.parametrize(
    ("differences", "words"),
    [([], "no queries"), ([0.1, math.nan], "finite"), ([math.inf], "finite"), ([[1.0]], "2-dimensional")],
)
def test_bare_tests_refuse_what_they_cannot_use(test, differences, words):
    with pytest.raises(InputError, match=words):
        test(differences)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: max_t([1.0]), "comparisons x queries"),
        (lambda: max_t([[]]), "no queries"),
        (lambda: max_t([[1.0, math.nan]]), "finite"),
        (lambda: randomisation([1.0], permutations=0), "permutations must be at least 1"),
        (lambda: bootstrap_interval([1.0, 2.0], confidence=95), "between 0 and 1, not 95"),
        (lambda: bootstrap_interval([1.0, 2.0], samples=0), "samples must be at least 1"),
        (lambda: bootstrap_interval([1.0, 2.0], method="basic"), "'bca' or 'percentile'"),
        (lambda: holm([0.5, 1.5]), "from 0 to 1"),
    ],
)
def test_other_arguments_are_checked(call, words):
    with pytest.raises((InputError, UsageError), match=words):
        call()


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ({"b": {"AP": [1.0]}}, UsageError, "unknown baseline 'a': the runs are 'b'"),
        ({"a": {"AP": [1.0]}}, UsageError, "nothing to compare"),
        ({"a": {}, "b": {}}, UsageError, "nothing to compare"),
        ({"a": {"AP": [1.0]}, "b": {"RR": [1.0]}}, UsageError, r"run 'b' has measures \['RR'\]"),
        ({"a": {"AP": [1.0]}, "b": {"AP": [1.0, 2.0]}}, InputError, "AP of run 'b' has 2 queries, .* 'a' has 1"),
        ({"a": {"AP": [], "RR": []}, "b": {"AP": [], "RR": []}}, InputError, "no queries"),
        ({"a": {"AP": [1.0]}, "b": {"AP": [math.inf]}}, InputError, "AP of run 'b' .* finite or NaN"),
    ],
)
def test_runs_that_cannot_be_compared_are_named(values, error, words):
    with pytest.raises(error, match=words):
        compare_values(values, "a")
