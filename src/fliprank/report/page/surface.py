"""The measure over the two parameters that count most, with the way that the optimiser took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fliprank.landscape.surface import surface
from fliprank.measures import Measure
from fliprank.models import Model
from fliprank.optimize.fit import Fit
from fliprank.report.page.sample import Sample, sample_rows
from fliprank.report.page.section import Section, short

__all__ = ["surface_section"]

POINTS, MOST_ROWS, STEPS = 17, 3000, 200
"""Values of each parameter; rows that a surface is computed on; steps of the way that are drawn."""


def surface_section(
    fit: Fit, paths: Mapping[str, Mapping[str, Any]], sample: Sample, measure: Measure
) -> Section | None:
    """`paths` are those of `parameters_section`, which say how sensitive the measure is; None of fewer than two."""
    model: Model = fit.model
    order = sorted(paths, key=lambda name: -float(paths[name]["sensitivity"]))[:2]
    if len(order) < 2:
        return None
    few = sample_rows(sample.rows, model, most=MOST_ROWS, deep=30)
    grid = {name: np.linspace(paths[name]["low"], paths[name]["high"], POINTS) for name in order}
    found = surface(model, few.rows, order, measure, grid)
    best = found.best
    data = {
        "measure": str(measure),
        "sign": measure.sign,
        "names": order,
        "axes": [[short(x) for x in axis.tolist()] for axis in found.axes],
        "values": [[short(value) for value in row] for row in found.values.tolist()],
        "way": _way(fit, order),
        "default": [paths[name]["default"] for name in order],
        "tuned": [paths[name]["value"] for name in order],
        "on": Sample(few.rows, sample.of).said,
    }
    spread = float(np.nanmax(found.values) - np.nanmin(found.values))
    conclusion = (
        f"Between {order[0]} and {order[1]} {measure} varies by {spread:.4f}; on this grid it is best, {best[2]:.4f}, "
        f"at {order[0]} = {best[0]:.3g} and {order[1]} = {best[1]:.3g}."
    )
    return Section("surface", "Surface", conclusion, data)


def _way(fit: Fit, names: list[str]) -> list[list[float | int | None]]:
    """The values of both parameters after each epoch, as far as they are known."""
    if fit.path is None or fit.path.ndim != 2 or fit.path.shape[1] != len(fit.model.params.free_names):
        return []
    slots = [fit.model.params.free_names.index(name) for name in names]
    step = max(1, len(fit.path) // STEPS)
    return [[short(float(x)) for x in row] for row in fit.path[::step, slots]]
