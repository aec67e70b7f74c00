"""Parameters: names, bounds, and the map between what there is and what an optimizer moves."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fliprank.errors import UsageError
from fliprank.models import Parameters

NINE = Parameters.of(
    {
        f"{field}.{kind}": (0.5, 0, 1 if kind == "b" else inf)
        for field in ("title", "body", "anchor", "url")
        for kind in "wb"
    }
    | {"static.w": 1.0}
)


def test_values_are_read_by_name_and_never_written() -> None:
    assert NINE["title.w"] == 0.5
    assert NINE["static.w"] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        NINE.values[0] = 3
    given_values = np.zeros(9)
    moved = NINE.at(given_values)
    given_values[0] = 7
    assert moved["title.w"] == 0


def test_replace_leaves_the_original_alone() -> None:
    other = NINE.replace({"title.w": 3.0}, **{"body.b": 1})
    assert (other["title.w"], other["body.b"], other["url.w"]) == (3, 1, 0.5)
    assert NINE["title.w"] == 0.5


def test_an_unknown_name_lists_near_ones() -> None:
    with pytest.raises(UsageError, match=r"no parameter is called 'titel\.w'; near it: title\.w"):
        NINE["titel.w"]


def test_out_of_bounds_says_which_and_clip_brings_it_back() -> None:
    with pytest.raises(UsageError, match=r"out of bounds: title\.b = 1\.5 is not in \[0, 1\]"):
        NINE.replace({"title.b": 1.5})
    vector = NINE.values.copy()
    vector[:2] = [-4, 1.5]
    clipped = NINE.at(vector).clip()
    assert clipped.values[:2].tolist() == [0, 1]
    assert clipped.values[2:].tolist() == NINE.values[2:].tolist()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: NINE.at([1.0, 2.0]), r"expected 9 numbers, got an array of shape \(2,\)"),
        (lambda: NINE.at([nan, *range(8)]), r"'title\.w' is not a number"),
        (lambda: NINE.with_free([1.0]), "free values: expected 9 numbers"),
        (lambda: NINE.pull_free(np.zeros((9, 1))), "gradient: expected 9 numbers"),
        (lambda: Parameters(("a", "a"), [0, 1]), "two parameters are called 'a'"),
        (lambda: Parameters(("a",), [inf]), "'a' is not a number"),
        (lambda: Parameters(("a",), [0.5], [1], [0], [0]), "'a' has no value between its bounds"),
        (lambda: Parameters(("a",), [0.5], [0], [1], [2]), "'a' has its default outside its bounds"),
        (lambda: Parameters.of({"a": (2, 0, 1)}), "'a' has its default outside its bounds"),
        (lambda: NINE.tie({"static.w": ["title.w", "body.w"]}), "another parameter is called 'static.w'"),
        (lambda: Parameters.of({"a": (0, 0, 1), "b": (3, 2, 4)}).tie({"c": ["a", "b"]}), "bounds have none in common"),
    ],
)
def test_nonsense_is_refused(make: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make()  # type: ignore[operator]


def test_fixed_parameters_stay_and_released_ones_move() -> None:
    fixed = NINE.fix("static.w").fix(["url.w", "url.b"])
    assert fixed.free.sum() == len(fixed.free_names) == 6
    moved = fixed.with_free(np.arange(6) / 10)
    assert (moved["static.w"], moved["url.w"], moved["anchor.b"]) == (1, 0.5, 0.5)
    assert fixed.release("url.w").free_names == (*NINE.names[:7],)


def test_one_shared_value_drives_all_its_names() -> None:
    tied = NINE.fix("static.w").tie({"b": [name for name in NINE.names if name.endswith(".b")]})
    assert tied.free_names == ("title.w", "b", "body.w", "anchor.w", "url.w")
    moved = tied.replace({"b": 0.9})
    assert moved["url.b"] == moved["b"] == moved["title.b"] == 0.9
    assert tied.replace({"url.b": 0.2})["title.b"] == 0.2
    assert tied.fix("title.b").free_names == ("title.w", "body.w", "anchor.w", "url.w")
    assert tied.pull_free(np.arange(9)).tolist() == [0, 1 + 3 + 5 + 7, 2, 4, 6]


def test_bounds_of_a_shared_value_are_what_its_names_have_in_common() -> None:
    tied = Parameters.of({"a": (0.5, 0, 2), "b": (0.7, 0.1, 1), "c": 4.0}).tie({"ab": ["a", "b"]})
    assert (tied.free_lower.tolist(), tied.free_upper.tolist()) == ([0.1, -inf], [1, inf])


@given(st.lists(st.integers(-1, 3), min_size=1, max_size=8), st.integers(0, 1000))
def test_pull_free_is_the_transpose_of_with_free(drivers: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = tuple(f"p{i}" for i in range(len(drivers)))
    params = Parameters(names, rng.normal(size=len(names))).driven_by([None if d < 0 else f"s{d}" for d in drivers])
    size = len(params.free_names)
    start, step, gradient = rng.normal(size=size), rng.normal(size=size), rng.normal(size=len(names))
    moved = params.with_free(start + step).values - params.with_free(start).values
    assert gradient @ moved == pytest.approx(params.pull_free(gradient) @ step)
    assert params.with_free(start).free_values == pytest.approx(start)


def test_the_table_is_aligned_and_says_what_is_fixed_or_shared() -> None:
    shown = str(NINE.fix("static.w").tie({"b": ["title.b", "body.b"]})).splitlines()
    assert shown[0].split() == ["parameter", "value", "lower", "upper", "default"]
    assert shown[2].split() == ["title.b", "0.5", "0", "1", "0.5", "shared:", "b"]
    assert shown[9].endswith("fixed")
    assert len({line.index("0.5") for line in shown if "0.5" in line}) == 1
    assert str(Parameters(tuple(map(str, range(100))), np.zeros(100))).endswith("... and 40 more")
