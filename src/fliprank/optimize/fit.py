"""A fit in the making: the trail of epochs on training and validation queries, and the parameters that are kept.

RankNet's validation trick (Taylor et al. 2006, section 2.5): descend the objective, choose the epoch by the measure on
validation queries. A method calls `Recorder.epoch` after each epoch; the recorder evaluates, keeps the best, writes a
checkpoint, reports progress, and says whether to go on. Ctrl-C loses nothing: what is kept so far is the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from hashlib import blake2b
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.scattered import ScatteredRows
from fliprank.data.store import read_arrays, write_arrays
from fliprank.errors import InputError, InterruptedFitError, UsageError
from fliprank.measures.base import Measure
from fliprank.models.base import Model
from fliprank.optimize.fit_tables import in_lines, parameter_frame, trail_frame
from fliprank.optimize.problem import Problem
from fliprank.optimize.ranges import Range, as_good_ranges

if TYPE_CHECKING:
    import polars as pl

    from fliprank.experiment.proving import TuningProof

__all__ = ["INTERRUPTED", "KEEP", "Epoch", "Fit", "Recorder", "Tried", "fingerprint"]

KEEP = ("measure", "objective", "last")
"""Which epoch is kept: the best by the measure, the best by the objective (both on validation queries where there are
any, else on training queries), or the last."""

INTERRUPTED = "interrupted"
TIED = "ended where all scores tie: nothing is ranked there, and what the measure says is the order of ties"

MOST_PATH = 1000
"""Free parameters up to which those of every epoch are kept."""


@dataclass(frozen=True)
class Epoch:
    """One line of the trail: the objective and the measure on training and validation queries; NaN where not known."""

    number: int
    objective: float
    train: float
    valid: float
    valid_objective: float = float("nan")
    rate: float = float("nan")


@dataclass(frozen=True)
class Tried:
    """A setting that was tried: what it was, how it did on validation or held-out queries, its weight in the result."""

    what: str
    value: float
    weight: float = 0.0


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """A fitted model, the epoch that it comes from, every epoch on the way, and why it stopped.

    `path` has the free parameters of each epoch, where there are at most 1,000. `start` is the model before, `tried`
    are the settings that competed, `rows` those that it was fitted to, `held_out` the score of each of these by a fit
    that did not see its query, and `stages` the fits of a cascade's stages. `documents_scored` is what this run cost,
    on training rows (see `scored.py`).
    """

    model: Model
    best: Epoch
    trail: tuple[Epoch, ...]
    stopped: str
    settings: dict[str, Any] = field(default_factory=dict)
    path: Floats | None = None
    start: Model | None = None
    measure: Measure | None = None
    tried: tuple[Tried, ...] = ()
    rows: Candidates | None = field(default=None, repr=False)
    held_out: Floats | None = field(default=None, repr=False)
    stages: tuple[Fit, ...] = ()
    documents_scored: int = 0
    prover: Callable[[Fit], TuningProof] | None = None

    @cached_property
    def proof(self) -> TuningProof:
        """Of a tuning: what held-out queries say of it, the verdict, and what was adopted. Computed when asked for."""
        if self.prover is None:
            raise UsageError("only what tune() gives has a proof: compare models with fr.evaluate or fr.compare")
        return self.prover(self)

    def ranges(self, confidence: float = 0.95) -> dict[str, Range]:
        """For each free parameter the values that are statistically as good as the fitted one, on its own rows."""
        if self.rows is None or self.measure is None:
            raise UsageError("this fit does not know its rows: see optimize.ranges.as_good_ranges")
        return as_good_ranges(self.model, self.rows, self.measure, confidence)

    def interval(self, name: str, confidence: float = 0.95) -> tuple[float, float]:
        """The values of one parameter that are statistically as good as the fitted one."""
        found = self.ranges(confidence)
        if name not in found:
            raise UsageError(f"no free parameter is called {name!r}; there are {', '.join(found)}")
        return found[name].low, found[name].high

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it before it was done."""
        return self.stopped == INTERRUPTED

    @property
    def chosen_by(self) -> float:
        """The measure on validation queries; on training queries where there are none."""
        return self.best.train if np.isnan(self.best.valid) else self.best.valid

    def to_frame(self) -> pl.DataFrame:
        """The trail as a polars frame: one row per epoch, with its objective and measures, and whether it is kept."""
        return trail_frame(self)

    def parameters(self, ranges: bool = True, confidence: float = 0.95) -> pl.DataFrame:
        """Each parameter before and after, with its bounds and, unless `ranges` is False, the values that are as good.

        Those take a moment, and need a fit that knows its rows. What is fixed has no `low` and `high`; parameters that
        share a value have the same `moves_with`.
        """
        return parameter_frame(self, ranges, confidence)

    def plot(self, kind: str = "trail", **options: Any) -> Any:
        """An Altair chart of this fit (extra `report`): "trail", "ranges", "queries", "surface", "trajectory", ...

        Short for `fr.plots.KIND(fit, ...)`; `options` are its own.
        """
        # By name: pictures come after fits in the order of packages, and nothing of them is needed to fit.
        return import_module("fliprank.report.plots").plot_fit(self, kind, **options)

    def report(self, path: str | PathLike[str]) -> Path:
        """Write report.html, one self-contained file to look at in a browser: the verdict, parameters, every query."""
        written: Path = import_module("fliprank.report.page.fits").write_fit_page(self, path)
        return written

    def __repr__(self) -> str:
        return in_lines(self)


@dataclass
class Recorder:
    """Watches one run of a method.

    The epoch that is kept is chosen as `keep` says, on `valid`, or on the problem itself where there is none.
    `patience` epochs without a better one end the run. With a `checkpoint` path each epoch is written there, and a new
    recorder of the same run (same `key`) goes on from it. With `measured=False` the training measure is not evaluated.
    """

    problem: Problem
    valid: Problem | None = None
    keep: str = "measure"
    patience: int | None = None
    checkpoint: Path | None = None
    key: str = ""
    progress: Callable[[Epoch], None] | None = None
    measured: bool = True
    trail: list[Epoch] = field(default_factory=list)
    path: list[Floats] = field(default_factory=list)
    best: Epoch | None = None
    best_values: Floats | None = None
    best_ties: bool = False
    """Whether the best epoch gives all documents of a query one score: then any other epoch is better."""
    state: dict[str, Floats] = field(default_factory=dict)
    enough: Callable[[], bool] | None = None
    stopped: str = "all epochs done"
    finished: bool = False
    replaying: int = 0
    """Epochs of a resumed run that a method without a state of its own goes through again."""

    def __post_init__(self) -> None:
        if self.keep not in KEEP:
            raise UsageError(f"keep is one of {', '.join(KEEP)}, not {self.keep!r}")

    @property
    def measure(self) -> Measure:
        """What epochs are chosen by, unless it is the objective."""
        return self.problem.measure

    def resume(self) -> bool:
        """Go on from the checkpoint, if there is one of this run; returns whether there was."""
        if self.checkpoint is None or not self.checkpoint.exists():
            return False
        header, arrays = read_arrays(self.checkpoint, check=True)
        if header.get("key") != self.key:
            raise InputError(
                "the checkpoint is of another run",
                path=self.checkpoint,
                hint="other data or settings; delete it to start anew",
            )
        try:
            self._restore(header, arrays)
            self.finished, stopped = bool(header["finished"]), str(header["stopped"])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise self.damaged(str(error)) from error
        if self.finished:
            self.stopped = stopped
        elif self._out_of_patience():  # it was killed before it could say so
            self.finish()
        return True

    def _restore(self, header: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Take over what a checkpoint holds; raises where it does not fit together, or not with the parameters."""
        trail = [Epoch(**epoch) for epoch in header["trail"]]
        for number, epoch in enumerate(trail):
            if epoch.number != number or any(type(value) not in (int, float) for value in vars(epoch).values()):
                raise ValueError(f"epoch {number} is no line of a trail")
        best, scored, width = header["best"], header["documents_scored"], len(self.problem.params.free_values)
        if type(best) is not int or not 0 <= best < len(trail) or type(scored) is not int:
            raise ValueError("no best epoch, or no number of documents")
        state = {name: np.array(array, np.float64) for name, array in arrays.items()}
        values, path = state.pop("best"), state.pop("path")
        if values.shape != (width,) or path.shape not in ((len(trail), width), (0, width)):
            raise ValueError(f"its parameters are not the {width} of this model")
        if not (np.isfinite(values).all() and np.isfinite(path).all()):
            raise ValueError("a parameter is not finite")
        self.trail, self.best, self.best_ties = trail, trail[best], bool(header["best_ties"])
        self.state, self.best_values, self.path = state, values, list(path)
        self.problem.scored.documents = scored

    def damaged(self, why: str) -> InputError:
        """The error for a checkpoint that nobody could go on from."""
        return InputError(f"not a checkpoint: {why}", path=self.checkpoint, hint="delete it to start anew")

    @property
    def done(self) -> int:
        """How many epochs are done; those that a resumed run still has to go through again do not count."""
        return len(self.trail) - self.replaying

    def begin(self, **first: Floats | float) -> dict[str, Floats]:
        """What a method goes on from: the state of the checkpoint, or these first values."""
        fresh = {name: np.atleast_1d(np.asarray(value, np.float64)) for name, value in first.items()}
        if not self.trail:
            return fresh
        for name, value in fresh.items():  # an empty one is filled on the way
            known = self.state.get(name)
            if known is None or not np.isfinite(known).all() or (value.size and known.shape != value.shape):
                raise self.damaged(f"its {name} is not what the method left")
        return self.state

    def epoch(self, values: Floats, objective: float, rate: float = float("nan"), /, **state: Floats | float) -> bool:
        """Note an epoch that ended at these free parameters; returns whether to go on. `state` is for `begin`."""
        if self.replaying:
            self.replaying -= 1
            return not self._told_to_stop()
        train, ties = self._on_training(values)
        epoch = Epoch(len(self.trail), float(objective), train, *self._on_validation(values), float(rate))
        self.trail.append(epoch)
        if len(values) <= MOST_PATH:
            self.path.append(np.array(values, np.float64))
        if self.best is None or self._better(epoch, ties, self.best):
            self.best, self.best_values, self.best_ties = epoch, np.array(values), ties
        self.state = {"values": np.array(values, np.float64)}
        self.state |= {name: np.atleast_1d(np.asarray(array, np.float64)) for name, array in state.items()}
        if self.checkpoint is not None:
            self._write()
        if self.progress is not None:
            self.progress(epoch)
        return not (self._told_to_stop() or self._out_of_patience())

    def _told_to_stop(self) -> bool:
        if self.enough is None or not self.enough():
            return False
        self.stopped = INTERRUPTED
        return True

    def _out_of_patience(self) -> bool:
        """Whether no epoch was better for too long; that is then why the run stopped."""
        if self.patience is None or self.best is None or len(self.trail) - 1 - self.best.number < self.patience:
            return False
        self.stopped = f"no better epoch in {self.patience}"
        return True

    def finish(self) -> None:
        """Note in the checkpoint that this run is over, unless it was interrupted."""
        self.finished = self.stopped != INTERRUPTED
        if self.finished and self.best_ties:
            self.stopped = TIED
        if self.checkpoint is not None and self.best is not None:
            self._write()

    def fit(self, **settings: Any) -> Fit:
        """The result so far."""
        if self.best is None or self.best_values is None:
            raise InterruptedFitError("stopped before the first epoch was done: there is nothing to keep")
        path = np.array(self.path) if self.path else None
        model = self.problem.at(self.best_values)
        told = (self.best, tuple(self.trail), self.stopped, settings, path, self.problem.model, self.measure)
        return Fit(model, *told, documents_scored=self.problem.scored.documents)

    def _on_training(self, values: Floats) -> tuple[float, bool]:
        """The measure on training queries, and whether all scores of each query tie."""
        if not self.measured:
            return float("nan"), False
        place = self.problem.place(values)
        return self.measure.sign * place.measure, self.problem.ranks_nothing(place)

    def _on_validation(self, values: Floats) -> tuple[float, float]:
        """The measure on validation queries, and the objective where it is asked for."""
        if self.valid is None:
            return float("nan"), float("nan")
        objective = self.valid.value_and_grad(values)[0] if self.keep == "objective" else float("nan")
        return self.measure.sign * self.valid.measure_at(values), objective

    def _better(self, epoch: Epoch, ties: bool, than: Epoch) -> bool:
        """Whether an epoch is better than another; one that ranks nothing never is."""
        if ties != self.best_ties:
            return self.best_ties
        if self.keep == "last":
            return True
        if self.keep == "objective":
            mine, theirs = (e.objective if np.isnan(e.valid_objective) else e.valid_objective for e in (epoch, than))
            return mine < theirs
        mine, theirs = (e.train if np.isnan(e.valid) else e.valid for e in (epoch, than))
        return self.measure.sign * mine > self.measure.sign * theirs

    def _write(self) -> None:
        assert self.checkpoint is not None
        assert self.best is not None
        assert self.best_values is not None
        header = {
            "key": self.key,
            "trail": [asdict(epoch) for epoch in self.trail],
            "best": self.best.number,
            "best_ties": self.best_ties,
            "finished": self.finished,
            "stopped": self.stopped,
            "documents_scored": self.problem.scored.documents,
        }
        path = np.array(self.path, np.float64).reshape(len(self.path), len(self.best_values))
        write_arrays(self.checkpoint, header, {**self.state, "best": self.best_values, "path": path})


def fingerprint(candidates: Candidates | ScatteredRows | None, **settings: Any) -> str:
    """A key of a run: other data or settings give another one."""
    digest = blake2b(digest_size=16)
    digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
    if isinstance(candidates, ScatteredRows):
        digest.update(candidates.digest.encode())
    elif candidates is not None:
        terms, counted = candidates.terms, dict[str, Any]()
        if terms is not None:
            counted = {f.name: getattr(terms, f.name) for f in fields(terms)}
        names = [candidates.feature_names, counted.pop("fields", None), counted.pop("documents", None)]
        digest.update(json.dumps(names).encode())
        parts = (candidates.offsets, candidates.labels, candidates.features, *counted.values())
        if (lists := candidates.lists) is not None:
            digest.update(json.dumps(lists.names).encode())
            parts = (*parts, lists.scores, lists.ranks, lists.statistics)
        for part in (*parts, candidates.missed_offsets, candidates.missed_labels):
            if isinstance(part, np.ndarray):
                digest.update(str(part.shape).encode())
                digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()
