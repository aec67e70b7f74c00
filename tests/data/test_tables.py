"""Tables come back as the writer of Python's own library wrote them, each record with its line."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.tables import header_of, open_table
from fliprank.errors import FliprankError, InputError

cells = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=6)


@settings(deadline=None)
@given(st.lists(st.tuples(cells, cells, cells), max_size=8), st.sampled_from(",;\t"), st.booleans())
def test_what_was_written_is_read_with_the_line_of_each_record(
    rows: list[tuple[str, str, str]], separator: str, mark: bool
) -> None:
    text, expected = io.StringIO(newline=""), []
    writer = csv.writer(text, delimiter=separator, quoting=csv.QUOTE_ALL)
    writer.writerow(["id", "a", "b"])
    for row in rows:
        line = 1 + text.getvalue().count("\n")
        writer.writerow(row)
        if any(cell.strip() for cell in row):
            expected.append((line, list(row)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        path.write_bytes(("\ufeff" * mark + text.getvalue()).encode())
        table = open_table(path)
        assert table.header == ("id", "a", "b")
        assert list(table.records()) == expected


@settings(deadline=None)
@given(st.text(st.sampled_from('ab",;\t\r\n\x00\ufeff '), max_size=40).map(str.encode) | st.binary(max_size=40))
def test_any_bytes_are_a_table_or_an_input_error(raw: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        path.write_bytes(raw)
        said = str(path)
        try:
            table = open_table(path)
            assert all(len(record) == len(table.header) for _, record in table.records())
        except FliprankError as error:
            said = str(error)
        assert str(path) in said


def has_id(names: Sequence[str]) -> bool:
    return "id" in names


def test_the_separator_is_the_one_that_gives_a_known_name() -> None:
    assert header_of(b"a,b,c;id", has_id) == (("a,b,c", "id"), ";")
    assert header_of(b"id\ttitle, long\r\n", has_id) == (("id", "title, long"), "\t")
    assert header_of(b"title,text", has_id) is None
    assert header_of(b"id", has_id) is None
    assert header_of(b"\xff,id", has_id) is None


def test_bytes_that_are_not_utf8_are_named_by_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"id,text\nd1,fine\nd2,caf\xe9\n")
    with pytest.raises(InputError, match=r"t\.csv, line 3: byte 0xe9 is not UTF-8"):
        list(open_table(tmp_path / "t.csv").records())
