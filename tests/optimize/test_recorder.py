"""The recorder that every method reports to: which epoch is kept, when it stops, checkpoints, what the fit says."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from runs import MEASURE, MODELS, followed, followed_rows, measured, ordered_rows, record, run, train_rows, valid_rows

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.store import write_arrays
from fliprank.errors import InputError, UsageError
from fliprank.models import Linear, Network
from fliprank.objectives import RankNet, parse_objective
from fliprank.optimize import fit as fit_module
from fliprank.optimize.fit import KEEP, Recorder, fingerprint
from fliprank.optimize.methods import Adam, Exact, Grid, Lbfgs, Method, Sampled

METHODS = [Lbfgs(epochs=15), Adam(epochs=15, batch=8)]


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


# Which epoch is kept


def report(recorder: Recorder) -> list[Floats]:
    """Epochs at random points, as a method might report them."""
    rng, problem = np.random.default_rng(0), recorder.problem
    sizes = [6, 3, 0.3, 5, 1, 2, 4, 3]  # a larger mistake costs more, whatever the ranking
    points = [size * rng.normal(size=len(problem.params.free_values)) for size in sizes]
    for values in points:
        assert recorder.epoch(values, problem.value_and_grad(values)[0])
    return points


@pytest.mark.parametrize("validated", [True, False])
@pytest.mark.parametrize("measure", ["nDCG(dcg='exp-log2')@10", "ESL"])
def test_the_epoch_that_is_kept_is_a_choice(validated: bool, measure: str) -> None:
    train, target, kept = followed_rows(0), parse_objective("ranknet"), {}
    rows = followed_rows(100) if validated else train
    model = Linear().prepared(train, 1)
    for keep in KEEP:
        recorder = record(model, train, rows if validated else None, measure=measure, objective=target, keep=keep)
        points, chosen = report(recorder), recorder.measure
        scores = [model.at(values).score(rows) for values in points]
        best = {
            "measure": int(np.argmax([chosen.sign * chosen.value(each, rows) for each in scores])),
            "objective": int(np.argmin([target.value_and_grad(each, rows)[0] for each in scores])),
            "last": len(points) - 1,
        }
        fit = recorder.fit()
        assert fit.best.number == best[keep]
        assert fit.model.params.values.tolist() == points[best[keep]].tolist()
        assert fit.best.train == pytest.approx(chosen.value(model.at(points[best[keep]]).score(train), train))
        by_objective = validated and keep == "objective"
        assert np.isnan([epoch.valid_objective for epoch in fit.trail]).tolist() == [not by_objective] * len(points)
        if by_objective:
            found = [epoch.valid_objective for epoch in fit.trail]
            assert found == pytest.approx([target.value_and_grad(each, rows)[0] for each in scores])
        kept[keep] = fit.best.number
    assert len(set(kept.values())) == 3  # or the test could not tell them apart


def test_what_is_kept_is_one_of_the_three() -> None:
    with pytest.raises(UsageError, match="keep is one of measure, objective, last, not 'best'"):
        followed(keep="best")


@pytest.mark.parametrize("keep", KEEP)
@pytest.mark.parametrize("method", METHODS)
def test_methods_end_at_the_epoch_that_is_kept(method: Method, keep: str) -> None:
    fit = run(method, followed(Network(3), keep=keep)).fit()
    best = {
        "measure": max(fit.trail, key=lambda epoch: epoch.valid),
        "objective": min(fit.trail, key=lambda epoch: epoch.valid_objective),
        "last": fit.trail[-1],
    }[keep]
    assert fit.best == best


@pytest.mark.parametrize("method", METHODS)
def test_the_best_epoch_is_chosen_on_validation_queries(method: Method) -> None:
    recorder = run(method, followed(Network(3)))
    fit, valid = recorder.fit(), valid_rows(recorder)
    assert fit.best.valid == max(epoch.valid for epoch in fit.trail)
    assert MEASURE.per_query(fit.model.score(valid), valid).mean() == pytest.approx(fit.best.valid, abs=1e-12)
    assert fit.chosen_by == fit.best.valid


@pytest.mark.parametrize("method", METHODS)
def test_patience_stops_when_no_epoch_is_better(method: Method) -> None:
    """The labels follow the one feature, and the model starts from there: epoch 0 is the best there can be."""
    rows = ordered_rows()
    recorder = record(Linear().prepared(rows, 0).at([0.0, 1.0]), rows, objective="ranknet", patience=3)
    fit = run(method, recorder).fit()
    assert len(fit.trail) == 4
    assert fit.stopped == "no better epoch in 3"
    assert (fit.best.number, fit.best.train) == (0, pytest.approx(1.0))


# Ctrl-C


@pytest.mark.parametrize(("method", "last"), [(Lbfgs(epochs=50), 12), (Adam(epochs=50, batch=8), 23)])
def test_ctrl_c_leaves_the_best_so_far(method: Method, last: int) -> None:
    recorder = followed(objective=Interrupted(last=last))
    with pytest.raises(KeyboardInterrupt):
        run(method, recorder)
    fit, rows = recorder.fit(), train_rows(recorder)
    assert 2 < len(fit.trail) < 51
    assert fit.best.valid == max(epoch.valid for epoch in fit.trail)
    assert MEASURE.per_query(fit.model.score(rows), rows).mean() == pytest.approx(fit.best.train, abs=1e-12)


def test_ctrl_c_before_the_first_epoch_is_an_error_that_says_so() -> None:
    recorder = followed(objective=Interrupted(last=1))
    with pytest.raises(KeyboardInterrupt):
        run(Adam(), recorder)
    with pytest.raises(InputError, match="before the first epoch"):
        recorder.fit()


@pytest.mark.parametrize("method", METHODS)
def test_a_run_that_is_told_to_stop_says_so(method: Method) -> None:
    recorder = followed()
    recorder.enough = lambda: len(recorder.trail) == 3
    run(method, recorder).finish()
    assert len(recorder.trail) == 3
    assert recorder.fit().interrupted
    assert not recorder.finished


# The path, and what ties


@pytest.mark.parametrize("method", [*METHODS, Exact(epochs=2), Sampled(epochs=2)])
def test_a_fit_has_the_parameters_of_each_epoch(method: Method) -> None:
    recorder = run(method, followed())
    fit, model = recorder.fit(), recorder.problem.model
    assert fit.path is not None
    assert fit.path.shape == (len(fit.trail), len(model.params.free_names))
    assert fit.path[0].tolist() == model.params.free_values.tolist()
    assert fit.path[fit.best.number].tolist() == fit.model.params.free_values.tolist()
    at = measured(model, train_rows(recorder), MEASURE)
    assert [at(values) for values in fit.path] == pytest.approx([epoch.train for epoch in fit.trail], abs=1e-12)
    assert fit.start is model


def test_the_parameters_of_large_models_are_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fit_module, "MOST_PATH", 5)
    recorder = run(Adam(epochs=2), followed(checkpoint=tmp_path / "run"))
    assert recorder.fit().path is None
    again = followed(checkpoint=tmp_path / "run")
    assert again.resume()
    assert again.fit().path is None


def contradicting(weight: float) -> Recorder:
    """One query wants the weight above 0, the other below; where all scores tie, row order puts both right."""
    rows = Candidates.of([1, 0, 1, 0], group=[2, 2], features=[[2.0], [1.0], [1.0], [2.0]])
    model = Linear().prepared(rows, 0).at([0.0, weight])
    return record(model.at(model.params.fix("bias")), rows, measure="RR")


SEARCHES = [Grid(values={"w.1": [-1.0, 0.0, 1.0]}), Sampled(by_factors=False, samples=3), Exact(directions="axes")]


@pytest.mark.parametrize("method", SEARCHES)
def test_a_place_where_all_scores_tie_is_never_a_gain(method: Method) -> None:
    recorder = run(method, contradicting(1.0))
    recorder.finish()
    fit = recorder.fit()
    assert fit.model.params["w.1"] != 0.0
    assert (fit.best.train, fit.trail[0].train) == (0.75, 0.75)
    assert "all scores tie" not in fit.stopped


@pytest.mark.parametrize("method", SEARCHES)
def test_a_search_that_ends_where_all_scores_tie_says_so(method: Method) -> None:
    """Both documents of each query are alike: no weight tells them apart."""
    rows = Candidates.of([1, 0, 1, 0], group=[2, 2], features=[[2.0], [2.0], [1.0], [1.0]])
    model = Linear().prepared(rows, 0)
    recorder = run(method, record(model.at(model.params.fix("bias")), rows, measure="RR"))
    recorder.finish()
    assert "all scores tie" in recorder.fit().stopped


def test_a_search_that_ends_where_some_scores_tie_does_not() -> None:
    recorder = run(Grid(values={"w.1": [-1.0, 1.0]}), contradicting(1.0))
    recorder.finish()
    assert recorder.fit().stopped == "all epochs done"
    rows = Candidates.of([1, 0, 0], features=[[2.0], [1.0], [1.0]])  # two of three tie
    recorder = run(Grid(steps=3), record(contradicting(1.0).problem.model, rows, measure="RR"))
    recorder.finish()
    assert recorder.fit().stopped == "all epochs done"


# Checkpoints


def test_without_a_checkpoint_there_is_nothing_to_resume(tmp_path: Path) -> None:
    assert not followed(checkpoint=tmp_path / "none").resume()
    assert not followed().resume()


def test_the_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    run(Adam(epochs=2), followed(checkpoint=path, key=fingerprint(followed_rows(0), l2=1e-3)))
    assert followed(checkpoint=path, key=fingerprint(followed_rows(0), l2=1e-3)).resume()
    for key in (fingerprint(followed_rows(0), l2=1e-2), fingerprint(followed_rows(1), l2=1e-3)):
        with pytest.raises(InputError, match="another run"):
            followed(checkpoint=path, key=key).resume()


def test_judged_documents_that_are_not_among_the_rows_are_part_of_the_key() -> None:
    rows = Candidates.of([1, 0, 1, 0], group=[2, 2])
    assert fingerprint(rows.take([0, 2, 3])) != fingerprint(rows.take([1, 2, 3]))
    fewer = rows.take([0, 2, 3])
    assert fingerprint(fewer) != fingerprint(Candidates(fewer.offsets, fewer.labels, fewer.qids))


def test_a_checkpoint_that_is_cut_off_is_an_input_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    run(Adam(epochs=3), followed(checkpoint=path))
    whole = path.read_bytes()
    for size in [*range(0, len(whole) - 1, 61), len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"run\.checkpoint"):
            followed(checkpoint=path).resume()


def test_a_store_that_is_no_checkpoint_is_an_input_error(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    write_arrays(path, {"key": "", "trail": [], "best": 0}, {"values": np.zeros(2)})
    with pytest.raises(InputError, match="not a checkpoint"):
        followed(checkpoint=path).resume()


@pytest.mark.parametrize("model", MODELS)
def test_a_run_that_is_done_is_not_run_again(model: Linear, tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    done = run(Adam(epochs=4), followed(model, checkpoint=path))
    done.finish()
    again = followed(model, checkpoint=path)
    assert again.resume()
    assert again.finished
    assert str(run(Adam(epochs=4), again).trail) == str(done.trail)


def test_a_flipped_bit_in_a_checkpoint_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    run(Adam(epochs=3), followed(checkpoint=path))
    raw = bytearray(path.read_bytes())
    for place in (-1, -9, -40):
        damaged = raw.copy()
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"run\.checkpoint.*not what was written"):
            followed(checkpoint=path).resume()


def test_names_and_all_term_statistics_are_part_of_the_key() -> None:
    rows = followed_rows(0)
    renamed = replace(rows, feature_names=("a", "b", "c", "d", "e"))
    assert fingerprint(rows) == fingerprint(followed_rows(0)) != fingerprint(renamed)
