"""Tables of judgements: Quepid's export, several raters and their agreement, ids made of texts, errors."""

from __future__ import annotations

import csv
import gzip
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fliprank.data.judgement_table import alpha, query_id, read_judgement_table, same_share
from fliprank.data.query_doc_table import first_unfit
from fliprank.data.trec import Qrels, Run, read_qrels, read_run, write_qrels, write_run
from fliprank.errors import InputError

ICECAT = Path(__file__).parents[2].parent / "shared" / "data" / "text" / "icecat"


def written(folder: Path, text: str) -> Path:
    path = folder / "judgements.csv"
    path.write_text(text)
    return path


def test_a_real_export_is_what_its_qrels_are() -> None:
    if not ICECAT.is_dir():
        pytest.skip(f"no {ICECAT}")
    found = read_qrels(ICECAT / "judgements.csv")
    with (ICECAT / "judgements.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    expected: dict[str, dict[str, float]] = {}
    for row in rows:
        expected.setdefault(row["query"], {})[row["docid"]] = float(row["rating"])
    assert {found.texts[qid]: labels for qid, labels in found.to_dict().items()} == {
        " ".join(query.split()): labels for query, labels in expected.items()
    }
    assert found.notes == ()


@pytest.mark.parametrize(
    "text",
    [
        "query,docid,rating\nred shoes,d1,2\nred shoes,d2,0.5\nsky,d1,1\n",
        "query;docid;rating\nred shoes;d1;2\nred shoes;d2;0,5\nsky;d1;1\n",
        'Query Text\tDoc ID\tTitle\tRating\n"red\n shoes"\td1\tx\t2\nred  shoes\t d2 \ty\t.5\nsky\td1\tz\t1\n',
        "\ufeffdocid,rating,query\r\nd1,2,red shoes\r\n\r\nd2,5e-1,red shoes\r\nd1,1,sky\r\n",
        "query,docid,anna,ben\nred shoes,d1,3,1\nred shoes,d2,,0.5\nsky,d1,1,\n",
        "query,docid,rating_anna,rating_ben,seen\nred shoes,d1,3,1,yes\nred shoes,d2,-1,0.5,no\nsky,d1,1,,\n",
    ],
)
def test_tables_that_say_the_same_are_read_alike(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    for given_path in (path, tmp_path / "judgements.csv.gz"):
        found = read_qrels(given_path)
        assert found.to_dict() == {"red_shoes": {"d1": 2, "d2": 0.5}, "sky": {"d1": 1}}
        assert found.texts == {"red_shoes": "red shoes", "sky": "sky"}
        (tmp_path / "judgements.csv.gz").write_bytes(gzip.compress(path.read_bytes()))


def test_ids_of_queries_are_taken_where_there_are_some(tmp_path: Path) -> None:
    found = read_qrels(written(tmp_path, "query_id,query,docid,label\n7,sky,d1,1\n8,sky,d1,0\n"))
    assert found.to_dict() == {"7": {"d1": 1}, "8": {"d1": 0}}
    assert found.texts == {"7": "sky", "8": "sky"}
    assert read_qrels(written(tmp_path, "qid,docid,grade\n7,d1,1\n")).texts == {}


def test_what_nobody_rated_is_left_out_and_told(tmp_path: Path) -> None:
    found = read_qrels(written(tmp_path, "query,docid,rating\na,d1,1\na,d2,\nb,d1, \nc,,\na,d3,-1\n"))
    assert found.to_dict() == {"a": {"d1": 1}}
    assert found.notes == ("4 of 5 lines have no rating and were left out",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("query,docid,rating\na,d1,1\na,d2,good\n", "line 3: the rating 'good' is not a finite number"),
        ("query,docid,rating\na,d1,1\na,d2,inf\n", "line 3: the rating 'inf' is not a finite number"),
        ("query,docid,anna,title\na,d1,1,Red\n", "line 2: the rating 'Red' is not a finite number"),
        ("query,docid,rating\na,,1\n", "line 2: a rating without a document"),
        ("query,docid,rating\n ,d1,1\n", "line 2: a rating without a query"),
        (
            'query,docid,rating\n"a\nb",d1,1\nb,d1,1\na b,d1,2\n',
            "line 5, query a_b: document d1 occurs twice (first on",
        ),
        ("query,docid,rating\na,d1\n", "line 2: expected 3 cells, found 2"),
        ("query,docid,rating\na,d1,\n", "judgements.csv: no ratings"),
        ("query,docid\na,d1\n", "line 1: no column of ratings"),
        ("qid,query,docid,rating\n1,a,d1,1\n1,b,d2,1\n", "line 3, query 1: the query is 'b' here, and 'a' before"),
        (
            "query,document,rating\na,d1,1\n",
            "line 1: expected 4 columns, found 1 (a line is: qid iteration docno label",
        ),
    ],
)
def test_what_is_wrong_is_named_by_file_and_line(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_qrels(path)
    assert str(path.parent) in str(caught.value)
    assert said in str(caught.value)


@given(st.text(), st.text())
def test_ids_fit_trec_files_and_differ_where_the_words_do(first: str, second: str) -> None:
    assume(first.split() and not any(0xD800 <= ord(c) < 0xE000 for c in first + second))
    name = query_id(first)
    assert len(name.split()) == 1
    assert name.isprintable()
    assert (name == query_id(second)) == (first.split() == second.split())


def test_judgements_and_runs_under_such_ids_survive_a_trec_file(tmp_path: Path) -> None:
    found = read_qrels(written(tmp_path, "query,docid,rating\n100% wool_x,d1,1.25\nschöne\u00a0Schuhe,d1,1\n"))
    assert first_unfit(*found.qids.arrays) == -1
    write_qrels(tmp_path / "qrels", found)
    assert read_qrels(tmp_path / "qrels").to_dict() == found.to_dict()
    run = Run.of({qid: {"d1": 1.0} for qid in found.qids.tolist()})
    write_run(tmp_path / "run", run)
    assert read_run(tmp_path / "run").to_dict() == run.to_dict()
    assert isinstance(found, Qrels)


_ = np.nan
KRIPPENDORFF = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
).T
"""Four observers, twelve units: the example of Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), C."""


def test_alpha_is_that_of_krippendorffs_own_example() -> None:
    assert round(alpha(KRIPPENDORFF), 3) == 0.849


def slow_alpha(ratings: np.ndarray) -> float:
    """By its definition: all ordered pairs within a document, and of all ratings that can be paired."""
    units = [[v for v in row if not np.isnan(v)] for row in ratings.tolist()]
    units = [unit for unit in units if len(unit) > 1]
    values = [v for unit in units for v in unit]
    observed = sum(sum((a - b) ** 2 for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units)
    expected = sum((a - b) ** 2 for a, b in permutations(values, 2)) / (len(values) - 1)
    return 1 - observed / expected


def test_alpha_and_the_share_of_same_pairs_are_those_of_their_definitions() -> None:
    rng = np.random.default_rng(3)
    ratings = rng.integers(0, 4, (30, 1)) + rng.choice([0.0, 0.0, 0.5, 1.0, np.nan], (30, 4))
    assert alpha(ratings) == pytest.approx(slow_alpha(ratings), abs=1e-12)
    pairs = [
        row[a] == row[b]
        for row in ratings
        for a in range(4)
        for b in range(a)
        if not np.isnan(row[a]) and not np.isnan(row[b])
    ]
    assert same_share(ratings) == pytest.approx(np.mean(pairs))


def test_raters_are_averaged_and_their_agreement_is_told(tmp_path: Path) -> None:
    names = ["anna", "ben", "cleo", "dan"]
    cells = [["" if np.isnan(v) else f"{v:g}" for v in row] for row in KRIPPENDORFF]
    lines = [",".join(["query", "docid", *(f"rating_{name}" for name in names)])]
    lines += [",".join(["red shoes", f"d{i}", *row]) for i, row in enumerate(cells)]
    found = read_judgement_table(written(tmp_path, "\n".join(lines)))
    assert list(found.labels["red_shoes"].values()) == pytest.approx(np.nanmean(KRIPPENDORFF, axis=1).tolist())
    share = f"{same_share(KRIPPENDORFF):.0%}"
    assert found.notes == (
        "the labels are means of 4 raters; 11 of 12 documents were rated by more than one of them, who gave the same "
        f"rating in {share} of pairs; Krippendorff's alpha 0.85 (interval)",
    )


@pytest.mark.parametrize(
    ("rows", "said"),
    [("a,d1,1,\na,d2,,1\n", "their agreement is not known"), ("a,d1,1,1\na,d2,1,1\n", "all ratings are the same")],
)
def test_agreement_that_can_not_be_told_is_said_to_be_so(tmp_path: Path, rows: str, said: str) -> None:
    [note] = read_judgement_table(written(tmp_path, "query,docid,anna,ben\n" + rows)).notes
    assert note.endswith(said)
