"""Wins and losses, query by query, with the two rankings of each side by side and what caused every flip.

Values of queries are those of result.json, to the last digit. Lists are kept compactly, as arrays:

    documents of a query   [document, label, rank before, rank after, score before, score after, gain, [[part, push]]]
    its flips              [document up, document down, rank, worth, part, parameter]

where documents, parts (terms in fields, features) and parameters are numbers into tables, and null is for unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fliprank.experiment.coverage import ToJudge
from fliprank.experiment.diff import Diff
from fliprank.experiment.query_diff import Moved, QueryDiff
from fliprank.report.page.causes import SetBack, part_of_flip, set_back
from fliprank.report.page.section import Documents, Section, clipped, short

__all__ = ["queries_section", "query_values"]

MOST_LISTS, EXPLAINED = 1000, 300
"""Queries whose lists are kept, and those of which it is told what caused each flip: the ones that changed most."""
REASONS, FLIPS, JUDGED = 2, 10, 20
"""Reasons per document, flips per query and documents to judge that are kept."""

Values = Sequence[tuple[str, float | None, float | None]]
"""(query, before, after) of each query."""


def query_values(values: Mapping[str, tuple[float, float]]) -> Values:
    """From {query: (before, after)}, as a proof has them."""
    return [(qid, _known(before), _known(after)) for qid, (before, after) in values.items()]


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def queries_section(
    values: Values,
    lists: Diff,
    documents: Documents,
    *,
    sign: float,
    on: str,
    names: tuple[str, str] = ("default", "tuned"),
    texts: Mapping[str, str] | None = None,
    to_judge: Sequence[ToJudge] = (),
    notes: Iterable[str] = (),
) -> Section:
    """The table of all queries, and the lists of as many as `lists` has."""
    writer = _Writer(documents)
    known = writer.write(lists)
    told = texts or {}
    rows = [[clipped(qid), clipped(told.get(qid, "")), before, after, known.get(qid)] for qid, before, after in values]
    data = {
        "measure": str(lists.measure or ""),
        "sign": sign,
        "on": on,
        "names": list(names),
        "rows": rows,
        "lists": writer.records,
        "parts": list(writer.parts),
        "parameters": writer.parameters,
        "top": lists.top,
        "to_judge": [_to_judge(each, documents, told) for each in to_judge[:JUDGED]],
        "notes": [*lists.notes, *writer.notes, *notes],
    }
    return Section("queries", "Wins and losses", _conclusion(values, sign), data)


def _conclusion(values: Values, sign: float) -> str:
    """How many gained and lost, and by how much at most."""
    gains = [sign * (after - before) for _, before, after in values if before is not None and after is not None]
    won, lost = [gain for gain in gains if gain > 0], [gain for gain in gains if gain < 0]
    said = f"{len(won):,} of {len(gains):,} queries gained and {len(lost):,} lost"
    said += f"; {len(gains) - len(won) - len(lost):,} stayed as they were"
    if not lost:
        return f"{said}."
    return f"{said}; the worst loss is {-min(lost):.3f}" + (f", the best gain {max(won):.3f}." if won else ".")


def _to_judge(each: ToJudge, documents: Documents, texts: Mapping[str, str]) -> list[Any]:
    about = clipped(texts.get(each.query) or each.query)
    ranks = each.rank_before or None, each.rank_after or None
    return [about, documents.number(each.docid), *ranks, short(each.change)]


class _Writer:
    """Lists as compact records; parts are numbered as they come."""

    def __init__(self, documents: Documents) -> None:
        self.documents = documents
        self.parts = dict[str, int]()
        self.parameters = list[str]()
        self.records = list[dict[str, Any]]()
        self.notes = list[str]()

    def write(self, lists: Diff) -> dict[str, int]:
        """All queries of `lists` (of many, those that gained and lost most); the number of each one's record."""
        order, details = lists.order.tolist(), lists.details
        first = _ends(order, EXPLAINED)
        taken = set(first)
        others = [q for q in _ends(order, MOST_LISTS) if q not in taken]
        back = dict[str, SetBack]()
        if details.explainer is not None:
            self.parameters = list(details.explainer.after.params.free_names)
            shown = {details.runs.qids[q]: details.shown(q) for q in first}
            back = set_back(details.explainer, {qid: names for qid, names in shown.items() if names})
        found = dict[str, int]()
        for known, some in ((details, first), (replace(details, explainer=None), others)):
            for start in range(0, len(some), 256):
                for query in known.queries(some[start : start + 256]):
                    found[query.qid] = len(self.records)
                    self.records.append(self._query(query, back.get(query.qid)))
        if details.explainer is not None and others:
            self.notes.append(f"What caused each flip is told of the {len(first):,} queries that changed most.")
        return found

    def _query(self, query: QueryDiff, back: SetBack | None) -> dict[str, Any]:
        by_name = {each.docid: each for each in query.documents}
        spreads = _spreads(query.documents)
        flips = sorted(query.flips or (), key=lambda flip: -abs(flip.worth))[:FLIPS]
        told = []
        for flip in flips:
            up, down = (by_name.get(name) if name is not None else None for name in (flip.up, flip.down))
            both = up is not None and down is not None
            part = part_of_flip(up, down, spreads) if up is not None and down is not None else None
            cause = back.parameter(str(flip.up), str(flip.down)) if back is not None and both else None
            numbers = (None if name is None else self.documents.number(name) for name in (flip.up, flip.down))
            told.append([*numbers, flip.rank, short(flip.worth), self._part(part), cause])
        documents = [self._document(each) for each in query.documents]
        return {"overlap": short(query.overlap, 3), "documents": documents, "flips": told}

    def _document(self, each: Moved) -> list[Any]:
        reasons = [[self._part(reason.part), short(reason.change, 3)] for reason in each.because[:REASONS]]
        scores = short(each.score_before), short(each.score_after)
        number = self.documents.number(each.docid, each.title)
        return [number, short(each.label), each.before, each.after, *scores, short(each.gain), reasons]

    def _part(self, part: object | None) -> int | None:
        return None if part is None else self.parts.setdefault(clipped(str(part)), len(self.parts))


def _ends(order: list[int], most: int) -> list[int]:
    """All of them, or as many from either end: the ones that gained and lost most."""
    return order if len(order) <= most else [*order[: most // 2], *order[len(order) - most // 2 :]]


def _spreads(documents: Sequence[Moved]) -> tuple[float, float]:
    """The spread of the scores before and after, as the sums have them; 1 where there is none."""
    totals = [(sum(b for _, b, _ in each.sums), sum(a for _, _, a in each.sums)) for each in documents]
    before, after = np.std(totals, axis=0).tolist() if totals else (0.0, 0.0)
    return before or 1.0, after or 1.0
