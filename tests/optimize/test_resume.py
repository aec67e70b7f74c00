"""A run that was interrupted and resumed is the same run, bit for bit: every method, wherever it was stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from runs import followed, interrupt_at, ordered_rows, random_rows, record, without_bias

from fliprank.models import Linear, Network
from fliprank.objectives import RankNet
from fliprank.optimize.fit import Recorder
from fliprank.optimize.methods import (
    METHODS,
    Adam,
    Evolution,
    Exact,
    Grid,
    Lbfgs,
    Method,
    Powell,
    Sampled,
    Taylor2006,
    Taylor2008,
    base,
)

Make = Callable[..., Recorder]

RUNS: dict[str, Method] = {
    "lbfgs": Lbfgs(epochs=9),
    "adam": Adam(epochs=9, batch=4),
    "exact": Exact(restarts=3, epochs=4),
    "exact, all settings": Exact(restarts=3, epochs=4, directions="last+gradient+pairs", bag=0.5, shrink=0.01),
    "line": METHODS["line"](samples=7, epochs=6),  # type: ignore[call-arg]
    "golden": METHODS["golden"](samples=7, epochs=6),  # type: ignore[call-arg]
    "brent": METHODS["brent"](samples=7, epochs=6),  # type: ignore[call-arg]
    "sampled": Sampled(samples=7, epochs=4, restarts=2),
    "metzler2007": METHODS["metzler2007"](epochs=6, tolerance=1e-15),  # type: ignore[call-arg]
    "powell": Powell(epochs=4),
    "evolution": Evolution(epochs=5, size=12),
    "grid": Grid(steps=5),
    "taylor2006": Taylor2006(epochs=8, rate=0.5),
    "taylor2008": Taylor2008(epochs=8, rate=1.0, patience=2),
}


def linear(**given: Any) -> Recorder:
    rows = random_rows(7)
    return record(without_bias(rows), rows, random_rows(8), measure="AP", objective="ranknet", **given)


def network(**given: Any) -> Recorder:
    return followed(Network(3), seed=2, **given)


def complete(method: Method, recorder: Recorder, seed: int = 3) -> Recorder:
    """Run to the end, from the start or from the checkpoint, as commands do."""
    recorder.resume()
    if not recorder.finished:
        method.run(recorder.problem, recorder, np.random.default_rng(seed))
        recorder.finish()
    return recorder


def assert_same(one: Recorder, other: Recorder) -> None:
    assert repr(one.trail) == repr(other.trail)
    assert np.array(one.path).tolist() == np.array(other.path).tolist()
    assert repr(one.best) == repr(other.best)
    assert one.fit().model.params.values.tolist() == other.fit().model.params.values.tolist()
    assert (one.stopped, one.finished) == (other.stopped, other.finished)


def stops(whole: Recorder) -> list[int]:
    """The first epochs, one in the middle, the last."""
    last = len(whole.trail) - 1
    return sorted({0, min(1, last), last // 2, last})


def interrupted(method: Method, make: Make, path: Path, stop: int, by: str) -> None:
    if by == "ctrl-c":
        with pytest.raises(KeyboardInterrupt):
            complete(method, make(checkpoint=path, progress=interrupt_at(stop)))
    else:
        recorder = make(checkpoint=path)
        recorder.enough = lambda: recorder.done > stop
        assert complete(method, recorder).fit().interrupted


def test_every_method_is_tested() -> None:
    assert {method.name for method in RUNS.values()} == set(METHODS)


@pytest.mark.parametrize("by", ["ctrl-c", "being told to"])
@pytest.mark.parametrize("name", RUNS)
def test_resumed_is_as_uninterrupted(name: str, by: str, tmp_path: Path) -> None:
    method, whole = RUNS[name], complete(RUNS[name], linear())
    assert len(whole.trail) > 3
    if name.startswith("taylor"):
        assert len({epoch.rate for epoch in whole.trail[1:]}) > 1  # the rate falls on the way
    for stop in stops(whole):
        path = tmp_path / f"{stop}.checkpoint"
        interrupted(method, linear, path, stop, by)
        begun = linear(checkpoint=path)
        assert begun.resume()
        assert len(begun.trail) == stop + 1
        # What is random comes from the checkpoint, not from the seed.
        assert_same(complete(method, linear(checkpoint=path), seed=999), whole)


@pytest.mark.parametrize("name", ["lbfgs", "adam", "taylor2006", "taylor2008"])
def test_networks_too(name: str, tmp_path: Path) -> None:
    whole = complete(RUNS[name], network())
    for stop in stops(whole):
        path = tmp_path / f"{stop}.checkpoint"
        interrupted(RUNS[name], network, path, stop, "ctrl-c")
        assert_same(complete(RUNS[name], network(checkpoint=path), seed=999), whole)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_may_be_interrupted_again_and_again(name: str, tmp_path: Path) -> None:
    method, path = RUNS[name], tmp_path / "run.checkpoint"
    whole = complete(method, linear())
    for stop in range(len(whole.trail)):
        interrupted(method, linear, path, stop, "ctrl-c")
    assert_same(complete(method, linear(checkpoint=path), seed=999), whole)


@pytest.mark.parametrize("remembered", [0, 9, 23])
@pytest.mark.parametrize("name", ["lbfgs", "powell"])
def test_what_a_journal_has_no_room_for_is_computed_again(
    name: str, remembered: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method, whole = RUNS[name], complete(RUNS[name], linear())
    monkeypatch.setattr(base, "MOST_REMEMBERED", remembered)
    for stop in stops(whole):
        path = tmp_path / f"{stop}.checkpoint"
        interrupted(method, linear, path, stop, "ctrl-c")
        begun = linear(checkpoint=path)
        assert begun.resume()
        assert len(begun.state["journal"]) <= remembered
        assert_same(complete(method, linear(checkpoint=path)), whole)


@dataclass(frozen=True, eq=False)
class Scheduled(RankNet):
    """RankNet that is less sure of its pairs as training goes on."""

    name: ClassVar[str] = "scheduled"

    def at(self, progress: float) -> RankNet:
        return RankNet(target=1.0 - 0.4 * progress)


@pytest.mark.parametrize("remembered", [0, 9, 1000])
@pytest.mark.parametrize("name", ["lbfgs", "adam", "taylor2008"])
def test_an_objective_that_changes_on_the_way_is_resumed_where_it_was(
    name: str, remembered: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = random_rows(7)

    def make(**given: Any) -> Recorder:
        return record(without_bias(rows), rows, objective=Scheduled(), measure="AP", **given)

    monkeypatch.setattr(base, "MOST_REMEMBERED", remembered)
    whole = complete(RUNS[name], make())
    assert len(whole.trail) > 2
    plain = complete(RUNS[name], linear())
    assert [epoch.objective for epoch in whole.trail] != [epoch.objective for epoch in plain.trail]
    for stop in stops(whole):
        path = tmp_path / f"{stop}.checkpoint"
        interrupted(RUNS[name], make, path, stop, "ctrl-c")
        assert_same(complete(RUNS[name], make(checkpoint=path)), whole)


@pytest.mark.parametrize("by", ["ctrl-c", "being told to"])
@pytest.mark.parametrize("name", ["lbfgs", "adam", "taylor2008"])
def test_a_run_whose_patience_ran_out_as_it_was_interrupted_is_over(name: str, by: str, tmp_path: Path) -> None:
    rows, method = ordered_rows(), replace(RUNS[name], epochs=30)  # type: ignore[call-arg]

    def make(**given: Any) -> Recorder:
        return record(Linear().prepared(rows, 0).at([0.0, 1.0]), rows, objective="ranknet", patience=3, **given)

    whole = complete(method, make())
    assert (len(whole.trail), whole.stopped) == (4, "no better epoch in 3")
    for stop in range(4):
        path = tmp_path / f"{stop}.checkpoint"
        interrupted(method, make, path, stop, by)
        assert_same(complete(method, make(checkpoint=path)), whole)


@pytest.mark.parametrize("name", ["lbfgs", "powell"])
def test_a_resumed_run_that_is_told_to_stop_before_it_is_where_it_was_stops(name: str, tmp_path: Path) -> None:
    whole, path = complete(RUNS[name], linear()), tmp_path / "run.checkpoint"
    interrupted(RUNS[name], linear, path, 3, "ctrl-c")
    recorder = linear(checkpoint=path)
    recorder.enough = lambda: True
    assert complete(RUNS[name], recorder).fit().interrupted
    assert len(recorder.trail) == 4
    assert_same(complete(RUNS[name], linear(checkpoint=path)), whole)


def test_epochs_are_numbered_through_and_the_cost_falls_on(tmp_path: Path) -> None:
    method, path = Lbfgs(epochs=8), tmp_path / "run.checkpoint"
    interrupted(method, followed, path, 3, "ctrl-c")
    resumed = complete(method, followed(checkpoint=path))
    assert [epoch.number for epoch in resumed.trail] == list(range(9))
    assert resumed.trail[-1].objective < resumed.trail[3].objective
