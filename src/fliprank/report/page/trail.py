"""How the fit came about: the recipes that competed, or the trail of epochs with the kept one marked."""

from __future__ import annotations

import math

from fliprank.optimize.fit import Fit
from fliprank.report.page.section import Section, short

__all__ = ["trail_section"]

MOST_EPOCHS = 600
"""Epochs that a picture holds; of more, some are left out."""
SERIES = ("objective", "train", "valid", "valid_objective")


def trail_section(fit: Fit) -> Section | None:
    """Of a tuning the recipes and their weights; of a training every epoch. None where there is nothing to show."""
    tried = [[each.what, short(each.value), short(each.weight, 4)] for each in fit.tried]
    step = max(1, len(fit.trail) // MOST_EPOCHS)
    some = [epoch for epoch in fit.trail if epoch.number % step == 0 or epoch.number == fit.best.number]
    every = {name: [getattr(epoch, name) for epoch in some] for name in SERIES}
    series = {name: values for name, values in every.items() if any(map(math.isfinite, values))}
    if not tried and len(fit.trail) < 2:
        return None
    data = {
        "measure": str(fit.measure or ""),
        "tried": tried,
        "epochs": [epoch.number for epoch in some] if len(fit.trail) > 2 else [],
        "series": {name: [short(value, 7) for value in values] for name, values in series.items()},
        "kept": fit.best.number,
        "stopped": fit.stopped,
    }
    return Section("trail", "The fit", _conclusion(fit), data)


def _conclusion(fit: Fit) -> str:
    weighed = sorted((each for each in fit.tried if each.weight), key=lambda each: -each.weight)
    if len(fit.trail) <= 2 and len(weighed) > 1:
        first = weighed[0]
        return (
            f"The result is a mean of {len(weighed)} recipes, weighted by cross-validation; "
            f"{first.what} counts most ({first.weight:.0%})."
        )
    if len(fit.trail) <= 2:
        return f"The result is one recipe: {weighed[0].what}." if weighed else f"{fit.stopped.capitalize()}."
    return f"Epoch {fit.best.number} of {len(fit.trail) - 1} is kept; it ended because: {fit.stopped}."
