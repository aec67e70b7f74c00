"""Methods by name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Protocol

import numpy as np

from fliprank.errors import UsageError
from fliprank.objectives.base import Objective
from fliprank.optimize.descent import Adam, Lbfgs
from fliprank.optimize.exact import Exact
from fliprank.optimize.fit import Recorder
from fliprank.optimize.papers import PRESETS

__all__ = ["METHODS", "OWN_RULES", "Method", "make_method", "method_name"]


class Method(Protocol):
    """A frozen dataclass of settings that can run."""

    def run(self, recorder: Recorder, objective: Objective, rng: np.random.Generator) -> None: ...


METHODS: dict[str, Any] = {"lbfgs": Lbfgs, "adam": Adam, "exact": Exact, **PRESETS}

OWN_RULES = {"exact", *PRESETS}
"""Methods that know by themselves when to start anew and when to stop."""


def method_name(method: str, objective: Objective) -> str:
    """The name of a method; "auto" is Adam for LambdaRank, whose gradient belongs to no function, else L-BFGS."""
    if method == "auto":
        return "adam" if objective.name == "lambdarank" else "lbfgs"
    if method not in METHODS:
        raise UsageError(f"unknown method {method!r}; there are auto, {', '.join(METHODS)}")
    return method


def make_method(method: str, objective: Objective, **settings: float) -> Method:
    """The method of this name with these settings; the others are its own."""
    name = method_name(method, objective)
    known = {f.name for f in fields(METHODS[name])}
    if unknown := sorted(settings.keys() - known):
        raise UsageError(f"{name} has no setting {' or '.join(unknown)}; it has {', '.join(sorted(known))}")
    if settings.get("epochs", 1) < 0:
        raise UsageError(f"epochs is a number from 0, not {settings['epochs']}")
    made: Method = METHODS[name](**settings)
    return made
