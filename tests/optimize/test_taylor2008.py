"""Query by query, as Taylor et al. 2008 print it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from runs import MODELS, followed, followed_rows, ordered_rows, record, run, train_rows

from fliprank.errors import UsageError
from fliprank.models import Linear, Model, Network
from fliprank.objectives import RankNet
from fliprank.optimize.methods import METHODS, Taylor2008
from fliprank.optimize.pairs import pairs_of
from fliprank.optimize.problem import Problem


@pytest.mark.parametrize("objective", ["ranknet", "softndcg(sigma=0.5)", "lambdarank@10", "mse"])
def test_a_step_is_down_the_gradient_of_one_query(objective: str) -> None:
    train = followed_rows(7, queries=1, rows=15)
    recorder = record(Network(3).prepared(train, 1), train, objective=objective)
    run(Taylor2008(epochs=1, rate=0.05), recorder)
    value, gradient = recorder.problem.value_and_grad(recorder.path[0])
    assert recorder.path[1] == pytest.approx(recorder.path[0] - 0.05 * gradient, rel=1e-12)
    assert np.abs(gradient).max() > 1e-4
    assert recorder.trail[1].objective == pytest.approx(value)


@pytest.mark.parametrize("objective", ["ranknet", "softndcg(sigma=0.5)"])
def test_an_epoch_visits_each_query_once(objective: str) -> None:
    recorder = run(Taylor2008(epochs=1, rate=1e-9), followed(Network(3), objective))
    value, gradient = recorder.problem.value_and_grad(recorder.path[0])
    total = gradient * train_rows(recorder).queries
    assert (recorder.path[1] - recorder.path[0]) / -1e-9 == pytest.approx(total, rel=1e-4, abs=1e-6)
    assert recorder.trail[1].objective == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("by_row", [False, True])
def test_weights_are_updated_after_each_query(by_row: bool) -> None:
    """The second query pulls at where the first one left the weights, in one order or the other.

    Pairs that are given by row go with their queries.
    """
    train = followed_rows(8, queries=2)
    pairs = pairs_of(RankNet(), train)[::3] if by_row else None
    recorder = record(Linear().prepared(train, 1), train, objective=RankNet(pairs=pairs))
    run(Taylor2008(epochs=1, rate=0.5), recorder)
    ends = []
    for order in ([0, 1], [1, 0]):
        values = recorder.path[0]
        for query in order:
            part, own = train.select([query]), None
            if pairs is not None:
                own = (pairs - train.offsets[query])[train.query_of_rows()[pairs[:, 0]] == query]
            single = Problem.of(recorder.problem.model, part, recorder.measure, RankNet(pairs=own))
            values = values - 0.5 * single.value_and_grad(values)[1]
        ends.append(values)
    assert np.abs(ends[0] - ends[1]).max() > 1e-3
    assert min(np.abs(recorder.path[1] - end).max() for end in ends) < 1e-12


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("objective", ["ranknet", "softndcg(sigma=0.5)", "lambdarank@10"])
def test_the_measure_rises(model: Model, objective: str) -> None:
    fit = run(Taylor2008(epochs=12, rate=0.1), followed(model, objective)).fit()
    assert fit.best.valid > fit.trail[0].valid + 0.1
    assert fit.best.train > fit.trail[0].train + 0.1


def test_after_patience_epochs_without_increase_weights_start_anew_at_the_first_rate() -> None:
    """With a rate that moves nothing no epoch is better than its start, so every fourth start is a new one."""
    recorder = run(Taylor2008(epochs=9, rate=1e-30, factor=0.5, patience=3), followed(Network(3)))
    rates = [epoch.rate / 1e-30 for epoch in recorder.trail]
    assert rates[1:] == pytest.approx([1, 0.5, 0.25, 1, 1, 0.5, 0.25, 1, 1])
    values = [tuple(found.round(12)) for found in recorder.path]
    assert len(set(values)) == 3
    assert values[0] == values[3] != values[4] == values[7] != values[8] == values[9]
    assert np.std(recorder.path[4]) == pytest.approx(np.std(recorder.path[0]), rel=0.5)  # random near zero, as at first


@pytest.mark.parametrize("measure", ["nDCG(dcg='exp-log2')@10", "ESL"])
def test_the_rate_falls_when_training_rows_are_ranked_no_better_than_before(measure: str) -> None:
    train = followed_rows(0)
    recorder = record(Network(3).prepared(train, 1), train, measure=measure, objective="ranknet")
    trail = run(Taylor2008(epochs=30, rate=0.3, factor=0.8, patience=4), recorder).trail
    better = min if recorder.measure.smaller_is_better else max
    rate, best, idle, restarts, falls = 0.3, trail[0].train, 0, 0, 0
    for epoch in trail[1:]:
        assert epoch.rate == pytest.approx(rate)
        if best is None or better(epoch.train, best) != best:
            best, idle = epoch.train, 0
        else:
            rate, idle, falls = rate * 0.8, idle + 1, falls + 1
        if idle == 4:
            rate, best, idle, restarts = 0.3, None, 0, restarts + 1
    assert restarts >= 1
    assert falls > 4 * restarts
    assert trail[1].rate == trail[2].rate  # the first epoch, from random weights, is an increase


def test_bounds_fixed_and_shared_parameters_are_respected() -> None:
    train = followed_rows(6, queries=6, rows=8)
    start = Linear().prepared(train, 1)
    params = replace(start.params.at([0, 0.25, 0.1, 0.1, 0.1, 0.1]), lower=np.array([-np.inf, *[-0.05] * 5]))
    model = start.at(params.fix("w.1").tie({"w.both": ["w.4", "w.5"]}))
    recorder = run(Taylor2008(epochs=4, rate=0.2), record(model, train, objective="ranknet"))
    assert model.params.free_names == ("bias", "w.2", "w.3", "w.both")
    second, third, both = np.array(recorder.path)[:, 1:].T
    assert -0.05 <= second.min() < -0.04  # the labels fall with it
    assert third[-1] > 0.15
    assert both[-1] != 0.1
    found = recorder.fit().model.params
    assert found["w.1"] == 0.25
    assert found["w.4"] == found["w.5"]


@pytest.mark.parametrize("model", MODELS)
def test_the_same_seed_gives_the_same_run_and_another_seed_another(model: Model) -> None:
    method = Taylor2008(epochs=6, rate=0.1, patience=1)
    first, second, other = (run(method, followed(model), seed) for seed in (3, 3, 4))
    assert np.array_equal(first.path, second.path)
    assert str(first.trail) == str(second.trail)
    assert not np.array_equal(first.path, other.path)


def test_the_run_ends_when_the_recorder_says_so() -> None:
    rows = ordered_rows()
    recorder = record(Linear().prepared(rows, 0).at([0.0, 1.0]), rows, objective="ranknet", patience=3)
    assert len(run(Taylor2008(epochs=9), recorder).trail) == 4


def test_the_settings_are_as_the_paper_prints_them() -> None:
    assert METHODS["taylor2008"]() == Taylor2008(epochs=128, rate=0.01, factor=0.8, patience=16)


@pytest.mark.parametrize(
    "settings", [{"epochs": -1}, {"rate": 0.0}, {"rate": float("nan")}, {"factor": 1.1}, {"patience": 0}]
)
def test_settings_without_sense_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(settings))):
        Taylor2008(**settings)  # type: ignore[arg-type]


def test_a_rate_at_which_parameters_grow_without_end_ends_the_run_with_what_was_best() -> None:
    recorder = run(Taylor2008(epochs=40, rate=50.0), followed(Linear(), "mse"))
    recorder.finish()
    assert "a smaller one is needed" in recorder.stopped
    assert 1 <= len(recorder.trail) < 40
    assert np.isfinite(recorder.fit().model.params.values).all()
