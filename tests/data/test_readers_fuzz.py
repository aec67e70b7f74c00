"""Whatever the bytes, a reader returns data or raises an InputError: nothing else comes out."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fliprank.data.beir import read_documents
from fliprank.data.parquet import read_parquet
from fliprank.data.term_statistics_jsonl import read_statistics
from fliprank.data.trec import read_qrels, read_run
from fliprank.errors import InputError

RECORD = {
    "qid": "q",
    "docid": "d",
    "label": 2,
    "terms": ["red", "shoe"],
    "idf": [0.5, 1.25],
    "tf": {"title": [1, 0], "body": [3, 4]},
    "length": {"title": 5, "body": 60},
    "features": {"pagerank": 0.1},
}
STATISTICS = "".join(json.dumps(RECORD | {"docid": d, "qid": q}) + "\n" for q in "qp" for d in "ab").encode()
FILES: dict[Callable[[Path], Any], list[bytes]] = {
    read_qrels: [b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 -1\n", b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2.5\n"],
    read_run: [b"q1 Q0 d1 1 2.5e3 tag\nq1 Q0 d2 2 -1.25 tag\nq2 Q0 d1 1 .5\n"],
    read_documents: [b'{"_id": "a", "title": "x\\u00e9", "n": [1, {"m": 2}]}\n{"_id": 7, "text": null, "b": true}\n'],
    read_statistics: [STATISTICS],
}
# Bytes that mean something to one of the parsers.
PIECES = st.one_of(
    st.binary(max_size=3),
    st.sampled_from([bytes([byte]) for byte in b"-+.eE0123456789'"]),
    st.sampled_from([b"\n", b"\r\n", b" ", b"\t", b"\0", b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\ud800", b"NaN"]),
    st.sampled_from([b"1e999", b"-1", b"9" * 30, b"null", b"true", b"\xef\xbb\xbf", b"\xff", b"\xed\xa0\x80", b"inf"]),
)
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6), PIECES), min_size=1, max_size=4)
READERS = pytest.mark.parametrize("reader", FILES, ids=lambda reader: reader.__name__)
OPTIONS = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


OUTCOMES = ("data", "error")


def edited(data: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    """`data` with some stretches replaced."""
    for place, length, piece in edits:
        begin = int(place * len(data))
        data = data[:begin] + piece + data[begin + length :]
    return data


def outcome(reader: Callable[[Path], Any], path: Path, data: bytes) -> str:
    path.write_bytes(data)
    try:
        reader(path)
    except InputError as error:
        return "error" if error.path == str(path) else f"an error that does not name the file: {error}"
    return "data"


@READERS
@OPTIONS
@given(st.data())
def test_a_valid_file_with_some_bytes_changed(reader: Any, tmp_path: Path, data: Any) -> None:
    text = edited(data.draw(st.sampled_from(FILES[reader])), data.draw(EDITS))
    assert outcome(reader, tmp_path / "file", text) in OUTCOMES


@READERS
@settings(OPTIONS, max_examples=100)
@given(st.binary(max_size=200))
def test_random_bytes(reader: Any, tmp_path: Path, data: bytes) -> None:
    assert outcome(reader, tmp_path / "file", data) in OUTCOMES


@READERS
@settings(OPTIONS, max_examples=60)
@given(st.data())
def test_a_gzipped_file_with_some_bytes_changed(reader: Any, tmp_path: Path, data: Any) -> None:
    zipped = edited(gzip.compress(FILES[reader][0]), data.draw(EDITS))
    assert outcome(reader, tmp_path / "file.gz", zipped) in OUTCOMES


@READERS
def test_every_prefix_of_a_valid_file(reader: Any, tmp_path: Path) -> None:
    for data in FILES[reader]:
        assert outcome(reader, tmp_path / "file", data) == "data"
        for end in range(0, len(data), 1 + len(data) // 150):
            assert outcome(reader, tmp_path / "file", data[:end]) in OUTCOMES


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just(10**400)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=4,
)


@settings(OPTIONS, max_examples=400)
@given(st.sampled_from(list(RECORD)), VALUES, st.booleans())
def test_statistics_with_any_json_value_in_any_place(tmp_path: Path, key: str, value: Any, first: bool) -> None:
    lines = [json.dumps(RECORD | {"docid": "e"}), json.dumps(RECORD | {key: value})]
    data = "\n".join(lines[::-1] if first else lines).encode()
    assert outcome(read_statistics, tmp_path / "file", data) in OUTCOMES


@settings(OPTIONS, max_examples=300)
@given(st.lists(st.dictionaries(st.sampled_from(["_id", "text", "x"]), VALUES, max_size=3), min_size=1, max_size=4))
def test_documents_with_any_json_values(tmp_path: Path, records: list[Any]) -> None:
    data = "\n".join(map(json.dumps, records)).encode()
    assert outcome(read_documents, tmp_path / "file", data) in OUTCOMES


@pytest.mark.parametrize("depth", [100, 100_000])
def test_deeply_nested_json(tmp_path: Path, depth: int) -> None:
    nested = b'{"_id": "a", "qid": "q", "docid": ' + b"[" * depth + b"]" * depth + b"}\n"
    assert outcome(read_statistics, tmp_path / "file", nested) == "error"
    assert outcome(read_documents, tmp_path / "file", nested) in OUTCOMES


# Bytes changed at random inside a Parquet footer make polars ask for more memory than there is, which ends the process:
# so truncated files, random bytes, and whole files with any columns.
def test_truncated_parquet(tmp_path: Path) -> None:
    file = BytesIO()
    pl.DataFrame({"qid": ["a", "b"], "docid": ["x", "y"], "label": [1.0, None]}).write_parquet(file)
    data = file.getvalue()
    assert outcome(read_parquet, tmp_path / "file", data) == "data"
    for end in range(0, len(data) - 1, 7):
        assert outcome(read_parquet, tmp_path / "file", data[:end]) == "error"


@settings(OPTIONS, max_examples=100)
@given(st.binary(max_size=100))
def test_random_bytes_as_parquet(tmp_path: Path, data: bytes) -> None:
    assert outcome(read_parquet, tmp_path / "file", data) == "error"


COLUMN = st.sampled_from(
    [
        ["a", "b"],
        ["1", "2"],
        [1, 2],
        [1, None],
        [None, None],
        [1.5, float("nan")],
        [float("inf"), 1e39],
        [True, False],
        [[1], [2, 3]],
        [{"x": 1}, {"x": 2}],
        [b"\xff", b"a"],
        ["x", "x"],
        [],
    ]
)


@settings(OPTIONS, max_examples=200)
@given(COLUMN, COLUMN, COLUMN, COLUMN)
def test_parquet_with_any_columns(tmp_path: Path, qid: Any, docid: Any, label: Any, extra: Any) -> None:
    columns = {"qid": qid, "docid": docid, "label": label, "extra": extra}
    rows = min(map(len, columns.values()))
    file = BytesIO()
    pl.DataFrame({name: values[:rows] for name, values in columns.items()}).write_parquet(file)
    assert outcome(read_parquet, tmp_path / "file", file.getvalue()) in OUTCOMES
