"""Documents of every kind are read alike; what is broken is named by file and line."""

from __future__ import annotations

import csv
import gzip
import io
import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fliprank.errors import FliprankError, InputError
from fliprank.text.build import documents as documents_module
from fliprank.text.build.documents import read_documents
from fliprank.text.index import Index

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "text"
PAGES = [
    {"_id": "d1", "title": "Red shoes", "text": "A shoe that is\nred. Ünïcode—too."},
    {"_id": "d2", "title": "", "text": "Sky"},
    {"_id": "d3", "title": "Only a title", "text": ""},
]
TREC = "\n".join(
    f"<DOC>\n<DOCNO> {p['_id']} </DOCNO>\n<TITLE>{p['title']}</TITLE>\n<TEXT><P>{p['text']}</P>\n</TEXT>\n</DOC>"
    for p in PAGES
)


def jsonl(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


TABLES = {"csv": ",", "semicolons.csv": ";", "tsv": "\t", "csv.gz": ","}


def table(records: list[dict[str, Any]], kind: str) -> bytes:
    """As Excel writes it: a byte order mark, CRLF, quotes where they must be."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=TABLES[kind])
    writer.writerow(records[0])
    writer.writerows(record.values() for record in records)
    raw = ("\ufeff" + text.getvalue()).encode()
    return gzip.compress(raw) if kind.endswith(".gz") else raw


def write_kind(folder: Path, kind: str) -> Any:
    path = folder / kind
    if kind == "jsonl":
        path.write_text(jsonl(PAGES))
    elif kind == "bom":
        path.write_text("\ufeff" + jsonl(PAGES).replace("\n", "\r\n\r\n"), newline="")
    elif kind == "jsonl.gz":
        path.write_bytes(gzip.compress(jsonl(PAGES).encode()))
    elif kind == "beir":
        path.mkdir()
        (path / "corpus.jsonl").write_text(jsonl(PAGES))
    elif kind == "parquet":
        pl.DataFrame(PAGES).write_parquet(path)
    elif kind == "trec":
        path.write_text(TREC)
    elif kind in TABLES:
        path.write_bytes(table(PAGES, kind))
    elif kind == "files":
        for i, page in enumerate(PAGES):
            (folder / f"{i}.jsonl").write_text(jsonl([page]))
        return [folder / f"{i}.jsonl" for i in range(3)]
    elif kind == "frame":
        return pl.DataFrame(PAGES)
    elif kind == "mappings":
        return iter(PAGES)
    return path


KINDS = ["jsonl", "bom", "jsonl.gz", "beir", "parquet", "trec", "files", "frame", "mappings", *TABLES]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", [1, 1000])
def test_every_kind_gives_the_same_index(
    tmp_path: Path, kind: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents_module, "BATCH", batch)
    index, wanted = (
        Index.build(write_kind(tmp_path, kind), fields=["title", "text"]),
        Index.build(PAGES, fields=["title", "text"]),
    )
    for name in ("docids", "terms", "fields"):
        assert getattr(index, name) == getattr(wanted, name)
    for name in ("starts", "docs", "tf", "length", "tokens", "token_offsets"):
        assert getattr(index, name).tolist() == getattr(wanted, name).tolist()


def test_text_numbers_lists_and_objects_are_sorted_out() -> None:
    record = {
        "id": 7,
        "title": "x",
        "tags": ["a b", "c"],
        "metadata": {"author": "me", "year": 2020, "url": "u/v"},
        "ok": True,
    }
    [batch] = read_documents([record, {"id": 8, "metadata": {}}])
    assert batch.ids.to_list() == ["7", "8"]
    assert {name: column.to_list() for name, column in batch.texts.items()} == {
        "title": ["x", None],
        "tags": ["a b\nc", None],
        "metadata.author": ["me", None],
        "metadata.url": ["u/v", None],
    }
    assert {name: column.to_list() for name, column in batch.numbers.items()} == {
        "metadata.year": [2020, None],
        "ok": [1, None],
    }
    assert Index.build([record]).fields == ("title", "tags", "metadata.author")


def test_fields_that_come_late_or_are_missing_are_empty_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents_module, "BATCH", 1)
    index = Index.build(
        [{"_id": 1, "a": "x"}, {"_id": 2}, {"_id": 3, "b": "y y", "n": 4}, {"_id": 4, "a": None, "b": "z"}]
    )
    assert index.fields == ("a", "b")
    assert index.length.tolist() == [[1, 0], [0, 0], [0, 2], [0, 1]]
    assert index.columns["n"].tolist()[2] == 4
    with pytest.raises(InputError, match="'n' was a number so far, and is text"):
        Index.build([{"_id": 1, "n": 3, "t": "x"}, {"_id": 2, "n": "three", "t": "x"}])
    assert Index.build([{"_id": 1, "n": 3}, {"_id": 2, "n": "three"}], fields=["n"]).terms.tolist() == ["3", "three"]


def test_a_table_gives_text_numbers_and_dates_as_json_does(tmp_path: Path) -> None:
    rows = [
        ("sku", "doc_id", "title", "price", "released", ""),
        ("007", "b", "Red shoes", "9.50", "2021-03-04", "0"),
        ("008", "a", "Blue", "", "2020-12-31", "1"),
    ]
    (tmp_path / "t.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    index = Index.build(tmp_path / "t.tsv")
    assert index.docids.tolist() == ["b", "a"]
    assert index.fields == ("title",)
    np.testing.assert_equal(index.columns["price"], [9.5, np.nan])
    assert index.columns["released_day"][0] - index.columns["released_day"][1] == 63
    assert "" not in index.columns
    named = Index.build(tmp_path / "t.tsv", fields=["title", "sku"])
    assert named.terms.tolist() == ["007", "008", "blue", "red", "shoe"]  # as written, not as a number
    np.testing.assert_equal(named.columns["price"], [9.5, np.nan])


LONG = "very " * 40_000

BROKEN_TABLES = {
    "no id": (",x,y\n", "line 5: no id"),
    "a cell too many": ("d3,x,y,z\n", "line 5: expected 3 cells, found 4"),
    "a cell too few": ("d3,x\n", "line 5: expected 3 cells, found 2"),
    "an open quote": ('d3,"x,y\nd4,x,y\n', "line 5: broken table"),
    "text after a quote": ('d3,"x" y,z\n', "line 5: broken table"),
    "an id that was there": ("d2,x,y\n", "line 5: the id 'd2' occurs twice"),
}


@pytest.mark.parametrize("what", BROKEN_TABLES)
def test_a_broken_record_is_named_by_the_line_on_which_it_begins(tmp_path: Path, what: str) -> None:
    record, message = BROKEN_TABLES[what]
    (tmp_path / "t.csv").write_text(f'id,title,text\nd1,"a\nb",{LONG}\nd2,c,d\n' + record)
    with pytest.raises(InputError, match=r"t\.csv, " + message):
        Index.build(tmp_path / "t.csv")


def test_a_table_without_an_id_says_what_its_header_is(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("name,text\nx,y\n")
    with pytest.raises(InputError, match=r"t\.csv, line 1: no header line with an id .*first line is 'name,text'"):
        Index.build(tmp_path / "t.csv")
    (tmp_path / "u.csv").write_text("id,text,text\nx,y,z\n")
    with pytest.raises(InputError, match=r"u\.csv, line 1: two columns are called 'text'"):
        Index.build(tmp_path / "u.csv")


def test_a_real_catalogue_as_csv_gives_the_index_that_its_json_lines_give(tmp_path: Path) -> None:
    source = DATA / "icecat" / "corpus.jsonl.gz"
    if not source.is_file():
        pytest.skip(f"no {source}")
    with gzip.open(source, "rt") as file:
        records = [json.loads(line) for line, _ in zip(file, range(3000), strict=False)]
    names = ["_id", "name", "title", "text", "supplier"]
    with (tmp_path / "t.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(records)
    index, wanted = Index.build(tmp_path / "t.csv", fields=names[1:]), Index.build(records, fields=names[1:])
    assert index.docids == wanted.docids
    assert index.terms == wanted.terms
    assert index.tokens.tolist() == wanted.tokens.tolist()


BROKEN = {
    "broken JSON": ('{"_id": "x", "text": "a\n', "line 6: broken JSON"),
    "two objects": ('{"_id": "x"} {"_id": "y"}\n', "line 6"),
    "a list": ('["_id"]\n', "line 6"),
    "no id": ('{"text": "a"}\n', "line 6: no _id"),
    "an empty id": ('{"_id": "", "text": "a"}\n', "line 6: no _id"),
    "null for an id": ('{"_id": null, "text": "a"}\n', "line 6: no _id"),
    "an id that was there": ('{"_id": "a3", "text": "again"}\n', "line 6: the id 'a3' occurs twice"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_line_is_named(tmp_path: Path, what: str) -> None:
    line, message = BROKEN[what]
    path = tmp_path / "corpus.jsonl"
    good = [{"_id": f"a{i}", "text": "fine"} for i in range(8)]
    path.write_text(jsonl(good[:4]) + "\n" + line + jsonl(good[4:]))
    with pytest.raises(InputError, match=r"corpus\.jsonl, " + message):
        Index.build(path)


def test_a_broken_line_is_named_beyond_the_first_batch(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl.gz"
    record = '{"_id": %d, "text": "' + "word " * 4000 + '"}\n'
    lines = [record % i for i in range(2000)]
    lines[1777] = lines[1777].replace('{"_id"', '{"_id')
    path.write_bytes(gzip.compress("".join(lines).encode(), 1))
    with pytest.raises(InputError, match=r"line 1778: broken JSON"):
        Index.build(path)
    lines[1777] = record % 3
    path.write_bytes(gzip.compress("".join(lines).encode(), 1))
    with pytest.raises(InputError, match=r"line 1778: the id '3' occurs twice"):
        Index.build(path)


@pytest.mark.parametrize("kind", ["jsonl", "trec"])
def test_bytes_that_are_not_utf8_are_named(tmp_path: Path, kind: str) -> None:
    path = write_kind(tmp_path, kind)
    path.write_bytes(path.read_bytes().replace(b"Sky", b"S\xffy"))
    with pytest.raises(InputError, match=rf"{kind}, line {2 if kind == 'jsonl' else 11}: byte 0xff is not UTF-8"):
        Index.build(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<DOC>\n<DOCNO>1</DOCNO>\nx\n</DOC>\n\n<DOC>\n<TEXT>x</TEXT></DOC>\n", "line 6: a document without a DOCNO"),
        ("<DOC>\n<DOCNO>1</DOCNO>x</DOC>\n\n<DOC><DOCNO>2</DOCNO>", "line 4: .* does not end"),
        ("<DOC><DOCNO>1</DOCNO>x</DOC><DOC><DOCNO>1</DOCNO>x</DOC>", r"the id '1' occurs twice \(document 2\)"),
    ],
)
def test_broken_markup_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "trec").write_text(content)
    with pytest.raises(InputError, match=message):
        Index.build(tmp_path / "trec")


def test_markup_is_laid_flat(tmp_path: Path) -> None:
    text = "<DOC><docno>1</docno><Headline lang='en'>R&amp;D <b>now</b></Headline>"
    (tmp_path / "trec").write_text(text + "<TEXT>a<p>b</p></TEXT><TEXT>c</TEXT> rest</doc>")
    [batch] = read_documents(tmp_path / "trec")
    assert {name: column.to_list() for name, column in batch.texts.items()} == {
        "headline": ["R&D  now"],
        "text": ["a b\nc\nrest"],
    }


@pytest.mark.parametrize(
    "content", [b"", b"  \n", b"hello", b"PAR1nonsense", b"\x1f\x8bnonsense", b"\xff\xfe{", b"[1, 2]"]
)
def test_other_files_are_refused_by_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "docs").write_bytes(content)
    with pytest.raises(InputError, match="docs"):
        Index.build(tmp_path / "docs")


def test_sources_without_documents_are_refused(tmp_path: Path) -> None:
    for empty in ([], pl.DataFrame({"_id": [], "text": []}), tmp_path / "absent", tmp_path):
        with pytest.raises(InputError):
            Index.build(empty)
    with pytest.raises(InputError, match="no text"):
        Index.build([{"_id": 1, "n": 3}])
    with pytest.raises(InputError, match="without an id"):
        Index.build([{"text": "x"}])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_bytes_make_anything_but_an_index_or_an_error(tmp_path: Path, data: st.DataObject) -> None:
    """Real files with some bytes replaced, dropped or doubled."""
    kind = data.draw(st.sampled_from(["jsonl", "trec", "parquet"]))
    path = tmp_path / kind
    if not path.exists():
        write_kind(tmp_path, kind)
        (tmp_path / f"{kind}.good").write_bytes(path.read_bytes())
    raw = bytearray((tmp_path / f"{kind}.good").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at, size = data.draw(st.integers(0, len(raw) - 1)), data.draw(st.integers(0, 5))
        raw[at : at + size] = data.draw(st.binary(max_size=5))
    path.write_bytes(bytes(raw))
    try:
        index = Index.build(path)
    except FliprankError:
        return
    assert len(index) >= 1


@pytest.mark.parametrize("name", ["cacm", "cisi", "cranfield"])
def test_real_collections_are_indexed_whole(name: str) -> None:
    if not (DATA / name).is_dir():
        pytest.skip("no ../shared/data/text")
    index = Index.build(DATA / name)
    records = [json.loads(line) for line in (DATA / name / "corpus.jsonl").read_text().splitlines()]
    assert index.docids.tolist() == [str(record["_id"]) for record in records]
    texts = {key for record in records for key, value in record.items() if isinstance(value, str)} - {"_id", "url"}
    assert set(index.fields) - {"anchor"} == texts
    f = index.fields.index("title")
    assert index.length[:, f].tolist() == [len(index.analyzer.terms(record.get("title") or "")) for record in records]


def test_what_is_no_text_is_no_field_unless_it_is_asked_for() -> None:
    def page(i: int) -> dict[str, Any]:
        return {
            "_id": f"d{i}",
            "id": i,
            "title": f"Page {i}",
            "code": f"AB-{i}",
            "image": f"https://x.org/{i}.png",
            "made": f"2020-01-0{i}",
            "price": f"{i}.50",
            "uuid": f"550e8400-e29b-41d4-a716-44665544000{i}",
            "about": {"author": {"name": "Ann"}, "sizes": [1, 2]},
        }

    index = Index.build([page(1), page(2), {"_id": "d3", "title": "2020-01-01", "price": ""}])
    assert index.fields == ("title", "code", "about.author.name")
    assert {name: column.tolist()[:2] for name, column in index.columns.items()} == {
        "price": [1.5, 2.5],
        "made_day": [date(2020, 1, 1).toordinal(), date(2020, 1, 2).toordinal()],
    }
    assert index.notes == (
        "not taken for text: image (addresses), made (dates), price (numbers), uuid (hashes); "
        "name the fields to have them",
        "neither text nor numbers, left out: about.sizes",
    )
    asked = Index.build([page(1), page(2)], fields=["id", "image", "made"])
    assert asked.fields == ("id", "image", "made")
    assert "made_day" not in asked.columns
    assert {"png", "2020"} <= set(asked.terms.tolist())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"_id": "c", "n": NaN}', "NaN is not JSON"),
        ('{"_id": "c", "n": 1e400}', "1e400 is not JSON"),
        ('{"_id": "c", "n": [{"a": 1}]}', "'n' is a list here, and an object before"),
    ],
)
def test_what_polars_refuses_is_named_by_line(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text('{"_id": "a", "t": "x", "n": {"a": 2}}\n\n{"_id": "b", "n": {"a": 2}}\n' + line + "\n")
    with pytest.raises(InputError, match=r"docs\.jsonl, line 4") as caught:
        Index.build(path)
    assert said in str(caught.value)


def test_parquet_may_be_gzipped_and_categories_are_text(tmp_path: Path) -> None:
    frame = pl.DataFrame(PAGES).with_columns(pl.lit("Shoes").cast(pl.Categorical).alias("kind"))
    frame.write_parquet(tmp_path / "docs.parquet")
    (tmp_path / "docs.gz").write_bytes(gzip.compress((tmp_path / "docs.parquet").read_bytes()))
    index = Index.build(tmp_path / "docs.gz")
    assert index.fields == ("title", "text", "kind")
    assert len(index) == 3
