"""Packed ids behave as the strings they are, and the order of documents is the one that trec_eval has."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.ids import Ids, factorize, find_duplicates, match
from fliprank.data.numbers import parse_float, parse_integer
from fliprank.data.order import order_rows

words = st.lists(st.text(alphabet="abé0\U0001f600", max_size=4), max_size=40)


@settings(deadline=None)
@given(words)
def test_ids_are_the_strings_they_were_made_of(values: list[str]) -> None:
    ids = Ids.of(values)
    assert ids.tolist() == values
    assert [ids[i] for i in range(len(ids))] == values
    assert ids.take(np.arange(len(ids))[::-1]).compact().tolist() == values[::-1]
    assert ids == Ids.concat([ids, Ids.of([])])


def test_numbers_are_ids_too() -> None:
    assert Ids.of(np.array([7.0, 8.0])).tolist() == ["7", "8"]
    assert Ids.of([1, "x", b"y", 2.5]).tolist() == ["1", "x", "y", "2.5"]


@settings(deadline=None)
@given(words)
def test_factorize_numbers_ids_in_order_of_appearance(values: list[str]) -> None:
    numbers, first = factorize(Ids.of(values))
    distinct = list(dict.fromkeys(values))
    assert numbers.tolist() == [distinct.index(value) for value in values]
    assert first.tolist() == [values.index(value) for value in distinct]


@settings(deadline=None)
@given(st.lists(words, max_size=5))
def test_duplicates_are_found_within_a_query_only(groups: list[list[str]]) -> None:
    offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups], dtype=np.int64)])
    found = find_duplicates(Ids.of([word for group in groups for word in group]), offsets)
    for group, low, row in zip(groups, offsets, found, strict=False):
        again = [i for i, word in enumerate(group) if word in group[:i]]
        assert row == (low + again[0] if again else -1)


@settings(deadline=None)
@given(words, words)
def test_match_finds_the_equal_id_of_the_partner_query(left: list[str], right: list[str]) -> None:
    distinct = list(dict.fromkeys(right))
    offsets, others = np.array([0, len(left), len(left)]), np.array([0, 0, len(distinct)])
    found = match(Ids.of(left), offsets, Ids.of(distinct), others, np.array([1, -1]))
    assert found.tolist() == [distinct.index(word) if word in distinct else -1 for word in left]


@settings(deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=4), st.booleans(), st.integers(1, 50), st.integers(0, 99))
def test_order_is_score_then_document_id_descending(sizes: list[int], named: bool, levels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scores = rng.integers(0, levels, offsets[-1]).astype(float)
    names = [f"d{i}" for i in rng.permutation(offsets[-1])]
    order = order_rows(scores, offsets, Ids.of(names) if named else None)
    for low, high in pairwise(offsets):
        rows = sorted(range(low, high), key=lambda i: names[i].encode() if named else -i, reverse=True)
        assert order[low:high].tolist() == sorted(rows, key=lambda i: -scores[i])


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**30), 10**30))
def test_numbers_are_read_as_python_reads_them(value: float) -> None:
    for text in {repr(value), f"{value:.6f}" if abs(value) < 1e20 else repr(value), f"{float(value):.17e}"}:
        buffer = np.frombuffer(text.encode() + b"\n", np.uint8)
        assert parse_float(buffer, 0, len(text)) == (float(text), True)


@given(st.text(alphabet="0123456789+-.eE naif", max_size=12))
def test_what_is_no_number_is_known(text: str) -> None:
    buffer = np.frombuffer(text.encode() + b"\n", np.uint8)
    number = re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,6})?", text) is not None
    assert parse_float(buffer, 0, len(text))[1] == number
    assert parse_integer(buffer, 0, len(text))[1] == (text.isdigit() and len(text) <= 18)
