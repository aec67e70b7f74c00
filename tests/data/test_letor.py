"""LETOR files: what is written is read back, every defect is named with its line, real files give the known numbers."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data import letor
from fliprank.data.candidates import Candidates
from fliprank.data.letor import read_letor, write_letor
from fliprank.data.parquet import read_parquet, write_parquet
from fliprank.errors import InputError, UsageError

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "letor"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no shared data at {DATA}")

words = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters=" \t\n\v\f\r#"), min_size=1, max_size=8)
floats = st.floats(allow_nan=False, allow_infinity=False, width=32)


def write(folder: Path, text: str | bytes, name: str = "rows.txt") -> Path:
    path = folder / name
    raw = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def assert_same(a: Candidates, b: Candidates) -> None:
    assert a.offsets.tolist() == b.offsets.tolist()
    assert a.qids.tolist() == b.qids.tolist()
    np.testing.assert_array_equal(a.labels, b.labels)
    assert (a.docids is None) == (b.docids is None)
    assert a.docids is None or a.docids.tolist() == b.docids.tolist()
    assert (a.features is None) == (b.features is None)
    if a.features is not None:
        assert a.features.shape == b.features.shape
        np.testing.assert_array_equal(a.features.view(np.uint32), b.features.view(np.uint32))


@st.composite
def candidates(draw: st.DrawFn) -> Candidates:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    rows, width = sum(sizes), draw(st.integers(0, 5))
    qids = draw(st.lists(words, min_size=len(sizes), max_size=len(sizes), unique=True))
    docids = draw(st.none() | st.lists(words, min_size=rows, max_size=rows, unique=True))
    values = draw(st.lists(floats, min_size=rows * width, max_size=rows * width))
    labels = draw(
        st.lists(st.sampled_from([0.0, 1.0, 2.5, 1e-9, 1e20, 0.1, np.nan]), min_size=rows, max_size=rows)
        | st.lists(st.sampled_from([1.0, np.nan]), min_size=rows, max_size=rows)
        | st.lists(st.sampled_from([-1.0, 0.0, 3.0]), min_size=rows, max_size=rows)
    )
    matrix = np.array(values, np.float32).reshape(rows, width) if width else None
    # Not by np.repeat, whose strings lose a NUL at their end.
    qid = [name for name, size in zip(qids, sizes, strict=True) for _ in range(size)]
    return Candidates.of(labels, qid=qid, docids=docids, features=matrix)


@settings(deadline=None, max_examples=80)
@given(candidates(), st.sampled_from(["rows.txt", "rows.txt.gz"]))
def test_what_is_written_is_read_back(rows: Candidates, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        options = {"unjudged": None} if (rows.labels == -1).any() else {}
        write_letor(path, rows, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # all labels -1 and 1
            assert_same(rows, read_letor(path, cache=False, **options))
            assert_same(rows, read_letor(path, **options))
            assert_same(rows, read_letor(path, **options))


sparse_rows = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from("abc"), st.dictionaries(st.integers(1, 40), floats, max_size=6)),
    min_size=1,
    max_size=12,
)


@settings(deadline=None, max_examples=80)
@given(sparse_rows, st.sampled_from([16, 64, 1 << 20]), st.booleans())
def test_sparse_unsorted_rows_give_the_matrix_they_describe_in_chunks_of_any_size(
    rows: list[tuple[int, str, dict[int, float]]], chunk: int, crlf: bool
) -> None:
    end = "\r\n" if crlf else "\n"
    lines = [" ".join([str(y), f"qid:{q}", *(f"{i}:{v!r}" for i, v in x.items())]) for y, q, x in rows]
    order = sorted(range(len(rows)), key=lambda r: [q for _, q, _ in rows].index(rows[r][1]))
    width = max(max(x, default=0) for _, _, x in rows)
    expected = np.zeros((len(rows), width), np.float32)
    for r, row in enumerate(order):
        for i, v in rows[row][2].items():
            expected[r, i - 1] = v
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(letor, "CHUNK", chunk)
        found = read_letor(write(Path(folder), end.join(lines)), cache=False)
    assert found.labels.tolist() == [rows[row][0] for row in order]
    assert np.repeat(found.qids.tolist(), found.sizes).tolist() == [rows[row][1] for row in order]
    np.testing.assert_array_equal(found.features if width else np.empty((len(rows), 0)), expected)


def test_every_bit_pattern_of_float32_survives_writing(tmp_path: Path) -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 32, 200_000, dtype=np.uint32).view(np.float32)
    edges = np.array([0, -0.0, 1e-45, 1.1754944e-38, 3.4028235e38, -3.4028235e38, 16777216, 0.1, 9.5367e-07])
    values = np.append(bits[np.isfinite(bits)][: 199_000 - len(edges)], edges.astype(np.float32)).reshape(-1, 10)
    rows = Candidates.of(np.zeros(len(values)), features=values)
    write_letor(tmp_path / "rows.txt", rows)
    assert_same(rows, read_letor(tmp_path / "rows.txt", cache=False))


def test_integers_are_written_without_a_point(tmp_path: Path) -> None:
    rows = Candidates.of([2.0, 0.5], qid=["q", "q"], docids=["a", "b"], features=[[3.0, 0.25], [0.0, -7.0]])
    write_letor(tmp_path / "rows.txt", rows)
    assert (tmp_path / "rows.txt").read_text() == "2 qid:q 1:3 2:0.25 #docid = a\n0.5 qid:q 1:0 2:-7 #docid = b\n"


def test_what_the_format_can_not_hold_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    for bad in (
        Candidates.of([0, 0], qid=["a b", "c"]),
        Candidates.of([0, 0], qid=["a#b", "c"]),
        Candidates.of([0, 0], docids=["x\ty", "c"]),
        Candidates.of([0, 0], docids=["", "c"]),
        Candidates.of([-1, np.nan]),
        Candidates.of([-1, 0]),
    ):
        with pytest.raises(InputError, match=r"rows\.txt"):
            write_letor(path, bad)
    with pytest.raises(InputError, match="some rows are not judged"):
        write_letor(path, Candidates.of([0, np.nan]), unjudged=None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("comments", "expected"),
    [
        (["#docid = GX008-86-4444840 inc = 1 prob = 0.08", "#docid = GX1"], ["GX008-86-4444840", "GX1"]),
        (["# 7555 rambo", "#1370"], ["7555", "1370"]),
        (["# docid=a", "#docid  =  b"], ["a", "b"]),
        (["# docid", "#docids = 3"], ["docid", "docids"]),
        (["#docid = a#b", "# =c"], ["a#b", "=c"]),
        (["#", ""], None),
        (["", ""], None),
    ],
)
def test_the_document_id_comes_from_the_comment(tmp_path: Path, comments: list[str], expected: list[str]) -> None:
    path = write(tmp_path, f"0 qid:1 1:1 {comments[0]}\n1 qid:1 1:2{comments[1]}\n")
    docids = read_letor(path).docids
    assert (docids if docids is None else docids.tolist()) == expected


def test_blank_lines_and_comment_lines_are_skipped_but_counted(tmp_path: Path) -> None:
    text = "# made by hand\r\n\r\n  \t\n1 qid:1 1:2\n # between\n0 qid:1 1:oops\n"
    with pytest.raises(InputError, match="line 6: expected a number"):
        read_letor(write(tmp_path, text))
    assert read_letor(write(tmp_path, text.replace("oops", "3"))).features.tolist() == [[2.0], [3.0]]


GOOD = "1 qid:1 1:0.5 2:1 #docid = a\n"
DEFECTS = [
    ("x qid:1 1:1 # b", "expected a number as label, found 'x'"),
    ("nan qid:1 1:1 # b", "as label"),
    ("1e999 qid:1 1:1 # b", "as label"),
    ("qid:1 1:1 # b", "as label"),
    ("1 qid: 1:1 # b", "empty query id"),
    ("1 qid:1 1:x # b", "expected a number after the colon, found '1:x'"),
    ("1 qid:1 1: # b", "after the colon"),
    ("1 qid:1 1:1:1 # b", "after the colon"),
    ("1 qid:1 1:inf # b", "after the colon"),
    ("1 qid:1 1:0x1p3 # b", "after the colon"),
    ("1 qid:1 1:NULL # b", "missing='min'"),
    ("1 qid:1 1:nan # b", "missing='min'"),
    ("1 qid:1 17 # b", "expected index:value, found '17'"),
    ("1 qid:1 a:1 # b", "expected index:value"),
    ("1 qid:1 -1:1 # b", "expected index:value"),
    ("1 qid:1 :1 # b", "expected index:value"),
    ("1 qid:1 1:1 qid:1 # b", "expected index:value"),
    ("1 qid:1 0:1 # b", "numbered from 1"),
    ("1 qid:1 1:1 1:1 # b", "twice: '1:1'"),
    ("1 qid:1 2:1 900:7 1:1 900:8 # b", "twice: '900:8'"),
    ("1 qid:1 20001:1 # b", "at most 20,000 features, found .* n_features=N"),
    ("1 qid:1 99999999999999999999999999:1 # b", "at most 20,000"),
    ("1 1:1 # b", "with and without qid"),
    ("1 qid:1 1:1", "with and without a document id"),
    (b"1 qid:1 1:1 # \xff", "0xff is not UTF-8"),
]


@pytest.mark.parametrize(("line", "message"), DEFECTS)
@pytest.mark.parametrize("chunk", [8, 1 << 20])
def test_a_defect_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str | bytes, message: str, chunk: int
) -> None:
    monkeypatch.setattr(letor, "CHUNK", chunk)
    bad = line if isinstance(line, bytes) else line.encode()
    path = write(tmp_path, f"# a comment\n{GOOD}".encode() + bad + b"\n" + bad + b"\n")
    with pytest.raises(InputError, match=message) as caught:
        read_letor(path)
    assert caught.value.line == 3
    assert caught.value.path == str(path)


def test_an_index_beyond_n_features_is_a_defect_and_n_features_fixes_the_width(tmp_path: Path) -> None:
    path = write(tmp_path, "0 qid:1 1:1\n0 qid:1 4:1\n")
    with pytest.raises(InputError, match="line 2: expected at most 3 features, found '4:1'"):
        read_letor(path, n_features=3)
    assert read_letor(path).features.shape == (2, 4)
    assert read_letor(path, n_features=9).features.shape == (2, 9)


def test_a_matrix_too_large_for_the_machine_is_refused_not_allocated(tmp_path: Path) -> None:
    path = write(tmp_path, "0 qid:1 1000000:1\n" + "0 qid:1 1:1\n" * 500_000)
    with pytest.raises(InputError, match="line 1: 1,000,000 features"):
        read_letor(path, cache=False, n_features=1_000_000)


def test_one_wide_line_among_many_short_ones_is_refused_unless_it_is_meant(tmp_path: Path) -> None:
    path = write(tmp_path, "0 qid:1 1:1\n" * 10_000 + "0 qid:1 15000:1\n")
    with pytest.raises(InputError, match=r"feature 15,000: 10,001 rows .* 572 MiB, nearly all 0 .*n_features=15000"):
        read_letor(path, cache=False)
    assert read_letor(path, cache=False, n_features=15_000).features.shape == (10_001, 15_000)


@pytest.mark.parametrize("text", ["", "\n \n", "# only a comment\n"])
def test_a_file_without_rows_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="no rows"):
        read_letor(write(tmp_path, text))


def test_files_that_can_not_be_read_are_named(tmp_path: Path) -> None:
    zipped = gzip.compress(GOOD.encode() * 1000)
    for raw in (zipped[:-9], zipped[:40] + b"\0\0\0\0" + zipped[44:], b"\x1f\x8bnonsense"):
        (tmp_path / "bad.gz").write_bytes(raw)
        with pytest.raises(InputError, match=r"bad\.gz"):
            read_letor(tmp_path / "bad.gz")
    with pytest.raises(InputError, match="no such file"):
        read_letor(tmp_path / "absent.txt")
    with pytest.raises(InputError, match="folder"):
        read_letor(tmp_path)


def test_arguments_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    for options in ({"missing": "mean"}, {"n_features": 0}, {"n_features": 10**7}):
        with pytest.raises(UsageError):
            read_letor(path, **options)


def test_missing_values_become_what_the_caller_says(tmp_path: Path) -> None:
    path = write(tmp_path, "0 qid:1 1:NULL 2:5\n1 qid:2 1:1 2:NULL\n0 qid:1 1:4 2:nan\n0 qid:1 1:3 2:7\n")
    nan = np.nan
    for missing, expected in (
        ("min", [[3, 5], [4, 5], [3, 7], [1, 0]]),
        ("zero", [[0, 5], [4, 0], [3, 7], [1, 0]]),
        ("nan", [[nan, 5], [4, nan], [3, 7], [1, nan]]),
    ):
        for _ in range(2):  # parsed, then cached
            np.testing.assert_array_equal(read_letor(path, missing=missing).features, np.array(expected, np.float32))


def test_values_beyond_float32_are_cut_with_one_warning(tmp_path: Path) -> None:
    path = write(tmp_path, "0 qid:1 1:3.4028235e38 2:1\n0 qid:1 1:1.797e308 2:-1e999\n0 qid:1 1:4e38 2:0\n")
    largest = np.finfo(np.float32).max
    for _ in range(2):  # parsed, then cached
        with pytest.warns(UserWarning, match="line 2: the first of 3 values") as caught:
            found = read_letor(path)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert found.features.tolist() == [[largest, 1], [largest, -largest], [largest, 0]]


def test_rows_labelled_minus_one_are_not_judged_unless_labels_are_taken_as_they_stand(tmp_path: Path) -> None:
    path = write(tmp_path, "-1 qid:1 1:1\n2 qid:1 1:1\n-1.0 qid:1 1:1\n-2 qid:1 1:1\n")
    for _ in range(2):  # parsed, then cached
        np.testing.assert_array_equal(read_letor(path).labels, [np.nan, 2, np.nan, -2])
        assert read_letor(path, unjudged=None).labels.tolist() == [-1, 2, -1, -2]
        np.testing.assert_array_equal(read_letor(path, unjudged=-2).labels, [-1, 2, -1, np.nan])


def test_labels_of_minus_one_and_one_only_are_read_with_a_warning(tmp_path: Path) -> None:
    """SVMlight's binary convention or judgements of relevant documents only: the file does not say."""
    path = write(tmp_path, "-1 qid:1 1:1\n+1 qid:1 1:2\n-1 qid:2 1:1\n")
    for _ in range(2):  # parsed, then cached
        with pytest.warns(UserWarning, match=r"all labels are -1 or 1; the 2 rows .* unjudged=None"):
            np.testing.assert_array_equal(read_letor(path).labels, [np.nan, 1, np.nan])
    other = write(tmp_path, "-1 qid:1 1:1\n0 qid:1 1:2\n1 qid:2 1:1\n", "graded.txt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_letor(path, unjudged=None).labels.tolist() == [-1, 1, -1]
        read_letor(other)


def test_what_unjudged_rows_are_survives_letor_and_parquet(tmp_path: Path) -> None:
    rows = Candidates.of([1, np.nan, 0, np.nan], qid=list("aabb"), docids=list("wxyz"), features=np.eye(4))
    write_letor(tmp_path / "rows.txt", rows)
    write_parquet(tmp_path / "rows.parquet", read_letor(tmp_path / "rows.txt"))
    write_letor(tmp_path / "again.txt", read_parquet(tmp_path / "rows.parquet"))
    assert_same(rows, read_letor(tmp_path / "again.txt"))
    assert (tmp_path / "again.txt").read_bytes() == (tmp_path / "rows.txt").read_bytes()


def test_group_sizes_come_from_the_side_file(tmp_path: Path) -> None:
    for name in ("rank.train", "rank.train.gz"):
        path = write(tmp_path, "0 1:1\n1 2:1\n2 1:3\n", name)
        with pytest.raises(InputError, match=r"no line has a qid .*rank\.train\.query"):
            read_letor(path)
        for text, message in (("2\n2\n", "add up to 4"), ("1\ntwo\n", "query, line 2: .*'two'"), ("-1\n4", "line 1")):
            write(tmp_path, text, "rank.train.query")
            with pytest.raises(InputError, match=message):
                read_letor(path)
        write(tmp_path, "1\r\n2\r\n", "rank.train.query")
        assert read_letor(path).sizes.tolist() == [1, 2]
        write(tmp_path, "2\r\n1\r\n", "rank.train.query")
        assert read_letor(path).sizes.tolist() == [2, 1]  # not what was cached for the sizes before
        assert read_letor(path).qids.tolist() == ["1", "2"]
        (tmp_path / "rank.train.query").unlink()


def test_rows_already_grouped_are_not_copied(tmp_path: Path) -> None:
    features = read_letor(write(tmp_path, GOOD), cache=False).features
    assert features.base.base is None or features.base.base.ndim == 1


MEMORY = """
import sys
from fliprank.data.letor import read_letor

def peak():  # not ru_maxrss: a child starts with that of the process that started it
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))

read_letor(sys.argv[2], cache=False)
before = peak()
rows = read_letor(sys.argv[1], cache=sys.argv[3] == "cache")
print(peak() - before, rows.features.nbytes)
"""
ALLOWANCE = 12 << 20
"""Beyond the matrix and a chunk: buffers of the file layer, what the allocator keeps."""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize("cache", ["cache", "no"])
def test_reading_holds_little_more_than_the_matrix(tmp_path: Path, cache: str) -> None:
    values = np.random.default_rng(0).random((64, 100))
    block = [" ".join(f"{i + 1}:{v:.4f}" for i, v in enumerate(row)) for row in values]
    with (tmp_path / "large.txt").open("w") as file:
        for r in range(62_000):
            file.write(f"{r % 3} qid:{r // 20} {block[r % 64]} #docid = GX{r:08d}\n")
    small = write(tmp_path, GOOD, "small.txt")
    assert (tmp_path / "large.txt").stat().st_size > 60e6
    command = [sys.executable, "-c", MEMORY, str(tmp_path / "large.txt"), str(small), cache]
    grown, matrix = map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert matrix == 62_000 * 100 * 4
    assert matrix <= grown < 1.5 * matrix + letor.CHUNK + ALLOWANCE


@needs_data
def test_mq2008_has_its_known_rows() -> None:
    parts = [read_letor(DATA / f"MQ2008/Fold{fold}/test.txt.gz", cache=False) for fold in range(1, 6)]
    assert {part.features.shape[1] for part in parts} == {46}
    assert sum(part.queries for part in parts) == 784
    assert sum(len(part) for part in parts) == 15_211
    assert parts[0].docids[0].startswith("GX")
    relevant = [np.add.reduceat(part.labels, part.offsets[:-1]) for part in parts]
    assert sum(int((each == 0).sum()) for each in relevant) == 220


REAL = [
    "MQ2008/Fold1/vali.txt.gz",
    "MSLR-sample/chang-li/mslr_fold1_test_sample.txt.gz",
    "MSLR-sample/rankeval_5k/msn1.fold1.train.5k.txt.gz",
    "lightgbm-example/rank.train.gz",
    "lightgbm-example/rank.test.gz",
]


@needs_data
@pytest.mark.parametrize("name", REAL)
def test_real_files_have_the_values_that_sklearn_reads(name: str) -> None:
    from sklearn.datasets import load_svmlight_file

    path = DATA / name
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = read_letor(path, cache=False)
    matrix, labels, qid = load_svmlight_file(str(path), query_id=True, zero_based=False)
    np.testing.assert_array_equal(rows.features, matrix.toarray().astype(np.float32))
    np.testing.assert_array_equal(rows.labels, labels)
    sizes = path.with_name(path.name.removesuffix(".gz") + ".query")
    if sizes.is_file():
        assert rows.sizes.tolist() == [int(word) for word in sizes.read_text().split()]
    else:
        assert np.repeat(rows.qids.tolist(), rows.sizes).astype(int).tolist() == qid.tolist()


@needs_data
def test_a_real_file_survives_writing(tmp_path: Path) -> None:
    rows = read_letor(DATA / "MQ2008/Fold1/vali.txt.gz", cache=False)
    write_letor(tmp_path / "copy.gz", rows)
    assert_same(rows, read_letor(tmp_path / "copy.gz", cache=False))
