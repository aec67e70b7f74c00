"""Candidates in Parquet files: round trips and errors."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.candidates import Candidates
from fliprank.data.parquet import read_parquet, write_parquet
from fliprank.errors import InputError

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
LABELS = st.one_of(st.just(math.nan), st.floats(-2, 4))


@st.composite
def candidates(draw: Any) -> Candidates:
    pairs = draw(st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=8, unique=True))
    names = draw(
        st.lists(NAMES.filter(lambda name: name not in ("", "qid", "docid", "label")), max_size=2, unique=True)
    )
    value = st.floats(width=32, allow_infinity=False)
    return Candidates.of(
        [draw(LABELS) for _ in pairs],
        qid=[qid for qid, _ in pairs],
        docids=[docid for _, docid in pairs] if draw(st.booleans()) else None,
        features=[[draw(value) for _ in names] for _ in pairs] if names else None,
        feature_names=names,
    )


@settings(max_examples=100, deadline=None)
@given(candidates())
def test_written_candidates_read_back(tmp_path_factory: pytest.TempPathFactory, rows: Candidates) -> None:
    path = tmp_path_factory.mktemp("parquet") / "rows.parquet"
    write_parquet(path, rows)
    back = read_parquet(path)
    assert (back.qids, back.docids, back.feature_names) == (rows.qids, rows.docids, rows.feature_names)
    for name in ("offsets", "labels", "features"):
        np.testing.assert_array_equal(getattr(back, name), getattr(rows, name))
    assert pl.read_parquet(path)["label"].null_count() == np.isnan(rows.labels).sum()


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"topic": [1, 1], "doc": ["a", "b"], "grade": [2, None], "x": [1, 2], "y": [3, 4]}).write_parquet(path)
    rows = read_parquet(path, qid="topic", docid="doc", label="grade", features=["y"])
    assert (rows.qids.tolist(), rows.feature_names) == (["1"], ("y",))
    np.testing.assert_array_equal(rows.labels, [2, math.nan])


def test_a_missing_column_lists_those_there_are(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"topic": ["a"], "label": [1]}).write_parquet(path)
    with pytest.raises(InputError, match=r"rows\.parquet: the frame has no column 'qid' \(it has topic, label\)"):
        read_parquet(path)


@pytest.mark.parametrize("content", [b"", b"qid,label\n", b"PAR1" + bytes(40) + b"PAR1"])
def test_a_file_that_is_not_parquet_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rows.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"rows\.parquet: can't be read as Parquet"):
        read_parquet(tmp_path / "rows.parquet")


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_parquet(tmp_path / "*.parquet")
    with pytest.raises(InputError, match="is a folder"):
        read_parquet(tmp_path)


def test_a_document_twice_in_a_query_is_named(tmp_path: Path) -> None:
    pl.DataFrame({"qid": ["a", "a"], "docid": ["x", "x"], "label": [1, 2]}).write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=r"rows\.parquet, query a: document x occurs twice"):
        read_parquet(tmp_path / "rows.parquet")


@pytest.mark.parametrize("names", [["label", "x"], ["x", "x"], ["", "x"]])
def test_features_whose_names_are_not_their_own_are_not_written(tmp_path: Path, names: list[str]) -> None:
    rows = Candidates.of([1.0], features=[[1.0, 2.0]], feature_names=names)
    with pytest.raises(InputError, match=f"a feature can't have the name '{names[0]}'"):
        write_parquet(tmp_path / "rows.parquet", rows)
    assert not list(tmp_path.iterdir())
