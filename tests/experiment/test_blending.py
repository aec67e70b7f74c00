"""Blends are weighed on validation queries by what other validation queries say, and kept only where that helps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fliprank as fr
from fliprank.experiment.blending import EQUAL, FITTED, PART, SETTERS, choose_weights
from fliprank.models.blend import Blend
from fliprank.models.trees import Trees

MEASURE = fr.parse_measure("nDCG(dcg='exp-log2')@10")
QUICK: dict[str, Any] = {"epochs": 5, "restarts": 1, "sweep": False}


def noisy(seed: int, noises: list[float], queries: int = 60) -> tuple[Blend, fr.Candidates]:
    """Parts that see the truth, each with errors of its own; features are what they see."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=12 * queries)
    x = truth[:, None] + rng.normal(size=(len(truth), len(noises))) * noises
    rows = fr.Candidates.of(np.digitize(truth, [0.5, 1.5]), group=[12] * queries, features=x)
    parts = [fr.Linear().prepared(rows, 0).at(np.eye(len(noises) + 1)[k + 1]) for k in range(len(noises))]
    return Blend(parts).prepared(rows, 0), rows


@pytest.mark.parametrize("seed", range(3))
def test_weights_of_two_parts_never_lose_to_a_grid(seed: int) -> None:
    blend, rows = noisy(seed, [0.5, 1.5], 15)
    weights = SETTERS[FITTED](blend, rows, MEASURE)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    found = MEASURE.value(blend.at(weights).score(rows), rows)
    grid = [MEASURE.value(blend.at([w, 1 - w]).score(rows), rows) for w in np.linspace(0, 1, 300)]
    assert found >= max(grid) - 1e-9


@pytest.mark.parametrize(
    ("noises", "choice"),
    [([0.7, 0.7, 0.7], EQUAL), ([0.01, 3.0, 3.0], PART), ([0.5, 0.5, 9.0, 9.0], FITTED)],
)
def test_the_choice_fits_the_parts(noises: list[float], choice: str) -> None:
    blend, rows = noisy(1, noises, 200)
    found = choose_weights(blend, rows, MEASURE)
    assert found.choice == choice
    assert set(found.judged) == {PART, EQUAL, FITTED}
    _, test = noisy(2, noises, 200)
    mine = MEASURE.value(blend.at(found.weights).score(test), test)
    each = [MEASURE.value(blend.at(one).score(test), test) for one in np.eye(len(noises))]
    assert mine >= max(each) - 0.005


def test_a_measure_where_smaller_is_better_is_made_small() -> None:
    blend, rows = noisy(1, [0.01, 3.0, 3.0])
    measure = fr.parse_measure("ESL")
    assert measure.smaller_is_better
    found = choose_weights(blend, rows, measure)
    assert found.weights.argmax() == 0
    assert found.judged[found.choice] == min(found.judged.values())


def test_what_is_judged_was_not_set_on_the_same_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    blend, rows = noisy(1, [0.7, 0.7], 23)
    seen: list[set[str]] = []
    held: list[set[str]] = []
    real = SETTERS[FITTED]

    def noted(model: Blend, some: fr.Candidates, measure: fr.Measure) -> np.ndarray:
        seen.append(set(some.qids.tolist()))
        return real(model, some, measure)

    monkeypatch.setitem(SETTERS, FITTED, noted)
    choose_weights(blend, rows, MEASURE)
    every = set(rows.qids.tolist())
    held = [every - some for some in seen if some != every]
    assert len(held) == 20
    for division in range(4):
        folds = held[5 * division : 5 * division + 5]
        assert sum(map(len, folds)) == len(set().union(*folds)) == 23


def test_few_queries_leave_weights_equal() -> None:
    blend, rows = noisy(1, [0.1, 3.0], 9)
    found = choose_weights(blend, rows, MEASURE)
    assert (found.choice, found.weights.tolist(), found.judged) == (EQUAL, [0.5, 0.5], {})


def sets(seed: int = 0, queries: int = 40) -> tuple[fr.Candidates, fr.Candidates]:
    out = []
    for part in (0, 1):
        rng = np.random.default_rng([seed, part])
        x = rng.normal(size=(10 * queries, 3))
        labels = np.digitize(x[:, 0] + x[:, 1] * x[:, 2] + rng.normal(size=len(x)), [1.0, 2.0])
        out.append(fr.Candidates.of(labels, group=[10] * queries, features=x))
    return out[0], out[1]


def test_auto_is_the_blend_of_its_parts_as_they_are_trained_alone() -> None:
    pytest.importorskip("lightgbm")
    train, valid = sets()
    fit = fr.train("auto", train, valid, measure=str(MEASURE), **QUICK)
    alone = [
        fr.train(model, train, valid, measure=str(MEASURE), **QUICK) for model in (fr.Linear(), fr.Network(), Trees())
    ]
    again = fr.train(Blend([each.model for each in alone]), train, valid, measure=str(MEASURE))
    np.testing.assert_array_equal(fit.model.score(valid), again.model.score(valid))
    assert [each.value for each in fit.tried[:3]] == [each.best.valid for each in alone]
    assert fit.best.valid == pytest.approx(MEASURE.value(fit.model.score(valid), valid))
    weights = [part["weight"] for part in fit.settings["parts"]]
    assert sum(weights) == pytest.approx(1)
    assert fit.settings["choice"] in (PART, EQUAL, FITTED)


def test_a_part_whose_library_is_missing_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    train, valid = sets()
    fit = fr.train("auto", train, valid, **QUICK)
    assert [part["part"] for part in fit.settings["parts"]] == ["linear", "network"]
    assert fit.tried[-1].what == "trees: left out, lightgbm is not installed: pip install 'fliprank[gbm]'"
    with pytest.raises(fr.InputError, match=r"no part of this blend can be trained: trees: left out, lightgbm is not"):
        fr.train(Blend([Trees()]), train, valid)


def test_after_ctrl_c_the_best_part_so_far_is_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from fliprank.experiment import training

    real = training.train

    def interrupted(model: Any, *given: Any, **options: Any) -> fr.Fit:
        fit = real(model, *given, **options)
        return replace(fit, stopped="interrupted") if isinstance(model, fr.Network) else fit

    monkeypatch.setattr(training, "train", interrupted)
    train, valid = sets()
    fit = real("auto", train, valid, **QUICK)
    assert fit.interrupted
    assert [part["part"] for part in fit.settings["parts"]] == ["linear", "network"]
    assert fit.model.kind in ("linear", "network")
    assert fit.best.valid == max(each.value for each in fit.tried)


def test_a_killed_training_goes_on_to_the_same_end(tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    train, valid = sets()
    whole = fr.train("auto", train, valid, **QUICK)

    def killed(what: str, run: int, runs: int, epoch: Any) -> None:
        if what == "trees, growing trees":
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        fr.train("auto", train, valid, **QUICK, checkpoint=tmp_path, progress=killed)
    told: set[str] = set()

    def note(what: str, *rest: Any) -> None:
        told.add(what)

    again = fr.train("auto", train, valid, **QUICK, checkpoint=tmp_path, resume=True, progress=note)
    assert told == {"trees, growing trees"}, "the other parts were finished"
    np.testing.assert_array_equal(again.model.score(valid), whole.model.score(valid))
    assert again.tried == whole.tried


def test_without_validation_queries_weights_are_equal() -> None:
    train, _ = sets()
    fit = fr.train(Blend([fr.Linear(), fr.Network(2)]), train, **QUICK)
    assert fit.model.params.values.tolist() == [0.5, 0.5]
    assert np.isnan(fit.best.valid)
