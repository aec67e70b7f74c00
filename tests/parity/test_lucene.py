"""Lucene, which Elasticsearch, OpenSearch and Solr score with: its BM25 is ours, its BM25F is another function.

BM25FQuery (later CombinedFieldQuery; Elasticsearch's combined_fields) adds up the weighted frequencies and the weighted
lengths of all fields, and normalises once: F / (k1 B + F), F = sum_s w_s tf_s, B = 1 - b + b L / average L and
L = sum_s w_s l_s. That is BM25 of a text in which field s stands w_s times. BM25F normalises each field by its own
length: sum_s w_s tf_s / beta_s. The two agree where every field that has the term has beta_s = B: at b = 0, in one
field, or where all fields of a document are equally long for what is usual in them.

Lucene's scores are float32. It keeps the length of a field in one byte: exact to 40, then rounded down; the average is
of the true lengths. It counts only documents that have the field. Its df of several fields is the largest of them, ours
counts documents with the term in any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest
from lucene_engine import Lucene, quantised
from token_texts import FIELDS, TERMS, documents, index_of, queries

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.models import BM25, BM25F, BM25Sum
from fliprank.text.index import Index

SETTINGS = [(1.2, 0.75), (0.9, 0.4), (2.0, 0.0), (3.0, 1.0), (0.0, 0.5)]
WEIGHTS = {"title": 3.0, "headings": 1.5, "text": 1.0}
FLOAT32 = 2e-6
"""Relative: Lucene takes i - i / (1 + f), which loses some of float32's 1e-7."""


@dataclass(frozen=True)
class ByStatistics:
    """A model without its fast path: what it scores are term statistics."""

    model: BM25

    def score(self, candidates: Candidates) -> Floats:
        return self.model.score(candidates)


@pytest.fixture(scope="module")
def lucene() -> Lucene:
    return Lucene(documents(), FIELDS)


def rows_of(index: Index, asked: dict[str, str], hits: dict[str, dict[str, float]]) -> tuple[Candidates, Floats]:
    """Our rows for what Lucene found, in its order, with Lucene's scores."""
    rows = index.rows(asked, {qid: list(docs) for qid, docs in hits.items()})
    return rows, np.array([score for docs in hits.values() for score in docs.values()])


def in_order(rows: Candidates, scores: Floats) -> bool:
    """Whether no score is above that of the row before it, of the same query, by more than float32 parts them."""
    same = np.diff(rows.query_of_rows()) == 0
    return bool((scores[1:][same] <= scores[:-1][same] * (1 + FLOAT32)).all())


def rounded(rows: Candidates) -> Candidates:
    """With lengths as Lucene keeps them; averages stay those of the true lengths."""
    return replace(rows, terms=replace(rows.terms, length=quantised()[rows.terms.length.astype(int)]))


@pytest.mark.parametrize(("k", "b"), SETTINGS)
def test_bm25_is_lucenes_in_fields_short_enough_to_have_their_length_kept(lucene: Lucene, k: float, b: float) -> None:
    """Of the whole collection: the same documents with the same scores, from postings and from term statistics."""
    index = index_of("headings")
    assert index.length.max() <= 40
    model = BM25().prepared(index.rows(queries(), {}), 0).at([k, b])
    runs = [index.search(queries(), ranker).to_dict() for ranker in (model, ByStatistics(model))]
    for qid, query in queries().items():
        theirs = lucene.bm25(query, "headings", k, b)
        for run in runs:
            assert run.get(qid, {}) == pytest.approx(theirs, rel=FLOAT32)


@pytest.mark.parametrize(("k", "b"), SETTINGS)
def test_bm25_of_long_texts_is_lucenes_once_lengths_are_rounded_as_it_does(lucene: Lucene, k: float, b: float) -> None:
    index = index_of("text")
    hits = {qid: lucene.bm25(query, "text", k, b) for qid, query in queries().items()}
    rows, theirs = rows_of(index, queries(), hits)
    model = BM25().prepared(rows, 0).at([k, b])
    ours = model.score(rounded(rows))
    np.testing.assert_allclose(ours, theirs, FLOAT32)
    assert in_order(rows, ours)
    if b * k > 0:
        exact = np.abs(model.score(rows) / theirs - 1).max()
        assert 0.01 < exact < 1 / 8


def test_lucene_counts_only_the_documents_that_have_the_field() -> None:
    """In N, df and the average length; so its BM25 is ours of an index without the others."""
    some = [page | ({"headings": ""} if i % 3 == 0 else {}) for i, page in enumerate(documents())]
    engine = Lucene(some, ["headings"])
    having, all_of_them = (
        Index.build(pages, fields=["headings"], analyzer=TERMS).search(queries(), BM25()).to_dict()
        for pages in ([page for page in some if page["headings"]], some)
    )
    theirs = {qid: engine.bm25(query, "headings", 1.2, 0.75) for qid, query in queries().items()}
    for qid, scores in theirs.items():
        assert having.get(qid, {}) == pytest.approx(scores, rel=FLOAT32)
    assert any(all_of_them[qid] != pytest.approx(scores, rel=0.01) for qid, scores in theirs.items() if scores)


def test_lengths_to_40_are_kept_and_longer_ones_lose_less_than_an_eighth(lucene: Lucene) -> None:
    lengths = np.arange(len(quantised()))
    assert (quantised()[:41] == lengths[:41]).all()
    assert quantised()[[41, 100, 333, 1000]].tolist() == [40, 96, 312, 984]
    assert (quantised() <= lengths).all()
    assert (quantised()[1:] > lengths[1:] * 7 / 8).all()


def in_all_fields(index: Index) -> dict[str, str]:
    """The queries, of terms that stand in every field: of others Lucene 8 forgets fields, and even weights."""
    known = {term for term, df in zip(index.terms.tolist(), index.field_df, strict=True) if df.all()}
    kept = {qid: " ".join(term for term in query.split() if term in known) for qid, query in queries().items()}
    return {qid: query for qid, query in kept.items() if query}


def weighted_rows(lucene: Lucene, weights: Mapping[str, float], k: float, b: float) -> tuple[Candidates, Floats]:
    """Our rows, with Lucene's idf, and the scores of its BM25F."""
    index = index_of(*FIELDS)
    asked = in_all_fields(index)
    assert len(asked) > 40
    rows, theirs = rows_of(index, asked, {qid: lucene.bm25f(query, weights, k, b) for qid, query in asked.items()})
    return with_largest_df(index, rows), theirs


def with_largest_df(index: Index, rows: Candidates) -> Candidates:
    """With the idf of Lucene: df is the largest of the fields'."""
    number = {term: t for t, term in enumerate(index.terms.tolist())}
    df = np.array([index.field_df[number[term]].max() for term in rows.terms.terms.tolist()])
    return replace(rows, terms=replace(rows.terms, idf=np.log1p((len(index) - df + 0.5) / (df + 0.5))))


def as_one_text(rows: Candidates, weights: Mapping[str, float]) -> Candidates:
    """Rows of one field, in which each field stands as often as its weight says; rounded where Lucene rounds."""
    terms, w = rounded(rows).terms, np.array([weights[name] for name in rows.terms.fields])
    length = quantised()[np.floor(terms.length @ w + 0.5).astype(int)]
    one = {"tf": terms.tf @ w, "length": length, "tokens": [np.floor(terms.tokens * w).sum()]}
    unknown = dict.fromkeys(("collection", "field_df", "field_documents", "distinct", "distinct_tokens"))
    return replace(rows, terms=replace(terms, fields=("all",), **one, **unknown))


def shared(rows: Candidates, weights: Mapping[str, float], k: float, b: float) -> BM25F:
    """BM25F with these weights and one b."""
    model = BM25F(share_b=True).prepared(rows, 0)
    return model.at(model.params.replace({f"{name}.w": w for name, w in weights.items()} | {"k": k, "b": b}))


@pytest.mark.parametrize("weights", [WEIGHTS, dict.fromkeys(FIELDS, 1.0)], ids=["weighted", "alike"])
@pytest.mark.parametrize(("k", "b"), SETTINGS)
def test_lucenes_bm25f_is_bm25_of_the_weighted_fields_as_one_text(
    lucene: Lucene, k: float, b: float, weights: dict[str, float]
) -> None:
    rows, theirs = weighted_rows(lucene, weights, k, b)
    one = as_one_text(rows, weights)
    ours = BM25().prepared(one, 0).at([k, b]).score(one)
    np.testing.assert_allclose(ours, theirs, FLOAT32)
    assert in_order(rows, ours)


@pytest.mark.parametrize("k", [0.5, 1.2, 4.0])
def test_bm25f_is_lucenes_without_length_normalisation(lucene: Lucene, k: float) -> None:
    rows, theirs = weighted_rows(lucene, WEIGHTS, k, 0.0)
    ours = shared(rows, WEIGHTS, k, 0.0).score(rows)
    np.testing.assert_allclose(ours, theirs, FLOAT32)
    assert in_order(rows, ours)


def sum_of(rows: Candidates, weights: Mapping[str, float], k: float, b: float) -> BM25Sum:
    """The sum of BM25 with these weights, and k and b for all fields."""
    model = BM25Sum().prepared(rows, 0)
    return model.at([value for name in rows.terms.fields for value in (weights.get(name, 0.0), k, b, 1.0)])


@pytest.mark.parametrize(("k", "b"), SETTINGS)
def test_the_sum_is_lucenes_with_weights_as_boosts_where_a_term_has_one_idf(k: float, b: float) -> None:
    """Title and body have the same terms, each in its own number: so their df is one. From postings and statistics."""
    rng, words, weights = np.random.default_rng(5), np.array([f"w{i}" for i in range(12)]), {"title": 2.5, "body": 0.7}
    made = []
    for i in range(150):
        some = rng.choice(words, rng.integers(1, 5), replace=False)
        text = {name: " ".join(np.repeat(some, rng.integers(1, most, len(some)))) for name, most in
                (("title", 3), ("body", 10))}  # fmt: skip
        made.append({"_id": f"d{i}"} | text)
    engine, index = Lucene(made, [*weights]), Index.build(made, fields=[*weights], analyzer=TERMS)
    assert index.length.max() <= 40
    asked = {"q": "w1 w5 w7"}
    model, theirs = sum_of(index.rows(asked, {}), weights, k, b), engine.bm25_sum(asked["q"], weights, k, b)
    assert len(theirs) > 50
    for ranker in (model, ByStatistics(model)):
        assert index.search(asked, ranker).to_dict()["q"] == pytest.approx(theirs, rel=FLOAT32)


@pytest.mark.parametrize(("k", "b"), SETTINGS)
def test_elsewhere_the_sum_is_lucenes_once_each_field_has_its_own_idf(lucene: Lucene, k: float, b: float) -> None:
    index, asked = index_of(*FIELDS), queries()
    hits = {qid: lucene.bm25_sum(query, WEIGHTS, k, b) for qid, query in asked.items()}
    rows, theirs = rows_of(index, asked, hits)
    number, ours = {term: t for t, term in enumerate(index.terms.tolist())}, np.zeros(len(rows))
    known = [number.get(term, -1) for term in rows.terms.terms.tolist()]
    for s, name in enumerate(index.fields):
        df = np.where(np.array(known) >= 0, index.field_df[known, s], 0)
        idf = np.log1p(((index.length[:, s] > 0).sum() - df + 0.5) / (df + 0.5))
        own = rounded(replace(rows, terms=replace(rows.terms, idf=idf)))
        ours += sum_of(rows, {name: WEIGHTS[name]}, k, b).score(own)
    np.testing.assert_allclose(ours, theirs, FLOAT32)


@pytest.mark.parametrize("b", [0.3, 0.75, 1.0])
def test_bm25f_is_lucenes_where_all_fields_are_equally_long_for_their_kind(b: float) -> None:
    """A title of n words and a body of 4 n; together, with the title twice, short enough to have the length kept."""
    rng, words, weights = np.random.default_rng(4), [f"w{i}" for i in range(8)], {"title": 2.0, "body": 1.0}
    made = []
    for i, n in enumerate(rng.integers(1, 7, 120)):
        text = {name: " ".join(rng.choice(words, size)) for name, size in (("title", n), ("body", 4 * n))}
        made.append({"_id": f"d{i}"} | text)
    engine, index = Lucene(made, [*weights]), Index.build(made, fields=[*weights], analyzer=TERMS)
    asked = {"q": "w1 w5"}
    rows, theirs = rows_of(index, asked, {"q": engine.bm25f(asked["q"], weights, 1.2, b)})
    rows = with_largest_df(index, rows)
    assert len(rows) > 100
    np.testing.assert_allclose(shared(rows, weights, 1.2, b).score(rows), theirs, FLOAT32)


def test_elsewhere_bm25f_and_lucenes_part_even_in_the_order(lucene: Lucene) -> None:
    rows, theirs = weighted_rows(lucene, WEIGHTS, 1.2, 0.75)
    rows = rounded(rows)
    ours = shared(rows, WEIGHTS, 1.2, 0.75).score(rows)
    assert np.abs(ours / theirs - 1).max() > 0.1
    assert not in_order(rows, ours)
