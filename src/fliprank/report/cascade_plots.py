"""Charts of a cascade, after the figures of Matveeva et al. 2006; the data come from `experiment/cascade_analysis.py`.

What each stage does, as in the tables, is `plots/stages.py`; `saving.py` writes charts to files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.experiment.cascade_analysis import EpochCurves, LabelMoves, TopLabels
from fliprank.experiment.cutoffs import Cutoffs
from fliprank.report.drawing import COLOURS, HEIGHT, WIDTH, altair, chart_of, framed, heading, series, styled

__all__ = [
    "epochs_chart",
    "frontier_chart",
    "good_chart",
    "moves_chart",
    "top_labels_chart",
]


def epochs_chart(curves: EpochCurves) -> Any:
    """Figure 4: the first measure against the second, one point per epoch, joined in order."""
    first, second = curves.measures[:2]
    values = [
        {"epoch": epoch, "first": float(line[0]), "second": float(line[1])} for epoch, line in enumerate(curves.values)
    ]
    alt = altair()
    data = chart_of(values)
    x = alt.X("second:Q", title=second, scale=alt.Scale(zero=False))
    y = alt.Y("first:Q", title=first, scale=alt.Scale(zero=False))
    line = data.mark_line(color="#cccccc", strokeWidth=1).encode(x=x, y=y, order="epoch:Q")
    colour = alt.Color("epoch:Q", scale=alt.Scale(scheme="viridis"))
    dots = data.mark_point(filled=True, size=45, opacity=1).encode(x=x, y=y, color=colour)
    return framed(line + dots, heading(f"{first} against {second} by epoch: correlation {curves.correlation:.3f}"))


def moves_chart(moves: LabelMoves, names: tuple[str, str] = ("before", "after")) -> Any:
    """Figure 5: the labels over the ranks of one query, -1 for unlabelled documents, one panel above the other."""
    values = [
        {"which": which, "rank": int(rank), "label": -1.0 if np.isnan(label) else float(label)}
        for which, ranks in zip(names, (moves.before, moves.after), strict=True)
        for label, rank in zip(moves.labels, ranks, strict=True)
    ]
    alt = altair()
    ticks = chart_of(values).mark_tick(orient="vertical", thickness=1, color=COLOURS[0])
    x, y = alt.X("rank:Q", title="rank"), alt.Y("label:O", title="label", sort="descending")
    row = alt.Row("which:N", sort=list(names), title=f"query {moves.query}")
    return styled(ticks.encode(x=x, y=y, row=row).properties(width=WIDTH, height=HEIGHT // 2))


def top_labels_chart(found: TopLabels) -> Any:
    """Figure 6: how each stage changes the number of documents of each label at the top."""
    steps = [f"top {after} - top {before}" for before, after in zip(found.sizes, found.sizes[1:], strict=False)]
    labels = ["unlabelled" if np.isnan(level) else f"{level:g}" for level in found.labels]
    values = [
        {"step": step, "label": label, "change": float(change)}
        for step, line in zip(steps, found.differences, strict=True)
        for label, change in zip(labels, line, strict=True)
    ]
    alt = altair()
    x = alt.X("label:N", sort=labels, title="label", axis=alt.Axis(labelAngle=0))
    y = alt.Y("change:Q", title="change of the number at the top, per query")
    bars = chart_of(values).mark_bar()
    drawn = bars.encode(x=x, y=y, xOffset=alt.XOffset("step:N", sort=steps), **series(steps, "step"))
    return framed(drawn, heading("What each stage changes among the documents at the top"))


def good_chart(shares: Floats, sizes: Sequence[int]) -> Any:
    """Figure 7: good documents at each of the top ranks, one bar per stage; `good_at_ranks` gives `shares`."""
    stages = [f"top {size}" for size in sizes]
    values = [
        {"stage": stage, "rank": rank + 1, "share": float(share)}
        for stage, line in zip(stages, shares, strict=True)
        for rank, share in enumerate(line)
    ]
    alt = altair()
    x = alt.X("rank:O", title="rank", axis=alt.Axis(labelAngle=0))
    y = alt.Y("share:Q", title="share of queries with a good document here")
    bars = chart_of(values).mark_bar()
    drawn = bars.encode(x=x, y=y, xOffset=alt.XOffset("stage:N", sort=stages), **series(stages, "stage"))
    return framed(drawn, heading("Good documents at each of the top ranks, after each stage"))


def frontier_chart(found: Cutoffs) -> Any:
    """The measure against the cost per query: all choices of cut-offs, and the frontier."""
    frontier = found.frontier
    rest = [choice for choice in found.choices if choice not in frontier]
    shown, below = (
        [{"cost": c.cost, "value": c.value, "sizes": ", ".join(map(str, c.sizes))} for c in part]
        for part in (frontier, rest)
    )
    alt = altair()
    title = f"cost per query, {found.costs.unit}" if found.costs.unit else "cost per query"
    x = alt.X("cost:Q", title=title, scale=alt.Scale(type="log" if frontier[0].cost > 0 else "linear"))
    y = alt.Y("value:Q", title=str(found.measure), scale=alt.Scale(zero=False))
    every = chart_of(below).mark_point(size=12, color="#bbbbbb")
    line = chart_of(shown).mark_line(interpolate="step-after", point=True, color=COLOURS[0])
    tip = [alt.Tooltip("sizes:N"), alt.Tooltip("value:Q"), alt.Tooltip("cost:Q")]
    drawn = every.encode(x=x, y=y, tooltip=tip) + line.encode(x=x, y=y, tooltip=tip)
    return framed(drawn, heading(f"{found.measure} against cost: every choice of cut-offs, and the best for each cost"))
