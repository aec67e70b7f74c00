"""A line through parameter space: its direction, by a parameter's name or as a vector, and how far bounds let it go.

Points on it are free values + x direction: the trajectories of Robertson & Zaragoza 2007, section 3, that are straight.

>>> from math import inf
>>> params = Parameters.of({"k": (1.2, 0, inf), "b": (0.7, 0, 1)})
>>> along = direction_of(params, "b")
>>> along.tolist(), reach(params, params.free_values, along)
([0.0, 1.0], (-0.7, 0.30000000000000004))
>>> direction_of(params, {"k": 1, "b": -0.5}).tolist()
[1.0, -0.5]
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats
from fliprank.errors import UsageError
from fliprank.models.parameters import Parameters

__all__ = ["Direction", "direction_of", "finite_reach", "moved", "reach", "slot_of"]

Direction = str | Mapping[str, float] | ArrayLike
"""The name of a free parameter, rates by name for several, or a vector with one rate per free parameter."""


def slot_of(params: Parameters, name: str) -> int:
    """The place in the free vector of the parameter of this name, or of the value that it shares."""
    if name in params.free_names:
        return params.free_names.index(name)
    if name in params.names:
        slot = int(params.slots[params.names.index(name)])
        if slot >= 0:
            return slot
        raise UsageError(f"{name} is fixed at {params[name]:g}: it can't move")
    near = get_close_matches(name, params.free_names, 5) or list(params.free_names[:20])
    raise UsageError(f"no free parameter is called {name!r}; there are {', '.join(near) or 'none'}")


def direction_of(params: Parameters, given: Direction) -> Floats:
    """The direction in the space of free parameters."""
    along = np.zeros(len(params.free_names))
    if isinstance(given, str):
        along[slot_of(params, given)] = 1.0
        return along
    if isinstance(given, Mapping):
        for name, value in given.items():
            along[slot_of(params, name)] = value
        return along
    vector: Floats = np.asarray(given, np.float64)
    if vector.shape != along.shape:
        raise UsageError(f"a direction of shape {vector.shape} for {len(along)} free parameters")
    if not np.isfinite(vector).all():
        raise UsageError(
            f"the direction along {params.free_names[int((~np.isfinite(vector)).argmax())]} is not a finite number"
        )
    return vector


def reach(params: Parameters, values: Floats, along: Floats) -> tuple[float, float]:
    """How far a line from `values` stays within the bounds, downwards and upwards."""
    moving = along != 0
    with np.errstate(invalid="ignore"):
        one = (params.free_lower - values)[moving] / along[moving]
        other = (params.free_upper - values)[moving] / along[moving]
    low = np.minimum(one, other).max(initial=-np.inf)
    high = np.maximum(one, other).min(initial=np.inf)
    return float(min(low, 0.0)), float(max(high, 0.0))


def finite_reach(params: Parameters, values: Floats, along: Floats) -> tuple[float, float]:
    """The same, but without bounds only until some parameter has moved by twice its size (and at least by 2)."""
    low, high = reach(params, values, along)
    moving = along != 0
    room = float((2 * np.maximum(np.abs(values[moving]), 1.0) / np.abs(along[moving])).min(initial=np.inf))
    return max(low, -room), min(high, room)


def moved(params: Parameters, along: Floats, x: float) -> Parameters:
    """The parameters x further along; moved back within their bounds if rounding led past one."""
    values = params.free_values + x * along
    still = along == 0
    inside = np.clip(values, params.free_lower, params.free_upper)
    return params.with_free(np.where(still, params.free_values, inside))
