"""What a method is: a frozen dataclass of settings that searches a `Space`, asks a `Problem`, and reports each epoch.

A new method is one file with a class under `@register("name")` and one line in `__init__.py`; every command, help page
and error message then knows it. What is random in an epoch depends on the seed and the epoch's number only, and what a
method must remember goes into the state of `Recorder.epoch`: a resumed run is then the same run, bit for bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from fliprank.arrays import Floats
from fliprank.errors import UsageError
from fliprank.naming import unknown
from fliprank.objectives.base import Objective
from fliprank.optimize.fit import Recorder
from fliprank.optimize.problem import Problem

__all__ = ["METHODS", "Journal", "Method", "chance", "check", "make_method", "method_name", "register", "seed_of"]

METHODS: dict[str, type[Method]] = {}
"""Methods by name."""

MOST_REMEMBERED = 1 << 22
"""Numbers of answers that a checkpoint keeps; what is beyond is computed again when a run is resumed."""

M = TypeVar("M", bound="type[Method]")


def register(name: str) -> Callable[[M], M]:
    """Make a method known by this name."""

    def known(method: M) -> M:
        method.name = name
        METHODS[name] = method
        return method

    return known


@dataclass(frozen=True)
class Method(ABC):
    """A way to fit. Subclasses are frozen dataclasses of settings."""

    name: ClassVar[str]
    direct: ClassVar[bool] = False
    """Whether it climbs the measure itself and needs no objective."""
    global_search: ClassVar[bool] = False
    """Whether it looks everywhere, so that several starts gain nothing."""
    own_stop: ClassVar[bool] = False
    """Whether it knows by itself when to stop, so that no patience of the recorder ends it."""
    swept: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """The values that are tried of settings that the user leaves open, where validation queries can choose."""
    order_matters: ClassVar[bool] = False
    """Whether it looks at queries or pairs one after the other, so that their order matters."""
    converges: ClassVar[bool] = False
    """Whether it ends at an optimum of the cost, so that it may as well start where another fit ended."""
    as_printed: ClassVar[bool] = False
    """Whether it follows a paper to the letter: raw scores, the best run and epoch, no averaging."""

    @property
    def has_prior(self) -> bool:
        """Whether it has an `l2`, the strength of a prior towards the defaults."""
        return "l2" in {f.name for f in fields(self)}

    def with_prior(self, strength: float) -> Method:
        """The same method with another strength of the prior; as it is, if it has none."""
        return replace(self, l2=strength) if self.has_prior else self  # type: ignore[call-arg]

    def check(self, problem: Problem) -> None:  # noqa: B027 (most methods make sense for every problem)
        """Raise an error that says why, where the method makes no sense for this problem."""

    @abstractmethod
    def run(self, problem: Problem, recorder: Recorder, rng: np.random.Generator) -> None:
        """Search from the problem's parameters, or go on from where the recorder's checkpoint is."""

    def __str__(self) -> str:
        given = [f"{f.name}={getattr(self, f.name)}" for f in fields(self) if getattr(self, f.name) != f.default]
        return self.name + (f"({','.join(given)})" if given else "")


def check(condition: bool, message: str) -> None:
    """Raise a UsageError with this message unless the condition holds."""
    if not condition:
        raise UsageError(message)


def seed_of(recorder: Recorder, rng: np.random.Generator) -> Floats:
    """The seed of a run, as an array that a checkpoint can keep: that of the checkpoint, or a new one."""
    first = recorder.begin(seed=float(rng.integers(2**52)))["seed"]
    if first[0] < 0:
        raise recorder.damaged("its seed is below 0")
    return first


def chance(seed: Floats, *numbers: int) -> np.random.Generator:
    """Random numbers that depend on the seed and these numbers only, such as that of the epoch."""
    return np.random.default_rng([int(seed[0]), *numbers])


class Journal:
    """The answers that a search of SciPy's was given, so that a resumed run can give them again and be the same run.

    SciPy can't be stopped and continued. So a resumed run begins anew, with `recorder.replaying` set: it is given the
    answers of the journal until these are used up, and the recorder passes over the epochs that it knows.
    """

    def __init__(self, recorder: Recorder, width: int) -> None:
        self.asked, self.answers = 0, list[Floats]()
        self.room = 0 if recorder.checkpoint is None else MOST_REMEMBERED // width
        known = recorder.state.get("journal", np.empty(0))
        if known.size % width:
            raise recorder.damaged("its journal is cut off")
        self.known = known.reshape(-1, width)
        recorder.replaying = len(recorder.trail)

    def ask(self, question: Callable[[], Floats]) -> Floats:
        """The next answer: a known one, or a new one."""
        answer = self.known[self.asked] if self.asked < len(self.known) else question()
        if self.asked < self.room:
            self.answers.append(answer)
        self.asked += 1
        return answer

    def state(self) -> Floats:
        """What the checkpoint keeps."""
        return np.concatenate(self.answers) if self.answers else np.empty(0)


def method_name(method: str, objective: Objective | None) -> str:
    """The name of a method; "auto" is Adam for LambdaRank, whose gradient belongs to no function, else L-BFGS."""
    if method == "auto":
        return "adam" if objective is not None and objective.name == "lambdarank" else "lbfgs"
    if method not in METHODS:
        raise unknown("method", method, method, ["auto", *METHODS])
    return method


def make_method(method: str | Method, objective: Objective | None = None, **settings: Any) -> Method:
    """The method of this name with these settings; the others are its own."""
    if isinstance(method, Method):
        check(not settings, f"{method} has its settings: give others to it, not beside it")
        return method
    name = method_name(method, objective)
    own = fields(METHODS[name])
    known = {f.name for f in own}
    if wrong := sorted(settings.keys() - known):
        raise UsageError(f"{name} has no setting {' or '.join(wrong)}; it has {', '.join(sorted(known))}")
    for field in own:
        value, whole = settings.get(field.name, field.default), type(field.default) is int
        number = isinstance(value, int | np.integer) or (not whole and isinstance(value, float | np.floating))
        if isinstance(field.default, int | float) and not number:
            raise UsageError(f"{field.name} of {name} is a {'whole ' if whole else ''}number, not {value!r}")
        if isinstance(field.default, str) and not isinstance(value, str):
            raise UsageError(f"{field.name} of {name} is a word, not {value!r}")
    check(settings.get("epochs", 1) >= 0, f"epochs is a number from 0, not {settings.get('epochs')}")
    return METHODS[name](**settings)
