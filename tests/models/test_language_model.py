"""The two-stage language model: the paper's formulas in plain Python, finite differences, edges."""

from __future__ import annotations

import json
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_rows import finite_differences
from term_candidates import FIELDS, random_terms

from fliprank.data.candidates import Candidates
from fliprank.data.ids import Ids
from fliprank.data.term_statistics import TermStatistics
from fliprank.errors import InputError, UsageError
from fliprank.models import Dirichlet, JelinekMercer, TwoStageLM, load_model

SEEDS = st.integers(0, 10**9)


def one_row(tf: Any, length: Any, collection: Any, tokens: Any, **known: Any) -> Candidates:
    """A query with one document, of fields title, body, ..."""
    tf = np.array(tf, float)
    statistics = TermStatistics(
        FIELDS[: tf.shape[1]],
        [0, len(tf)],
        Ids.of(map(str, range(len(tf)))),
        np.ones(len(tf)),
        [0, len(tf)],
        tf,
        [length],
        collection=collection,
        tokens=tokens,
        **known,
    )
    return Candidates([0, 1], [1.0], Ids.of(["q"]), terms=statistics)


def plain(rows: Candidates, lam: float, mus: Any, weights: Any) -> np.ndarray:
    """Metzler's g(Q; D) for each field, mixed; a row of `weights` of length 1 joins all fields."""
    terms, out = rows.terms, np.zeros(len(rows))
    assert terms is not None
    assert terms.collection is not None
    assert terms.tokens is not None
    joined = len(weights) == 1
    for q in range(rows.queries):
        for row in range(rows.offsets[q], rows.offsets[q + 1]):
            for t in range(terms.offsets[q], terms.offsets[q + 1]):
                tf, size = terms.of_row(row)[t - terms.offsets[q]].astype(float), terms.length[row].astype(float)
                found, tokens = terms.collection[t], terms.tokens
                if joined:
                    tf, size, found, tokens = (np.array([x.sum()]) for x in (tf, size, found, tokens))
                if found.sum() == 0:
                    continue
                p = 0.0
                for s in range(len(tf)):
                    background = found[s] / tokens[s]
                    estimate = (tf[s] + mus[s] * background) / (mus[s] + size[s])
                    p += weights[s] / sum(weights) * ((1 - lam) * estimate + lam * background)
                out[row] += terms.count[t] * log(p)
    return out


@given(SEEDS, st.booleans())
@settings(max_examples=40, deadline=None)
def test_scores_are_the_papers_formula(seed: int, mixture: bool) -> None:
    rng = np.random.default_rng(seed)
    rows, lam = random_terms(rng), rng.uniform(0, 1)
    size = 3 if mixture else 1
    mus, weights = rng.uniform(0.5, 3000, size), rng.uniform(0.1, 3, size)
    model = TwoStageLM(mixture=mixture).prepared(rows, 0).at([lam, *mus, *(weights if mixture else ())])
    assert model.score(rows) == pytest.approx(plain(rows, lam, mus, weights), rel=1e-9)


@given(SEEDS, st.booleans())
@settings(max_examples=40, deadline=None)
def test_pullback_is_the_gradient(seed: int, mixture: bool) -> None:
    rng = np.random.default_rng(seed)
    rows, size = random_terms(rng), 3 if mixture else 1
    values = [rng.uniform(0.1, 0.9), *rng.uniform(3, 300, size), *(rng.uniform(0.2, 3, size) if mixture else ())]
    model, dscores = TwoStageLM(mixture=mixture).prepared(rows, 0).at(values), rng.normal(size=len(rows))
    expected = finite_differences(model, rows, dscores)
    assert model.pullback(rows, dscores) == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_a_mixture_of_one_field_is_the_plain_model() -> None:
    rows = random_terms(np.random.default_rng(1), queries=20)
    one = TwoStageLM("body").prepared(rows, 0).at([0.3, 500])
    other = TwoStageLM("body", mixture=True).prepared(rows, 0).at([0.3, 500, 7])
    assert other.score(rows) == pytest.approx(one.score(rows), rel=1e-12)
    slopes = other.pullback(rows, np.ones(len(rows)))
    assert slopes[:2] == pytest.approx(one.pullback(rows, np.ones(len(rows))))
    assert slopes[2] == pytest.approx(0, abs=1e-12)


def test_mixture_weights_count_by_their_share() -> None:
    rows = random_terms(np.random.default_rng(2), queries=20)
    model = TwoStageLM(mixture=True).prepared(rows, 0)
    one, other = (model.at([0.3, 50, 50, 50, *np.array([1, 2, 3]) * c]).score(rows) for c in (1, 100))
    assert other == pytest.approx(one, rel=1e-12)
    even, nothing = (model.at([0.3, 50, 50, 50, *[c] * 3]) for c in (1.0, 0.0))
    assert nothing.score(rows) == pytest.approx(even.score(rows))
    assert np.isfinite(nothing.pullback(rows, np.ones(len(rows)))).all()


def test_its_edges_are_dirichlet_and_jelinek_mercer() -> None:
    rows = random_terms(np.random.default_rng(3), queries=20)
    dirichlet, jelinek = Dirichlet().prepared(rows, 0), JelinekMercer().prepared(rows, 0)
    assert dirichlet.params.free_names == ("mu",)
    assert jelinek.params.free_names == ("lambda",)
    assert dirichlet.score(rows) == pytest.approx(plain(rows, 0.0, [2000.0], [1.0]))
    filled = replace(rows, terms=replace(rows.terms, length=np.maximum(rows.terms.length, 1)))
    assert jelinek.score(filled) == pytest.approx(plain(filled, 0.1, [0.0], [1.0]))
    assert JelinekMercer(["title", "body"], mixture=True).params.free_names == ("lambda", "title.w", "body.w")


def test_scores_go_on_smoothly_to_the_edges() -> None:
    rows = random_terms(np.random.default_rng(4), queries=20)
    model = TwoStageLM().prepared(rows, 0)
    for edge, near in (([0.5, 0.0], [0.5, 1e-9]), ([0.0, 500.0], [1e-12, 500.0]), ([1.0, 500.0], [1 - 1e-12, 500.0])):
        assert model.at(edge).score(rows) == pytest.approx(model.at(near).score(rows), rel=1e-6)
        assert np.isfinite(model.at(edge).pullback(rows, np.ones(len(rows)))).all()


def test_at_lambda_1_every_document_says_what_the_collection_says() -> None:
    rows = one_row([[3]], [9], [[50]], [1000])
    assert TwoStageLM().prepared(rows, 0).at([1.0, 77.0]).score(rows) == pytest.approx([log(0.05)])


def test_an_empty_document_says_what_the_collection_says() -> None:
    rows = one_row([[0]], [0], [[50]], [1000])
    for lam, mu in ((0.0, 100.0), (0.3, 100.0), (0.3, 0.0), (0.0, 0.0)):
        model = TwoStageLM().prepared(rows, 0).at([lam, mu])
        assert model.score(rows) == pytest.approx([log(0.05)])
        assert model.pullback(rows, [1.0]) == pytest.approx([0.0, 0.0])


def test_the_derivative_by_mu_of_a_document_without_length_is_undivided() -> None:
    rows = one_row([[2]], [0], [[50]], [1000])  # tf without length: the statistics are odd, the slope is finite
    model = Dirichlet().prepared(rows, 0).at([0.0, 100.0])
    p = (2 + 100 * 0.05) / 100
    assert model.pullback(rows, [1.0])[1] == pytest.approx(-2 / 100**2 / p)


def test_nothing_smooths_where_lambda_and_mu_are_0() -> None:
    rows = one_row([[0], [2]], [10], [[50], [50]], [1000])
    model = TwoStageLM().prepared(rows, 0).at([0.0, 0.0])
    assert model.score(rows) == pytest.approx([log(1e-300) + log(0.2)])
    assert np.isfinite(model.pullback(rows, [1.0])).all()


def test_a_term_that_no_document_has_is_left_out() -> None:
    with_it = one_row([[2], [0]], [10], [[50], [0]], [1000])
    without = one_row([[2]], [10], [[50]], [1000])
    model = TwoStageLM().prepared(without, 0)
    assert model.score(with_it).tolist() == model.score(without).tolist()
    assert model.pullback(with_it, [1.0]).tolist() == model.pullback(without, [1.0]).tolist()


def test_a_term_that_stands_twice_in_the_query_counts_twice() -> None:
    once, twice = (one_row([[2]], [10], [[50]], [1000], count=[n]) for n in (1, 2))
    model = TwoStageLM().prepared(once, 0)
    assert model.score(twice) == pytest.approx(2 * model.score(once))


def test_several_chunks_are_as_one() -> None:
    rows = random_terms(np.random.default_rng(5), queries=300, rows=100)
    assert len(rows) > 8192
    model, dscores = TwoStageLM(mixture=True).prepared(rows, 0).initialised(1), np.linspace(-1, 1, len(rows))
    parts = [rows.select(range(a, a + 60)) for a in range(0, 300, 60)]
    assert model.score(rows).tolist() == np.concatenate([model.score(part) for part in parts]).tolist()
    cuts = rows.offsets[::60]
    by_part = sum(model.pullback(part, dscores[cuts[i] : cuts[i + 1]]) for i, part in enumerate(parts))
    assert model.pullback(rows, dscores) == pytest.approx(by_part)


@pytest.mark.parametrize(
    "model",
    [TwoStageLM(), TwoStageLM(["body", "title"], mixture=True, share_mu=False), Dirichlet("body"), JelinekMercer()],
)
def test_saved_models_come_back(model: TwoStageLM, tmp_path: Path) -> None:
    rows = random_terms(np.random.default_rng(6), queries=20)
    ready = model.prepared(rows, 0).initialised(5)
    ready.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.params.free_names == ready.params.free_names
    np.testing.assert_array_equal(loaded.score(rows), ready.score(rows))


def test_parameters_have_names_and_bounds() -> None:
    model = TwoStageLM(["title", "body"], mixture=True)
    assert model.params.names == ("lambda", "title.mu", "body.mu", "title.w", "body.w")
    assert model.params.free_names == ("lambda", "mu", "title.w", "body.w")
    free = TwoStageLM(["title", "body"], mixture=True, share_mu=False).params
    assert free.free_names == free.names
    for seed in range(20):
        model.initialised(seed).params.check_bounds()


@pytest.mark.parametrize("missing", ["collection", "tokens"])
def test_what_is_missing_is_named(missing: str) -> None:
    rows = random_terms(np.random.default_rng(7), **{missing: None})
    with pytest.raises(InputError, match=f"no '{missing}' .*take the candidates from an index"):
        TwoStageLM().prepared(rows, 0)


def test_wrong_use_is_told() -> None:
    with pytest.raises(UsageError, match="smoothing: one of two-stage, dirichlet"):
        TwoStageLM(smoothing="none")
    with pytest.raises(UsageError, match=r"call prepared\(train, rng\)"):
        TwoStageLM().score(random_terms(np.random.default_rng(8)))
    with pytest.raises(InputError, match="more often than the collection has tokens"):
        TwoStageLM().prepared(one_row([[1]], [9], [[50]], [10]), 0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"fields": []}, "at least one field"),
        ({"mixture": 1}, "true or false"),
        ({"mixture": True}, "of this structure"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    TwoStageLM().prepared(one_row([[1]], [9], [[5]], [100]), 0).save(tmp_path / "m")
    path = tmp_path / "m" / "model.json"
    content = json.loads(path.read_text())
    content["structure"] |= change
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=said):
        load_model(tmp_path / "m")
