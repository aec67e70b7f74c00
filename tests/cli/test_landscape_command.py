"""`fliprank landscape` as a person uses it: a trained model, rows, pictures and data; errors that help."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import fliprank as fr
from fliprank import landscape
from fliprank.cli import app
from fliprank.errors import UsageError
from fliprank.models import Linear, Network

RUN = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a user has: a trained linear model, a net, training and test rows."""
    path = tmp_path_factory.mktemp("landscape")
    rng = np.random.default_rng(0)
    for name in ("train", "test"):
        features = rng.normal(size=(80, 3)).round(4)
        labels = (features[:, 0] + rng.normal(size=80) > 0.5).astype(int)
        names = [f"d[{i}]" for i in range(80)]
        rows = fr.Candidates.of(labels, group=[20] * 4, features=features, docids=names)
        fr.write_letor(path / f"{name}.txt", rows)
    train = fr.read_letor(path / "train.txt")
    Linear().prepared(train, 0).save(path / "fit" / "model")
    Network(hidden=2).prepared(train, 0).save(path / "net")
    return path


def does(*arguments: object, code: int = 0) -> str:
    done = RUN.invoke(app, ["landscape", *map(str, arguments)], catch_exceptions=code == 0)
    assert done.exit_code == code, done.output + repr(done.exception)
    return done.output


def test_the_trajectory_is_that_of_the_library(folder: Path) -> None:
    out = folder / "path"
    told = does(
        *("trajectory", folder / "fit", folder / "train.txt", "-p", "w.1", "-m", "AP", "-m", "nDCG@5"),
        *("-o", f"{out}.svg", "-o", f"{out}.csv", "-o", f"{out}.json"),
    )
    model, rows = fr.load_model(folder / "fit" / "model"), fr.read_letor(folder / "train.txt")
    path = landscape.trajectory(model, rows, "w.1", "AP")
    assert f"{path.maximum.value:.4f}" in told
    assert "Steps are exact" in told
    with open(f"{out}.csv") as file:
        lines = [line for line in csv.DictReader(file) if line["measure"] == "AP"]
    assert [float(line["value"]) for line in lines] == path.values.tolist()
    ends = [float(line["to"]) for line in lines[:-1]]
    np.testing.assert_allclose(ends, path.parameter(path.breaks))
    first = json.loads(Path(f"{out}.json").read_text())[0]
    assert (first["from"], first["measure"]) == (None, "AP")  # JSON knows no infinity
    assert "<svg" in Path(f"{out}.svg").read_text()


def test_a_net_is_bracketed_between_the_ends_given(folder: Path) -> None:
    out = folder / "net.csv"
    ends = ("--from", -1, "--to", 1.5, "-m", "AP", "-o", out)
    told = does("trajectory", folder / "net", folder / "train.txt", "-p", "w32.1", *ends)
    assert "known to" in told
    with open(out) as file:
        lines = list(csv.DictReader(file))
    assert float(lines[0]["from"]) == pytest.approx(-1)
    assert float(lines[-1]["to"]) == pytest.approx(1.5)


def test_flips_are_shown_with_their_documents(folder: Path) -> None:
    out = folder / "flips.json"
    told = does("flips", folder / "fit", folder / "train.txt", "-m", "AP", "--nearest", 5, "--top", 3, "-o", out)
    model, rows = fr.load_model(folder / "fit" / "model"), fr.read_letor(folder / "train.txt")
    expected = landscape.flip_gains(model, rows, None, "AP", nearest=5)
    assert json.loads(out.read_text()) == [row._asdict() for row in expected]
    best = next(row for row in expected if row.gain > 0)
    assert best.up in told
    assert f"{best.total:+.5f}" in told
    assert "of the 30 nearest flips are good" in told


def test_surfaces_side_by_side(folder: Path) -> None:
    out = folder / "surface"
    told = does(
        *("surface", folder / "fit", folder / "train.txt", "--test", folder / "test.txt", "-p", "w.1", "-p", "w.2"),
        *("--range", "w.1=0:1", "--points", 5, "-m", "AP", "-o", f"{out}.csv", "-o", f"{out}.svg"),
    )
    assert "test rows, 4 queries" in told
    with open(f"{out}.csv") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 3 * 25
    assert [(line["set"], line["of"]) for line in lines[::25]] == [
        ("training rows", "ranknet"),
        ("training rows", "AP"),
        ("test rows", "AP"),
    ]
    model = fr.load_model(folder / "fit" / "model")
    rows = fr.read_letor(folder / "test.txt")
    last = lines[-1]
    there = model.at(model.params.replace({"w.1": float(last["w.1"]), "w.2": float(last["w.2"])}))
    assert float(last["w.1"]) == 1.0
    assert float(last["value"]) == pytest.approx(fr.evaluate(there, rows, "AP").means().popitem()[1]["AP"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trajectory", "fit", "train.txt"], "along which parameter"),
        (["trajectory", "fit", "train.txt", "-p", "w.9"], "no free parameter is called 'w.9'"),
        (["trajectory", "fit", "train.txt", "-p", "w.1", "-o", "path.pdf"], "must end in"),
        (["surface", "fit", "train.txt", "-p", "w.1"], "give two with -p"),
        (["surface", "fit", "train.txt", "-p", "w.1", "-p", "w.2", "--range", "w.1=a:b"], "name=low:high"),
        (["surface", "fit", "train.txt", "-p", "w.1", "-p", "w.2", "--range", "w.3=0:1"], "one of w.1 and w.2"),
        (["flips", "fit", "train.txt", "-m", "nDGC"], "did you mean"),
        (["flips", "fit", "train.txt", "-o", "flips.svg"], "must end in .csv, .json"),
    ],
)
def test_what_is_given_wrongly_is_said_kindly(folder: Path, arguments: list[str], words: str) -> None:
    known = [str(folder / word) if word in ("fit", "train.txt") else word for word in arguments]
    done = RUN.invoke(app, ["landscape", *known])
    assert isinstance(done.exception, UsageError)
    assert words in str(done.exception)


def test_help_shows_examples() -> None:
    for command in ("surface", "trajectory", "flips"):
        assert f"fliprank landscape {command}" in does(command, "--help")


def test_names_of_parameters_are_never_markup(tmp_path: Path) -> None:
    features = np.random.default_rng(0).normal(size=(4, 2))
    rows = fr.Candidates.of([1, 0, 2, 0], group=[2, 2], features=features, feature_names=["[/]", r"\[/]"])
    fr.write_parquet(tmp_path / "rows.parquet", rows)
    Linear().prepared(rows, 0).save(tmp_path / "model")
    told = does("surface", tmp_path / "model", tmp_path / "rows.parquet", "-p", "w.[/]", "-p", r"w.\[/]", "--points", 3)
    assert "at w.[/]" in told
