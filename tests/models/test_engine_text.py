"""The engines' text functions: the plain formula, one row and one term at a time, and finite differences."""

from __future__ import annotations

from itertools import product
from math import floor, log, sqrt
from typing import Any

import numpy as np
import pytest

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.models import EngineText, Formula, load_model
from fliprank.models.contributions import contributions
from fliprank.models.engine.formula import BM25_SETTINGS, IDFS, Setting
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index

FIELDS = ("title", "body", "tags")
WORDS = [f"w{i}" for i in range(15)]
W = Setting("w", 1.0, each=True)
SHARED = (W, Setting("k", 1.2), Setting("b", 0.75, 0.0, 1.0), Setting("d", 0.5), Setting("tie", 0.3, 0.0, 1.0))
APART = (*BM25_SETTINGS, Setting("d", 0.4, each=True), Setting("tie", 0.2, 0.0, 1.0))


@pytest.fixture(scope="module")
def rows() -> Candidates:
    """Fields that documents lack, terms that no document has, terms twice in a query, lengths beyond 40."""
    rng, pages = np.random.default_rng(7), []
    for i in range(60):
        sizes = {"title": rng.integers(0, 6), "body": rng.integers(0, 120), "tags": rng.integers(0, 3)}
        pages.append({"_id": f"d{i}"} | {name: " ".join(rng.choice(WORDS, size)) for name, size in sizes.items()})
    index = Index.build(pages, fields=FIELDS, analyzer=Analyzer(lowercase=False, stopwords=None, stemmer=None))
    asked = {"a": "w1 w2 w2 nowhere", "b": "w3", "c": "w4 w5 w6 w7", "d": "nowhere"}
    return index.rows(asked, {qid: [f"d{i}" for i in range(60)] for qid in asked})


def kept(length: float) -> int:
    """Lucene's SmallFloat.byte4ToInt(intToByte4(length)), written from its description: 4 bits, from 24 on."""
    whole = int(length)
    if whole < 24:
        return whole
    over = whole - 24
    bits = max(over.bit_length() - 4, 0)
    return 24 + ((over >> bits) << bits)


def plain(rows: Candidates, formula: Formula, get: Any) -> list[float]:
    """The formula, read off its description. `get(field, name)` is the value of a setting."""
    t, out = rows.terms, []
    documents = {f: t.field_documents[s] if formula.documents == "field" else t.documents for s, f in enumerate(FIELDS)}
    for q in range(rows.queries):
        terms = range(t.offsets[q], t.offsets[q + 1])
        for row in range(rows.offsets[q], rows.offsets[q + 1]):
            tf = t.of_row(row)
            counted = t.distinct if formula.lengths == "distinct" else t.length
            length = {f: float(counted[row, s]) for s, f in enumerate(FIELDS)}
            if formula.lengths == "byte":
                length = {f: kept(n) for f, n in length.items()}
            if formula.whole_length:
                length = dict.fromkeys(FIELDS, sum(length.values()))
            if formula.fields == "one_text":
                score = one_text(t, formula, get, terms, tf, length, documents)
            else:
                by_term = [
                    {
                        f: (1 if formula.query_once else t.count[n])
                        * stepped(
                            formula,
                            get(f, "w") * one_term(t, formula, get, n, s, f, tf[i, s], length[f], documents),
                        )
                        for s, f in enumerate(FIELDS)
                    }
                    for i, n in enumerate(terms)
                ]
                score = combine(formula, by_term, get(FIELDS[0], "tie"))
            if formula.coordination:
                score *= sum(tf[i].any() for i in range(len(terms)))
            if formula.query_norm:
                score /= sqrt(sum(t.count[n] ** 2 for n in terms if t.df[n]) or 1)
            out.append(score)
    return out


def combine(formula: Formula, by_term: list[dict[str, float]], tie: float) -> float:
    def best(values: list[float]) -> float:
        return max(values) + tie * (sum(values) - max(values))

    if formula.fields == "best_field_per_term":
        return sum(best(list(each.values())) for each in by_term)
    by_field = [sum(each[f] for each in by_term) for f in FIELDS]
    return best(by_field) if formula.fields == "best_field" else sum(by_field)


def stepped(formula: Formula, score: float) -> float:
    return floor(score / formula.step + 0.5) * formula.step if formula.step else score


def df_of(t: Any, formula: Formula, n: int, s: int) -> float:
    found = {"field": t.field_df[n, s], "any": t.df[n], "largest": t.field_df[n].max(), "added": t.field_df[n].sum()}
    return float(found[formula.df])


def one_term(
    t: Any, formula: Formula, get: Any, n: int, s: int, f: str, tf: float, length: float, documents: dict[str, float]
) -> float:
    if tf == 0:
        return 0.0
    tokens = sum(t.tokens) if formula.whole_length else t.tokens[s]
    if formula.term == "two-stage":
        return two_stage(tf, length, t.collection[n, s] / tokens, get(f, "mu"), get(f, "lambda"), get(f, "scale"))
    if formula.term != "bm25":
        p = (t.collection[n, s] + 1) / (t.tokens[s] + 1)
        if formula.term == "dirichlet":
            mu = get(f, "mu")
            return max(0.0, log(1 + tf / (mu * p)) + log(mu / (length + mu)))
        rate = get(f, "lambda")
        return log(1 + ((1 - rate) * tf / length) / (rate * p))
    counted = documents[f] if formula.df == "field" else max(documents.values())
    idf = float(IDFS[formula.idf](np.array(df_of(t, formula, n, s)), counted))
    x = 1.0 if formula.presence else tf
    x = x / length if formula.share_of_field else x
    if formula.lengths == "distinct":
        tokens = t.distinct_tokens[s]
    return bm25(formula, get, f, idf, x, length / (tokens / documents[f]))


def two_stage(tf: float, length: float, background: float, mu: float, rate: float, scale: float) -> float:
    """Zhai and Lafferty's, with the logarithm as Xapian takes it."""
    return max(0.0, log(scale * ((1 - rate) * (tf + mu * background) / (length + mu) + rate * background)))


def bm25(formula: Formula, get: Any, f: str, idf: float, tf: float, ratio: float) -> float:
    k, b, d = get(f, "k"), get(f, "b"), get(f, "d")
    below = tf + k * (1 - b + b * max(ratio, formula.shortest))
    above = tf * (k + 1 if formula.k_plus_1 else 1)
    return idf * ((above + d) / below if formula.d_inside else above / below + d)


def one_text(t: Any, formula: Formula, get: Any, terms: Any, tf: Any, length: Any, documents: Any) -> float:
    weight = {f: get(f, "w") for f in FIELDS}
    size = {f: weight[f] if formula.weighted_length else 1.0 for f in FIELDS}
    whole_numbers = np.floor if formula.lengths == "byte" else float
    every = sum(whole_numbers(size[f] * t.tokens[s]) for s, f in enumerate(FIELDS)) / max(documents.values())
    whole = sum(size[f] * length[f] for f in FIELDS)
    if formula.lengths == "byte":
        whole = kept(np.floor(whole + 0.5))
    score = 0.0
    for i, n in enumerate(terms):
        x = sum(weight[f] * tf[i, s] for s, f in enumerate(FIELDS))
        idf = float(IDFS[formula.idf](np.array(df_of(t, formula, n, 0)), max(documents.values())))
        if x > 0:
            score += t.count[n] * bm25(formula, get, FIELDS[0], idf, x, whole / every if whole else 1.0)
    return score


def random_model(rows: Candidates, formula: Formula, seed: int = 0) -> EngineText:
    model = EngineText(formula).prepared(rows, 0)
    rng = np.random.default_rng(seed)
    low, high = model.params.lower, np.where(np.isinf(model.params.upper), 3.0, model.params.upper)
    return model.at(low + (0.1 + 0.8 * rng.random(len(low))) * (high - low))


def compare(rows: Candidates, formula: Formula) -> EngineText:
    model = random_model(rows, formula)

    def get(name: str, setting: str) -> float:
        known = formula.setting(setting)
        if known is None:
            return 1.0 if setting == "w" else 0.0
        return model.params[f"{name}.{setting}" if known.each else setting]

    np.testing.assert_allclose(model.score(rows), plain(rows, formula, get), rtol=1e-6, atol=1e-9)
    return model


def check_gradient(rows: Candidates, model: EngineText) -> None:
    given = np.random.default_rng(1).normal(size=len(rows))
    found, step = model.pullback(rows, given), 1e-6
    for i in range(len(model.params)):
        ends = [
            float(given @ model.at(model.params.values + side * step * np.eye(len(found))[i]).score(rows))
            for side in (1, -1)
        ]
        assert found[i] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=2e-4, abs=2e-4), model.params.names[i]


@pytest.mark.parametrize("fields", ["sum", "best_field", "best_field_per_term"])
@pytest.mark.parametrize(("idf", "df"), [("lucene", "field"), ("whoosh", "field"), ("lunr", "added"), ("log10", "any")])
@pytest.mark.parametrize("settings", [SHARED, APART], ids=["shared", "apart"])
def test_fields_apart(rows: Candidates, fields: str, idf: str, df: str, settings: Any) -> None:
    for plus, inside, documents in product((False, True), (False, True), ("field", "all")):
        switches: dict[str, Any] = {"k_plus_1": plus, "d_inside": inside, "documents": documents}
        compare(rows, Formula("any", "f", fields=fields, idf=idf, df=df, settings=settings, lengths="byte", **switches))
    check_gradient(rows, compare(rows, Formula("any", "f", fields=fields, idf=idf, df=df, settings=settings)))


@pytest.mark.parametrize("term", ["dirichlet", "jelinek-mercer"])
@pytest.mark.parametrize("fields", ["sum", "best_field"])
def test_language_models(rows: Candidates, term: str, fields: str) -> None:
    own = Setting("mu", 20.0) if term == "dirichlet" else Setting("lambda", 0.3, 0.01, 0.99)
    settings = (W, own, Setting("tie", 0.3, 0.0, 1.0))
    check_gradient(rows, compare(rows, Formula("any", "lm", term=term, fields=fields, settings=settings)))


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("scale", [30.0, 1e6], ids=["some are nothing", "all count"])
def test_two_stage_smoothing(rows: Candidates, whole: bool, scale: float) -> None:
    """A term whose probability times the scale is below 1 adds nothing, and has no slope."""
    own = Setting("mu", 20.0, 1.0, 60.0), Setting("lambda", 0.3, 0.0, 1.0), Setting("scale", scale, scale / 2, scale)
    given: dict[str, Any] = {"term": "two-stage", "settings": (W, *own), "whole_length": whole, "documents": "all"}
    model = compare(rows, Formula("any", "lm", **given))
    check_gradient(rows, model)


def test_the_length_of_the_document_for_every_field(rows: Candidates) -> None:
    given: dict[str, Any] = {"whole_length": True, "idf": "xapian", "shortest": 0.5, "documents": "all"}
    check_gradient(rows, compare(rows, Formula("any", "f", settings=APART, **given)))


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(("idf", "df"), [("lucene", "largest"), ("sqlite", "any")])
def test_one_text(rows: Candidates, weighted: bool, idf: str, df: str) -> None:
    given: dict[str, Any] = {"fields": "one_text", "idf": idf, "df": df, "weighted_length": weighted}
    compare(rows, Formula("any", "f", settings=SHARED, lengths="byte", **given))
    check_gradient(rows, compare(rows, Formula("any", "f", settings=SHARED, k_plus_1=True, **given)))


@pytest.mark.parametrize("switch", ["share_of_field", "coordination", "query_norm", "presence", "query_once"])
def test_switches_of_single_engines(rows: Candidates, switch: str) -> None:
    check_gradient(rows, compare(rows, Formula("any", "f", settings=APART, **{switch: True})))


def test_lengths_that_count_different_terms(rows: Candidates) -> None:
    assert (rows.terms.distinct < rows.terms.length).any()
    check_gradient(rows, compare(rows, Formula("any", "f", settings=APART, lengths="distinct", share_of_field=True)))


def test_scores_in_steps_have_the_gradient_of_those_that_are_not(rows: Candidates) -> None:
    stepped_model = compare(rows, Formula("any", "f", settings=APART, step=0.05))
    smooth = random_model(rows, Formula("any", "f", settings=APART))
    assert np.abs(stepped_model.score(rows) - smooth.score(rows)).max() > 0.01
    given = np.random.default_rng(1).normal(size=len(rows))
    np.testing.assert_array_equal(stepped_model.pullback(rows, given), smooth.pullback(rows, given))
    direction = np.eye(len(smooth.params.free_names))[0]
    assert smooth.linear_along(direction)
    assert not stepped_model.linear_along(direction)


def test_a_shortest_ratio(rows: Candidates) -> None:
    check_gradient(rows, compare(rows, Formula("any", "f", settings=APART, shortest=0.5)))


def test_constants_of_the_engine_are_not_moved(rows: Candidates) -> None:
    settings = (W, Setting("k", 1.2, free=False), Setting("b", 0.75, 0.0, 1.0, free=False))
    assert EngineText(Formula("e", "f", settings=settings)).prepared(rows, 0).params.free_names == (
        "title.w",
        "body.w",
        "tags.w",
    )


def test_a_model_is_saved_with_its_formula(rows: Candidates, tmp_path: Any) -> None:
    model = random_model(rows, Formula("any", "f", fields="best_field", settings=APART, lengths="byte"))
    model.save(tmp_path / "model")
    found = load_model(tmp_path / "model")
    assert isinstance(found, EngineText)
    assert found.formula == model.formula
    np.testing.assert_array_equal(found.score(rows), model.score(rows))


def test_weights_of_a_sum_are_a_line_that_is_known_whole(rows: Candidates) -> None:
    model = random_model(rows, Formula("any", "f"))
    direction = np.zeros(len(model.params.free_names))
    direction[1] = 0.7
    moved = model.at(model.params.with_free(model.params.free_values + 2.0 * direction))
    np.testing.assert_allclose(moved.score(rows), model.score(rows) + 2.0 * model.slope(rows, direction), atol=1e-9)
    assert not random_model(rows, Formula("any", "f", fields="best_field")).linear_along(direction)


def test_rows_that_do_not_know_the_collection_are_refused(rows: Candidates) -> None:
    from dataclasses import replace

    bare = replace(rows, terms=replace(rows.terms, field_df=None))
    with pytest.raises(InputError, match="lucene needs to know the whole collection, and these rows lack field_df"):
        EngineText(Formula("lucene", "f")).prepared(bare, 0)
    with pytest.raises(UsageError, match="one_texts"):
        Formula("any", "f", fields="one_texts")


@pytest.mark.parametrize("fields", ["sum", "best_field", "best_field_per_term", "one_text"])
def test_what_terms_and_fields_contribute_adds_up_to_the_score(rows: Candidates, fields: str) -> None:
    settings = SHARED if fields == "one_text" else APART
    model = random_model(rows, Formula("any", "f", fields=fields, settings=settings, coordination=True))
    found = contributions(model, rows)
    np.testing.assert_allclose(np.concatenate([each.values.sum(axis=1) for each in found]), model.score(rows), 1e-9)
    assert [str(part) for part in found[1].parts] == ["title:w3", "body:w3", "tags:w3"]
    absent = rows.terms.of_row(int(rows.offsets[1]))[0] == 0
    assert not found[1].values[0][absent].any()
