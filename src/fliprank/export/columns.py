"""A text function of an engine with columns of the documents beside it, as an engine adds them up.

That is `Stack(engine_model(...), Feature(...), ...)`: the text's score and, for each column, a weight times a curve.

>>> from fliprank.export.functions import engine_model
>>> text = engine_model("sqlite", fields=["title"])
>>> stack = Stack(text, Feature("stars", transform="saturate", k=3.0))
>>> text_and_columns(stack.at([*text.params.values, 3.0, 1.0, 0.25]))[1]
[Column(name='stars', transform='saturate', weight=0.25, k=3.0, a=1.0, newest=0.0)]

`engine_stack` makes one of documents' columns, with curves and signs of weights that the engine can be told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from math import inf
from typing import NamedTuple

from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.export.functions import takes_text_of
from fliprank.export.target import Takes
from fliprank.models.base import Model
from fliprank.models.column_curves import column_curves
from fliprank.models.document_feature import Feature
from fliprank.models.engine import EngineText
from fliprank.models.stack import Stack

__all__ = ["Column", "EngineStack", "engine_stack", "identifier", "takes_text_and_columns", "text_and_columns"]


class Column(NamedTuple):
    """A column of the documents: weight x curve(value). `k`, `a`, `newest` are those of the curve, if it has them."""

    name: str
    transform: str
    weight: float
    k: float = 1.0
    a: float = 1.0
    newest: float = 0.0


Refuses = Callable[[Column], str | None]
"""Why a column can't be written for an engine; None if it can."""

REFUSES: dict[str, Refuses] = {}
"""By engine that takes columns beside text."""


def text_and_columns(model: Model) -> tuple[EngineText, list[Column]] | None:
    """The text function and the columns that count, with the text's weight at 1; None for any other model."""
    if isinstance(model, EngineText):
        return model, []
    if not isinstance(model, Stack) or model.hidden or len(model.models) < len(model.parts):
        return None
    text, *others = model.models
    weights = model.params.values[-len(model.models) :]
    if not isinstance(text, EngineText) or not weights[0] > 0:
        return None
    columns = []
    for part, weight in zip(others, weights[1:], strict=True):
        if not isinstance(part, Feature):
            return None
        if weight:
            columns.append(_column(part, float(weight / weights[0])))
    return text, columns


def _column(part: Feature, weight: float) -> Column:
    known = dict(zip(part.params.names, part.params.values.tolist(), strict=True))
    k, a = (known.get(f"{part.name}.{name}", 1.0) for name in "ka")
    return Column(part.name, part.transform, weight, k, a, part.newest or 0.0)


def takes_text_and_columns(
    engine: str,
    refuses: Refuses,
    fits: Callable[[str], bool],
    called: Callable[[Column], str] = lambda column: column.name,
) -> Takes:
    """Whether a target takes a model: a text function of this engine, and columns that `refuses` has nothing against.

    `fits`: whether a name can be written in the engine's language. `called`: the field of a column there.
    """
    takes_text = takes_text_of(engine)
    REFUSES[engine] = refuses

    def takes(model: Model) -> str | None:
        found = text_and_columns(model)
        if found is None:
            return takes_text(model)
        text, columns = found
        names = [*(text.fields or ()), *map(called, columns)]
        twice = next((name for name in names if names.count(name) > 1), None)
        reasons = [takes_text(text), _unfit_name(engine, names, fits), *map(refuses, columns)]
        reasons.append(None if twice is None else f"{twice} is a field and a column at once, or two columns")
        return next((reason for reason in reasons if reason is not None), None)

    return takes


class EngineStack(NamedTuple):
    """Text and columns to tune together, the bounds that the engine sets, and which columns are left out."""

    model: Stack
    bounds: dict[str, tuple[float, float]]
    notes: tuple[str, ...]


def engine_stack(text: EngineText, rows: Candidates) -> EngineStack:
    """The text function with the columns of these rows, through curves that its engine has.

    Where a curve can't count against a document there, saturation, which can, takes its place; where that is no curve
    for the column, as for dates, its weight is not below 0.
    """
    engine = text.formula.engine
    if engine not in REFUSES:
        raise UsageError(f"{engine} takes no columns beside text; these do: {', '.join(sorted(REFUSES))}")
    curves, refuses = column_curves(rows), REFUSES[engine]
    parts, bounds, notes = list[Feature](), dict[str, tuple[float, float]](), list(curves.notes)
    for part in curves.parts:
        if reason := refuses(Column(part.name, part.transform, 1.0)):
            notes.append(f"column {part.name} is left out: {reason}")
            continue
        if refuses(Column(part.name, part.transform, -1.0)):
            if part.transform == "log":
                part = replace(part, transform="saturate")
            else:
                bounds[f"{part.name}.weight"] = (0.0, inf)
        parts.append(part)
    if not parts:
        have = "; ".join(notes) or "these have none"
        raise UsageError(f"a stack needs columns of the documents, such as pagerank: {have}; leave out --model")
    return EngineStack(Stack(text, *parts), bounds, tuple(notes))


def _unfit_name(engine: str, names: Iterable[str], fits: Callable[[str], bool]) -> str | None:
    """The reason why some name can't be used; None if all can."""
    bad = next((name for name in names if not fits(name)), None)
    return None if bad is None else f"a field can't be called {bad!r} in a query of {engine}'s"


def identifier(name: str) -> bool:
    """Letters, digits and underscores, as most languages want names.

    >>> identifier("title_2"), identifier("metadata.author"), identifier("2nd")
    (True, False, False)
    """
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None
