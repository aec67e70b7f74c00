"""Dates of documents: Python's own calendar is the oracle."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.text.build.dates import DATES, MONTH_FIRST, WRITTEN, day_numbers, kind_of_dates
from fliprank.text.index import Index

CACM = Path(__file__).parents[2].parent / "shared" / "data" / "text" / "cacm" / "corpus.jsonl"
SHAPES = {
    "%Y-%m-%d": DATES,
    "%Y-%m-%dT%H:%M:%S": DATES,
    "%d.%m.%Y": DATES,
    "%m/%d/%Y": MONTH_FIRST,
    "%d %B %Y": WRITTEN,
    "%B %d, %Y": WRITTEN,
    "Vol. 3, %b. %d %Y": WRITTEN,
}


@pytest.mark.parametrize("shape", SHAPES)
@given(days=st.lists(st.dates(date(1001, 1, 1), date(2999, 12, 31)), min_size=1, max_size=9))
@settings(max_examples=25, deadline=None)
def test_dates_of_every_shape_are_the_calendars(shape: str, days: list[date]) -> None:
    known = [*days, date(2001, 4, 30), date(2001, 12, 3)]  # 30 is no month: so the order of day and month is plain
    column = pl.Series([day.strftime(shape) for day in known] + ["", "x"])
    kind = kind_of_dates(column[:-2])
    assert kind == SHAPES[shape]
    assert day_numbers(column, kind).to_list() == [*(day.toordinal() for day in known), None, None]


def test_months_without_a_day_begin_on_the_first_and_days_that_do_not_exist_are_none() -> None:
    column = pl.Series(["CACM December, 1958", "CACM May,1963", "Feb 30, 1999"])
    assert kind_of_dates(column) == WRITTEN
    expected = [date(1958, 12, 1).toordinal(), date(1963, 5, 1).toordinal(), None]
    assert day_numbers(column, WRITTEN).to_list() == expected
    assert day_numbers(pl.Series(["2021-13-01", "2021-02-29"]), DATES).to_list() == [None, None]


@pytest.mark.parametrize(
    "values",
    [[], ["red shoes"], ["2021-03-04", "soon"], ["1999"], ["It rained and rained all through the month of May 1999"]],
)
def test_what_is_no_date_is_not_taken_for_one(values: list[str]) -> None:
    assert kind_of_dates(pl.Series(values, dtype=pl.String)) is None


def test_dates_are_columns_of_an_index_and_dates_in_words_stay_text_too() -> None:
    docs = [
        {"_id": "a", "title": "red", "made": "2020-02-01", "issue": "CACM May, 1960"},
        {"_id": "b", "title": "blue", "made": None, "issue": "CACM June, 1961"},
    ]
    index = Index.build(docs)
    assert index.fields == ("title", "issue")
    assert index.columns["made_day"][0] == date(2020, 2, 1).toordinal()
    assert np.isnan(index.columns["made_day"][1])
    assert index.columns["issue_day"].tolist() == [date(1960, 5, 1).toordinal(), date(1961, 6, 1).toordinal()]
    rows = index.rows({"q": "red blue"}, {"q": ["a", "b"]})
    assert rows.features[:, rows.feature_names.index("made_day")].tolist() == [date(2020, 2, 1).toordinal(), 0.0]
    named = Index.build(docs, fields=["title"])
    assert (named.fields, set(named.columns), named.notes) == (("title",), {"made_day", "issue_day"}, ())


def test_dates_of_a_frame_are_columns_too() -> None:
    when = [datetime(2020, 2, 1, 18, 0), None]
    frame = pl.DataFrame({"_id": ["a", "b"], "title": ["red", "blue"], "at": when, "on": [None, date(1999, 1, 2)]})
    index = Index.build(frame)
    assert index.fields == ("title",)
    assert index.columns["at_day"][0] == date(2020, 2, 1).toordinal() + 0.75
    assert index.columns["on_day"][1] == date(1999, 1, 2).toordinal()


def test_the_dates_of_cacm_are_found() -> None:
    if not CACM.exists():
        pytest.skip("no ../shared/data/text/cacm")
    index = Index.build(CACM)
    assert "date" in index.fields
    days = index.columns["date_day"]
    assert not np.isnan(days).any()
    assert (days.min(), days.max()) == (date(1958, 1, 1).toordinal(), date(1979, 12, 1).toordinal())
