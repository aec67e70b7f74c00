"""What is left of a training: a folder with the model, its figures for people and programs, and the trail of epochs.

OUT/result.json     {"train"|"valid"|"test": {MEASURE: mean}, "folds": [...], "settings": {...}}
OUT/model/          the model (with folds: OUT/Fold1/model, ...)
OUT/trail.csv       every epoch of the chosen run
OUT/checkpoint/     where `--resume` goes on from
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass, fields
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath, atomic_write, check_writable
from fliprank.errors import InputError
from fliprank.experiment.telescope import telescope
from fliprank.experiment.training import Fold, Watch, train
from fliprank.measures import parse_measure
from fliprank.models import Model
from fliprank.models.cascade import Cascade
from fliprank.optimize.fit import Epoch, Fit

__all__ = ["Figures", "Result", "check_folder", "train_and_write", "write_json"]

OURS = ("result.json", "model", "trail.csv", "checkpoint", "Fold*", "*.run", "documents-*.index", ".*.part")
"""What fliprank leaves in a folder; `.part`: what a kill -9 left of a file that was being written."""


Figures = dict[str, dict[str, float]]
"""{"train"|"valid"|"test": {measure: mean}}"""


@dataclass(frozen=True, eq=False)
class Result:
    """The figures of each fold (one without a name where there are no folds), and their mean."""

    folds: dict[str, Figures]
    settings: dict[str, Any]

    def means(self) -> Figures:
        """The mean over folds of each figure."""
        first, *_ = self.folds.values()
        return {
            part: {m: math.fsum(fold[part][m] for fold in self.folds.values()) / len(self.folds) for m in measures}
            for part, measures in first.items()
        }


def train_and_write(
    model: Model,
    sets: Iterable[Fold],
    folder: Path,
    progress: Callable[[str], AbstractContextManager[Watch]],
    **options: Any,
) -> Result:
    """Train on each of `sets`, write models and figures to `folder`; `options` are those of `train`."""
    reported = list(dict.fromkeys([str(parse_measure(options["measure"])), "AP", "RR"]))
    folds: dict[str, Figures] = {}
    details: list[dict[str, Any]] = []
    for fold in sets:
        place = folder / fold.name
        fit = _fit(model, fold, place / "checkpoint", progress, options)
        _write_fit(place, fit)
        parts = {"train": fold.train, "valid": fold.valid, "test": fold.test}
        told = {part: _figures(fit.model, rows, reported) for part, rows in parts.items() if rows is not None}
        chosen = {**fit.settings, "epoch": fit.best.number, "stopped": fit.stopped}
        folds[fold.name] = told
        details.append({"fold": fold.name, **told, "settings": chosen})
        if fit.stopped == "interrupted":
            break
    several = len(folds) > 1 or "" not in folds
    asked = {"model": model.kind, **{name: value for name, value in options.items() if name != "resume"}}
    result = Result(folds, asked if several else {**asked, **details[0]["settings"]})
    written = {**result.means(), "folds": details if several else [], "settings": result.settings}
    write_json(folder / "result.json", written)
    return result


def _fit(
    model: Model,
    fold: Fold,
    checkpoint: Path,
    progress: Callable[[str], AbstractContextManager[Watch]],
    options: dict[str, Any],
) -> Fit:
    """One fold's; of a cascade stage by stage."""
    if isinstance(model, Cascade):

        def by_stage(stage: str) -> AbstractContextManager[Watch]:
            return progress(f"{fold.name} {stage}".strip())

        return telescope(model, fold.train, fold.valid, checkpoint=checkpoint, progress=by_stage, **options)
    with progress(fold.name) as watch:
        return train(model, fold.train, fold.valid, checkpoint=checkpoint, watch=watch, **options)


def _figures(model: Model, rows: Candidates, measures: Iterable[str]) -> dict[str, float]:
    scores = model.score(rows)
    return {str(m): m.value(scores, rows) for m in map(parse_measure, measures)}


def check_folder(folder: StrPath) -> Path:
    """A folder to write results to: new, empty, or one of ours; never someone else's."""
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise InputError("is a file, not a folder for results", path=path)
    check_writable(path, folder=True)
    found = sorted(path.iterdir()) if path.exists() else []
    strangers = [each.name for each in found if not any(fnmatch(each.name, ours) for ours in OURS)]
    if strangers and not (path / "result.json").exists():
        raise InputError(f"holds other things ({strangers[0]}); give a new or empty folder", path=path)
    return path


def _write_fit(folder: Path, fit: Fit) -> None:
    """The model and its trail."""
    fit.model.save(folder / "model")
    with atomic_write(folder / "trail.csv") as file:
        lines = [",".join(field.name for field in fields(Epoch))]
        lines += [",".join(map(repr, astuple(epoch))) for epoch in fit.trail]
        file.write(("\n".join(lines) + "\n").encode())


def write_json(path: Path, told: Mapping[str, Any]) -> None:
    """Pretty JSON, with null for what is not a number."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(key): plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    with atomic_write(path) as file:
        file.write((json.dumps(plain(told), indent=2) + "\n").encode())
