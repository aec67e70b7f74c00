"""Term statistics as JSON lines: round trips, and the line of every fault."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.candidates import Candidates, concat
from fliprank.data.csr import bounds
from fliprank.data.ids import Ids
from fliprank.data.term_statistics import TermStatistics
from fliprank.data.term_statistics_jsonl import read_statistics, write_statistics
from fliprank.errors import InputError, UsageError

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "text" / "stanford-web"


def record(qid: Any = "q", docid: Any = "d", **changes: Any) -> dict[str, Any]:
    """A good line, with changes; a change to `...` leaves the key out."""
    line = {
        "qid": qid,
        "query": "red shoe",
        "docid": docid,
        "label": 2,
        "terms": ["red", "shoe"],
        "idf": [0.5, 1.25],
        "tf": {"title": [1, 0], "body": [3, 4]},
        "length": {"title": 5, "body": 60},
        "features": {"pagerank": 0.1, "age": 3},
    }
    return {key: value for key, value in (line | changes).items() if value is not ...}


WHOLE = {
    "collection": {"title": [5, 0], "body": [90, 70]},
    "tokens": {"title": 4000, "body": 99000},
    "documents": 800,
}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def _write(*records: Any) -> Path:
        path = tmp_path / "rows.jsonl"
        path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
        return path

    return _write


def test_a_line_becomes_a_row(write: Any) -> None:
    rows = read_statistics(write(record(), record(docid="e", label=None), record(docid=7, label=...)))
    assert rows.qids.tolist() == ["q"]
    assert rows.docids is not None
    assert rows.docids.tolist() == ["d", "e", "7"]
    np.testing.assert_array_equal(rows.labels, [2, math.nan, math.nan])
    assert rows.feature_names == ("pagerank", "age")
    np.testing.assert_array_equal(rows.features, np.float32([[0.1, 3]] * 3))
    assert rows.terms is not None
    assert rows.terms.fields == ("title", "body")
    assert rows.terms.terms.tolist() == ["red", "shoe"]
    assert rows.terms.idf.tolist() == [0.5, 1.25]
    assert rows.terms.of_row(2).tolist() == [[1, 3], [0, 4]]
    assert rows.terms.length.tolist() == [[5, 60]] * 3


def test_lines_of_interleaved_queries_are_brought_together(write: Any) -> None:
    other = {"terms": ["x"], "idf": [9], "tf": {"body": [8], "title": [7]}}
    rows = read_statistics(
        write(record(), record("p", "d", **other), "", record(docid="e", tf={"title": [5, 6], "body": [7, 8]}))
    )
    assert rows.docids is not None
    assert rows.terms is not None
    assert rows.qids.tolist() == ["q", "p"]
    assert rows.docids.tolist() == ["d", "e", "d"]
    assert [rows.terms.of_row(r).tolist() for r in range(3)] == [[[1, 3], [0, 4]], [[5, 7], [6, 8]], [[7, 8]]]
    assert rows.terms.terms.tolist() == ["red", "shoe", "x"]
    assert rows.terms.offsets.tolist() == [0, 2, 3]


def test_lines_may_tell_of_the_collection_and_of_repeated_terms(write: Any) -> None:
    rows = read_statistics(
        write(record(**WHOLE, count=[2, 1]), record("p", **WHOLE), record(docid="e", **WHOLE, count=[2, 1]))
    )
    assert rows.terms is not None
    assert rows.terms.count.tolist() == [2, 1, 1, 1]
    assert rows.terms.collection is not None
    assert rows.terms.collection.tolist() == [[5, 90], [0, 70]] * 2
    assert rows.terms.tokens is not None
    assert rows.terms.tokens.tolist() == [4000, 99000]
    assert rows.terms.documents == 800
    second = rows.select([1]).terms
    assert second is not None
    assert second.count.tolist() == [1, 1]
    assert_same(concat(rows.select([0]), rows.select([1])), rows)


def test_what_no_line_tells_is_not_known(write: Any) -> None:
    terms = read_statistics(write(record())).terms
    assert terms is not None
    assert (terms.count.tolist(), terms.collection, terms.tokens, terms.documents) == ([1, 1], None, None, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"collection": [1]}, "collection must be an object"),
        ({"collection": {"title": [1, 1]}}, "collection must have the same names .*'body'"),
        ({"collection": {"title": [1], "body": [1, 1]}}, "collection of 'title' must be a list of 2 numbers"),
        ({"collection": {"title": [1, -1], "body": [1, 1]}}, "collection -1 is negative"),
        ({"tokens": 7}, "tokens must be an object"),
        ({"tokens": {"title": 3}}, "tokens must have the same names"),
        ({"tokens": {"title": 3, "body": "x"}}, "tokens 'x' is not a number"),
        ({"documents": 1.5}, "documents 1.5 is not a number of documents"),
        ({"documents": True}, "documents True is not"),
        ({"documents": -1}, "documents -1 is not"),
        ({"documents": 10**30}, "documents 10+ is not a number of documents"),
    ],
)
def test_faults_in_what_is_told_of_the_collection_are_named(write: Any, changes: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"line 1, query q: {message}"):
        read_statistics(write(record(**changes)))


def test_statistics_of_different_collections_do_not_mix(write: Any) -> None:
    plain = read_statistics(write(record("a")))
    known = read_statistics(write(record("b", **WHOLE)))
    larger = read_statistics(write(record("c", **(WHOLE | {"documents": 900}))))
    with pytest.raises(InputError, match="some of these term statistics have collection"):
        concat(plain, known)
    with pytest.raises(InputError, match="different collections"):
        concat(known, larger)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"count": [1.0]}, r"count of shape \(1,\) for 2 query terms"),
        ({"collection": [[1.0], [2.0]]}, "collection of shape"),
        ({"tokens": [1.0]}, "tokens of shape"),
        ({"tokens": [1.0, math.nan]}, "tokens has a number that is negative or not finite"),
        ({"documents": -1}, "-1 documents"),
    ],
)
def test_wrong_shapes_are_refused(known: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TermStatistics(("a", "b"), [0, 2], Ids.of(["x", "y"]), [1, 1], [0, 2], [[1, 0], [0, 1]], [[4, 4]], **known)


def test_there_need_be_no_features(write: Any) -> None:
    assert read_statistics(write(record(features=...), record(docid="e", features={}))).features is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"qid": ...}, "no qid"),
        ({"qid": True}, "no qid"),
        ({"docid": ...}, "no docid"),
        ({"docid": 1.5}, "no docid"),
        ({"docid": "\ud800"}, "is not valid text"),
        ({"docid": "first"}, "document first occurs twice"),
        ({"label": "good"}, "label 'good' is not a number"),
        ({"label": True}, "label True is not a number"),
        ({"label": 10**400}, "label 1000.*is not finite"),
        ({"terms": ["red"]}, "terms: not as in the query's first line"),
        ({"terms": ...}, "terms: not as in"),
        ({"idf": [0.5, 1.5]}, "idf: not as in"),
        ({"count": [1, 2]}, "count: not as in"),
        ({"collection": WHOLE["collection"]}, "collection: not as in"),
        ({"tokens": WHOLE["tokens"]}, "tokens or documents: not as in the first line"),
        ({"documents": 7}, "tokens or documents: not as in the first line"),
        ({"qid": "new", "count": [1]}, "count must be a list of 2 numbers"),
        ({"qid": "new", "count": [1, -1]}, "count -1 is negative"),
        ({"qid": "new", "count": {"a": 1}}, "count must be a list of 2 numbers"),
        ({"qid": "new", "collection": WHOLE["collection"]}, "some queries have collection, some have none"),
        ({"qid": "new", "terms": "red shoe"}, "terms must be a list of strings"),
        ({"qid": "new", "terms": ["red", 1]}, "terms must be a list of strings"),
        ({"qid": "new", "terms": ["red", "\udfff"]}, "is not valid text"),
        ({"qid": "new", "idf": [0.5]}, "idf must be a list of 2 numbers"),
        ({"qid": "new", "idf": ["a", 1]}, "idf 'a' is not a number"),
        ({"tf": ...}, "tf must be an object"),
        ({"tf": [1]}, "tf must be an object"),
        ({"tf": {}}, "tf has no fields"),
        ({"tf": {"title": [1, 0]}}, "tf must have the same names in every line, but not all have 'body'"),
        ({"tf": {"title": [1, 0], "body": [1, 1], "url": [0, 0]}}, "not all have 'url'"),
        ({"tf": {"title": [1, 0], "body": [3]}}, "tf of 'body' must be a list of 2 numbers"),
        ({"tf": {"title": [1, 0], "body": 3}}, "tf of 'body' must be a list of 2 numbers"),
        ({"tf": {"title": [1, 0], "body": [3, -1]}}, "tf -1 is negative"),
        ({"tf": {"title": [1, 0], "body": [3, None]}}, "tf None is not a number"),
        ({"tf": {"title": [1, 0], "body": [3, 1e39]}}, r"tf 1e\+39 is not finite"),
        ({"length": ...}, "length must be an object"),
        ({"length": {"title": 5}}, "length must have the same names in every line, but not all have 'body'"),
        ({"length": {"title": 5, "body": -60}}, "length -60 is negative"),
        ({"length": {"title": 5, "body": "60"}}, "length '60' is not a number"),
        ({"features": ...}, "features must have the same names in every line, but not all have 'age', 'pagerank'"),
        ({"features": {"pagerank": 1}}, "features .* not all have 'age'"),
        ({"features": {"pagerank": 1, "age": 2, "new": 3}}, "features .* not all have 'new'"),
        ({"features": {"pagerank": None, "age": 2}}, "feature None is not a number"),
        ({"features": [1]}, "features must be an object"),
    ],
)
def test_the_line_at_fault_is_named(write: Any, changes: dict[str, Any], message: str) -> None:
    path = write(record(docid="first"), "", record(**changes))
    with pytest.raises(InputError, match=message) as caught:
        read_statistics(path)
    assert caught.value.line == 3
    assert str(caught.value).startswith(f"{path}, line 3")


@pytest.mark.parametrize("part", ["tf", "features"])
def test_names_that_are_no_text_are_errors(write: Any, part: str) -> None:
    with pytest.raises(InputError, match=r"line 1, query q: name '.ud800' is not valid text"):
        read_statistics(write(record(**{part: {"\ud800": [0, 0]}})))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none_are_named_by_their_line(write: Any, number: str) -> None:
    with pytest.raises(InputError, match=r"line 2.*(not JSON|not finite)"):
        read_statistics(write(record(), json.dumps(record(docid="e", label="?")).replace('"?"', number)))


@pytest.mark.parametrize("text", ["{", "[]", "3", "\ufeff\ufeff{}"])
def test_lines_that_are_no_objects_are_named(write: Any, text: str) -> None:
    with pytest.raises(InputError, match="line 2"):
        read_statistics(write(record(), text))


def test_an_empty_file_is_an_error(write: Any) -> None:
    with pytest.raises(InputError, match="empty"):
        read_statistics(write(" "))


NUMBERS = st.one_of(st.integers(0, 2**24), st.floats(0, 2.0**100, width=32))
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@st.composite
def candidates(draw: Any) -> Candidates:
    fields = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    qids = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    terms = [draw(st.lists(NAMES, max_size=3)) for _ in qids]
    docids = [draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)) for _ in qids]
    sizes = np.array([len(each) for each in docids])
    rows, counts = int(sizes.sum()), np.array([len(each) for each in terms])
    blocks = np.repeat(counts, sizes)

    def table(lines: int, columns: int) -> Any:
        return np.float32([[draw(NUMBERS) for _ in range(columns)] for _ in range(lines)]).reshape(lines, columns)

    labels = [draw(st.one_of(st.just(math.nan), st.floats(-2, 4))) for _ in range(rows)]
    names = draw(st.lists(NAMES, max_size=2, unique=True))
    idf = [draw(st.floats(-1e300, 1e300)) for _ in range(counts.sum())]
    words, flat = Ids.of([w for each in terms for w in each]), Ids.of([d for each in docids for d in each])
    statistics = TermStatistics(
        tuple(fields),
        bounds(counts),
        words,
        np.array(idf, np.float64),
        bounds(blocks),
        table(int(blocks.sum()), len(fields)),
        table(rows, len(fields)),
        count=None if draw(st.booleans()) else [draw(st.floats(0, 9)) for _ in range(counts.sum())],
        collection=table(int(counts.sum()), len(fields)) if draw(st.booleans()) else None,
        tokens=table(1, len(fields))[0] if draw(st.booleans()) else None,
        documents=draw(st.integers(0, 2**40)),
    )
    features = table(rows, len(names)) if names else None
    return Candidates(bounds(sizes), np.array(labels), Ids.of(qids), flat, features, tuple(names), statistics)


def assert_same(a: Candidates, b: Candidates) -> None:
    assert a.qids == b.qids
    assert a.docids == b.docids
    assert a.feature_names == b.feature_names
    assert a.terms is not None
    assert b.terms is not None
    assert a.terms.fields == b.terms.fields
    assert a.terms.terms == b.terms.terms
    pairs = [(getattr(a, name), getattr(b, name)) for name in ("offsets", "labels", "features")]
    names = ("offsets", "idf", "starts", "tf", "length", "count", "collection", "tokens", "documents")
    pairs += [(getattr(a.terms, name), getattr(b.terms, name)) for name in names]
    for left, right in pairs:
        np.testing.assert_array_equal(left, right)


@settings(max_examples=100, deadline=None)
@given(candidates(), st.booleans())
def test_written_statistics_read_back(tmp_path_factory: pytest.TempPathFactory, rows: Candidates, zipped: bool) -> None:
    path = tmp_path_factory.mktemp("statistics") / ("rows.jsonl.gz" if zipped else "rows.jsonl")
    write_statistics(path, rows)
    assert_same(rows, read_statistics(path))


def test_numbers_are_written_with_few_digits_and_the_query_as_its_terms(write: Any, tmp_path: Path) -> None:
    rows = read_statistics(write(record(), record(docid="e", label=None)))
    write_statistics(tmp_path / "out.jsonl.gz", rows)
    lines = gzip.decompress((tmp_path / "out.jsonl.gz").read_bytes()).decode().splitlines()
    assert [json.loads(line) for line in lines] == [record(), record(docid="e", label=None)]
    assert '"pagerank": 0.1,' in lines[0]


def test_candidates_without_term_statistics_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs candidates with term statistics"):
        write_statistics(tmp_path / "out.jsonl", Candidates.of([1.0], docids=["d"]))


def test_a_feature_that_is_nan_is_not_written(write: Any, tmp_path: Path) -> None:
    rows = read_statistics(write(record()))
    broken = Candidates(
        rows.offsets, rows.labels, rows.qids, rows.docids, np.float32([[math.nan, 1]]), rows.feature_names, rows.terms
    )
    with pytest.raises(InputError, match="NaN"):
        write_statistics(tmp_path / "out.jsonl", broken)
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("name", ["2013", "2014-dev", "2014-train"])
def test_real_statistics_come_back_but_for_the_query_text(tmp_path: Path, name: str) -> None:
    path = DATA / f"{name}.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    write_statistics(tmp_path / "back.jsonl", read_statistics(path))
    before, after = (
        [json.loads(line) | {"query": ""} for line in each.read_text().splitlines()]
        for each in (path, tmp_path / "back.jsonl")
    )
    assert before == after
