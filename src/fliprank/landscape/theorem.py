"""Theorem 1 of Robertson & Zaragoza 2007, made checkable: measures that respond to the same flips share local optima.

It holds where a line meets one flip at a time: at the edge of an optimum the next flip is bad for one measure, so for
the other, too. MAP and nDCG of binary labels, or nDCG with different gains of the same labels, respond to the same
flips; with a cut-off, or equal gains for two labels, a measure ignores some. `share_optima` checks all of this along
given lines through a training set.

>>> from fliprank.models import Linear
>>> rng = np.random.default_rng(0)
>>> rows = Candidates.of(rng.integers(0, 2, 60), group=[30, 30], features=rng.normal(size=(60, 2)))
>>> model = Linear().prepared(rows, 0)
>>> found = share_optima(model, rows, ["w.1", "w.2"], ["AP", "nDCG"])
>>> found.same_flips, found.share, found.optima
(True, True, 400)
>>> share_optima(model, rows, ["w.1", "w.2"], ["AP", "nDCG@5"]).differences[0].why
'only AP responds to the flip'
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.landscape.direction import Direction
from fliprank.landscape.model_trajectory import ModelTrajectory, trajectory
from fliprank.landscape.step_flips import Wanted, find_pairs
from fliprank.landscape.trajectory import ScoreTrajectory, Trajectory
from fliprank.measures import Measure
from fliprank.models.base import Model

__all__ = ["Agreement", "Difference", "compare_optima", "share_optima"]


class Difference(NamedTuple):
    """An optimum of `measure`, from `low` to `high` on line number `line`, that `other` does not have, or not as wide.

    `x` is the edge where they part, and `why` tells how.
    """

    line: int
    measure: str
    other: str
    low: float
    high: float
    x: float
    why: str


@dataclass(frozen=True)
class Agreement:
    """What was found: how many lines and optima were compared, and each optimum that two measures do not share.

    `same_flips`: whether all measures respond to the same flips on these lines, in the same direction; `one_at_a_time`:
    whether no two flips that any of them responds to coincide. Where both hold, Theorem 1 says that `share` must hold.
    """

    measures: tuple[str, ...]
    lines: int
    optima: int
    same_flips: bool
    one_at_a_time: bool
    differences: tuple[Difference, ...]

    @property
    def share(self) -> bool:
        """Whether the measures share all local optima: where they are, and how wide."""
        return not self.differences

    @property
    def theorem_holds(self) -> bool:
        """False only if something was found that Theorem 1 rules out."""
        return self.share or not (self.same_flips and self.one_at_a_time)

    def __str__(self) -> str:
        names = ", ".join(self.measures)
        told = f"{names}: {self.optima} local optima on {self.lines} lines"
        if self.share:
            return f"{told}, all shared"
        first = self.differences[0]
        where = f"that of {first.measure} from {first.low:g} to {first.high:g} on line {first.line}"
        return f"{told}, {len(self.differences)} not shared; the first: {where}, at {first.x:g} {first.why}"


def share_optima(
    model: Model,
    candidates: Candidates,
    directions: Iterable[Direction] | int | None,
    measures: Sequence[str | Measure],
    low: float | None = None,
    high: float | None = None,
    *,
    seed: int = 0,
) -> Agreement:
    """Whether these measures have the same local optima along lines through the model's parameters.

    `directions`: None means every free parameter, a number that many random ones.
    """
    if len(measures) < 2:
        raise UsageError(f"to compare optima takes two measures or more, not {len(measures)}")
    if directions is None:
        directions = model.params.free_names
    elif isinstance(directions, int):
        directions = np.random.default_rng(seed).normal(size=(directions, len(model.params.free_names)))
    found = [
        compare_optima([trajectory(model, candidates, direction, name, low, high) for name in measures], number)
        for number, direction in enumerate(directions)
    ]
    if not found:
        raise UsageError("there is no direction to look along: give one or more")
    return Agreement(
        found[0].measures,
        len(found),
        sum(each.optima for each in found),
        all(each.same_flips for each in found),
        all(each.one_at_a_time for each in found),
        tuple(difference for each in found for difference in each.differences),
    )


def compare_optima(paths: Sequence[Trajectory], number: int = 0) -> Agreement:
    """The same for trajectories of several measures along one line."""
    responses = [_responses(path) for path in paths]
    peaks = [{(peak.low, peak.high) for peak in path.local_maxima()} for path in paths]
    differences = []
    for i, one in enumerate(paths):
        for j, other in enumerate(paths):
            partings = _partings(one, other, responses[i], responses[j])
            for low, high in sorted(peaks[i] - peaks[j]):
                at = bisect_left(partings, (low, ""))
                edge = (low if np.isfinite(low) else high, "several flips happen at once, and weigh differently")
                x, why = partings[at] if at < len(partings) and partings[at][0] <= high else edge
                differences.append(Difference(number, str(one.measure), str(other.measure), low, high, x, why))
    return Agreement(
        tuple(str(path.measure) for path in paths),
        1,
        sum(map(len, peaks)),
        all(response == responses[0] for response in responses),
        all(_one_at_a_time(path) for path in paths),
        tuple(differences),
    )


Responses = dict[tuple[int, float], float]
"""By query and x: 1 where the query's value becomes better, -1 where it becomes worse."""


def _responding(path: Trajectory) -> tuple[Ints, Floats, Floats]:
    """(query, x, sign) of each step that is more than rounding."""
    some, sign = path.responds, path.measure.sign
    return path.steps.query()[some], path.steps.x[some], sign * np.sign(path.steps.value - path.steps.before())[some]


def _responses(path: Trajectory) -> Responses:
    query, x, sign = _responding(path)
    return dict(zip(zip(query.tolist(), x.tolist(), strict=True), sign.tolist(), strict=True))


def _one_at_a_time(path: Trajectory) -> bool:
    """Whether no two flips happen at once, of different queries or of one: for bracketed steps as far as they tell."""
    query, x, sign = _responding(path)
    if len(np.unique(x)) < len(x):
        return False
    line = path.line if isinstance(path, ModelTrajectory) else path
    if not isinstance(line, ScoreTrajectory):
        return True
    labels = np.nan_to_num(path.candidates.labels)
    together = find_pairs(line.base, line.slope, path.candidates.offsets, labels, Wanted(x, query, sign))[2]
    return bool((together <= 1).all())


def _partings(one: Trajectory, other: Trajectory, ours: Responses, theirs: Responses) -> list[tuple[float, str]]:
    """Where the responses of two measures differ, and how, from left to right."""
    out = []
    for query, x in ours.keys() | theirs.keys():
        mine, their = ours.get((query, x)), theirs.get((query, x))
        if mine is None or their is None:
            out.append((x, f"only {other.measure if mine is None else one.measure} responds to the flip"))
        elif mine != their:
            out.append((x, "they respond to the flip in opposite ways"))
    return sorted(out)
