"""Costs of stages: each stage pays for what it is the first to read, and a cost says what it includes."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fliprank as fr
from fliprank.experiment.cutoffs import choose_cutoffs
from fliprank.experiment.stage_costs import read_feature_costs, stage_costs, time_stages
from fliprank.models.cascade import Cascade
from fliprank.models.feature_subset import FeatureSubset
from fliprank.models.trees import Forest, Trees

NAMES = ("bm25.title", "bm25.body", "clicks", "length")
RNG = np.random.default_rng(0)
ROWS = fr.Candidates.of(
    RNG.integers(0, 2, 200), group=[20] * 10, features=RNG.normal(size=(200, 4)), feature_names=NAMES
)
TREES = Trees(
    forest=Forest.of(
        [[{"feature": "clicks", "at_most": 0.0, "above": 2}, {"value": 1.0}, {"value": 2.0}]],
    )
)
PRICES = {"bm25.title": 2.0, "bm25.body": 3.0, "clicks": 10.0, "length": 0.5}
STAGES = [FeatureSubset(fr.Linear(), "bm25*").prepared(ROWS, 0), TREES, fr.Network(2).prepared(ROWS, 0)]
READ = [{"bm25.title", "bm25.body"}, {"clicks"}, set(NAMES)]
CASCADE = Cascade(STAGES, [20, 10, 5])


def test_a_stage_pays_for_features_that_no_earlier_stage_has_computed() -> None:
    costs = stage_costs(CASCADE, ROWS, [1.0, 20.0, 300.0], PRICES)
    assert [set(read) for read in costs.reads] == READ
    assert costs.per_document([0, 1, 2]) == (1 + 5, 20 + 10, 300 + 0.5)
    assert costs.per_document([0, 2]) == (1 + 5, 300 + 10.5)
    assert costs.includes == "scoring, as given; computing features, as given for 4 of 4"


def test_the_cost_of_a_choice_is_that_of_its_documents_and_of_the_features_it_computes() -> None:
    scoring = [1.0, 20.0, 300.0]
    found = choose_cutoffs(CASCADE, ROWS, costs=scoring, feature_costs=PRICES, grid=[3, 7])
    assert len(found.choices) > 8
    for choice in found.choices:
        seen: dict[str, int] = {}
        for stage, size in zip(choice.stages, choice.sizes, strict=True):
            for name in READ[stage]:
                seen.setdefault(name, size)  # computed for all documents of the first stage that reads it
        cost = sum(scoring[s] * n for s, n in zip(choice.stages, choice.sizes, strict=True))
        assert choice.cost == pytest.approx(cost + sum(PRICES[name] * n for name, n in seen.items()))


def test_one_number_is_for_all_features_and_patterns_are_for_some() -> None:
    assert stage_costs(CASCADE, ROWS, [0, 0, 0], 2.0).per_document([0, 1, 2]) == (4, 2, 2)
    some = stage_costs(CASCADE, ROWS, [0, 0, 0], {"*": 1.0, "bm25*": 5.0, "bm25.body": 7.0})
    assert some.per_document([0, 1, 2]) == (5 + 7, 1, 1)
    few = stage_costs(CASCADE, ROWS, [0, 0, 0], {"clicks": 1.0})
    assert few.includes == "scoring, as given; computing features, as given for 1 of 4"
    assert "not computing the features" in stage_costs(CASCADE, ROWS).includes
    with pytest.raises(fr.InputError, match="no feature is called 'click'"):
        stage_costs(CASCADE, ROWS, [0, 0, 0], {"click": 1.0})
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(fr.UsageError, match="finite and not negative"):
            stage_costs(CASCADE, ROWS, [0, 0, 0], wrong)


def test_feature_costs_are_read_from_a_number_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "costs.txt"
    path.write_text("# microseconds\n\nbm25*=0.5\nsum = of = parts = 2\n")
    assert read_feature_costs("1.5") == 1.5
    assert read_feature_costs(str(path)) == {"bm25*": 0.5, "sum = of = parts": 2.0}
    path.write_text("bm25=1\nclicks\n")
    with pytest.raises(fr.InputError, match=r"line 2: 'clicks': expected NAME=MICROSECONDS"):
        read_feature_costs(str(path))
    with pytest.raises(fr.UsageError, match="expected microseconds, or a file"):
        read_feature_costs("none.txt")


@pytest.fixture
def text(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """An index, queries, and a cascade of two text models."""
    monkeypatch.setattr(fr.BM25F, "needs", frozenset({"terms"}))
    words = ["red", "blue", "shoe", "sky", "tree"]
    docs = [{"_id": f"d{i}", "title": words[i % 5], "body": " ".join(words[: 1 + i % 4])} for i in range(40)]
    index = fr.Index.build(docs)
    texts = {"q1": "red shoe", "q2": "blue sky"}
    rows = index.candidates(texts, {"q1": {"d0": 1}, "q2": {"d1": 1}}, depth=30)
    stages = [fr.BM25F().prepared(rows, 0) for _ in range(2)]
    return {"index": index, "texts": texts, "rows": rows, "cascade": Cascade(stages, [30, 5])}


def test_gathering_term_statistics_is_timed_with_an_index_and_paid_once(text: dict[str, Any]) -> None:
    timed = time_stages(text["cascade"], text["rows"], text["index"], text["texts"])
    assert timed.gathering is not None
    assert timed.gathering > 0
    costs = stage_costs(text["cascade"], text["rows"], timed)
    assert costs.per_document([0, 1]) == pytest.approx((timed.scoring[0] + timed.gathering, timed.scoring[1]))
    assert "gathering term statistics from the index, timed" in costs.includes


def test_without_an_index_it_is_said_that_only_scoring_was_timed(text: dict[str, Any]) -> None:
    costs = stage_costs(text["cascade"], text["rows"])
    assert "not gathering the term statistics, which can't be timed without the index" in costs.includes
    assert costs.per_document([0, 1]) == costs.scoring


def test_what_is_left_out_makes_no_stage_dearer_than_all_features() -> None:
    costs = stage_costs(CASCADE, ROWS, [0.0, 0.0, 0.0], PRICES)
    for kept in range(1, 4):
        for stages in combinations(range(3), kept):
            every = set[str]().union(*(READ[s] for s in stages))
            assert sum(costs.per_document(stages)) == pytest.approx(sum(PRICES[name] for name in every))
