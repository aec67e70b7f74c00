"""Figure 3: what tuning BM25F brings inside a ranker with hundreds of features."""

from __future__ import annotations

from functools import partial
from typing import Any

import fliprank as fr
from fliprank.experiment.curve_results import LearningCurve
from fliprank.papers.part import Finding, Setting, part
from fliprank.papers.rules import Claims, alike, larger
from fliprank.papers.taylor2006.collections import Collection, generated, real_features
from fliprank.papers.taylor2006.curves import COLUMNS, GENERATED, at_size, curve_figure, curve_rows, settings_of
from fliprank.papers.taylor2006.rankers import Precooked, curves, descent, untuned

TUNED, PRECOOKED, UNTUNED, NONE = "tuned BM25F", "precooked BM25F", "untuned BM25F", "no BM25F"


@part("taylor2006", "figure3", "What tuning BM25F brings among hundreds of features", needs=("scifact",), minutes=4)
def figure3(setting: Setting) -> Finding:
    """Four ways to have BM25F among many features."""
    shown, rows, claims = list[LearningCurve](), list[tuple[Any, ...]](), Claims()
    every = (generated(setting), real_features(setting))
    for data in every:
        curve = curves(setting, data, _rankers(setting, data), data.sizes[::2])
        rows += curve_rows(data, curve)
        shown.append(curve)
        for size in curve.sizes:
            at = {name: at_size(curve, name, size) for name in curve.values}
            where = f"{data.name}, {size} queries"
            if size > 100:
                claims.add(f"{where}: {TUNED} less {NONE}", larger, at[TUNED], at[NONE])
            if size >= 512:
                claims.add(f"{where}: {UNTUNED} less {NONE}", larger, at[UNTUNED], at[NONE])
            for other in (PRECOOKED, UNTUNED):
                claims.add(f"{where}: {TUNED} less {other}", alike, at[TUNED], at[other])
    return Finding(
        COLUMNS,
        tuple(rows),
        "Without BM25F the ranker is beaten from about 100 training queries on, by an untuned BM25F significantly from "
        "512 on, and among hundreds of features a tuned, a precooked and an untuned BM25F do not differ.",
        claims.sentence,
        claims.verdict,
        settings_of(setting, *every),
        partial(curve_figure, shown[0]),
        (*claims.notes, GENERATED),
    )


def _rankers(setting: Setting, data: Collection) -> dict[str, Any]:
    return {
        TUNED: descent(data, data.many),
        PRECOOKED: Precooked(setting, data),
        UNTUNED: untuned(data),
        NONE: descent(data, fr.Linear()),
    }
