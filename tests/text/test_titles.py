"""Titles of documents, from files of every kind, wherever documents stand in them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from fliprank.errors import InputError
from fliprank.text.index import Index
from fliprank.text.titles import read_titles, titles_by_index

DOCS = [{"_id": f"d{i}", "body": f"text {i}", "title": f"Title {i}"} for i in range(40)]


def lines(docs: list[dict[str, object]]) -> bytes:
    return b"".join(json.dumps(doc).encode() + b"\n" for doc in docs)


@pytest.mark.parametrize("kind", ["plain", "gzipped", "blank lines", "bom", "no newline at the end"])
def test_titles_are_found_wherever_documents_stand(tmp_path: Path, kind: str) -> None:
    data = lines(DOCS)
    data = data.replace(b"\n", b"\n\n") if kind == "blank lines" else b"\xef\xbb\xbf" + data if kind == "bom" else data
    path = tmp_path / ("docs.jsonl.gz" if kind == "gzipped" else "docs.jsonl")
    path.write_bytes(gzip.compress(data) if kind == "gzipped" else data.rstrip() if kind.startswith("no") else data)
    index, wanted = Index.build(path), ["d39", "d0", "d17", "unknown"]
    expected = {"d39": "Title 39", "d0": "Title 0", "d17": "Title 17"}
    assert titles_by_index(path, index, wanted) == expected
    assert read_titles(path, wanted) == expected


def test_titles_of_a_table_with_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.csv"
    path.write_text('sku,id,Product_Name,note\n1,a,"Red\nshoes",x\n2,b,Hat,"=1+2\n\n"\n')
    assert titles_by_index(path, Index.build(path), ["b", "a"]) == {"a": "Red shoes", "b": "Hat"}


def test_what_serves_as_a_title() -> None:
    docs = [
        {"_id": "1", "url": "http://x", "text": "First words. " * 90, "name": "  "},
        {"_id": "2", "text": "long", "short_title": "Short"},
        {"_id": "3", "url": "http://x"},
        {"_id": "4", "text": "long", "Title": "Capital"},
    ]
    found = read_titles(docs, ["1", "2", "3", "4"])
    assert found["1"].startswith("First words. First")
    assert len(found["1"]) <= 200
    assert (found["2"], found["3"], found["4"]) == ("Short", "", "Capital")


def test_documents_that_are_gone_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_titles(tmp_path / "docs.jsonl", ["a"])
