"""Verdicts by rule: simulated claims that are true, false, or open are told apart."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fliprank.errors import UsageError
from fliprank.papers.rules import Claims, alike, all_of, as_good, difference, interval, larger

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
    ("shift", "noise", "better", "same", "no_worse"),
    [
        (0.05, 0.05, HOLDS, DOES_NOT, HOLDS),
        (-0.05, 0.05, DOES_NOT, DOES_NOT, DOES_NOT),
        (0.0, 0.01, UNKNOWN, HOLDS, HOLDS),
        (0.0, 0.5, UNKNOWN, UNKNOWN, UNKNOWN),
        (0.002, 0.001, HOLDS, HOLDS, HOLDS),
        (-0.002, 0.001, DOES_NOT, HOLDS, HOLDS),
    ],
)
def test_verdicts_follow_from_shift_and_noise(
    shift: float, noise: float, better: str, same: str, no_worse: str
) -> None:
    noisy = noise * np.random.default_rng(2).normal(size=100)
    found = difference(shift + noisy - noisy.mean(), np.zeros(100))
    assert (larger(found), alike(found), as_good(found)) == (better, same, no_worse)


def test_claims_are_judged_with_p_corrected_for_their_number() -> None:
    rng, claims = np.random.default_rng(3), Claims()
    noise = rng.normal(size=40)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    strong, weak = 0.1 + 0.1 * noise, 0.04 + 0.1 * noise  # t = 6.3 and 2.5
    assert difference(weak, np.zeros(40)).p < 0.05
    claims.add("strong", larger, strong, np.zeros(40))
    for number in range(9):
        claims.add(f"weak {number}", larger, weak, np.zeros(40))
    assert claims.verdicts["strong"] == HOLDS
    assert claims.verdicts["weak 0"] == UNKNOWN
    assert claims.verdict == UNKNOWN
    assert claims.sentence.startswith(
        "Comparisons behind this claim: 10, of which 1 speak for it, 0 against it, and 9 can't tell. "
        "Most clearly for it: strong, +0.1000 (p "
    )
    claims.add("wrong", larger, -strong, np.zeros(40))
    assert claims.verdict == DOES_NOT
    assert "Most clearly against it: wrong, -0.1000" in claims.sentence
    assert len(claims.notes) == 11


def test_claims_without_any_can_not_be_told() -> None:
    assert Claims().verdict == UNKNOWN
    assert Claims().notes == ()


def test_one_false_claim_makes_all_of_them_false_and_one_open_one_leaves_them_open() -> None:
    assert all_of([HOLDS, HOLDS]) == HOLDS
    assert all_of([HOLDS, UNKNOWN]) == UNKNOWN
    assert all_of([DOES_NOT, UNKNOWN]) == DOES_NOT
    assert all_of([]) == UNKNOWN


def test_nothing_in_common_is_an_error() -> None:
    with pytest.raises(UsageError, match="a query"):
        difference([np.nan], [1.0])
