"""What more training queries would bring: a saturating law m(n) = c - a n^-p, fitted to a learning curve.

The law is fitted by least squares to the means of all sizes. Its uncertainty has two sources, which are kept apart:
which queries were drawn to train on (the repeats of the curve), and which to test on. What the law says of larger
sizes is an extrapolation: it goes to four times the present size at most, and where the interval is too wide to act
upon, the answer says so.

>>> sizes = np.array([16, 32, 64, 128, 256])
>>> law = fit_law(sizes, 0.5 - 0.8 * sizes**-0.5)
>>> round(float(law.gain(256, 1024)), 4)
0.025
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Ints
from fliprank.errors import UsageError

__all__ = ["FARTHEST", "Gain", "Law", "Outlook", "Resampled", "fit_law", "outlook", "resample"]

FARTHEST = 4
"""How many times the present size a law is trusted for."""
POWERS = tuple(2.0 ** np.arange(-3.0, 1.75, 0.25))
"""The exponents p that are tried: from laws that rise for long to those that are soon at their end."""
MIDDLE = (0.5,)
"""The exponent of the law whose interval is taken where that with a free exponent is narrower: when the best exponent
is a large one, it is so in all samples, and their spread says too little."""
LEAST_SIZES, LEAST_REPEATS = 4, 3
"""A law of three numbers needs more sizes than that, and the spread of repeats at least three."""
WORTH = 0.005
"""A gain that is worth new judgements; of measures that can exceed 1, this share of the present value."""
SAMPLES = 1000


class Law(NamedTuple):
    """m(n) = c - a n^-p; arrays of laws where many were fitted at once."""

    c: Floats
    a: Floats
    p: Floats

    def at(self, size: float) -> Floats:
        """The measure with so many training queries."""
        return self.c - self.a * size**-self.p

    def gain(self, before: float, after: float) -> Floats:
        """How much more it is with `after` than with `before` training queries."""
        return self.a * (before**-self.p - after**-self.p)


def fit_law(sizes: ArrayLike, means: ArrayLike, powers: Sequence[float] = POWERS) -> Law:
    """The law of each curve in `means` (..., sizes), by least squares; its exponent is one of `powers`.

    Sizes weigh as many times as they have queries: the more are drawn, the less it matters which.
    """
    n, curves = np.asarray(sizes, np.float64), np.asarray(means, np.float64)
    if len(n) < 3 or curves.shape[-1] != len(n):
        raise UsageError(f"a law is fitted to means at three sizes or more, not at {len(n)}")
    root = np.sqrt(n)
    best = np.full(curves.shape[:-1], np.inf)
    c, a, p = (np.zeros(best.shape) for _ in range(3))
    for power in powers:
        design = np.stack([root, -root * n**-power], axis=1)
        found = (curves * root) @ np.linalg.pinv(design).T
        errors = (((curves * root) - found @ design.T) ** 2).sum(axis=-1)
        better = errors < best
        best = np.where(better, errors, best)
        c, a = np.where(better, found[..., 0], c), np.where(better, found[..., 1], a)
        p = np.where(better, power, p)
    return Law(c, a, p)


class Resampled(NamedTuple):
    """The mean at each size, and what it could as well have been: samples by other repeats and other test queries.

    `grown` are the samples by repeats with the deviations of each size made as large as those of repeats whose training
    sets have nothing in common. Where each repeat was tested on queries of its own, they are left as they are: most of
    what these repeats differ by is their test queries, which are not shared.
    """

    means: Floats
    by_repeats: Floats
    grown: Floats
    by_test: Floats
    crossed: bool
    repeats: int
    queries: int

    def half_width(self, statistic: Callable[[Floats], Floats], confidence: float = 0.95) -> float:
        """Half of a t-interval of a number that `statistic` gives for each line of means.

        The variances of both sources are added. Where each repeat was tested on queries of its own, these are a part of
        what repeats differ by, and are taken out there. Degrees of freedom are Satterthwaite's.
        """
        from scipy.special import stdtrit

        plain, grown, test = (float(np.var(statistic(part))) for part in (self.by_repeats, self.grown, self.by_test))
        training = grown if self.crossed or plain == 0 else grown * max(0.0, 1 - test / plain)
        total = training + test
        if total == 0:
            return 0.0
        degrees = total**2 / (training**2 / max(self.repeats - 1, 1) + test**2 / max(self.queries - 1, 1))
        return float(stdtrit(degrees, (1 + confidence) / 2)) * math.sqrt(total)


def resample(values: Floats, overlap: Floats, crossed: bool, samples: int = SAMPLES, seed: int = 0) -> Resampled:
    """Means of `values` (sizes x repeats x queries, NaN where a query was not tested on), and `samples` of each kind.

    `crossed` says that all repeats were tested on the same queries; `overlap` is the share of training queries that two
    repeats have in common, by size. Repeats and test queries are drawn with replacement.
    """
    rng = np.random.default_rng(seed)
    sizes, repeats, queries = values.shape
    known = ~np.isnan(values[0])
    filled = np.where(known, values, 0.0)
    means = filled.sum(axis=(1, 2)) / known.sum()
    sums, count, by_test = filled.sum(axis=1).T, known.sum(axis=0), np.empty((samples, sizes))
    for start in range(0, samples, 64):
        some = min(64, samples - start)
        drawn = rng.multinomial(queries, np.full(queries, 1 / queries), size=some)
        by_test[start : start + some] = (drawn @ sums) / (drawn @ count)[:, None]
    rows = filled.sum(axis=2) / known.sum(axis=1)
    drawn = rng.multinomial(repeats, np.full(repeats, 1 / repeats), size=samples)
    fair = math.sqrt(repeats / max(repeats - 1, 1))  # a mean of few varies less when drawn from itself
    deviations = fair * (drawn @ (rows - rows.mean(axis=1, keepdims=True)).T) / repeats
    grown = means + deviations * (_growth(overlap, repeats) if crossed else 1.0)
    return Resampled(means, means + deviations, grown, by_test, crossed, repeats, int((count > 0).sum()))


def _growth(overlap: Floats, repeats: int) -> Floats:
    """Repeats whose training sets share a part f differ by 1 - f of the variance of independent ones; the variance of
    their mean is f + (1 - f) / repeats of it. Beyond f = 0.8 too little is left to tell from."""
    shared = np.minimum(overlap, 0.8)
    grown: Floats = np.sqrt((shared * repeats + 1 - shared) / (1 - shared))
    return grown


@dataclass(frozen=True)
class Gain:
    """What going from `before` to `after` training queries would bring, with its interval; positive is better."""

    before: int
    after: int
    gain: float
    low: float
    high: float


@dataclass(frozen=True)
class Outlook:
    """Would more judgements help? `verdict` is "rising", "flat", "unclear" or "too few"; `sentence` says it in words.

    `gains` are for twice and four times the present size. From `enough` training queries on, twice as many would bring
    less than `worth`; None where that lies beyond what can be told.
    """

    verdict: str
    sentence: str
    gains: tuple[Gain, ...] = ()
    enough: int | None = None
    worth: float = WORTH


def outlook(
    sizes: ArrayLike, found: Resampled, measure: str, present: int, sign: float = 1.0, confidence: float = 0.95
) -> Outlook:
    """The answer for a curve whose means (and samples of them) are in `found`, on the scale of the measure."""
    n = np.asarray(sizes, np.int64)
    if len(n) < LEAST_SIZES or found.repeats < LEAST_REPEATS:
        have = f"{len(n)} sizes and {found.repeats} repeats, where {LEAST_SIZES} and {LEAST_REPEATS} are needed"
        return Outlook("too few", f"Too few queries to tell what more judgements would bring: {have}.")
    law, gains = fit_law(n, sign * found.means), []
    for after in (2 * present, FARTHEST * present):
        gain = float(law.gain(present, after))
        half = max(
            found.half_width(partial(_gains, n, powers, present, after, sign), confidence)
            for powers in (POWERS, MIDDLE)
        )
        gains.append(Gain(present, after, gain, gain - half, gain + half))
    now = float(law.at(present))
    worth = WORTH if 0 <= now <= 1 else WORTH * abs(now)
    verdict = "rising" if gains[0].low > 0 else "unclear"
    verdict = "flat" if gains[0].high < worth else verdict
    enough = _enough(law, present, worth)
    return Outlook(verdict, _sentence(verdict, gains, enough, measure, worth), tuple(gains), enough, worth)


def _gains(sizes: Ints, powers: Sequence[float], before: int, after: int, sign: float, means: Floats) -> Floats:
    return fit_law(sizes, sign * means, powers).gain(before, after)


def _enough(law: Law, present: int, worth: float) -> int | None:
    """From which size on twice as many bring less than `worth`, as far as the law reaches; a round number."""
    for size in np.geomspace(present, FARTHEST * present / 2, 50):
        if law.gain(size, 2 * size) < worth:
            unit = 10 ** max(0, math.floor(math.log10(size)) - 1)
            return int(math.ceil(size / unit - 1e-9) * unit)
    return None


def _sentence(verdict: str, gains: list[Gain], enough: int | None, measure: str, worth: float) -> str:
    """One or two sentences for a person."""
    first, last = gains
    step = f"from {first.before:,} to {first.after:,} training queries"
    if verdict == "flat":
        return (
            f"The curve is flat: {step} {measure} would change by {first.gain:+.4f} ({first.low:+.4f} to "
            f"{first.high:+.4f}), less than {worth:.3g}: more judgements of this kind would hardly help."
        )
    if verdict == "unclear":
        return (
            f"Too few queries to tell: {step} {measure} would change by {first.gain:+.4f}, but anything from "
            f"{first.low:+.4f} to {first.high:+.4f} is in line with this curve."
        )
    told = (
        f"F{step[1:]} {measure} would improve by about {first.gain:.3f} ({first.low:.3f} to {first.high:.3f}), "
        f"to {last.after:,} by {last.gain:.3f} ({last.low:.3f} to {last.high:.3f})"
    )
    if enough is None:
        return f"{told}."
    return f"{told}; from about {enough:,} on, twice as many would bring less than {worth:.3g}."
