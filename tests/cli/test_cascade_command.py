"""`fliprank train --model cascade`: from files to a ranking; what is wrong is said in one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import fliprank as fr
from fliprank.cli import app
from fliprank.errors import UsageError
from fliprank.experiment import cutoffs
from fliprank.experiment.cascade_analysis import after_stages
from fliprank.experiment.stage_costs import Timed
from fliprank.models.cascade import Cascade

COMMON = ["--restarts", "1", "--epochs", "3", "--no-sweep"]


def written(path: Path, seed: int) -> fr.Candidates:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(600, 3)).astype(np.float32)
    labels = np.clip(np.round(x[:, 0] + 0.5 * x[:, 1]), 0, 2)
    rows = fr.Candidates.of(labels, group=[30] * 20, docids=[f"d{i}" for i in range(600)], features=x)
    fr.write_letor(path, rows)
    return rows


def test_a_cascade_is_trained_evaluated_ranked_and_resumed(tmp_path: Path) -> None:
    for seed, part in enumerate(("train", "valid", "test")):
        written(tmp_path / part, seed)
    command = ["train", str(tmp_path / "train"), "--valid", str(tmp_path / "valid"), "--test", str(tmp_path / "test")]
    command += ["--model", "cascade", "--stages", "30,15,10", "--stage-model", "linear,linear,network:2"]
    command += ["--stage-features", "1,2;*;*", "--stage-objective", "ranknet,lambdarank@10,softndcg(sigma=0.3)"]
    command += ["--out", str(tmp_path / "fit"), *COMMON]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0
    result = json.loads((tmp_path / "fit" / "result.json").read_text())
    assert [stage["size"] for stage in result["settings"]["stages"]] == [30, 15, 10]
    assert [stage["objective"] for stage in result["settings"]["stages"]][:2] == ["ranknet", "lambdarank@10"]
    model = fr.load_model(tmp_path / "fit" / "model")
    assert isinstance(model, Cascade)
    assert [stage.kind for stage in model.stages] == ["feature_subset", "linear", "network"]
    test = fr.read_candidates(tmp_path / "test")
    table = after_stages(model, test)
    assert [stage["on"] for stage in result["stages"]] == ["test"] * 3
    for told, row in zip(result["stages"], table, strict=True):
        assert (told["size"], told["value"], told["step"]) == (row.size, pytest.approx(row.value), row.step)
        assert (told["interval"], told["step_p"], told["lost"]) == (list(row.interval), row.step_p, row.lost)
        assert f"{row.value:.4f}" in done.output
        assert f"{row.interval[0]:.4f} to {row.interval[1]:.4f}" in done.output
        assert row.stage == 1 or f"{row.step:+.4f}" in done.output
        assert f"{row.lost:.1%}" in done.output
    assert result["test"]["AP"] == pytest.approx(fr.evaluate(model, test, "AP").mean("model", "AP"))
    ranked = CliRunner().invoke(
        app, ["rank", str(tmp_path / "fit"), str(tmp_path / "test"), "--out", str(tmp_path / "run")]
    )
    assert ranked.exit_code == 0
    again = CliRunner().invoke(app, [*command, "--resume"], catch_exceptions=False)
    assert again.exit_code == 0
    np.testing.assert_array_equal(fr.load_model(tmp_path / "fit" / "model").score(test), model.score(test))


def test_the_gain_of_a_geometric_mean_says_that_it_is_of_logarithms(tmp_path: Path) -> None:
    written(tmp_path / "train", 0)
    command = ["train", str(tmp_path / "train"), "--model", "cascade", "--stages", "30,10", *COMMON]
    for measure, said in (("GMAP", True), ("AP", False)):
        done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / measure), "-m", measure])
        assert done.exit_code == 0
        assert ("of logarithms" in done.output) is said
        stages = json.loads((tmp_path / measure / "result.json").read_text())["stages"]
        assert all(0 < stage["interval"][0] < stage["value"] < stage["interval"][1] for stage in stages)
        assert {stage["on"] for stage in stages} == {"train"}


def choosing(tmp_path: Path, *options: str) -> list[str]:
    for seed, part in enumerate(("train", "valid", "test")):
        written(tmp_path / part, seed)
    command = ["train", str(tmp_path / "train"), "--valid", str(tmp_path / "valid"), "--test", str(tmp_path / "test")]
    command += ["--model", "cascade", "--stages", "20,15,10", "--stage-model", "linear,linear,network:2"]
    command += ["--stage-objective", "ranknet,mse,lambdarank@10", "--stage-features", "1;*;*"]
    return [*command, "--out", str(tmp_path / "fit"), *COMMON, "--choose-cutoffs", *options]


def test_cutoffs_are_chosen_within_a_budget_applied_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutoffs, "time_stages", lambda *_: Timed((1.0, 2.0, 4.0)))
    prices = tmp_path / "prices"
    prices.write_text("*=0.5\n")
    command = choosing(tmp_path, "--budget", "70", "--feature-costs", str(prices))
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0
    result = json.loads((tmp_path / "fit" / "result.json").read_text())
    found, model = result["cutoffs"], fr.load_model(tmp_path / "fit" / "model")
    assert isinstance(model, Cascade)
    assert list(model.sizes) == found["chosen"]["sizes"]
    assert found["chosen"]["cost"] <= 70 < max(choice["cost"] for choice in found["frontier"])
    assert found["chosen"] in found["frontier"]
    assert found["cost_per_document"][0] == 1.5
    assert found["on"] == "valid"
    assert found["unit"] == "microseconds, per query"
    assert "computing features, as given for 3 of 3" in found["cost_includes"]
    assert found["cost_includes"] in " ".join(done.output.split())
    assert "chosen" in done.output
    kept = found["chosen"]["stages"]
    assert [stage["size"] for stage in result["stages"]] == found["chosen"]["sizes"]
    # The stages are trained again from the start, with their own options, as if these sizes had been given.
    words = [["linear", "linear", "network:2"], ["ranknet", "mse", "lambdarank@10"], ["1", "*", "*"]]
    models, objectives, features = ([each[s] for s in kept] for each in words)
    plain = [*command[: command.index("--stages")], "--stages", ",".join(map(str, model.sizes))]
    plain += ["--stage-model", ",".join(models), "--stage-objective", ",".join(objectives)]
    plain += ["--stage-features", ";".join(features), "--out", str(tmp_path / "plain"), *COMMON]
    assert CliRunner().invoke(app, plain, catch_exceptions=False).exit_code == 0
    again = fr.load_model(tmp_path / "plain" / "model")
    test = fr.read_candidates(tmp_path / "test")
    np.testing.assert_array_equal(again.score(test), model.score(test))


def test_a_resumed_choice_of_cutoffs_is_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutoffs, "time_stages", lambda *_: Timed((1.0, 2.0, 4.0)))
    command = choosing(tmp_path, "--budget", "70")
    assert CliRunner().invoke(app, command, catch_exceptions=False).exit_code == 0
    first = json.loads((tmp_path / "fit" / "result.json").read_text())
    monkeypatch.setattr(cutoffs, "time_stages", lambda *_: pytest.fail("it was timed before"))
    assert CliRunner().invoke(app, [*command, "--resume"], catch_exceptions=False).exit_code == 0
    assert json.loads((tmp_path / "fit" / "result.json").read_text())["cutoffs"] == first["cutoffs"]


def test_a_budget_that_is_too_small_says_what_the_cheapest_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutoffs, "time_stages", lambda *_: Timed((1.0, 2.0, 4.0)))
    with pytest.raises(UsageError, match="the cheapest cascade costs 30 microseconds per query, over the budget of 5"):
        CliRunner().invoke(app, choosing(tmp_path, "--budget", "5"), catch_exceptions=False)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--budget", "5"], "go with --choose-cutoffs"),
        (["--feature-costs", "5"], "go with --choose-cutoffs"),
        (["--model", "linear", "--choose-cutoffs"], "goes with --model cascade"),
        (["--choose-cutoffs", "--feature-costs", "much"], "expected microseconds, or a file"),
        (["--stages", "10,30"], "fewer documents than the last"),
        (["--stages", "30,x"], "not a number of documents"),
        (["--stage-model", "forest"], "unknown model 'forest'"),
        (["--stages", "30,10", "--stage-objective", "ranknet,ranknet,ranknet"], "3 for 2 stages"),
    ],
)
def test_a_wrong_stage_is_said(option: list[str], said: str, tmp_path: Path) -> None:
    written(tmp_path / "train", 0)
    command = ["train", str(tmp_path / "train"), "--model", "cascade", "--out", str(tmp_path / "fit"), *COMMON, *option]
    with pytest.raises(UsageError, match=said):
        CliRunner().invoke(app, command, catch_exceptions=False)
