"""Features: each kind against its plain formula, all finite, named, and good to train on from raw text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_features import position_features, term_features

from fliprank.data.builtin import collection
from fliprank.data.candidates import Candidates
from fliprank.data.letor import read_letor
from fliprank.data.parquet import write_parquet
from fliprank.data.readers import read_candidates
from fliprank.errors import InputError, UsageError
from fliprank.experiment.training import train
from fliprank.measures import parse_measure
from fliprank.models import Linear
from fliprank.text.features.features import feature_names, feature_rows, features
from fliprank.text.features.kinds import POSITION_KINDS, QUERY_KINDS, TERM_KINDS, kind_table, streams
from fliprank.text.index import Index

FIELDS = ("title", "body")
QUERIES = collection() / "queries.jsonl"
words = st.sampled_from(["red", "blue", "shoes", "shoe", "the", "sky", "new", "york"])
texts = st.lists(words, max_size=12).map(" ".join)
queries = st.lists(st.one_of(words, st.just("zebra")), max_size=5).map(" ".join)


@pytest.fixture(scope="module")
def site() -> Index:
    return Index.build(collection())


def every_row(index: Index, asked: dict[str, str]) -> Candidates:
    """All documents for each query."""
    count = index.documents
    qid, docids = np.repeat([*asked], count), np.tile(index.docids.tolist(), len(asked))
    return Candidates.of(np.zeros(len(qid)), qid=qid, docids=docids)


def as_dict(rows: Candidates, row: int) -> dict[str, float]:
    assert rows.features is not None
    return dict(zip(rows.feature_names, rows.features[row].tolist(), strict=True))


def built(documents: list[tuple[str, str]], **options: Any) -> Index:
    rows = [{"_id": f"d{i}", **dict(zip(FIELDS, document, strict=True))} for i, document in enumerate(documents)]
    return Index.build(rows, **options)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=5), st.lists(queries, min_size=1, max_size=3))
def test_every_feature_is_its_plain_formula(documents: list[tuple[str, str]], texts: list[str]) -> None:
    index = built(documents)
    asked = {f"q{i}": text for i, text in enumerate(texts)}
    rows = features(index, every_row(index, asked), asked)
    analysed = [[index.analyzer.terms(text) for text in document] for document in documents]
    fields = [list(field) for field in zip(*analysed, strict=True)]
    fields.append([title + body for title, body in analysed])
    for q, text in enumerate(texts):
        query = index.analyzer.terms(text)
        known = sum(any(t in joined for joined in fields[-1]) for t in set(query))
        for d in range(len(documents)):
            expected = {"query_terms": len(set(query)), "query_length": len(query), "query_known": known}
            for stream, field in zip(streams(FIELDS), fields, strict=True):
                told = term_features(query, field[d], field) | position_features(query, field[d])
                expected |= {f"{stream}.{name}": value for name, value in told.items()}
            found = as_dict(rows, q * len(documents) + d)
            assert found.keys() == expected.keys()
            different = {n: (found[n], e) for n, e in expected.items() if found[n] != pytest.approx(e, 2e-6, 1e-6)}
            assert not different, f"{text!r} in {documents[d]}: {different}"
    assert np.isfinite(rows.features).all()


def test_the_built_in_collection_has_more_than_three_hundred_features_with_names_of_their_own(site: Index) -> None:
    rows = features(site, site.candidates(QUERIES, depth=5), QUERIES)
    assert rows.features is not None
    assert len(rows.feature_names) > 300
    assert len(set(rows.feature_names)) == len(rows.feature_names)
    assert np.isfinite(rows.features).all()
    assert set(site.columns) == {"pagerank", "url_depth", "url_length"} == set(rows.feature_names[:3])
    assert {"title.bm25", "text.tf.max", "all.phrase", "query_length"} <= set(rows.feature_names)
    dead = [n for n, spread in zip(rows.feature_names, np.ptp(rows.features, axis=0), strict=True) if spread == 0]
    assert {name.rpartition(".")[2] for name in dead} <= {"exact", "prefix", "or"}  # rows were found by their terms


def test_rows_do_not_depend_on_other_rows_queries_or_selection(site: Index) -> None:
    asked = {"a": "reset my password", "b": "rule that does not run"}
    both = features(site, every_row(site, asked), asked)
    alone = features(site, every_row(site, {"b": asked["b"]}), asked | {"c": "nobody asked this"})
    assert both.features is not None
    assert alone.features is not None
    np.testing.assert_array_equal(alone.features, both.features[len(site) :])
    some = features(site, both.take(np.arange(3, 50)), asked, select=["title.*", "*.cosine"])
    assert some.features is not None
    assert len(some.feature_names) == len(both.feature_names)  # those that were there are kept
    fresh = every_row(site, asked).take(np.arange(3, 50))
    few = features(site, fresh, asked, select=["title.*", "*.cosine"])
    assert few.features is not None
    assert len(few.feature_names) == 3 + len(TERM_KINDS) + len(POSITION_KINDS) + len(site.fields)
    places = [both.feature_names.index(name) for name in few.feature_names]
    np.testing.assert_array_equal(few.features, both.features[3:50, places])


def test_a_saved_index_gives_the_same_features(site: Index, tmp_path: Path) -> None:
    site.save(tmp_path / "site.index")
    asked = {"a": "invoice vat number"}
    one, other = (
        features(index, every_row(index, asked), asked) for index in (site, Index.open(tmp_path / "site.index"))
    )
    np.testing.assert_array_equal(one.features, other.features)


def test_without_positions_features_of_order_are_left_out_and_that_is_said() -> None:
    documents = [("red shoes", "red"), ("sky", "blue shoes"), ("", "")]
    with_order, without = built(documents), built(documents, positions=False)
    asked = {"q": "red shoes"}
    full, bare = (features(index, every_row(index, asked), asked) for index in (with_order, without))
    assert len(full.feature_names) - len(bare.feature_names) == 3 * len(POSITION_KINDS)
    assert bare.memo["notes"] == ("the index has no positions: 21 kinds of features are left out",)
    assert full.memo["notes"] == ()
    for row in range(3):
        assert as_dict(bare, row).items() <= as_dict(full, row).items()
    with pytest.raises(UsageError, match="no feature is called"):
        features(without, every_row(without, asked), asked, select=["title.phrase"])


def test_a_field_called_all_does_not_clash() -> None:
    index = Index.build([{"_id": "x", "all": "red", "query": "blue"}])
    names = feature_names(index)
    assert len(set(names)) == len(names) == len(QUERY_KINDS) + 3 * (len(TERM_KINDS) + len(POSITION_KINDS))
    row = as_dict(features(index, every_row(index, {"q": "red blue"}), {"q": "red blue"}), 0)
    assert (row["all.tf.sum"], row["all_.tf.sum"], row["query.length"], row["query_length"]) == (1, 2, 1, 2)


def test_queries_longer_than_any_field_and_terms_that_no_document_has() -> None:
    index = built([("red", "red sky " * 40), ("", "")])
    asked = {"long": "zebra " * 300 + "red sky red", "none": "the", "unknown": "zebra"}
    rows = features(index, every_row(index, asked), asked)
    assert np.isfinite(rows.features).all()
    first, none, unknown = (as_dict(rows, row) for row in (0, 2, 4))
    assert (first["query_length"], first["body.phrase.longest"], first["body.window.all"]) == (303, 3, 0)
    changing = ("length", "first", "pair", "query")
    assert not any(value for name, value in (none | unknown).items() if not any(word in name for word in changing))


def test_what_does_not_fit_is_an_error_that_names_it(site: Index) -> None:
    rows = every_row(site, {"a": "x"})
    with pytest.raises(InputError, match="query a: no text for this query"):
        features(site, rows, {"b": "x"})
    with pytest.raises(InputError, match="query a: document nowhere is not in the index"):
        features(site, Candidates.of([1], qid=["a"], docids=["nowhere"]), {"a": "x"})
    with pytest.raises(UsageError, match="document ids"):
        features(site, Candidates.of([1], qid=["a"]), {"a": "x"})
    with pytest.raises(UsageError, match="no feature is called 'titel"):
        features(site, rows, {"a": "x"}, select=["titel.*"])


def test_training_on_features_of_raw_text_beats_bm25(site: Index, tmp_path: Path) -> None:
    rows = feature_rows(site, QUERIES, collection() / "qrels" / "train.tsv", depth=50)
    write_parquet(tmp_path / "rows.parquet", rows)
    back = read_candidates(tmp_path / "rows.parquet")
    assert back.feature_names == rows.feature_names
    np.testing.assert_array_equal(back.features, rows.features)
    measure = parse_measure("nDCG(dcg='exp-log2')@10")
    assert back.features is not None
    bm25 = back.features[:, back.feature_names.index("all.bm25")].astype(np.float64)
    fit = train(Linear(), back, measure=measure, epochs=20)
    plain, learned = (measure.aggregate(measure.per_query(s, back)) for s in (bm25, fit.model.score(back)))
    assert learned > plain + 0.05
    assert (tmp_path / "rows.parquet").stat().st_size < rows.features.nbytes


def test_the_command_makes_files_that_train_reads(tmp_path: Path) -> None:
    def fliprank_does(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fliprank", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    wanted = ("--depth", "5", "--select", "*.bm25", "--select", "query_*")
    done = fliprank_does("features", "--beir", collection(), *wanted, "--out", "rows.parquet")
    assert done.returncode == 0, done.stderr
    assert "queries have no judgements" in done.stdout
    rows = read_candidates(tmp_path / "rows.parquet")
    assert len(rows.feature_names) == 3 + 5 + 3
    assert np.isnan(rows.labels).any()

    folder = collection()
    given = ("--docs", folder, "--queries", QUERIES, "--qrels", folder / "qrels" / "train.tsv")
    assert fliprank_does("features", *given, *wanted, "--out", "rows.txt").returncode == 0
    plain = read_letor(tmp_path / "rows.txt", unjudged=-1)
    np.testing.assert_array_equal(plain.features, rows.features)
    np.testing.assert_array_equal(plain.labels, rows.labels)
    assert tuple((tmp_path / "rows.txt.names").read_text().split()) == rows.feature_names

    wrong = fliprank_does("features", "--docs", folder)
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "fliprank: give --docs or --index (one of the two) and --queries; or give --beir\n",
    )
    assert fliprank_does("features", "--kinds").stdout.strip() == kind_table()


def test_the_page_has_the_table_of_kinds() -> None:
    page = Path(__file__).parents[2] / "docs" / "features.md"
    assert kind_table() in page.read_text()
    named = [*TERM_KINDS, *POSITION_KINDS, *QUERY_KINDS]
    assert len({kind.name for kind in named}) == len(named)
