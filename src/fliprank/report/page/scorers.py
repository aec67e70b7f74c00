"""Models as the page computes them: what the script needs to score rows at any parameters, to the last digits.

A scorer is a description of the function and, for each query, its input: all that does not depend on parameters (term
frequencies and lengths, standardised features, normalised scores of lists). `assets/scorers.js` has the formulas; tests
compare its scores with those of Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.models import BM25, BM25F, Feature, Fusion, Linear, Model, Stack, TwoStageLM
from fliprank.models.bm25_sum import BM25Sum
from fliprank.models.language_model import LEAST
from fliprank.models.stack import AllFeatures
from fliprank.models.term_rows import Lines, statistics_of

__all__ = ["Scorer", "scorer_of"]


@dataclass(frozen=True)
class Scorer:
    """`spec` describes the function, `inputs` has what each query's rows bring; both are plain JSON."""

    spec: dict[str, Any]
    inputs: list[Any]


@singledispatch
def scorer_of(model: Model, rows: Candidates) -> Scorer:
    """The scorer of a model on these rows; raises where the page has no formula for it."""
    raise UsageError(f"the page does not compute the scores of a {model.kind} model")


def _number(value: float) -> float | int | None:
    """As it is, to the last digit; whole numbers without a point, None for what is none."""
    if not np.isfinite(value):
        return None
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else float(value)


def _numbers(values: Floats) -> list[float | int | None]:
    return [_number(value) for value in np.asarray(values, np.float64).ravel().tolist()]


def _text_inputs(rows: Candidates, lines: Lines, background: bool = False) -> list[Any]:
    """Per query: the weight of each term; per row its lengths, and its lines (term, tf of each field), flat."""
    ends, out = statistics_of(rows).offsets, []
    for q in range(rows.queries):
        terms = slice(*ends[q : q + 2])
        lengths, counts = [], []
        for row in range(*rows.offsets[q : q + 2]):
            own = slice(lines.starts[row], lines.starts[row + 1])
            table = np.column_stack([lines.term[own] - terms.start, lines.tf[own]])
            lengths.append(_numbers(lines.length[row]))
            counts.append(_numbers(table))
        found: dict[str, Any] = {"weight": _numbers(lines.weight[terms, 0]), "length": lengths, "tf": counts}
        if background:
            found["background"] = _numbers(lines.background[terms])
        out.append(found)
    return out


@scorer_of.register(BM25)
@scorer_of.register(BM25F)
@scorer_of.register(BM25Sum)
def _of_fields(model: BM25 | BM25F | BM25Sum, rows: Candidates) -> Scorer:
    lines = model.row_function(rows).lines
    assert lines is not None
    assert model.average is not None
    average = model.average
    inverse = np.divide(1.0, average, out=np.zeros(len(average)), where=average > 0)
    return Scorer({"kind": model.kind, "inverse": _numbers(inverse)}, _text_inputs(rows, lines))


@scorer_of.register
def _language(model: TwoStageLM, rows: Candidates) -> Scorer:
    lines = model.row_function(rows).lines
    assert lines is not None
    spec = {"kind": "language", "fields": lines.tf.shape[1], "mixture": model.mixture, "least": LEAST}
    return Scorer(spec, _text_inputs(rows, lines, background=True))


@scorer_of.register
def _feature(model: Feature, rows: Candidates) -> Scorer:
    column = model._column(rows)
    inputs = [_numbers(column[a:b]) for a, b in zip(rows.offsets, rows.offsets[1:], strict=False)]
    return Scorer({"kind": "feature", "transform": model.transform}, inputs)


@scorer_of.register
def _linear(model: Linear, rows: Candidates) -> Scorer:
    table = model.fitted_scaler().standardised(rows)
    inputs = [[_numbers(row) for row in table[a:b]] for a, b in zip(rows.offsets, rows.offsets[1:], strict=False)]
    return Scorer({"kind": "linear"}, inputs)


@scorer_of.register
def _stack(model: Stack, rows: Candidates) -> Scorer:
    if model.hidden:
        raise UsageError("the page does not compute the scores of a stack with hidden nodes")
    parts, sizes = [scorer_of(part, rows) for part in model.models], [len(part.params) for part in model.models]
    features = next((part.linear for part in model.parts if isinstance(part, AllFeatures)), None)
    every = [*parts, scorer_of(features, rows)] if features is not None else parts
    spec = {"kind": "stack", "parts": [part.spec for part in parts], "sizes": sizes, "features": features is not None}
    return Scorer(spec, [list(each) for each in zip(*(part.inputs for part in every), strict=True)])


@scorer_of.register
def _fusion(model: Fusion, rows: Candidates) -> Scorer:
    table, names = model.normalised(rows), model.params.names
    spec = {
        "kind": "fusion",
        "lists": len(model.lists),
        "weights": model.rule.weights,
        "combine": model.rule.combine,
        "ranked": [norm.kind == "rank" for norm in model.norms],
        "k_at": names.index("k") if "k" in names else None,
        "k": _number(model.k or 0.0),
        "tie_at": names.index("tie") if "tie" in names else None,
        "factor": model.rule.factor,
    }
    inputs = [[_numbers(row) for row in table[a:b]] for a, b in zip(rows.offsets, rows.offsets[1:], strict=False)]
    return Scorer(spec, inputs)
