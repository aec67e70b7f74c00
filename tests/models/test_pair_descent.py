"""Pair-by-pair descent: plain steps by score and pullback of the two rows, finite differences of the cost, edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from term_candidates import random_terms

from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.models import (
    BM25,
    BM25F,
    AllFeatures,
    BM25Sum,
    Dirichlet,
    Feature,
    FeatureSubset,
    JelinekMercer,
    Linear,
    Model,
    Network,
    Parameters,
    Stack,
    TwoStageLM,
    pair_descent,
)
from fliprank.models.pair_descent import model_steps, pair_steps


@dataclass(frozen=True, eq=False)
class OtherLinear(Linear):
    """A linear model that no kernel knows."""

    kind: ClassVar[str] = "other linear"


KNOWN: dict[str, Model] = {
    "bm25": BM25(),
    "bm25 of one field": BM25("body"),
    "bm25f": BM25F(),
    "bm25f, shared b, free k": BM25F(["body", "title"], share_b=True, free_k=True),
    "sum": BM25Sum(),
    "sum with curves": BM25Sum(["body", "title"], curves=True),
    "two-stage": TwoStageLM(),
    "dirichlet": Dirichlet(),
    "jelinek-mercer": JelinekMercer(),
    "mixture": TwoStageLM(mixture=True, share_mu=False),
    "feature": Feature("depth"),
    "log": Feature("pagerank", "log"),
    "saturate": Feature("pagerank", "saturate"),
    "sigmoid": Feature("pagerank", "sigmoid"),
    "signed": Feature("age", "signed"),
    "recency": Feature("age", "recency"),
    "linear": Linear(),
    "network": Network(3),
    "subset": FeatureSubset(Network(2), ["age", "pagerank"]),
    "subset of a stack": FeatureSubset(Stack(BM25F(), AllFeatures()), ["age", "pagerank"]),
    "nine": Stack(BM25F(), Feature("pagerank", "log", k=1.0)),
    "many": Stack(BM25F(), AllFeatures()),
    "all parts": Stack(
        Feature("age", "sigmoid"), BM25(), AllFeatures(), TwoStageLM(mixture=True), BM25F(share_b=True),
        Feature("depth"), Dirichlet("body"), Feature("pagerank", "saturate"), BM25Sum(curves=True),
    ),
    "net": Stack(BM25F(), Feature("pagerank", "saturate"), hidden=3),
    "net of everything": Stack(AllFeatures(), BM25F(), TwoStageLM(), Feature("age", "log"), hidden=2),
    "net of features": Stack(AllFeatures(), hidden=2),
}  # fmt: skip
OTHERS: dict[str, Model] = {
    "stack of stacks": Stack(Stack(BM25(), Feature("pagerank", "log")), Linear()),
    "a user's own": OtherLinear(),
}


def rows_of(seed: int = 1) -> Candidates:
    return random_terms(np.random.default_rng(seed), queries=12)


def pairs_of(rows: Candidates, count: int, seed: int = 0) -> np.ndarray:
    """Pairs of different rows of one query; labels do not matter here."""
    rng = np.random.default_rng(seed)
    queries = rng.choice(np.flatnonzero(rows.sizes > 1), count)
    two = np.array([rng.choice(rows.sizes[query], 2, replace=False) for query in queries])
    return (rows.offsets[queries][:, None] + two).astype(np.int32)


def constrained(params: Parameters, rng: np.random.Generator) -> Parameters:
    """Some parameters fixed, some shared, some with bounds so close that steps meet them."""
    near = rng.random(len(params)) < 0.3
    reach = 0.02 * np.maximum(1.0, np.abs(params.values))
    params = replace(
        params,
        lower=np.where(near, np.maximum(params.lower, params.values - reach), params.lower),
        upper=np.where(near, np.minimum(params.upper, params.values + reach), params.upper),
        default=params.values,
    )
    params = params.fix([name for name in params.names if rng.random() < 0.2])
    free = [name for name, driver in zip(params.names, params.drivers(), strict=True) if driver is not None]
    for _ in range(2):
        if len(free) > 2:
            try:
                params = params.tie({f"shared{len(free)}": list(rng.choice(free, 2, replace=False))})
            except UsageError:  # their bounds have no value in common
                continue
            free = free[1:]
    return params


def ready_model(model: Model, rows: Candidates, rng: np.random.Generator) -> Model:
    """With random values within the bounds, away from their ends."""
    ready = model.prepared(rows, rng)
    start, params = ready.initialised(rng).params.values, ready.params
    return ready.at(np.clip(start, params.lower + 0.02, params.upper - 0.02))


def plain_steps(model: Model, rows: Candidates, pairs: np.ndarray, targets: np.ndarray, rate: float) -> np.ndarray:
    """The step as the module states it, on candidates of two rows each."""
    params = model.params
    values = params.free_values
    for pair, target in zip(pairs, targets, strict=True):
        two, there = rows.take(pair), model.at(params.with_free(values))
        preferred, other = there.score(two)
        by_y = 1.0 / (1.0 + np.exp(preferred - other)) - (1.0 - target)
        gradient = params.pull_free(there.pullback(two, by_y * np.array([-1.0, 1.0])))
        values = np.clip(values - rate * gradient, params.free_lower, params.free_upper)
    return values


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("seed", range(3))
def test_kernels_take_the_plain_steps(name: str, seed: int) -> None:
    rng, rows = np.random.default_rng(seed), rows_of()
    model = ready_model(KNOWN[name], rows, rng)
    if seed:
        model = model.at(constrained(model.params, rng))
    pairs, targets = pairs_of(rows, 300, seed), rng.uniform(0.5, 1.0, 300)
    assert pair_descent._plan(model, rows) is not None
    found = pair_steps(model, rows, pairs, targets)(model.params.free_values, np.arange(300), 0.02)
    expected = plain_steps(model, rows, pairs, targets, 0.02)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
    if len(model.params.free_names) > 1:
        assert np.abs(found - model.params.free_values).max() > 1e-4


@pytest.mark.parametrize("name", OTHERS)
def test_other_models_take_the_same_steps_by_themselves(name: str) -> None:
    rng, rows = np.random.default_rng(4), rows_of()
    model = ready_model(OTHERS[name], rows, rng)
    pairs, targets = pairs_of(rows, 60), rng.uniform(0.5, 1.0, 60)
    assert pair_descent._plan(model, rows) is None
    found = pair_steps(model, rows, pairs, targets)(model.params.free_values, np.arange(60), 0.02)
    assert found == pytest.approx(plain_steps(model, rows, pairs, targets, 0.02), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", ["nine", "net of everything", "mixture", "linear"])
def test_a_step_goes_down_the_cost_of_the_pair(name: str) -> None:
    """C = log(1 + e^Y) - (1 - target) Y, differentiated by small differences of all free values."""
    rng, rows = np.random.default_rng(5), rows_of()
    model = ready_model(KNOWN[name], rows, rng)
    params, pair, target, rate = model.params, pairs_of(rows, 1, seed=3), 0.8, 1e-3

    def cost(values: np.ndarray) -> float:
        scores = model.at(params.with_free(values)).score(rows)
        gap = scores[pair[0, 1]] - scores[pair[0, 0]]
        return float(np.logaddexp(0.0, gap) - (1.0 - target) * gap)

    values, step = params.free_values, 1e-5 * np.maximum(1.0, np.abs(params.free_values))
    units = np.diag(step)
    gradient = np.array([cost(values + unit) - cost(values - unit) for unit in units]) / (2 * step)
    found = pair_steps(model, rows, pair, target)(values, np.array([0]), rate)
    np.testing.assert_allclose((values - found) / rate, gradient, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("name", KNOWN)
def test_steps_depend_on_the_two_rows_alone(name: str) -> None:
    rows = rows_of()
    model = ready_model(KNOWN[name], rows, np.random.default_rng(6))
    chosen = np.array([9, 2, 5, 7, 11, 0])
    part, pairs = rows.select(chosen), pairs_of(rows.select(chosen), 200)
    owner = np.searchsorted(part.offsets, pairs[:, 0], "right") - 1
    there = pairs - part.offsets[owner][:, None] + rows.offsets[chosen[owner]][:, None]
    order, values = np.random.default_rng(7).permutation(200), model.params.free_values
    whole, alone = (pair_steps(model, r, p, 0.9)(values, order, 0.05) for r, p in ((rows, there), (part, pairs)))
    np.testing.assert_array_equal(whole, alone)


def test_all_models_run_through_one_compiled_kernel() -> None:
    rows = rows_of()
    for model in KNOWN.values():
        ready = model.prepared(rows, 0)
        pair_steps(ready, rows, pairs_of(rows, 3))(ready.params.free_values, np.arange(3), 0.1)
    assert len(pair_descent._take_steps.signatures) == 1  # type: ignore[attr-defined]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of()
    model, pairs, order = KNOWN["nine"].prepared(rows, 0), pairs_of(rows, 50), np.random.default_rng(1).permutation(50)
    steps = pair_steps(model, rows, pairs)
    whole = steps(model.params.free_values, order, 0.1)
    monkeypatch.setattr(pair_descent, "BLOCK", 7)
    np.testing.assert_array_equal(steps(model.params.free_values, order, 0.1), whole)
    again = steps(steps(model.params.free_values, order[:20], 0.1), order[20:], 0.1)
    np.testing.assert_array_equal(again, whole)


def test_one_target_serves_all_pairs() -> None:
    rows = rows_of()
    model, pairs = KNOWN["many"].prepared(rows, 0), pairs_of(rows, 40)
    one, each = (
        pair_steps(model, rows, pairs, target)(model.params.free_values, np.arange(40), 0.1)
        for target in (0.7, np.full(40, 0.7))
    )
    np.testing.assert_array_equal(one, each)


def test_a_bias_that_shares_a_value_moves_by_the_others_gradient() -> None:
    """The bias itself cancels in Y; its gradient is 0 at every step, not what was added up before."""
    rows = rows_of()
    model = Linear().prepared(rows, 0)
    model = model.at(model.params.tie({"same": ["bias", "w.age"]}))
    pairs = pairs_of(rows, 100)
    found = pair_steps(model, rows, pairs)(model.params.free_values, np.arange(100), 0.05)
    expected = plain_steps(model, rows, pairs, np.ones(100), 0.05)
    assert found == pytest.approx(expected, rel=1e-9)


def test_values_that_are_no_numbers_stay_so() -> None:
    """A rate far too high must end in an error of whoever uses the values, not at a bound that looks reasonable."""
    rows = rows_of()
    model = KNOWN["many"].prepared(rows, 0)
    start = model.params.free_values
    start[-1] = 1e308
    with np.errstate(all="ignore"):
        found = pair_steps(model, rows, pairs_of(rows, 40), 0.5)(start, np.arange(40), 1e308)
    assert not np.isfinite(found).all()


NINE = KNOWN["nine"]
WRONG: list[tuple[Callable[[Candidates], Any], str]] = [
    (lambda rows: pair_steps(NINE.prepared(rows, 0), rows, [0, 1]), "expected rows .preferred, other."),
    (lambda rows: pair_steps(NINE.prepared(rows, 0), rows, [[0.0, 1.0]]), "got float64 of shape"),
    (lambda rows: pair_steps(NINE.prepared(rows, 0), rows, [[0, 10**6]]), "rows from 0 to 1000000, but there are"),
    (lambda rows: pair_steps(NINE.prepared(rows, 0), rows, [[0, len(rows) - 1]]), "belong to different queries"),
    (lambda rows: pair_steps(NINE.prepared(rows, 0), rows, [[0, 1]], [1.0, 1.0]), "one for each of 1 pairs"),
    (lambda rows: pair_steps(NINE.prepared(rows, 0), rows, [[0, 1]], 1.5), "a number from 0 to 1"),
    (lambda rows: pair_steps(NINE.prepared(rows, 0), rows, [[0, 1]])(np.ones(7), np.array([1]), 1.0), "there are 1"),
    (lambda rows: pair_steps(Linear(), rows, [[0, 1]]), r"call prepared\(train, rng\) first"),
    (lambda rows: pair_steps(KNOWN["net"], rows, [[0, 1]]), r"call prepared\(train, rng\) first"),
    (lambda rows: model_steps(NINE.prepared(rows, 0), rows, [[0, len(rows) - 1]]), "belong to different queries"),
]


@pytest.mark.parametrize(("make", "said"), WRONG)
def test_wrong_use_is_told(make: Callable[[Candidates], Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make(random_terms(np.random.default_rng(2), queries=12))
