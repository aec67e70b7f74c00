"""Markup is read as the patterns that it replaces did, but in linear time."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.markup import between, elements, without_tags
from fliprank.errors import InputError
from fliprank.text.build.documents import read_documents
from fliprank.text.search.queries import read_queries

_DOCUMENT = re.compile(r"<DOC>(.*?)</DOC>", re.DOTALL | re.IGNORECASE)
_ELEMENT = re.compile(r"<(\w+)(?:\s[^>]*)?>(.*?)</\1\s*>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"</?\w[^>]*>|<!--.*?-->", re.DOTALL)

PIECES = [
    "<a>",
    "</a>",
    "<A >",
    "</A\n>",
    "<b x='1'>",
    "</b>",
    "<b",
    "<!--",
    "-->",
    ">",
    "<",
    "x",
    " ",
    "<DOC>",
    "</doc>",
]
texts = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@settings(max_examples=500, deadline=None)
@given(texts)
def test_markup_is_cut_as_the_patterns_say(text: str) -> None:
    expected = [(m.start(), m[1], m.end()) for m in _DOCUMENT.finditer(text)]
    assert list(between(text, "DOC")) == expected
    assert list(elements(text)) == [(m.start(), m[1].lower(), m[2], m.end()) for m in _ELEMENT.finditer(text)]
    assert without_tags(text) == _TAG.sub(" ", text)


def documents(path: Path, text: str) -> None:
    path.write_text(f"<DOC><DOCNO>1</DOCNO>{text}</DOC>")
    list(read_documents(path))


def unfinished(path: Path, text: str) -> None:
    path.write_text("<DOC>" + text)
    with pytest.raises(InputError):
        list(read_documents(path))


def topics(path: Path, text: str) -> None:
    path.write_text("<top>" + text)
    with pytest.raises(InputError):
        read_queries(path)


def numbers(path: Path, text: str) -> None:
    path.write_text(f"<top><num>{text}<title>x</top>")
    with pytest.raises(InputError):
        read_queries(path)


HOSTILE = [(documents, "<a>"), (documents, "<!--"), (documents, "<x "), (unfinished, "<DOC>"), (unfinished, "<!--")]
HOSTILE += [(unfinished, "<x "), (topics, "<top>"), (numbers, " ")]


@pytest.mark.parametrize(("read", "piece"), HOSTILE, ids=lambda each: getattr(each, "__name__", None) or repr(each))
def test_sixteen_times_the_text_takes_nothing_like_256_times_as_long(
    tmp_path: Path, read: Callable[[Path, str], None], piece: str
) -> None:
    def took(times: int) -> float:
        start = time.process_time()
        read(tmp_path / "file", piece * times)
        return time.process_time() - start

    took(10)
    small = min(took(4_000) for _ in range(3))
    assert min(took(64_000) for _ in range(2)) < 80 * small + 0.1
