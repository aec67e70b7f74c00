"""Which flips around a model's parameters would gain most: something that a relevance engineer can act on.

Along each parameter the nearest flips on either side that the measure responds to, with the two documents, and what the
measure is once the parameter has moved past them (and so past all flips on the way). Exact for linear parameters.

>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[5, 0.3], [9, 0.1], [4, 0.2]], docids=["a", "b", "c"])
>>> best = flip_gains(Linear().prepared(rows, 0).at([0, 1, 0.5]), rows, measure="RR")[0]
>>> best.parameter, best.start, round(best.value, 3), best.up, best.down, best.kind, best.total
('w.2', 0.5, 0.756, 'a', 'b', 'good', 0.5)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.landscape.direction import Direction, direction_of, reach
from fliprank.landscape.model_trajectory import RESOLUTION, ModelTrajectory, trajectory
from fliprank.landscape.step_flips import Flip, Kind, StepFlips
from fliprank.measures import Measure, parse_measure
from fliprank.models.base import Model

__all__ = ["FlipGain", "flip_gains"]


class FlipGain(NamedTuple):
    """Moving `parameter` from `start` past `value`, the document `up` overtakes `down` in query `qid`.

    `gain` is that flip's, for its query, and `mean_gain` for the mean; `total` is the gain of the mean by all flips
    from `start` to just past `value`. Less than 0 is a loss. `together` counts the pairs of the query with different
    labels that swap there. Along a direction of several parameters `value` is how far it goes, from 0.
    """

    parameter: str
    start: float
    value: float
    qid: str
    up: str
    down: str
    up_label: float
    down_label: float
    kind: Kind
    gain: float
    mean_gain: float
    total: float
    together: int


def flip_gains(
    model: Model,
    candidates: Candidates,
    directions: Iterable[Direction] | None = None,
    measure: str | Measure = DEFAULT_MEASURE,
    *,
    nearest: int = 20,
    resolution: float = RESOLUTION,
) -> list[FlipGain]:
    """The `nearest` flips on either side along each direction, by default each free parameter; the best total first.

    Flips to which the measure does not respond are left out, as are documents that tie at the present values.
    """
    chosen, out = parse_measure(measure), list[FlipGain]()
    params = model.params
    for direction in params.free_names if directions is None else directions:
        low, high = reach(params, params.free_values, direction_of(params, direction))
        if not low < high:  # bounds leave it no room
            continue
        path = trajectory(model, candidates, direction, chosen, resolution=resolution)
        for side in (1, -1):
            out += _nearest(path, side, nearest)
    return sorted(out, key=lambda row: (-row.total, abs(row.value - row.start)))


def _nearest(path: ModelTrajectory, side: int, count: int) -> list[FlipGain]:
    steps, sign = path.steps, path.measure.sign
    x = side * steps.x
    some = np.flatnonzero((x > 0) & path.responds)
    some = some[np.argsort(x[some], kind="stable")][:count]
    after = np.searchsorted(path.breaks, steps.x[some], "right" if side > 0 else "left")
    totals = sign * (path.values[after] - path.value)
    flips = StepFlips(path, some)[:]
    return [_row(path, flip, side, float(total)) for flip, total in zip(flips, totals, strict=True)]


def _row(path: ModelTrajectory, flip: Flip, side: int, total: float) -> FlipGain:
    """Backwards, a flip is undone: who overtook is overtaken."""
    up, down, up_label, down_label, kind = flip.up, flip.down, flip.up_label, flip.down_label, flip.kind
    if side < 0:
        undone: dict[Kind, Kind] = {"good": "bad", "bad": "good", "neutral": "neutral"}
        up, down, up_label, down_label, kind = down, up, down_label, up_label, undone[kind]
    name = path.name
    where = ("direction", 0.0) if name is None else (name, path.parameter(0.0))
    gains = (side * flip.gain, side * flip.mean_gain, total)
    return FlipGain(*where, flip.value, flip.qid, up, down, up_label, down_label, kind, *gains, flip.together)
