"""`fliprank importance` prints what `fr.importance` finds."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import fliprank as fr
from fliprank.cli import app
from fliprank.errors import UsageError


@pytest.fixture
def place(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    rows = fr.Candidates.of(x[:, 0] > 0.5, group=[20] * 20, features=x)
    fr.write_letor(tmp_path / "rows.txt", rows)
    fr.Linear().prepared(rows, 0).at([0, 1.0, 0.5, 0.0]).save(tmp_path / "model")
    return tmp_path


def test_table_json_and_csv_say_the_same_as_python(place: Path) -> None:
    found = fr.importance(fr.load_model(place / "model"), fr.read_letor(place / "rows.txt"), "AP")
    told = ["importance", str(place), str(place / "rows.txt"), "-m", "AP"]
    run = CliRunner()
    table = run.invoke(app, told)
    assert table.exit_code == 0, table.output
    assert f"{found.rows[0].drop:+.4f}" in table.output
    assert json.loads(run.invoke(app, [*told, "--json"]).output) == found.content()
    records = list(csv.DictReader(io.StringIO(run.invoke(app, [*told, "--csv"]).output)))
    assert [(r["name"], float(r["drop"])) for r in records] == [(r.name, r.drop) for r in found.rows]


def test_a_long_table_says_what_it_leaves_out(place: Path) -> None:
    shown = CliRunner().invoke(app, ["importance", str(place), str(place / "rows.txt"), "--top", "1"]).output
    assert "2 more, which are worth less" in shown


def test_two_formats_at_once_are_refused(place: Path) -> None:
    done = CliRunner().invoke(app, ["importance", str(place), str(place / "rows.txt"), "--json", "--csv"])
    assert isinstance(done.exception, UsageError)
