"""A toy model, measure, objective, method and export target, each one file and one line, through the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fliprank as fr

pytestmark = pytest.mark.long

TOYS = {
    "toy_model": '''
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from fliprank.models.base import Model, register
from fliprank.models.parameters import Parameters

@register
@dataclass(frozen=True, eq=False)
class FirstTwo(Model):
    """The first feature, and a times the second."""
    kind: ClassVar[str] = "first-two"
    needs: ClassVar[frozenset[str]] = frozenset({"features"})
    summary: ClassVar[str] = "a toy of two features"
    params: Parameters = Parameters.of({"a": (0.0, -5.0, 5.0)})
    def score(self, candidates):
        return candidates.features[:, 0] + self.params.values[0] * candidates.features[:, 1].astype(float)
    def pullback(self, candidates, dscores):
        return np.array([np.asarray(dscores) @ candidates.features[:, 1]])
    def structure(self):
        return {}
    @classmethod
    def restore(cls, structure):
        return cls()
''',
    "toy_measure": '''
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from fliprank.measures.base import RankMeasure, register
from fliprank.measures.law import Law, by_rank

@register()
@dataclass(frozen=True)
class TopLabel(RankMeasure):
    """The label of the first document."""
    name: ClassVar[str] = "TopLabel"
    cutoff: int | None = 1
    def law(self, candidates):
        judged = candidates.judgements
        return Law(np.maximum(judged.label, 0.0), by_rank(candidates, 1, np.ones_like), judged.total(judged.ideal > 0))
''',
    "toy_objective": '''
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from fliprank.objectives.base import Objective, register

@register
@dataclass(frozen=True, eq=False)
class Covariance(Objective):
    """The mean of label times score, less half the squared score."""
    name: ClassVar[str] = "covariance"
    maximise: ClassVar[bool] = True
    weight: float = 1.0
    def evaluate(self, scores, candidates, share):
        labels, owner = np.nan_to_num(candidates.labels), candidates.query_of_rows()
        worth = self.weight * (labels * scores - 0.5 * scores**2)
        gradient = self.weight * (labels - scores) * share[owner]
        return np.bincount(owner, worth, candidates.queries), gradient
''',
    "toy_method": '''
from dataclasses import dataclass
from typing import ClassVar
from fliprank.optimize.methods import Method, register

@register("coin")
@dataclass(frozen=True)
class Coin(Method):
    """A random step each epoch, kept if the measure gains."""
    direct: ClassVar[bool] = True
    own_stop: ClassVar[bool] = True
    epochs: int = 10
    size: float = 0.5
    def run(self, problem, recorder, rng):
        best = problem.params.free_values
        top = problem.measure_at(best)
        recorder.epoch(best, top)
        for _ in range(self.epochs):
            tried = best + self.size * rng.normal(size=len(best))
            if problem.measure_at(tried) > top:
                best, top = tried, problem.measure_at(tried)
            if not recorder.epoch(best, top):
                return
''',
    "toy_target": '''
from fliprank.export import Export, target

@target("toy-engine", "toys of two features", lambda model: None if model.kind == "first-two" else "")
def write(model, about):
    """The one parameter."""
    return Export({"toy.txt": f"a = {model.params['a']}"}, ("Paste toy.txt.",), lost=("All else.",))
''',
}


def fliprank_does(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process that has imported the toys, and nothing else."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import {', '.join(TOYS)}; "
    code += "from fliprank.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("toys")
    for name, text in TOYS.items():
        (place / f"{name}.py").write_text(text)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    labels = np.clip(np.round(x[:, 0] - x[:, 1]), 0, 2)
    fr.write_letor(place / "train.txt", fr.Candidates.of(labels, group=[10] * 30, features=x))
    return place


def test_help_and_errors_list_what_was_registered(folder: Path) -> None:
    shown = fliprank_does(folder, "train", "--help").stdout
    for name in ("first-two", "TopLabel", "covariance", "coin"):
        assert name in shown
    for option, wrong in (("--model", "first-tow"), ("--objective", "covarianc"), ("--method", "coni")):
        done = fliprank_does(folder, "train", str(folder / "train.txt"), option, wrong, "--out", str(folder / "wrong"))
        assert done.returncode == 2
        assert "did you mean" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    done = fliprank_does(folder, "evaluate", str(folder / "train.txt"), "x", "-m", "TopLable")
    assert "did you mean TopLabel" in done.stderr


@pytest.mark.parametrize("command", ["train", "tune"])
@pytest.mark.parametrize(
    "given",
    [
        ["--model", "first-two", "--method", "coin", "--measure", "TopLabel"],
        ["--model", "first-two", "--objective", "covariance(weight=2.0)", "--method", "lbfgs"],
        ["--model", "linear", "--objective", "covariance", "--method", "adam", "--epochs", "3"],
        ["--model", "first-two", "--objective", "ranknet", "--method", "taylor2006", "--epochs", "2"],
        ["--model", "first-two", "--method", "exact", "--epochs", "2", "--select", "TopLabel"],
    ],
    ids=lambda given: "-".join(given[1::2]),
)
def test_toys_are_driven_by_both_commands(folder: Path, tmp_path: Path, command: str, given: list[str]) -> None:
    more = ["--folds", "2", "--no-cross-validate"] if command == "tune" else []
    done = fliprank_does(folder, command, str(folder / "train.txt"), *given, *more, "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "out" / "result.json").read_text())
    assert told["train"][told["measure"]] > 0.5
    if "first-two" in given:
        assert told["params"]["fitted"]["a"] < -0.2  # labels fall with the second feature


def test_a_toy_engine_takes_the_toy_model_and_no_other(folder: Path, tmp_path: Path) -> None:
    train = ["train", str(folder / "train.txt"), "--method", "coin", "--measure", "TopLabel", "--model", "first-two"]
    assert fliprank_does(folder, *train, "--out", str(tmp_path / "fit")).returncode == 0
    export = ["--to", "toy-engine", "--out", str(tmp_path / "out")]
    assert fliprank_does(folder, "export", str(tmp_path / "fit"), *export).returncode == 0
    assert (tmp_path / "out" / "toy.txt").read_text().startswith("a = -")
    assert "- All else." in (tmp_path / "out" / "README.md").read_text()
    assert "toys of two features" in fliprank_does(folder, "export", "--help").stdout
    done = fliprank_does(folder, "export", str(tmp_path / "fit"), "--to", "onnx", "--out", str(tmp_path / "x"))
    assert "a first-two model is no sum of linear models" in done.stderr
    assert "targets that can: toy-engine" in done.stderr
