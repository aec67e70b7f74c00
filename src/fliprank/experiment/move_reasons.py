"""Why a document moved: the terms, fields and features that brought it past others, or others past it.

Scores of two functions are in different units, and a field that counts more lifts all documents that have it. So a move
is explained by what the document has over those that it swapped with: the margin of each term and field, before and
after, in units of the spread of the query's scores by each function. Before the move the margins of a document that
rose add up to less than 0, afterwards to more: what changed most is the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError
from fliprank.models.base import Model
from fliprank.models.contributions import Contributions, Part, contributions
from fliprank.text.index import Searchable

__all__ = ["Explainer", "Reason", "TwoSums", "rows_of_candidates", "rows_of_index"]

RowsOf = Callable[[Mapping[str, Sequence[str]]], Candidates]
"""From documents by query to their rows, queries and documents in this order."""


class Reason(NamedTuple):
    """The margin of a part of the score over the documents that were passed, before and after, in spreads of scores."""

    part: Part
    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after - self.before


@dataclass(frozen=True, eq=False)
class TwoSums:
    """What the scores of some documents of a query are made of, before and after: documents x parts."""

    parts: tuple[Part, ...]
    before: Floats
    after: Floats

    def of(self, document: int) -> list[tuple[Part, float, float]]:
        """The parts of one document's score that are not 0 both times, as they are."""
        columns = zip(self.parts, self.before[document].tolist(), self.after[document].tolist(), strict=True)
        return [(part, before, after) for part, before, after in columns if before or after]

    def reasons(self, document: int, before: Sequence[float], after: Sequence[float]) -> list[Reason]:
        """Why a document moved: what pushed it most first, what held it back last.

        Ranks are infinite for what a list does not have.
        """
        passed = _passed(document, before, after)
        if not passed:
            return []
        margins = [
            (values[document] - values[passed].mean(axis=0)) / (float(values.sum(axis=1).std()) or 1.0)
            for values in (self.before, self.after)
        ]
        found = [Reason(*each) for each in zip(self.parts, *(m.tolist() for m in margins), strict=True)]
        moved = [reason for reason in found if abs(reason.change) > 1e-12]
        way = 1.0 if after[document] < before[document] else -1.0
        if way * sum(reason.change for reason in moved) <= 0:  # the lists are not those of these functions
            return []
        return sorted(moved, key=lambda reason: -way * reason.change)

    def agrees(self, before: Sequence[float | None], after: Sequence[float | None]) -> bool:
        """Whether the sums are these scores, as far as these are known."""
        for values, scores in ((self.before, before), (self.after, after)):
            known = [i for i, score in enumerate(scores) if score is not None]
            given = np.array([scores[i] for i in known], np.float64)
            if not np.allclose(values[known].sum(axis=1), given, rtol=1e-6, atol=1e-6):
                return False
        return True


def _passed(document: int, before: Sequence[float], after: Sequence[float]) -> list[int]:
    """Those that a document that rose has overtaken, or those that have overtaken one that fell."""
    up = after[document] < before[document]
    first, then = (before, after) if up else (after, before)
    return [i for i in range(len(before)) if first[i] < first[document] and then[i] > then[document]]


@dataclass(frozen=True, eq=False)
class Explainer:
    """The functions that made two lists, and where the rows come from that they score.

    Where they are not quite those that made the lists (but fits to other folds of the queries), it is not `exact`.
    """

    before: Model
    after: Model
    rows_of: RowsOf
    exact: bool = True

    def sums(self, documents: Mapping[str, Sequence[str]]) -> dict[str, TwoSums]:
        """What the scores of these documents are made of, by query; raises where they are no sums."""
        rows = self.rows_of(documents)
        both = zip(documents, contributions(self.before, rows), contributions(self.after, rows), strict=True)
        return {qid: _beside(before, after) for qid, before, after in both}


def _beside(before: Contributions, after: Contributions) -> TwoSums:
    """Both under the same parts: terms without their fields, where one of the two functions knows no fields."""
    if any(part.term and not part.field for part in (*before.parts, *after.parts)):
        before, after = _by_term(before), _by_term(after)
    parts = tuple(dict.fromkeys((*before.parts, *after.parts)))
    tables = []
    for each in (before, after):
        table = np.zeros((len(each.values), len(parts)))
        for column, part in enumerate(each.parts):
            table[:, parts.index(part)] += each.values[:, column]
        tables.append(table)
    return TwoSums(parts, *tables)


def _by_term(found: Contributions) -> Contributions:
    parts = tuple(part._replace(field="", of="") if part.term else part for part in found.parts)
    return Contributions(parts, found.values)


def rows_of_index(index: Searchable, texts: Mapping[str, str]) -> RowsOf:
    """Rows of the documents of an index, for queries with these texts."""

    def rows(documents: Mapping[str, Sequence[str]]) -> Candidates:
        if unknown := next((qid for qid in documents if qid not in texts), None):
            raise InputError("there is no text of the query", query=unknown)
        return index.rows({qid: texts[qid] for qid in documents}, documents)

    return rows


def rows_of_candidates(candidates: Candidates) -> RowsOf:
    """The rows of these documents among candidates."""
    places = {qid: q for q, qid in enumerate(candidates.qids.tolist())}

    def rows(documents: Mapping[str, Sequence[str]]) -> Candidates:
        chosen: list[int] = []
        for qid, names in documents.items():
            span = np.arange(*candidates.offsets[places[qid] : places[qid] + 2])
            own = [f"row{i + 1}" for i in span] if candidates.docids is None else candidates.docids.take(span).tolist()
            at = dict(zip(own, span.tolist(), strict=True))
            chosen += [at[name] for name in names]
        return candidates.take(chosen).select([places[qid] for qid in documents])

    return rows
