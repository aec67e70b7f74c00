"""The papers' own procedures: Taylor 2006 pair by pair, Taylor 2008 query by query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.special import expit
from test_descent import MEASURE, MODELS, Logged, interrupt_at, problem, record, run

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.measures import parse_measure
from fliprank.models import Linear, Model, Network
from fliprank.objectives import RankNet, parse_objective
from fliprank.optimize import papers
from fliprank.optimize.cost import Cost
from fliprank.optimize.papers import PRESETS, Taylor2006, Taylor2008


@dataclass(frozen=True, eq=False)
class OtherLinear(Linear):
    """A linear model that no kernel knows."""

    kind: ClassVar[str] = "other linear"


@dataclass(frozen=True, eq=False)
class OtherNetwork(Network):
    """A network that no kernel knows."""

    kind: ClassVar[str] = "other network"


def total_cost(scores: Floats, rows: Candidates) -> float:
    """The sum of log(1 + e^Y) over all pairs of different labels, as eq. (2) has it."""
    total = 0.0
    for low, high in pairwise(rows.offsets):
        label, score = rows.labels[low:high], scores[low:high]
        better = label[:, None] > label
        total += np.logaddexp(0.0, score - score[:, None])[better].sum()
    return total


def total_gradient(model: Model, rows: Candidates, pairs: np.ndarray | None = None) -> Floats:
    """The gradient of the sum of the costs of pairs."""
    _, by_score = RankNet(normalise="none", pairs=pairs).value_and_grad(model.score(rows), rows)
    return model.pullback(rows, by_score * rows.queries)


# Taylor 2006


@pytest.mark.parametrize(("known", "other"), [(Linear(), OtherLinear()), (Network(7), OtherNetwork(7))])
@pytest.mark.parametrize("objective", ["ranknet", "ranknet(target=0.8)"])
def test_the_kernel_takes_the_steps_that_the_model_would(known: Model, other: Model, objective: str) -> None:
    method, log = Taylor2006(epochs=2, rate=0.05), []
    for model in (known, other):
        train = problem(3, queries=6, rows=9)
        recorder = run(method, Logged(model.prepared(train, 1), train, None, MEASURE), objective)
        log.append(recorder.log)
    for by_kernel, by_model in zip(*log, strict=True):
        assert by_kernel == pytest.approx(by_model, rel=1e-9, abs=1e-12)
    assert np.abs(log[0][1] - log[0][0]).max() > 0.1


def test_a_model_in_raw_features_of_any_size_takes_the_same_steps() -> None:
    """The kernel standardises as the model does: huge, tiny and constant features among them."""
    plain = problem(3, queries=6, rows=9)
    assert plain.features is not None
    train = replace(plain, features=plain.features * [1e20, 1e-20, 1.0, 0.0, 300.0] + [0.0, 0.0, 9.0, 5.0, 0.0])
    for known, other in ((Linear(), OtherLinear()), (Network(4), OtherNetwork(4))):
        first, second = (
            run(Taylor2006(epochs=1, rate=0.05), Logged(model.prepared(train, 1), train, None, MEASURE)).log[-1]
            for model in (known, other)
        )
        assert first == pytest.approx(second, rel=1e-9, abs=1e-9)


def test_a_pair_pulls_by_how_wrong_it_is() -> None:
    rows = Candidates.of([0, 1], features=[[0.0, 1.0], [1.0, 5.0]])
    model = Linear().prepared(rows, 0).at([0.3, -0.2, 0.5])
    recorder = run(Taylor2006(epochs=3, rate=0.1), Logged(model, rows, None, MEASURE))
    apart, weights = np.array([2.0, 2.0]), np.array([-0.2, 0.5])  # preferred - other, standardised
    for found in recorder.log[1:]:
        weights = weights + 0.1 * expit(-weights @ apart) * apart
        assert found == pytest.approx([0.3, *weights], rel=1e-12)


@pytest.mark.parametrize("model", [Linear(), Network(3), OtherLinear()])
def test_an_epoch_visits_each_pair_once(model: Model) -> None:
    """With steps too small to feel each other, an epoch is one step down the gradient of the total cost."""
    train = problem(4, queries=8, rows=6)
    recorder = run(Taylor2006(epochs=1, rate=1e-9), Logged(model.prepared(train, 1), train, None, MEASURE))
    step = (recorder.log[1] - recorder.log[0]) / -1e-9
    expected = total_gradient(recorder.model, train)
    assert step == pytest.approx(expected, rel=1e-4, abs=1e-4 * np.abs(expected).max())


def test_the_objective_may_choose_the_pairs() -> None:
    train, pairs = problem(4, queries=8, rows=6), np.array([[1, 0], [7, 11], [7, 8]])
    recorder = Logged(Linear().prepared(train, 1), train, None, MEASURE)
    Taylor2006(epochs=1, rate=1e-9).run(recorder, RankNet(pairs=pairs), np.random.default_rng(0))
    expected = total_gradient(recorder.model, train, pairs)
    assert (recorder.log[1] - recorder.log[0]) / -1e-9 == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert recorder.trail[0].objective < 4 * np.log(2)


def test_pairs_are_all_rows_of_one_query_whose_labels_differ() -> None:
    labels = [1, 0, np.nan, 2, 0, 1, 1, 5]
    rows = Candidates.of(labels, qid=list("aaabbccd"), features=np.zeros((8, 1)))
    found = papers._pairs(rows)
    assert found.dtype == np.int32
    assert sorted(map(tuple, found.tolist())) == [(0, 1), (0, 2), (3, 4)]  # unjudged counts as label 0


@pytest.mark.parametrize("model", MODELS)
def test_the_trail_tells_the_total_cost(model: Model) -> None:
    recorder = run(Taylor2006(epochs=3, rate=0.01), record(model))
    for epoch, values in zip(recorder.trail, recorder.log, strict=True):
        scores = recorder.model.at(values).score(recorder.train)
        assert epoch.objective == pytest.approx(total_cost(scores, recorder.train), rel=1e-8)
    assert recorder.trail[-1].objective < 0.8 * recorder.trail[0].objective


@pytest.mark.parametrize(("model", "rate"), [(Linear(), 0.5), (Network(3), 0.3)])
def test_the_rate_falls_after_an_epoch_that_raised_the_total_cost_and_only_then(model: Model, rate: float) -> None:
    trail = run(Taylor2006(epochs=16, rate=rate, factor=0.25), record(model)).trail
    assert trail[1].rate == rate
    raised = [after.objective > before.objective for before, after in pairwise(trail)]
    assert {True, False} == set(raised[:-1])
    for i in range(1, len(trail) - 1):
        assert trail[i + 1].rate == trail[i].rate * (0.25 if raised[i - 1] else 1.0)


def test_pairs_come_in_a_new_order_each_epoch() -> None:
    """With the same order in both, two epochs that begin at the same weights would end at the same."""
    train = problem(5, queries=4, rows=8)
    recorder = Logged(Linear().prepared(train, 1), train, None, MEASURE)
    steps, orders = papers._steps(recorder.model, train, papers._pairs(train), 0.0), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(papers, "_steps", lambda *_: lambda values, order, rate: orders.append(order) or values)
        run(Taylor2006(epochs=3), recorder)
    assert all(sorted(order) == list(range(len(papers._pairs(train)))) for order in orders)
    ends = [steps(recorder.model.params.values, order, 0.5).tolist() for order in orders]
    assert len(orders) == 3
    assert ends[0] != ends[1] != ends[2]


def test_long_epochs_are_taken_in_blocks_that_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(Taylor2006(epochs=2, rate=0.1), record(Network(3))).log[-1]
    monkeypatch.setattr(papers, "BLOCK", 100)
    assert run(Taylor2006(epochs=2, rate=0.1), record(Network(3))).log[-1].tolist() == whole.tolist()


@pytest.mark.parametrize("method", [Taylor2006(epochs=2, rate=0.01), Taylor2008(epochs=4, rate=0.2)])
def test_bounds_fixed_and_shared_parameters_are_respected(method: Any) -> None:
    train = problem(6, queries=6, rows=8)
    start = Linear().prepared(train, 1)
    params = replace(start.params.at([0, 0.25, 0.1, 0.1, 0.1, 0.1]), lower=np.array([-np.inf, *[-0.05] * 5]))
    recorder = Logged(start.at(params.fix("w.1").tie({"w.both": ["w.4", "w.5"]})), train, None, MEASURE)
    run(method, recorder)
    assert recorder.model.params.free_names == ("bias", "w.2", "w.3", "w.both")
    second, third, both = np.array(recorder.log)[:, 1:].T
    assert -0.05 <= second.min() < -0.04  # the labels fall with it
    assert third[-1] > 0.15
    assert both[-1] != 0.1
    found = recorder.fit().model.params
    assert found["w.1"] == 0.25
    assert found["w.4"] == found["w.5"]


def test_only_ranknet_has_pairs_to_go_through() -> None:
    with pytest.raises(UsageError, match=r"RankNet's cost, pair by pair: not lambdarank@10"):
        run(Taylor2006(), record(), "lambdarank@10")


def test_without_a_pair_there_is_nothing_to_learn() -> None:
    rows = Candidates.of([1, 1, 0], qid=list("aab"), features=[[1.0], [2.0], [3.0]])
    with pytest.raises(InputError, match="no pair to learn from"):
        run(Taylor2006(), Logged(Linear().prepared(rows, 0), rows, None, MEASURE))


# Taylor 2008


@pytest.mark.parametrize("objective", ["ranknet", "softndcg(sigma=0.5)", "lambdarank@10", "mse"])
def test_a_step_is_down_the_gradient_of_one_query(objective: str) -> None:
    train = problem(7, queries=1, rows=15)
    recorder = Logged(Network(3).prepared(train, 1), train, None, MEASURE)
    run(Taylor2008(epochs=1, rate=0.05), recorder, objective)
    cost = Cost(recorder.model, train, parse_objective(objective))
    value, gradient = cost.value_and_grad(recorder.log[0])
    assert recorder.log[1] == pytest.approx(recorder.log[0] - 0.05 * gradient, rel=1e-12)
    assert np.abs(gradient).max() > 1e-4
    assert recorder.trail[1].objective == pytest.approx(value)


@pytest.mark.parametrize("objective", ["ranknet", "softndcg(sigma=0.5)"])
def test_an_epoch_visits_each_query_once(objective: str) -> None:
    recorder = run(Taylor2008(epochs=1, rate=1e-9), record(Network(3)), objective)
    cost = Cost(recorder.model, recorder.train, parse_objective(objective))
    value, gradient = cost.value_and_grad(recorder.log[0])
    total = gradient * recorder.train.queries
    assert (recorder.log[1] - recorder.log[0]) / -1e-9 == pytest.approx(total, rel=1e-4, abs=1e-6)
    assert recorder.trail[1].objective == pytest.approx(value, rel=1e-6)


def test_weights_are_updated_after_each_query() -> None:
    """The second query pulls at where the first one left the weights, in one order or the other."""
    train = problem(8, queries=2)
    recorder = run(Taylor2008(epochs=1, rate=0.5), Logged(Linear().prepared(train, 1), train, None, MEASURE))
    ends = []
    for order in ([0, 1], [1, 0]):
        values = recorder.log[0]
        for query in order:
            values = values - 0.5 * Cost(recorder.model, train.select([query]), RankNet()).value_and_grad(values)[1]
        ends.append(values)
    assert np.abs(ends[0] - ends[1]).max() > 1e-3
    assert min(np.abs(recorder.log[1] - end).max() for end in ends) < 1e-12


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("objective", ["ranknet", "softndcg(sigma=0.5)", "lambdarank@10"])
def test_the_measure_rises(model: Model, objective: str) -> None:
    fit = run(Taylor2008(epochs=12, rate=0.1), record(model), objective).fit()
    assert fit.best.valid > fit.trail[0].valid + 0.1
    assert fit.best.train > fit.trail[0].train + 0.1


def test_after_patience_epochs_without_increase_weights_start_anew_at_the_first_rate() -> None:
    """With a rate that moves nothing no epoch is better than its start, so every fourth start is a new one."""
    recorder = run(Taylor2008(epochs=9, rate=1e-30, factor=0.5, patience=3), record(Network(3)))
    rates = [epoch.rate / 1e-30 for epoch in recorder.trail]
    assert rates[1:] == pytest.approx([1, 0.5, 0.25, 1, 1, 0.5, 0.25, 1, 1])
    values = [tuple(found.round(12)) for found in recorder.log]
    assert len(set(values)) == 3
    assert values[0] == values[3] != values[4] == values[7] != values[8] == values[9]
    assert np.std(recorder.log[4]) == pytest.approx(np.std(recorder.log[0]), rel=0.5)  # random near zero, as at first


@pytest.mark.parametrize("measure", ["nDCG(dcg='exp-log2')@10", "ESL"])
def test_the_rate_falls_when_training_rows_are_ranked_no_better_than_before(measure: str) -> None:
    recorder = replace(record(Network(3)), measure=parse_measure(measure))
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


def test_pairs_by_row_make_no_sense_one_query_at_a_time() -> None:
    with pytest.raises(UsageError, match="pairs that are given by row"):
        Taylor2008().run(record(), RankNet(pairs=np.array([[1, 0]])), np.random.default_rng(0))


# Both


@pytest.mark.parametrize("method", [Taylor2006(epochs=5, rate=0.05), Taylor2008(epochs=6, rate=0.1, patience=1)])
@pytest.mark.parametrize("model", MODELS)
def test_the_same_seed_gives_the_same_run_and_another_seed_another(method: Any, model: Model) -> None:
    first, second, other = (run(method, record(model), seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(first.log, second.log)
    assert str(first.trail) == str(second.trail)
    assert not np.array_equal(first.log, other.log)


@pytest.mark.parametrize("stop", [0, 1, 4, 5])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", [Taylor2006(epochs=8, rate=0.5), Taylor2008(epochs=8, rate=1.0, patience=2)])
def test_resumed_is_as_uninterrupted(method: Any, model: Model, stop: int, tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    whole = run(method, record(model))
    assert len({epoch.rate for epoch in whole.trail[1:]}) > 1  # the rate falls on the way
    with pytest.raises(KeyboardInterrupt):
        run(method, record(model, checkpoint=path, watch=interrupt_at(stop)))
    resumed = record(model, checkpoint=path)
    assert resumed.resume()
    run(method, resumed, seed=999)
    assert str(resumed.trail) == str(whole.trail)
    assert np.array_equal(resumed.log, whole.log[stop + 1 :])
    assert resumed.fit().model.params.values.tolist() == whole.fit().model.params.values.tolist()


@pytest.mark.parametrize("method", [Taylor2006(epochs=9), Taylor2008(epochs=9)])
def test_the_run_ends_when_the_recorder_says_so(method: Any) -> None:
    rows = Candidates.of([2, 1, 0, 0] * 5, group=[4] * 5, features=np.tile([3.0, 2.0, 1.0, 0.0], 5)[:, None])
    recorder = Logged(Linear().prepared(rows, 0).at([0.0, 1.0]), rows, None, MEASURE, patience=3)
    assert len(run(method, recorder).trail) == 4


def test_the_presets_are_as_the_papers_print_them() -> None:
    assert PRESETS["taylor2006"]() == Taylor2006(epochs=24, rate=0.001)
    assert PRESETS["taylor2008"]() == Taylor2008(epochs=128, rate=0.01, factor=0.8, patience=16)


@pytest.mark.parametrize("settings", [{"epochs": -1}, {"rate": 0.0}, {"rate": float("nan")}, {"factor": 1.1}])
@pytest.mark.parametrize("kind", [Taylor2006, Taylor2008])
def test_settings_without_sense_are_refused(kind: type, settings: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(settings))):
        kind(**settings)


def test_a_patience_of_no_epoch_is_refused() -> None:
    with pytest.raises(UsageError, match="patience"):
        Taylor2008(patience=0)
