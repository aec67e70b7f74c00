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
    assert result["test"]["AP"] == pytest.approx(fr.evaluate(model, test, "AP").mean("model", "AP"))
    ranked = CliRunner().invoke(
        app, ["rank", str(tmp_path / "fit"), str(tmp_path / "test"), "--out", str(tmp_path / "run")]
    )
    assert ranked.exit_code == 0
    again = CliRunner().invoke(app, [*command, "--resume"], catch_exceptions=False)
    assert again.exit_code == 0
    np.testing.assert_array_equal(fr.load_model(tmp_path / "fit" / "model").score(test), model.score(test))


@pytest.mark.parametrize(
    ("option", "said"),
    [
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
