"""Numbers sorted by their leading bits are sorted, also where only the last bits differ."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.landscape.radix import sort_numbers


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(allow_nan=False), max_size=200))
def test_any_numbers_are_sorted(numbers: list[float]) -> None:
    x = np.array(numbers, np.float64)
    order = sort_numbers(x, len(x))
    np.testing.assert_array_equal(x[order], np.sort(x))
    assert sorted(order.tolist()) == list(range(len(x)))


@pytest.mark.parametrize("size", [1, 48, 49, 1000, 5000])
@pytest.mark.parametrize("kind", ["wide", "few", "last bits", "descending"])
def test_many_numbers_are_sorted(size: int, kind: str) -> None:
    rng = np.random.default_rng(size)
    x = {
        "wide": rng.normal(size=size) * 10.0 ** rng.integers(-300, 300, size),
        "few": rng.integers(-2, 3, size).astype(float),
        "last bits": 1 + rng.permutation(size) * 2.0**-52,
        "descending": -np.arange(size, dtype=float),
    }[kind]
    order = sort_numbers(np.concatenate([x, [-np.inf] * 3]), size)
    np.testing.assert_array_equal(x[order], np.sort(x))
    assert sorted(order.tolist()) == list(range(size))
