"""What models know before and after they have seen rows: parameters, averages, scalers; what they need and hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from term_candidates import random_terms

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.models import (
    BM25,
    BM25F,
    KINDS,
    AllFeatures,
    Cascade,
    Dirichlet,
    Feature,
    FeatureSubset,
    JelinekMercer,
    Linear,
    Model,
    Network,
    Stack,
    Trees,
    TwoStageLM,
    load_model,
    taylor2006,
)

MODELS: dict[str, Model] = {
    "bm25": BM25(),
    "bm25f": BM25F(),
    "two-stage": TwoStageLM(),
    "mixture": TwoStageLM(mixture=True),
    "log": Feature("pagerank", "log"),
    "linear": Linear(),
    "network": Network(3),
    "subset": FeatureSubset(Linear(), ["p*", "age"]),
    "sum": Stack(BM25F(), AllFeatures(), Feature("pagerank", "sigmoid")),
    "sum of what is known": Stack(BM25(), Feature("pagerank", "log", k=1.0)),
    "net": Stack(BM25F(), Feature("pagerank", "log"), AllFeatures(), hidden=2),
    "cascade": Cascade([Linear(), Network(2)], [10, 5]),
}


def rows_of(seed: int) -> Candidates:
    """Rows of an unknown collection, so that averages come from the rows themselves, in another unit for each seed."""
    rows = random_terms(np.random.default_rng(seed), queries=15)
    assert rows.terms is not None
    assert rows.features is not None
    terms = replace(rows.terms, documents=0, length=rows.terms.length * seed)
    return replace(rows, terms=terms, features=rows.features * np.float32(seed))


@pytest.mark.parametrize("name", MODELS)
def test_a_prepared_model_keeps_what_it_knows(name: str) -> None:
    rows, others = rows_of(1), rows_of(3)
    first = MODELS[name].prepared(rows, 0)
    assert first.ready
    moved = first.initialised(5)
    again = moved.prepared(others, 1)
    assert again.ready
    np.testing.assert_array_equal(again.params.values, moved.params.values)
    for candidates in (rows, others):
        np.testing.assert_array_equal(again.score(candidates), moved.score(candidates))
    fresh = MODELS[name].prepared(others, 0).at(moved.params.values)
    if name not in ("two-stage", "mixture", "log"):  # these know nothing of the rows but names and starting values
        assert (fresh.score(rows) != moved.score(rows)).any()


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_is_as_prepared_as_the_one_that_was_saved(name: str, tmp_path: Path) -> None:
    rows, others = rows_of(1), rows_of(3)
    saved = MODELS[name].prepared(rows, 0).initialised(2)
    saved.save(tmp_path / "m")
    again = load_model(tmp_path / "m").prepared(others, 4)
    np.testing.assert_array_equal(again.score(rows), saved.score(rows))


def test_training_a_prepared_bm25_does_not_move_its_average_length() -> None:
    from fliprank.experiment.training import train

    model = BM25().prepared(rows_of(1), 0)
    assert train(model, rows_of(3), method="lbfgs", objective="ranknet", epochs=1).model.average == model.average


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (BM25(), ("k", "b")),
        (BM25("body"), ("k", "b")),
        (TwoStageLM(), ("lambda", "mu")),
        (Dirichlet(), ("lambda", "mu")),
        (JelinekMercer(), ("lambda", "mu")),
        (BM25F(["title"]), ("k", "title.w", "title.b")),
        (Feature("x", "saturate", k=2.0), ("x.k",)),
        (Feature("x"), ()),
        (Stack(BM25(), Feature("x", "log", k=1.0)), ("k", "b", "x.k", "bm25.weight", "x.weight")),
    ],
)
def test_parameters_that_do_not_depend_on_rows_are_there_from_the_start(model: Model, names: tuple[str, ...]) -> None:
    assert model.params.names == names
    assert len(model.penalty_weights) == len(names)


def test_values_that_were_set_before_rows_were_seen_are_kept() -> None:
    rows = rows_of(1)
    for model in (BM25(), Stack(BM25(), Feature("pagerank", "log", k=1.0))):
        start = model.at(model.params.replace(k=1.0, b=0.5).fix("b"))
        assert not start.ready
        ready = start.prepared(rows, 0)
        assert (ready.params["k"], ready.params["b"]) == (1.0, 0.5)
        assert "b" not in ready.params.free_names
        assert ready.ready


@pytest.mark.parametrize("model", [BM25F(), TwoStageLM(mixture=True), Linear(), Network(2), Feature("x", "log")])
@pytest.mark.parametrize("use", [lambda p: p.replace(k=1), lambda p: p["k"], lambda p: p.fix("k"), lambda p: p.at([1])])
def test_parameters_that_depend_on_rows_say_so(model: Model, use: Any) -> None:
    with pytest.raises(UsageError, match=r"depends on the rows. Call prepared\(train, rng\) first, or name the fields"):
        use(model.params)


@pytest.mark.parametrize(
    ("model", "lacks", "said"),
    [
        (BM25F(), {"terms": None}, "no term statistics"),
        (TwoStageLM(), {"terms": None}, "no term statistics"),
        (Linear(), {"features": None, "feature_names": ()}, "no features"),
        (Feature("age", "log"), {"features": None, "feature_names": ()}, "no feature 'age'"),
        (Stack(BM25F(), AllFeatures()), {"features": None, "feature_names": ()}, "no features"),
        (FeatureSubset(Linear(), ["age"]), {"features": None, "feature_names": ()}, "no feature is called 'age'"),
    ],
)
def test_preparing_again_on_rows_that_lack_what_a_model_reads_is_an_error(
    model: Model, lacks: dict[str, Any], said: str
) -> None:
    rows = rows_of(1)
    with pytest.raises(InputError, match=said):
        model.prepared(rows, 0).prepared(replace(rows, **lacks), 0)


def test_features_of_a_subset_keep_their_order() -> None:
    rows = rows_of(1)
    ready = FeatureSubset(Linear(), ["age", "pagerank"]).prepared(rows, 0)
    assert rows.features is not None
    other = replace(rows, features=rows.features[:, ::-1], feature_names=rows.feature_names[::-1])
    np.testing.assert_array_equal(ready.prepared(other, 0).score(other), ready.score(rows))


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (BM25(), [2, 16]),
        (TwoStageLM(), [11, 0.25]),
        (Feature("pagerank", "sigmoid"), [1, 1]),
        (Linear(), [0, 1, 1, 1]),
        (FeatureSubset(Linear(), ["age"]), [0, 1]),
        (Network(2), [1] * 6 + [0, 0, 1, 1, 0]),
        (Stack(Linear(), BM25()), [0, 1, 1, 1, 2, 16, 1, 1]),
        (Stack(BM25(), hidden=2), [2, 16, 1, 1, 0, 0, 1, 1, 0]),
    ],
)
def test_a_prior_holds_all_but_biases(model: Model, expected: list[float]) -> None:
    assert model.prepared(rows_of(1), 0).penalty_weights.tolist() == expected


def test_models_say_what_they_read() -> None:
    terms, features = frozenset({"terms"}), frozenset({"features"})
    for model, needs in (
        (BM25, terms), (BM25F, terms), (TwoStageLM, terms), (Feature, features), (Linear, features),
        (Network, features), (Trees, features), (MODELS["subset"], features), (MODELS["cascade"], features),
        (Stack(BM25F()), terms), (MODELS["sum"], terms | features), (Stack(AllFeatures(), hidden=2), features),
        (FeatureSubset(BM25(), ["age"]), terms), (Stack(Stack(BM25()), Feature("age")), terms | features),
    ):  # fmt: skip
        assert model.needs == needs, model


def test_every_kind_has_a_line_for_lists() -> None:
    ours = {kind: model for kind, model in KINDS.items() if model.__module__.startswith("fliprank.")}
    assert len(ours) >= 10
    for kind, model in ours.items():
        assert 10 < len(model.summary) < 80, kind


def test_the_rankers_of_taylor_2006_start_where_the_paper_says() -> None:
    rng = np.random.default_rng(4)
    rows = random_terms(rng, queries=12, fields=4)
    wide = replace(rows, features=rng.normal(size=(len(rows), 367)), feature_names=tuple(f"f{i}" for i in range(367)))
    two, static = taylor2006.two_parameter(), taylor2006.two_parameter("pagerank", 0.5)
    nine, many = taylor2006.nine_parameter(), taylor2006.many_parameter()
    for model, candidates, count in ((two, rows, 2), (static, rows, 2), (nine, rows, 9), (many, wide, 375)):
        ready = model.prepared(candidates, 0)
        params = ready.params
        assert len(params.free_names) == count
        np.testing.assert_array_equal(params.default, params.values)
        assert params["k"] == 1.0
        for name in params.names:
            if name == "b" or name.endswith(".b"):
                assert params[name] == 0.5
            elif name.endswith(".w"):
                assert params[name] == 1.0
    assert set(nine.params.free_names) == {f"{f}.{p}" for f in taylor2006.FIELDS for p in "wb"} | {"pagerank.weight"}
    assert two.params.free_names == static.params.free_names == ("k", "b")
    log = np.log1p(rows.features[:, 0].astype(float))
    for model, text, weight in (
        (static, two, 0.5),
        (nine, BM25F(taylor2006.FIELDS), 1.0),
        (taylor2006.nine_parameter(weight=0.3), BM25F(taylor2006.FIELDS), 0.3),
    ):
        alone = text.prepared(rows, 0)
        values = {name: model.params[name] for name in alone.params.names}
        expected = alone.at(alone.params.replace(values)).score(rows) + weight * log
        assert model.prepared(rows, 0).score(rows) == pytest.approx(expected)
