"""Candidates: the top of a ranker, all judged documents, a sample; what is left out is counted and told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fliprank.data.builtin import collection
from fliprank.data.trec import Qrels, judge, read_qrels
from fliprank.errors import InputError, UsageError
from fliprank.text.index import Index
from fliprank.text.search.candidates import LeftOut

NAMES = ["red", "green", "blue", "grey"]
COLOURS = [{"_id": name, "text": f"{name} paint", "weight": i} for i, name in enumerate(NAMES)]


@pytest.fixture(scope="module")
def help_pages() -> Index:
    return Index.build(collection())


def test_candidates_are_the_top_and_all_judged_documents(help_pages: Index) -> None:
    qrels = read_qrels(collection() / "qrels" / "test.tsv")
    rows = help_pages.candidates(collection(), collection() / "qrels" / "test.tsv", depth=7)
    run = help_pages.search(collection(), depth=7).to_dict()
    judged = qrels.to_dict()
    assert set(rows.qids.tolist()) == set(judged)
    for q, qid in enumerate(rows.qids.tolist()):
        span = np.arange(*rows.offsets[q : q + 2])
        docids = rows.docids.take(span).tolist()  # type: ignore[union-attr]
        best = list(run[qid])
        assert docids[: len(best)] == best
        assert set(docids) == set(best) | set(judged[qid])
        labels = [judged[qid].get(docid, np.nan) for docid in docids]
        np.testing.assert_array_equal(rows.labels[span], labels)
    assert rows.feature_names == ("url_depth", "url_length", "pagerank")
    assert rows.features is not None
    pages = [help_pages.docids.tolist().index(docid) for docid in rows.docids.tolist()]  # type: ignore[union-attr]
    np.testing.assert_array_equal(rows.features[:, 2], help_pages.columns["pagerank"][pages].astype(np.float32))
    rows.validated()


def test_judgements_agree_with_those_of_a_judged_run(help_pages: Index) -> None:
    """The same labels and ideal rankings as `judge` finds for the run of all candidates."""
    qrels = read_qrels(collection() / "qrels" / "train.tsv")
    rows = help_pages.candidates(collection(), qrels, depth=300)
    run = help_pages.search(collection(), depth=300)
    other = judge(qrels, run).candidates
    assert np.nansum(rows.labels) + rows.missed_labels.sum() == np.nansum(other.labels) + other.missed_labels.sum()


def test_unknown_documents_and_queries_are_counted_and_listed() -> None:
    index = Index.build(COLOURS)
    qrels = {"a": {"red": 1, "none": 2, "nil": 0}, "x": {"red": 1}, "b": {"blue": 3}}
    pool = index.pool({"a": "red", "b": "paint", "c": "green"}, qrels)
    assert pool.candidates.qids.tolist() == ["a", "b"]
    assert pool.candidates.missed_labels.tolist() == [2, 0]
    assert pool.candidates.missed_offsets.tolist() == [0, 2, 2]
    assert pool.notes == (
        "1 of 3 queries have no judgements: c",
        "1 of 3 judged queries are not among the queries: x",
        "2 of 4 judged documents are not in the index: none, nil",
    )
    kinds = [LeftOut.UNJUDGED_QUERIES, LeftOut.UNKNOWN_QUERIES, LeftOut.UNKNOWN_DOCUMENTS]
    assert pool.left_out == dict(zip(kinds, pool.notes, strict=True))
    assert index.candidates({"a": "red", "b": "paint", "c": "green"}, qrels).memo["notes"] == pool.notes


def test_it_is_an_error_when_nothing_is_left() -> None:
    index = Index.build(COLOURS)
    with pytest.raises(InputError, match=r"no judged document is in the index \(judged: nil; indexed: red\)"):
        index.pool({"a": "red"}, {"a": {"nil": 1}})
    with pytest.raises(InputError, match=r"no query has judgements \(queries: a; judged: b\)"):
        index.pool({"a": "red"}, {"b": {"red": 1}})
    with pytest.raises(InputError, match="no queries"):
        index.pool({})
    with pytest.raises(UsageError, match="negative"):
        index.pool({"a": "red"}, sample=-1)


def test_a_query_without_terms_keeps_its_place_and_its_judgements() -> None:
    pool = Index.build(COLOURS).pool({"a": "to be or not", "b": "red"}, {"a": {"red": 2}, "b": {"red": 1}})
    assert pool.candidates.sizes.tolist() == [0, 1]
    assert pool.candidates.missed_labels.tolist() == [2]
    assert pool.left_out == {LeftOut.EMPTY_QUERIES: "1 of 2 queries have no terms left: a"}
    assert pool.unmatched == 1


def test_judged_documents_without_any_query_term_are_rows() -> None:
    rows = Index.build(COLOURS).candidates({"a": "zebra"}, {"a": {"red": 0, "blue": 1}})
    assert dict(zip(rows.docids.tolist(), rows.labels, strict=True)) == {"red": 0, "blue": 1}  # type: ignore[union-attr]
    assert rows.terms is not None
    assert rows.terms.tf.tolist() == [[0], [0]]


def test_without_judgements_all_queries_stay() -> None:
    rows = Index.build(COLOURS).candidates({"a": "red", "b": "paint"})
    assert rows.sizes.tolist() == [1, 4]
    assert np.isnan(rows.labels).all()
    assert rows.features is not None
    assert rows.features[0].tolist() == [0]


def test_a_sample_is_of_documents_with_all_terms_and_depends_on_the_seed_only() -> None:
    documents = [{"_id": i, "text": "red paint" if i % 2 else "red red red"} for i in range(60)]
    index = Index.build(documents)
    rows = index.candidates({"a": "red paint", "b": "red"}, depth=0, sample=10, seed=3)
    again = index.candidates({"a": "red paint", "b": "red"}, depth=0, sample=10, seed=3)
    other = index.candidates({"a": "red paint", "b": "red"}, depth=0, sample=10, seed=4)
    assert rows.docids is not None
    assert rows.sizes.tolist() == [10, 10]
    assert all(int(docid) % 2 for docid in rows.docids.tolist()[:10])
    assert rows.docids == again.docids
    assert rows.docids != other.docids
    assert index.candidates({"a": "red paint"}, depth=5, sample=1000).sizes.tolist() == [30]


def test_a_document_that_is_ranked_and_judged_and_drawn_is_one_row() -> None:
    rows = Index.build(COLOURS).candidates({"a": "paint"}, {"a": {"red": 1, "blue": 0}}, sample=9)
    assert rows.docids is not None
    assert sorted(rows.docids.tolist()) == ["blue", "green", "grey", "red"]


def test_negative_labels_are_not_judgements(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("a 0 red -1\na 0 blue 2\nb 0 red -1\n")
    pool = Index.build(COLOURS).pool({"a": "paint", "b": "red"}, tmp_path / "qrels")
    assert pool.candidates.qids.tolist() == ["a"]
    assert np.nansum(pool.candidates.labels) == 2
    assert isinstance(read_qrels(tmp_path / "qrels"), Qrels)


def test_the_example_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "text.md").read_text()
    exec(page.split("```python\n")[1].split("```")[0], {})  # our own page
    assert "113" in capsys.readouterr().out
