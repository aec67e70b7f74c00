"""`train` for trees: any objective, settings chosen on validation queries, seeds, checkpoints, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fliprank as fr
from fliprank.experiment.growing import VARIED, _Push
from fliprank.models.trees import Trees

pytest.importorskip("lightgbm")
GIVEN: dict[str, Any] = {"leaves": 7, "rate": 0.2, "leaf_rows": 20}


def rows(seed: int, queries: int = 40) -> fr.Candidates:
    """Relevance is an exclusive or of two features, which no linear model can rank."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(15 * queries, 4))
    grade = x[:, 0] * x[:, 1] + 0.2 * rng.normal(size=len(x))
    return fr.Candidates.of(np.digitize(grade, [0.4, 1.2]), group=[15] * queries, features=x)


@pytest.mark.parametrize("objective", ["lightgbm", "lambdarank@10", "softndcg", "softap", "ranknet", "mse"])
def test_trees_learn_what_no_linear_model_can(objective: str) -> None:
    train, valid, test = rows(0), rows(1), rows(2)
    fit = fr.train(Trees(rounds=60, **GIVEN), train, valid, objective=objective, restarts=1)
    measure = fr.parse_measure("nDCG(dcg='exp-log2')@10")
    linear = fr.train(fr.Linear(), train, valid, restarts=1, epochs=10).model
    mine, theirs = (measure.value(model.score(test), test) for model in (fit.model, linear))
    assert mine > theirs + 0.25
    assert mine > 0.8
    assert fit.settings["objective"] == objective


@pytest.mark.parametrize("objective", ["softndcg", "lambdarank@10"])
def test_lightgbm_is_given_the_gradient_of_the_objective_as_a_cost(objective: str) -> None:
    rng, data, own = np.random.default_rng(0), rows(0, 3), fr.parse_objective(objective)
    scores = rng.normal(size=len(data))
    gradient, curvature = _Push(own, data, 10)(scores)
    sign, step = -1.0 if own.maximise else 1.0, 1e-5
    for i in range(0, len(data), 4):
        ends = [sign * own.per_query(scores + side * np.eye(len(data))[i], data).sum() for side in (step, -step)]
        assert gradient[i] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-5)
    assert (curvature > 0).all()


def test_the_measure_on_validation_queries_chooses_how_many_trees_and_every_tree_is_in_the_trail() -> None:
    train, valid, measure = rows(0), rows(1), fr.parse_measure("AP")
    model = Trees(rounds=80, patience=10, **GIVEN)
    fit = fr.train(model, train, valid, objective="softap", measure="AP", restarts=1)
    values = [epoch.valid for epoch in fit.trail]
    assert fit.best.number == int(np.argmax(values)) + 1 == len(fit.model.forest)
    assert len(values) == fit.best.number + 10 < 80
    sooner = fr.train(model, train, valid, objective="softap", measure="AP", restarts=1, patience=3)
    assert len(sooner.trail) == sooner.best.number + 3 < len(values)
    assert fit.best.valid == pytest.approx(measure.value(fit.model.score(valid), valid))
    assert fit.best.train == pytest.approx(measure.value(fit.model.score(train), train))
    soft = fr.parse_objective("softap")
    assert fit.best.objective == pytest.approx(-soft.value_and_grad(fit.model.score(train), train)[0])
    last = fr.train(model, train, valid, objective="softap", measure="AP", restarts=1, keep="last")
    assert len(last.model.forest) == 80
    least = fr.train(model, train, valid, objective="softap", measure="AP", restarts=1, keep="objective")
    costs = [epoch.valid_objective for epoch in least.trail]
    assert least.best.number == int(np.argmin(costs)) + 1


def test_settings_are_chosen_on_validation_queries_and_the_best_is_averaged_over_starts() -> None:
    train, valid = rows(0), rows(1)
    fit = fr.train(Trees(rounds=12, rate=0.3), train, valid, restarts=3)
    assert len(fit.tried) == 6
    assert fit.settings["trials"] == 6 + 2
    chosen = [each for each in fit.tried if each.weight]
    assert [each.value for each in chosen] == [max(each.value for each in fit.tried)]
    told = f"lambdarank@10 by trees(leaves={fit.settings['leaves']},rate=0.3,leaf_rows={fit.settings['leaf_rows']})"
    assert chosen[0].what == told
    alone = [
        fr.train(
            Trees(rounds=12, settings=VARIED, **{k: fit.settings[k] for k in GIVEN}),
            train,
            valid,
            restarts=1,
            seed=seed,
        ).model.score(valid)
        for seed in range(3)
    ]
    np.testing.assert_allclose(fit.model.score(valid), np.mean(alone, axis=0), rtol=1e-9, atol=1e-12)
    best = fr.train(Trees(rounds=12, rate=0.3), train, valid, restarts=3, average=False)
    assert any(np.array_equal(best.model.score(valid), each) for each in alone)


def test_the_same_seed_gives_the_same_model_and_another_another() -> None:
    train, valid = rows(0), rows(1)
    a, b, c = (
        fr.train(Trees(rounds=10, **GIVEN), train, valid, restarts=2, seed=seed, jobs=jobs).model.score(valid)
        for seed, jobs in ((4, 1), (4, 2), (5, 1))
    )
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_without_validation_queries_plain_settings_are_grown_to_the_end() -> None:
    fit = fr.train(fr.Trees(), rows(0))
    assert (len(fit.trail), len(fit.tried), fit.settings["leaves"]) == (100, 1, 31)
    assert np.isnan(fit.best.valid)
    assert len(fr.train(fr.Trees(), rows(0), epochs=4, leaves=5).trail) == 4


def test_a_killed_training_goes_on_to_the_same_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train, valid = rows(0), rows(1)
    options: dict[str, Any] = {"objective": "softndcg", "restarts": 2, "jobs": 1}
    model = Trees(rounds=8, leaves=7, leaf_rows=20)
    whole = fr.train(model, train, valid, **options)

    def killed(what: str, run: int, runs: int, epoch: Any) -> None:
        assert runs == 3
        if (run, epoch.number) == (2, 4):
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        fr.train(model, train, valid, **options, checkpoint=tmp_path, progress=killed)
    seen = set()
    real = Trees.sprouts

    def counted(self: Trees, *given: Any) -> Any:
        seen.add((self.rate, given[2]))
        return real(self, *given)

    monkeypatch.setattr(Trees, "sprouts", counted)
    again = fr.train(model, train, valid, **options, checkpoint=tmp_path, resume=True)
    assert seen == {(0.1, 0), (again.settings["rate"], 1)}, "what was finished is not grown again"
    assert repr(again.trail) == repr(whole.trail)
    np.testing.assert_array_equal(again.model.score(valid), whole.model.score(valid))
    monkeypatch.setattr(Trees, "sprouts", lambda *_: pytest.fail("all was there"))
    done = fr.train(model, train, valid, **options, checkpoint=tmp_path, resume=True)
    np.testing.assert_array_equal(done.model.score(valid), whole.model.score(valid))
    assert done.tried == whole.tried
    with pytest.raises(fr.InputError, match="of another run"):
        fr.train(model, rows(3), valid, **options, checkpoint=tmp_path, resume=True)


def test_ctrl_c_keeps_the_best_so_far(tmp_path: Path) -> None:
    for seed, name in enumerate(("train", "vali")):
        fr.write_letor(tmp_path / f"{name}.txt", rows(seed))
    arguments = ["train", "train.txt", "--valid", "vali.txt", "--model", "trees", "--epochs", "100000"]
    arguments += ["--set", "patience=100000", "--objective", "softndcg"]
    code = (
        "import sys, fliprank.experiment.growing as growing, fliprank.cli as cli\n"
        "real = growing._Growing._epoch\n"
        "def told(self, number, *rest):\n"
        "    if number == 20: print('growing', file=sys.stderr, flush=True)\n"
        "    return real(self, number, *rest)\n"
        "growing._Growing._epoch = told\n"
        "cli.main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stderr is not None
    assert any(line.startswith("growing") for line in iter(process.stderr.readline, ""))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    told = json.loads((tmp_path / "fit" / "result.json").read_text())
    assert told["interrupted"]
    assert told["settings"]["stopped"] == "interrupted"
    valid = fr.read_letor(tmp_path / "vali.txt")
    assert fr.load_model(tmp_path / "fit" / "model").score(valid).std() > 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "exact"}, "trees has no use for method"),
        ({"polish": True}, "trees has no use for polish"),
        ({"l2": 0.1}, "trees have no setting l2; they have epochs, leaves, rate, leaf_rows"),
        ({"leaves": 1}, "leaves of trees is a whole number from 2, not 1"),
        ({"rate": 0.0}, "rate of trees is a number above 0"),
        ({"keep": "best"}, "keep of trees is one of measure, objective, last, not 'best'"),
        ({"objective": "lightgbm", "keep": "objective"}, "one of measure, last, not 'objective'"),
        ({"objective": "softndgc"}, "softndcg"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(fr.UsageError, match=said):
        fr.train(fr.Trees(), rows(0), rows(1), **options)


def test_rows_that_can_t_be_split_are_an_error_that_says_so() -> None:
    with pytest.raises(fr.InputError, match=r"nothing to split.*there are 30 rows; `leaf_rows`"):
        fr.train(fr.Trees(), rows(0, 2), rows(1), objective="mse")
    labels = rows(0).labels
    flat = fr.Candidates.of(labels, group=[15] * 40, features=np.ones((len(labels), 2)))
    for objective in ("mse", "lightgbm"):
        with pytest.raises(fr.InputError, match="nothing to split"):
            fr.train(fr.Trees(), flat, flat, objective=objective)


def test_missing_features_are_learned_from() -> None:
    train, valid = rows(0), rows(1)
    known = []
    for part in (train, valid):
        x = part.features.copy()
        x[np.nan_to_num(part.labels) > 0, 3] = np.nan  # that it is missing says all
        known.append(fr.Candidates.of(part.labels, group=part.sizes, features=x))
    perfect = fr.parse_measure("AP").value(valid.labels, valid)
    assert fr.train(fr.Trees(**GIVEN), *known, epochs=20, restarts=1, measure="AP").best.valid == perfect
    with pytest.raises(fr.InputError, match="not finite"):
        fr.train(fr.Linear(), *known)
