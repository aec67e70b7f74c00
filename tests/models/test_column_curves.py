"""Curves for the columns of documents, by the rules: which column gets which, which is left out and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fliprank.data.builtin import collection
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.models import BM25F, Feature, Stack
from fliprank.models.column_curves import column_curves, is_date
from fliprank.models.registry import make_model, stack_notes
from fliprank.text.index import Index

ROWS = 200
RNG = np.random.default_rng(2)


def rows_with(values: Any, name: str = "x") -> Candidates:
    column = np.array(values, float)[:, None]
    ids = [f"d{i}" for i in range(len(column))]
    return Candidates.of(np.zeros(len(column)), docids=ids, features=column, feature_names=[name])


def curve_of(values: Any, name: str = "x") -> str:
    """The transform, or why there is none."""
    parts, notes = column_curves(rows_with(values, name))
    return parts[0].transform if parts else notes[0]


SOME = RNG.permutation(np.arange(ROWS) % 40 + 1.0)
TAIL = np.exp(RNG.normal(5, 2, ROWS))
DAYS = 730_000.0 + RNG.integers(0, 4000, ROWS)


@pytest.mark.parametrize(
    ("values", "name", "expected"),
    [
        (SOME, "stars", "saturate"),
        (TAIL, "price", "log"),
        (np.where(np.arange(ROWS) % 4 == 0, TAIL, 0), "clicks", "saturate"),
        (SOME - 20, "balance", "signed"),
        (DAYS, "released_day", "recency"),
        (np.where(np.arange(ROWS) % 3 == 0, DAYS, 0), "released_day", "recency"),
        (DAYS, "steps", "saturate"),
        (1900 + SOME, "year", "recency"),
        (1900 + SOME, "horsepower", "saturate"),
        (1.6e9 + 1000 * np.arange(ROWS), "updated_at", "recency"),
        (1.6e12 + 1e6 * np.arange(ROWS), "created", "recency"),
        (SOME, "delivery_time", "saturate"),
        (np.arange(ROWS) % 2, "in_stock", "saturate"),
        (1000 + RNG.permutation(ROWS), "number", "column number is left out: it looks like an id"),
        (SOME, "product_id", "column product_id is left out: it looks like an id"),
        (SOME, "sku", "column sku is left out: it looks like an id"),
        (SOME, "paid", "saturate"),
        (np.rint(1000 * TAIL) + np.arange(ROWS), "views", "log"),
        (np.full(ROWS, 3.0), "currency", "column currency is left out: it has one value"),
        (np.zeros(ROWS), "empty", "column empty is left out: it has one value"),
        ((np.arange(ROWS) == 7) * 5.0, "award", "column award is left out: 1 of 200 rows have a value"),
    ],
)
def test_the_values_of_a_column_and_its_name_tell_its_curve(values: Any, name: str, expected: str) -> None:
    assert curve_of(values, name) == expected


def test_a_flag_has_a_weight_and_no_curve_to_tune() -> None:
    for sign in (1.0, -1.0):
        [flag] = column_curves(rows_with(sign * 5.0 * (np.arange(ROWS) % 2), "flag")).parts
        rows = rows_with([0.0, sign * 5.0], "flag")
        ready = flag.prepared(rows, 0)
        assert ready.params.free_names == ()
        assert ready.score(rows).tolist() == [0.0, sign * 0.5]


def test_a_date_needs_a_name_and_values_that_say_so() -> None:
    assert is_date("pubDate", np.array([1999.0, 2003.0]))
    assert not is_date("pubDate", np.array([1999.0, 3.0]))
    assert not is_date("price", np.array([1999.0, 2003.0]))
    assert not is_date("date", np.zeros(3))


DOCS = [
    {"_id": f"d{i}", "title": f"red shoe {i % 7}", "price": 10.0 * 3 ** (i % 9), "made": f"201{i % 9}-0{1 + i % 8}-11"}
    for i in range(60)
]


def test_a_stack_by_name_takes_numbers_and_dates_and_ranks_as_bm25f_before_it_is_tuned() -> None:
    index = Index.build([*DOCS, {"_id": "none", "title": "red shoe"}])
    rows = index.candidates({"q": "red shoe 3"}, {"q": {"d3": 1}}, depth=100)
    model = make_model("stack", rows).prepared(rows, 0)
    assert isinstance(model, Stack)
    assert {part.name: part.transform for part in model.parts[1:] if isinstance(part, Feature)} == {
        "price": "log",
        "made_day": "recency",
    }
    np.testing.assert_array_equal(model.score(rows), BM25F().prepared(rows, 0).score(rows))
    recent = model.at(model.params.replace({"made_day.weight": 2.0}))
    gain = recent.score(rows) - model.score(rows)
    dated, days = rows.docids.tolist(), rows.features[:, rows.feature_names.index("made_day")]
    assert gain[dated.index("none")] == pytest.approx(0, abs=1e-20)
    assert (np.diff(gain[np.argsort(days)]) >= 0).all()
    assert gain.max() == pytest.approx(2.0)
    found = index.search({"q": "red shoe 3"}, recent, depth=5).docids.tolist()
    assert np.isfinite(recent.score(rows)).all()
    assert found[0] == dated[int(np.lexsort((dated, recent.score(rows)))[-1])]


def test_a_stack_without_usable_columns_is_refused_with_the_reasons() -> None:
    index = Index.build([{"_id": f"d{i}", "title": "red", "shop": 3, "product_id": i} for i in range(5)])
    rows = index.candidates({"q": "red"}, {"q": {"d3": 1}})
    assert len(stack_notes(rows)) == 2
    with pytest.raises(
        UsageError, match=r"shop is left out: it has one value.*product_id is left out: it looks like an id"
    ):
        make_model("stack", rows)


def test_the_built_in_collection_has_columns_for_a_stack() -> None:
    with collection() as folder:
        index = Index.build(folder)
        rows = index.candidates(folder, folder / "qrels" / "train.tsv")
    parts = {part.name: part.transform for part in column_curves(rows).parts}
    assert parts.keys() == {"url_depth", "url_length", "pagerank"}
    assert set(parts.values()) <= {"log", "saturate"}
