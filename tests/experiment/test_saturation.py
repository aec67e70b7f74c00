"""The law of a learning curve: recovered where it is known, with intervals that hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fliprank.errors import UsageError
from fliprank.experiment.saturation import POWERS, fit_law, outlook, resample

SIZES = np.array([16, 23, 32, 45, 64, 91, 128, 181, 256])


def curves(rng: np.random.Generator, a: float, p: float, *, held_out: bool = False, queries: int = 300) -> np.ndarray:
    """Sizes x 5 repeats x queries: queries differ in level and gain, training sets in how good they are."""
    draws = np.empty((len(SIZES), 5))
    draws[0] = rng.normal(size=5)
    for i in range(1, len(SIZES)):  # a training set contains the one before
        kept = np.sqrt(SIZES[i - 1] / SIZES[i])
        draws[i] = kept * draws[i - 1] + np.sqrt(1 - kept**2) * rng.normal(size=5)
    rise = a * (1 + 2 * rng.normal(size=queries)) * (SIZES**-p)[:, None]
    mean = (0.5 + 0.25 * rng.normal(size=queries) - rise)[:, None, :]
    values = mean + (0.15 * a * draws / np.sqrt(SIZES)[:, None])[:, :, None]
    values = values + 0.08 * rng.normal(size=(len(SIZES), 5, queries))
    if held_out:
        tested = rng.permutation(queries) % 5 == np.arange(5)[:, None]
        values = np.where(tested, values, np.nan)
    return values


@given(st.floats(-1, 1), st.floats(-2, 2), st.sampled_from(POWERS))
def test_a_curve_without_noise_gives_back_its_law(c: float, a: float, p: float) -> None:
    law = fit_law(SIZES, c - a * SIZES**-p)
    assert law.gain(256, 1024) == pytest.approx(a * (256**-p - 1024**-p), abs=1e-7)
    assert law.at(100) == pytest.approx(c - a * 100**-p, abs=1e-7)


def test_many_curves_at_once_are_fitted_as_each_alone() -> None:
    means = 0.5 - 0.8 * SIZES**-0.5 + 0.01 * np.random.default_rng(0).normal(size=(20, len(SIZES)))
    together = fit_law(SIZES, means)
    for i, line in enumerate(means):
        alone = fit_law(SIZES, line)
        np.testing.assert_allclose([alone.c, alone.a, alone.p], [part[i] for part in together], rtol=1e-9)


def test_no_other_law_fits_better() -> None:
    from scipy.optimize import curve_fit

    means = 0.5 - 0.8 * SIZES**-0.6 + 0.004 * np.random.default_rng(3).normal(size=len(SIZES))
    ours = fit_law(SIZES, means)
    theirs, _ = curve_fit(lambda n, c, a, p: c - a * n**-p, SIZES, means, (0.5, 1.0, 0.5), sigma=SIZES**-0.5)
    errors = [((means - (c - a * SIZES**-p)) ** 2 * SIZES).sum() for c, a, p in (ours, theirs)]
    assert errors[0] <= 1.05 * errors[1]  # exponents are tried at steps


@pytest.mark.parametrize(("a", "p", "held_out"), [(0.8, 0.5, False), (0.8, 0.5, True), (2.0, 1.0, False)])
def test_the_interval_of_the_gain_holds_the_true_gain_about_as_often_as_it_says(
    a: float, p: float, held_out: bool
) -> None:
    hits = {2: 0, 4: 0}
    for trial in range(60):
        values = curves(np.random.default_rng(trial), a, p, held_out=held_out)
        drawn = resample(values, np.zeros(len(SIZES)), not held_out, samples=300, seed=trial)
        for times, gain in zip(hits, outlook(SIZES, drawn, "nDCG", 256).gains, strict=True):
            hits[times] += gain.low <= a * (256**-p - (times * 256.0) ** -p) <= gain.high
    assert min(hits.values()) >= 50  # 57 of 60 for 95%


def test_the_interval_of_a_mean_is_that_of_both_sources() -> None:
    """Against the spread over new draws of both: training sets and test queries."""
    means, halves = [], []
    for trial in range(200):
        values = curves(np.random.default_rng(trial), 0.8, 0.5, queries=60)[:, :, :]
        drawn = resample(values, np.zeros(len(SIZES)), True, samples=300, seed=trial)
        means.append(drawn.means[0])
        halves.append(drawn.half_width(lambda lines: lines[:, 0]))
    true = 0.5 - 0.8 * 16**-0.5
    assert 0.9 <= np.mean(np.abs(np.array(means) - true) <= halves) <= 0.995


def test_what_repeats_share_widens_the_interval() -> None:
    values = curves(np.random.default_rng(0), 0.8, 0.5)
    wide = [
        resample(values, np.full(len(SIZES), shared), True).half_width(lambda lines: lines[:, -1])
        for shared in (0.0, 0.5, 0.8, 1.0)
    ]
    assert wide[0] < wide[1] < wide[2] == wide[3]


def test_the_sentence_says_what_can_be_told() -> None:
    steady, none = np.zeros(len(SIZES)), "more judgements of this kind would hardly help"
    rng = np.random.default_rng(1)
    rising = outlook(SIZES, resample(curves(rng, 0.8, 0.5), steady, True), "nDCG@10", 256)
    assert rising.verdict == "rising"
    assert rising.sentence.startswith("From 256 to 512 training queries nDCG@10 would improve by about 0.01")
    assert rising.enough is None or rising.enough <= 512
    flat = outlook(SIZES, resample(curves(rng, 0.0, 0.5), steady, True), "nDCG@10", 256)
    assert flat.verdict == "flat"
    assert none in flat.sentence
    assert abs(flat.gains[0].gain) < 0.005
    noisy = outlook(SIZES, resample(curves(rng, 2.0, 1.0, queries=12), steady, True), "nDCG@10", 256)
    assert noisy.verdict == "unclear"
    assert noisy.sentence.startswith("Too few queries to tell")
    few = outlook(SIZES[:3], resample(curves(rng, 0.8, 0.5)[:3], steady[:3], True), "nDCG@10", 32)
    assert (few.verdict, few.gains) == ("too few", ())


def test_smaller_is_better_turns_the_gain_around() -> None:
    steady = np.zeros(len(SIZES))
    up = outlook(SIZES, resample(curves(np.random.default_rng(1), 0.8, 0.5), steady, True), "nDCG", 256)
    down = outlook(SIZES, resample(1 - curves(np.random.default_rng(1), 0.8, 0.5), steady, True), "ESL", 256, -1.0)
    assert down.gains[0].gain == pytest.approx(up.gains[0].gain, abs=1e-9)
    assert down.verdict == "rising"


def test_two_sizes_make_no_law() -> None:
    with pytest.raises(UsageError, match="three sizes or more, not at 2"):
        fit_law([1, 2], [0.1, 0.2])
