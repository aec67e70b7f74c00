"""Verdicts by rule: simulated claims that are true, false, or open are told apart."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fliprank.errors import UsageError
from fliprank.papers.rules import alike, all_of, difference, interval, larger

HOLDS, DOES_NOT, UNKNOWN = "holds", "does not hold", "can't be told at this size"


def test_differences_are_those_of_scipys_paired_t_test() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.random(50), rng.random(50)
    found, peer = difference(one, other), stats.ttest_rel(one, other)
    span = peer.confidence_interval(0.95)
    assert found[:4] == pytest.approx(((one - other).mean(), span.low, span.high, peer.pvalue))
    one[3] = np.nan
    assert difference(one, other).queries == 49


def test_an_interval_of_a_mean_is_students() -> None:
    values = np.random.default_rng(1).random(20)
    low, high = stats.t.interval(0.95, 19, values.mean(), stats.sem(values))
    assert interval(values) == pytest.approx((values.mean(), low, high))


@pytest.mark.parametrize(
    ("shift", "noise", "better", "same"),
    [
        (0.05, 0.05, HOLDS, DOES_NOT),
        (-0.05, 0.05, DOES_NOT, DOES_NOT),
        (0.0, 0.01, UNKNOWN, HOLDS),
        (0.0, 0.5, UNKNOWN, UNKNOWN),
        (0.002, 0.001, HOLDS, HOLDS),
    ],
)
def test_verdicts_follow_from_shift_and_noise(shift: float, noise: float, better: str, same: str) -> None:
    noisy = noise * np.random.default_rng(2).normal(size=100)
    found = difference(shift + noisy - noisy.mean(), np.zeros(100))
    assert (larger(found), alike(found)) == (better, same)


def test_one_false_claim_makes_all_of_them_false_and_one_open_one_leaves_them_open() -> None:
    assert all_of([HOLDS, HOLDS]) == HOLDS
    assert all_of([HOLDS, UNKNOWN]) == UNKNOWN
    assert all_of([DOES_NOT, UNKNOWN]) == DOES_NOT
    assert all_of([]) == UNKNOWN


def test_nothing_in_common_is_an_error() -> None:
    with pytest.raises(UsageError, match="a query"):
        difference([np.nan], [1.0])
