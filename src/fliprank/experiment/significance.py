"""Is one ranker better than another, or were the queries kind? Paired comparisons over queries.

If two rankers are alike, a query's difference is as likely to have the opposite sign: `randomisation` and `max_t` flip
these signs. Random words are a function of (seed, counter): a result depends neither on threads nor on the order of
queries.

>>> randomisation([0.1, 0.2, 0.1, 0.3, 0.1, 0.2])  # every query better: 2 of 2^6 sign patterns are as extreme
0.03125
>>> holm([0.01, 0.04, 0.03]).tolist()
[0.03, 0.06, 0.06]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fliprank.arrays import Floats, Ints, frozen
from fliprank.errors import InputError, UsageError, indented, printable
from fliprank.experiment.signed_ranks import signed_rank_p
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.random_words import random_word

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Comparison",
    "Comparisons",
    "bootstrap_interval",
    "compare_values",
    "holm",
    "max_t",
    "paired_t",
    "randomisation",
    "wilcoxon",
]

CHUNK = 1024
"""Permutations per task: enough to pay for the task's table of signed sums, few enough to stay in the cache."""

MOST_SHOWN = 20
"""Comparisons that are shown when a person looks at a list of them."""


@dataclass(frozen=True, repr=False)
class Comparison:
    """One run against the baseline on one measure: the mean difference, run minus baseline, and the evidence for it.

    `p` holds "t", "randomisation" and "wilcoxon"; `corrected` holds "holm" (of the randomisation p) and "max_t", both
    over all comparisons made together. Of `queries`, the run is `better` on some, `worse` on some, `tied` on the rest.
    """

    run: str
    baseline: str
    measure: str
    difference: float
    interval: tuple[float, float]
    p: dict[str, float]
    corrected: dict[str, float]
    queries: int
    better: int
    worse: int
    tied: int

    def as_dict(self) -> dict[str, Any]:
        """The fields, fit for JSON: NaN becomes None."""

        def plain(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: plain(item) for key, item in value.items()}
            if isinstance(value, tuple):
                return [plain(item) for item in value]
            return None if isinstance(value, float) and math.isnan(value) else value

        return {name: plain(value) for name, value in vars(self).items()}

    def __repr__(self) -> str:
        low, high = self.interval
        evidence = f"{low:+.4f} to {high:+.4f}, p = {p_value(self.p['randomisation'])}, {self.queries:,} queries"
        return printable(f"{self.run} - {self.baseline}: {self.measure} {self.difference:+.4f} ({evidence})")


class Comparisons(list[Comparison]):
    """Comparisons that were made together, one per run and measure, and thus corrected together."""

    def to_frame(self) -> pl.DataFrame:
        """A polars frame with one row per comparison: the difference, its interval, each p, and queries by sign."""
        import polars as pl

        plain = ("run", "baseline", "measure", "difference")
        rows = []
        for c in self:
            low, high = c.interval
            tests = {f"p_{name}": p for name, p in {**c.p, **c.corrected}.items()}
            counts = {"queries": c.queries, "better": c.better, "worse": c.worse, "tied": c.tied}
            rows.append({name: getattr(c, name) for name in plain} | {"low": low, "high": high, **tests, **counts})
        return pl.DataFrame(rows)

    def __repr__(self) -> str:
        more = [f"... and {len(self) - MOST_SHOWN} more"] if len(self) > MOST_SHOWN else []
        return indented(f"{len(self)} comparisons", *map(repr, self[:MOST_SHOWN]), *more) if self else "[]"


def p_value(value: float) -> str:
    """As people read it.

    >>> p_value(0.0123), p_value(0.00001)
    ('0.0123', '1e-05')
    """
    return "-" if math.isnan(value) else f"{value:.4f}" if value >= 1e-4 else f"{value:.0e}"


def compare_values(
    values: Mapping[str, Mapping[str, ArrayLike]],
    baseline: str,
    *,
    permutations: int = 100_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparisons:
    """Every other run against `baseline` on every measure; `values[run][measure]` has a number for each query.

    A query that is NaN in either run is left out of that pair, and a pair with no query left has NaN for its numbers.
    max_t needs queries that all pairs share, so it leaves out a query that any pair leaves out.
    """
    rows = _differences(values, baseline)
    table = np.array(list(rows.values()))
    used = ~np.isnan(table)
    pairs = [_compare_pair(row[kept], permutations, confidence, seed) for row, kept in zip(table, used, strict=True)]
    stepwise = holm([p["randomisation"] for _, p in pairs])
    joint = np.full(len(table), np.nan)
    some = used.any(axis=1)
    shared = used[some].all(axis=0)
    if some.sum() == 1:  # of a single comparison max-T is the randomisation test, which was made
        joint[some] = [p["randomisation"] for (_, p), used_here in zip(pairs, some, strict=True) if used_here]
    elif some.any() and shared.any():
        joint[some] = max_t(table[some][:, shared], permutations, seed)
    return Comparisons(
        Comparison(
            run=run,
            baseline=baseline,
            measure=measure,
            difference=float(row[kept].mean()) if kept.any() else math.nan,
            interval=interval,
            p=p,
            corrected={"holm": float(stepwise[i]), "max_t": float(joint[i])},
            queries=int(kept.sum()),
            better=int((row > 0).sum()),
            worse=int((row < 0).sum()),
            tied=int((row == 0).sum()),
        )
        for i, ((run, measure), row, kept, (interval, p)) in enumerate(zip(rows, table, used, pairs, strict=True))
    )


def _compare_pair(
    differences: Floats, permutations: int, confidence: float, seed: int
) -> tuple[tuple[float, float], dict[str, float]]:
    """The interval of the mean and the p of each test."""
    if len(differences) == 0:
        return (math.nan, math.nan), dict.fromkeys(("t", "randomisation", "wilcoxon"), math.nan)
    p = {
        "t": paired_t(differences),
        "randomisation": randomisation(differences, permutations, seed),
        "wilcoxon": wilcoxon(differences),
    }
    return bootstrap_interval(differences, confidence, seed=seed), p


def _differences(values: Mapping[str, Mapping[str, ArrayLike]], baseline: str) -> dict[tuple[str, str], Floats]:
    """Run minus baseline for each (run, measure), checked: same measures, same number of queries, no infinity."""
    if baseline not in values:
        raise UsageError(f"unknown baseline {baseline!r}: the runs are {', '.join(map(repr, values)) or 'none'}")
    measures = list(values[baseline])
    if len(values) < 2 or not measures:
        raise UsageError("nothing to compare: a baseline, another run and a measure are needed")
    numbers: dict[tuple[str, str], Floats] = {}
    for run, by_measure in values.items():
        if set(by_measure) != set(measures):
            raise UsageError(f"run {run!r} has measures {sorted(by_measure)}, the baseline has {sorted(measures)}")
        for measure in measures:
            array = np.asarray(by_measure[measure], np.float64)
            if array.ndim != 1 or np.isinf(array).any():
                raise InputError(f"{measure} of run {run!r} must be one number per query, finite or NaN")
            numbers[run, measure] = array
    queries = len(numbers[baseline, measures[0]])
    if queries == 0:
        raise InputError("no queries to compare")
    for (run, measure), array in numbers.items():
        if len(array) != queries:
            expected = f"{measures[0]} of the baseline {baseline!r} has {queries}"
            raise InputError(f"{measure} of run {run!r} has {len(array)} queries, {expected}")
    return {key: array - numbers[baseline, key[1]] for key, array in numbers.items() if key[0] != baseline}


def paired_t(differences: ArrayLike) -> float:
    """Two-sided p of Student's paired t-test. Differences that are all 0 give 1, any other single query NaN."""
    from scipy.special import stdtr

    values = _checked(differences)
    largest = np.abs(values).max()
    if largest == 0:
        return 1.0
    if len(values) == 1:
        return math.nan
    values = values / largest  # so that squares neither vanish nor overflow
    error = values.std(ddof=1) / math.sqrt(len(values))
    return float(2 * stdtr(len(values) - 1, -abs(values.mean()) / error)) if error > 0 else 0.0


def wilcoxon(differences: ArrayLike) -> float:
    """Two-sided p of Wilcoxon's signed-rank test on the differences that are not 0; 1 if there are none."""
    return signed_rank_p(_checked(differences))


def randomisation(differences: ArrayLike, permutations: int = 100_000, seed: int = 0) -> float:
    """Two-sided p of Fisher's sign-flip test of the mean: how often random signs give a mean at least as far from 0.

    Exact, by enumeration, if the queries that differ have at most `permutations` sign patterns; else
    (count + 1) / (permutations + 1), which counts the observed signs too and so keeps the test valid.
    """
    return float(max_t(_checked(differences)[np.newaxis], permutations, seed)[0])


def max_t(differences: ArrayLike, permutations: int = 100_000, seed: int = 0) -> Floats:
    """Adjusted two-sided p of each row (comparisons x queries) by step-down max-T (Westfall and Young 1993, ch. 4).

    A query's sign is flipped in all rows at once, which keeps the correlation that Holm throws away. The sum of
    squares Q does not change with signs, so t² = (n-1) S² / (n Q - S²) grows with |S| / √Q: the statistic here, which
    has no division by a zero variance. A row of zeros has p 1. Enumerates as `randomisation` does.
    """
    rows = _checked(differences, dimensions=2)
    if permutations < 1:
        raise UsageError(f"permutations must be at least 1, not {permutations}")
    rows = _unit_rows(rows)
    observed = np.abs(rows.sum(axis=1))
    order = np.argsort(-observed, kind="stable")
    signed = _canonical(rows[order])
    queries = signed.shape[1]
    # Equal sums in exact arithmetic must stay equal: allow for the rounding of sums and of the differences themselves.
    slack = math.sqrt(queries) * max(1e-12, queries * np.finfo(np.float64).eps)
    thresholds = frozen(observed[order] - slack, np.float64)
    if queries < 63 and 2**queries <= permutations:
        patterns = 2 ** max(queries - 1, 0)  # one sign can stay: a pattern and its opposite have the same |S|
        p = _exceedances(signed, thresholds, patterns, np.uint64(0), True) / patterns
    else:
        p = (_exceedances(signed, thresholds, permutations, _key(seed), False) + 1) / (permutations + 1)
    adjusted = np.empty(len(rows))
    adjusted[order] = np.maximum.accumulate(p)
    return adjusted


def _unit_rows(rows: Floats) -> Floats:
    """Rows of unit length, zeros left as they are; by way of the largest value, so that no square overflows."""
    for order in (np.inf, 2):
        size = np.linalg.norm(rows, order, axis=1, keepdims=True)
        rows = rows / np.where(size > 0, size, 1.0)
    return rows


def _canonical(rows: Floats) -> Floats:
    """The same columns in one order and sign, whatever the order of queries and whichever run is the baseline.

    Columns of zeros go. None of this changes the distribution over all sign patterns, only what a seed draws from it.
    """
    columns = rows[:, (rows != 0).any(axis=0)]
    if columns.size:
        first = np.take_along_axis(columns, (columns != 0).argmax(axis=0)[np.newaxis], axis=0)
        columns = columns * np.sign(first)
        columns = columns[:, np.lexsort(columns[::-1])]
    canonical: Floats = frozen(columns, np.float64)
    return canonical


@parallel_kernel
def _exceedances(rows: Floats, thresholds: Floats, patterns: int, key: np.uint64, exact: bool) -> Ints:
    """For each row, how many sign patterns have a largest |S| among it and the rows after that reaches its threshold.

    Four queries have 16 signed sums: with those in a table, a word of 64 signs costs 16 additions.
    """
    words = (rows.shape[1] + 63) // 64
    counts = np.zeros(((patterns + CHUNK - 1) // CHUNK, len(rows)), np.int64)
    for chunk in prange(len(counts)):
        start = chunk * CHUNK
        signs = np.empty((min(CHUNK, patterns - start), words), np.uint64)
        for i in range(len(signs)):
            for w in range(words):
                # Signed and unsigned together would be a float, without the last 11 bits.
                signs[i, w] = np.uint64(start + i) if exact else random_word(key, (start + i) * words + w)
        largest = np.zeros(len(signs))
        table = np.empty((words * 16, 16))
        for row in range(len(rows) - 1, -1, -1):
            _signed_sums(rows[row], table)
            for i in range(len(signs)):
                largest[i] = max(largest[i], abs(_signed_total(table, signs[i])))
                counts[chunk, row] += largest[i] >= thresholds[row]
    total: Ints = counts.sum(axis=0)
    return total


@kernel
def _signed_sums(values: Floats, table: Floats) -> None:
    """Fill `table[g, bits]` with the sum of values 4g to 4g+3, those whose bit is set negated."""
    for g in range(len(table)):
        for bits in range(16):
            total = 0.0
            for k in range(min(4, len(values) - 4 * g)):
                value = values[4 * g + k]
                total += -value if (bits >> k) & 1 else value
            table[g, bits] = total


@kernel
def _signed_total(table: Floats, signs: NDArray[np.uint64]) -> float:
    """The sum of the table's values at each four bits of `signs`; four partial sums, as one would wait for itself."""
    a = b = c = d = 0.0
    for w in range(len(signs)):
        word = signs[w]
        for g in range(16 * w, 16 * w + 16, 4):
            a += table[g, word & np.uint64(15)]
            b += table[g + 1, (word >> np.uint64(4)) & np.uint64(15)]
            c += table[g + 2, (word >> np.uint64(8)) & np.uint64(15)]
            d += table[g + 3, (word >> np.uint64(12)) & np.uint64(15)]
            word >>= np.uint64(16)
    return (a + b) + (c + d)


def bootstrap_interval(
    differences: ArrayLike, confidence: float = 0.95, samples: int = 10_000, seed: int = 0, method: str = "bca"
) -> tuple[float, float]:
    """Bootstrap interval of the mean: "bca" (bias-corrected and accelerated, Efron 1987) or "percentile".

    Equal differences give that point twice; a single query says nothing of the spread and gives (NaN, NaN).
    """
    values = np.sort(_checked(differences))
    if not 0 < confidence < 1:
        raise UsageError(f"confidence must be between 0 and 1, not {confidence}")
    if samples < 1:
        raise UsageError(f"samples must be at least 1, not {samples}")
    if method not in ("bca", "percentile"):
        raise UsageError(f"unknown method {method!r}: expected 'bca' or 'percentile'")
    if len(values) == 1:
        return math.nan, math.nan
    if values[0] == values[-1]:
        return float(values[0]), float(values[0])
    means = _resampled_means(frozen(values, np.float64), samples, _key(seed))
    levels = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    if method == "bca":
        levels = _bca_levels(values, means, levels)
    low, high = np.quantile(means, levels)
    return float(low), float(high)


def _bca_levels(values: Floats, means: Floats, levels: Floats) -> Floats:
    """Where to read the interval: `levels` shifted for the median bias z0 and the skewness a of the mean."""
    from scipy.special import ndtr, ndtri

    centred = values - values.mean()
    slack = 1e-12 * np.abs(values).max()  # a mean equal to the observed one but for rounding counts half
    below = (means < values.mean() - slack).mean() / 2 + (means <= values.mean() + slack).mean() / 2
    z0 = ndtri(np.clip(below, 0.5 / len(means), 1 - 0.5 / len(means)))
    centred = centred / np.abs(centred).max()
    a = (centred**3).sum() / (6 * (centred**2).sum() ** 1.5)
    z = z0 + ndtri(levels)
    shifted: Floats = ndtr(z0 + z / np.maximum(1 - a * z, 1e-9))
    return shifted


@parallel_kernel
def _resampled_means(values: Floats, samples: int, key: np.uint64) -> Floats:
    """Means of `samples` draws with replacement; each half of a word, times n and shifted, is an index."""
    count = len(values)
    words = (count + 1) // 2
    size, half, low = np.uint64(count), np.uint64(32), np.uint64(0xFFFFFFFF)
    means = np.empty(samples)
    for sample in prange(samples):
        total = 0.0
        for w in range(words):
            word = random_word(key, sample * words + w)
            total += values[((word >> half) * size) >> half]
            if 2 * w + 1 < count:
                total += values[((word & low) * size) >> half]
        means[sample] = total / count
    return means


def _key(seed: int) -> np.uint64:
    """A start for `random_word`, far from the starts of neighbouring seeds."""
    return np.uint64(random_word(np.uint64(int(seed) % 2**64), 0))


def holm(p: ArrayLike) -> Floats:
    """Holm's step-down adjusted p, in the order given: the k-th smallest of m times m-k+1, never falling, at most 1.

    NaN stays NaN and is not counted in m.
    """
    values = np.asarray(p, np.float64)
    if values.ndim != 1 or ((values < 0) | (values > 1)).any():
        raise UsageError("p must be a list of numbers from 0 to 1, or NaN")
    adjusted = np.full(len(values), np.nan)
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]  # NaN sorts last
    steps = values[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def _checked(differences: ArrayLike, dimensions: int = 1) -> Floats:
    """`differences` as finite floats, at least one query."""
    values = np.asarray(differences, np.float64)
    if values.ndim != dimensions:
        shape = "one number per query" if dimensions == 1 else "comparisons x queries"
        raise InputError(f"differences must be {shape}, not {values.ndim}-dimensional")
    if values.size == 0:
        raise InputError("no queries to compare")
    if not np.isfinite(values).all():
        raise InputError("differences must be finite", hint="leave out queries without a value")
    return values
