"""Subsampling for training: all labelled rows, and a few of the unlabelled ones, taken to be irrelevant.

How many to draw, in the papers:

    subsample(rows, rng)                                  as many as are rated, at most 30 (SoftRank, section 4.1)
    subsample(rows, rng, times=3, at_most=None)           three times the labelled (nested ranker, section 4)
    subsample(rows, rng, "average", at_most=None)         the average number rated per query (Taylor et al. 2006, 3.1)
    subsample(rows, rng, 1000)                            1000 in each query (nested ranker: validation)

>>> nan = float("nan")
>>> rows = Candidates.of([2, nan, nan, nan, 1, nan, nan], qid=list("aaaabbb"), docids=list("ABCDEFG"))
>>> few = subsample(rows, 0)
>>> few.docids.tolist(), few.labels.tolist(), few.sizes.tolist()
(['A', 'D', 'E', 'F'], [2.0, 0.0, 1.0, 0.0], [2, 2])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Ints
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.csr import positions
from fliprank.data.scattered import ScatteredRows
from fliprank.errors import UsageError

__all__ = ["subsample", "subsample_by_spec", "subsample_parts"]

SKIPPED = 1 << 20
"""Random numbers that are passed over at a time."""


@checked
def subsample(
    candidates: Candidates,
    rng: int | np.random.Generator,
    per_query: Literal["rated", "average"] | int = "rated",
    *,
    times: float = 1.0,
    at_most: int | None = 30,
) -> Candidates:
    """Keep the labelled rows and draw unlabelled ones, which get the label 0; rows stay in their order.

    Drawn in each query: `times` the number that it has labelled ("rated") or that queries have labelled on average
    ("average"), rounded, at most `at_most`; or the number that is given, which `times` and `at_most` do not change. A
    query with fewer unlabelled rows gives them all. Where no row is unlabelled, the candidates come back as they are.
    """
    return _subsample(candidates, np.random.default_rng(rng), per_query, times, at_most)


def _subsample(
    candidates: Candidates, rng: np.random.Generator, per_query: str | float, times: float, at_most: int | None
) -> Candidates:
    unlabelled = np.isnan(candidates.labels)
    wanted = _wanted(candidates, unlabelled, per_query, times, at_most)
    if not unlabelled.any():
        return candidates
    keep = ~unlabelled
    keep[_draw(np.flatnonzero(unlabelled), candidates.query_of_rows()[unlabelled], wanted, rng)] = True
    kept = candidates.take(keep)
    return replace(kept, labels=np.nan_to_num(kept.labels, nan=0.0))


def subsample_parts(
    rows: ScatteredRows,
    rng: np.random.Generator,
    per_query: str | int = "rated",
    *,
    times: float = 1.0,
    at_most: int | None = 30,
) -> ScatteredRows:
    """The same of rows in parts, and the same rows, however they are parted: each part draws where the last one ended.

    The generator is left as it would be after all draws.
    """
    drawn, rated = np.array(list(rows.each(_label_counts)), np.int64).reshape(-1, 2).T
    if not drawn.sum():
        return rows
    mean = float(rated.sum() / rows.queries) if per_query == "average" else None
    return rows.rewritten(_subsample_part, per_query, times, at_most, mean, own=(_states(rng, drawn),))


def _states(rng: np.random.Generator, drawn: Ints) -> list[Any]:
    """The generator's state before the draws of each part; it is left as it is after all of them."""
    states = []
    for count in drawn.tolist():
        states.append(rng.bit_generator.state)
        _pass_over(rng, count)
    return states


def _pass_over(rng: np.random.Generator, count: int) -> None:
    """Leave the generator as it would be after `count` numbers of `random`."""
    bits = rng.bit_generator
    if isinstance(bits, np.random.PCG64 | np.random.PCG64DXSM):  # one step for each number, and steps can be skipped
        before = bits.state
        bits.advance(count)
        bits.state = {**before, "state": bits.state["state"]}  # the half of a step that is kept for later stays kept
    else:
        for low in range(0, count, SKIPPED):
            rng.random(min(SKIPPED, count - low))


def _label_counts(part: Candidates) -> tuple[int, int]:
    """How many rows nobody judged, and how many somebody did."""
    unlabelled = int(np.isnan(part.labels).sum())
    return unlabelled, len(part) - unlabelled


def _subsample_part(
    part: Candidates, per_query: str | int, times: float, at_most: int | None, mean: float | None, state: Any
) -> Candidates:
    """One part, by a generator in this state; `mean` is the average number rated of all queries."""
    bits = getattr(np.random, state["bit_generator"])()
    bits.state = state
    return _subsample(part, np.random.Generator(bits), per_query if mean is None else mean, times, at_most)


@overload
def subsample_by_spec(
    candidates: Candidates, sample: float | str | None, rng: int | np.random.Generator
) -> Candidates: ...
@overload
def subsample_by_spec(
    candidates: Candidates | ScatteredRows, sample: float | str | None, rng: int | np.random.Generator
) -> Candidates | ScatteredRows: ...
def subsample_by_spec(
    candidates: Candidates | ScatteredRows, sample: float | str | None, rng: int | np.random.Generator
) -> Candidates | ScatteredRows:
    """`subsample` by what the command line says; None keeps all rows.

    "rated" draws as many unlabelled rows as the query has labelled ones, at most 30 (SoftRank); "average" as many as
    queries have labelled on average (Taylor et al. 2006); a number draws so many for each labelled row.
    """
    if sample is None:
        return candidates
    draw: Callable[..., Candidates | ScatteredRows]
    if isinstance(candidates, ScatteredRows):
        draw = partial(subsample_parts, candidates, np.random.default_rng(rng))
    else:
        draw = partial(subsample, candidates, rng)
    if sample == "rated":
        return draw()
    if sample == "average":
        return draw("average", at_most=None)
    try:
        times = float(sample)
    except ValueError:
        known = "'rated', 'average', or a number of unlabelled rows per labelled one"
        raise UsageError(f"sample={sample!r}: expected {known}") from None
    return draw(times=times, at_most=None)


def _wanted(
    candidates: Candidates, unlabelled: NDArray[np.bool_], per_query: str | float, times: float, at_most: int | None
) -> Ints:
    """How many unlabelled rows to draw in each query, if it has them; a float is the average of queries elsewhere."""
    if isinstance(per_query, float):
        return np.full(candidates.queries, np.floor(times * per_query + 0.5)).astype(np.int64)
    if isinstance(per_query, int) and not isinstance(per_query, bool) and per_query >= 0:
        return np.full(candidates.queries, per_query)
    if per_query not in ("rated", "average"):
        raise UsageError(f"per_query must be 'rated', 'average' or a number of rows, not {per_query!r}")
    if not 0 <= times < np.inf or (at_most is not None and at_most < 0):
        raise UsageError(f"times and at_most can't be negative or infinite: times={times}, at_most={at_most}")
    rated = np.bincount(candidates.query_of_rows()[~unlabelled], minlength=candidates.queries).astype(np.float64)
    if per_query == "average" and len(rated):
        rated[:] = rated.mean()
    most = len(candidates) if at_most is None else at_most
    return np.minimum(np.floor(times * rated + 0.5), most).astype(np.int64)


def _draw(rows: Ints, query: Ints, wanted: Ints, rng: int | np.random.Generator) -> Ints:
    """At random and without repetition, `wanted[q]` of the rows of each query q; `query` rises."""
    shuffled = np.lexsort((np.random.default_rng(rng).random(len(rows)), query))
    place = positions(np.searchsorted(query, np.arange(len(wanted) + 1)))
    return rows[shuffled[place < wanted[query]]]
