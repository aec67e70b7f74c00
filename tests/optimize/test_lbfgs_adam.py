"""L-BFGS and Adam: costs fall, known optima of parameters of any size, bounds, priors, seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from runs import MODELS, followed, followed_rows, record, run, train_rows

from fliprank.arrays import Floats, Ints
from fliprank.errors import UsageError
from fliprank.models import Linear, Model
from fliprank.models.parameters import Parameters
from fliprank.objectives import RankNet, parse_objective
from fliprank.optimize.fit import Recorder
from fliprank.optimize.methods import Adam, Lbfgs, make_method
from fliprank.optimize.pairs import pairs_of
from fliprank.optimize.problem import Problem
from fliprank.optimize.space import CEILING, Space

METHODS = [Lbfgs(epochs=15), Adam(epochs=15, batch=8)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["ranknet", "softndcg(sigma=0.5)", "mse"])
def test_the_cost_falls_and_the_measure_rises(method: Lbfgs | Adam, model: Model, name: str) -> None:
    recorder = run(method, followed(model, name))
    rows, target, params = train_rows(recorder), parse_objective(name), recorder.problem.params
    value, _ = target.value_and_grad(recorder.problem.model.score(rows), rows)
    squared = sum(params[name] ** 2 for name in params.names if name.startswith("w"))
    assert recorder.trail[0].objective == pytest.approx((-value if target.maximise else value) + method.l2 * squared)
    assert recorder.trail[-1].objective < recorder.trail[0].objective - 0.05
    assert recorder.trail[-1].train > recorder.trail[0].train + 0.1


def test_adam_goes_down_lambdarank_which_is_the_gradient_of_no_function() -> None:
    recorder = run(Adam(epochs=15, batch=8), followed(objective="lambdarank@10"))
    assert recorder.trail[-1].train > recorder.trail[0].train + 0.1


def test_lbfgs_ends_where_the_gradient_is_zero() -> None:
    recorder = run(Lbfgs(epochs=200), followed())
    assert recorder.stopped == "converged"
    problem, held = recorder.problem, recorder.problem.model.penalty_weights
    first, last = (
        np.abs(problem.value_and_grad(values)[1] + 2e-3 * held * values).max()
        for values in (recorder.path[0], recorder.path[-1])
    )
    assert last < 1e-4 < 1e-2 < first


def test_no_epochs_leave_the_model_as_it_is() -> None:
    for method in (Lbfgs(epochs=0), Adam(epochs=0)):
        fit = run(method, followed()).fit()
        assert len(fit.trail) == 1
        assert fit.start is not None
        assert fit.model.params.values.tolist() == fit.start.params.values.tolist()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", MODELS)
def test_the_same_seed_gives_the_same_parameters(method: Lbfgs | Adam, model: Model) -> None:
    first, second = (run(method, followed(model)).fit() for _ in range(2))
    assert first.model.params.values.tolist() == second.model.params.values.tolist()
    assert str(first.trail) == str(second.trail)


def test_another_seed_gives_another_order_of_batches() -> None:
    one, other = (run(Adam(epochs=3, batch=8), followed(), seed).fit() for seed in (3, 4))
    assert one.model.params.values.tolist() != other.model.params.values.tolist()


def test_adam_takes_pairs_that_are_given_by_row() -> None:
    """All pairs by row are the pairs that RankNet takes by itself."""
    pairs = pairs_of(RankNet(), followed_rows(0))
    own, given = (run(Adam(epochs=3, batch=8), followed(objective=each)) for each in (RankNet(), RankNet(pairs=pairs)))
    np.testing.assert_allclose(given.path, own.path, atol=1e-9)


def narrowed(model: Model) -> Model:
    """With a bound that is felt, and one weight that is fixed."""
    start = model.params.at([0.0, 0.25, 0.1, 0.1, 0.1, 0.1])
    return model.at(replace(start, lower=np.array([-np.inf, *[-0.05] * 5])).fix("w.1"))


@pytest.mark.parametrize("method", METHODS)
def test_bounds_hold_and_fixed_parameters_stay(method: Lbfgs | Adam) -> None:
    free = run(method, followed()).fit().model.params
    assert free.values[1:].min() < -0.1  # else the bound would not be felt
    train = followed_rows(0)
    recorder = record(narrowed(Linear().prepared(train, 1)), train, followed_rows(100), objective="ranknet")
    path = np.array(run(method, recorder).path)
    assert path.shape[1] == 5  # the bias and four weights
    assert -0.05 <= path[:, 1:].min() < -0.04
    assert path[:, 1:].max() > 0.2
    assert recorder.fit().model.params["w.1"] == 0.25


@pytest.mark.parametrize("method", METHODS)
def test_parameters_that_share_a_value_move_together(method: Lbfgs | Adam) -> None:
    train = followed_rows(0)
    model = Linear().prepared(train, 1)
    tied = model.at(model.params.tie({"w.both": ["w.1", "w.2"]}))
    found = run(method, record(tied, train, objective="ranknet")).fit().model.params
    assert found["w.1"] == found["w.2"] != tied.params["w.1"]


@pytest.mark.parametrize("method", [Lbfgs(epochs=60), Adam(epochs=60, rate=0.2)])
def test_l2_holds_weights_small_but_not_biases(method: Lbfgs | Adam) -> None:
    """Labels of about 5: with MSE the bias must say so, whatever holds the weights."""
    train = replace(followed_rows(0), labels=followed_rows(0).labels + 4.5)
    found = {}
    for l2 in (0.0, 100.0):
        recorder = record(Linear().prepared(train, 1), train, objective="mse")
        found[l2] = run(replace(method, l2=l2), recorder).path[-1]
    assert np.abs(found[100.0][1:]).max() < 0.02 < 0.1 < np.abs(found[0.0][1:]).max()
    assert [found[0.0][0], found[100.0][0]] == pytest.approx([train.labels.mean()] * 2, abs=0.1)


def test_auto_is_adam_for_lambdarank_and_lbfgs_for_what_has_a_gradient_of_its_own() -> None:
    assert make_method("auto", parse_objective("lambdarank@10"), epochs=7) == Adam(epochs=7)
    assert make_method("auto", parse_objective("ranknet"), epochs=7, l2=0.5) == Lbfgs(epochs=7, l2=0.5)
    assert make_method("adam", parse_objective("ranknet"), rate=0.5) == Adam(rate=0.5)


def test_settings_that_a_method_does_not_have_are_refused() -> None:
    with pytest.raises(UsageError, match="lbfgs has no setting rate"):
        make_method("lbfgs", rate=0.5)
    with pytest.raises(UsageError, match=r"epochs of adam is a whole number, not 2\.5"):
        make_method("adam", epochs=2.5)
    with pytest.raises(UsageError, match="did you mean adam"):
        make_method("adem")
    with pytest.raises(UsageError, match="has its settings"):
        make_method(Adam(), epochs=3)


# Parameters of any size: descents of functions that are known

PARAMS = Parameters.of({"w": (2.0, 0.0, np.inf), "b": (0.75, 0.0, 1.0), "bias": 0.5, "mu": (2000.0, 1.0, np.inf)})
Function = Callable[[Floats], tuple[float, Floats]]


@dataclass(frozen=True, eq=False)
class Known(Problem):
    """A problem whose cost is a known function of the parameters, all of which the prior holds."""

    start: Parameters = PARAMS
    function: Function = lambda values: (0.0, np.zeros(4))

    @property
    def params(self) -> Parameters:
        return self.start

    def space(self, *, factors: bool = False, prior: float = 0.0) -> Space:
        return Space.of(self.start, factors=factors, prior=prior)

    def value_and_grad(
        self, values: Floats, queries: Ints | None = None, progress: float = 1.0
    ) -> tuple[float, Floats]:
        return self.function(values)


def descend(function: Function, l2: float, start: Parameters = PARAMS) -> tuple[float, Floats]:
    """(cost, parameters) where L-BFGS ends."""
    whole = followed().problem
    problem = Known(whole.model, whole.shards, whole.measure, whole.objective, start=start, function=function)
    recorder = run(Lbfgs(epochs=100, l2=l2), Recorder(problem, keep="last", measured=False))
    assert recorder.best is not None
    assert recorder.best_values is not None
    return recorder.best.objective, recorder.best_values


def distance(target: Floats) -> Function:
    scale = np.array([1.0, 1.0, 1.0, 1e-3])
    return lambda values: (float(scale * (values - target) ** 2 @ scale), 2 * scale**2 * (values - target))


def test_a_descent_finds_the_optimum_of_parameters_of_any_size() -> None:
    target = np.array([0.05, 0.2, -1.0, 300.0])
    cost, found = descend(distance(target), l2=0.0)
    assert cost < 1e-6
    np.testing.assert_allclose(found, target, rtol=1e-2)


def test_a_firm_prior_keeps_the_defaults_and_bounds_are_kept() -> None:
    found = descend(distance(np.array([9.0, 5.0, 3.0, 4000.0])), l2=1e6)[1]
    np.testing.assert_allclose(found, PARAMS.values, rtol=1e-3)
    found = descend(distance(np.array([9.0, 5.0, 3.0, 0.1])), l2=0.0)[1]
    assert found[1] == 1.0
    assert found[3] == pytest.approx(1.0)


def test_a_cost_that_falls_for_ever_ends_at_the_ceiling() -> None:
    found = descend(lambda values: (-float(values[0]), np.array([-1.0, 0, 0, 0])), l2=0.0)[1]
    assert found[0] == pytest.approx(CEILING * 2.0)


def test_where_the_cost_is_flat_the_prior_leads_back_to_the_defaults() -> None:
    cost, found = descend(lambda values: (0.0, np.zeros(4)), 1.0, PARAMS.at([4.0, 0.1, 0.5, 9.0]))
    assert cost == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(found, PARAMS.values, rtol=1e-4)
