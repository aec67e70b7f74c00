"""The best model on a line: an exact line search from Python.

>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[5, 0.3], [9, 0.1], [4, 0.2]])
>>> model = Linear().prepared(rows, 0).at([0, 1, 0.5])
>>> found = line_search(model, rows, "w.2", "RR")
>>> found.before, found.value, found.model.params["w.2"] > 0.5
(0.5, 1.0, True)
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.landscape.direction import Direction
from fliprank.landscape.model_trajectory import ModelTrajectory, trajectory
from fliprank.measures import Measure, parse_measure
from fliprank.models.base import Model
from fliprank.optimize.problem import GAIN

__all__ = ["LineSearchResult", "line_search"]


class LineSearchResult(NamedTuple):
    """The end of a line search: how far it went, the measure there and where it began, the model, the whole line."""

    step: float
    value: float
    before: float
    model: Model
    path: ModelTrajectory


@checked
def line_search(
    model: Model,
    candidates: Candidates,
    direction: Direction,
    measure: str | Measure = DEFAULT_MEASURE,
    prefer: Literal["widest", "nearest"] = "widest",
) -> LineSearchResult:
    """The best model on the line from `model` along `direction`: a parameter's name, or a vector of free parameters.

    The line ends at the parameters' bounds. Where nothing on it is better, the model stays as it is. Where scores are
    not linear along it, the line is known to a resolution only (`landscape.trajectory`).
    """
    chosen, path = parse_measure(measure), trajectory(model, candidates, direction, measure)
    step = path.best_point(prefer)
    better = path.model_at(step)
    before, value = (chosen.value(each.score(candidates), candidates) for each in (model, better))
    if chosen.sign * (value - before) <= GAIN:
        return LineSearchResult(0.0, before, before, model, path)
    return LineSearchResult(step, value, before, better, path)
