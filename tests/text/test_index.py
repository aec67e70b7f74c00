"""The index: its arrays say what plain counting says, on disk as in memory; what is damaged is not opened."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_text import PlainIndex

from fliprank.data.builtin import collection
from fliprank.data.store import read_arrays, write_arrays
from fliprank.errors import InputError, UsageError
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index

WORDS = st.lists(st.sampled_from(["red", "Shoe", "shoes", "the", "blue", "sky", "Éa", "日本"]), max_size=9).map(
    " ".join
)
DOCUMENTS = st.lists(st.fixed_dictionaries({"title": WORDS}, optional={"body": WORDS}), min_size=1, max_size=12)


def as_written(index: Index) -> list[object]:
    own = ("rank", "starts", "docs", "tf", "field_df", "cf", "length", "tokens", "token_offsets")
    arrays = [getattr(index, name).tolist() for name in own]
    return [*arrays, index.docids.tolist(), index.terms.tolist(), index.fields, index.analyzer]


@settings(max_examples=60, deadline=None)
@given(DOCUMENTS, st.booleans())
def test_the_arrays_are_what_plain_counting_gives(texts: list[dict[str, str]], stem: bool) -> None:
    documents = [{"_id": f"d{(7 * i) % 13}", **text} for i, text in enumerate(texts)]
    analyzer = Analyzer(stemmer="english" if stem else None)
    documents.append({"_id": "last", "title": "sky", "body": "shoe"})
    index, plain = (
        Index.build(documents, fields=["title", "body"], analyzer=analyzer),
        PlainIndex(documents, ["title", "body"], analyzer),
    )
    vocabulary = sorted({t for row in plain.terms for terms in row for t in terms}, key=str.encode)
    assert index.terms.tolist() == vocabulary
    assert index.docids.tolist() == plain.ids
    assert [plain.ids[d] for d in np.argsort(index.rank)] == sorted(plain.ids)
    assert index.length.tolist() == [[len(terms) for terms in row] for row in plain.terms]
    assert index.distinct.tolist() == [[len(set(terms)) for terms in row] for row in plain.terms]
    for d, row in enumerate(plain.terms):
        for f, terms in enumerate(row):
            a, b = index.token_offsets[f, d : d + 2]
            assert [vocabulary[t] for t in index.tokens[a:b]] == terms
    for t, term in enumerate(vocabulary):
        postings = slice(*index.starts[t : t + 2])
        have = [d for d, row in enumerate(plain.counts) if any(count[term] for count in row)]
        assert index.docs[postings].tolist() == have
        assert index.tf[postings].tolist() == [[count[term] for count in plain.counts[d]] for d in have]
        assert index.cf[t].tolist() == [sum(row[f][term] for row in plain.counts) for f in range(2)]
        assert index.field_df[t].tolist() == [sum(row[f][term] > 0 for row in plain.counts) for f in range(2)]
    assert index.df.tolist() == [plain.df(term) for term in vocabulary]
    assert index.field_tokens.tolist() == [sum(len(row[f]) for row in plain.terms) for f in range(2)]


def test_an_index_reads_back_as_it_was_built(tmp_path: Path) -> None:
    built = Index.build(collection(), analyzer=Analyzer(stopwords=["the"], stemmer="porter"))
    built.save(tmp_path / "my.index")
    opened = Index.open(tmp_path / "my.index")
    assert as_written(opened) == as_written(built)
    assert {n: c.tolist() for n, c in opened.columns.items()} == {n: c.tolist() for n, c in built.columns.items()}
    assert not list(tmp_path.glob(".*"))


def test_the_number_of_threads_changes_nothing() -> None:
    before = numba.get_num_threads()
    try:
        both = []
        for threads in {1, min(2, numba.config.NUMBA_NUM_THREADS)}:
            numba.set_num_threads(threads)
            both.append(as_written(Index.build(collection())))
        assert both[0] == both[-1]
    finally:
        numba.set_num_threads(before)


def test_without_positions_only_the_stream_is_absent(tmp_path: Path) -> None:
    documents = [{"_id": 1, "text": "red red shoe"}, {"_id": 2, "text": "sky"}]
    small = Index.build(documents, tmp_path / "small", positions=False)
    large = Index.build(documents)
    assert not small.positions
    assert large.positions
    assert small.search({"q": "red sky"}).to_dict() == large.search({"q": "red sky"}).to_dict()


def test_a_term_that_occurs_very_often_counts_as_often_as_can_be_kept() -> None:
    index = Index.build([{"_id": "a", "text": "spam " * 70_000}, {"_id": "b", "text": "spam"}])
    assert index.tf.tolist() == [[65535], [1]]
    assert index.cf.tolist() == [[70_001]]
    assert index.length.tolist() == [[70_000], [1]]


def test_documents_with_no_words_have_no_postings() -> None:
    index = Index.build([{"_id": "a", "text": "... the"}, {"_id": "b", "text": ""}])
    assert (len(index), len(index.terms), len(index.docs)) == (2, 0, 0)
    assert len(index.search({"q": "anything"})) == 0


def test_fields_come_in_the_order_asked_for_and_url_when_asked() -> None:
    documents = [{"_id": 1, "url": "http://a.org/red-shoe", "body": "x", "title": "y"}]
    assert Index.build(documents).fields == ("body", "title")
    index = Index.build(documents, fields=["title", "url"])
    assert index.fields == ("title", "url")
    assert index.terms.tolist() == ["http", "org", "red", "shoe", "y"]
    with pytest.raises(InputError, match=r"no document has the field 'abstract' \(there are: body, title, url\)"):
        Index.build(documents, fields=["abstract"])
    for bad in ([], "title", ["title", "title"]):
        with pytest.raises(UsageError, match="different names"):
            Index.build(documents, fields=bad)


def test_numbers_are_columns_and_text_when_asked_for() -> None:
    documents = [{"_id": 1, "text": "x", "price": 5}, {"_id": 2, "text": "y", "price": None}]
    index = Index.build(documents)
    assert index.columns["price"].tolist()[0] == 5
    assert np.isnan(index.columns["price"][1])
    assert index.column_matrix.tolist() == [[5], [0]]
    text = Index.build(documents, fields=["price", "text"])
    assert text.fields == ("price", "text")
    assert text.terms.tolist() == ["5", "x", "y"]
    assert "price" not in text.columns


@pytest.mark.parametrize("cut", [0, 5, 30, 200, -1])
def test_a_cut_off_index_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "my.index"
    Index.build([{"_id": 1, "text": "red shoe"}], path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match=r"my\.index"):
        Index.open(path)


def test_other_stores_and_versions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "my.index"
    Index.build([{"_id": 1, "text": "red shoe"}], path)
    header, arrays = read_arrays(path)
    for change, message in (
        ({"kind": "x"}, "not an index"),
        ({"version": 99}, "build it again"),
        ({"fields": 3}, "damaged"),
    ):
        write_arrays(tmp_path / "other", {**header, **change}, arrays)
        with pytest.raises(InputError, match=message):
            Index.open(tmp_path / "other")
    for name, array in (
        ("starts", arrays["starts"][::-1].copy()),
        ("docs", arrays["docs"][:1]),
        ("term_length", -arrays["term_length"]),
    ):
        write_arrays(tmp_path / "other", header, {**arrays, name: array})
        with pytest.raises(InputError, match="damaged"):
            Index.open(tmp_path / "other")


def test_an_interrupted_build_leaves_nothing_and_the_old_index_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "my.index"
    Index.build([{"_id": "old", "text": "red shoe"}], path)
    code = f"""
import sys
from fliprank.text.index import Index
def documents():
    i = 0
    while True:
        yield {{"_id": i, "text": "red shoe"}}
        i += 1
def progress(what, n):
    print(what, n, flush=True)
Index.build(documents(), {str(path)!r}, progress=progress)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("reading")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    assert Index.open(path).docids.tolist() == ["old"]
    assert os.listdir(tmp_path) == ["my.index"]


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index.build([{"_id": "a", "text": "red"}])
    real, written = os.fdopen, 0

    class Full:
        def __init__(self, file: object) -> None:
            self.file = file

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *error: object) -> None:
            self.file.close()  # type: ignore[attr-defined]

        def write(self, data: bytes) -> int:
            nonlocal written
            written += 1
            if written > 3:
                raise OSError(28, "No space left on device")
            return self.file.write(data)  # type: ignore[attr-defined, no-any-return]

    monkeypatch.setattr(os, "fdopen", lambda *given: Full(real(*given)))
    with pytest.raises(OSError, match="No space"):
        index.save(tmp_path / "my.index")
    assert not list(tmp_path.iterdir())


def test_opening_does_not_read_the_postings(tmp_path: Path) -> None:
    """An index a hundred times as large takes nowhere near a hundred times as long to open."""
    times = []
    for size in (100, 10_000):
        documents = [{"_id": i, "text": " ".join(f"w{(i * j) % 97}" for j in range(50))} for i in range(size)]
        Index.build(documents, tmp_path / f"{size}.index")
        tries = []
        for _ in range(20):
            start = time.perf_counter()
            Index.open(tmp_path / f"{size}.index")
            tries.append(time.perf_counter() - start)
        times.append(min(tries))
    assert times[1] < 20 * times[0]


def test_the_header_is_json_that_a_person_can_read(tmp_path: Path) -> None:
    Index.build([{"_id": 1, "title": "red shoe"}], tmp_path / "my.index")
    header, _ = read_arrays(tmp_path / "my.index")
    assert json.loads(json.dumps(header))["fields"] == ["title"]


@pytest.mark.parametrize("name", ["docs", "rank", "tokens"])
def test_an_index_that_names_what_is_not_there_is_an_error_before_kernels_go_by_it(name: str, tmp_path: Path) -> None:
    good = Index.build([{"_id": "a", "text": "red shoe"}, {"_id": "b", "text": "blue shoe"}])
    for wrong in (-1, 1 << 30):
        array = getattr(good, name).copy()
        array[-1] = wrong
        replace(good, **{name: array}).save(tmp_path / "forged.index")
        with pytest.raises(InputError, match="damaged index"):
            Index.open(tmp_path / "forged.index").search({"q": "red"})
