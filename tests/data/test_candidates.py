"""Candidates: constructors agree, parts keep what belongs to them, and what is wrong is refused with words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.candidates import Candidates, concat, group_rows
from fliprank.data.ids import Ids
from fliprank.data.term_statistics import TermStatistics
from fliprank.errors import InputError, UsageError


def table(candidates: Candidates) -> list[tuple[str, str, float, float]]:
    """Every row as (query, document, label, first feature)."""
    assert candidates.docids is not None
    assert candidates.features is not None
    queries = [candidates.qids[q] for q in candidates.query_of_rows()]
    columns = (candidates.docids.tolist(), candidates.labels.tolist(), candidates.features[:, 0].tolist())
    return list(zip(queries, *columns, strict=True))


@st.composite
def made(draw: st.DrawFn) -> Candidates:
    qid = draw(st.lists(st.sampled_from("abcdé"), min_size=1, max_size=30))
    labels = [draw(st.sampled_from([0.0, 1.0, 2.5])) for _ in qid]
    docids = [f"d{i}" for i in range(len(qid))]
    return Candidates.of(labels, qid=qid, docids=docids, features=np.arange(2 * len(qid)).reshape(-1, 2))


@settings(deadline=None)
@given(qid=st.lists(st.sampled_from("abc"), min_size=1, max_size=20))
def test_rows_of_a_query_come_together_in_order_of_appearance(qid: list[str]) -> None:
    rows = Candidates.of(np.arange(len(qid)), qid=qid, docids=range(len(qid)), features=np.ones((len(qid), 1)))
    expected = [(q, str(i)) for q in dict.fromkeys(qid) for i, other in enumerate(qid) if other == q]
    assert [row[:2] for row in table(rows)] == expected
    offsets, order = group_rows(qid)
    assert offsets.tolist() == rows.offsets.tolist()
    assert rows.labels.tolist() == order.tolist()


def test_group_sizes_and_query_ids_say_the_same() -> None:
    by_size = Candidates.of([1, 0, 2], group=[2, 1])
    by_id = Candidates.of([1, 0, 2], qid=[1, 1, 2])
    assert by_size.offsets.tolist() == by_id.offsets.tolist()
    assert by_size.qids == by_id.qids


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_frames_of_polars_and_pandas(frame: type) -> None:
    columns = {"qid": ["x", "y", "x"], "docid": ["a", "b", "c"], "label": [1.0, None, 0.0], "bm25": [3.0, 2.0, 1.0]}
    rows = Candidates.from_frame(frame({**columns, "text": ["p", "q", "r"]}))
    assert rows.feature_names == ("bm25",)
    assert rows.qids.tolist() == ["x", "y"]
    assert [(q, d, f) for q, d, _, f in table(rows)] == [("x", "a", 3.0), ("x", "c", 1.0), ("y", "b", 2.0)]
    assert np.isnan(rows.labels[2])


@settings(deadline=None, max_examples=40)
@given(rows=made(), data=st.data())
def test_select_keeps_whole_queries_in_the_order_asked_for(rows: Candidates, data: st.DataObject) -> None:
    chosen = data.draw(st.permutations(range(rows.queries)))[: data.draw(st.integers(0, rows.queries))]
    names = [rows.qids[q] for q in chosen]
    expected = [row for name in names for row in table(rows) if row[0] == name]
    assert table(rows.select(chosen)) == expected


@settings(deadline=None, max_examples=40)
@given(rows=made(), data=st.data())
def test_take_keeps_queries_and_remembers_dropped_judgements(rows: Candidates, data: st.DataObject) -> None:
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    part = rows.take(kept)
    assert table(part) == [row for row, keep in zip(table(rows), kept, strict=True) if keep]
    assert part.qids == rows.qids
    for q in range(rows.queries):
        inside = slice(rows.offsets[q], rows.offsets[q + 1])
        dropped = sorted(rows.labels[inside][~kept[inside]])
        assert sorted(part.missed_labels[part.missed_offsets[q] : part.missed_offsets[q + 1]]) == dropped


@settings(deadline=None, max_examples=30)
@given(rows=made(), seed=st.integers(0, 9))
def test_split_parts_the_queries_and_concat_puts_them_back(rows: Candidates, seed: int) -> None:
    parts = rows.split(0.5, 0.3, 0.2, seed=seed)
    assert sorted(q for part in parts for q in part.qids) == sorted(rows.qids)
    assert sorted(table(concat(*parts))) == sorted(table(rows))
    again = rows.split(0.5, 0.3, 0.2, seed=seed)
    assert all(a.qids == b.qids for a, b in zip(parts, again, strict=True))


def test_top_keeps_the_best_rows_best_first() -> None:
    rows = Candidates.of([0, 1, 2, 3], group=[3, 1], docids="abcd", features=np.ones((4, 1)))
    assert [row[1] for row in table(rows.top([1, 3, 3, 0], 2))] == ["c", "b", "d"]


def test_term_statistics_follow_their_rows() -> None:
    terms = TermStatistics(
        ("title", "body"), [0, 1, 3], Ids.of(["x", "y", "z"]), [1.0, 2.0, 3.0], [0, 1, 2, 4],
        np.arange(8).reshape(4, 2), [[1, 2], [3, 4], [5, 6]],
    )  # fmt: skip
    rows = Candidates([0, 2, 3], [1.0, 0.0, 1.0], Ids.of(["p", "q"]), terms=terms)
    second = rows.select([1]).terms
    assert second is not None
    assert second.of_row(0).tolist() == [[4, 5], [6, 7]]
    assert second.terms.tolist() == ["y", "z"]
    both = concat(rows.select([1]), rows.select([0])).terms
    assert both is not None
    assert both.of_row(2).tolist() == terms.of_row(1).tolist()


def test_candidates_do_not_change() -> None:
    labels = np.array([1.0, 0.0])
    rows = Candidates.of(labels)
    with pytest.raises(ValueError, match="read-only"):
        rows.labels[0] = 5
    with pytest.raises(AttributeError):
        rows.labels = labels  # type: ignore[misc]


def test_describe_tells_what_is_there() -> None:
    rows = Candidates.of([2, 0, np.nan], qid=["a", "a", "b"], features=[[1, 2], [1, 3], [1, 4]])
    told = dict(line.split("  ", 1) for line in rows.describe().splitlines())
    told = {name.strip(): value.strip() for name, value in told.items()}
    assert told["queries"] == "2"
    assert told["without a relevant row"] == "1"
    assert told["unjudged rows"] == "1"
    assert told["label 2"] == "1"
    assert told["features"] == "2 (1 constant)"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"labels": [1, np.inf]}, "label inf of row 1"),
        ({"labels": [[1], [2]]}, "labels must be one number per row"),
        ({"labels": [1, 2], "qid": ["a"]}, "1 query ids for 2 labels"),
        ({"labels": [1, 2], "group": [3]}, "group sizes add up to 3, but there are 2 labels"),
        ({"labels": [1, 2], "group": [3, -1]}, "group must be the number of rows of each query"),
        ({"labels": [1, 2], "docids": ["d", "d"]}, "query 1: document d occurs twice"),
        ({"labels": [1, 2], "features": [[1.0]]}, "1 rows of features for 2 labels"),
        ({"labels": [1, 2], "features": [[1.0], [np.inf]]}, "query 1: an infinite feature in row 1"),
        ({"labels": [1, 2], "features": [[1.0], [2.0]], "feature_names": ["a", "b"]}, "2 feature names for 1 features"),
    ],
)
def test_bad_input_is_refused_with_words(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Candidates.of(**arguments)  # type: ignore[arg-type]


def test_wrong_use_is_refused_with_words() -> None:
    rows = Candidates.of([1, 0], qid=["a", "b"])
    with pytest.raises(UsageError, match="not both"):
        Candidates.of([1, 0], qid=["a", "b"], group=[2])
    with pytest.raises(UsageError, match="query numbers go from 0 to 1"):
        rows.select([2])
    with pytest.raises(UsageError, match="named twice"):
        rows.take([0, 0])
    with pytest.raises(UsageError, match="at most 1"):
        rows.split(0.8, 0.4)
    with pytest.raises(InputError, match="query a: the query occurs twice"):
        concat(rows, rows)
    with pytest.raises(InputError, match="no column 'label'"):
        Candidates.from_frame(pl.DataFrame({"qid": [1]}))


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_ids_of_a_frame_may_be_numbers_but_not_null(frame: type) -> None:
    rows = Candidates.from_frame(frame({"qid": [7.0, 8.0], "docid": [1, 2], "label": [1, 0]}))
    assert (rows.qids.tolist(), rows.docids and rows.docids.tolist()) == (["7", "8"], ["1", "2"])
    with pytest.raises(InputError, match="column 'qid' has no value in row 1"):
        Candidates.from_frame(frame({"qid": ["a", None], "label": [1, 0]}))
