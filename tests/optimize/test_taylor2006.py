"""RankNet pair by pair, as Taylor et al. 2006 print it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from runs import MODELS, followed, followed_rows, ordered_rows, record, run, train_rows
from scipy.special import expit

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.models import Linear, Model, Network
from fliprank.objectives import Objective, RankNet
from fliprank.optimize.fit import Recorder
from fliprank.optimize.methods import METHODS, Taylor2006
from fliprank.optimize.pairs import Pairs, pairs_of


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


def descend(
    method: Taylor2006, model: Model, train: Candidates, objective: str | Objective = "ranknet", seed: int = 3
) -> Recorder:
    return run(method, record(model.prepared(train, 1), train, objective=objective), seed)


@pytest.mark.parametrize(("known", "other"), [(Linear(), OtherLinear()), (Network(7), OtherNetwork(7))])
@pytest.mark.parametrize("objective", ["ranknet", "ranknet(target=0.8)"])
def test_the_kernel_takes_the_steps_that_the_model_would(known: Model, other: Model, objective: str) -> None:
    train = followed_rows(3, queries=6, rows=9)
    paths = [descend(Taylor2006(epochs=2, rate=0.05), model, train, objective).path for model in (known, other)]
    for by_kernel, by_model in zip(*paths, strict=True):
        assert by_kernel == pytest.approx(by_model, rel=1e-9, abs=1e-12)
    assert np.abs(paths[0][1] - paths[0][0]).max() > 0.1


def test_a_model_in_raw_features_of_any_size_takes_the_same_steps() -> None:
    """The kernel standardises as the model does: huge, tiny and constant features among them."""
    plain = followed_rows(3, queries=6, rows=9)
    assert plain.features is not None
    train = replace(plain, features=plain.features * [1e20, 1e-20, 1.0, 0.0, 300.0] + [0.0, 0.0, 9.0, 5.0, 0.0])
    for known, other in ((Linear(), OtherLinear()), (Network(4), OtherNetwork(4))):
        first, second = (descend(Taylor2006(epochs=1, rate=0.05), model, train).path[-1] for model in (known, other))
        assert first == pytest.approx(second, rel=1e-9, abs=1e-9)


def test_a_pair_pulls_by_how_wrong_it_is() -> None:
    rows = Candidates.of([0, 1], features=[[0.0, 1.0], [1.0, 5.0]])
    model = Linear().prepared(rows, 0).at([0.3, -0.2, 0.5])
    recorder = run(Taylor2006(epochs=3, rate=0.1), record(model, rows, objective="ranknet"))
    apart, weights = np.array([2.0, 2.0]), np.array([-0.2, 0.5])  # preferred - other, standardised
    for found in recorder.path[1:]:
        weights = weights + 0.1 * expit(-weights @ apart) * apart
        assert found == pytest.approx([0.3, *weights], rel=1e-12)


@pytest.mark.parametrize("model", [Linear(), Network(3), OtherLinear()])
def test_an_epoch_visits_each_pair_once(model: Model) -> None:
    """With steps too small to feel each other, an epoch is one step down the gradient of the total cost."""
    train = followed_rows(4, queries=8, rows=6)
    recorder = descend(Taylor2006(epochs=1, rate=1e-9), model, train)
    step = (recorder.path[1] - recorder.path[0]) / -1e-9
    expected = total_gradient(recorder.problem.model, train)
    assert step == pytest.approx(expected, rel=1e-4, abs=1e-4 * np.abs(expected).max())


def test_the_objective_may_choose_the_pairs() -> None:
    train, pairs = followed_rows(4, queries=8, rows=6), np.array([[1, 0], [7, 11], [7, 8]])
    recorder = descend(Taylor2006(epochs=1, rate=1e-9), Linear(), train, RankNet(pairs=pairs), seed=0)
    expected = total_gradient(recorder.problem.model, train, pairs)
    assert (recorder.path[1] - recorder.path[0]) / -1e-9 == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert recorder.trail[0].objective < 4 * np.log(2)


def test_pairs_are_all_rows_of_one_query_whose_labels_differ() -> None:
    labels = [1, 0, np.nan, 2, 0, 1, 1, 5]
    rows = Candidates.of(labels, qid=list("aaabbccd"), features=np.zeros((8, 1)))
    found = pairs_of(RankNet(), rows)
    assert found.dtype == np.int32
    assert sorted(map(tuple, found.tolist())) == [(0, 1), (0, 2), (3, 4)]  # unjudged counts as label 0


@pytest.mark.parametrize("model", MODELS)
def test_the_trail_tells_the_total_cost(model: Model) -> None:
    recorder = run(Taylor2006(epochs=3, rate=0.01), followed(model))
    rows = train_rows(recorder)
    for epoch, values in zip(recorder.trail, recorder.path, strict=True):
        scores = recorder.problem.model.at(values).score(rows)
        assert epoch.objective == pytest.approx(total_cost(scores, rows), rel=1e-8)
    assert recorder.trail[-1].objective < 0.8 * recorder.trail[0].objective


@pytest.mark.parametrize(("model", "rate"), [(Linear(), 0.5), (Network(3), 0.3)])
def test_the_rate_falls_after_an_epoch_that_raised_the_total_cost_and_only_then(model: Model, rate: float) -> None:
    trail = run(Taylor2006(epochs=16, rate=rate, factor=0.25), followed(model)).trail
    assert trail[1].rate == rate
    raised = [after.objective > before.objective for before, after in pairwise(trail)]
    assert {True, False} == set(raised[:-1])
    for i in range(1, len(trail) - 1):
        assert trail[i + 1].rate == trail[i].rate * (0.25 if raised[i - 1] else 1.0)


@dataclass
class Watched:
    """Pairs that note in which order they are taken, and move nothing."""

    pairs: Pairs
    orders: list[Ints] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.pairs)

    def total_cost(self, values: Floats) -> float:
        return self.pairs.total_cost(values)

    def descend(self, values: Floats, order: Ints, rate: float) -> Floats:
        self.orders.append(order)
        return values


def test_pairs_come_in_a_new_order_each_epoch() -> None:
    """With the same order in both, two epochs that begin at the same weights would end at the same."""
    train = followed_rows(5, queries=4, rows=8)
    recorder = record(Linear().prepared(train, 1), train, objective="ranknet")
    pairs = recorder.problem.pairs
    watched = recorder.problem.__dict__["pairs"] = Watched(pairs)
    run(Taylor2006(epochs=3), recorder)
    assert all(sorted(order) == list(range(len(pairs_of(RankNet(), train)))) for order in watched.orders)
    ends = [pairs.descend(recorder.problem.params.values, order, 0.5).tolist() for order in watched.orders]
    assert len(watched.orders) == 3
    assert ends[0] != ends[1] != ends[2]


@pytest.mark.parametrize("model", MODELS)
def test_an_epoch_that_is_taken_in_blocks_is_the_same_epoch(model: Model) -> None:
    pairs = followed(model).problem.pairs
    values, order = pairs.model.params.free_values, np.random.default_rng(0).permutation(len(pairs))
    whole, parts = pairs.descend(values, order, 0.1), values
    for block in np.array_split(order, 7):
        parts = pairs.descend(parts, block, 0.1)
    assert parts.tolist() == whole.tolist() != values.tolist()


def test_bounds_fixed_and_shared_parameters_are_respected() -> None:
    train = followed_rows(6, queries=6, rows=8)
    start = Linear().prepared(train, 1)
    params = replace(start.params.at([0, 0.25, 0.1, 0.1, 0.1, 0.1]), lower=np.array([-np.inf, *[-0.05] * 5]))
    model = start.at(params.fix("w.1").tie({"w.both": ["w.4", "w.5"]}))
    recorder = run(Taylor2006(epochs=2, rate=0.01), record(model, train, objective="ranknet"))
    assert model.params.free_names == ("bias", "w.2", "w.3", "w.both")
    second, third, both = np.array(recorder.path)[:, 1:].T
    assert -0.05 <= second.min() < -0.04  # the labels fall with it
    assert third[-1] > 0.15
    assert both[-1] != 0.1
    found = recorder.fit().model.params
    assert found["w.1"] == 0.25
    assert found["w.4"] == found["w.5"]


def test_only_ranknet_has_pairs_to_go_through() -> None:
    with pytest.raises(UsageError, match=r"RankNet's cost, pair by pair: not lambdarank@10"):
        run(Taylor2006(), followed(objective="lambdarank@10"))
    with pytest.raises(UsageError, match="only RankNet's cost can be descended, not lambdarank@10"):
        _ = followed(objective="lambdarank@10").problem.pairs


def test_without_a_pair_there_is_nothing_to_learn() -> None:
    rows = Candidates.of([1, 1, 0], qid=list("aab"), features=[[1.0], [2.0], [3.0]])
    with pytest.raises(InputError, match="no pair to learn from"):
        descend(Taylor2006(), Linear(), rows)


@pytest.mark.parametrize("model", MODELS)
def test_the_same_seed_gives_the_same_run_and_another_seed_another(model: Model) -> None:
    first, second, other = (run(Taylor2006(epochs=5, rate=0.05), followed(model), seed) for seed in (3, 3, 4))
    assert np.array_equal(first.path, second.path)
    assert str(first.trail) == str(second.trail)
    assert not np.array_equal(first.path, other.path)


def test_the_run_ends_when_the_recorder_says_so() -> None:
    rows = ordered_rows()
    recorder = record(Linear().prepared(rows, 0).at([0.0, 1.0]), rows, objective="ranknet", patience=3)
    assert len(run(Taylor2006(epochs=9), recorder).trail) == 4


def test_the_settings_are_as_the_paper_prints_them() -> None:
    assert METHODS["taylor2006"]() == Taylor2006(epochs=24, rate=0.001)


@pytest.mark.parametrize("settings", [{"epochs": -1}, {"rate": 0.0}, {"rate": float("nan")}, {"factor": 1.1}])
def test_settings_without_sense_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(settings))):
        Taylor2006(**settings)  # type: ignore[arg-type]
