"""Learning curves: a measure on test and training queries against the number of training queries.

Each repeat draws its own order of the training queries; size n takes the first n of it, so that a larger set contains
the smaller ones and differences along the curve are paired. A ranker that chooses by validation queries gets a quarter
of n more for that. Tested is on rows of their own, or, without, on a fifth of the queries that each repeat holds out.

>>> from fliprank.models import Linear
>>> rng = np.random.default_rng(0)
>>> features = rng.normal(size=(800, 5))
>>> labels = np.clip(np.round(features[:, 0] + 0.5 * features[:, 1] + rng.normal(size=800)), 0, 3)
>>> rows = Candidates.of(labels, group=[10] * 80, features=features)
>>> curve = learning_curve({"linear": Ranker(Linear(), "lbfgs", "ranknet", validate=False)}, rows, [4, 16, 64])
>>> [(point.size, round(point.test, 2)) for point in curve.points()]
[(4, 0.82), (16, 0.83), (64, 0.83)]
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath
from fliprank.data.store import read_arrays, write_arrays
from fliprank.defaults import DEFAULT_MEASURE, DEFAULT_OBJECTIVE
from fliprank.errors import InputError, UsageError
from fliprank.experiment.curve_results import LearningCurve
from fliprank.experiment.splits import folds_of
from fliprank.experiment.training import train as train_model
from fliprank.experiment.trials import Progress
from fliprank.experiment.tuning import tune
from fliprank.measures import Measure, parse_measure
from fliprank.models import Model
from fliprank.models.base import describe, full_text
from fliprank.models.parameter_rows import to_rows
from fliprank.objectives import Objective
from fliprank.optimize.fit import fingerprint
from fliprank.optimize.methods import Method
from fliprank.parallel import run_parallel

__all__ = ["Fitter", "Ranker", "default_sizes", "learning_curve"]

SMALLEST, LARGEST = 16, 2048
"""From where to where default sizes go."""
HELD_OUT = 5
"""Without test rows, each repeat holds out one of so many parts of the queries."""
VALIDATION = 4
"""One validation query per so many training queries."""

Fitter = Callable[[Candidates, Candidates | None, int], Model]
"""What fits a model: called with training rows, validation rows and a random seed. An attribute `validate` that is
False says that it needs no validation rows, and gets None."""


@dataclass(frozen=True)
class Ranker:
    """A model and how it is fitted: by `train`, or with method "tune" as `tune` does; `options` are those of either."""

    model: Model
    method: str | Method = "auto"
    objective: str | Objective = DEFAULT_OBJECTIVE
    validate: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.method == "tune" and self.validate:
            object.__setattr__(self, "validate", False)  # it cross-validates within its training queries

    def fit(
        self,
        rows: Candidates,
        valid: Candidates | None,
        seed: int,
        measure: str | Measure = DEFAULT_MEASURE,
        progress: Progress | None = None,
    ) -> Model:
        """The model fitted to these rows, chosen by `measure`."""
        own: dict[str, Any] = {"measure": measure, "jobs": 1, "seed": seed, "progress": progress, **self.options}
        if self.method == "tune":
            return tune(self.model, rows, **own).model
        return train_model(self.model, rows, valid, method=self.method, objective=self.objective, **own).model

    def __call__(self, rows: Candidates, valid: Candidates | None, seed: int) -> Model:
        return self.fit(rows, valid, seed)

    def key(self) -> dict[str, Any]:
        """What tells it from other rankers, as JSON."""
        known = describe(self.model) | {"parameters": to_rows(self.model.params)[0]} if self.model.ready else {}
        return {
            "model": known or full_text(self.model),
            "method": str(self.method),
            "objective": str(self.objective),
        } | {
            "validate": self.validate,
            "options": {name: str(value) for name, value in self.options.items()},
        }


def default_sizes(most: int) -> list[int]:
    """From 16 to 2,048 in steps of sqrt(2), as far as `most` goes; `most` itself where that is a step further.

    >>> default_sizes(100)
    [16, 23, 32, 45, 64, 91]
    >>> default_sizes(80)
    [16, 23, 32, 45, 64, 80]
    """
    steps = [round(SMALLEST * 2 ** (k / 2)) for k in range(1 + 2 * round(np.log2(LARGEST / SMALLEST)))]
    sizes = [size for size in steps if size <= most]
    return [*sizes, most] if sizes and sizes[-1] < LARGEST and most >= 1.2 * sizes[-1] else sizes


@checked
def learning_curve(
    rankers: Mapping[str, Ranker | Fitter] | Ranker,
    rows: Candidates,
    sizes: Sequence[int] | None = None,
    test: Candidates | None = None,
    *,
    repeats: int = 5,
    measure: str | Measure = DEFAULT_MEASURE,
    seed: int = 0,
    jobs: int | None = None,
    checkpoint: StrPath | None = None,
    progress: Progress | None = None,
) -> LearningCurve:
    """The curve of each ranker, over `sizes` (16 to 2,048 by default) and `repeats` draws of training queries.

    With `checkpoint` (a folder) each finished fit is kept there, known by its data and settings, and never made again:
    killed and started once more, it gives the same figures to the last digit. A function that fits is known by its name
    in `rankers`. Ctrl-C ends with the repeats that are complete.
    """
    named: dict[str, Ranker | Fitter] = {}
    named.update({rankers.model.kind: rankers} if isinstance(rankers, Ranker) else rankers)
    chosen, validated = parse_measure(measure), any(getattr(each, "validate", True) for each in named.values())
    if not named:
        raise UsageError("a learning curve needs at least one ranker")
    if repeats < 1:
        raise UsageError(f"repeats must be at least 1, not {repeats}")
    draws = _draws(rows.queries, test is None, validated, repeats, seed)
    steps = _checked_sizes(sizes, min(len(draw.train) for draw in draws))
    maker = _Maker(named, rows, test, draws, chosen, seed, None if checkpoint is None else Path(checkpoint), progress)
    # Repeat by repeat, so that an interrupted curve has whole ones; large sizes first, so that cores end together.
    cells = [_Cell(*each) for each in product(range(repeats), sorted(steps, reverse=True), named)]
    found = dict(zip(cells, maker.make(cells, jobs), strict=True))
    whole = [r for r in range(repeats) if all(found[cell] is not None for cell in cells if cell.repeat == r)]
    if not whole:
        kept = "" if checkpoint is None else f"; the fits that were done are kept in {checkpoint}"
        raise InputError(f"interrupted before the first repeat was done{kept}")
    table = np.full((len(named), len(steps), len(whole), (rows if test is None else test).queries), np.nan)
    training = np.empty(table.shape[:3])
    for (i, name), (j, size), (k, repeat) in product(enumerate(named), enumerate(steps), enumerate(whole)):
        at = found[_Cell(repeat, size, name)]
        assert at is not None
        tested = draws[repeat].tested if test is None else slice(None)
        table[i, j, k, tested], training[i, j, k] = at.test, at.training
    every = rows.queries * VALIDATION // (VALIDATION + 1) if validated else rows.queries
    return LearningCurve(
        chosen,
        tuple(steps),
        dict(zip(named, table, strict=True)),
        dict(zip(named, training, strict=True)),
        np.array([_overlap([draws[r].train[:size] for r in whole]) for size in steps]),
        test is not None,
        every if every <= 1.5 * steps[-1] else steps[-1],
        interrupted=len(whole) < repeats,
        settings={"repeats": repeats, "seed": seed, "validated": validated, "queries": rows.queries},
    )


class _Draw(NamedTuple):
    """The order in which a repeat takes training and validation queries, and which it holds out to test on."""

    train: Ints
    valid: Ints
    tested: Ints


def _draws(queries: int, held_out: bool, validated: bool, repeats: int, seed: int) -> list[_Draw]:
    """One draw per repeat; where queries are held out, five repeats in a row hold out all of them."""
    draws = []
    for repeat in range(repeats):
        pool = held = np.arange(queries)
        if held_out:
            held = folds_of(queries, HELD_OUT, seed + repeat // HELD_OUT)[repeat % HELD_OUT]
            pool = np.setdiff1d(pool, held)
        order = np.random.default_rng([seed, repeat]).permutation(pool)
        cut = len(order) - len(order) // (VALIDATION + 1) if validated else len(order)
        draws.append(_Draw(order[:cut], order[cut:], held))
    return draws


def _checked_sizes(sizes: Sequence[int] | None, most: int) -> list[int]:
    """The sizes in order; raises if there are not so many queries to train on."""
    steps = default_sizes(most) if sizes is None else sorted({int(size) for size in sizes})
    if not steps:
        hint = "give sizes that are smaller" if sizes is None else "give some sizes"
        raise InputError(f"at most {most} queries can be trained on, and the smallest size is {SMALLEST}", hint=hint)
    if steps[0] < 1 or steps[-1] > most:
        raise UsageError(f"sizes go from 1 to {most} training queries here; got {steps[0]} to {steps[-1]}")
    return steps


def _overlap(sets: list[Ints]) -> float:
    """The share of a training set that another repeat has too, on average."""
    shared = [len(np.intersect1d(a, b)) / len(a) for a, b in combinations(sets, 2)]
    return float(np.mean(shared)) if shared else 0.0


class _Cell(NamedTuple):
    repeat: int
    size: int
    ranker: str


class _Point(NamedTuple):
    """What one fit came to: each test query's value, on the scale on which queries are averaged, and the training
    measure."""

    test: Floats
    training: float


@dataclass(frozen=True, eq=False)
class _Maker:
    """Makes points, and keeps them in a folder."""

    rankers: dict[str, Ranker | Fitter]
    rows: Candidates
    test: Candidates | None
    draws: list[_Draw]
    measure: Measure
    seed: int
    folder: Path | None
    progress: Progress | None
    enough: threading.Event = field(default_factory=threading.Event)

    def make(self, cells: list[_Cell], jobs: int | None) -> list[_Point | None]:
        """The point of each cell; None for those that Ctrl-C left undone."""
        data = "" if self.folder is None else fingerprint(self.rows, test=self.test and fingerprint(self.test))
        done = [0]

        def one(cell: _Cell) -> _Point | None:
            if self.enough.is_set():
                return None
            try:
                return self._point(cell, data, partial(self._watch, cell, done, len(cells)))
            except KeyboardInterrupt:
                return None
            except Exception:
                self.enough.set()  # what is wrong with one fit is told now, not when all others are done
                raise
            finally:
                done[0] += 1

        return run_parallel([partial(one, cell) for cell in cells], jobs, enough=self.enough)

    def _watch(self, cell: _Cell, done: list[int], total: int, *told: Any) -> None:
        """Tell of what a fit says, which ends with the epoch; after Ctrl-C, end the fit."""
        if self.enough.is_set():
            raise KeyboardInterrupt
        if self.progress is not None:
            self.progress(f"{cell.ranker}, {cell.size} queries", done[0], total, told[-1])

    def _point(self, cell: _Cell, data: str, watch: Progress) -> _Point:
        place = None if self.folder is None else self.folder / f"{self._key(cell, data)}.point"
        if place is not None and (kept := _read_point(place)) is not None:
            return kept
        point = self._fit(cell, watch)
        if place is not None:
            header = {"ranker": cell.ranker, "size": cell.size, "repeat": cell.repeat}
            write_arrays(place, header, {"test": point.test, "training": np.array([point.training])})
        return point

    def _fit(self, cell: _Cell, watch: Progress) -> _Point:
        draw, ranker = self.draws[cell.repeat], self.rankers[cell.ranker]
        rows = self.rows.select(np.sort(draw.train[: cell.size]))
        few = draw.valid[: max(1, cell.size // VALIDATION)]
        valid = self.rows.select(np.sort(few)) if getattr(ranker, "validate", True) else None
        seed = int(np.random.SeedSequence([self.seed, cell.repeat]).generate_state(1)[0]) >> 1
        watch("", 0, 1, None)
        try:
            if isinstance(ranker, Ranker):
                model = ranker.fit(rows, valid, seed, self.measure, watch)
            else:
                model = ranker(rows, valid, seed)
        except InputError as error:
            where = f"{cell.ranker}, {cell.size} queries, repeat {cell.repeat + 1}"
            raise InputError(f"{where}: {error.message}", query=error.query, hint=error.hint) from error
        tested = self.test if self.test is not None else self.rows.select(draw.tested)
        values = self.measure.paired(self.measure.per_query(model.score(tested), tested))
        return _Point(values, self.measure.value(model.score(rows), rows))

    def _key(self, cell: _Cell, data: str) -> str:
        """The name of a point: other data, draws or settings give another one."""
        ranker, draw = self.rankers[cell.ranker], self.draws[cell.repeat]
        known = ranker.key() if isinstance(ranker, Ranker) else {"name": cell.ranker}
        drawn = [draw.train[: cell.size].tolist(), len(draw.train), len(draw.valid)]
        return fingerprint(
            None, data=data, ranker=known, drawn=drawn, measure=str(self.measure), repeat=cell.repeat, seed=self.seed
        )


def _read_point(place: Path) -> _Point | None:
    """A point that was kept; None where there is none or it is damaged, so that it is made again."""
    if not place.exists():
        return None
    try:
        _, arrays = read_arrays(place, check=True)
        return _Point(np.array(arrays["test"]), float(arrays["training"][0]))
    except (InputError, KeyError, IndexError):
        return None
