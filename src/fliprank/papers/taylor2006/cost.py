"""Section 5: what both methods cost, in documents scored and in time."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

import fliprank as fr
from fliprank.experiment.learning_curve import Ranker
from fliprank.models.base import Model
from fliprank.papers.checkpoint import kept
from fliprank.papers.part import Finding, Setting, Verdict, part
from fliprank.papers.taylor2006.collections import MEASURE, Collection, generated, web
from fliprank.papers.taylor2006.curves import settings_of
from fliprank.papers.taylor2006.rankers import LINE_REST_EPOCHS, descent, line_search, parameters

FAR = 2.0
"""Descent is far cheaper if line search scores more than so many times the documents."""


@part("taylor2006", "section5", "What gradient descent and line search cost", needs=("stanford-web",), minutes=2)
def section5(setting: Setting) -> Finding:
    """Documents scored and seconds of one fit by each method, at several training sizes."""
    rows, ratios, every = list[tuple[Any, ...]](), dict[str, float](), (generated(setting), web(setting))
    for data in every:
        for model, sizes, options in _compared(setting, data):
            count = parameters(data, model)
            _cost(setting, data, descent(data, model), 16)  # compiles what is compiled once
            for size in sizes:
                where = f"{data.name}, {count} parameters, {size} queries"
                ways = {"descent": descent(data, model), "line search": line_search(model, **options)}
                one, other = (
                    kept(setting, f"{where}: {name}", partial(_cost, setting, data, way, size))
                    for name, way in ways.items()
                )
                ratios[where] = other[0] / one[0]
                scored, epochs, seconds = zip(one, other, strict=True)
                row = (*scored, ratios[where], *epochs, *seconds, seconds[1] / seconds[0])
                rows.append((data.name, count, size, *row))
    lowest, highest = (pick(ratios, key=lambda each: ratios[each]) for pick in (min, max))
    return Finding(
        ("data", "parameters", "training queries", "scored by descent", "scored by line search", "ratio",
         "epochs of descent", "epochs of line search", "seconds of descent", "seconds of line search",
         "ratio of seconds"),
        tuple(rows),
        "Gradient descent on RankNet's cost is far more efficient than line search when it works with sampled pairs.",
        f"Line search scores {ratios[lowest]:.1f} ({lowest}) to {ratios[highest]:.1f} ({highest}) times the documents "
        f"that descent scores. It scores all documents of a query, of which the paper has 2,500.",
        _verdict(ratios),
        settings_of(setting, *every),
        None,
        ("A document counts each time that its score is computed; seconds are of the processor, on this machine, and "
         "the only figures here that differ from run to run.",
         "Both have at most 24 epochs, line search of hundreds of weights 8; it has 21 samples per line and ends after "
         "3 epochs without gain."),
    )  # fmt: skip


def _compared(setting: Setting, data: Collection) -> list[tuple[Model, tuple[int, ...], dict[str, Any]]]:
    """Each ranker, the training sizes at which it is fitted by both methods, and settings of the line search."""
    sizes = (16,) if setting.quick else tuple(size for size in (64, 362, 2048) if size <= data.sizes[-1])
    found: list[tuple[Model, tuple[int, ...], dict[str, Any]]] = [(data.two, sizes, {}), (data.nine, sizes, {})]
    if data.weak:
        found.append((data.many, sizes[:1], {"epochs": 2 if setting.quick else LINE_REST_EPOCHS}))
    return found


def _verdict(ratios: dict[str, float]) -> Verdict:
    """It holds if line search scores far more everywhere; it does not if that is so nowhere."""
    if all(ratio > FAR for ratio in ratios.values()):
        return "holds"
    return "does not hold" if all(ratio <= FAR for ratio in ratios.values()) else "can't be told at this size"


def _cost(setting: Setting, data: Collection, ranker: Ranker, size: int) -> tuple[int, int, float]:
    """Documents scored, epochs and seconds of a fit to the first training queries, with a quarter for validation."""
    held = max(1, size // 4)
    rows, valid = data.rows.select(np.arange(size)), data.rows.select(np.arange(-held, 0) + data.rows.queries)
    how: dict[str, Any] = {"method": ranker.method, "objective": ranker.objective, **ranker.options}
    began = time.process_time()
    fit = fr.train(ranker.model, rows, valid, measure=MEASURE, seed=setting.seed, jobs=1, **how)
    return fit.documents_scored, len(fit.trail) - 1, time.process_time() - began
