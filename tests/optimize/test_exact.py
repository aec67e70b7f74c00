"""Exact line searches, and the ascent that is made of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.measures import parse_measure
from fliprank.models import Linear, Network
from fliprank.models.parameters import Parameters
from fliprank.objectives import RankNet
from fliprank.optimize.exact import Exact, line_search
from fliprank.optimize.fit import Epoch, Recorder
from fliprank.optimize.polish import polish


def problem(seed: int, queries: int = 20, rows: int = 12, features: int = 5) -> Candidates:
    """Rows whose labels follow a random direction of their features, with noise; the last feature is the same for all
    rows of a query, the one before has few values."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(queries * rows, features))
    matrix[:, -1] = np.repeat(rng.normal(size=queries), rows)
    matrix[:, -2] = np.round(matrix[:, -2])
    hidden = matrix @ rng.normal(size=features) + rng.normal(size=len(matrix))
    return Candidates.of(np.digitize(hidden, np.quantile(hidden, [0.6, 0.9])), group=[rows] * queries, features=matrix)


@dataclass
class Logged(Recorder):
    """A recorder that keeps parameters and state of every epoch."""

    log: list[tuple[Floats, Floats]] = field(default_factory=list)

    def epoch(self, values: Floats, objective: float, rate: float = float("nan"), **state: Floats) -> bool:
        self.log.append((np.array(values), state["ascent"]))
        return super().epoch(values, objective, rate, **state)


def climb(method: Exact, name: str = "nDCG(dcg='exp-log2')@5", seed: int = 0, **settings: object) -> Logged:
    train = problem(seed)
    recorder = Logged(Linear().prepared(train, 1), train, None, parse_measure(name), **settings)  # type: ignore[arg-type]
    method.run(recorder, RankNet(), np.random.default_rng(3))
    return recorder


@pytest.mark.parametrize("name", ["nDCG@5", "AP", "ERR@3", "GMAP", "CorrectPairs"])
def test_a_line_search_never_loses_to_a_grid(name: str) -> None:
    rows, measure = problem(4), parse_measure(name)
    model = Linear().prepared(rows, 2)
    found = line_search(model, rows, measure, "w.2")
    grid = [
        measure.aggregate(measure.per_query(model.at(model.params.replace({"w.2": w})).score(rows), rows))
        for w in np.linspace(-3, 3, 10_000 if name == "nDCG@5" else 500)
    ]
    assert found.value >= max(grid) - 1e-12
    assert found.value == pytest.approx(found.path.maximum.value, abs=1e-12)
    assert found.model.params["w.2"] == pytest.approx(model.params["w.2"] + found.step)


def test_a_line_search_keeps_to_bounds_and_moves_shared_parameters_together() -> None:
    rows, measure = problem(5), parse_measure("AP")
    model = Linear().prepared(rows, 2)
    names, count = model.params.names, len(model.params)
    narrow = Parameters(names, np.full(count, 0.5), np.full(count, 0.4), np.full(count, 0.6))
    tied = model.at(narrow.tie({"both": ["w.1", "w.2"]}).fix("bias"))
    found = line_search(tied, rows, measure, "both")
    assert found.path.low == pytest.approx(-0.1)
    assert found.path.high == pytest.approx(0.1)
    assert found.model.params["w.1"] == found.model.params["w.2"]
    found.model.params.check_bounds()
    assert found.value >= found.before
    slanted = line_search(tied, rows, measure, [1.0, -1.0, 0.0, 0.0])
    slanted.model.params.check_bounds()


def test_a_line_search_that_finds_nothing_better_stays() -> None:
    rows = problem(6)
    model = Linear().prepared(rows, 2)
    found = line_search(model, rows, parse_measure("AP"), "bias")
    assert (found.step, found.model) == (0.0, model)


@pytest.mark.parametrize("name", ["nDCG(dcg='exp-log2')@5", "AP", "GMAP", "ESL"])
@pytest.mark.parametrize("directions", ["axes", "random", "pairs+last+axes", "gradient+axes"])
def test_each_ascent_raises_the_training_measure_and_never_falls_below_its_start(name: str, directions: str) -> None:
    recorder = climb(Exact(restarts=3, epochs=6, directions=directions), name)
    sign = -1 if recorder.measure.smaller_is_better else 1
    assert recorder.best is not None
    assert sign * recorder.best.train > sign * recorder.trail[0].train
    for (one, (_, before)), (other, (_, after)) in pairwise(zip(recorder.trail, recorder.log, strict=True)):
        if before[0] == after[0]:
            assert sign * other.train >= sign * one.train
    assert {int(state[0]) for _, state in recorder.log} == {0, 1, 2}
    assert recorder.stopped == ("no direction gains" if recorder.log[-1][1][1] < 6 else "all epochs done")


def test_where_an_ascent_ends_no_line_along_an_axis_is_better() -> None:
    recorder = climb(Exact(restarts=1, epochs=50))
    assert recorder.trail[-1].number < 50
    model = recorder.fit().model
    for name in model.params.free_names:
        assert line_search(model, recorder.train, recorder.measure, name).step == 0.0


def test_it_beats_five_hundred_random_models() -> None:
    recorder = climb(Exact(restarts=2))
    rng = np.random.default_rng(0)
    sampled = [
        recorder.measure.aggregate(
            recorder.measure.per_query(recorder.model.at(w).score(recorder.train), recorder.train)
        )
        for w in rng.normal(size=(500, len(recorder.model.params)))
    ]
    assert recorder.best is not None
    assert recorder.best.train > max(sampled)


def test_the_same_seed_gives_the_same_run() -> None:
    one, other = climb(Exact(restarts=2)), climb(Exact(restarts=2))
    assert [epoch.train for epoch in one.trail] == [epoch.train for epoch in other.trail]


@pytest.mark.parametrize(
    "method",
    [Exact(restarts=3, epochs=4), Exact(restarts=3, epochs=4, directions="last+gradient+pairs", bag=0.5, shrink=0.01)],
    ids=["plain", "all"],
)
def test_a_run_that_was_interrupted_goes_on_as_if_it_had_not_been(tmp_path: Path, method: Exact) -> None:
    whole = climb(method)
    for stop in (0, 2, 5):
        path = tmp_path / f"{stop}.checkpoint"

        def watch(epoch: Epoch, stop: int = stop) -> None:
            if epoch.number == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            climb(method, checkpoint=path, key="k", watch=watch)
        again = Logged(whole.model, whole.train, None, whole.measure, checkpoint=path, key="k")
        assert again.resume()
        method.run(again, RankNet(), np.random.default_rng(99))
        assert [epoch.train for epoch in again.trail] == [epoch.train for epoch in whole.trail]


def test_shrink_leaves_weights_out() -> None:
    plain, few = climb(Exact(restarts=1)), climb(Exact(restarts=1, shrink=0.2))
    kept = [np.count_nonzero(recorder.log[-1][0][1:]) for recorder in (plain, few)]
    assert kept[1] < kept[0]
    assert few.trail[-1].objective > few.trail[0].objective
    assert few.trail[-1].train > few.trail[0].train


def test_pairs_leave_a_ridge_that_axes_cannot() -> None:
    """From (1, 1), one query is won beyond w.1 - w.2 = 0.5; two each are lost where w.1 + w.2 leaves 1.55 to 2.45."""
    narrow = [[[1, 1, 0], [0, 0, 1.55]], [[0, 0, 2.45], [1, 1, 0]]]
    rows = Candidates.of(
        [1, 0] * 5, group=[2] * 5, features=np.concatenate([*narrow, *narrow, [[1, 0, 0], [0, 1, 0.5]]])
    )
    model = Linear().prepared(rows, 0)
    assert model.scaler is not None
    model = model.at(np.concatenate([[0], np.array([1, 1, 1]) / model.scaler.scale]))
    model = model.at(model.params.fix(["bias", "w.3"]))
    found: dict[str, set[float]] = {"axes": set(), "axes+pairs": set()}
    for directions, ends in found.items():
        for seed in range(6):  # pairs have a random angle
            recorder = Recorder(model, rows, None, parse_measure("RR"))
            Exact(directions=directions).run(recorder, None, np.random.default_rng(seed))
            ends.add(recorder.trail[-1].train)
    assert found == {"axes": {0.9}, "axes+pairs": {0.9, 1.0}}


def test_a_bag_is_a_share_of_the_queries_and_another_one_for_each_ascent() -> None:
    recorder = climb(Exact(restarts=4, epochs=3, bag=0.5))
    ends = [epoch for epoch, (_, state) in zip(recorder.trail, recorder.log, strict=True) if state[2]]
    # Half of the queries are fitted better than all of them, of which the others count as much.
    assert sum(epoch.objective - epoch.train for epoch in ends) > 0
    assert len({epoch.objective for epoch in ends}) > 1


def test_parameters_that_are_not_linear_are_searched_by_bracketing() -> None:
    rows, measure = problem(7), parse_measure("AP")
    model = Network(hidden=2).prepared(rows, 0)
    found = line_search(model, rows, measure, "w21.1.1")
    assert found.path.resolution > 0
    grid = [
        measure.aggregate(measure.per_query(model.at(model.params.replace({"w21.1.1": w})).score(rows), rows))
        for w in np.linspace(*(model.params["w21.1.1"] + np.array([found.path.low, found.path.high])), 200)
    ]
    assert found.value >= max(grid) - 0.002
    recorder = Recorder(model, rows, None, measure)
    Exact(epochs=2).run(recorder, None, np.random.default_rng(0))
    assert recorder.trail[-1].train > recorder.trail[0].train


def test_polish_is_never_worse_on_training_queries_and_only_taken_if_better_on_validation_queries() -> None:
    train, valid = problem(8), problem(9)
    for seed in range(4):
        model, measure = Linear().prepared(train, seed), parse_measure("AP")
        before = [measure.aggregate(measure.per_query(model.score(rows), rows)) for rows in (train, valid)]
        fit, alone = polish(model, train, valid, measure, epochs=3), polish(model, train, measure=measure, epochs=3)
        assert fit.best.train >= before[0]
        assert fit.best.valid >= before[1]
        assert alone.best.train > before[0]
        if fit.best.valid == before[1]:
            np.testing.assert_array_equal(fit.model.params.values, model.params.values)
        for one, rows, value in ((fit, train, fit.best.train), (alone, train, alone.best.train)):
            assert measure.aggregate(measure.per_query(one.model.score(rows), rows)) == pytest.approx(value)


def test_it_says_what_it_cannot_do() -> None:
    rows = problem(0)
    with pytest.raises(UsageError, match="no free parameter"):
        line_search(Linear().prepared(rows, 0), rows, parse_measure("AP"), "w.9")
    wrong: list[dict[str, Any]] = [{"restarts": 0}, {"epochs": 0}, {"directions": "up"}, {"directions": "axes+up"}]
    for bad in [*wrong, {"shrink": -1.0}, {"prefer": "best"}, {"bag": 0.0}, {"bag": 1.5}]:
        with pytest.raises(UsageError):
            Exact(**bad)
