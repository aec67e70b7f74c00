"""A measure along a line as a step function: where it is best, how wide that is, and its local optima.

Each query changes at some of its flips; the steps of all queries, in the order of x, add up to the steps of the mean.
No rows are needed: steps that were found elsewhere, query by query, are enough (`steps.join_steps`).

>>> steps = Steps(np.array([0, 2]), np.array([-2.0, 2.0]), np.array([0.5, 1.0]), np.array([0.25]))
>>> path = step_function(steps, parse_measure("RR"), -np.inf, np.inf)
>>> path.breaks.tolist(), path.values.tolist(), path.maximum.width
([-2.0, 2.0], [0.25, 0.5, 1.0], inf)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Ints
from fliprank.errors import UsageError
from fliprank.kernels import kernel
from fliprank.landscape.steps import Steps
from fliprank.measures import Measure, parse_measure

__all__ = ["Plateau", "StepFunction", "add_up", "ascending", "step_function"]

ROUNDING = 1e-13
"""A change of the sum over queries below this, relative to the largest value of a query, is rounding."""

SAME = 1e-12
"""Values closer than this, relative to the largest, are equal."""


class Plateau(NamedTuple):
    """A stretch of the line, from low to high, on which the measure has one value."""

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


@dataclass(frozen=True, eq=False, repr=False)
class StepFunction:
    """The measure is `values[i]` between `breaks[i - 1]` and `breaks[i]`; the line goes from `low` to `high`.

    `steps` holds the same for each query. `resolution` is 0 where every step is known exactly. Otherwise the line was
    looked at in cells of this width, and steps that undo each other within a cell may be missing: then the numbers of
    steps and of optima are lower bounds (`at_least`). `true_ends` tells for either end whether the line itself ends
    there (at a bound of a parameter, or at infinity) or whether it is only cut off there and goes on beyond.
    """

    measure: Measure
    low: float
    high: float
    breaks: Floats
    values: Floats
    steps: Steps = field(repr=False)
    resolution: float = field(default=0.0, kw_only=True)
    true_ends: tuple[bool, bool] = field(default=(True, True), kw_only=True)

    def __repr__(self) -> str:
        best, (optima, steps) = self.maximum, self.counts()
        found = f"{self.measure} at best {best.value:.4f}, from {best.low:.4g} to {best.high:.4g}"
        return f"{type(self).__name__}: {found}; {steps} steps, {optima} local optima"

    @property
    def at_least(self) -> bool:
        """Whether the numbers of steps and of local optima are lower bounds only."""
        return self.resolution > 0

    def at(self, x: float) -> float:
        """The measure at x; on a break, the value beyond it."""
        self._check(x)
        return float(self.values[np.searchsorted(self.breaks, x, "right")])

    def _check(self, x: float) -> None:
        if not self.low <= x <= self.high or np.isinf(x):
            raise UsageError(f"{x} is not on the line between {self.low} and {self.high}")

    def per_query(self, x: float) -> Floats:
        """The value of each query at x, which must not be a break."""
        return self.steps.at(x)

    @cached_property
    def responds(self) -> NDArray[np.bool_]:
        """Which steps of queries are more than rounding."""
        change = np.abs(self.steps.value - self.steps.before())
        return np.greater(change, SAME * float(np.abs(self.steps.value).max(initial=0.0)))

    @cached_property
    def edges(self) -> Floats:
        """Where stretches end: `low`, the breaks, `high`."""
        return np.concatenate([[self.low], self.breaks, [self.high]])

    def plateau(self, i: int) -> Plateau:
        """The i-th stretch."""
        return Plateau(float(self.values[i]), float(self.edges[i]), float(self.edges[i + 1]))

    @property
    def maximum(self) -> Plateau:
        """The best value on the line (the least, if smaller is better), on the widest stretch that has it."""
        return max(self._best(), key=lambda stretch: stretch.width)

    @property
    def width(self) -> float:
        """How wide the maximum is."""
        return self.maximum.width

    def local_maxima(self) -> list[Plateau]:
        """The local optima, from left to right: stretches with a worse one on either side.

        The first and the last stretch have a neighbour on one side only. They are counted if that one is worse and the
        line ends there (`true_ends`). Where the line is cut off, a better stretch may follow: see `cut_off`.
        """
        return [self.plateau(i) for i in self._peaks() if not self._is_cut(i)]

    def cut_off(self) -> list[Plateau]:
        """Stretches that would be local optima if the line ended where it is cut off: not known, and not counted."""
        return [self.plateau(i) for i in self._peaks() if self._is_cut(i)]

    def counts(self) -> tuple[str, str]:
        """How many local optima and steps there are, in words: "41", "at least 41", "41, 1 cut off"."""
        least, cut = "at least " if self.at_least else "", len(self.cut_off())
        optima = f"{least}{len(self.local_maxima()):,}" + (f", {cut} cut off" if cut else "")
        return optima, f"{least}{len(self.breaks):,}"

    def _peaks(self) -> list[int]:
        """The stretches that are better than their neighbours, where they have any."""
        signed = np.concatenate([[-np.inf], self.measure.sign * self.values, [-np.inf]])
        found: list[int] = np.flatnonzero((signed[1:-1] > signed[:-2]) & (signed[1:-1] > signed[2:])).tolist()
        return found

    def _is_cut(self, i: int) -> bool:
        return (i == 0 and not self.true_ends[0]) or (i == len(self.values) - 1 and not self.true_ends[1])

    def best_point(self, prefer: Literal["widest", "nearest"] = "widest", start: float = 0.0) -> float:
        """An x with the best value: the middle of the widest stretch that has it, or of the nearest to `start`."""

        def wanted(stretch: Plateau) -> tuple[float, float]:
            away = max(stretch.low - start, start - stretch.high, 0.0)
            return (-stretch.width, away) if prefer == "widest" else (away, -stretch.width)

        return self.inside(min(self._best(), key=wanted), start)

    def inside(self, stretch: Plateau, start: float = 0.0) -> float:
        """The middle of a stretch. If it has no end: `start`, or if need be as far in as breaks lie apart."""
        if np.isfinite(stretch.width):
            return stretch.low + stretch.width / 2
        lowest, highest = stretch.low + self._spacing, stretch.high - self._spacing
        return float(min(max(start, lowest), highest))

    def middles(self) -> Floats:
        """A point inside each stretch: its middle if it has two ends."""
        with np.errstate(invalid="ignore"):  # infinite ends
            out = self.edges[:-1] + np.diff(self.edges) / 2
        for i in (0, len(out) - 1):
            out[i] = self.inside(self.plateau(i))
        return out

    @property
    def _spacing(self) -> float:
        """How far apart breaks lie on average."""
        return float(np.ptp(self.breaks)) / (len(self.breaks) - 1) if len(self.breaks) > 1 else 1.0

    def _best(self) -> list[Plateau]:
        """The stretches with the best value."""
        signed = self.measure.sign * self.values
        best = signed.max() - SAME * max(1.0, float(np.abs(signed).max()))
        return [self.plateau(int(i)) for i in np.flatnonzero(signed >= best)]


def step_function(
    steps: Steps,
    measure: str | Measure,
    low: float,
    high: float,
    *,
    resolution: float = 0.0,
    true_ends: tuple[bool, bool] | None = None,
) -> StepFunction:
    """The measure over all queries from the steps of each. By default a line is cut off at its finite ends."""
    chosen = parse_measure(measure)
    breaks, values = add_up(steps, chosen)
    ends = (bool(np.isinf(low)), bool(np.isinf(high))) if true_ends is None else true_ends
    known = (chosen, float(low), float(high), breaks, values, steps)
    return StepFunction(*known, resolution=resolution, true_ends=ends)


def add_up(steps: Steps, measure: Measure) -> tuple[Floats, Floats]:
    """(breaks, values between them) of the measure over all queries."""
    first, value, before = (measure.paired(part) for part in (steps.first, steps.value, steps.before()))
    largest = max(float(np.abs(first).max(initial=0.0)), float(np.abs(value).max(initial=0.0)))
    order = ascending(steps.x)
    breaks, sums = _add_up(steps.x, value - before, order, float(first.sum()), ROUNDING * largest)
    values = sums / max(len(steps.first), 1)
    return breaks, measure.unpaired(values)


def ascending(x: Floats) -> Ints:
    """What sorts x. A number and its index are packed into one word: words sort three times as fast as indices.

    >>> ascending(np.array([2.0, -1.0, 0.5, -3.0])).tolist()
    [3, 1, 2, 0]
    """
    words = _pack(x.view(np.uint64))
    words.sort()
    order, sorted_ = _unpack(words, x)
    return order if sorted_ else np.argsort(x)


@kernel
def _pack(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Words that sort as the numbers of these bits do, each with its index in place of its lowest bits."""
    words, width = np.empty(len(bits), np.uint64), 1
    while width < len(bits):
        width *= 2
    place, sign = np.uint64(width - 1), np.uint64(1 << 63)
    for i in range(len(bits)):
        ordered = ~bits[i] if bits[i] & sign else bits[i] | sign
        words[i] = (ordered & ~place) | np.uint64(i)
    return words


@kernel
def _unpack(words: NDArray[np.uint64], x: Floats) -> tuple[Ints, bool]:
    """The indices in sorted words, and whether they sort x.

    Numbers that differ in their lowest bits only are put in order by insertion, unless there are too many.
    """
    order, width, moves = np.empty(len(words), np.int64), 1, 0
    while width < len(words):
        width *= 2
    place = np.uint64(width - 1)
    for i in range(len(words)):
        own, at = np.int64(words[i] & place), i
        while at > 0 and x[order[at - 1]] > x[own] and moves <= 4 * len(words):
            order[at] = order[at - 1]
            at, moves = at - 1, moves + 1
        order[at] = own
    return order, moves <= 4 * len(words)


@kernel
def _add_up(x: Floats, change: Floats, order: Ints, first: float, rounding: float) -> tuple[Floats, Floats]:
    """(breaks, sums between them) from all queries' changes. What each sum loses to rounding is carried along."""
    breaks, sums = np.empty(len(x)), np.empty(len(x) + 1)
    total, lost, count, i = first, 0.0, 0, 0
    sums[0] = first
    while i < len(order):
        now = x[order[i]]
        while i < len(order) and x[order[i]] == now:
            own = change[order[i]]
            new = total + own
            lost += (total - new) + own if abs(total) >= abs(own) else (own - new) + total
            total = new
            i += 1
        if abs(total + lost - sums[count]) > rounding:
            breaks[count], sums[count + 1] = now, total + lost
            count += 1
    return breaks[:count], sums[: count + 1]
