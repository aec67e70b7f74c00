"""Links: PageRank is the eigenvector, link text is a field of the target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.builtin import collection
from fliprank.errors import InputError
from fliprank.text.build.links import pagerank, read_links, url_columns
from fliprank.text.index import Index

PAGES = [
    {"_id": "a", "url": "x.org/a", "t": "one"},
    {"_id": "b", "url": "x.org/b", "t": "two"},
    {"_id": "c", "t": "three"},
]


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 7),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=25),
    st.sampled_from([0.5, 0.85, 0.99]),
)
def test_pagerank_is_the_eigenvector_of_the_surfers_matrix(
    n: int, links: list[tuple[int, int]], damping: float
) -> None:
    edges = np.array([(a % n, b % n) for a, b in links], np.int64).reshape(-1, 2)
    step = np.zeros((n, n))
    for a, b in {(a, b) for a, b in edges.tolist() if a != b}:
        step[b, a] = 1
    out = step.sum(0)
    step = np.where(out > 0, step / np.maximum(out, 1), 1 / n)
    values, vectors = np.linalg.eig(damping * step + (1 - damping) / n)
    top = np.real(vectors[:, np.argmax(np.real(values))])
    found = pagerank(edges[:, 0], edges[:, 1], n, damping)
    np.testing.assert_allclose(found, top / top.sum(), atol=1e-8)
    assert found.sum() == pytest.approx(1)


def test_links_of_the_documents_give_a_field_and_a_column() -> None:
    index = Index.build(collection())
    frame = pl.read_ndjson(collection() / "corpus.jsonl")
    assert "anchor" in index.fields
    texts = (
        frame.select(pl.col("links").explode())
        .unnest("links")
        .filter(pl.col("target") == "security-passwords")["text"]
        .to_list()
    )
    f, d = index.fields.index("anchor"), index.docids.tolist().index("security-passwords")
    a, b = index.token_offsets[f, d : d + 2]
    assert [index.terms[t] for t in index.tokens[a:b]] == [t for text in texts for t in index.analyzer.terms(text)]
    assert index.columns["pagerank"].mean() == pytest.approx(1)
    assert index.columns["url_depth"][:2].tolist() == [1, 2]


@pytest.mark.parametrize(
    "content",
    [
        '{"source": "c", "target": "a", "text": "first"}\n{"source": "c", "target": "x.org/b", "text": "second"}\n'
        '{"target": "zz", "text": "lost"}\n',
        "c\ta\tfirst\nc\tx.org/b\tsecond\n\tzz\tlost\n",
        "text\tsource\ttarget\nfirst\tc\ta\nsecond\tc\tx.org/b\nlost\t\tzz\n",
    ],
)
def test_a_file_of_anchors_gives_the_same(tmp_path: Path, content: str) -> None:
    (tmp_path / "anchors").write_text(content)
    index = Index.build(PAGES, anchors=tmp_path / "anchors")
    assert index.fields == ("t", "anchor")
    assert index.length.tolist() == [[1, 1], [1, 1], [1, 0]]
    wanted = pagerank(np.array([2, 2]), np.array([0, 1]), 3) * 3
    assert index.columns["pagerank"] == pytest.approx(wanted)
    assert index.notes == ("1 of 3 links lead to documents that are not in the index",)
    assert Index.build(PAGES, anchors=tmp_path / "anchors", fields=["anchor"]).fields == ("anchor",)
    assert Index.build(PAGES, anchors=tmp_path / "anchors", fields=["t"]).fields == ("t",)


def test_a_list_of_links_gives_pagerank_alone(tmp_path: Path) -> None:
    (tmp_path / "links.tsv").write_text("c\ta\nc\tx.org/b\n")
    index = Index.build(PAGES, links=tmp_path / "links.tsv")
    assert index.fields == ("t",)
    assert index.columns["pagerank"] == pytest.approx(pagerank(np.array([2, 2]), np.array([0, 1]), 3) * 3)


def test_target_and_text_are_enough(tmp_path: Path) -> None:
    (tmp_path / "anchors.tsv").write_text('a\t"quoted words\nb\tplain\n')
    index = Index.build(PAGES, anchors=tmp_path / "anchors.tsv")
    assert index.length[:, 1].tolist() == [2, 1, 0]
    assert "pagerank" not in index.columns


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tx\nb\n", "line 2: 1 columns"),
        ("a\tx\nb\ty\tz\n", "line 2: 3 columns"),
        ("a\n", "line 1: 1 columns"),
        ('{"text": "x"}\n', "line 1: a link without a target"),
        ("", "empty"),
        ("zz\tx\n", "no link leads to a document"),
    ],
)
def test_broken_links_are_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "anchors").write_text(content)
    with pytest.raises(InputError, match=message):
        Index.build(PAGES, anchors=tmp_path / "anchors")


def test_columns_of_the_address() -> None:
    urls = pl.Series(["http://a.org", "a.org/", "https://a.org/x/y?z=1/2#q", "/help/a/b", "b/c", ""])
    assert url_columns(urls)["url_depth"].to_list() == [0, 0, 2, 3, 2, 0]
    assert url_columns(pl.Series(["é/a"]))["url_length"].to_list() == [3]


def test_reading_links_keeps_only_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "links").write_text('{"target": 7, "text": "x"}\n')
    assert read_links(tmp_path / "links").to_dicts() == [{"target": "7", "text": "x"}]


def test_the_text_of_a_link_may_be_a_list_as_that_of_a_field(tmp_path: Path) -> None:
    links = [{"target": "d2", "text": ["red shoe", "boot"]}, {"target": "d1", "text": []}]
    records = [{"_id": "d1", "title": "x", "links": links}, {"_id": "d2", "title": "y"}]
    inside = Index.build(records)
    (tmp_path / "anchors").write_text(json.dumps({"target": "d2", "text": ["red shoe", "boot"]}))
    beside = Index.build([{"_id": "d1", "title": "x"}, {"_id": "d2", "title": "y"}], anchors=tmp_path / "anchors")
    for index in (inside, beside):
        assert index.search({"q": "boot"}).docids.tolist() == ["d2"]


@pytest.mark.parametrize("wrong", [{"target": ["d2"], "text": "a"}, {"target": "d2", "text": [{"a": "b"}]}])
def test_links_that_are_no_text_are_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="of a link is a list, not text"):
        Index.build([{"_id": "d1", "title": "x", "links": [wrong]}])
    (tmp_path / "anchors").write_text(json.dumps(wrong))
    with pytest.raises(InputError, match="link"):
        read_links(tmp_path / "anchors")
