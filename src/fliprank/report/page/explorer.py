"""The explorer: some queries with all that their scores are made of, to be ranked anew at any parameters in the page.

Of each query it holds the documents that either function ranks first, and the judged ones. The measure is embedded as
its law of flips: the gain of each document, the discount of each rank, and how what stands above weighs; so the page
computes any measure that pays by ranks as Python does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.csr import positions
from fliprank.data.order import order_rows
from fliprank.errors import UsageError
from fliprank.landscape.list_flips import has_flips
from fliprank.measures import Measure
from fliprank.measures.base import RankMeasure
from fliprank.models import Model
from fliprank.optimize.ranges import Range
from fliprank.report.page.parameters import drawn_range
from fliprank.report.page.scorers import scorer_of
from fliprank.report.page.section import Documents, Section, clipped, short

__all__ = ["NO_EXPLORER", "explorer_section", "sampled"]

NO_EXPLORER = "This page has no explorer: it can't compute the scores of this model, or this measure, by itself."

MOST_QUERIES, MOST_ROWS, DEEP, MOST_PARAMETERS = 60, 6000, 20, 40
"""Queries and rows that are embedded; first ranks of either function that are among them; parameters with a slider."""


def explorer_section(
    model: Model,
    start: Model,
    rows: Candidates,
    measure: Measure,
    ranges: Mapping[str, Range],
    documents: Documents,
    texts: Mapping[str, str] | None = None,
    on: str = "",
) -> Section | None:
    """None where the page can't compute the scores or the measure, or there are too many parameters."""
    if not _computable(model, measure):
        return None
    few = sampled(rows, model, start)
    try:
        scorer = scorer_of(model, few)
    except UsageError:
        return None
    before, after = (each.score(few) for each in (start, model))
    assert isinstance(measure, RankMeasure)
    data = {
        "measure": str(measure),
        "sign": measure.sign,
        "on": on,
        "of": rows.queries,
        "scorer": scorer.spec,
        "parameters": [_slider(model, start, name, ranges.get(name)) for name in model.params.free_names],
        "tuned": model.params.values.tolist(),
        "default": start.params.values.tolist(),
        "law": {"above": measure.law_for(few).above, "ranks": measure.law_for(few).ranks},
        "queries": _queries(few, measure, scorer.inputs, documents, texts or {}),
        "values": {"default": measure.value(before, few), "tuned": measure.value(after, few)},
    }
    conclusion = (
        f"Move a parameter and see what flips: {few.queries:,} queries are ranked anew as you drag, and their "
        f"{measure} goes from {data['values']['default']:.4f} to {data['values']['tuned']:.4f} by tuning."
    )
    return Section("explorer", "Explorer", conclusion, data)


def _computable(model: Model, measure: Measure) -> bool:
    probe = np.array([0.25, 0.5])
    plain = bool((measure.paired(probe) == probe).all())  # else the mean is not that of the values
    few = 0 < len(model.params.free_names) <= MOST_PARAMETERS
    return few and not model.whole_queries and has_flips(measure) and plain


def sampled(rows: Candidates, *models: Model) -> Candidates:
    """Queries spread evenly, of each the judged documents and the first of each model; ties in their order."""
    count = min(rows.queries, MOST_QUERIES)
    few = rows.select(np.unique(np.linspace(0, rows.queries - 1, count).round().astype(np.int64)))
    kept = ~np.isnan(few.labels)
    for model in models:
        kept[order_rows(model.score(few), few.offsets, few.docids)[positions(few.offsets) < DEEP]] = True
    few = few.take(kept)
    if len(few) > MOST_ROWS:
        few = few.select(np.flatnonzero(np.cumsum(few.sizes) <= max(MOST_ROWS, int(few.sizes[0]))))
    # The page sorts by score and leaves ties as they are: rows come in the order in which ties are settled.
    return few.take(order_rows(np.zeros(len(few)), few.offsets, few.docids))


def _slider(model: Model, start: Model, name: str, span: Range | None) -> dict[str, Any]:
    places = model.params.positions(name)
    default, tuned = (float(each.params.values[places[0]]) for each in (start, model))
    low, high = drawn_range(model.params, name, default, span)
    good = None if span is None else [float(max(low, span.low)), float(min(high, span.high))]
    known = {"name": name, "places": places.tolist(), "default": default, "tuned": tuned}
    return known | {"low": float(low), "high": float(high), "good": good}


def _queries(
    rows: Candidates, measure: RankMeasure, inputs: list[Any], documents: Documents, texts: Mapping[str, str]
) -> list[dict[str, Any]]:
    law, entries, names = measure.law_for(rows), rows.judgements.entry_of_row, rows.document_ids().tolist()
    out = []
    for q, qid in enumerate(rows.qids.tolist()):
        span = range(*rows.offsets[q : q + 2])
        gains = [None if entries[row] < 0 else float(law.gain[entries[row]]) for row in span]
        paid: Floats = law.discount[law.begin[q] : law.begin[q] + law.limit[q]][: len(span)]
        out.append(
            {
                "id": clipped(qid),
                "text": clipped(texts.get(qid, "")),
                "documents": [documents.number(names[row]) for row in span],
                "labels": [short(float(rows.labels[row])) for row in span],
                "gains": gains,
                "discount": paid.tolist(),
                "input": inputs[q],
            }
        )
    return out
