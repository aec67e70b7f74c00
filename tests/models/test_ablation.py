"""Scores without a feature are those of the model on rows where it is replaced; what is alike but for it ties."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fliprank.data.candidates import Candidates
from fliprank.experiment.training import train
from fliprank.models import BM25F, Blend, Cascade, FeatureSubset, Linear, Model, Network, Trees, ablation
from fliprank.models.ablation import column_of, query_means, without_field, without_of


def judged(seed: int = 0, missing: float = 0.0) -> Candidates:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(600, 5))
    x[:, 4] = np.repeat(rng.normal(size=30), 20)  # one value per query
    labels = np.round(np.clip(x[:, 0] + x[:, 1] * x[:, 4] + rng.normal(size=600), 0, 3))
    x[rng.random(x.shape) < missing] = np.nan
    return Candidates.of(labels, group=[20] * 30, features=x, feature_names=list("abcde"))


def models(rows: Candidates) -> dict[str, Model]:
    rng = np.random.default_rng(1)
    linear = Linear().prepared(rows, 0).at(rng.normal(size=6))
    network = Network(hidden=3).prepared(rows, 0)
    trees = train(Trees(rounds=8, leaves=6, rate=0.3, leaf_rows=10), rows).model
    subset = FeatureSubset(Linear(), ["b", "d"]).prepared(rows, 3)
    return {
        "linear": linear,
        "network": network,
        "trees": trees,
        "subset": subset,
        "blend": Blend([linear, trees, subset]).prepared(rows, 0),
        "cascade": Cascade([linear, network], sizes=[20, 5]),
    }


ROWS = judged()
MODELS = models(ROWS)


def by_hand(model: Model, rows: Candidates, k: int) -> np.ndarray:
    """The score of rows in which the column was replaced one query at a time."""
    assert rows.features is not None
    x = rows.features.astype(np.float64)
    means = np.array([np.nanmean(x[a:b, k]) for a, b in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)])
    x[:, k] = means.repeat(rows.sizes) if k != 4 else np.nanmean(x[:, 4])
    return model.score(Candidates.of(rows.labels, group=rows.sizes, features=x, feature_names=rows.feature_names))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("group", [1, 2, 100])
def test_scores_without_a_feature_are_those_of_the_model_on_changed_rows(
    name: str, group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ablation, "MOST_AT_ONCE", group * len(ROWS))
    assert ROWS.features is not None
    without = without_of(MODELS[name], ROWS, column_of(ROWS.features, ROWS.offsets))
    for k in (3, 0, 4, 1, 2):
        np.testing.assert_allclose(without(k), by_hand(MODELS[name], ROWS, k), rtol=1e-5, atol=1e-5)


def test_scores_of_trees_are_the_same_to_the_last_bit_with_missing_features_too() -> None:
    rows = judged(2, missing=0.2)
    model = train(Trees(rounds=8, leaves=6, rate=0.3, leaf_rows=10), rows).model
    assert rows.features is not None
    column = column_of(rows.features, rows.offsets)
    without = without_of(model, rows, column)
    for k in range(5):
        x = rows.features.copy()
        x[:, k] = column(k)
        np.testing.assert_array_equal(without(k), model.score(replace(rows, features=x)))


@pytest.mark.parametrize("name", ["linear", "trees", "blend", "network"])
def test_rows_that_are_alike_but_for_the_feature_tie_without_it(name: str) -> None:
    rng = np.random.default_rng(5)
    x = np.repeat(rng.normal(size=(1, 5)), 40, axis=0)
    for k in range(5):
        own = x.copy()
        own[:, k] = rng.normal(size=40)
        rows = Candidates.of(np.zeros(40), features=own, feature_names=list("abcde"))
        assert rows.features is not None
        scores = without_of(MODELS[name], rows, column_of(rows.features, rows.offsets))(k)
        assert len(np.unique(scores)) == 1


def test_the_mean_of_a_query_leaves_out_what_is_missing() -> None:
    values = np.array([1.0, np.nan, 3.0, np.nan, 0.1, 0.1, 0.1])
    found = query_means(values, np.array([0, 3, 3, 4, 7]))
    assert found.tolist() == pytest.approx([2, 2, 2, np.nan, 0.1, 0.1, 0.1], nan_ok=True)
    assert found[4] == 0.1  # exactly


def test_a_field_is_taken_away_with_its_terms() -> None:
    from fliprank.text.index import Index

    documents = [{"_id": i, "title": "red shoe" if i % 2 else "blue", "body": "red " * (i + 1)} for i in range(6)]
    rows = Index.build(documents, fields=["title", "body"]).candidates({"q": "red shoe"}, {"q": {"1": 1}})
    both, body = BM25F().prepared(rows, 0), BM25F(["body"]).prepared(rows, 0)
    np.testing.assert_allclose(both.score(without_field(rows, 0)), body.score(rows), rtol=1e-12)
