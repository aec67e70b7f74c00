"""The folder that a fit is written to, whichever command made it.

OUT/model/         the model: of a tuning, what the verdict says (the tuned function or the defaults)
OUT/tuned-model/   of a tuning, the tuned function, whatever the verdict
OUT/result.json    figures, settings, what was tried (see `results.py`)
OUT/report.html    the same for people, to open in a browser (see `report/page/`)
OUT/trail.csv      every epoch of the fit, with its parameters where there are at most 1,000
OUT/*.run          rankings, where documents have names
OUT/checkpoint/    where `--resume` goes on from
OUT/Fold1/...      the same for each fold, where there are folds
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import astuple, fields
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from fliprank.data.files import StrPath, atomic_write, check_writable
from fliprank.errors import InputError
from fliprank.experiment.folder_lock import LOCK
from fliprank.optimize.fit import Epoch, Fit

__all__ = ["check_folder", "json_text", "retire_result", "write_fit", "write_json"]

OURS = (
    "result.json",
    "report.html",
    "model",
    "tuned-model",
    "trail.csv",
    "checkpoint",
    "Fold*",
    "curve.*",
    "weight.*",
    "to-judge.csv",
    "settings.txt",
    "*.run",
    "documents-*.index",
    ".*.part",
    LOCK,
)
"""What fliprank leaves in a folder; `.part`: what a kill -9 left of a file that was being written."""


def check_folder(folder: StrPath) -> Path:
    """A folder to write results to: new, empty, or one of ours; never someone else's."""
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise InputError("is a file, not a folder for results", path=path)
    check_writable(path, folder=True)
    found = sorted(path.iterdir()) if path.exists() else []
    strangers = [each.name for each in found if not any(fnmatch(each.name, ours) for ours in OURS)]
    if (path / "result.json").exists() and not _is_result(path / "result.json"):
        message = "not a result of fliprank's, or a damaged one: not overwritten"
        raise InputError(message, path=path / "result.json", hint="remove it, or give a new or empty folder")
    if strangers and not (path / "result.json").exists():
        raise InputError(f"holds other things ({strangers[0]}); give a new or empty folder", path=path)
    return path


def _is_result(path: Path) -> bool:
    """Whether a result.json is one that we wrote: they all say what they were measured by and how they were made."""
    try:
        content = json.loads(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and {"measure", "settings", "notes"} <= content.keys()


def retire_result(folder: Path) -> None:
    """Remove the figures and the report of an earlier run, before the model that they are about is replaced.

    A run that is killed then leaves a model without figures, never a model beside the figures of another.
    """
    for name in ("result.json", "report.html"):
        (folder / name).unlink(missing_ok=True)


def write_fit(folder: Path, fit: Fit, name: str = "model") -> None:
    """The model and its trail."""
    folder.mkdir(parents=True, exist_ok=True)
    fit.model.save(folder / name)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    known = fit.path is not None and len(fit.path) == len(fit.trail)
    names = fit.model.params.free_names if known else ()
    writer.writerow([*(field.name for field in fields(Epoch)), *names])
    for number, epoch in enumerate(fit.trail):
        values = fit.path[number].tolist() if known and fit.path is not None else []
        writer.writerow([repr(value) for value in (*astuple(epoch), *values)])
    with atomic_write(folder / "trail.csv") as file:
        file.write(text.getvalue().encode())


def json_text(content: Mapping[str, Any], indent: int | None = 2) -> str:
    """JSON, with null for what is not a number."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(key): plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return json.dumps(plain(content), indent=indent)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """The same in a file."""
    with atomic_write(path) as file:
        file.write((json_text(content) + "\n").encode())
