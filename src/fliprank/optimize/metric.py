"""The measure as a function of the free parameters: what direct searches climb, higher always better.

It changes in steps and has no gradient (Taylor et al. 2006, section 2.2), so all that a search can do is to ask for its
value: at a point, or along a line, where a model that is linear there need not score its rows anew.

>>> from fliprank.measures import parse_measure
>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[5, 0.3], [9, 0.1], [4, 0.2]])
>>> metric = Metric(Linear().prepared(rows, 0).at([0, 1, 0.5]), rows, parse_measure("RR"))
>>> metric.at(np.array([0, 1, 0.5])), metric.line(np.array([0, 1, 0.5]), np.array([0, 0, 1.0]))(2.0)
(0.5, 1.0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.measures.base import Measure
from fliprank.models.base import Model
from fliprank.models.parameters import Parameters
from fliprank.optimize.fit import Recorder

__all__ = ["GAIN", "Mapper", "Metric", "box_of", "stepped", "thread_map", "widths_of"]

GAIN = 1e-12
"""The least gain that counts."""

Mapper = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""What does one thing to each of many: `map`, or the same on several threads."""


@dataclass(frozen=True, eq=False)
class Metric:
    """The measure of a model on candidates, its sign turned where smaller is better."""

    model: Model
    candidates: Candidates
    measure: Measure

    @classmethod
    def of(cls, recorder: Recorder) -> Metric:
        return cls(recorder.model, recorder.train, recorder.measure)

    @property
    def sign(self) -> float:
        """What makes higher values better."""
        return -1.0 if self.measure.smaller_is_better else 1.0

    def model_at(self, values: Floats) -> Model:
        """The model with these free parameters."""
        return self.model.at(self.model.params.with_free(values))

    def of_scores(self, scores: Floats) -> float:
        """Its value where rows have these scores."""
        return self.sign * self.measure.value(scores, self.candidates)

    def at(self, values: Floats) -> float:
        """Its value at these free parameters."""
        return self.of_scores(self.model_at(values).score(self.candidates))

    def line(self, values: Floats, along: Floats) -> Callable[[float], float]:
        """Its value at values + x along, as a function of x."""
        model = self.model_at(values)
        if not model.linear_along(along):
            return lambda x: self.at(stepped(self.model.params, values, along, x))
        base, slope = model.score(self.candidates), model.slope(self.candidates, along)
        return lambda x: self.of_scores(base + x * slope)


def stepped(params: Parameters, values: Floats, along: Floats, x: float) -> Floats:
    """The free values x further along, within bounds where rounding would lead past one."""
    moved = np.clip(values + x * along, params.free_lower, params.free_upper)
    return np.where(along == 0, values, moved)


def widths_of(params: Parameters, span: float) -> Floats:
    """How far a search goes to either side at first: half the way between bounds, times `span`.

    Where a parameter has no two bounds: its value or 1, whichever is larger, times `span`.

    >>> widths_of(Parameters.of({"k": (1.2, 0, np.inf), "b": (0.7, 0, 1), "w": 0.1}), 1.0).tolist()
    [1.2, 0.5, 1.0]
    """
    if not 0 < span < np.inf:
        raise UsageError(f"span is a number above 0, not {span}")
    between = (params.free_upper - params.free_lower) / 2
    return span * np.where(np.isfinite(between), between, np.maximum(1.0, np.abs(params.free_values)))


def box_of(params: Parameters, span: float) -> tuple[Floats, Floats]:
    """(lowest, highest) free values to look at: the bounds, and where there is none, a width from the value."""
    values, width = params.free_values, widths_of(params, span)
    lower, upper = params.free_lower, params.free_upper
    low, high = (np.where(np.isfinite(end), end, values + side * width) for end, side in ((lower, -1), (upper, 1)))
    return low, high


@contextmanager
def thread_map() -> Iterator[Mapper]:
    """A `map` on as many threads as kernels would use here; each kernel then uses one. Results keep their order."""
    threads = numba.get_num_threads()
    if threads == 1:
        yield map
        return
    with ThreadPoolExecutor(threads, initializer=numba.set_num_threads, initargs=(1,)) as pool:
        yield pool.map
