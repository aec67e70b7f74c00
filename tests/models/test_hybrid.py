"""Hybrids: the plain formula, finite differences through the normalisation, names, files, what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_rows import finite_differences
from term_candidates import random_terms

from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.ids import Ids
from fliprank.data.ranked_lists import RankedLists
from fliprank.data.term_statistics import TermStatistics
from fliprank.errors import InputError, UsageError
from fliprank.experiment.row_pool import RowPool
from fliprank.experiment.training import train
from fliprank.measures import parse_measure
from fliprank.models import BM25, BM25F, BM25Sum, Fusion, Hybrid, Linear, TwoStageLM, load_model
from fliprank.models.registry import make_model
from fliprank.optimize.ranges import as_good_ranges

FUSIONS: dict[str, Fusion] = {
    "plain": Fusion("plain"),
    "zscore": Fusion("plain", normalise="zscore"),
    "geometric": Fusion("plain", combine="geometric", missing=0.1),
    "elasticsearch": Fusion("elasticsearch-linear"),
    "l2": Fusion("opensearch", normalise="l2"),
    "harmonic": Fusion("opensearch", combine="harmonic_mean"),
    "dbsf": Fusion("qdrant", method="dbsf"),
    "milvus": Fusion("milvus", normalise=["bm25", "cosine", "ip"]),
    "edismax": Fusion("solr", method="edismax"),
}


def with_lists(rows: Candidates, rng: np.random.Generator, names: tuple[str, ...] = ("dense", "clicks")) -> Candidates:
    """Each list has about half of the documents, and nothing for the first query."""
    scores = np.where(rng.random((len(rows), len(names))) < 0.5, rng.normal(size=(len(rows), len(names))), np.nan)
    scores[rows.query_of_rows() == 0, 0] = np.nan
    return replace(rows, lists=RankedLists.of(names, scores, rows.offsets, rows.docids))


def smooth_rows(seed: int, queries: int = 5, documents: int = 12) -> Candidates:
    """No two documents score alike, so that extremes and windows do not change within a small step."""
    rng, terms, fields = np.random.default_rng(seed), 2, ("title", "body")
    rows = queries * documents
    tf = rng.integers(0, 4, (rows * terms, 2)) * (rng.random((rows * terms, 2)) < 0.6)
    statistics = TermStatistics(
        fields,
        bounds(np.full(queries, terms)),
        Ids.of(f"t{i}" for i in range(queries * terms)),
        rng.uniform(1, 5, queries * terms),
        bounds(np.full(rows, terms)),
        tf,
        rng.uniform(5, 40, (rows, 2)),
    )
    qids, docids = Ids.of(f"q{q}" for q in range(queries)), Ids.of(f"d{i % documents}" for i in range(rows))
    offsets = bounds(np.full(queries, documents))
    return with_lists(Candidates(offsets, rng.integers(0, 3, rows), qids, docids, terms=statistics), rng)


def plain_scores(rows: Candidates, weights: list[float], window: int) -> list[float]:
    """BM25F with its defaults and other lists, min-max, weighted sum: loops, straight from the formulas."""
    terms, lists = rows.terms, rows.lists
    assert terms is not None
    assert lists is not None
    lengths = terms.length.astype(float)
    average = lengths.mean(axis=0) if terms.documents == 0 else np.asarray(terms.tokens) / terms.documents
    out: list[float] = []
    for q in range(rows.queries):
        span = range(rows.offsets[q], rows.offsets[q + 1])
        columns = [{r: lists.scores[r, j] for r in span if lists.scores[r, j] == lists.scores[r, j]} for j in (0, 1)]
        text = {}
        for r in span:
            score = 0.0
            for i, counts in enumerate(terms.of_row(r).astype(float)):
                f = sum(
                    tf / (0.25 + 0.75 * length / mean if length > 0 and mean > 0 else 1.0)
                    for tf, length, mean in zip(counts, lengths[r], average, strict=True)
                )
                term = terms.offsets[q] + i
                score += terms.idf[term] * terms.count[term] * f / (1.2 + f)
            text[r] = score
        names = rows.document_ids()
        best = sorted((r for r in span if text[r] > 0), key=lambda r: (text[r], names[r]), reverse=True)[:window]
        columns.insert(0, {r: text[r] for r in best})
        for r in span:
            total = 0.0
            for weight, each in zip(weights, columns, strict=True):
                if r in each:
                    low, high = min(each.values()), max(each.values())
                    total += weight * ((each[r] - low) / (high - low) if high > low else 0.5)
            out.append(total)
    return out


@pytest.mark.parametrize("window", [2, 4, 100])
@pytest.mark.parametrize("seed", range(8))
def test_the_score_is_the_plain_formula(seed: int, window: int) -> None:
    rows = smooth_rows(seed)
    model = Hybrid(window=window).prepared(rows, 0)
    names = ("k", "title.w", "title.b", "body.w", "body.b", "weight.text", "weight.dense", "weight.clicks")
    assert model.params.names == names
    model = model.at(model.params.replace({"weight.text": 0.7, "weight.dense": 1.3, "weight.clicks": 0.4}))
    assert model.score(rows) == pytest.approx(plain_scores(rows, [0.7, 1.3, 0.4], window), abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_score_is_the_plain_formula_with_ties_empty_queries_and_documents_without_terms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = with_lists(replace(random_terms(rng, queries=12), features=None, feature_names=()), rng)
    terms = rows.terms
    assert terms is not None
    rows = replace(rows, terms=replace(terms, documents=0), docids=Ids.of(f"d{i}" for i in range(len(rows))))
    model = Hybrid().prepared(rows, 0)
    assert model.score(rows) == pytest.approx(plain_scores(rows, [1.0, 1.0, 1.0], 100), abs=1e-9)


@pytest.mark.parametrize("text", [BM25F(), BM25(), BM25Sum()], ids=lambda each: each.kind)
@pytest.mark.parametrize("name", FUSIONS)
def test_pullback_is_the_gradient_through_the_normalisation(name: str, text: Any) -> None:
    for seed in range(3):
        rows, rng = smooth_rows(seed), np.random.default_rng(seed + 100)
        model = Hybrid(text, FUSIONS[name], window=7).prepared(rows, 0)
        inside = (model.params.lower + 0.05, np.minimum(model.params.upper - 0.05, 100.0))
        model = model.at(np.clip(model.params.values * rng.uniform(0.8, 1.2, len(model.params)), *inside))
        dscores = rng.normal(size=len(rows))
        expected = finite_differences(model, rows, dscores, step=1e-5)
        size = np.abs(expected).max()
        assert np.abs(expected[: len(model.text.params)]).max() > 1e-3  # it does reach the text model
        assert model.pullback(rows, dscores) == pytest.approx(expected, rel=1e-5, abs=1e-6 * size)


def test_along_weights_of_a_sum_scores_are_linear_and_slopes_exact() -> None:
    rows = smooth_rows(1)
    model = Hybrid().prepared(rows, 0)
    model = model.at(model.params.fix("title.b"))
    free = model.params.free_names
    direction = np.array([{"weight.text": -0.5, "weight.dense": 1.0}.get(name, 0.0) for name in free])
    assert model.linear_along(direction)
    moved = model.at(model.params.with_free(model.params.free_values + 0.3 * direction))
    assert moved.score(rows) == pytest.approx(model.score(rows) + 0.3 * model.slope(rows, direction))
    assert not model.linear_along(np.ones(len(free)))
    with pytest.raises(UsageError, match="along the weights of a sum only"):
        model.slope(rows, np.ones(len(free)))


def test_a_saved_hybrid_is_the_same_hybrid(tmp_path: Path) -> None:
    rows = smooth_rows(2)
    model = Hybrid(BM25Sum(), Fusion("opensearch", normalise="l2"), window=5).prepared(rows, 0).initialised(3)
    model.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert isinstance(again, Hybrid)
    assert (again.window, again.fusion.engine, again.text.kind) == (5, "opensearch", "bm25sum")
    np.testing.assert_array_equal(again.score(rows), model.score(rows))
    np.testing.assert_array_equal(again.prepared(smooth_rows(3), 0).score(rows), model.score(rows))


def test_a_damaged_hybrid_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    Hybrid().prepared(smooth_rows(2), 0).save(tmp_path / "m")
    path = tmp_path / "m" / "model.json"
    text = path.read_text()
    for old, new in (('"window": 100', '"window": 1'), ('"kind": "bm25f"', '"kind": "linear"'), ("plain", "typesense")):
        assert old in text
        path.write_text(text.replace(old, new))
        with pytest.raises(InputError, match=r"model\.json"):
            load_model(tmp_path / "m")


def test_what_was_fixed_before_rows_were_seen_stays_fixed() -> None:
    model = Hybrid(BM25(), Fusion("plain", ["text", "dense", "clicks"]))
    fixed = model.at(model.params.replace(k=2.0).fix(["k", "weight.text"]))
    ready = fixed.prepared(smooth_rows(1), 0)
    assert ready.params["k"] == 2.0
    assert ready.params.free_names == ("b", "weight.dense", "weight.clicks")
    assert ready.at(ready.params.values).params.free_names == ready.params.free_names


def test_a_field_called_weight_does_not_clash_with_a_list_called_w() -> None:
    rows = smooth_rows(1)
    assert rows.terms is not None
    assert rows.lists is not None
    lists = replace(rows.lists, names=("w", "clicks"))
    rows = replace(rows, terms=replace(rows.terms, fields=("weight", "body")), lists=lists)
    names = Hybrid().prepared(rows, 0).params.names
    assert {"bm25f.weight.w", "fusion.weight.w", "weight.b"} <= set(names)


def test_canonical_weights_add_up_to_one_and_rank_alike() -> None:
    rows = smooth_rows(4)
    model = Hybrid().prepared(rows, 0)
    model = model.at(model.params.replace({"weight.text": 3.0, "title.w": 2.0}))
    tidy = model.canonical()
    assert tidy.fusion.weights.tolist() == [0.6, 0.2, 0.2]
    assert tidy.score(rows) * 5 == pytest.approx(model.score(rows))


def test_no_row_of_a_query_is_left_out_since_all_scores_depend_on_it() -> None:
    rows = smooth_rows(5, documents=300)
    rows = replace(rows, labels=np.where(np.arange(len(rows)) % 30 == 0, rows.labels, np.nan))
    model, measure = Hybrid().prepared(rows, 0), parse_measure("nDCG@5")
    assert len(RowPool.of(model.text, rows, measure).for_searches) < len(rows)
    pool = RowPool.of(model, rows, measure)
    assert len(pool.for_gradients) == len(pool.for_searches) == len(rows)
    few = model.at(model.params.fix(list(model.params.names[:-1])))
    assert list(as_good_ranges(few, rows, measure)) == ["weight.clicks"]
    assert model.text.score(rows.take(np.arange(10))) == pytest.approx(model.text.score(rows)[:10])
    assert (model.score(rows.take(np.arange(10))) != model.score(rows)[:10]).any()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Hybrid(TwoStageLM()), "BM25, BM25F or BM25Sum, not two_stage_lm"),
        (lambda: Hybrid(Linear()), "not linear"),
        (lambda: Hybrid(fusion="plain"), "fused by a Fusion"),
        (lambda: Hybrid(window=1), "from 2, not 1"),
        (lambda: Hybrid(fusion=Fusion("elasticsearch-rrf")), "no gradient goes through ranks"),
        (lambda: Hybrid(fusion=Fusion("plain", normalise="rank")), "no gradient goes through ranks"),
        (lambda: Hybrid(fusion=Fusion("weaviate", method="ranked")), "no gradient goes through ranks"),
        (lambda: Hybrid(fusion=Fusion("plain", ["bm25", "dense"])), "called 'text', not 'bm25'"),
        (lambda: Hybrid().score(smooth_rows(0)), "not ready"),
        (lambda: Hybrid().prepared(replace(smooth_rows(0), lists=None), 0), "these rows have none"),
        (lambda: Hybrid(fusion=Fusion("weaviate")).prepared(smooth_rows(0), 0), "two lists, text and vectors"),
        (lambda: train(Hybrid(), smooth_rows(0), sample=3), "leave sample out"),
        (lambda: make_model("hybrid", replace(smooth_rows(0), lists=None)), "tune --run"),
    ],
)
def test_what_a_hybrid_can_not_be_is_said(make: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make()


def test_lists_of_other_names_are_refused() -> None:
    rows = smooth_rows(1)
    assert rows.lists is not None
    model = Hybrid().prepared(rows, 0)
    other = replace(rows, lists=replace(rows.lists, names=("splade", "clicks")))
    with pytest.raises(UsageError, match="fuses text with dense, clicks; these rows have splade, clicks"):
        model.score(other)
    with pytest.raises(UsageError, match="these rows have splade"):
        model.prepared(other, 0)
    with pytest.raises(UsageError, match="give it another name"):
        Hybrid().prepared(replace(rows, lists=replace(rows.lists, names=("text", "clicks"))), 0)
