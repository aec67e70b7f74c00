"""Tables on terminals of any width: no line is longer than the screen, and no name or number loses a letter."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from fliprank.console.fitting import fitted, plain_lines, shortened
from fliprank.console.tables import new_table, plain
from fliprank.measures import parse_measure

WORDS = st.text("abcdefgh:[]/\\0123456789", min_size=1, max_size=14)
NUMBERS = st.floats(-1e6, 1e6).map(lambda value: f"{value:+.4f}")


def drawn(table: object, width: int) -> tuple[str, list[str]]:
    """What a terminal of so many columns shows, and the columns that it leaves out."""
    left_out: dict[str, None] = {}
    screen = Console(width=width, file=(text := io.StringIO()), emoji=False, highlight=False)
    for part in fitted(table, width, left_out):  # type: ignore[arg-type]
        screen.print(part)
    return text.getvalue(), list(left_out)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(WORDS, st.lists(NUMBERS, min_size=6, max_size=6)), min_size=1, max_size=5),
    st.integers(30, 220),
    st.sets(st.integers(1, 6), max_size=3),
)
def test_no_name_or_number_is_ever_cropped(rows: list[tuple[str, list[str]]], width: int, spare: set[int]) -> None:
    columns = ["run", *(f"measure{i}" for i in range(1, 7))]
    table = new_table("A [title] :smile:", columns, optional=[columns[i] for i in sorted(spare)])
    for name, numbers in rows:
        table.add_row(plain(name), *numbers)
    text, left_out = drawn(table, width)
    assert all(len(line) <= width for line in text.splitlines())
    assert set(left_out) <= {columns[i] for i in spare}
    assert "A [title] :smile:" in text
    shown = text.replace("┃", " ").replace("│", " ").split()
    for name, numbers in rows:
        assert name in shown
        for column, number in zip(columns[1:], numbers, strict=True):
            assert column in left_out or number in shown
    assert all(column in shown for column in columns if column not in left_out)


@settings(deadline=None, max_examples=50)
@given(st.integers(40, 119), st.lists(WORDS, min_size=1, max_size=30))
def test_sentences_are_wrapped_between_words(width: int, words: list[str]) -> None:
    table = new_table("", ["part", "what", "minutes"])
    table.add_row("figure1", plain(" ".join(words)), "12")
    text, _ = drawn(table, width)
    assert all(len(line) <= width for line in text.splitlines())
    heads, *lines = text.splitlines()
    start, stop = heads.index("what"), heads.index("minutes")
    assert " ".join(line[start:stop].strip() for line in lines).split() == words


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(WORDS, NUMBERS), min_size=1, max_size=5))
def test_a_pipe_gets_every_cell_in_one_line(rows: list[tuple[str, str]]) -> None:
    table = new_table("Title", ["run", "nDCG(dcg='exp-log2')@10"], optional=["nDCG(dcg='exp-log2')@10"])
    for name, number in rows:
        table.add_row(plain(name), f"[bold]{number}[/]")
    blank, title, head, *lines = plain_lines(table)
    assert (blank, title, head.split()) == ("", "Title", ["run", "nDCG(dcg='exp-log2')@10"])
    assert [tuple(line.split()) for line in lines] == rows


@pytest.mark.parametrize(
    "name", ["nDCG(dcg='exp-log2')@10", "nDCG(dcg='exp-log2')", "DCG(dcg='exp-log2')@5", "AP(rel=2)"]
)
def test_a_short_name_is_understood_and_stands_for_the_same_measure(name: str) -> None:
    assert str(parse_measure(shortened(name))) == name
    assert len(shortened(name)) <= 14


def test_a_wide_terminal_has_lines_between_columns_and_whole_names() -> None:
    table = new_table("", ["measure", "default", "tuned"])
    table.add_row("nDCG(dcg='exp-log2')@10", "0.5", "0.6")
    assert "│ nDCG(dcg='exp-log2')@10 │" in drawn(table, 200)[0]
    assert "│" not in drawn(table, 80)[0]
    assert "nDCG@10 (exp)" in drawn(table, 80)[0]
