"""BM25 and BM25F: the paper's formulas in plain NumPy, finite differences, edges, SQLite's FTS5."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_rows import finite_differences
from term_candidates import FIELDS, random_terms

from fliprank.data.candidates import Candidates
from fliprank.data.ids import Ids
from fliprank.data.term_statistics import TermStatistics
from fliprank.data.term_statistics_jsonl import read_statistics
from fliprank.errors import InputError, UsageError
from fliprank.models import BM25, BM25F, Model, load_model

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "text" / "stanford-web"
SEEDS = st.integers(0, 10**9)


def one_row(tf: Any, length: Any, idf: Any = (1.0,), **known: Any) -> Candidates:
    """A query with one document, of fields title, body, ..."""
    tf = np.array(tf, float)
    statistics = TermStatistics(
        FIELDS[: tf.shape[1]], [0, len(tf)], Ids.of(map(str, range(len(tf)))), idf, [0, len(tf)], tf, [length], **known
    )
    return Candidates([0, 1], [1.0], Ids.of(["q"]), terms=statistics)


def plain_bm25f(rows: Candidates, average: Any, k: float, w: Any, b: Any) -> np.ndarray:
    """Equations 3 to 6 of Taylor et al. 2006, term by term."""
    terms, out = rows.terms, np.zeros(len(rows))
    assert terms is not None
    for q in range(rows.queries):
        for row in range(rows.offsets[q], rows.offsets[q + 1]):
            tf, length = terms.of_row(row).astype(float), terms.length[row].astype(float)
            known = (length > 0) & (np.array(average) > 0)
            ratio = np.where(known, length / np.where(known, average, 1), 1.0)
            f = (np.array(w) * tf / (1 - np.array(b) + np.array(b) * ratio)).sum(axis=1)
            idf = (terms.idf * terms.count)[terms.offsets[q] : terms.offsets[q + 1]]
            out[row] = sum(i * x / (k + x) for i, x in zip(idf, f, strict=True) if x > 0)
    return out


def random_theta(rng: np.random.Generator, fields: int) -> tuple[float, np.ndarray, np.ndarray]:
    w = rng.choice([0.0, 0.3, 1.0, 5.0], fields) + rng.choice([0.0, 0.1], fields)
    return float(rng.uniform(0.2, 3)), w, rng.uniform(0, 1, fields)


@given(SEEDS, st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_bm25f_is_the_papers_formula(seed: int, fields: int) -> None:
    rng = np.random.default_rng(seed)
    rows = random_terms(rng, fields=fields)
    k, w, b = random_theta(rng, fields)
    model = BM25F().prepared(rows, 0).at([k, *np.stack([w, b], 1).ravel()])
    average = rows.terms.tokens / rows.terms.documents
    assert model.score(rows) == pytest.approx(plain_bm25f(rows, average, k, w, b), rel=1e-6, abs=1e-9)


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_bm25_is_the_formula_on_all_fields_joined(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = random_terms(rng, tokens=None, documents=0)
    if not len(rows):
        return
    terms = rows.terms
    joined = replace(
        terms,
        fields=("all",),
        tf=terms.tf.sum(1),
        length=terms.length.sum(1),
        collection=terms.collection.sum(1)[:, None],
    )
    k, _, b = random_theta(rng, 1)
    expected = plain_bm25f(replace(rows, terms=joined), [terms.length.sum(1).mean()], k, 1.0, b)
    assert BM25().prepared(rows, 0).at([k, *b]).score(rows) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_bm25f_of_one_field_is_bm25(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = random_terms(rng)
    k, b, dscores = rng.uniform(0.1, 3), rng.uniform(0, 1), rng.normal(size=len(rows))
    one, other = BM25("body").prepared(rows, 0).at([k, b]), BM25F("body").prepared(rows, 0).at([k, 1, b])
    np.testing.assert_array_equal(one.score(rows), other.score(rows))
    np.testing.assert_array_equal(one.pullback(rows, dscores), other.pullback(rows, dscores)[[0, 2]])


@given(SEEDS, st.integers(1, 4), st.booleans())
@settings(max_examples=40, deadline=None)
def test_pullback_is_the_gradient(seed: int, fields: int, joined: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = random_terms(rng, fields=fields)
    k, w, b = random_theta(rng, fields)
    model: Model = BM25().prepared(rows, 0).at([k, b[0]])
    if not joined:
        model = BM25F().prepared(rows, 0).at([k, *np.stack([np.maximum(w, 0.05), b], 1).ravel()])
    dscores = rng.normal(size=len(rows))
    expected = finite_differences(model, rows, dscores)
    assert model.pullback(rows, dscores) == pytest.approx(expected, rel=1e-5, abs=1e-6)


@given(SEEDS, st.floats(0.01, 100))
@settings(max_examples=20, deadline=None)
def test_weights_and_k_times_a_number_score_alike(seed: int, c: float) -> None:
    rng = np.random.default_rng(seed)
    rows = random_terms(rng)
    k, w, b = random_theta(rng, 3)
    model = BM25F().prepared(rows, 0)
    one, other = (model.at([x * k, *np.stack([x * w, b], 1).ravel()]).score(rows) for x in (1.0, c))
    assert other == pytest.approx(one, rel=1e-12)


def test_at_k_0_a_term_counts_whole_where_it_occurs() -> None:
    rows = one_row([[2, 0], [0, 0], [0, 1]], [4, 9], [1.0, 10.0, 100.0])
    model = BM25F().prepared(rows, 0).at([0, 1, 0.5, 1, 0.5])
    assert model.score(rows).tolist() == [101.0]
    # by k: -I / f where the term occurs; nothing else moves a saturated term
    assert model.pullback(rows, [1.0]).tolist() == pytest.approx([-1 / 2 - 100, 0, 0, 0, 0])
    nothing = model.at([0, 0, 0.5, 0, 0.5])
    assert nothing.score(rows).tolist() == [0.0]
    assert nothing.pullback(rows, [1.0]).tolist() == [0.0] * 5


def test_a_weight_of_0_can_be_left_again() -> None:
    rows = one_row([[2, 3]], [4, 9])
    model = BM25F().prepared(rows, 0).at([1.2, 0, 0.5, 0, 0.5])
    assert model.score(rows).tolist() == [0.0]
    assert model.pullback(rows, [1.0]) == pytest.approx([0, 2 / 1.2, 0, 3 / 1.2, 0])


@pytest.mark.parametrize(("b", "beta"), [(0.0, 1.0), (1.0, 2.0), (0.5, 1.5)])
def test_b_is_how_far_length_counts(b: float, beta: float) -> None:
    rows = one_row([[3]], [20], tokens=[1000], documents=100)
    score = BM25("title").prepared(rows, 0).at([1.2, b]).score(rows)
    assert score == pytest.approx([(3 / beta) / (1.2 + 3 / beta)])


@pytest.mark.parametrize("b", [0.0, 0.5, 1.0])
def test_empty_fields_documents_and_collections_are_no_trouble(b: float) -> None:
    for tf, length, known, expected in (
        ([[0, 2]], [0, 5], {"tokens": [300, 500], "documents": 100}, 2 / 3.2),  # an empty field
        ([[0, 0]], [0, 0], {"tokens": [300, 500], "documents": 100}, 0.0),  # an empty document
        ([[0, 2]], [0, 5], {"tokens": [0, 500], "documents": 100}, 2 / 3.2),  # a field that no document has
        ([[0, 2]], [0, 0], {}, 2 / 3.2),  # all lengths unknown
        (np.zeros((0, 2)), [1, 1], {}, 0.0),  # a query without terms
    ):
        rows = one_row(tf, length, np.ones(len(tf)), **known)
        model = BM25F().prepared(rows, 0).at([1.2, 1, b, 1, b])
        assert model.score(rows) == pytest.approx([expected])
        assert np.isfinite(model.pullback(rows, [1.0])).all()


def test_a_term_that_stands_twice_in_the_query_counts_twice() -> None:
    once, twice = (one_row([[2]], [5], [1.5], count=[n]) for n in (1, 2))
    repeated = one_row([[2], [2]], [5], [1.5, 1.5])
    first, second, third = (BM25().prepared(once, 0).score(rows) for rows in (once, twice, repeated))
    assert second == pytest.approx(2 * first)
    assert third == pytest.approx(second)


def test_averages_are_the_collections_where_known_and_travel_with_the_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    known = random_terms(rng, queries=9)
    unknown = replace(known, terms=replace(known.terms, tokens=None, documents=0))
    assert BM25F().prepared(known, 0).average == pytest.approx(known.terms.tokens / known.terms.documents)
    model = BM25F().prepared(unknown, 0)
    assert model.average == pytest.approx(known.terms.length.mean(axis=0))
    model.save(tmp_path / "m")
    few = unknown.select([4, 5])
    np.testing.assert_array_equal(load_model(tmp_path / "m").score(few), model.score(few))


@pytest.mark.parametrize("model", [BM25(), BM25("body"), BM25F(), BM25F(["body", "title"], share_b=True, free_k=True)])
def test_saved_models_come_back(model: Model, tmp_path: Path) -> None:
    rows = random_terms(np.random.default_rng(5), queries=20)
    ready = model.prepared(rows, 0).initialised(3)
    ready.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert type(loaded) is type(model)
    assert loaded.params.free_names == ready.params.free_names
    np.testing.assert_array_equal(loaded.score(rows), ready.score(rows))
    np.testing.assert_array_equal(loaded.pullback(rows, np.ones(len(rows))), ready.pullback(rows, np.ones(len(rows))))


def test_fields_may_be_some_in_any_order() -> None:
    rows = random_terms(np.random.default_rng(6), queries=20, fields=4)
    both = BM25F(["url", "title"]).prepared(rows, 0).at([1.2, 2.0, 0.1, 3.0, 0.9])
    every = BM25F().prepared(rows, 0).at([1.2, 3.0, 0.9, 0, 0, 0, 0, 2.0, 0.1])
    assert both.params.names == ("k", "url.w", "url.b", "title.w", "title.b")
    assert both.score(rows) == pytest.approx(every.score(rows))


def test_what_is_free_can_be_chosen_before_and_is_kept_by_training() -> None:
    rows = random_terms(np.random.default_rng(7))
    assert BM25().prepared(rows, 0).params.free_names == ("k", "b")
    assert BM25F(["title"]).params.free_names == ("title.w", "title.b")
    shared = BM25F(["title", "body"], share_b=True)
    assert shared.params.free_names == ("title.w", "b", "body.w")
    moved = shared.at(shared.params.replace({"b": 0.2, "title.w": 4}).fix("body.w")).prepared(rows, 0)
    assert moved.params.free_names == ("title.w", "b")
    assert moved.params["body.b"] == 0.2
    other = moved.initialised(1).params
    assert other["body.w"] == 1.0
    assert other["title.b"] == other["body.b"] != 0.2
    assert 0 <= other["b"] <= 1


def test_a_row_has_one_score_wherever_it_stands_and_threads_change_no_bit() -> None:
    rows = random_terms(np.random.default_rng(8), queries=300, rows=100)
    assert len(rows) > 8192  # several chunks
    model, dscores = BM25F().prepared(rows, 0), np.random.default_rng(9).normal(size=len(rows))
    scores = model.score(rows)
    chosen = np.arange(0, 300, 7)
    np.testing.assert_array_equal(
        model.score(rows.select(chosen)), np.concatenate([scores[slice(*rows.offsets[q : q + 2])] for q in chosen])
    )
    results = []
    try:
        for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
            numba.set_num_threads(threads)
            results.append(model.pullback(rows, dscores).tolist())
    finally:
        numba.set_num_threads(1)
    assert results[0] == results[1]
    whole = sum(
        model.pullback(part, dscores[a:b])
        for part, a, b in (
            (rows.select(range(q, q + 30)), rows.offsets[q], rows.offsets[q + 30]) for q in range(0, 300, 30)
        )
    )
    assert results[0] == pytest.approx(whole)


def test_sqlite_scores_alike() -> None:
    """FTS5's bm25(): one length for all columns, idf = ln((N - df + .5) / (df + .5)), times k + 1."""
    rng, words = np.random.default_rng(1), [f"w{i}" for i in range(40)]
    documents = [[" ".join(rng.choice(words, rng.integers(1, n))) for n in (6, 40)] for _ in range(200)]
    base = sqlite3.connect(":memory:")
    try:
        base.execute("create virtual table t using fts5(title, body)")
    except sqlite3.OperationalError:
        pytest.skip("this Python's SQLite has no FTS5")
    base.executemany("insert into t values (?, ?)", documents)
    query = ["w3", "w11", "w3"]
    found = base.execute("select rowid, -bm25(t) from t where t match ?", (" OR ".join(query[:2]),)).fetchall()
    tf = np.array([[[text.split().count(word) for text in doc] for word in query[:2]] for doc in documents])
    df = (tf.sum(axis=2) > 0).sum(axis=0)
    idf = np.log((200 - df + 0.5) / (df + 0.5))
    length = np.array([[len(text.split()) for text in doc] for doc in documents])
    terms = TermStatistics(
        ("title", "body"), [0, 2], Ids.of(query[:2]), idf, np.arange(201) * 2, tf.reshape(-1, 2), length
    )
    rows = Candidates([0, 200], np.zeros(200), Ids.of(["q"]), terms=terms)
    scores = BM25().prepared(rows, 0).score(rows) * 2.2
    assert len(found) > 50
    for rowid, score in found:
        assert scores[rowid - 1] == pytest.approx(score, rel=1e-6)


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: BM25F([]), UsageError, "expected the names of fields"),
        (lambda: BM25F(["a", "a"]), UsageError, "'a' is named twice"),
        (lambda: BM25F(["a", 3]), UsageError, "expected the names of fields"),
        (lambda: BM25F(["a"]).score(one_row([[1]], [1])), UsageError, r"call prepared\(train, rng\)"),
        (lambda: BM25F().save("nowhere"), UsageError, "nothing to save yet"),
        (lambda: BM25F(["a"]).prepared(one_row([[1]], [1]), 0), InputError, "lack: a .*they have title"),
        (lambda: BM25F().prepared(Candidates.of([1.0]), 0), InputError, "no term statistics"),
        (
            lambda: BM25F().prepared(one_row([[1]], [1]), 0).pullback(one_row([[1]], [1]), [1.0, 2.0]),
            UsageError,
            "1 rows",
        ),
        (lambda: BM25F().prepared(one_row([[1]], [1]), 0).at([1, 2]), UsageError, "expected 3 numbers"),
    ],
)
def test_wrong_use_is_told(make: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make()


def test_statistics_of_other_rows_are_refused() -> None:
    rows = one_row([[1, 2], [3, 4]], [5, 6], [1.0, 1.0])
    wrong = replace(rows, terms=replace(rows.terms, starts=[0, 1], tf=[[1, 2]]))
    with pytest.raises(InputError, match="not as many lines of tf as its query has terms"):
        BM25F().prepared(wrong, 0)
    negative = replace(rows, terms=replace(rows.terms, tf=[[1, 2], [-3, 4]]))
    with pytest.raises(InputError, match="tf has a number that is negative"):
        BM25F().prepared(negative, 0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"fields": []}, "at least one field"),
        ({"fields": [{"name": "title", "average": -1}]}, "average"),
        ({"fields": [{"name": "title", "average": "x"}]}, "finite number"),
        ({"fields": [{"name": 1, "average": 1}]}, "expected a string"),
        ({"fields": [{"name": "a", "average": 1}, {"name": "a", "average": 1}]}, "named twice"),
        ({}, "a list of objects"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    import json

    BM25F().prepared(one_row([[1]], [1]), 0).save(tmp_path / "m")
    path = tmp_path / "m" / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"structure": change}))
    with pytest.raises(InputError, match=said):
        load_model(tmp_path / "m")


def test_training_on_real_statistics_helps() -> None:
    from fliprank.experiment.training import train

    path = DATA / "2014-train.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    rows = read_statistics(path)
    fit = train(BM25F(), rows, method="lbfgs", objective="ranknet", l2=0, epochs=15)
    assert fit.best.train > fit.trail[0].train + 0.01
    assert np.isfinite(fit.model.params.values).all()
    fit.model.params.check_bounds()


def test_bm25s_scores_alike() -> None:
    """Its method "lucene" has our formula, and idf = ln(1 + (N - df + .5) / (df + .5))."""
    bm25s = pytest.importorskip("bm25s")
    rng, words = np.random.default_rng(2), [f"w{i}" for i in range(60)]
    documents = [list(rng.choice(words, rng.integers(1, 50))) for _ in range(150)]
    peer = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    peer.index(documents, show_progress=False)
    query = ["w1", "w7", "w30"]
    tf = np.array([[document.count(word) for word in query] for document in documents])
    df = (tf > 0).sum(axis=0)
    terms = TermStatistics(
        ("body",), [0, 3], Ids.of(query), np.log(1 + (150 - df + 0.5) / (df + 0.5)), np.arange(151) * 3,
        tf.reshape(-1, 1), [[len(document)] for document in documents],
    )  # fmt: skip
    rows = Candidates([0, 150], np.zeros(150), Ids.of(["q"]), terms=terms)
    scores = BM25().prepared(rows, 0).at([0.9, 0.4]).score(rows)
    assert scores == pytest.approx(peer.get_scores(query), rel=1e-5, abs=1e-6)
