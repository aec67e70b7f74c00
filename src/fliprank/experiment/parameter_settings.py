"""What a person says about parameters before tuning: fixed, bounded, shared, where to start; on a line or in TOML.

    [start]
    "title.w" = 2.0
    [bounds]
    "title.w" = [0.0, 10.0]
    [fix]
    k = 1.2
    [share]
    b = ["title.b", "body.b"]

>>> from fliprank.models.parameters import Parameters
>>> settings = read_settings(None, fix=["k=0.9"], share=["b"], bounds=["title.w=0:3"])
>>> params = Parameters.of({"k": 1.2, "title.w": 1.0, "title.b": (0.7, 0, 1), "body.b": (0.7, 0, 1)})
>>> print(settings.apply(params))
parameter  value  lower  upper  default
k            0.9   -inf    inf      0.9  fixed
title.w        1      0      3        1
title.b      0.7      0      1      0.7  shared: b
body.b       0.7      0      1      0.7  shared: b
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from fliprank.data.files import StrPath, open_text
from fliprank.errors import InputError, UsageError
from fliprank.models.parameters import Parameters

__all__ = ["ParameterSettings", "read_settings"]


@dataclass(frozen=True)
class ParameterSettings:
    """`fix` holds parameters (None: at their value), `share` gives several one value; a name ending counts for all."""

    start: dict[str, float] = field(default_factory=dict)
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)
    fix: dict[str, float | None] = field(default_factory=dict)
    free: tuple[str, ...] = ()
    share: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def apply(self, params: Parameters) -> Parameters:
        """These parameters as asked; what is given as start or fixed value is the default to compare with, too."""
        lower, upper = params.lower.copy(), params.upper.copy()
        for name, (low, high) in self.bounds.items():
            places = params.positions(name)
            _check_within(
                f"bounds of {name}, {low:g} to {high:g}", (low, high), lower[places].max(), upper[places].min()
            )
            lower[places], upper[places] = low, high
        values, default = params.values.clip(lower, upper), params.default.clip(lower, upper)
        for name, value in {**self.start, **{n: v for n, v in self.fix.items() if v is not None}}.items():
            places = params.positions(name)
            _check_within(f"{name}={value:g}", (value, value), lower[places].max(), upper[places].min())
            values[places] = default[places] = value
        told = replace(params, lower=lower, upper=upper, values=values, default=default)
        told = told.release([name for key in self.free for name in _named(told, key)]).fix(self.fix)
        groups = {key: names or _ending(told, key) for key, names in self.share.items()}
        shared = [name for names in groups.values() for name in names]
        if twice := next((name for name in shared if shared.count(name) > 1), None):
            raise UsageError(f"share: {twice} can share one value only")
        return told.tie(groups)


def _check_within(what: str, span: tuple[float, float], lower: float, upper: float) -> None:
    """An error where a span is none, or goes beyond what the model can be given: a b above 1 scores documents NaN."""
    low, high = span
    if not low <= high:
        raise UsageError(f"{what}: the first must be a number that is not above the second")
    if low < lower or high > upper:
        raise UsageError(f"{what}: out of bounds, it lies between {lower:g} and {upper:g}")


def _named(params: Parameters, key: str) -> tuple[str, ...]:
    """The parameter of this name, or all whose names end in `.key`."""
    ending = tuple(name for name in params.names if name.endswith(f".{key}"))
    return (key,) if key in (*params.names, *params.free_names) or not ending else ending


def _ending(params: Parameters, key: str) -> tuple[str, ...]:
    """The free parameters whose names end in `.key`."""
    found = tuple(
        name for name, free in zip(params.names, params.free, strict=True) if free and name.endswith(f".{key}")
    )
    if not found:
        raise UsageError(f"share {key}: no free parameter's name ends in .{key}; there are {', '.join(params.names)}")
    return found


def read_settings(
    path: StrPath | None,
    *,
    start: Sequence[str] = (),
    bounds: Sequence[str] = (),
    fix: Sequence[str] = (),
    free: Sequence[str] = (),
    share: Sequence[str] = (),
) -> ParameterSettings:
    """Settings from a TOML file, and from `name=value` lines that come after it and win over it."""
    told = _from_toml(path) if path is not None else ParameterSettings()
    return ParameterSettings(
        {**told.start, **{name: _number(value, text) for name, value, text in _pairs(start)}},
        {**told.bounds, **{name: _span(value, text) for name, value, text in _pairs(bounds)}},
        {**told.fix, **{name: None if value is None else _number(value, text) for name, value, text in _pairs(fix)}},
        (*told.free, *free),
        {**told.share, **{name: tuple(value.split(",")) if value else () for name, value, _ in _pairs(share)}},
    )


def _pairs(lines: Sequence[str]) -> list[tuple[str, str | None, str]]:
    """(name, value or None, the line itself) of `name=value` or `name`."""
    parts = [(*line.partition("="), line) for line in lines]
    return [(name.strip(), value.strip() if equals else None, line) for name, equals, value, line in parts]


def _number(value: str | None, line: str) -> float:
    try:
        return float(value or "")
    except ValueError:
        raise UsageError(f"{line!r}: it is name=number, such as title.w=2.5") from None


def _span(value: str | None, line: str) -> tuple[float, float]:
    low, colon, high = (value or "").partition(":")
    if not colon:
        raise UsageError(f"{line!r}: it is name=low:high, such as title.w=0:10")
    try:
        return float(low or "-inf"), float(high or "inf")
    except ValueError:
        raise UsageError(f"{line!r}: it is name=low:high, such as title.w=0:10") from None


def _from_toml(path: StrPath) -> ParameterSettings:
    """The settings in a file; whatever is not of the form shown above is an error that names it."""
    try:
        with open_text(path) as lines:
            given = tomllib.loads("".join(lines).removeprefix("\ufeff"))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # of a number with thousands of digits, Python says ValueError
        raise InputError(f"can't be read as TOML: {error}", path=path) from error
    kinds = {"start", "bounds", "fix", "free", "share"}
    if unknown := sorted(given.keys() - kinds):
        raise InputError(f"unknown part {unknown[0]!r}; there are {', '.join(sorted(kinds))}", path=path)

    def fail(what: str) -> NoReturn:
        raise InputError(f"{what}; see `fliprank tune --help` for the form", path=path)

    def table(kind: str) -> dict[str, Any]:
        found = given.get(kind, {})
        try:
            return dict(_flat(found)) if isinstance(found, dict) else fail(f"{kind} is not a table")
        except RecursionError:
            fail(f"{kind} has tables within tables without end")

    def number(value: Any, what: str) -> float:
        good = isinstance(value, int | float) and not isinstance(value, bool) and value == value
        try:
            return float(value) if good else fail(f"{what} is not a number")
        except OverflowError:
            fail(f"{what} is larger than any number that can be computed with")

    def listed(value: Any, what: str) -> tuple[str, ...]:
        good = isinstance(value, list) and all(isinstance(name, str) for name in value)
        return tuple(value) if good else fail(f"{what} is not a list of names")

    spans = {}
    for name, pair in table("bounds").items():
        if not isinstance(pair, list) or len(pair) != 2:
            fail(f"bounds of {name} are not [low, high]")
        spans[name] = (number(pair[0], f"bounds of {name}"), number(pair[1], f"bounds of {name}"))
    return ParameterSettings(
        {name: number(value, f"start of {name}") for name, value in table("start").items()},
        spans,
        {name: None if value is True else number(value, f"fix of {name}") for name, value in table("fix").items()},
        listed(given.get("free", []), "free"),
        {name: listed(value, f"share of {name}") for name, value in table("share").items()},
    )


def _flat(table: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Names with dots as they are meant: TOML reads title.w without quotes as a table `title` that has a `w`."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value
