"""What can be exported where: a registry of targets, each a name, what it takes and what it writes.

A target is one function under `@target(name, summary, takes)` in a module that `__init__.py` imports. Several targets
may share a name, for several kinds of models: the first that takes the model writes it. `takes(model)` is None where
the model can be exported as it is, else the reason why not, for a person; "" if the model is of another kind
altogether, for others of the same name to say more.

>>> from fliprank.models.fusion import Fusion
>>> model = Fusion("qdrant", ["bm25", "dense"])
>>> targets_for(model)
['qdrant']
>>> export = find_target("qdrant", model).write(model, About())
>>> sorted(export.files), export.reindex
(['query.json'], False)
>>> find_target("vespa", model)
Traceback (most recent call last):
fliprank.errors.UsageError: vespa can't take this fusion model: this fusion was tuned for qdrant, whose formula ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fliprank.errors import UsageError
from fliprank.export.about import About
from fliprank.models.base import Model
from fliprank.naming import unknown

__all__ = ["TARGETS", "Export", "Target", "find_target", "target", "target_names", "targets_for"]


@dataclass(frozen=True)
class Export:
    """What is written for an engine, and what a person must know about it.

    `files`: content by name, relative to the folder. `steps`: what to run, in order; a step that begins with "$ " is a
    command. `lost`: what was dropped, rescaled or changed. `settings`: anything that `fliprank verify` should know, as
    JSON.
    """

    files: Mapping[str, str | bytes]
    steps: tuple[str, ...] = ()
    reindex: bool = False
    lost: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


Takes = Callable[[Any], str | None]
Write = Callable[[Any, About], Export]


@dataclass(frozen=True)
class Target:
    """One way to export models of some kind."""

    name: str
    summary: str
    takes: Takes
    write: Write


TARGETS: dict[str, list[Target]] = {}
"""By name; of several with the same name, the first that takes a model writes it."""


def target(name: str, summary: str, takes: Takes) -> Callable[[Write], Write]:
    """Make the function that writes an export known as a target of this name; `summary` is a line for help."""

    def known(write: Write) -> Write:
        TARGETS.setdefault(name, []).append(Target(name, summary, takes, write))
        return write

    return known


def target_names() -> dict[str, str]:
    """{name: what it takes, in a few words}, for help and errors."""
    return {name: "; ".join(each.summary for each in TARGETS[name]) for name in sorted(TARGETS)}


def targets_for(model: Model) -> list[str]:
    """The names of all targets that take this model."""
    return [name for name in sorted(TARGETS) if any(each.takes(model) is None for each in TARGETS[name])]


def find_target(name: str, model: Model) -> Target:
    """The target of this name that takes this model; raises an error that lists those that do, and says why not."""
    if not model.ready:
        raise UsageError(f"this {model.kind} model has nothing to export yet: train it, or call prepared(train, rng)")
    if name not in TARGETS:
        raise unknown("export target", name, name, TARGETS)
    reasons = dict[str, None]()
    for each in TARGETS[name]:
        reason = each.takes(model)
        if reason is None:
            return each
        reasons[reason] = None
    reasons.pop("", None)
    said = "; ".join(reasons) or f"it takes {target_names()[name]}"
    others = targets_for(model)
    instead = f"targets that can: {', '.join(others)}" if others else "no target can"
    raise UsageError(f"{name} can't take this {model.kind} model: {said}; {instead}")
