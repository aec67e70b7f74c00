"""What plots of fits share: the rows that they are drawn on, and the parameters that they are drawn along."""

from __future__ import annotations

from collections.abc import Sequence

from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.landscape.direction import slot_of
from fliprank.models import Model
from fliprank.optimize.fit import Fit

__all__ = ["named_parameters", "rows_of"]

LISTED = 20
"""Parameters that an error lists."""


def rows_of(fit: Fit, given: Candidates | None) -> Candidates:
    """The rows to draw on: those given, or those of the fit."""
    rows = fit.rows if given is None else given
    if rows is None:
        raise UsageError("this fit does not know its rows: give rows=")
    return rows


def named_parameters(model: Model, given: Sequence[str], count: int) -> list[str]:
    """So many free parameters: those given, or all that there are if there are just as many."""
    free = model.params.free_names
    names = list(given) or (list(free) if len(free) == count else [])
    if len(names) != count:
        listed = f"{', '.join(free[:LISTED])}{', ...' if len(free) > LISTED else ''}"
        wanted = "one parameter" if count == 1 else f"{count} parameters"
        raise UsageError(f"name {wanted} of {listed or 'a model that has none'}; {len(names)} were given")
    for name in names:
        slot_of(model.params, name)
    return names
