"""A folder that `tune`, `train`, `fuse` or `curve` wrote, as pictures read it: figures, trail, model, rows, runs.

What is in it was written by a program, but anyone may have been there since: what is missing, or is not what we write,
is an error that names the file.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from fliprank.data.candidates import Candidates
from fliprank.data.json_files import read_json
from fliprank.data.readers import read_candidates
from fliprank.errors import InputError
from fliprank.experiment.folder_rows import DEPTH, index_in, read_rows
from fliprank.models import Model, load_model
from fliprank.optimize.fit import Epoch

__all__ = ["ResultFolder", "intact", "number"]

LOST = (KeyError, IndexError, TypeError, ValueError, AttributeError)
"""What happens where a file is not what we write."""


def number(value: Any) -> float:
    """A number of a file; null, which stands for what is not known, is NaN."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


@contextmanager
def intact(path: Path) -> Iterator[None]:
    """Turns what happens where a file is not what we write into an error that names it."""
    try:
        yield
    except InputError:
        raise
    except LOST as error:
        told = f"{type(error).__name__}: {error}"
        raise InputError(f"not a result of fliprank's, or a damaged one: {told}", path=path) from error


@dataclass(frozen=True, eq=False)
class ResultFolder:
    """The folder at `path`. What it has is read when it is asked for."""

    path: Path

    def __post_init__(self) -> None:
        if not self.path.is_dir():
            hint = "give the folder that tune, train, fuse or curve wrote"
            raise InputError("is no folder" if self.path.exists() else "no such folder", path=self.path, hint=hint)

    @cached_property
    def result(self) -> dict[str, Any]:
        """result.json."""
        return self.json("result.json", "tune, train or fuse")

    def json(self, name: str, command: str) -> dict[str, Any]:
        """A JSON object of the folder, which this command writes."""
        place = self.file(name, command)
        content = read_json(place)
        if not isinstance(content, dict) or not isinstance(content.get("measure"), str):
            raise InputError("not a result of fliprank's, or a damaged one: it names no measure", path=place)
        return content

    def file(self, name: str, command: str) -> Path:
        """A file of the folder, or an error that says who writes it."""
        place = self.path / name
        if not place.is_file():
            raise InputError(f"has no {name}, which `fliprank {command}` writes", path=self.path)
        return place

    def part(self, name: str, why: str) -> Any:
        """A part of result.json that must be there and hold something; `why` says who has it."""
        found = self.result.get(name)
        if not found:
            raise InputError(f"has no {name}: {why}", path=self.path / "result.json")
        return found

    @property
    def measure(self) -> str:
        """The measure that was fitted to."""
        return str(self.result["measure"])

    @property
    def sources(self) -> dict[str, Path]:
        """The files that were fitted to, by what they are."""
        with intact(self.path / "result.json"):
            named = self.result["settings"].get("sources", {})
            return {str(key): Path(value) for key, value in named.items() if isinstance(value, str)}

    @cached_property
    def model(self) -> Model:
        """The fitted model, whatever was adopted."""
        places = [self.path / name for name in ("tuned-model", "model")]
        return load_model(next((place for place in places if place.is_dir()), self.path))

    def rows(self, given: Path | None = None, *, held_out: bool = False) -> Candidates:
        """The rows of a file; without one, those that were fitted to, or with `held_out` the test rows if there are."""
        if given is not None:
            return read_rows(given, self.path)
        sources = self.sources if (self.path / "result.json").exists() else {}
        test = sources.get("test") if held_out else None
        if "rows" in sources:
            return read_candidates(test or sources["rows"])
        if "qrels" in sources:
            qrels = test or sources["qrels"]
            return index_in(self.path).candidates(sources.get("queries", qrels), qrels, depth=DEPTH)
        raise InputError("does not name the rows that were fitted to", path=self.path, hint="give them by --rows")

    def trail(self) -> list[Epoch]:
        """The epochs of trail.csv."""
        place, names = self.file("trail.csv", "train, tune or fuse"), [field.name for field in fields(Epoch)]
        try:
            with open(place, newline="", encoding="utf-8") as lines:
                header, *rows = list(csv.reader(lines)) or [[]]
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"this is no trail of a fit: {error}", path=place) from None
        if header[: len(names)] != names or not rows:
            raise InputError(f"a trail has the columns {', '.join(names)}, and a line per epoch", path=place)
        with intact(place):
            return [Epoch(int(row[0]), *(float(cell) for cell in row[1 : len(names)])) for row in rows]
