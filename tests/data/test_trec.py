"""TREC files and the join of qrels and runs, against pytrec_eval's parsers and a join in plain dicts."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data import columns
from fliprank.data.trec import Qrels, Run, judge, read_qrels, read_run, write_qrels, write_run
from fliprank.errors import InputError, UsageError

DATA = Path(__file__).parents[2].parent / "shared" / "data"
IDS = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=8)
SCORES = st.floats(allow_nan=False, allow_infinity=False)
LABELS = st.one_of(st.integers(-2, 4), st.floats(0, 4))


def tables(
    numbers: st.SearchStrategy[Any], ids: st.SearchStrategy[str] = IDS, least: int = 1
) -> st.SearchStrategy[Any]:
    """{qid: {docid: number}}."""
    return st.dictionaries(ids, st.dictionaries(ids, numbers, min_size=least, max_size=5), min_size=1, max_size=5)


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def _write(content: str | bytes, name: str = "file.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return _write


def test_qrels_lines_become_labels_grouped_by_query(write: Any) -> None:
    qrels = read_qrels(write("q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\n"))
    assert qrels.qids.tolist() == ["q1", "q2"]
    assert qrels.offsets.tolist() == [0, 2, 3]
    assert qrels.docids.tolist() == ["d1", "d2", "d1"]
    assert qrels.labels.tolist() == [2, 0, 1]
    assert len(qrels) == 3


def test_a_run_keeps_scores_and_tag_and_ignores_ranks(write: Any) -> None:
    run = read_run(write("q Q0 d1 9 0.5 my-tag\nq Q0 d2 x 1e-3 other\n"))
    assert run.name == "my-tag"
    assert run.to_dict() == {"q": {"d1": 0.5, "d2": 0.001}}


def test_the_tag_may_be_absent(write: Any) -> None:
    run = read_run(write("q Q0 d1 1 0.5\nq Q0 d2 2 0.25 tag\n"))
    assert (run.name, run.to_dict()) == ("", {"q": {"d1": 0.5, "d2": 0.25}})


@pytest.mark.parametrize(
    "text",
    [
        "a 0 x 1\nb 0 y 2\na 0 z 3\n",
        "a\t0\tx\t1\nb\t0\ty\t2\na\t0\tz\t3\n",
        "a 0 x 1\r\nb 0 y 2\r\na 0 z 3\r\n",
        "  a  0 \t x 1  \n\n \t \nb 0 y 2\na 0 z 3",
        "\ufeffa 0 x 1\nb 0 y 2\na 0 z 3\n",
        "query-id\tcorpus-id\tscore\na\tx\t1\nb\ty\t2\na\tz\t3\n",
        "\ufeffquery-id\tcorpus-id\tscore\r\na\tx\t1\r\nb\ty\t2.0\r\n\r\na\tz\t3",
    ],
    ids=["interleaved", "tabs", "crlf", "spaces and blank lines", "byte order mark", "beir", "beir crlf"],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_every_way_to_write_the_same_qrels_reads_alike(write: Any, text: str, zipped: bool) -> None:
    data = gzip.compress(text.encode()) if zipped else text.encode()
    qrels = read_qrels(write(data))
    assert qrels.to_dict() == {"a": {"x": 1, "z": 3}, "b": {"y": 2}}
    assert qrels.qids.tolist() == ["a", "b"]


def test_negative_labels_are_not_judged_but_their_query_stays(write: Any) -> None:
    qrels = read_qrels(write("a 0 x -1\nb 0 x 1\nb 0 y -2\nc 0 z 0\n"))
    assert qrels.to_dict() == {"a": {}, "b": {"x": 1}, "c": {"z": 0}}
    assert qrels.unjudged == 2


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a 0 x 1\n\na 0 y\n", 3, "expected 4 columns, found 3"),
        ("a 0 x 1 5\n", 1, "expected 4 columns, found 5"),
        ("query-id corpus-id score\na x 1\nb 0 y 1\n", 3, "expected 3 columns, found 4"),
        ("a 0 x 1\nb 0 y relevant\n", 2, "query b: label 'relevant' is not a finite number"),
        ("a 0 x 1\nb 0 y nan\n", 2, "query b: label 'nan' is not a finite number"),
        ("a 0 x 1e999\n", 1, "query a: label '1e999' is not a finite number"),
        ("a 0 x 0x1\n", 1, "query a: label '0x1' is not a finite number"),
        ("a 0 x 1\nb 0 x 1\na 0 x 2\n", 3, "query a: document x occurs twice"),
        ("a 0 x 1\na 0 y 1\nb 0 z 2\nb 0 z 2\na 0 x 2\n", 4, "query b: document z occurs twice"),
        (b"a 0 x 1\nb 0 \xff 1\n", 2, "byte 0xff is not UTF-8"),
    ],
)
def test_a_broken_qrels_line_is_named(write: Any, text: str | bytes, line: int, message: str) -> None:
    path = write(text)
    with pytest.raises(InputError) as caught:
        read_qrels(path)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"{path}, line {line}")
    assert message in str(caught.value)
    assert ("a line is: " in str(caught.value)) == ("column" in message or "number" in message)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a Q0 x 1\n", 1, "expected 5 or 6 columns, found 4"),
        ("a Q0 x 1 2 tag\n\na Q0 y 2 1 my tag\n", 3, "expected 5 or 6 columns, found 7"),
        ("a Q0 x 1 inf t\n", 1, "query a: score 'inf' is not a finite number"),
        ("a Q0 x 1 2 t\nc Q0 x 1 -nan t\n", 2, "query c: score '-nan' is not a finite number"),
        ("a Q0 x 1 -1e400 t\n", 1, "query a: score '-1e400' is not a finite number"),
        ("a Q0 x 1 2 t\na Q0 y 1 2 t\na Q0 x 3 1 t\n", 3, "query a: document x occurs twice"),
    ],
)
def test_a_broken_run_line_is_named(write: Any, text: str, line: int, message: str) -> None:
    with pytest.raises(
        InputError, match="a line is: qid Q0 docno rank score tag" if "twice" not in message else "twice"
    ) as caught:
        read_run(write(text))
    assert caught.value.line == line
    assert message in str(caught.value)


def test_the_first_broken_line_of_a_file_of_many_pieces_is_named(write: Any) -> None:
    lines = [f"q{i // 100} 0 document-{i} 1" for i in range(200_000)]
    lines[150_000] = lines[170_000] = "too few columns"
    path = write("\n".join(lines))
    assert path.stat().st_size > 4 << 20, "the file must be more than a few pieces"
    with pytest.raises(InputError, match="expected 4 columns, found 3") as caught:
        read_qrels(path)
    assert caught.value.line == 150_001


def test_blank_lines_in_a_file_of_many_pieces_are_skipped(write: Any) -> None:
    lines = [f"q{i // 100} 0 document-{i} {i % 4}" + "\n \r" * (i % 17 == 0) for i in range(200_000)]
    qrels = read_qrels(write("\n".join(lines)))
    assert qrels.docids.tolist() == [f"document-{i}" for i in range(200_000)]
    assert qrels.labels.tolist() == [i % 4 for i in range(200_000)]
    assert qrels.offsets.tolist() == list(range(0, 200_001, 100))


@pytest.mark.parametrize("text", ["", "\n\n", " \r\n", "\ufeff\n", "query-id corpus-id score\n"])
def test_a_file_without_judgements_is_an_error(write: Any, text: str) -> None:
    with pytest.raises(InputError, match=r"empty|no lines of data"):
        read_qrels(write(text))


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_run(tmp_path / "absent.run")


@settings(max_examples=60, deadline=None)
@given(tables(LABELS, least=0), st.booleans())
def test_written_qrels_read_back(tmp_path_factory: pytest.TempPathFactory, table: Any, zipped: bool) -> None:
    qrels = Qrels.of(table)
    kept = {q: {d: float(x) for d, x in docs.items() if x >= 0} for q, docs in table.items()}
    assert qrels.to_dict() == kept
    assert qrels.unjudged == sum(map(len, table.values())) - len(qrels)
    path = tmp_path_factory.mktemp("qrels") / ("q.txt.gz" if zipped else "q.txt")
    write_qrels(path, qrels)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == zipped
    if len(qrels):
        assert read_qrels(path).to_dict() == {q: docs for q, docs in kept.items() if docs}


@settings(max_examples=60, deadline=None)
@given(tables(SCORES), IDS)
def test_a_written_run_reads_back_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, table: Any, name: str
) -> None:
    path = tmp_path_factory.mktemp("run") / "run.txt"
    write_run(path, Run.of(table, name=name))
    back = read_run(path)
    assert back.to_dict() == table
    assert back.name == name
    ranks = [line.split()[3] for line in path.read_text().splitlines()]
    assert ranks == [str(i + 1) for docs in table.values() for i in range(len(docs))]


def test_a_run_is_written_by_score_then_docno_descending(tmp_path: Path) -> None:
    run = Run.of({"q2": {"d1": 1.0, "d3": 1.0, "d10": 1.0, "é": 1.0, "top": 2.5}, "q1": {"x": -0.1}}, name="a b")
    write_run(tmp_path / "run", run)
    assert (tmp_path / "run").read_text() == (
        "q2 Q0 top 1 2.5 a_b\nq2 Q0 é 2 1.0 a_b\nq2 Q0 d3 3 1.0 a_b\nq2 Q0 d10 4 1.0 a_b\nq2 Q0 d1 5 1.0 a_b\n"
        "q1 Q0 x 1 -0.1 a_b\n"
    )


@pytest.mark.parametrize("bad", ["a b", "", "tab\t", "line\nbreak"])
def test_an_id_that_a_trec_file_cannot_hold_is_not_written(tmp_path: Path, bad: str) -> None:
    for table in ({bad: {"d": 1}}, {"q": {bad: 1}}):
        with pytest.raises(InputError, match="white space"):
            write_run(tmp_path / "run", Run.of(table))
        with pytest.raises(InputError, match="white space"):
            write_qrels(tmp_path / "qrels", Qrels.of(table))
    assert not list(tmp_path.iterdir())


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_files_read_as_pytrec_eval_reads_them(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    folder = tmp_path_factory.mktemp("parity")
    pairs = data.draw(st.lists(st.tuples(IDS, IDS), min_size=1, max_size=12, unique=True))
    gap = st.sampled_from([" ", "\t", "  ", " \t "])
    labels = [data.draw(st.integers(0, 5)) for _ in pairs]
    scores = [data.draw(st.one_of(SCORES, st.integers(-(10**20), 10**20))) for _ in pairs]
    rows = zip(pairs, labels, scores, strict=True)
    qrel_lines, run_lines = [], []
    for rank, ((qid, docid), label, score) in enumerate(rows):
        qrel_lines.append(
            data.draw(gap).join([qid, "0", docid, str(label)]) + data.draw(st.sampled_from(["\n", "\r\n"]))
        )
        run_lines.append(data.draw(gap).join([qid, "Q0", docid, str(rank), str(score), "tag"]) + "\n")
    (folder / "qrels").write_bytes("".join(qrel_lines).encode())
    (folder / "run").write_bytes("".join(run_lines).encode())
    assert read_qrels(folder / "qrels").to_dict() == pytrec_eval.parse_qrel(qrel_lines)
    assert read_run(folder / "run").to_dict() == pytrec_eval.parse_run(run_lines)
    assert list(read_run(folder / "run").to_dict()) == list(pytrec_eval.parse_run(run_lines))


def test_mappings_with_numbers_as_ids_are_taken() -> None:
    assert Qrels.of({1: {10: 1}}).to_dict() == {"1": {"10": 1}}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"q": {"d": math.nan}}, "query q: score nan of document d"),
        ({"a": {}, "q": {"c": 1, "d": math.inf}}, "query q: score inf of document d"),
        ({"q": {"d": "high"}}, "a score is not a number"),
        ({"q": {"d": None}}, "score"),
        ({"q": {1: 1, "1": 2}}, "query q: document 1 occurs twice"),
        ({1: {"d": 1}, "1": {"d": 2}}, "query 1: the query occurs twice"),
    ],
)
def test_mappings_are_checked(table: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Run.of(table)


@pytest.mark.parametrize("library", [pl.DataFrame, pd.DataFrame])
def test_frames_are_grouped_by_query(library: Any) -> None:
    names = {"qid": ["b", "a", "b"], "docid": ["x", "x", "y"]}
    assert Qrels.from_frame(library({**names, "label": [1, 0, -1]})).to_dict() == {"b": {"x": 1}, "a": {"x": 0}}
    run = Run.from_frame(library({**names, "score": [1.5, 2.5, 3.5]}), name="mine")
    assert run.to_dict() == {"b": {"x": 1.5, "y": 3.5}, "a": {"x": 2.5}}
    assert (run.name, run.qids.tolist()) == ("mine", ["b", "a"])
    other = library({"query_id": [1, 2], "doc_id": [3.0, 4.0], "relevance": [2.0, 1.0]})
    assert Qrels.from_frame(other).to_dict() == {"1": {"3": 2}, "2": {"4": 1}}


@pytest.mark.parametrize("library", [pl.DataFrame, pd.DataFrame])
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"qid": ["a"], "label": [1]}, "no column docid or doc_id.*it has qid, label"),
        ({"docid": ["a"], "label": [1]}, "no column qid or query_id"),
        ({"qid": ["a"], "docid": ["x"], "score": [1]}, "no column label or relevance"),
        ({"qid": ["a", None], "docid": ["x", "y"], "label": [1, 2]}, "'qid' has no value in row 1"),
        ({"qid": ["a"], "docid": ["x"], "label": ["good"]}, "a label is not a number"),
        ({"qid": ["a", "b"], "docid": ["x", "y"], "label": [1, None]}, "query b: label nan of document y"),
        ({"qid": ["a", "a"], "docid": ["x", "x"], "label": [1, 2]}, "query a: document x occurs twice"),
    ],
)
def test_frames_are_checked(library: Any, columns: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Qrels.from_frame(library(columns))


def test_nullable_pandas_columns_are_checked() -> None:
    columns = {"qid": pd.array(["a", None], "string"), "docid": ["x", "y"], "label": pd.array([1, None], "Int64")}
    with pytest.raises(InputError, match="'qid' has no value in row 1"):
        Qrels.from_frame(pd.DataFrame(columns))
    with pytest.raises(InputError, match=r"a label is not a number|label nan of document y"):
        Qrels.from_frame(pd.DataFrame(columns | {"qid": ["a", "b"]}))


def test_shapes_that_do_not_fit_are_errors() -> None:
    good = Qrels.of({"q": {"d": 1, "e": 2}})
    with pytest.raises(InputError, match="offsets must rise"):
        Qrels(np.array([0, 1, 2]), good.qids, good.docids, good.labels)
    with pytest.raises(InputError, match="2 document ids, 3 numbers for 2 rows"):
        Run(good.offsets, good.qids, good.docids, np.ones(3))


def joined(qrels: dict[str, Any], run: dict[str, Any], missing: str) -> list[Any]:
    """The join in plain dicts: for each query (qid, documents, labels, scores, missed labels)."""
    out = []
    for qid, judged in qrels.items():
        if qid in run or missing == "zero":
            found = run.get(qid, {})
            labels = [judged.get(docid) for docid in found]
            missed = [label for docid, label in judged.items() if docid not in found]
            out.append((qid, list(found), labels, list(found.values()), missed))
    return out


FEW = st.sampled_from(["a", "b", "c", "d", "e", "ab", "ba", "é"])


@settings(max_examples=200, deadline=None)
@given(tables(st.integers(0, 3), FEW, least=0), tables(SCORES, FEW, least=0), st.sampled_from(["zero", "skip"]))
def test_judge_joins_as_plain_dicts_do(qrels: Any, run: Any, missing: Any) -> None:
    if not qrels.keys() & run.keys():
        with pytest.raises(InputError, match="no query in common"):
            judge(Qrels.of(qrels), Run.of(run), missing=missing)
        return
    judged = judge(Qrels.of(qrels), Run.of(run), missing=missing)
    rows = judged.candidates.validated()
    assert rows.docids is not None
    got = []
    for q, qid in enumerate(rows.qids):
        a, b = rows.offsets[q], rows.offsets[q + 1]
        labels = [None if np.isnan(x) else x for x in rows.labels[a:b].tolist()]
        missed = rows.missed_labels[rows.missed_offsets[q] : rows.missed_offsets[q + 1]].tolist()
        got.append((qid, rows.docids.tolist()[a:b], labels, judged.scores[a:b].tolist(), missed))
    assert got == joined(qrels, run, missing)
    assert judged.unknown_queries == len(run.keys() - qrels.keys())
    assert judged.missing_queries == len(qrels.keys() - run.keys())


def test_the_error_of_a_run_of_another_collection_shows_ids_of_both() -> None:
    with pytest.raises(InputError, match=r"the qrels have 1, 2, 3, \.\.\., the run q1"):
        judge(Qrels.of({i: {"d": 1} for i in (1, 2, 3, 4)}), Run.of({"q1": {"d": 1.0}}))


def test_judge_knows_two_ways_with_missing_queries() -> None:
    with pytest.raises(UsageError, match="'zero' or 'skip'"):
        judge(Qrels.of({"q": {"d": 1}}), Run.of({"q": {"d": 1}}), missing="drop")  # type: ignore[arg-type]


def test_a_run_of_one_query_a_line_interleaved_is_grouped_in_order_of_appearance(write: Any) -> None:
    text = "".join(f"q{q} Q0 d{d} 1 {-d} t\n" for d in range(300) for q in (3, 1, 2))
    run = read_run(write(text))
    assert run.qids.tolist() == ["q3", "q1", "q2"]
    assert run.to_dict() == {q: {f"d{d}": -d for d in range(300)} for q in ("q3", "q1", "q2")}


@pytest.mark.parametrize("name", ["cacm", "cisi", "cranfield", "npl", "scifact"])
def test_real_qrels_read_as_a_plain_split_does(name: str) -> None:
    path = DATA / "text" / name / "qrels" / "test.tsv"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    expected: dict[str, dict[str, float]] = {}
    for line in path.read_text().splitlines()[1:]:
        qid, docid, label = line.split("\t")
        expected.setdefault(qid, {})[docid] = float(label)
    assert read_qrels(path).to_dict() == {q: {d: x for d, x in docs.items() if x >= 0} for q, docs in expected.items()}


def test_pieces_begin_after_newlines_and_cover_the_file() -> None:
    for text in (b"a\n", b"a\n\n\nbb\nccc\n", b"x" * 50 + b"\n", b"\n" * 20):
        buffer = np.frombuffer(text, np.uint8)
        for pieces in range(1, 9):
            cuts = columns.cut_lines(buffer, 0, pieces).tolist()
            assert (cuts[0], cuts[-1]) == (0, len(text))
            assert cuts == sorted(cuts)
            assert all(cut == 0 or text[cut - 1 : cut] == b"\n" for cut in cuts)
