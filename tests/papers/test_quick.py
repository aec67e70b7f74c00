"""Every part of every paper, quick: it runs, says something that can be checked, and writes its folder."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from fliprank.errors import InputError
from fliprank.papers import PARTS, Part
from fliprank.papers.data import find_data
from fliprank.papers.part import VERDICTS
from fliprank.papers.run import part_folder, reproduce
from fliprank.papers.write import read_finding

pytestmark = pytest.mark.long

SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.parametrize("part", PARTS.values(), ids=lambda part: f"{part.paper}-{part.name}")
def test_quick_runs_find_something(part: Part, tmp_path: Path) -> None:
    if part.needs and not SHARED.is_dir():
        pytest.skip(f"needs {', '.join(part.needs)} in {SHARED}")
    try:
        find_data(part.needs, {}, SHARED)
    except InputError as error:
        pytest.skip(str(error))
    assert reproduce(part, tmp_path, quick=True, data_folder=SHARED)
    found = read_finding(part_folder(tmp_path, part))
    assert found is not None
    assert found["verdict"] in VERDICTS
    assert found["rows"]
    assert all(len(row) == len(found["columns"]) for row in found["rows"])
    assert len(set(found["columns"])) == len(found["columns"])
    numbers = [cell for row in found["rows"] for cell in row if isinstance(cell, float | int)]
    assert any(character.isdigit() for row in found["rows"] for cell in row for character in str(cell))
    assert all(math.isfinite(number) for number in numbers)
    assert found["claim"].endswith(".")
    assert found["found"].endswith(".")
    assert "nan" not in found["found"].split()
    assert found["figure"] == (part_folder(tmp_path, part) / "figure.svg").exists()
    if part.name.startswith("figure"):
        assert found["figure"]


@pytest.mark.parametrize(
    "name", [("robertson2007", "figure2"), ("matveeva2006", "table3"), ("matveeva2006", "figure4")]
)
def test_a_part_is_the_same_to_the_last_byte_when_run_again(name: tuple[str, str], tmp_path: Path) -> None:
    for out in "ab":
        assert reproduce(PARTS[name], tmp_path / out, quick=True)
    one, two = (part_folder(tmp_path / out, PARTS[name]) for out in "ab")
    assert {file.name for file in one.iterdir()} == {file.name for file in two.iterdir()}
    for file in one.iterdir():
        assert file.read_bytes() == (two / file.name).read_bytes(), file.name
