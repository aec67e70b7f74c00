"""Importance is what the measure loses, by the plain definition; what does nothing is worth nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tuning_rows import TRUTH, judged_rows

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.experiment.importance import importance
from fliprank.experiment.significance import holm, randomisation
from fliprank.experiment.training import train
from fliprank.measures import parse_measure
from fliprank.models import BM25, BM25F, Blend, Cascade, Feature, Linear, Network, Stack, Trees, TwoStageLM
from fliprank.text.index import Index


def judged(seed: int = 0, queries: int = 40) -> Candidates:
    """The label follows a with b, d by its opposite; c is noise; e has one value per query."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(20 * queries, 5))
    x[:, 4] = np.repeat(rng.normal(size=queries), 20)
    worth = 2 * x[:, 0] + x[:, 1] - x[:, 3] + rng.normal(size=len(x))
    labels = np.round(np.clip(worth, 0, 3))
    return Candidates.of(labels, group=[20] * queries, features=x, feature_names=list("abcde"))


ROWS, TEST = judged(), judged(9)
LINEAR = Linear().prepared(ROWS, 0).at([0.3, 2.0, 1.0, 0.0, -1.0, 5.0])


def test_it_is_the_drop_of_the_measure_query_by_query() -> None:
    found = importance(LINEAR, TEST, "AP")
    assert TEST.features is not None
    measure, p = parse_measure("AP"), []
    base = measure.per_query(LINEAR.score(TEST), TEST)
    for k, name in enumerate("abcde"):
        x = TEST.features.astype(np.float64).reshape(40, 20, 5)
        x[:, :, k] = x[:, :, k].mean(axis=1, keepdims=True)
        flat = Candidates.of(TEST.labels, group=[20] * 40, features=x.reshape(-1, 5), feature_names=list("abcde"))
        drop = base - measure.per_query(LINEAR.score(flat), flat)
        row = next(row for row in found.rows if row.name == name)
        assert (row.drop, row.worse, row.better) == (
            *(pytest.approx(drop.mean(), abs=1e-12), (drop > 1e-15).sum(), (drop < -1e-15).sum()),
        )
        assert row.low <= row.drop <= row.high
        assert row.p == randomisation(drop, 20_000)
        p.append(row.p)
    corrected = dict(zip("abcde", holm(p), strict=True))
    assert {row.name: row.p_holm for row in found.rows} == corrected
    assert found.value == pytest.approx(base.mean())
    assert [row.name for row in found.rows][:3] == ["a", *sorted("bd", key=lambda n: -_drop(found, n))]


def _drop(found: Any, name: str) -> float:
    return float(next(row.drop for row in found.rows if row.name == name))


def test_the_weight_of_a_linear_model_is_weight_times_spread_within_queries() -> None:
    found = {row.name: row.weight for row in importance(LINEAR, TEST, "AP").rows}
    assert TEST.features is not None

    def spread(values: np.ndarray) -> float:
        grid = values.reshape(40, 20)
        return float(np.sqrt(((grid - grid.mean(axis=1, keepdims=True)) ** 2).mean()))

    _, weights = LINEAR.raw_weights()
    whole = spread(LINEAR.score(TEST))
    for k, name in enumerate("abcd"):
        wanted = weights[k] * spread(TEST.features[:, k].astype(np.float64)) / whole
        assert found[name] == pytest.approx(wanted, rel=1e-4, abs=1e-9)
    assert found["e"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("how", ["mean", "permute"])
@pytest.mark.parametrize("kind", ["linear", "network", "trees", "blend", "cascade"])
def test_every_model_owes_most_to_what_the_labels_follow(kind: str, how: str) -> None:
    options: dict[str, Any] = {"objective": "ranknet", "measure": "AP", "restarts": 1, "sweep": False}
    linear = train(Linear(), ROWS, epochs=30, **options).model
    if kind == "linear":
        model = linear
    elif kind == "network":
        model = train(Network(hidden=3), ROWS, epochs=30, **options).model
    else:
        trees = train(Trees(rounds=20, leaves=6, rate=0.2, leaf_rows=10), ROWS, **options).model
        both = Blend([linear, trees]).prepared(ROWS, 0)
        model = {"trees": trees, "blend": both, "cascade": Cascade([linear, trees], sizes=[20, 10])}[kind]
    found = importance(model, TEST, "AP", how=how, permutations=999)
    assert found.rows[0].name == "a"
    assert found.rows[0].p_holm < 0.05
    assert {row.name for row in found.rows[:3]} == {"a", "b", "d"}
    assert _drop(found, "a") > 5 * abs(_drop(found, "c"))


def test_what_a_model_does_not_read_is_worth_nothing() -> None:
    model = train(Trees(rounds=3, leaves=3, rate=0.2, leaf_rows=10), ROWS).model
    found = importance(model, TEST, "AP", permutations=999)
    unused = set("abcde") - set(model.forest.names)  # type: ignore[attr-defined]
    assert unused
    for row in found.rows:
        if row.name in unused:
            assert (row.drop, row.low, row.high, row.p, row.worse, row.weight) == (0, 0, 0, 1, 0, 0)


def test_a_feature_with_one_value_per_query_counts_where_it_decides_what_others_mean() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2000, 2))
    x[:, 1] = np.repeat(rng.choice([-1.0, 1.0], 100), 20)
    rows = Candidates.of(x[:, 0] * x[:, 1] > 0.8, group=[20] * 100, features=x, feature_names=["a", "switch"])
    train_rows, test = rows.split(0.5, 0.5)
    model = train(Trees(rounds=20, leaves=8, rate=0.3, leaf_rows=5), train_rows, objective="ranknet").model
    found = {row.name: row for row in importance(model, test, "AP", permutations=999).rows}
    assert found["switch"].drop > 0.1
    assert found["switch"].p_holm < 0.05


def test_a_measure_of_which_less_is_better_loses_when_it_rises() -> None:
    found = importance(LINEAR, TEST, "ESL", permutations=999)
    assert found.rows[0].name == "a"
    assert found.rows[0].drop > 0


def test_of_a_text_model_fields_and_parameters_are_taken_away() -> None:
    rows = judged_rows(40)
    model = BM25F().prepared(rows, 0)
    model = model.at(model.params.replace(TRUTH))
    found = importance(model, rows, "nDCG@10", permutations=999)
    kinds = {kind: [row.name for row in found.rows if row.kind == kind] for kind in ("field", "parameter", "feature")}
    assert (sorted(kinds["field"]), sorted(kinds["parameter"])) == (["body", "title"], sorted(model.params.free_names))
    assert not kinds["feature"]
    assert kinds["field"][0] == "title"
    measure = parse_measure("nDCG@10")
    back = model.at(model.params.replace({"title.w": 1.0}))
    wanted = measure.value(model.score(rows), rows) - measure.value(back.score(rows), rows)
    row = next(row for row in found.rows if row.name == "title.w")
    assert (row.drop, row.p_holm < 0.05) == (pytest.approx(wanted), True)
    only = importance(model, rows, "nDCG@10", of="field", permutations=999)
    assert {row.kind for row in only.rows} == {"field"}


def test_text_models_of_every_kind_can_be_asked() -> None:
    documents = [
        {"_id": i, "title": "red" if i % 3 == 0 else "blue", "body": "red " * (i % 5 + 1), "price": float(i)}
        for i in range(30)
    ]
    index = Index.build(documents, fields=["title", "body"])
    rows = index.candidates({"q": "red", "r": "blue"}, {"q": {"0": 1, "3": 1}, "r": {"1": 1}})
    for model in (BM25(), TwoStageLM(), Stack(BM25F(), Feature("price"))):
        found = importance(model.prepared(rows, 0), rows, "AP", permutations=99)
        assert {row.name for row in found.rows if row.kind == "field"} == {"title", "body"}
        assert any(row.name == "price" and row.kind == "feature" for row in found.rows) == (model.kind == "stack")


def test_only_some_features_if_asked() -> None:
    found = importance(LINEAR, TEST, "AP", features=["a", "d*"], permutations=99)
    assert {row.name for row in found.rows} == {"a", "d"}
    with pytest.raises(InputError, match="no feature is called 'zz'"):
        importance(LINEAR, TEST, "AP", features="zz")


def test_it_is_a_frame_and_a_few_lines() -> None:
    found = importance(LINEAR, TEST, "AP", permutations=99)
    frame = found.to_frame()
    assert frame["name"].to_list() == [row.name for row in found.rows]
    assert frame["drop"].is_sorted(descending=True)
    assert repr(found).startswith("Importance: what AP of 0.")
    assert len(repr(found).splitlines()) == 6


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"how": "magic"}, "how: one of mean, permute, not 'magic'"),
        ({"of": "colour"}, "of: one or more of feature, field, parameter, not 'colour'"),
        ({"of": "field"}, "of='field': this linear model has no field to take away"),
        ({"repeats": 0}, "repeats is a whole number from 1, not 0"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        importance(LINEAR, TEST, "AP", **options)


def test_a_model_that_was_not_trained_has_nothing_to_lose() -> None:
    with pytest.raises(UsageError, match="not trained yet"):
        importance(Linear(), TEST)
