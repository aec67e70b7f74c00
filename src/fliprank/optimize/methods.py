"""Methods by name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Protocol

import numpy as np

from fliprank.errors import UsageError
from fliprank.objectives.base import Objective
from fliprank.optimize.black_box import Evolution, Powell
from fliprank.optimize.descent import Adam, Lbfgs
from fliprank.optimize.exact import Exact
from fliprank.optimize.fit import Recorder
from fliprank.optimize.grid import Grid
from fliprank.optimize.line import Brent, Golden, Line
from fliprank.optimize.papers import PRESETS

__all__ = ["DIRECT", "METHODS", "OWN_RULES", "WHOLE", "Method", "make_method", "method_name"]


class Method(Protocol):
    """A frozen dataclass of settings that can run."""

    def run(self, recorder: Recorder, objective: Objective, rng: np.random.Generator) -> None: ...


DIRECT: dict[str, Any] = {
    "exact": Exact,
    "line": Line,
    "golden": Golden,
    "brent": Brent,
    "grid": Grid,
    "powell": Powell,
    "evolution": Evolution,
}
"""Methods that climb the measure itself, and need no objective."""

WHOLE = {"grid", "evolution"}
"""Those that look everywhere, and gain nothing from several starts."""

METHODS: dict[str, Any] = {"lbfgs": Lbfgs, "adam": Adam, **DIRECT, **PRESETS}

OWN_RULES = {*DIRECT, *PRESETS}
"""Methods that know by themselves when to start anew and when to stop."""


def method_name(method: str, objective: Objective) -> str:
    """The name of a method; "auto" is Adam for LambdaRank, whose gradient belongs to no function, else L-BFGS."""
    if method == "auto":
        return "adam" if objective.name == "lambdarank" else "lbfgs"
    if method not in METHODS:
        raise UsageError(f"unknown method {method!r}; there are auto, {', '.join(METHODS)}")
    return method


def make_method(method: str, objective: Objective, **settings: Any) -> Method:
    """The method of this name with these settings; the others are its own."""
    name = method_name(method, objective)
    known = {f.name for f in fields(METHODS[name])}
    if unknown := sorted(settings.keys() - known):
        raise UsageError(f"{name} has no setting {' or '.join(unknown)}; it has {', '.join(sorted(known))}")
    for field in fields(METHODS[name]):
        value = settings.get(field.name, field.default)
        whole = type(field.default) is int
        number = isinstance(value, int | np.integer) or (not whole and isinstance(value, float | np.floating))
        if isinstance(field.default, int | float) and not number:
            raise UsageError(f"{field.name} of {name} is a {'whole ' if whole else ''}number, not {value!r}")
        if isinstance(field.default, str) and not isinstance(value, str):
            raise UsageError(f"{field.name} of {name} is a word, not {value!r}")
    if settings.get("epochs", 1) < 0:
        raise UsageError(f"epochs is a number from 0, not {settings['epochs']}")
    made: Method = METHODS[name](**settings)
    return made
