"""What a score is made of adds up to the score, and each share is what its formula says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from model_rows import random_rows
from term_candidates import random_terms

from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.models import BM25, BM25F, AllFeatures, Blend, BM25Sum, Feature, Linear, Model, Network, Stack, TwoStageLM
from fliprank.models.contributions import Part, contributions

MODELS = {
    "bm25": BM25(),
    "bm25 of one field": BM25("body"),
    "bm25f": BM25F(),
    "bm25f of some": BM25F(["anchor", "title"]),
    "bm25sum": BM25Sum(curves=True),
    "lm": TwoStageLM(),
    "mixture": TwoStageLM(mixture=True, share_mu=False),
    "feature": Feature("pagerank", transform="saturate"),
    "linear": Linear(),
    "stack": Stack(BM25F(), Feature("pagerank", transform="log"), Feature("age")),
    "two texts": Stack(BM25F(), TwoStageLM(), Feature("depth", transform="sigmoid"), AllFeatures()),
    "stack in a stack": Stack(Stack(BM25(), Feature("age")), BM25Sum()),
}


def moved(model: Model, rows: Candidates, rng: np.random.Generator) -> Model:
    """The model with random parameters, also at the edges of their bounds."""
    ready = model.prepared(rows, 0)
    values = np.clip(
        ready.params.values + rng.normal(0, 0.7, len(ready.params)), ready.params.lower, ready.params.upper
    )
    return ready.at(values)


@pytest.mark.parametrize("name", MODELS)
def test_contributions_add_up_to_the_score(name: str) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = random_terms(rng, queries=5, rows=8)
        if not len(rows):
            continue
        model = moved(MODELS[name], rows, rng)
        found, scores = contributions(model, rows), model.score(rows)
        assert len(found) == rows.queries
        for q, each in enumerate(found):
            assert len(set(each.parts)) == len(each.parts)
            own = scores[rows.offsets[q] : rows.offsets[q + 1]]
            assert each.values.shape == (len(own), len(each.parts))
            np.testing.assert_allclose(each.values.sum(axis=1), own, rtol=1e-9, atol=1e-9)


def test_contributions_of_a_blend_add_up_to_the_score() -> None:
    rng = np.random.default_rng(4)
    rows = random_terms(rng, queries=6, rows=9)
    parts = [MODELS["bm25f"].prepared(rows, 0), moved(MODELS["linear"], rows, rng)]
    model = Blend(parts).prepared(rows, 0).at([0.3, 0.7])
    every = np.concatenate([each.values.sum(axis=1) for each in contributions(model, rows)])
    np.testing.assert_allclose(every, model.score(rows), rtol=1e-9, atol=1e-9)


def without(rows: Candidates, field: int | None = None, term: int | None = None) -> Candidates:
    """The rows as they would be if no document had anything in a field, or a term (by its place in the query)."""
    assert rows.terms is not None
    tf = rows.terms.tf.copy()
    if field is not None:
        tf[:, field] = 0
    if term is not None:
        for start, end in zip(rows.terms.starts, rows.terms.starts[1:], strict=False):
            tf[start + term : min(start + term + 1, end)] = 0
    return replace(rows, terms=replace(rows.terms, tf=tf))


def test_of_a_sum_of_bm25_a_field_counts_what_the_score_loses_without_it() -> None:
    rng = np.random.default_rng(7)
    rows = random_terms(rng, queries=6, rows=9)
    model = moved(MODELS["bm25sum"], rows, rng)
    assert rows.terms is not None
    for number, field in enumerate(rows.terms.fields):
        lost = model.score(rows) - model.score(without(rows, field=number))
        own = [
            each.values[:, [part.field == field for part in each.parts]].sum(1) for each in contributions(model, rows)
        ]
        np.testing.assert_allclose(np.concatenate(own), lost, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["bm25", "bm25f", "bm25sum"])
def test_a_term_counts_what_the_score_loses_without_it(name: str) -> None:
    rng = np.random.default_rng(8)
    rows = random_terms(rng, queries=6, rows=9)
    model = moved(MODELS[name], rows, rng)
    assert rows.terms is not None
    terms, found = rows.terms.terms.tolist(), contributions(model, rows)
    for place in range(3):
        lost = model.score(rows) - model.score(without(rows, term=place))
        for q, each in enumerate(found):
            here = rows.terms.offsets[q] + place
            asked = terms[here] if here < rows.terms.offsets[q + 1] else "?"
            own = each.values[:, [part.term == asked for part in each.parts]].sum(axis=1)
            np.testing.assert_allclose(own, lost[rows.offsets[q] : rows.offsets[q + 1]], rtol=1e-9, atol=1e-9)


def test_bm25f_shares_a_term_out_by_the_parts_of_its_frequency() -> None:
    rng = np.random.default_rng(9)
    rows = random_terms(rng, queries=1, rows=9, terms=3)
    while not len(rows) or not rows.terms.offsets[-1]:  # type: ignore[union-attr]
        rows = random_terms(rng, queries=1, rows=9, terms=3)
    model, terms = moved(MODELS["bm25f"], rows, rng), rows.terms
    assert isinstance(model, BM25F)
    assert terms is not None
    assert model.average is not None
    [found] = contributions(model, rows)
    for row in range(len(rows)):
        for t, term in enumerate(terms.terms.tolist()):
            parts = {}
            for s, field in enumerate(terms.fields):
                w, b = model.params[f"{field}.w"], model.params[f"{field}.b"]
                ratio = float(terms.length[row, s]) / model.average[s] or 1.0
                parts[field] = w * float(terms.of_row(row)[t, s]) / (1 - b + b * ratio)
            total = sum(parts.values())
            for field, part in parts.items():
                of_term = terms.idf[t] * terms.count[t] * total / (model.params["k"] + total) if total else 0.0
                value = found.values[row, found.parts.index(Part(field, term))]
                assert value == pytest.approx(of_term * part / total if total else 0.0, abs=1e-12)


def test_what_is_no_sum_says_so() -> None:
    rng = np.random.default_rng(1)
    rows = random_rows(rng, 6, 3)
    with pytest.raises(UsageError, match="network model is no sum"):
        contributions(Network(2).prepared(rows, 0), rows)
    text = random_terms(rng, queries=4, rows=8)
    with pytest.raises(UsageError, match="hidden nodes is no sum"):
        contributions(Stack(BM25F(), Feature("age"), hidden=2).prepared(text, 0), text)


def test_names_of_parts() -> None:
    assert str(Part("title", "shoe")) == "title:shoe"
    assert str(Part("", "shoe", "lm")) == "lm(shoe)"
    assert str(Part("pagerank")) == "pagerank"
