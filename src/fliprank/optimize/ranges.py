"""How firmly the judgements fix a parameter: the range of its values that is statistically as good as the tuned one.

All other parameters stay as tuned. A value is as good if the mean over queries of (measure there - measure as tuned)
is not below 0 by more than chance would have it (paired t interval). A wide range says: this parameter hardly matters
here, set it as you like; a narrow one: the data know.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.csr import positions
from fliprank.data.order import order_rows
from fliprank.measures import Measure
from fliprank.models import Model
from fliprank.models.parameters import Parameters
from fliprank.parallel import run_parallel

__all__ = ["Range", "as_good_ranges"]

POINTS = 24
"""Values that are tried for each parameter."""

DEEP = 200
"""So many first rows of a query are ranked again at each value."""

REACH = 16.0
"""Parameters without an upper bound are tried up to so many times their value."""


class Range(NamedTuple):
    """From low to high; `open_low` and `open_high` say that the end is only where the search ended."""

    low: float
    high: float
    open_low: bool = False
    open_high: bool = False

    def __str__(self) -> str:
        return f"{'≤ ' if self.open_low else ''}{self.low:.3g} to {'≥ ' if self.open_high else ''}{self.high:.3g}"


def as_good_ranges(
    model: Model, rows: Candidates, measure: Measure, confidence: float = 0.95, jobs: int | None = None
) -> dict[str, Range]:
    """The range of each free parameter that is as good as the value it has.

    Rows that are neither judged nor among the first DEEP of a query are left out.
    """
    from scipy.stats import t

    params, rows = model.params, _first_rows(model, rows)
    best = measure.paired(measure.per_query(model.score(rows), rows))
    sign = measure.sign
    critical = float(t.ppf(0.5 + confidence / 2, max(len(best) - 1, 1)))

    def good(slot: int, value: float) -> bool:
        values = params.free_values.copy()
        values[slot] = value
        moved = model.at(params.with_free(values))
        gap = sign * (measure.paired(measure.per_query(moved.score(rows), rows)) - best)
        error = critical * float(gap.std(ddof=1)) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
        return float(gap.mean()) + error >= 0.0

    def search(slot: int) -> Range:
        tried, value = _tried(params, slot), float(params.free_values[slot])
        low, open_low = _walk(lambda x: good(slot, x), value, tried[tried < value][::-1])
        high, open_high = _walk(lambda x: good(slot, x), value, tried[tried > value])
        # A bound of the parameter is an end in itself.
        return Range(
            low, high, open_low and low > params.free_lower[slot], open_high and high < params.free_upper[slot]
        )

    found = run_parallel([partial(search, slot) for slot in range(len(params.free_names))], jobs)
    return dict(zip(params.free_names, found, strict=True))


def _first_rows(model: Model, rows: Candidates) -> Candidates:
    if model.whole_queries:
        return rows
    order = order_rows(model.score(rows), rows.offsets, rows.docids)
    kept = ~np.isnan(rows.labels)
    kept[order[positions(rows.offsets) < DEEP]] = True
    return rows.take(kept)


def _tried(params: Parameters, slot: int) -> Floats:
    """Values to try, in rising order: evenly between bounds, else by factors; the bounds themselves among them."""
    low, high, value = params.free_lower[slot], params.free_upper[slot], float(params.free_values[slot])
    if np.isfinite(low) and np.isfinite(high):
        return np.linspace(low, high, POINTS + 1)
    size = abs(value) or 1.0
    factors = np.geomspace(1 / REACH, REACH, POINTS + 1)
    spread = np.concatenate([-size * factors[::-1], [0.0], size * factors])
    return np.unique(np.clip(spread, low, high))


def _walk(good: Callable[[float], bool], value: float, tried: Floats) -> tuple[float, bool]:
    """(the last value in a row that is good, whether all were): the edge between is found by halving."""
    inside = value
    for x in tried:
        if not good(float(x)):
            outside = float(x)
            for _ in range(4):
                middle = (inside + outside) / 2
                inside, outside = (middle, outside) if good(middle) else (inside, middle)
            return inside, False
        inside = float(x)
    return inside, True
