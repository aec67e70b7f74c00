"""Collections in BEIR's layout: real ones as the json module reads them, broken ones named by file and line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fliprank.data.beir import read_beir, read_documents
from fliprank.errors import InputError

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "text"


def build(
    root: Path, corpus: str = '{"_id": "d1", "text": "x"}\n', queries: str = '{"_id": "q1", "text": "y"}\n'
) -> Path:
    (root / "qrels").mkdir()
    (root / "corpus.jsonl").write_text(corpus)
    (root / "queries.jsonl").write_text(queries)
    (root / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    return root


@pytest.fixture
def lines(tmp_path: Path) -> Any:
    """A file of these lines."""

    def write(*texts: str | bytes) -> Path:
        path = tmp_path / "corpus.jsonl"
        path.write_bytes(b"".join((text.encode() if isinstance(text, str) else text) + b"\n" for text in texts))
        return path

    return write


def test_only_judged_queries_are_kept(tmp_path: Path) -> None:
    queries = '{"_id": "q0", "text": "other split"}\n{"_id": "q1", "text": "mine", "metadata": {"a": 1}}\n'
    collection = read_beir(build(tmp_path, queries=queries))
    assert collection.queries == {"q1": "mine"}
    assert collection.qrels.to_dict() == {"q1": {"d1": 1}}


def test_gzipped_files_are_found_and_read(tmp_path: Path) -> None:
    root = build(tmp_path)
    for path in (root / "corpus.jsonl", root / "queries.jsonl", root / "qrels" / "test.tsv"):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    collection = read_beir(root)
    assert collection.queries == {"q1": "y"}
    assert collection.qrels.to_dict() == {"q1": {"d1": 1}}
    assert collection.documents().to_dicts() == [{"_id": "d1", "text": "x"}]


def test_a_split_that_is_not_there_lists_those_that_are(tmp_path: Path) -> None:
    root = build(tmp_path)
    (root / "qrels" / "train.tsv.gz").write_bytes(b"")
    with pytest.raises(InputError, match=r"no judgements of the split 'dev' \(there are: test, train\)"):
        read_beir(root, "dev")


def test_without_qrels_the_error_says_where_they_belong(tmp_path: Path) -> None:
    root = build(tmp_path)
    (root / "qrels" / "test.tsv").unlink()
    with pytest.raises(InputError, match=r"there are no files qrels/<split>\.tsv"):
        read_beir(root)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    root = build(tmp_path)
    (root / name).unlink()
    with pytest.raises(InputError, match=f"{name}: no such file"):
        read_beir(root)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="absent: no such folder"):
        read_beir(tmp_path / "absent")


@pytest.mark.parametrize("query", ['{"_id": "q2"}', '{"_id": "q2", "text": null}'])
def test_a_query_without_text_is_named_by_its_line(tmp_path: Path, query: str) -> None:
    root = build(tmp_path, queries='{"_id": "q1", "text": "y"}\n\n' + query + "\n")
    with pytest.raises(InputError, match=r"queries\.jsonl, line 3: .*text") as caught:
        read_beir(root)
    assert caught.value.line == 3


def test_a_text_that_is_no_string_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"queries\.jsonl, line 1: no text, or one that is not a string"):
        read_beir(build(tmp_path, queries='{"_id": "q1", "text": ["y"]}\n'))


def test_a_field_of_strings_and_other_values_is_read_as_strings(lines: Any) -> None:
    assert read_documents(lines(GOOD, '{"_id": "b", "text": 1}'))["text"].to_list() == ["x", "1"]


def test_a_judged_query_that_is_not_among_the_queries_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="query q1: the judged query has no text"):
        read_beir(build(tmp_path, queries='{"_id": "q2", "text": "y"}\n'))


def test_fields_that_only_some_documents_have_are_kept(lines: Any) -> None:
    texts = [json.dumps({"_id": f"d{i}", "text": f"word {i}"}) for i in range(500)]
    frame = read_documents(lines(*texts, '{"_id": "last", "title": "late", "tags": ["a", "b"], "meta": {"n": 1}}'))
    assert set(frame.columns) == {"_id", "text", "title", "tags", "meta"}
    assert frame["text"].to_list() == [*(f"word {i}" for i in range(500)), None]
    assert frame.row(-1, named=True) == {
        "_id": "last",
        "text": None,
        "title": "late",
        "tags": ["a", "b"],
        "meta": {"n": 1},
    }


@pytest.mark.parametrize("first", ["", "\ufeff"], ids=["plain", "byte order mark"])
def test_blank_lines_crlf_and_numeric_ids_are_fine(lines: Any, first: str) -> None:
    frame = read_documents(lines(first + '{"_id": 1, "text": "é\\n"}\r', "", "  \r", '{"_id": 2, "text": "b"}'))
    assert frame.to_dicts() == [{"_id": "1", "text": "é\n"}, {"_id": "2", "text": "b"}]
    assert frame["_id"].dtype == pl.String


GOOD = '{"_id": "a", "text": "x"}'


@pytest.mark.parametrize(
    ("texts", "line", "message"),
    [
        ([GOOD, "", '{"_id": "b", "text": '], 3, "broken JSON"),
        ([GOOD, '{"_id": "b"} {"_id": "c"}'], 2, "broken JSON"),
        ([GOOD, '{"_id": "b", "n": NaN}'], 2, "broken JSON: NaN is not JSON"),
        ([GOOD, "[1, 2]"], 2, "a JSON object was expected"),
        ([GOOD, "7"], 2, "a JSON object was expected"),
        ([GOOD, "null"], 2, "a JSON object was expected"),
        ([GOOD, '{"text": "y"}'], 2, "no _id"),
        ([GOOD, '{"_id": null}'], 2, "no _id"),
        ([GOOD, '{"_id": ""}'], 2, "no _id"),
        (['{"_id": ["a"]}'], 1, "no _id"),
        (['{"_id": 1.5}'], 1, "no _id"),
        (["{}"], 1, "no _id"),
        ([GOOD, '{"_id": "b"}', "", GOOD], 4, "the _id 'a' occurs twice"),
        (['{"_id": 1}', '{"_id": "1"}'], 2, "the _id '1' occurs twice"),
        (
            [GOOD, '{"_id": "b", "n": 1}', '{"_id": "c", "n": 1.5}', '{"_id": "d", "n": []}'],
            4,
            "'n' is of another type",
        ),
        ([GOOD, '{"_id": "b", "text": 1}', "broken"], 3, "broken JSON"),
        ([GOOD, b'{"_id": "\xff"}'], 2, "byte 0xff is not UTF-8"),
    ],
)
def test_the_line_at_fault_is_named(lines: Any, texts: list[Any], line: int, message: str) -> None:
    path = lines(*texts)
    with pytest.raises(InputError) as caught:
        read_documents(path)
    assert str(caught.value).startswith(f"{path}, line {line}: {message}")


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_corpus_is_an_error(lines: Any, text: str) -> None:
    with pytest.raises(InputError, match="empty"):
        read_documents(lines(text))


@pytest.mark.parametrize("name", ["cacm", "cisi", "cranfield", "npl", "scifact"])
def test_real_collections_read_as_the_json_module_reads_them(name: str) -> None:
    folder = DATA / name
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    collection = read_beir(folder)
    raw = collection.corpus.read_bytes()
    expected = [json.loads(line) for line in (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).splitlines()]
    documents = collection.documents().to_dicts()
    assert [{k: v for k, v in each.items() if v is not None} for each in documents] == expected
    texts = {each["_id"]: each["text"] for each in map(json.loads, (folder / "queries.jsonl").read_text().splitlines())}
    assert collection.queries == {qid: texts[qid] for qid in texts if qid in collection.qrels.to_dict()}
    assert set(collection.queries) == set(collection.qrels.qids)
