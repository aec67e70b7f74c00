"""L-BFGS, Adam, and the recorder that both report to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.store import write_arrays
from fliprank.errors import InputError
from fliprank.measures import parse_measure
from fliprank.models import Linear, Model, Network
from fliprank.objectives import RankNet, parse_objective
from fliprank.optimize.cost import Cost
from fliprank.optimize.descent import Adam, Lbfgs
from fliprank.optimize.fit import Epoch, Recorder, fingerprint
from fliprank.optimize.methods import make_method

MEASURE = parse_measure("nDCG(dcg='exp-log2')@10")
MODELS = [Linear(), Network(3)]
METHODS = [Lbfgs(epochs=15), Adam(epochs=15, batch=8)]


def problem(seed: int, queries: int = 24, rows: int = 12) -> Candidates:
    """Random rows whose labels follow some of their features, one of them downwards, with noise."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(queries * rows, 5))
    hidden = matrix @ [2.0, -1.5, 1.0, 0.5, 0.0] + rng.normal(size=len(matrix))
    labels = np.digitize(hidden, np.quantile(hidden, [0.6, 0.9]))
    return Candidates.of(labels, group=[rows] * queries, features=matrix)


@dataclass
class Logged(Recorder):
    """A recorder that keeps the parameters of every epoch."""

    log: list[Floats] = field(default_factory=list)

    def epoch(self, values: Floats, objective: float, rate: float = float("nan"), **state: Floats) -> bool:
        self.log.append(np.array(values))
        return super().epoch(values, objective, rate, **state)


def record(model: Model = MODELS[0], seed: int = 0, **settings: Any) -> Logged:
    train = problem(seed)
    return Logged(model.prepared(train, 1), train, problem(seed + 100), MEASURE, **settings)


def run(method: Any, recorder: Logged, objective: str = "ranknet", seed: int = 3) -> Logged:
    method.run(recorder, parse_objective(objective), np.random.default_rng(seed))
    return recorder


def interrupt_at(number: int) -> Callable[[Epoch], None]:
    """A watch that is stopped by Ctrl-C once this epoch is written."""

    def watch(epoch: Epoch) -> None:
        if epoch.number == number:
            raise KeyboardInterrupt

    return watch


@dataclass(frozen=True, eq=False)
class Interrupted(RankNet):
    """RankNet until Ctrl-C is pressed in its `last`-th evaluation."""

    name: ClassVar[str] = "interrupted"
    last: int = 0
    calls: list[int] = field(default_factory=list)

    def evaluate(self, scores: Floats, candidates: Candidates, share: Floats) -> tuple[Floats, Floats]:
        self.calls.append(1)
        if len(self.calls) == self.last:
            raise KeyboardInterrupt
        return super().evaluate(scores, candidates, share)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["ranknet", "softndcg(sigma=0.5)", "mse"])
def test_the_cost_falls_and_the_measure_rises(method: Lbfgs | Adam, model: Model, name: str) -> None:
    recorder = run(method, record(model), name)
    objective, ready = parse_objective(name), recorder.model
    cost = Cost(ready, recorder.train, objective, method.l2)
    assert recorder.trail[0].objective == pytest.approx(cost.value_and_grad(ready.params.free_values)[0])
    assert recorder.trail[-1].objective < recorder.trail[0].objective - 0.05
    assert recorder.trail[-1].train > recorder.trail[0].train + 0.1


def test_adam_goes_down_lambdarank_which_is_the_gradient_of_no_function() -> None:
    recorder = run(Adam(epochs=15, batch=8), record(), "lambdarank@10")
    assert recorder.trail[-1].train > recorder.trail[0].train + 0.1


def test_lbfgs_ends_where_the_gradient_is_zero() -> None:
    recorder = run(Lbfgs(epochs=200), record())
    assert recorder.stopped == "converged"
    cost = Cost(recorder.model, recorder.train, RankNet(), 1e-3)
    first, last = (np.abs(cost.value_and_grad(recorder.log[i])[1]).max() for i in (0, -1))
    assert last < 1e-4 < 1e-2 < first


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", MODELS)
def test_the_same_seed_gives_the_same_parameters(method: Lbfgs | Adam, model: Model) -> None:
    first, second = (run(method, record(model)).fit() for _ in range(2))
    assert first.model.params.values.tolist() == second.model.params.values.tolist()
    assert str(first.trail) == str(second.trail)


def test_another_seed_gives_another_order_of_batches() -> None:
    one, other = (run(Adam(epochs=3, batch=8), record(), seed=seed).fit() for seed in (3, 4))
    assert one.model.params.values.tolist() != other.model.params.values.tolist()


@pytest.mark.parametrize("stop", [0, 1, 7])
@pytest.mark.parametrize("model", MODELS)
def test_adam_resumed_is_adam_uninterrupted(model: Model, stop: int, tmp_path: Path) -> None:
    method, path = Adam(epochs=12, batch=8), tmp_path / "run.checkpoint"
    whole = run(method, record(model))
    with pytest.raises(KeyboardInterrupt):
        run(method, record(model, checkpoint=path, watch=interrupt_at(stop)))
    resumed = record(model, checkpoint=path)
    assert resumed.resume()
    assert len(resumed.trail) == stop + 1
    run(method, resumed, seed=999)  # the order of batches is the checkpoint's
    assert str(resumed.trail) == str(whole.trail)
    assert resumed.fit().model.params.values.tolist() == whole.fit().model.params.values.tolist()
    assert resumed.fit().best == whole.fit().best


def test_lbfgs_resumed_does_the_epochs_that_are_left(tmp_path: Path) -> None:
    method, path = Lbfgs(epochs=8), tmp_path / "run.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        run(method, record(checkpoint=path, watch=interrupt_at(3)))
    resumed = record(checkpoint=path)
    assert resumed.resume()
    run(method, resumed)
    assert [epoch.number for epoch in resumed.trail] == list(range(9))
    assert resumed.trail[-1].objective < resumed.trail[3].objective


def test_a_run_that_is_done_is_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    done = run(Adam(epochs=4), record(checkpoint=path))
    again = record(checkpoint=path)
    assert again.resume()
    run(Adam(epochs=4), again)
    assert str(again.trail) == str(done.trail)


def test_without_a_checkpoint_there_is_nothing_to_resume(tmp_path: Path) -> None:
    assert not record(checkpoint=tmp_path / "none").resume()
    assert not record().resume()


@pytest.mark.parametrize("method", METHODS)
def test_patience_stops_when_no_epoch_is_better(method: Lbfgs | Adam) -> None:
    """The labels follow the one feature, and the model starts from there: epoch 0 is the best there can be."""
    rows = Candidates.of([2, 1, 0, 0] * 5, group=[4] * 5, features=np.tile([3.0, 2.0, 1.0, 0.0], 5)[:, None])
    recorder = Logged(Linear().prepared(rows, 0).at([0.0, 1.0]), rows, None, MEASURE, patience=3)
    fit = run(method, recorder).fit()
    assert len(fit.trail) == 4
    assert fit.stopped == "no better epoch in 3"
    assert (fit.best.number, fit.best.train) == (0, pytest.approx(1.0))


@pytest.mark.parametrize("method", METHODS)
def test_the_best_epoch_is_chosen_on_validation_queries(method: Lbfgs | Adam) -> None:
    recorder = run(method, record(Network(3)))
    fit, valid = recorder.fit(), recorder.valid
    assert valid is not None
    assert fit.best.valid == max(epoch.valid for epoch in fit.trail)
    assert MEASURE.per_query(fit.model.score(valid), valid).mean() == pytest.approx(fit.best.valid, abs=1e-12)


@pytest.mark.parametrize(("method", "last"), [(Lbfgs(epochs=50), 12), (Adam(epochs=50, batch=8), 23)])
def test_ctrl_c_leaves_the_best_so_far(method: Lbfgs | Adam, last: int) -> None:
    recorder = record()
    with pytest.raises(KeyboardInterrupt):
        method.run(recorder, Interrupted(last=last), np.random.default_rng(3))
    fit = recorder.fit()
    assert 2 < len(fit.trail) < 51
    assert fit.best.valid == max(epoch.valid for epoch in fit.trail)
    scores = fit.model.score(recorder.train)
    assert MEASURE.per_query(scores, recorder.train).mean() == pytest.approx(fit.best.train, abs=1e-12)


def test_ctrl_c_before_the_first_epoch_is_an_error_that_says_so() -> None:
    recorder = record()
    with pytest.raises(KeyboardInterrupt):
        Adam().run(recorder, Interrupted(last=1), np.random.default_rng(3))
    with pytest.raises(InputError, match="before the first epoch"):
        recorder.fit()


def test_the_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    run(Adam(epochs=2), record(checkpoint=path, key=fingerprint(problem(0), l2=1e-3)))
    assert record(checkpoint=path, key=fingerprint(problem(0), l2=1e-3)).resume()
    for key in (fingerprint(problem(0), l2=1e-2), fingerprint(problem(1), l2=1e-3)):
        with pytest.raises(InputError, match="another run"):
            record(checkpoint=path, key=key).resume()


def test_a_checkpoint_that_is_cut_off_is_an_input_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    run(Adam(epochs=3), record(checkpoint=path))
    whole = path.read_bytes()
    for size in [*range(0, len(whole) - 1, 61), len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"run\.checkpoint"):
            record(checkpoint=path).resume()


def test_a_store_that_is_no_checkpoint_is_an_input_error(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    write_arrays(path, {"key": "", "trail": [], "best": 0}, {"values": np.zeros(2)})
    with pytest.raises(InputError, match="not a checkpoint"):
        record(checkpoint=path).resume()


@pytest.mark.parametrize("method", METHODS)
def test_bounds_hold_and_fixed_parameters_stay(method: Lbfgs | Adam) -> None:
    free = run(method, record()).fit().model.params
    assert free.values[1:].min() < -0.1  # else the bound would not be felt
    recorder = record()
    start = recorder.model.params.at([0.0, 0.25, 0.1, 0.1, 0.1, 0.1])
    recorder.model = recorder.model.at(replace(start, lower=np.array([-np.inf, *[-0.05] * 5])).fix("w.1"))
    log = np.array(run(method, recorder).log)
    assert log.shape[1] == 5  # the bias and four weights
    assert -0.05 <= log[:, 1:].min() < -0.04
    assert log[:, 1:].max() > 0.2
    assert recorder.fit().model.params["w.1"] == 0.25


@pytest.mark.parametrize("method", METHODS)
def test_parameters_that_share_a_value_move_together(method: Lbfgs | Adam) -> None:
    recorder = record()
    recorder.model = recorder.model.at(recorder.model.params.tie({"w.both": ["w.1", "w.2"]}))
    found, start = run(method, recorder).fit().model.params, recorder.model.params
    assert found["w.1"] == found["w.2"] != start["w.1"]


@pytest.mark.parametrize("method", [Lbfgs(epochs=60), Adam(epochs=60, rate=0.2)])
def test_l2_holds_weights_small_but_not_biases(method: Lbfgs | Adam) -> None:
    """Labels of about 5: with MSE the bias must say so, whatever holds the weights."""
    train = replace(problem(0), labels=problem(0).labels + 4.5)
    found = {}
    for l2 in (0.0, 100.0):
        recorder = Logged(Linear().prepared(train, 1), train, None, MEASURE)
        found[l2] = run(replace(method, l2=l2), recorder, "mse").log[-1]
    assert np.abs(found[100.0][1:]).max() < 0.02 < 0.1 < np.abs(found[0.0][1:]).max()
    assert [found[0.0][0], found[100.0][0]] == pytest.approx([train.labels.mean()] * 2, abs=0.1)


def test_l2_adds_the_squared_weights_to_the_cost() -> None:
    recorder = record(Network(3))
    params = recorder.model.params
    names = [name for name in params.names if name.startswith("w")]
    squared = sum(params[name] ** 2 for name in names)
    plain, held = (Cost(recorder.model, recorder.train, RankNet(), l2) for l2 in (0.0, 0.5))
    difference = held.value_and_grad(params.free_values)[0] - plain.value_and_grad(params.free_values)[0]
    assert difference == pytest.approx(0.5 * squared)
    assert len(names) == 3 * 5 + 3


@pytest.mark.parametrize("objective", ["ranknet", "softndcg(sigma=0.5)", "lambdarank"])
def test_the_gradient_of_the_cost_is_that_of_its_value(objective: str) -> None:
    recorder = record(Network(2))
    cost, values = Cost(recorder.model, recorder.train, parse_objective(objective), 0.1), recorder.model.params.values
    gradient, step = cost.value_and_grad(values)[1], 1e-6
    for i in range(0, len(values), 3):
        aside = np.zeros(len(values))
        aside[i] = step
        slope = (cost.value_and_grad(values + aside)[0] - cost.value_and_grad(values - aside)[0]) / (2 * step)
        assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_auto_is_adam_for_lambdarank_and_lbfgs_for_what_has_a_gradient_of_its_own() -> None:
    assert make_method("auto", parse_objective("lambdarank@10"), epochs=7) == Adam(epochs=7)
    assert make_method("auto", parse_objective("ranknet"), epochs=7, l2=0.5) == Lbfgs(epochs=7, l2=0.5)
    assert make_method("adam", parse_objective("ranknet"), rate=0.5) == Adam(rate=0.5)
