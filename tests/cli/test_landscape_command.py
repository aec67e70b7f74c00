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
    assert (first["from"], first["measure"], first["at_least"]) == (None, "AP", False)  # JSON knows no infinity
    assert "<svg" in Path(f"{out}.svg").read_text()


@pytest.mark.parametrize("command", ["train", "tune"])
def test_the_folder_of_a_fit_will_do_as_well_as_that_of_its_model(folder: Path, tmp_path: Path, command: str) -> None:
    options = {"train": ["--valid", folder / "test.txt"], "tune": ["--no-cross-validate", "--no-curve"]}[command]
    fitted = RUN.invoke(
        app, [command, *map(str, [folder / "train.txt", *options, "--set", "epochs=2", "--out", tmp_path / "out"])]
    )
    assert fitted.exit_code == 0, fitted.output
    told = []
    for model in (tmp_path / "out", tmp_path / "out" / "model"):
        data = tmp_path / f"{model.name}.csv"
        does("trajectory", model, folder / "train.txt", "-p", "w.1", "-m", "AP", "-o", data)
        told.append(data.read_text())
    assert told[0] == told[1]
    assert "epoch" in does("trajectory", tmp_path / "out", folder / "train.txt", "--trail", tmp_path / "out")


def test_a_net_is_bracketed_between_the_ends_given(folder: Path) -> None:
    out = folder / "net.csv"
    ends = ("--from", -1, "--to", 1.5, "-m", "AP", "-o", out)
    told = does("trajectory", folder / "net", folder / "train.txt", "-p", "w32.1", *ends)
    assert "lower bounds" in told
    model, rows = fr.load_model(folder / "net"), fr.read_letor(folder / "train.txt")
    now = model.params["w32.1"]
    path = landscape.trajectory(model, rows, "w32.1", "AP", -1 - now, 1.5 - now)
    assert f"at least {len(path.local_maxima())}" in told
    assert f"at least {len(path.breaks)}" in told
    with open(out) as file:
        lines = list(csv.DictReader(file))
    assert {line["at_least"] for line in lines} == {"True"}
    assert sum(line["optimum"] == "local" for line in lines) == len(path.local_maxima())
    assert sum(line["optimum"] == "cut off" for line in lines) == len(path.cut_off())
    assert float(lines[0]["from"]) == pytest.approx(-1)
    assert float(lines[-1]["to"]) == pytest.approx(1.5)


def test_a_direction_of_several_parameters(folder: Path) -> None:
    out = folder / "direction.csv"
    told = does(
        *("trajectory", folder / "fit", folder / "train.txt", "--direction", "w.1=1, w.2=-0.5", "-m", "AP"),
        *("--from", -1, "--to", 2, "-o", out, "-o", f"{out}.svg"),
    )
    model, rows = fr.load_model(folder / "fit" / "model"), fr.read_letor(folder / "train.txt")
    path = landscape.trajectory(model, rows, {"w.1": 1, "w.2": -0.5}, "AP", -1, 2)
    assert f"{path.maximum.value:.4f}" in told
    with open(out) as file:
        lines = list(csv.DictReader(file))
    assert [float(line["value"]) for line in lines] == path.values.tolist()
    assert (float(lines[0]["from"]), float(lines[-1]["to"])) == (-1, 2)
    assert f"local optima: {len(path.local_maxima())}" in Path(f"{out}.svg").read_text()


def test_the_line_between_two_models(folder: Path) -> None:
    model, rows = fr.load_model(folder / "fit" / "model"), fr.read_letor(folder / "train.txt")
    other = model.at(model.params.values + np.array([0, 1.0, -2.0, 0.5]))
    other.save(folder / "other")
    out = folder / "between.json"
    told = does(
        *("trajectory", folder / "fit", folder / "train.txt", "--to-model", folder / "other", "-m", "AP"),
        *("--to", 1.5, "-o", out),
    )
    records = json.loads(out.read_text())
    assert (records[0]["from"], records[-1]["to"]) == (0, 1.5)
    ap = fr.evaluate(other, rows, "AP").means().popitem()[1]["AP"]
    (there,) = [each for each in records if each["from"] < 1 <= each["to"]]
    assert there["value"] == pytest.approx(ap)
    assert "(x = 1)" in told


def test_the_flips_of_each_epoch_of_a_fit(folder: Path) -> None:
    model, rows = fr.load_model(folder / "fit" / "model"), fr.read_letor(folder / "train.txt")
    names, rng = model.params.free_names, np.random.default_rng(0)
    steps = np.cumsum(rng.normal(0, 0.2, (4, len(names))), axis=0) + model.params.free_values
    steps[2] = steps[1]  # an epoch that moves nothing
    head = ["number", "objective", "train", "valid", "valid_objective", "rate", *names]
    with open(folder / "fit" / "trail.csv", "w", newline="") as file:
        csv.writer(file).writerows([head, *([i, 0.1, 0.2, "nan", "nan", "nan", *row] for i, row in enumerate(steps))])
    out = folder / "trail-flips.csv"
    told = does("trajectory", folder / "fit", folder / "train.txt", "--trail", folder / "fit", "-m", "AP", "-o", out)
    legs = landscape.along_trail(model, steps, rows, "AP")
    with open(out) as file:
        records = list(csv.DictReader(file))
    for leg in legs:
        own = [record for record in records if int(record["epoch"]) == leg.number]
        assert {float(record["after"]) for record in own} == {leg.after}
        assert f"{leg.after:.4f}" in told
        assert [record["up"] for record in own] == ([flip.up for flip in leg.flips] or [""])
    assert "Flips that changed the mean most" in told
    assert "--trail goes" in failing("trajectory", folder / "fit", folder / "train.txt", "--trail", "x", "--to", 1)


def failing(*arguments: object) -> str:
    done = RUN.invoke(app, ["landscape", *map(str, arguments)])
    assert isinstance(done.exception, UsageError)
    return str(done.exception)


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
        (["trajectory", "fit", "train.txt", "-p", "w.1", "--direction", "w.1=1"], "give one of"),
        (["trajectory", "fit", "train.txt", "--direction", "w.1"], "name=rate"),
        (["trajectory", "fit", "train.txt", "--direction", "w.1=1,w.8=2"], "no free parameter is called 'w.8'"),
        (["trajectory", "fit", "train.txt", "--to-model", "net"], "one structure"),
        (["trajectory", "fit", "train.txt", "--to-model", "fit"], "no line between"),
        (["surface", "fit", "train.txt", "-p", "w.1"], "give two with -p"),
        (["surface", "fit", "train.txt", "-p", "w.1", "-p", "w.2", "--range", "w.1=a:b"], "name=low:high"),
        (["surface", "fit", "train.txt", "-p", "w.1", "-p", "w.2", "--range", "w.3=0:1"], "one of w.1 and w.2"),
        (["flips", "fit", "train.txt", "-m", "nDGC"], "did you mean"),
        (["flips", "fit", "train.txt", "-o", "flips.svg"], "must end in .csv, .json"),
    ],
)
def test_what_is_given_wrongly_is_said_kindly(folder: Path, arguments: list[str], words: str) -> None:
    known = [str(folder / word) if word in ("fit", "net", "train.txt") else word for word in arguments]
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
