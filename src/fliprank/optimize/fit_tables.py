"""What a fit is as tables and in a few lines: the trail of epochs, and parameters before and after."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from fliprank.errors import indented

if TYPE_CHECKING:
    import polars as pl

    from fliprank.optimize.fit import Fit

__all__ = ["in_lines", "parameter_frame", "trail_frame"]


def trail_frame(fit: Fit) -> pl.DataFrame:
    """One row per epoch, with its objective and measures, and whether it is the one that is kept."""
    import polars as pl

    return pl.DataFrame([{**asdict(epoch), "kept": epoch.number == fit.best.number} for epoch in fit.trail])


def parameter_frame(fit: Fit, ranges: bool, confidence: float) -> pl.DataFrame:
    """One row per parameter: before, after, the range that is as good (null: fixed, or not known), its bounds."""
    import polars as pl

    params, known = fit.model.params, fit.start
    before = known.params.values if known is not None and known.params.names == params.names else params.default
    found = fit.ranges(confidence) if ranges and fit.rows is not None and fit.measure is not None else {}
    drivers = params.drivers()
    spans = [None if driver is None else found.get(driver) for driver in drivers]
    ends = {end: [None if span is None else getattr(span, end) for span in spans] for end in ("low", "high")}
    columns: dict[str, Any] = {"parameter": list(params.names), "before": before, "after": params.values, **ends}
    columns |= {"lower": params.lower, "upper": params.upper, "moves_with": drivers}
    return pl.DataFrame(columns, schema_overrides={"low": pl.Float64, "high": pl.Float64, "moves_with": pl.String})


def in_lines(fit: Fit) -> str:
    """What a person wants to know first: the model, its figures, and why the fit stopped or whether it helps."""
    parts = (("training", fit.best.train), ("validation", fit.best.valid))
    figures = ", ".join(f"{value:.4f} on {part} queries" for part, value in parts if not np.isnan(value))
    told = [f"{fit.measure or 'measure'} {figures}"] if figures else []
    if fit.prover is None:
        told.append(f"epoch {fit.best.number} of {len(fit.trail)} kept; {fit.stopped}")
    else:
        told += [fit.stopped, fit.proof.sentence if "proof" in vars(fit) else "whether it helps: see .proof"]
    return indented(f"Fit of {fit.model.kind}, {len(fit.model.params.free_names):,} free parameters", *told)
