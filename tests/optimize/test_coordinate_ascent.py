"""Coordinate ascent: by exact line searches, by the samples of Taylor et al. 2006, by golden section and Brent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import pytest
from runs import coarse_rows, measured, random_rows, record, run, text_rows, train_rows, without_bias

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.measures import parse_measure
from fliprank.models import BM25F, Feature, Linear, Model, Network, Stack
from fliprank.objectives import RankNet
from fliprank.optimize.fit import Recorder
from fliprank.optimize.methods import Brent, CoordinateAscent, Exact, Golden, Line, Sampled
from fliprank.optimize.methods.line_search import SEARCHES
from fliprank.optimize.problem import Problem


@dataclass
class Logged(Recorder):
    """A recorder that keeps the state of every epoch: which ascent, its epochs, those without gain, and in a row."""

    counts: list[Floats] = field(default_factory=list)

    def epoch(self, values: Floats, objective: float, rate: float = float("nan"), /, **state: Any) -> bool:
        self.counts.append(np.array(state["counts"]))
        return super().epoch(values, objective, rate, **state)


def climb(method: CoordinateAscent, name: str = "nDCG(dcg='exp-log2')@5", seed: int = 0) -> Logged:
    train = coarse_rows(seed)
    recorder = Logged(Problem.of(Linear().prepared(train, 1), train, name, RankNet()))
    run(method, recorder)
    return recorder


# Exact


@pytest.mark.parametrize("name", ["nDCG(dcg='exp-log2')@5", "AP", "GMAP", "ESL"])
@pytest.mark.parametrize("directions", ["axes", "random", "pairs+last+axes", "gradient+axes"])
def test_each_ascent_raises_the_training_measure_and_never_falls_below_its_start(name: str, directions: str) -> None:
    recorder = climb(Exact(restarts=3, epochs=6, directions=directions), name)
    sign = -1 if recorder.measure.smaller_is_better else 1
    assert recorder.best is not None
    assert sign * recorder.best.train > sign * recorder.trail[0].train
    for (one, before), (other, after) in pairwise(zip(recorder.trail, recorder.counts, strict=True)):
        if before[0] == after[0]:
            assert sign * other.train >= sign * one.train
    assert {int(counts[0]) for counts in recorder.counts} == {0, 1, 2}
    assert recorder.stopped == ("no gain in 1 epoch" if recorder.counts[-1][3] else "all epochs done")


def test_where_an_ascent_ends_no_line_along_an_axis_is_better() -> None:
    recorder = climb(Exact(restarts=1, epochs=50))
    assert recorder.trail[-1].number < 50
    problem = recorder.problem
    place = problem.place(recorder.path[-1])
    lines = [problem.trajectory(place, axis, resolution=0.01) for axis in np.eye(len(place.values))]
    assert sum(line is not None for line in lines) == 4  # the bias and the last feature rank nothing
    for line in lines:
        assert line is None or line.maximum.value <= place.measure + 1e-12


def test_it_beats_five_hundred_random_models() -> None:
    recorder = climb(Exact(restarts=2))
    rng, at = np.random.default_rng(0), measured(recorder.problem.model, train_rows(recorder), recorder.measure)
    assert recorder.best is not None
    assert recorder.best.train > max(at(w) for w in rng.normal(size=(500, len(recorder.problem.params))))


def test_the_same_seed_gives_the_same_run() -> None:
    one, other = climb(Exact(restarts=2)), climb(Exact(restarts=2))
    assert repr(one.trail) == repr(other.trail)


def test_shrink_leaves_weights_out() -> None:
    plain, few = climb(Exact(restarts=1)), climb(Exact(restarts=1, shrink=0.2))
    kept = [np.count_nonzero(recorder.path[-1][1:]) for recorder in (plain, few)]
    assert kept[1] < kept[0]
    assert few.trail[-1].objective > few.trail[0].objective
    assert few.trail[-1].train > few.trail[0].train


@pytest.mark.parametrize("method", [Exact, Line, Sampled])
def test_a_prior_holds_weights_near_their_defaults(method: type[CoordinateAscent]) -> None:
    sizes = [np.abs(climb(method(l2=l2)).path[-1][1:]).sum() for l2 in (0.0, 0.1, 100.0)]
    assert sizes[0] > sizes[1] > 5 * sizes[2]
    held = climb(method(l2=0.1))
    for epoch, values in zip(held.trail, held.path, strict=True):
        assert epoch.objective == pytest.approx(epoch.train - 0.1 * values[1:] @ values[1:])


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
            ends.add(run(Exact(directions=directions), record(model, rows, measure="RR"), seed).trail[-1].train)
    assert found == {"axes": {0.9}, "axes+pairs": {0.9, 1.0}}


def test_a_bag_is_a_share_of_the_queries_and_another_one_for_each_ascent() -> None:
    recorder = climb(Exact(restarts=4, epochs=3, bag=0.5))
    over = [counts[1] == 3 or counts[3] == 1 for counts in recorder.counts]
    ends = [epoch for epoch, last in zip(recorder.trail, over, strict=True) if last]
    assert len(ends) == 4
    # Half of the queries are fitted better than all of them, of which the others count as much.
    assert sum(epoch.objective - epoch.train for epoch in ends) > 0
    assert len({epoch.objective for epoch in ends}) > 1


def test_parameters_that_are_not_linear_are_searched_by_bracketing() -> None:
    rows = coarse_rows(7)
    recorder = run(Exact(epochs=2), record(Network(hidden=2).prepared(rows, 0), rows, measure="AP"))
    assert recorder.trail[-1].train > recorder.trail[0].train


@pytest.mark.parametrize("method", [Exact(epochs=2), Line(samples=7, epochs=2)], ids=["exact", "line"])
def test_a_stack_is_climbed_within_its_bounds(method: CoordinateAscent) -> None:
    rows = text_rows()
    recorder = run(method, record(Stack(BM25F(), Feature("pagerank", "log")).prepared(rows, 0), rows, measure="AP"))
    assert recorder.trail[-1].train > recorder.trail[0].train
    recorder.fit().model.params.check_bounds()


def test_chosen_on_validation_queries_an_ascent_never_ends_below_its_start() -> None:
    train, valid = coarse_rows(8), coarse_rows(9)
    for seed in range(4):
        model, measure = Linear().prepared(train, seed), parse_measure("AP")
        before = [measure.value(model.score(rows), rows) for rows in (train, valid)]
        fit, alone = (run(Exact(epochs=3), record(model, train, held, measure="AP")).fit() for held in (valid, None))
        assert fit.best.train >= before[0]
        assert fit.best.valid >= before[1]
        assert alone.best.train > before[0]
        if fit.best.valid == before[1]:
            np.testing.assert_array_equal(fit.model.params.values, model.params.values)
        for one in (fit, alone):
            assert measure.value(one.model.score(train), train) == pytest.approx(one.best.train)


def test_it_says_what_it_cannot_do() -> None:
    wrong: list[dict[str, Any]] = [{"restarts": 0}, {"epochs": 0}, {"directions": "up"}, {"directions": "axes+up"}]
    wrong += [{"patience": 0}, {"search": "best"}, {"schedule": "never"}, {"reduce": "always"}, {"by_factors": True}]
    for bad in [*wrong, {"shrink": -1.0}, {"prefer": "best"}, {"bag": 0.0}, {"bag": 1.5}, {"l2": -1.0}]:
        with pytest.raises(UsageError):
            Exact(**bad)


# Sampled


def taylor_2006(at: Callable[[Floats], float], start: Floats, samples: int, epochs: int) -> list[float]:
    """Section 2.2 word for word, for parameters without bounds and a width of 1: the measure after each epoch.

    The scale is that of the samples along the axes. The promising direction is as long as what they found.
    """
    point, scale, idle, told = start, 1.0, 0, [at(start)]
    nearest_first = sorted(np.linspace(-1, 1, samples), key=abs)
    for _ in range(epochs):
        if idle == 3:
            break
        promising = np.zeros(len(point))
        for i in range(len(point)):
            best = told[-1]
            for x in nearest_first:
                moved = point.copy()
                moved[i] += x * scale
                if at(moved) > best + 1e-12:
                    best, promising[i] = at(moved), x * scale
        best, step = told[-1], 0.0
        for x in nearest_first:
            if at(point + x * promising) > best + 1e-12:
                best, step = at(point + x * promising), x
        point, idle, scale = point + step * promising, 0 if step else idle + 1, 0.85 * scale
        told.append(best)
    return told


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["AP", "nDCG(dcg='exp-log2')@5"])
def test_line_is_the_procedure_of_taylor_2006(seed: int, name: str) -> None:
    rows = random_rows(seed)
    model = without_bias(rows)
    recorder = run(Line(samples=9, epochs=10), record(model, rows, measure=name))
    plain = taylor_2006(measured(model, rows, recorder.measure), model.params.free_values, 9, 10)
    assert [epoch.train for epoch in recorder.trail] == pytest.approx(plain, abs=1e-12)
    assert len(plain) > 2
    np.testing.assert_allclose(
        [epoch.rate for epoch in recorder.trail[1:]], 0.85 ** np.arange(len(plain) - 1), rtol=1e-12
    )


@pytest.mark.parametrize("method", [Line(samples=9), Golden(samples=9), Brent(samples=9)], ids=lambda m: m.name)
@pytest.mark.parametrize("seed", range(4))
def test_with_one_parameter_an_epoch_keeps_what_the_axis_found(method: Line, seed: int) -> None:
    rows = random_rows(seed)
    model = without_bias(rows)
    model = model.at(model.params.fix(["w.2", "w.3"]))
    at, gains = measured(model, rows, parse_measure("AP")), 0
    worst = min(np.linspace(-0.9, 0.9, 7)[:, None], key=at)
    recorder = run(method, record(model.at(model.params.with_free(worst)), rows, measure="AP"))
    for before, after in pairwise(range(len(recorder.trail))):
        begun, scale = recorder.path[before], recorder.trail[after].rate

        def line(x: float, begun: Floats = begun, scale: float = scale) -> float:
            return at(begun + x * np.array([scale]))

        _, found = SEARCHES[method.search](line, -1.0, 1.0, method)
        assert recorder.trail[after].train >= max(found, recorder.trail[before].train) - 1e-12
        gains += recorder.trail[after].train > recorder.trail[before].train
    assert gains


def test_line_stops_after_three_epochs_without_gain_or_after_24() -> None:
    rows = random_rows(1)
    recorder = run(Line(samples=5), record(without_bias(rows), rows, measure="AP"))
    assert len(recorder.trail) <= 25
    assert recorder.stopped == "no gain in 3 epochs"
    assert len({epoch.train for epoch in recorder.trail[-4:]}) == 1
    assert len(run(Line(samples=5, epochs=2), record(without_bias(rows), rows, measure="AP")).trail) == 3


@pytest.mark.parametrize("method", [Line(samples=7, epochs=6), Exact(epochs=3, schedule="at once")])
def test_at_once_is_the_same_whatever_the_number_of_threads(method: CoordinateAscent) -> None:
    rows, threads = random_rows(2), numba.get_num_threads()
    found = []
    for count in (1, numba.config.NUMBA_NUM_THREADS):
        numba.set_num_threads(count)
        found.append(run(method, record(without_bias(rows), rows, measure="AP")).trail)
    numba.set_num_threads(threads)
    assert repr(found[0]) == repr(found[1])


@pytest.mark.parametrize("method", [Sampled(by_factors=False), Sampled(by_factors=True)])
def test_a_climb_finds_what_a_grid_finds_and_never_loses(method: Sampled) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 2))
    rows = Candidates.of(features @ [1.0, -0.5] + 0.5 * rng.normal(size=400) > 1, group=[20] * 20, features=features)
    model = Linear().prepared(rows, 0).at([0.0, 1.0, 1.0])
    recorder = run(method, record(model, rows, measure="AP"))
    at = measured(model, rows, recorder.measure)
    grid = max(at(np.array([0.0, 1.0, x])) for x in np.linspace(-3, 3, 200))
    assert recorder.trail[-1].train >= recorder.trail[0].train
    assert recorder.trail[-1].train > grid - 0.02


@pytest.mark.parametrize("model", [BM25F(), Stack(BM25F(), Feature("pagerank", "log"))])
def test_by_factors_parameters_are_moved_over_a_factor_of_e(model: Model) -> None:
    rows = text_rows()
    ready = model.prepared(rows, 0)
    path = np.array(run(Sampled(epochs=1, samples=5), record(ready, rows, measure="AP")).path)
    params = ready.params
    positive = (params.free_lower >= 0) & np.isinf(params.free_upper)
    steps = np.log(path[1][positive] / path[0][positive])
    # The axes are sampled at factors of e^-1, e^-1/2, 1, e^1/2 and e; then the promising direction as far again.
    allowed = np.array([axis * (1 + x) for axis in (-1, -0.5, 0, 0.5, 1) for x in (-1, -0.5, 0, 0.5, 1)])
    assert np.abs(steps[:, None] - allowed).min(axis=1).max() < 1e-9
    assert np.abs(steps).max() > 0.4
