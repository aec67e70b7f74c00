"""A fit in the making: the trail of epochs on training and validation queries, and the best parameters so far.

RankNet's validation trick (Taylor et al. 2006, section 2.5): train on the objective, choose the epoch by the measure on
validation queries. An optimizer calls `Recorder.epoch` after each epoch; the recorder evaluates, keeps the best, writes
a checkpoint, shows progress, and says when to stop. Ctrl-C loses nothing: the best so far is the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.store import read_arrays, write_arrays
from fliprank.errors import InputError
from fliprank.measures.base import Measure
from fliprank.models.base import Model

__all__ = ["Epoch", "Fit", "Recorder", "fingerprint"]


@dataclass(frozen=True)
class Epoch:
    """One line of the trail: the objective, and the measure on training and validation queries."""

    number: int
    objective: float
    train: float
    valid: float
    rate: float = float("nan")


@dataclass(frozen=True, eq=False)
class Fit:
    """A trained model, the epoch that it comes from, every epoch on the way, and why it stopped."""

    model: Model
    best: Epoch
    trail: tuple[Epoch, ...]
    stopped: str
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass
class Recorder:
    """Watches one run of an optimizer.

    The best epoch is that of the highest measure on `valid` (on `train` where there is none). `patience` epochs without
    a better one end the run. With a `checkpoint` path each epoch is written there, and a new recorder of the same run
    (same `key`) goes on from it.
    """

    model: Model
    train: Candidates
    valid: Candidates | None
    measure: Measure
    patience: int | None = None
    checkpoint: Path | None = None
    key: str = ""
    watch: Callable[[Epoch], None] | None = None
    trail: list[Epoch] = field(default_factory=list)
    best: Epoch | None = None
    best_values: Floats | None = None
    state: dict[str, Floats] = field(default_factory=dict)
    enough: Callable[[], bool] | None = None
    stopped: str = "all epochs done"
    finished: bool = False

    def resume(self) -> bool:
        """Go on from the checkpoint, if there is one of this run; whether there was."""
        if self.checkpoint is None or not self.checkpoint.exists():
            return False
        header, arrays = read_arrays(self.checkpoint)
        if header.get("key") != self.key:
            raise InputError(
                "the checkpoint is of another run",
                path=self.checkpoint,
                hint="other data or settings; delete it to start anew",
            )
        try:
            self.trail = [Epoch(**epoch) for epoch in header["trail"]]
            self.best = self.trail[header["best"]]
            self.state = {name: np.array(array) for name, array in arrays.items()}
            self.best_values = self.state.pop("best")
            self.finished, self.stopped = bool(header["finished"]), str(header["stopped"])
        except (KeyError, IndexError, TypeError) as error:
            raise InputError(f"not a checkpoint: {error}", path=self.checkpoint) from error
        return True

    def epoch(self, values: Floats, objective: float, rate: float = float("nan"), **state: Floats) -> bool:
        """Take note of an epoch that ended at these free parameters; whether to go on. `state` is for `resume`."""
        model = self.model.at(self.model.params.with_free(values))
        sign = self.measure.sign
        told = Epoch(
            len(self.trail), float(objective), self._measure(model, self.train), self._measure(model, self.valid), rate
        )
        self.trail.append(told)
        if self.best is None or sign * _judged(told) > sign * _judged(self.best):
            self.best, self.best_values = told, np.array(values)
        self.state = {"values": np.array(values, np.float64), **state}
        if self.checkpoint is not None:
            self._write(self.state)
        if self.watch is not None:
            self.watch(told)
        if self.enough is not None and self.enough():
            self.stopped = "interrupted"
            return False
        if self.patience is not None and told.number - self.best.number >= self.patience:
            self.stopped = f"no better epoch in {self.patience}"
            return False
        return True

    def finish(self) -> None:
        """Note in the checkpoint that this run is over, unless it was interrupted."""
        self.finished = self.stopped != "interrupted"
        if self.checkpoint is not None and self.best is not None:
            self._write(self.state)

    def fit(self, **settings: Any) -> Fit:
        """The result so far."""
        if self.best is None or self.best_values is None:
            raise InputError("stopped before the first epoch was done: there is nothing to keep")
        model = self.model.at(self.model.params.with_free(self.best_values))
        return Fit(model, self.best, tuple(self.trail), self.stopped, settings)

    def _measure(self, model: Model, candidates: Candidates | None) -> float:
        if candidates is None:
            return float("nan")
        return self.measure.value(model.score(candidates), candidates)

    def _write(self, state: dict[str, Floats]) -> None:
        assert self.checkpoint is not None
        assert self.best is not None
        assert self.best_values is not None
        header = {
            "key": self.key,
            "trail": [asdict(epoch) for epoch in self.trail],
            "best": self.best.number,
            "finished": self.finished,
            "stopped": self.stopped,
        }
        write_arrays(self.checkpoint, header, {**state, "best": self.best_values})


def _judged(epoch: Epoch) -> float:
    """What epochs are chosen by."""
    return epoch.train if np.isnan(epoch.valid) else epoch.valid


def fingerprint(candidates: Candidates | None, **settings: Any) -> str:
    """A key of a run: other data or settings give another one."""
    digest = blake2b(digest_size=16)
    digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
    if candidates is not None:
        terms = candidates.terms
        counted = () if terms is None else (terms.idf, terms.tf, terms.length)
        for part in (candidates.offsets, candidates.labels, candidates.features, *counted):
            digest.update(b"" if part is None else np.ascontiguousarray(part).data)
    return digest.hexdigest()
