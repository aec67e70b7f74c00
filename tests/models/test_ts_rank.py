"""PostgreSQL's ts_rank: its program for one document, place by place, and finite differences."""

from __future__ import annotations

from math import log2
from typing import Any

import numpy as np
import pytest

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.export import engine_model
from fliprank.models import load_model
from fliprank.models.engine import EngineText, Formula, TsRank
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index

FIELDS = ("title", "body", "tags")
FUNCTIONS = {"ts_rank": lambda _: 1.0, "ts_rank_1": lambda n: log2(n + 1), "ts_rank_2": float}


@pytest.fixture(scope="module")
def rows() -> Candidates:
    """Fields that documents lack, words that no document has, words twice in a query, a word 300 times."""
    rng, pages, words = np.random.default_rng(3), [], [f"w{i}" for i in range(12)]
    for i in range(50):
        sizes = {"title": rng.integers(0, 6), "body": rng.integers(0, 60), "tags": rng.integers(0, 4)}
        pages.append({"_id": f"d{i}"} | {name: " ".join(rng.choice(words, size)) for name, size in sizes.items()})
    pages[7] |= {"title": "w1 " * 300, "body": "w1 " * 300, "tags": "w1 w2"}
    index = Index.build(pages, fields=FIELDS, analyzer=Analyzer(lowercase=False, stopwords=None, stemmer=None))
    asked = {"a": "w1 w2 w2 nowhere", "b": "w3", "c": "w4 w5 w6 w7", "d": "nowhere"}
    return index.rows(asked, {qid: [f"d{i}" for i in range(50)] for qid in asked})


def plain(rows: Candidates, weights: dict[str, float], divisor: Any) -> list[float]:
    """One place after the other, as tsrank.c has it."""
    t, out = rows.terms, []
    for q in range(rows.queries):
        known = sum(t.df[n] > 0 for n in range(t.offsets[q], t.offsets[q + 1]))
        for row in range(rows.offsets[q], rows.offsets[q + 1]):
            total = 0.0
            for tf in t.of_row(row):
                places = [weights[f] for s, f in enumerate(FIELDS) for _ in range(min(int(tf[s]), 255))][:256]
                if places:
                    best = places.index(max(places))
                    added = sum(w / (j + 1) ** 2 for j, w in enumerate(places))
                    total += (places[best] + added - places[best] / (best + 1) ** 2) / 1.64493406685
            length = t.length[row].sum()
            out.append(total / known / divisor(length) if known and length else 0.0)
    return out


@pytest.mark.parametrize("function", FUNCTIONS)
def test_scores_and_gradients(rows: Candidates, function: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(5):
        model = engine_model("postgresql", function, FIELDS).prepared(rows, 0).at(rng.random(3))
        weights = {name: model.params[f"{name}.w"] for name in FIELDS}
        np.testing.assert_allclose(model.score(rows), plain(rows, weights, FUNCTIONS[function]), rtol=1e-9, atol=1e-12)
        given, step = rng.normal(size=len(rows)), 1e-5
        for i, slope in enumerate(model.pullback(rows, given)):
            moved = [model.at(model.params.values + side * step * np.eye(3)[i]).score(rows) for side in (1, -1)]
            assert slope == pytest.approx(float(given @ (moved[0] - moved[1])) / (2 * step), rel=1e-6, abs=1e-6)


def test_of_equal_weights_the_first_label_is_the_best(rows: Candidates) -> None:
    for values in ([0.5, 0.5, 0.5], [0.5, 0.5 + 1e-9, 0.5]):  # PostgreSQL's weights have seven digits
        model = engine_model("postgresql", None, FIELDS).prepared(rows, 0).at(values)
        expected = plain(rows, dict.fromkeys(FIELDS, 0.5), FUNCTIONS["ts_rank"])
        np.testing.assert_allclose(model.score(rows), expected, rtol=1e-7, atol=1e-12)


def test_labels_have_the_weights_of_postgresql_and_there_are_four() -> None:
    model = engine_model("postgresql", None, ["a", "b", "c", "d"])
    assert dict(zip(model.params.names, model.params.default, strict=True)) == {
        "a.w": 1.0,
        "b.w": 0.4,
        "c.w": 0.2,
        "d.w": 0.1,
    }
    with pytest.raises(UsageError, match="four labels for text, A to D, and these are 5 fields: a, b, c, d, e; name"):
        engine_model("postgresql", None, ["a", "b", "c", "d", "e"])


def test_a_model_is_saved_whole(rows: Candidates, tmp_path: Any) -> None:
    model = engine_model("postgresql", "ts_rank_1").prepared(rows, 0).at([0.3, 0.9, 0.2])
    model.save(tmp_path / "model")
    found = load_model(tmp_path / "model")
    assert isinstance(found, TsRank)
    np.testing.assert_array_equal(found.score(rows), model.score(rows))
    path = tmp_path / "model" / "model.json"
    path.write_text(path.read_text().replace("ts_rank_1", "ts_rank_9"))
    with pytest.raises((InputError, UsageError), match="ts_rank_9"):
        load_model(tmp_path / "model")


def test_its_formula_is_no_other_engines() -> None:
    with pytest.raises(UsageError, match="a formula of ts_rank is no model of kind engine"):
        EngineText(Formula("postgresql", "ts_rank", "ts_rank"))
    with pytest.raises(UsageError, match="a formula of bm25 is no model of kind ts_rank"):
        TsRank(Formula("postgresql", "ts_rank"))
