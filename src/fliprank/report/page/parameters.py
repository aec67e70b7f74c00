"""Parameters before and after: how far each may move without harm, and the measure along each of them.

Along a parameter along which scores are linear, the trajectory is exact: every flip to which the measure responds is a
step of it. Elsewhere flips are looked for in cells, as `fliprank landscape` does. Its range over what is drawn says how
sensitive the measure is to the parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.landscape.model_trajectory import ModelTrajectory, trajectory
from fliprank.landscape.step_flips import Flip
from fliprank.measures import Measure
from fliprank.models import Model
from fliprank.models.parameters import Parameters
from fliprank.optimize.ranges import Range
from fliprank.parallel import run_parallel
from fliprank.report.page.sample import Sample
from fliprank.report.page.section import Documents, Section, clipped, short

__all__ = ["drawn_range", "parameters_section", "start_of"]

MOST = 40
"""Parameters up to which each has a picture of its own."""
CELLS, POINTS, FLIPS = 40, 160, 3
"""Cells in which flips are looked for; steps that a picture holds; flips that are told by name."""


def parameters_section(
    model: Model,
    start: Model,
    ranges: Mapping[str, Range],
    sample: Sample | None,
    measure: Measure,
    documents: Documents,
    texts: Mapping[str, str] | None = None,
) -> Section:
    """A record per parameter; pictures are drawn on the sample."""
    tuned, before = model.params, start.params
    paths = dict[str, dict[str, Any]]()
    if sample is not None and len(tuned.free_names) <= MOST:
        tasks = [partial(_along, model, before, name, ranges.get(name), sample, measure) for name in tuned.free_names]
        for name, (path, flips) in zip(tuned.free_names, run_parallel(tasks), strict=True):
            paths[name] = path | {"told": [_told(flip, documents, texts or {}) for flip in flips]}
    rows = [
        {
            "name": name,
            "default": float(before.values[i]),
            "tuned": float(tuned.values[i]),
            "low": short(float(tuned.lower[i])),
            "high": short(float(tuned.upper[i])),
            "moves": driver,
            "as_good": None if driver is None or driver not in ranges else _range(ranges[driver]),
        }
        for i, (name, driver) in enumerate(zip(tuned.names, tuned.drivers(), strict=True))
    ]
    on = "" if sample is None else sample.said
    data = {"rows": rows, "paths": paths, "measure": str(measure), "sign": measure.sign, "on": on}
    return Section("parameters", "Parameters", _conclusion(rows, paths), data)


def start_of(start: Model | None, model: Model) -> Model:
    """The model before, where it has the same parameters; else the model at its defaults."""
    same = start is not None and start.params.names == model.params.names
    return start if same and start is not None else model.at(model.params.at(model.params.default))


def drawn_range(params: Parameters, name: str, before: float, span: Range | None) -> tuple[float, float]:
    """From where to where a parameter is drawn: between its bounds, or some way beyond all that counts."""
    place = int(params.positions(name)[0])
    low, high, value = float(params.lower[place]), float(params.upper[place]), float(params.values[place])
    if np.isfinite([low, high]).all():
        return low, high
    ends = [before, value] + ([] if span is None else [span.low, span.high])
    size = max(abs(before), abs(value)) or 1.0
    first, last = max(min(ends), -4 * size), min(max(ends), 4 * size)
    margin = 0.25 * (last - first) or 0.5 * size
    return max(low, first - margin), min(high, last + margin)


def _along(
    model: Model,
    before: Parameters,
    name: str,
    span: Range | None,
    sample: Sample,
    measure: Measure,
) -> tuple[dict[str, Any], list[Flip]]:
    """The measure along one parameter: stretches of equal value, and the flips that gain and cost most."""
    params, default = model.params, float(before.values[model.params.positions(name)[0]])
    low, high = drawn_range(params, name, default, span)
    value = float(params.values[params.positions(name)[0]])
    path = trajectory(model, sample.rows, name, measure, low - value, high - value, resolution=1 / CELLS)
    edges, values = _steps(path)
    worst = float(values.min() if measure.sign > 0 else values.max())
    flips = path.flips
    told = flips[:FLIPS] + flips[max(FLIPS, len(flips) - FLIPS) :]
    drawn = {
        "low": low,
        "high": high,
        "value": value,
        "default": default,
        "x": [short(value + x) for x in edges],
        "y": [short(y, 7) for y in values],
        "exact": bool(not path.at_least),
        "flips": len(flips),
        "at": [short(value + x, 4) for x in np.unique(flips.x)[:: max(1, len(flips.x) // 300)]],
        "sensitivity": float(abs(path.at(0.0) - worst)),
    }
    return drawn, told


def _told(flip: Flip, documents: Documents, texts: Mapping[str, str]) -> list[Any]:
    labels = _label(flip.up_label), _label(flip.down_label)
    about = clipped(texts.get(flip.qid) or flip.qid), documents.number(flip.up), documents.number(flip.down)
    return [short(flip.value), *about, *labels, short(flip.gain)]


def _label(label: float) -> float | None:
    return None if np.isnan(label) else float(label)


def _steps(path: ModelTrajectory) -> tuple[Floats, Floats]:
    """Edges and values of the stretches; where there are too many for a picture, those of points spread evenly."""
    if len(path.values) <= POINTS:
        return path.edges, path.values
    edges = np.linspace(path.low, path.high, POINTS + 1)
    return edges, path.values[np.searchsorted(path.breaks, (edges[1:] + edges[:-1]) / 2, "right")]


def _range(found: Range) -> dict[str, Any]:
    opened = {"open_low": bool(found.open_low), "open_high": bool(found.open_high)}
    return {"low": float(found.low), "high": float(found.high), **opened}


def _conclusion(rows: list[dict[str, Any]], paths: Mapping[str, dict[str, Any]]) -> str:
    """Which parameters the measure depends on most, and which hardly matter."""
    moved = [row for row in rows if row["tuned"] != row["default"]]
    said = f"{len(moved)} of {len(rows)} parameters moved" if moved else "No parameter moved"
    if not paths:
        return f"{said}."
    order = sorted(paths, key=lambda name: -float(paths[name]["sensitivity"]))
    outside = [
        row["name"]
        for row in rows
        if row["as_good"] and not row["as_good"]["low"] <= row["default"] <= row["as_good"]["high"]
    ]
    firm = f"; the old value of {_listed(outside)} is significantly worse" if outside else ""
    return f"{said}; the measure depends most on {_listed(order[:2])}{firm}."


def _listed(names: list[str]) -> str:
    """Names as a person lists them: a, b and c."""
    shown = names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
