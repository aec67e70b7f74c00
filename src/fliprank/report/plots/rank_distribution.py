"""The distribution of ranks of documents whose scores are noisy (SoftRank, section 3.2, Figure 2).

One row per document, the best score first, one column per rank; the darker, the more likely. A diamond stands at the
expected rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats
from fliprank.errors import UsageError, WrongTypeError
from fliprank.objectives import rank_distribution as ranks_of
from fliprank.report.drawing import COLOURS, altair, chart_of, framed, heading
from fliprank.report.plots.registry import plot
from fliprank.report.result_folder import ResultFolder

__all__ = ["rank_distribution"]

MOST = 15
"""Documents and ranks that are shown, unless said."""

NOISE = 0.3
"""The noise of scores from a folder, unless said: so many standard deviations of the query's scores."""

SHOWN = 0.095
"""Probabilities from which on the number is printed."""

LIGHT, DARK = "#ffffff", "#08306b"


def _read(
    folder: ResultFolder, *, rows: Path | None = None, query: str | None = None, sigma: float | None = None
) -> Any:
    known = folder.rows(rows, held_out=True)
    qids = known.qids.tolist()
    wanted = qids[0] if query is None else query
    if wanted not in qids:
        raise UsageError(f"no query is called {wanted!r}; there are {', '.join(map(str, qids[:10]))}, ...")
    one = known.select([qids.index(wanted)])
    scores, noise = folder.model.score(one), NOISE if sigma is None else sigma
    spread = float(scores.std())
    if not spread > 0 or not noise > 0:
        raise UsageError(f"query {wanted}: ranks can't be told: the noise and the spread of scores must be above 0")
    names = one.docids.tolist() if one.docids is not None else [f"row {row + 1}" for row in range(len(one))]
    told = f"Query {wanted}; noise: {noise:g} standard deviations of its scores."
    return _drawn(ranks_of(scores, noise * spread), names, one.labels, MOST, told)


@plot("rank-distribution", "how likely each rank is for each document of a query whose scores are noisy", _read)
def rank_distribution(
    found: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    labels: ArrayLike | None = None,
    most: int = MOST,
) -> Any:
    """`found` is what `fr.rank_distribution(scores, sigma)` gives: found[j, r], document j has rank r (from 0).

    `names` and `labels` are those of the documents; the first `most` by expected rank are shown.
    """
    probability = np.asarray(found, np.float64)
    if probability.ndim != 2 or probability.shape[0] != probability.shape[1] or not len(probability):
        raise UsageError(f"found must have a row and a rank for each document, not the shape {probability.shape}")
    if not (np.isfinite(probability).all() and np.allclose(probability.sum(axis=1), 1, atol=1e-3)):
        raise UsageError("found must have probabilities that add up to 1 in each row: see fr.rank_distribution")
    known = [f"document {j + 1}" for j in range(len(probability))] if names is None else list(map(str, names))
    judged = np.full(len(probability), np.nan) if labels is None else np.asarray(labels, np.float64)
    if len(known) != len(probability) or judged.shape != (len(probability),):
        raise UsageError(f"names and labels must be one per document: there are {len(probability)} documents")
    if most < 1:
        raise WrongTypeError("most", most, "a whole number above 0")
    return _drawn(probability, known, judged, most, "")


def _drawn(probability: Floats, names: Sequence[str], labels: Floats, most: int, told: str) -> Any:
    alt, size = altair(), len(probability)
    mean = probability @ np.arange(1.0, size + 1)
    order, ranks = np.argsort(mean, kind="stable")[:most], min(most, size)
    places = [f"{names[j]}{_label(labels[j])}" for j in order]
    shown = [f"{at + 1}. {place}" for at, place in enumerate(places)]
    cells: list[dict[str, Any]] = [
        {"document": shown[at], "rank": rank + 1, "probability": float(probability[j, rank])}
        for at, j in enumerate(order)
        for rank in range(ranks)
    ]
    means: list[dict[str, Any]] = [{"document": shown[at], "mean": float(mean[j])} for at, j in enumerate(order)]
    y = alt.Y("document:N", sort=shown, title="document, by its expected rank", axis=alt.Axis(labelLimit=220))
    # Cells are drawn on a scale of numbers, so that an expected rank can stand between two of them.
    across = alt.Scale(domain=[0.5, ranks + 0.5], nice=False)
    ticks = alt.Axis(values=list(range(1, ranks + 1)), format="d", grid=False, labelOverlap=False)
    boxes = [cell | {"left": cell["rank"] - 0.5, "right": cell["rank"] + 0.5} for cell in cells]
    legend = alt.Legend(format=".0%", gradientLength=140)
    colour = alt.Color(
        "probability:Q",
        title="probability",
        scale=alt.Scale(range=[LIGHT, DARK], domain=[0, 1], interpolate="rgb"),
        legend=legend,
    )
    told_x = {"title": "rank", "scale": across, "axis": ticks}
    left = alt.X("left:Q", **told_x)
    heat = chart_of(boxes).mark_rect(stroke="#dddddd", strokeWidth=0.5).encode(x=left, x2="right:Q", y=y, color=colour)
    likely = [cell for cell in cells if cell["probability"] >= SHOWN]
    ink = alt.condition(alt.datum.probability > 0.5, alt.value("#ffffff"), alt.value("#000000"))
    words = (
        chart_of(likely)
        .mark_text(fontSize=11)
        .encode(x=alt.X("rank:Q", **told_x), y=y, text=alt.Text("probability:Q", format=".0%"), color=ink)
    )
    look = {"shape": "diamond", "size": 60, "filled": True, "color": COLOURS[1], "stroke": "#ffffff", "opacity": 1}
    inside = [each for each in means if each["mean"] <= ranks + 0.5]
    dots = chart_of(inside).mark_point(**look, yOffset=9).encode(x=alt.X("mean:Q", **told_x), y=y)
    many = f"the first {len(order)} of {size} documents" if len(order) < size else f"{size} documents"
    title = heading(f"How likely each rank is: {many}", told, "Diamond: expected rank.")
    return framed(alt.layer(heat, words, dots), title, width=min(560, 44 * ranks + 40), height=30 * len(order))


def _label(label: float) -> str:
    return "" if np.isnan(label) else f" (label {label:g})"
