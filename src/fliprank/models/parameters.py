"""Parameters: a named vector with bounds and defaults. An optimizer sees only the part of it that it may move.

A parameter is free, fixed, or shares its value with others: the 9-parameter ranker of Taylor et al. 2006 (section 3.2)
fixes k and frees one w and one b per field; with one b for all fields it has 6. `slots` maps the full vector to the
free one; its transpose, `pull_free`, sums the gradients of parameters that share a value.

>>> full = Parameters.of({"k": (1.2, 0, inf), "title.b": (0.7, 0, 1), "body.b": (0.5, 0, 1)})
>>> few = full.fix("k").tie({"b": ["title.b", "body.b"]})
>>> few.free_names, few.free_values.tolist(), few.pull_free([5.0, 1.0, 2.0]).tolist()
(('b',), [0.7], [3.0])
>>> few.with_free([0.3]).values.tolist()
[1.2, 0.3, 0.3]
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from math import inf
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fliprank.arrays import Floats, Ints, frozen
from fliprank.errors import UsageError

__all__ = ["Parameters"]

LONGEST_TABLE = 60


@dataclass(frozen=True, eq=False, repr=False)
class Parameters:
    """Named values. `slots` holds the index of each in the free vector, -1 where it is fixed; by default all are free.

    Without bounds a parameter may take any value. `default` is 0 unless given, or the bound next to 0.
    """

    names: tuple[str, ...]
    values: Floats
    lower: Floats = None  # type: ignore[assignment]
    upper: Floats = None  # type: ignore[assignment]
    default: Floats = None  # type: ignore[assignment]
    slots: Ints = None  # type: ignore[assignment]
    free_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.names)
        lower = np.full(count, -inf) if self.lower is None else self.lower
        upper = np.full(count, inf) if self.upper is None else self.upper
        default = np.clip(np.zeros(count), lower, upper) if self.default is None else self.default
        every = {"values": self.values, "lower": lower, "upper": upper, "default": default}
        for name, array in every.items():
            object.__setattr__(self, name, _vector(array, count, name))
        if self.slots is None:
            object.__setattr__(self, "slots", np.arange(count))
            object.__setattr__(self, "free_names", tuple(self.names))
        object.__setattr__(self, "slots", frozen(self.slots, np.int64))
        object.__setattr__(self, "names", tuple(self.names))
        self._check()

    def _check(self) -> None:
        if len(self._index) < len(self.names):
            twice = next(name for i, name in enumerate(self.names) if self._index[name] != i)
            raise UsageError(f"two parameters are called {twice!r}")
        for bad, what in (
            (~np.isfinite(self.values) | ~np.isfinite(self.default), "is not a number"),
            (~(self.lower <= self.upper), "has no value between its bounds"),
            ((self.default < self.lower) | (self.default > self.upper), "has its default outside its bounds"),
        ):
            if bad.any():
                raise UsageError(f"parameter {self.names[int(bad.argmax())]!r} {what}")
        self.check_bounds()

    def check_bounds(self) -> None:
        """Raise an error that names the values that are outside their bounds."""
        outside = (self.values < self.lower) | (self.values > self.upper)
        if outside.any():
            said = [
                f"{self.names[i]} = {self.values[i]:g} is not in [{self.lower[i]:g}, {self.upper[i]:g}]"
                for i in np.flatnonzero(outside)[:5]
            ]
            raise UsageError("out of bounds: " + "; ".join(said))

    @classmethod
    def of(cls, values: Mapping[str, float | tuple[float, float, float]]) -> Self:
        """From {name: value} or {name: (value, lower, upper)}; the values are the defaults too."""
        rows = [value if isinstance(value, tuple) else (value, -inf, inf) for value in values.values()]
        value, lower, upper = np.array(rows, np.float64).reshape(-1, 3).T
        return cls(tuple(values), value, lower, upper, value)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> float:
        """The value of the parameter, or of the shared value, of this name."""
        return float(self.values[self.positions(name)[0]])

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def positions(self, name: str) -> Ints:
        """The index of `name`, with those of all that share its value."""
        slot = self.slots[self._index[name]] if name in self._index else -1
        if slot < 0 and name in self._index:
            return np.array([self._index[name]])
        if slot < 0 and name in self.free_names:
            slot = self.free_names.index(name)
        if slot < 0:
            known = list(dict.fromkeys((*self.names, *self.free_names)))
            near = get_close_matches(name, known, 5) or known[:5]
            raise UsageError(f"no parameter is called {name!r}; near it: {', '.join(near) or 'there are none'}")
        return np.flatnonzero(self.slots == slot)

    def at(self, vector: ArrayLike) -> Self:
        """With other values for all parameters, fixed ones too. They may lie outside the bounds: see `clip`."""
        values = _vector(vector, len(self), "values")
        if not np.isfinite(values).all():
            raise UsageError(f"parameter {self.names[int((~np.isfinite(values)).argmax())]!r} is not a number")
        return self._with_values(values)

    def _with_values(self, values: Floats) -> Self:
        """Without checks, since they were made before: optimizers come by here at every step."""
        other = copy.copy(self)
        object.__setattr__(other, "values", frozen(values, np.float64))
        return other

    def replace(self, values: Mapping[str, float] | None = None, /, **named: float) -> Self:
        """With other values for some names; those that share a value follow. Raises if a value is out of bounds."""
        new = self.values.copy()
        for name, value in {**(values or {}), **named}.items():
            new[self.positions(name)] = value
        other = self.at(new)
        other.check_bounds()
        return other

    def clip(self) -> Self:
        """With each value moved to the nearest one within its bounds."""
        return self._with_values(np.clip(self.values, self.lower, self.upper))

    @property
    def free(self) -> NDArray[np.bool_]:
        """Which parameters an optimizer may move."""
        return np.greater_equal(self.slots, 0)

    @cached_property
    def _first(self) -> Ints:
        """For each entry of the free vector, the first parameter that it drives."""
        first: Ints = np.unique(self.slots[self.free], return_index=True)[1]
        return np.flatnonzero(self.free)[first]

    @property
    def free_values(self) -> Floats:
        """The values that an optimizer may move, one for each of `free_names`."""
        return self.values[self._first]

    @property
    def free_lower(self) -> Floats:
        """The lower bounds of the free vector: of parameters that share a value, the highest."""
        out = np.full(len(self.free_names), -inf)
        np.maximum.at(out, self.slots[self.free], self.lower[self.free])
        return out

    @property
    def free_upper(self) -> Floats:
        """The upper bounds of the free vector: of parameters that share a value, the lowest."""
        out = np.full(len(self.free_names), inf)
        np.minimum.at(out, self.slots[self.free], self.upper[self.free])
        return out

    @property
    def free_scale(self) -> Floats:
        """The unit in which a step of each free parameter is measured: the size of its default, 1 where that is 0.

        mu is in the thousands, b below 1: a gradient method that treats them alike never moves mu.

        >>> Parameters.of({"lambda": (0.1, 0, 1), "mu": (2000, 0, inf), "weight": 0}).free_scale.tolist()
        [0.1, 2000.0, 1.0]
        """
        size = np.abs(self.default[self._first])
        return np.where(size > 0, size, 1.0)

    def with_free(self, vector: ArrayLike) -> Self:
        """With other values for the free vector; fixed parameters stay."""
        given, new, free = _vector(vector, len(self.free_names), "free values"), self.values.copy(), self.free
        new[free] = given[self.slots[free]]
        return self.at(new)

    def pull_free(self, gradient: ArrayLike) -> Floats:
        """The gradient with respect to the free vector, from that with respect to all parameters."""
        given, free = _vector(gradient, len(self), "gradient"), self.free
        return np.bincount(self.slots[free], given[free], len(self.free_names)).astype(np.float64)

    def direction(self, free: ArrayLike) -> Floats:
        """A direction of the free vector as one of all parameters: 0 for those that are fixed."""
        given, out, moved = _vector(free, len(self.free_names), "direction"), np.zeros(len(self)), self.free
        out[moved] = given[self.slots[moved]]
        return out

    def fix(self, names: str | Iterable[str]) -> Self:
        """With these parameters fixed at their values; those that share a value are fixed together."""
        keys = self.drivers()
        for name in _listed(names):
            for i in self.positions(name):
                keys[i] = None
        return self.driven_by(keys)

    def release(self, names: str | Iterable[str]) -> Self:
        """With these parameters free, each on its own."""
        keys = self.drivers()
        for name in _listed(names):
            for i in self.positions(name):
                keys[i] = self.names[i]
        return self.driven_by(keys)

    def tie(self, groups: Mapping[str, Sequence[str]]) -> Self:
        """With one free value per group, named by its key, for all its names; it starts as the value of the first."""
        keys, new = self.drivers(), self.values.copy()
        for key, names in groups.items():
            places = np.concatenate([self.positions(name) for name in names])
            if self.lower[places].max() > self.upper[places].min():
                raise UsageError(f"{', '.join(names)} can't share a value: their bounds have none in common")
            if key in self._index and self._index[key] not in places:
                raise UsageError(f"another parameter is called {key!r}: give the shared value a name of its own")
            for i in places:
                keys[i] = key
            new[places] = new[places[0]]
        other = self.driven_by(keys).at(new)
        other.check_bounds()
        return other

    def drivers(self) -> list[str | None]:
        """For each parameter the name of the free value that drives it; None where it is fixed."""
        return [self.free_names[slot] if slot >= 0 else None for slot in self.slots.tolist()]

    def driven_by(self, keys: Sequence[str | None]) -> Self:
        """With these `drivers`: equal names share a value, None is fixed."""
        free_names = tuple(dict.fromkeys(key for key in keys if key is not None))
        slot = {key: i for i, key in enumerate(free_names)}
        return replace(self, slots=np.array([-1 if k is None else slot[k] for k in keys], int), free_names=free_names)

    def __repr__(self) -> str:
        return str(self) if self.names else "Parameters()"

    def __str__(self) -> str:
        rows = [("parameter", "value", "lower", "upper", "default", "")]
        for i, key in enumerate(self.drivers()[:LONGEST_TABLE]):
            note = "fixed" if key is None else "" if key == self.names[i] else f"shared: {key}"
            value, lower, upper, default = (f"{c[i]:g}" for c in (self.values, self.lower, self.upper, self.default))
            rows.append((self.names[i], value, lower, upper, default, note))
        widths = [max(len(row[c]) for row in rows) for c in range(5)]
        lines = [
            "  ".join((row[0].ljust(widths[0]), *(row[c].rjust(widths[c]) for c in range(1, 5)), row[5])).rstrip()
            for row in rows
        ]
        more = len(self) - LONGEST_TABLE
        return "\n".join([*lines, f"... and {more} more"] if more > 0 else lines)


def _vector(values: ArrayLike, count: int, what: str) -> Floats:
    """`values` as a read-only vector of `count` numbers; an array that can still be written to is copied."""
    given = np.asarray(values, np.float64)
    if given.shape != (count,):
        raise UsageError(f"{what}: expected {count} numbers, got an array of shape {given.shape}")
    vector: Floats = frozen(given.copy() if given.flags.writeable else given, np.float64)
    return vector


def _listed(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
