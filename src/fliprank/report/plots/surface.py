"""Contours of a measure or an objective over two parameters, with the optimiser's path (Taylor et al. 2006, Figure 1).

The better, the darker. A surface is a slice: all other parameters have the values of the model. A path also moves
along those, so what it passes in the picture is where it was, not what it measured there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError, WrongTypeError
from fliprank.landscape.direction import direction_of, finite_reach, slot_of
from fliprank.landscape.surface import Surface
from fliprank.landscape.surface import surface as surface_of
from fliprank.landscape.trail import read_trail
from fliprank.measures import Measure
from fliprank.models import Model
from fliprank.objectives import Objective
from fliprank.optimize.fit import Fit
from fliprank.report.contours import contours, levels_of
from fliprank.report.drawing import BETTER, COLOURS, altair, beside, chart_of, heading, marks
from fliprank.report.plots.fitted import named_parameters, rows_of
from fliprank.report.plots.registry import plot
from fliprank.report.result_folder import ResultFolder

__all__ = ["surface"]

SIDE, ALONE = 270, 420
"""The side of a panel: of several, and of one alone."""
POINTS = 41
"""Values of each parameter on the grid of a fit."""

BEST, MODEL, START = "best of the grid", "model", "start of the path"
LOOK = {
    BEST: ("diamond", COLOURS[1], True),
    MODEL: ("cross", "#000000", True),
    START: ("circle", "#000000", False),
}


def _read(
    folder: ResultFolder, *, rows: Path | None = None, parameters: Sequence[str] = (), measure: str | None = None
) -> Any:
    model, chosen = folder.model, measure or folder.measure
    names = named_parameters(model, parameters, 2)
    try:
        path = _columns(model, names, read_trail(folder.path, model.params).values)
    except InputError:  # more than 1,000 parameters, or a fit without epochs
        path = None
    found = _around(model, folder.rows(rows), names, chosen, path)
    return _drawn([found], [_title(found)], _here(model, names), path, len(model.params.free_names) - 2)


@plot("surface", "contours over two parameters, with the optimiser's path", _read)
def surface(
    found: Fit | Surface | Sequence[Surface],
    parameters: Sequence[str] = (),
    measure: str | Measure | Objective | None = None,
    *,
    rows: Candidates | None = None,
    titles: Sequence[str] | None = None,
    here: Sequence[float] | None = None,
    path: ArrayLike | None = None,
) -> Any:
    """One panel per surface, side by side.

    `found` is what `fr.landscape.surface` gives over two parameters, once or several times over the same ones; or a
    fit, whose `parameters` are varied (its own `measure` and `rows`, unless others are given) and whose path is drawn.
    A diamond marks the best point of each grid, a cross the point `here`, where the model stands, and a circle where
    the `path` starts: one row per step, with the values of the two parameters.
    """
    if isinstance(found, Fit):
        names = named_parameters(found.model, parameters, 2)
        steps = None if found.path is None else _columns(found.model, names, found.path)
        one = _around(found.model, rows_of(found, rows), names, measure or found.measure, steps)
        return _drawn([one], [_title(one)], _here(found.model, names), steps, len(found.model.params.free_names) - 2)
    given = [found] if isinstance(found, Surface) else found
    if not isinstance(given, list | tuple) or not given or not all(isinstance(each, Surface) for each in given):
        raise WrongTypeError("found", found, "a surface, a list of surfaces, or a fit")
    if len(parameters) or measure is not None or rows is not None:
        raise UsageError("parameters, measure and rows go with a fit: a surface has its own")
    if any(len(each.axes) != 2 for each in given):
        raise UsageError("contours are drawn over two parameters")
    told = [_title(each) for each in given] if titles is None else list(titles)
    if len(told) != len(given):
        raise UsageError(f"{len(told)} titles for {len(given)} surfaces")
    return _drawn(given, told, None if here is None else (float(here[0]), float(here[1])), _steps(path), 0)


def _steps(path: ArrayLike | None) -> Floats | None:
    if path is None:
        return None
    steps = np.asarray(path, np.float64)
    if steps.ndim != 2 or steps.shape[1] != 2 or not np.isfinite(steps).all():
        raise UsageError(f"a path has one row per step and two finite numbers each, not the shape {steps.shape}")
    return steps


def _columns(model: Model, names: Sequence[str], path: Floats) -> Floats:
    """The two parameters of each step of a fit."""
    columns: Floats = path[:, [slot_of(model.params, name) for name in names]]
    return columns


def _here(model: Model, names: Sequence[str]) -> tuple[float, float]:
    one, two = (float(model.params.free_values[slot_of(model.params, name)]) for name in names)
    return one, two


def _around(model: Model, rows: Candidates, names: Sequence[str], of: Any, path: Floats | None) -> Surface:
    """The surface around a model: between the bounds, or as far as the path went and the model's values reach."""
    params, grids = model.params, {}
    for column, name in enumerate(names):
        slot = slot_of(params, name)
        low, high = params.free_values[slot] + finite_reach(params, params.free_values, direction_of(params, name))
        passed = [] if path is None else path[:, column].tolist()
        grids[name] = np.linspace(min([low, *passed]), max([high, *passed]), POINTS)
    return surface_of(model, rows, names, of, grids)


def _title(found: Surface) -> str:
    better = "best" if found.larger_is_better else "least"
    return f"{found.of}, {found.queries:,} queries: {better} {found.best[2]:.4f}"


def _drawn(
    found: Sequence[Surface],
    titles: Sequence[str],
    here: tuple[float, float] | None,
    path: Floats | None,
    others: int,
) -> Any:
    """The panels, each with its own colours and a legend of them."""
    side = ALONE if len(found) == 1 else SIDE
    panels = []
    for surface, title in zip(found, titles, strict=True):
        x, y = (_axis(kind, surface, i) for i, kind in enumerate(("x", "y")))
        layers = [_contour_lines(surface, x, y, side), *([] if path is None else [_path_line(path, x, y)])]
        layers.append(marks(_points(surface, here, path), LOOK, x, y))
        also = f"{others:,} other parameters stay as they are here; the path moved them, too." if others > 0 else ""
        told = heading(title, also if path is not None else "", letters=68 if side == ALONE else 42)
        panels.append(altair().layer(*layers).properties(width=side, height=side, title=told))
    return beside(panels, color="independent")


def _axis(channel: str, surface: Surface, which: int) -> Any:
    alt, values = altair(), surface.axes[which]
    scale = alt.Scale(domain=[float(values.min()), float(values.max())], zero=False, nice=False)
    kind = alt.X if channel == "x" else alt.Y
    return kind(f"{channel}:Q", title=surface.parameters[which], scale=scale, axis=alt.Axis(tickCount=6))


def _contour_lines(surface: Surface, x: Any, y: Any, side: int) -> Any:
    alt = altair()
    lines = [
        {"x": a, "y": b, "level": level, "line": f"{level}:{number}", "order": order}
        for level in levels_of(surface.values).tolist()
        for number, line in enumerate(contours(surface.axes[0], surface.axes[1], surface.values.T, level))
        for order, (a, b) in enumerate(np.round(line, 6).tolist())
    ]
    # A few steep points at the edge should not take all colours for themselves.
    ends = np.nanquantile(surface.values, [0.05, 1.0] if surface.larger_is_better else [0.0, 0.95]).tolist()
    colours = BETTER[::-1] if surface.larger_is_better else BETTER
    scale = alt.Scale(range=colours, domain=ends, clamp=True, interpolate="rgb")
    told = f"{surface.of}: the darker, the better"
    legend = alt.Legend(
        orient="bottom", tickCount=4, gradientLength=side - 20, title=told, titleLimit=side, format=".3~g"
    )
    curves = chart_of(lines).mark_line(strokeWidth=1.6, clip=True)
    return curves.encode(
        x=x, y=y, color=alt.Color("level:Q", scale=scale, legend=legend), detail="line:N", order="order:Q"
    )


def _path_line(path: Floats, x: Any, y: Any) -> Any:
    """The steps of the optimiser, joined; a white edge keeps the line apart from the contours."""
    steps = [{"x": a, "y": b, "step": step} for step, (a, b) in enumerate(path.tolist())]
    chart = chart_of(steps).encode(x=x, y=y, order="step:Q")
    edge = chart.mark_line(color="#ffffff", strokeWidth=5, clip=True)
    dots = chart.mark_point(color="#000000", filled=True, size=14, opacity=1, clip=True)
    return altair().layer(edge, chart.mark_line(color="#000000", strokeWidth=1.8, clip=True), dots)


def _points(surface: Surface, here: tuple[float, float] | None, path: Floats | None) -> list[dict[str, Any]]:
    """What is marked: the start of the path, the model, the best of the grid."""
    start = [] if path is None else [(START, path[0].tolist())]
    stands = [] if here is None else [(MODEL, here)]
    found = [*start, (BEST, surface.best[:2]), *stands]
    return [{"x": float(at[0]), "y": float(at[1]), "mark": name} for name, at in found]
