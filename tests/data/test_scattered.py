"""Statistics of rows in parts: those of memory to the last bit, at any width, in little memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fliprank as fr
from fliprank.data import scattered
from fliprank.data.file_rows import FileRows
from fliprank.data.row_file import write_rows
from fliprank.data.scattered import PickedFeatures, block_rows
from fliprank.models.feature_subset import pick_features
from fliprank.models.scaler import Scaler


def rows_of(queries: int, width: int, seed: int = 0) -> fr.Candidates:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, queries)
    matrix = rng.normal(size=(int(sizes.sum()), width)) * 10.0 ** rng.integers(-6, 6, width)
    return fr.Candidates.of(rng.integers(0, 3, len(matrix)), group=sizes, features=matrix)


@given(st.integers(0, 10**9))
def test_blocks_are_of_8192_rows_unless_rows_are_wide(width: int) -> None:
    """So that models of up to 1,024 features stay what they were."""
    assert block_rows(width) == 8192 or width > 1024
    assert block_rows(width) == 1 or 8 * block_rows(width) * width <= 1 << 26


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 99), st.integers(1, 12), st.integers(1, 12), st.integers(1, 30), st.integers(1, 90))
def test_statistics_of_some_features_are_those_of_memory(
    tmp_path_factory: pytest.TempPathFactory, seed: int, width: int, picked: int, block: int, values: int
) -> None:
    rows, folder = rows_of(25, width, seed), tmp_path_factory.mktemp("wide")
    write_rows(folder / "a.rows", rows.select(np.arange(7)))
    write_rows(folder / "b.rows", rows.select(np.arange(7, 25)))
    names = rows.feature_names[: min(picked, width)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scattered, "BLOCK", block)
        patch.setattr(scattered, "BLOCK_VALUES", values)
        files = FileRows.open([folder / "a.rows", folder / "b.rows"], 1000)
        for found, whole in ((files, rows), (PickedFeatures(files, names), pick_features(rows, names))):
            one, other = Scaler.of(found), Scaler.of(whole)
            assert (one.mean.tolist(), one.scale.tolist()) == (other.mean.tolist(), other.scale.tolist())


def test_a_feature_by_itself_is_added_up_as_in_memory(tmp_path: Path) -> None:
    """NumPy adds up a single column in another order than columns side by side."""
    rows = rows_of(500, 3)
    write_rows(tmp_path / "a.rows", rows)
    files, names = FileRows.open([tmp_path / "a.rows"]), rows.feature_names[1:2]
    found, whole = Scaler.of(PickedFeatures(files, names)), Scaler.of(pick_features(rows, names))
    assert (found.mean.tolist(), found.scale.tolist()) == (whole.mean.tolist(), whole.scale.tolist())


def test_wide_rows_are_added_up_in_little_memory() -> None:
    rows = fr.Candidates.of(np.zeros(1000), features=np.ones((1000, 20_000), np.float32))
    tracemalloc.start()
    try:
        Scaler.of(rows)
        assert tracemalloc.get_traced_memory()[1] < 200e6  # all rows at once: 320 MB
    finally:
        tracemalloc.stop()
