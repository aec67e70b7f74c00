"""`train` for trees: each new tree descends the gradient of an objective, and the measure that counts chooses how many.

LightGBM is handed the gradient and curvature of the objective by score (`Objective.newton`), so that trees learn from
all that linear models and nets learn from. Settings that are not given are chosen on validation queries; those of the
best are grown again from other random starts, and the mean of these forests is the result: a mean of forests is a
forest, and varies less than any of them. So that starts differ, each tree sees a random half of the features and 70% of
the rows.

>>> from fliprank.measures import parse_measure
>>> x = np.random.default_rng(0).normal(size=(900, 2))
>>> rows = Candidates.of((x[:, 0] * x[:, 1] > 0.5) * 1.0, group=[15] * 60, features=x)  # nothing linear ranks these
>>> train, valid = rows.split(0.7, 0.3)
>>> fit = grow(Trees(rounds=20, leaves=7), train, valid, "softndcg", parse_measure("nDCG@10"), restarts=1, sweep=False)
>>> fit.best.valid > 0.9, fit.best.number == len(fit.model.forest)
(True, True)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath
from fliprank.data.store import read_arrays, write_arrays
from fliprank.errors import InputError, UsageError
from fliprank.experiment.trials import Progress
from fliprank.measures import Measure
from fliprank.models.trees import Forest, Trees, import_lightgbm
from fliprank.objectives import Objective, parse_objective
from fliprank.optimize.fit import INTERRUPTED, KEEP, Epoch, Fit, Tried, fingerprint
from fliprank.parallel import run_parallel

__all__ = ["LIGHTGBM", "grow"]

LIGHTGBM = "lightgbm"
"""The name, in the place of an objective, of LightGBM's own lambdarank."""

SWEPT: dict[str, tuple[float, ...]] = {"leaves": (7, 15), "rate": (0.05, 0.1), "leaf_rows": (20, 50, 100)}
"""The values that are tried of settings that are left open, where validation queries can choose."""

PLAIN = {"leaves": 31, "rate": 0.1, "leaf_rows": 20}
"""Without validation queries: LightGBM's own defaults."""

VARIED = {"feature_fraction": 0.5, "bagging_fraction": 0.7, "bagging_freq": 1}
"""What makes random starts differ."""

ROUNDS = (500, 100)
"""The most trees, with validation queries and without."""

GROWN = "all trees grown"


def grow(
    model: Trees,
    train: Candidates,
    valid: Candidates | None,
    objective: str | Objective | None,
    measure: Measure,
    *,
    keep: str = "measure",
    restarts: int = 4,
    sweep: bool = True,
    average: bool = True,
    patience: int | None = 50,
    seed: int = 0,
    jobs: int | None = None,
    checkpoint: StrPath | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> Fit:
    """The trees of the best setting; the options are those of `train`, `settings` are fields of `Trees`.

    `objective=None` or "lightgbm" is LightGBM's own lambdarank. With `patience=None` all trees are grown. What a killed
    run had finished is not grown again.
    """
    import_lightgbm()
    target = None if objective in (None, LIGHTGBM) else parse_objective(objective)
    if keep not in KEEP or (keep == "objective" and target is None):
        raise UsageError(f"keep of trees is one of {', '.join(KEEP if target else ('measure', 'last'))}, not {keep!r}")
    ready, sweep = _with_settings(model, settings, valid is not None), sweep and valid is not None
    starts = restarts if sweep else 1
    key = fingerprint(train, valid=None if valid is None else fingerprint(valid), measure=str(measure), seed=seed)
    common = _Growing(train, valid, measure, target, keep, patience, key, resume)
    choices = list(_choices(ready, sweep, starts))
    run = partial(_run_all, common, total=len(choices) + starts - 1, seed=seed, jobs=jobs)
    run = partial(run, checkpoint=checkpoint, progress=progress)
    found, whole = run([(choice, 0) for choice in choices])
    first = [(fit, choice) for fit, choice in zip(found, choices, strict=True) if fit is not None]
    if not first:
        raise InputError(
            "no tree was grown: LightGBM found nothing to split, or it was interrupted",
            hint=f"there are {len(train):,} rows; `leaf_rows` is the least number of them in a leaf",
        )
    fit, chosen = max(first, key=lambda pair: common.worth(pair[0]))
    same, finished = run([(chosen, start) for start in range(1, starts)], begin=len(choices)) if whole else ([], False)
    fits = [fit, *(each for each in same if each is not None)]
    fit = common.joined(fits) if average else max(fits, key=common.worth)
    name = LIGHTGBM if target is None else str(target)
    assert isinstance(fit.model, Trees)
    told = {"measure": str(measure), "objective": name, "method": "trees", "keep": keep, "seed": seed}
    told |= {field: getattr(chosen, field) for field in PLAIN} | {"trials": len(choices) + len(same)}
    told |= {"trees": len(fit.model.forest or ()), "restarts": len(fits), "averaged": average and len(fits) > 1}
    tried = tuple(
        Tried(f"{name} by {_told(choice)}", each.chosen_by, float(choice is chosen)) for each, choice in first
    )
    stopped = fit.stopped if whole and finished else INTERRUPTED
    return replace(fit, stopped=stopped, settings=told, tried=tried, rows=train)


def _with_settings(model: Trees, given: dict[str, Any], validated: bool) -> Trees:
    """The trees with what was given for them; `epochs` is another name of `rounds`."""
    named = {("rounds" if name == "epochs" else name): value for name, value in given.items()}
    known = ("rounds", *PLAIN)
    if wrong := sorted(named.keys() - set(known)):
        raise UsageError(f"trees have no setting {wrong[0]}; they have epochs, {', '.join(known[1:])}")
    out = replace(model, **named)
    for name, least in (("rounds", 1), ("leaves", 2), ("leaf_rows", 1)):
        value = getattr(out, name)
        if value is not None and (not isinstance(value, int | np.integer) or value < least):
            raise UsageError(f"{name} of trees is a whole number from {least}, not {value!r}")
    if out.rate is not None and not (isinstance(out.rate, int | float) and 0 < out.rate < np.inf):
        raise UsageError(f"rate of trees is a number above 0, not {out.rate!r}")
    return replace(out, rounds=out.rounds or ROUNDS[0 if validated else 1])


def _choices(model: Trees, sweep: bool, starts: int) -> Iterator[Trees]:
    """Every setting to try."""
    left = [name for name in PLAIN if getattr(model, name) is None]
    varied = VARIED if starts > 1 else {}
    for values in product(*(SWEPT[name] if sweep else (PLAIN[name],) for name in left)):
        own: dict[str, Any] = dict(zip(left, values, strict=True))
        yield replace(model, **own, settings={**varied, **model.settings})


def _told(model: Trees) -> str:
    return f"trees({','.join(f'{name}={getattr(model, name)}' for name in PLAIN)})"


def _run_all(
    common: _Growing,
    trials: list[tuple[Trees, int]],
    *,
    begin: int = 0,
    total: int,
    seed: int,
    jobs: int | None,
    checkpoint: StrPath | None,
    progress: Progress | None,
) -> tuple[list[Fit | None], bool]:
    """The fit of each trial (setting and random start), and whether Ctrl-C, which ends each after its tree, ended none.

    They are numbers `begin` and up of `total`.
    """
    enough = threading.Event()

    def task(number: int, model: Trees, start: int) -> Fit | None:
        place = None if checkpoint is None else Path(checkpoint) / f"run-{number:03d}.checkpoint"

        def report(epoch: Epoch) -> bool:
            if progress is not None:
                progress("growing trees", number + 1, total, epoch)
            return not enough.is_set()

        return None if enough.is_set() else common.grown(model, seed + start, place, report, 1 if total > 1 else 0)

    fits = run_parallel([partial(task, i, *each) for i, each in enumerate(trials, begin)], jobs, enough=enough)
    return fits, not enough.is_set()


@dataclass(frozen=True, eq=False)
class _Growing:
    """What all trials have in common."""

    rows: Candidates
    valid: Candidates | None
    measure: Measure
    objective: Objective | None
    keep: str
    patience: int | None
    key: str
    resume: bool

    def worth(self, fit: Fit) -> float:
        """What trials are chosen by, larger is better."""
        return self.measure.sign * fit.chosen_by

    def grown(
        self, model: Trees, seed: int, place: Path | None, report: Callable[[Epoch], bool], threads: int
    ) -> Fit | None:
        """The trees of one trial, up to the one that is kept; None where there are none."""
        key = f"{self.key} {self.objective} {self.keep} {self.patience} {model} {seed}"
        known = _finished(place, key) if self.resume else None
        if known is not None:
            return Fit(replace(model, forest=known[0]), *known[1:], measure=self.measure)
        push = None if self.objective is None else _Push(self.objective, self.rows, model.rounds or 1)
        trail, trees, best, stopped = list[Epoch](), list[Forest](), None, GROWN
        held = np.zeros(0 if self.valid is None else len(self.valid))
        for tree, scores in model.sprouts(self.rows, push, seed, threads):
            trees.append(tree)
            held = held if self.valid is None else held + tree.score(self.valid)
            trail.append(self._epoch(len(trees), push, scores, held, model.rate or 0.0))
            best = trail[-1] if best is None or self._better(trail[-1], best) else best
            if not report(trail[-1]):
                stopped = INTERRUPTED
            elif self.patience and self.valid is not None and len(trees) - best.number >= self.patience:
                stopped = f"no gain in {self.patience} trees"
            elif len(trees) < (model.rounds or 1):
                continue
            break
        if best is None:
            return None
        fit = Fit(
            replace(model, forest=Forest.joined(trees[: best.number])),
            best,
            tuple(trail),
            stopped,
            measure=self.measure,
        )
        if place is not None and not fit.interrupted:
            _keep(place, key, fit)
        return fit

    def _epoch(self, number: int, push: _Push | None, scores: Floats, held: Floats, rate: float) -> Epoch:
        """The measure and objective after so many trees."""
        nan = float("nan")
        train = self.measure.value(scores, self.rows)
        valid = nan if self.valid is None else self.measure.value(held, self.valid)
        if push is None or self.objective is None:
            return Epoch(number, nan, train, valid, rate=rate)
        sign, own = -1.0 if self.objective.maximise else 1.0, nan
        if self.keep == "objective" and self.valid is not None:
            own = sign * self.objective.value_and_grad(held, self.valid)[0]
        return Epoch(number, sign * push.value(scores, number), train, valid, own, rate)

    def _better(self, epoch: Epoch, than: Epoch) -> bool:
        if self.keep == "last":
            return True
        if self.keep == "objective":
            mine, theirs = (e.objective if np.isnan(e.valid_objective) else e.valid_objective for e in (epoch, than))
            return mine < theirs
        mine, theirs = (e.train if np.isnan(e.valid) else e.valid for e in (epoch, than))
        return self.measure.sign * mine > self.measure.sign * theirs

    def joined(self, fits: list[Fit]) -> Fit:
        """The mean of the forests of several random starts, with the trail of the best of them."""
        first = max(fits, key=self.worth)
        if len(fits) == 1:
            return first
        forests = [fit.model.forest for fit in fits if isinstance(fit.model, Trees) and fit.model.forest is not None]
        model = replace(first.model, forest=Forest.joined(forests, 1.0 / len(forests)))  # type: ignore[call-arg]
        values = [
            float("nan") if part is None else self.measure.value(model.score(part), part)
            for part in (self.rows, self.valid)
        ]
        return replace(first, model=model, best=replace(first.best, train=values[0], valid=values[1]))


class _Push:
    """What the next tree descends: gradient and curvature of the objective, worked out once for the same scores."""

    def __init__(self, objective: Objective, rows: Candidates, rounds: int) -> None:
        self.objective, self.rows, self.rounds = objective, rows, rounds
        self.scores: Floats | None = None
        self.found: tuple[float, Floats, Floats] = (0.0, np.empty(0), np.empty(0))

    def value(self, scores: Floats, number: int) -> float:
        """The objective at the scores of so many trees."""
        self.scores = scores
        self.found = self.objective.at(min(1.0, number / self.rounds)).newton(scores, self.rows)
        return self.found[0]

    def __call__(self, scores: Floats) -> tuple[Floats, Floats]:
        if scores is not self.scores:
            self.value(scores, 0)
        return self.found[1], self.found[2]


def _keep(place: Path, key: str, fit: Fit) -> None:
    """Write a finished trial."""
    assert isinstance(fit.model, Trees)
    assert fit.model.forest is not None
    place.parent.mkdir(parents=True, exist_ok=True)
    trail = [asdict(epoch) for epoch in fit.trail]
    header = {"key": key, "trail": trail, "best": fit.best.number, "stopped": fit.stopped}
    write_arrays(place, {**header, "trees": fit.model.forest.trees()}, {})


def _finished(place: Path | None, key: str) -> tuple[Forest, Epoch, tuple[Epoch, ...], str] | None:
    """A trial that an earlier run finished: its trees, the epoch that was kept, its trail, and why it stopped."""
    if place is None or not place.exists():
        return None
    header, _ = read_arrays(place, check=True)
    if header.get("key") != key:
        raise InputError("the checkpoint is of another run", path=place, hint="delete it to start anew")
    try:
        trail = tuple(Epoch(**epoch) for epoch in header["trail"])
        return Forest.of(header["trees"]), trail[int(header["best"]) - 1], trail, str(header["stopped"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"not a checkpoint: {error}", path=place) from error
