"""Pictures of a cascade are drawn from its figures: every number is in them, and they can be written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fliprank as fr
from fliprank.experiment.cascade_analysis import (
    EpochCurves,
    good_at_ranks,
    label_moves,
    top_labels,
)
from fliprank.experiment.cutoffs import choose_cutoffs
from fliprank.models.cascade import Cascade

pytest.importorskip("altair")
pytest.importorskip("vl_convert")
from fliprank.report.cascade_plots import (
    epochs_chart,
    frontier_chart,
    good_chart,
    moves_chart,
    top_labels_chart,
)
from fliprank.report.saving import save

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
ROWS = fr.Candidates.of(
    np.where(RNG.random(300) < 0.5, np.nan, np.clip(np.round(X[:, 0] + X[:, 1]), 0, 4)), group=[30] * 10, features=X
)
NESTED = Cascade([fr.Linear().prepared(ROWS, 0).at(w) for w in ([0, 1, 0], [0, 1, 1])], [30, 10])


def data(chart: Any) -> list[dict[str, Any]]:
    """All values in the specification of a chart."""
    found: list[dict[str, Any]] = []

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            found.extend(part["values"] if isinstance(part.get("values"), list) else [])
            part = list(part.values())
        for each in part if isinstance(part, list) else []:
            walk(each)

    walk(json.loads(chart.to_json()))
    return [value for value in found if isinstance(value, dict)]


def test_every_figure_is_drawn_and_written(tmp_path: Path) -> None:
    moves = label_moves(X[:, 0], X[:, 1], ROWS, 3)
    curves = EpochCurves(("nDCG@10", "CorrectPairs"), RNG.random((5, 2)), {})
    labels, good = top_labels(NESTED, ROWS), good_at_ranks(NESTED, ROWS)
    found = choose_cutoffs(NESTED, ROWS, costs=[1, 5])
    charts = {
        "epochs": epochs_chart(curves),
        "moves": moves_chart(moves),
        "labels": top_labels_chart(labels),
        "good": good_chart(good, NESTED.sizes),
        "frontier": frontier_chart(found),
    }
    expected = {
        "epochs": curves.values[:, 0],
        "moves": [*moves.before, *moves.after],
        "labels": labels.differences.ravel(),
        "good": good.ravel(),
        "frontier": [choice.value for choice in found.choices],
    }
    key = {"epochs": "first", "moves": "rank", "labels": "change", "good": "share"}
    for name, chart in charts.items():
        told = {round(float(value[key.get(name, "value")]), 9) for value in data(chart)}
        assert told == {round(float(value), 9) for value in expected[name]}, name
        save(chart, tmp_path / f"{name}.svg")
        assert "<svg" in (tmp_path / f"{name}.svg").read_text()[:300]
