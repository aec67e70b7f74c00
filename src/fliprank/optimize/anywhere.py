"""What is asked of rows in memory and of rows elsewhere alike: a model's measures, the spread of its scores, the top.

>>> from fliprank.measures import parse_measure
>>> from fliprank.models import Linear
>>> rows = Candidates.of([1, 0, 0], features=[[5.0], [9.0], [4.0]])
>>> model = Linear().prepared(rows, 0).at([0.0, 1.0])
>>> measured(model, rows, parse_measure("RR")), len(cut_to_top(rows, model, 2))
(0.5, 2)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.scattered import ScatteredRows
from fliprank.data.trec import Run
from fliprank.measures import Measure
from fliprank.models.base import Model

__all__ = ["AnyRows", "cut_to_top", "figures_of", "measured", "runs_of", "score_deviation"]

AnyRows = Candidates | ScatteredRows


def figures_of(model: Model, rows: AnyRows, measures: Sequence[Measure]) -> list[float]:
    """The measures of a model's ranking; rows are scored once."""
    parts = (
        [_per_query(rows, model, measures)] if isinstance(rows, Candidates) else rows.each(_per_query, model, measures)
    )
    columns = zip(*parts, strict=True)
    return [measure.aggregate(np.concatenate(column)) for measure, column in zip(measures, columns, strict=True)]


def measured(model: Model, rows: AnyRows, measure: Measure) -> float:
    """The measure of a model's ranking."""
    return figures_of(model, rows, [measure])[0]


def _per_query(part: Candidates, model: Model, measures: Sequence[Measure]) -> list[Floats]:
    scores = model.score(part)
    return [measure.per_query(scores, part) for measure in measures]


def score_deviation(model: Model, rows: AnyRows) -> float:
    """The standard deviation of a model's scores over all rows, added up query by query, wherever parts end."""
    mean = _sum(model, rows, 0.0, 1) / len(rows)
    return float(np.sqrt(_sum(model, rows, mean, 2) / len(rows)))


def _sum(model: Model, rows: AnyRows, origin: float, power: int) -> float:
    asked = (model, origin, power)
    parts = [_query_sums(rows, *asked)] if isinstance(rows, Candidates) else list(rows.each(_query_sums, *asked))
    return float(np.concatenate(parts).sum())


def _query_sums(part: Candidates, model: Model, origin: float, power: int) -> Floats:
    """The sum over the rows of each query of (score - origin)^power."""
    out, some = np.zeros(part.queries), part.sizes > 0
    if some.any():
        out[some] = np.add.reduceat((model.score(part) - origin) ** power, part.offsets[:-1][some])
    return out


def cut_to_top(rows: AnyRows, model: Model, size: int) -> AnyRows:
    """The rows that a model ranks highest, so many of each query; judged ones that are cut are still known."""
    return _top(rows, model, size) if isinstance(rows, Candidates) else rows.rewritten(_top, model, size)


def _top(part: Candidates, model: Model, size: int) -> Candidates:
    return part.top(model.score(part), size)


def runs_of(model: Model, rows: AnyRows, name: str) -> Iterator[Run]:
    """The ranking of all queries, in parts: of rows elsewhere, no more than some of them are here at a time.

    Without ids, documents are called by the number of their row.
    """
    if isinstance(rows, Candidates):
        return iter([_run(rows, model, name, 0)])
    return rows.in_turn(_run, model, name, own=(np.cumsum(rows.row_counts) - rows.row_counts,))


def _run(part: Candidates, model: Model, name: str, first: int) -> Run:
    return Run(part.offsets, part.qids, part.document_ids(first), model.score(part), name)
