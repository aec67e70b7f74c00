"""Along the trail of a fit, epoch by epoch: which flips an optimiser's steps made (Robertson & Zaragoza 2007, 1 and 3).

"In practical optimization trajectories are not smooth - they normally involve a series of discrete steps": each step is
taken as the straight line from the parameters of one epoch to those of the next.

>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[5, 0.3], [9, 0.1], [4, 0.2]], docids=["a", "b", "c"])
>>> trail = along_trail(Linear().prepared(rows, 0), [[0, 1, 0.5], [0, 1, 1], [0, 1, 1]], rows, "RR")
>>> [(leg.number, leg.before, leg.after, len(leg.flips)) for leg in trail]
[(1, 0.5, 1.0, 1), (2, 1.0, 1.0, 0)]
>>> trail[0].flips[0].up, trail[0].flips[0].down, trail[0].flips[0].gain
('a', 'b', 0.5)
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import InputError, UsageError
from fliprank.landscape.model_trajectory import ModelTrajectory, trajectory
from fliprank.landscape.step_flips import Flip
from fliprank.measures import Measure, parse_measure
from fliprank.models.base import Model
from fliprank.models.parameters import Parameters

__all__ = ["Leg", "Trail", "along_trail", "read_trail"]

COLUMNS = ("number", "objective", "train", "valid", "valid_objective", "rate")
"""Columns of trail.csv before those of the parameters."""

RESOLUTION = 1 / 32
"""The width of the cells in which flips are looked for where scores are not linear, as a part of an epoch's step."""


@dataclass(frozen=True, eq=False)
class Leg:
    """The step of epoch `number`: the measure before and after it, and the line between; None if nothing moved.

    Where scores tie before or after the step, the tie rule has its part in the measure there, but not in the flips:
    `tied` is what it adds to the change.
    """

    number: int
    before: float
    after: float
    path: ModelTrajectory | None

    @property
    def flips(self) -> Sequence[Flip]:
        """The flips on the way to which the measure responds, those that gain most first; x goes from 0 to 1."""
        return self.path.flips if self.path is not None else ()

    @property
    def good(self) -> int:
        """How many flips on the way gained."""
        return int(np.count_nonzero(self.path.flips.gain > 0)) if self.path is not None else 0

    @property
    def bad(self) -> int:
        """How many flips on the way lost."""
        return len(self.flips) - self.good

    @property
    def tied(self) -> float:
        """The part of the change that is due to how ties before and after the step are broken."""
        along = 0.0 if self.path is None else float(self.path.values[-1] - self.path.values[0])
        return self.after - self.before - along


class Trail(NamedTuple):
    """The free parameters after each epoch, one row per epoch, with the epochs' numbers."""

    number: Ints
    values: Floats


def read_trail(path: StrPath, params: Parameters) -> Trail:
    """The trail that a fit left in its folder (`trail.csv`), its columns checked against the free parameters."""
    file = Path(path) / "trail.csv" if Path(path).is_dir() else Path(path)
    try:
        with open(file, newline="", encoding="utf-8") as lines:
            header, *rows = list(csv.reader(lines)) or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"this is no trail of a fit: {error}", path=file) from None
    names = tuple(header[len(COLUMNS) :])
    if tuple(header[: len(COLUMNS)]) != COLUMNS:
        raise InputError(f"a trail has the columns {', '.join(COLUMNS)}, then one per free parameter", path=file)
    if not names:
        raise InputError("this trail holds no parameters (it does if there are at most 1,000)", path=file)
    if set(names) != set(params.free_names) or len(names) != len(params.free_names):
        unlike = sorted(set(names) ^ set(params.free_names)) or ["one comes twice"]
        raise InputError(f"these are not the model's free parameters: {', '.join(unlike[:5])}", path=file)
    numbers, values = np.empty(len(rows), np.int64), np.empty((len(rows), len(names)))
    for i, row in enumerate(rows):
        try:
            numbers[i], values[i] = int(row[0]), [float(field) for field in row[len(COLUMNS) :]]
        except (ValueError, IndexError):
            raise InputError(
                "expected a whole number first and a number per parameter", path=file, line=i + 2
            ) from None
    if not np.isfinite(values).all():
        line = int(np.argwhere(~np.isfinite(values))[0, 0]) + 2
        raise InputError("a parameter is not a finite number", path=file, line=line)
    return Trail(numbers, values[:, [names.index(name) for name in params.free_names]])


def along_trail(
    model: Model,
    values_by_epoch: ArrayLike | Trail,
    candidates: Candidates,
    measure: str | Measure = DEFAULT_MEASURE,
    *,
    resolution: float = RESOLUTION,
) -> list[Leg]:
    """What each epoch's step did to the measure: one `Leg` per pair of neighbouring rows of `values_by_epoch`.

    A row holds the free parameters after an epoch, in the order of `model.params.free_names`; the first is the start.
    """
    chosen, params = parse_measure(measure), model.params
    if isinstance(values_by_epoch, Trail):
        number, values = values_by_epoch
    else:
        values = np.asarray(values_by_epoch, np.float64)
        number = np.arange(len(values))
    if values.ndim != 2 or values.shape[1] != len(params.free_names):
        given = f"an array of shape {values.shape}"
        raise UsageError(
            f"a trail has one row per epoch and {len(params.free_names)} free parameters each, not {given}"
        )
    if not np.isfinite(values).all():
        raise UsageError(
            f"epoch {int(number[np.argwhere(~np.isfinite(values))[0, 0]])} has a parameter that is no number"
        )
    models = [model.at(params.with_free(row)) for row in values]
    found = [chosen.value(each.score(candidates), candidates) for each in models]
    legs = []
    for i in range(1, len(models)):
        along, path = values[i] - values[i - 1], None
        if along.any():
            path = trajectory(models[i - 1], candidates, along, chosen, 0, 1, resolution=resolution)
        legs.append(Leg(int(number[i]), found[i - 1], found[i], path))
    return legs
