"""Names that round-trip: `Name(field=value, ...)@cutoff`, in ir_measures' syntax, for measures and objectives alike.

A named thing is a frozen dataclass; its fields are its parameters. Those that have their default are not written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, ClassVar, Self

import numpy as np

from fliprank.errors import UsageError

__all__ = ["Named", "same", "unknown"]


class Named:
    """Gives a dataclass with a `name` its string, `@ cutoff`, and the sentence that says what it means."""

    name: ClassVar[str]
    needs_cutoff: ClassVar[bool] = False

    def __post_init__(self) -> None:
        cutoff = getattr(self, "cutoff", None)
        if cutoff is None and self.needs_cutoff:
            raise UsageError(f"{self.name} needs a cut-off, such as {self.name}@10")
        if cutoff is not None and (cutoff != int(cutoff) or cutoff < 1):
            raise UsageError(f"{self.name}@{cutoff}: a cut-off is a rank from 1")

    def parameters(self) -> dict[str, Any]:
        """The parameters that differ from their defaults."""
        given = ((f.name, getattr(self, f.name), f.default) for f in fields(self))  # type: ignore[arg-type]
        return {name: value for name, value, default in given if not same(value, default)}

    def __matmul__(self, cutoff: int) -> Self:
        """`nDCG() @ 10`"""
        if "cutoff" not in {f.name for f in fields(self)}:  # type: ignore[arg-type]
            raise UsageError(f"{self.name} has no cut-off")
        return type(self)(**{**self.parameters(), "cutoff": cutoff})

    def __str__(self) -> str:
        given = self.parameters()
        cutoff = given.pop("cutoff", None)
        inside = ",".join(f"{name}={_show(value)}" for name, value in given.items())
        return self.name + (f"({inside})" if inside else "") + (f"@{cutoff}" if cutoff else "")

    def meaning(self) -> str:
        """The first paragraph of the class's documentation: what the number says."""
        return " ".join((type(self).__doc__ or "").split("\n\n")[0].split())


def same(a: Any, b: Any) -> bool:
    """Whether two parameters are equal, be they arrays."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b)
    return bool(a == b)


def _show(value: Any) -> str:
    """A parameter as a name holds it; a map is a tuple of pairs; an array, which can't be read back, by its size."""
    if isinstance(value, np.ndarray):
        return f"<array of {len(value)}>"
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return "{" + ",".join(f"{key!r}:{gain!r}" for key, gain in value) + "}"
    return repr(value).replace(", ", ",")


def unknown(what: str, name: str, text: str, names: Iterable[str], also: Iterable[str] = ()) -> UsageError:
    """The error that no `what` is called `text`, as it stands in `name`: with those near it, or with all names.

    >>> print(unknown("measure", "ndgc@10", "ndgc", ["nDCG", "AP"], ["ndcg"]))
    unknown measure 'ndgc@10'; did you mean ndcg?
    >>> print(unknown("measure", "magic", "magic", ["nDCG", "AP"]))
    unknown measure 'magic'; there are AP, nDCG
    """
    near = get_close_matches(text, [*names, *also], 3, 0.5)
    said = f"did you mean {', '.join(sorted(near))}?" if near else f"there are {', '.join(sorted(set(names)))}"
    return UsageError(f"unknown {what} {name!r}; {said}")
