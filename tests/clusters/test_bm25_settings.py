"""k1, b and average length from scores: found again where scores determine them, and never out of bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fliprank.clusters.bm25_settings import BM25Settings, settings_of_scores

RNG = np.random.default_rng(5)
LENGTH = RNG.integers(1, 90, 200).astype(float)
TF = RNG.integers(1, 5, 200).astype(float)
IDF = RNG.uniform(0.2, 6.0, 200)


def scores(tf: np.ndarray, found: BM25Settings) -> np.ndarray:
    k, b, average = found
    return IDF * tf * (k + 1) / (tf + k * (1 - b + b * LENGTH / average))


@given(st.floats(0.1, 4.0), st.floats(0.05, 1.0), st.floats(2.0, 90.0))
def test_settings_are_found_again(k: float, b: float, average: float) -> None:
    found = settings_of_scores(TF, LENGTH, IDF, scores(TF, BM25Settings(k, b, average)))
    assert found == pytest.approx((k, b, average), rel=1e-3, abs=1e-4)


@given(st.floats(0.3, 0.9), st.floats(5.0, 60.0))
def test_where_no_term_stands_twice_scores_are_found_again(b: float, average: float) -> None:
    once = np.ones(len(TF))
    given = scores(once, BM25Settings(1.2, b, average))
    found = settings_of_scores(once, LENGTH, IDF, given)
    assert found.k == 1.2
    np.testing.assert_allclose(scores(once, found), given, rtol=1e-4)


def test_without_lengths_b_is_0() -> None:
    found = settings_of_scores(TF, LENGTH, IDF, IDF * TF * 1.9 / (TF + 0.9))
    assert found == pytest.approx((0.9, 0.0, LENGTH.mean()), abs=1e-5)


@given(st.integers(0, 200), st.integers(0, 2**32 - 1))
def test_what_no_settings_give_is_taken_for_the_usual_ones(number: int, seed: int) -> None:
    noise = np.random.default_rng(seed).uniform(0.0, 9.0, number)
    found = settings_of_scores(TF[:number], LENGTH[:number], IDF[:number], noise)
    assert 0 <= found.b <= 1
    assert found.k > 0
    assert np.isfinite(found.average)
    assert found.average >= 0
