"""Plots by name: what each shows, how it is drawn from results, and how from the folder that a command wrote.

A new plot is one file with a function under `@plot(...)`, and one line in `plots/__init__.py`. Then it is
`fr.plots.NAME`, `fliprank plot NAME`, and, if it takes a fit, `fit.plot("NAME")`; help and errors list it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from fliprank.checked import checked
from fliprank.errors import UsageError, WrongTypeError

__all__ = ["PLOTS", "Plot", "find_plot", "plot", "plot_fit"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Plot:
    """A plot: `draw` makes it from result objects, `read` from a folder; `options` are what `read` can be told."""

    name: str
    summary: str
    draw: Callable[..., Any]
    read: Callable[..., Any]

    @property
    def options(self) -> tuple[str, ...]:
        """The keyword arguments of `read`, which are options of `fliprank plot`."""
        given = inspect.signature(self.read).parameters.values()
        return tuple(each.name for each in given if each.kind is inspect.Parameter.KEYWORD_ONLY)


PLOTS: dict[str, Plot] = {}
"""All plots, in the order in which they are listed."""


def plot(name: str, summary: str, from_folder: Callable[..., Any]) -> Callable[[F], F]:
    """Register a function from results to a chart; `from_folder(folder, *, ...)` draws the same from files."""

    def register(draw: F) -> F:
        checked_draw: Any = checked(draw)
        PLOTS[name] = Plot(name, summary, checked_draw, from_folder)
        return checked_draw  # type: ignore[no-any-return]

    return register


@checked
def find_plot(name: str) -> Plot:
    """The plot of this name; `-` and `_` are alike."""
    wanted = name.replace("_", "-")
    if wanted not in PLOTS:
        near = get_close_matches(wanted, PLOTS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(PLOTS)}"
        raise UsageError(f"no plot is called {name!r}; {hint}")
    return PLOTS[wanted]


def plot_fit(fit: Any, name: str, **options: Any) -> Any:
    """What `fit.plot(name)` draws; raises if plots of this name are not made of fits, or have no such option."""
    found = find_plot(name)
    try:
        given = inspect.signature(found.draw).bind(fit, **options)
    except TypeError as error:
        raise UsageError(f"fit.plot({name!r}): {error}") from None
    try:
        return found.draw(*given.args, **given.kwargs)
    except WrongTypeError as error:
        if "; a Fit was given" not in str(error):
            raise
        raise UsageError(f"{found.name} is not drawn from a fit; fr.plots.{name.replace('-', '_')}: {error}") from None
