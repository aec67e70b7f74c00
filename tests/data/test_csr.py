"""Groups of consecutive rows: those that are chosen cost what they are, not what all of them are."""

from __future__ import annotations

import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fliprank.data.csr import bounds, span_indices, span_sizes


@given(st.lists(st.integers(0, 5), min_size=1), st.data())
def test_chosen_groups_one_after_the_other(sizes: list[int], data: st.DataObject) -> None:
    chosen = np.array(data.draw(st.lists(st.integers(0, len(sizes) - 1))), np.int64)
    limits = bounds(np.array(sizes))
    wanted = [row for group in chosen for row in range(limits[group], limits[group + 1])]
    assert span_indices(limits, chosen).tolist() == wanted
    assert span_sizes(limits, chosen).tolist() == [sizes[group] for group in chosen]


def test_a_few_of_very_many_groups_need_little() -> None:
    limits, chosen = np.arange(1_000_001) * 3, np.array([5, 70_000, 999_999])
    tracemalloc.start()
    try:
        assert len(span_indices(limits, chosen)) == 9
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
