"""What unjudged documents could change: bounds on a comparison of two rankings, and which of them to judge first.

Documents that nobody judged count as not relevant. Where one ranking has more of them than the other, that is unfair to
it. So the comparison is made again as if all of them were relevant, and on condensed lists, from which they are left
out; and those whose label would move the comparison most are listed for people to judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds, positions
from fliprank.data.ids import match
from fliprank.data.order import order_rows
from fliprank.data.trec import JudgedRun, Qrels, Run, judge
from fliprank.experiment.significance import Comparison, compare_values
from fliprank.measures import Measure

__all__ = ["Bound", "Coverage", "ToJudge", "coverage_of", "coverage_of_sides"]

TOP = 10
"""Ranks down to which a document is worth judging, for measures without a cut-off."""

NOTHING = 1e-12
"""A change that is rounding."""


class Bound(NamedTuple):
    """The comparison, with what is made of unjudged documents in words."""

    what: str
    comparison: Comparison


class ToJudge(NamedTuple):
    """A document to judge: its ranks (0: not in the list), and the change of the mean difference if it is relevant."""

    query: str
    docid: str
    rank_before: int
    rank_after: int
    change: float


@dataclass(frozen=True)
class Coverage:
    """Comparisons with unjudged documents as not relevant, as relevant and left out; what to judge, best first."""

    bounds: tuple[Bound, ...]
    to_judge: tuple[ToJudge, ...]

    @property
    def sentence(self) -> str:
        """Whether judging more could turn the result."""
        if not self.to_judge:
            return "All documents that count are judged."
        first = self.bounds[0].comparison.difference
        turned = [b.what for b in self.bounds[1:] if b.comparison.difference * first < 0]
        count = f"{len(self.to_judge):,} unjudged documents are ranked differently"
        if turned:
            return (
                f"{count}, and the difference changes its sign if they are {' or '.join(turned)}: judge some of them."
            )
        return f"{count}; whatever they are, the difference keeps its sign."


def coverage_of(qrels: Qrels, rows: Candidates, before: Run, after: Run, measure: Measure) -> Coverage:
    """What the unjudged documents among `rows` could change of the comparison of two runs."""
    return coverage_of_sides(rows, judge(qrels, before), judge(qrels, after), measure)


def coverage_of_sides(rows: Candidates, before: JudgedRun, after: JudgedRun, measure: Measure) -> Coverage:
    """The same of runs that were joined with the judgements; their queries are those of `rows`."""
    sides, best = (before, after), _best_label(rows)
    cases = {
        "not relevant": sides,
        "relevant": [_filled(side, rows, best) for side in sides],
        "left out": [_condensed(side) for side in sides],
    }
    found = [Bound(what, _comparison(each, measure)) for what, each in cases.items()]
    return Coverage(tuple(found), tuple(_to_judge(sides, measure, best)))


def _comparison(sides: Sequence[JudgedRun], measure: Measure) -> Comparison:
    values = [measure.paired(measure.per_query(side.scores, side.candidates)) for side in sides]
    names = ("before", "after")
    return compare_values({name: {str(measure): own} for name, own in zip(names, values, strict=True)}, names[0])[0]


def _best_label(rows: Candidates) -> float:
    known = np.concatenate([rows.labels[~np.isnan(rows.labels)], rows.missed_labels])
    return max(1.0, float(known.max(initial=0.0)))


def _filled(side: JudgedRun, rows: Candidates, label: float) -> JudgedRun:
    """The run with this label for all of `rows` that have none, those that are not in the run among the missed.

    A run may also have unjudged documents that are not among `rows`, as one of the whole index does.
    """
    mine, every = (
        np.bincount(c.query_of_rows()[np.isnan(c.labels)], minlength=c.queries) for c in (side.candidates, rows)
    )
    labels = np.where(np.isnan(side.candidates.labels), label, side.candidates.labels)
    missed = np.repeat(np.arange(rows.queries), np.maximum(every - mine, 0))
    return replace(side, candidates=_relabelled(side.candidates, labels, missed, label))


def _condensed(side: JudgedRun) -> JudgedRun:
    """The run without documents that nobody judged."""
    known = ~np.isnan(side.candidates.labels)
    return replace(side, candidates=side.candidates.take(known), scores=side.scores[known])


class _Asked(NamedTuple):
    """Documents that might be judged: query, and the row in either run (-1: not there)."""

    query: Ints
    rows: tuple[Ints, Ints]


def _to_judge(sides: Sequence[JudgedRun], measure: Measure, label: float) -> Sequence[ToJudge]:
    """Unjudged documents of the first ranks of either run, by how much their being relevant moves the difference."""
    qids = sides[0].candidates.qids
    ranks = [_ranks(side) for side in sides]
    asked = _asked(sides, [rank <= (measure.depth or TOP) for rank in ranks])
    # In each round every query has one more document judged, alone: as many evaluations as a query has documents.
    place = positions(bounds(np.bincount(asked.query, minlength=len(qids))))
    start, change = _difference(sides, measure), np.zeros(len(asked.query))
    for number in range(int(place.max(initial=-1)) + 1):
        some = place == number
        now = _Asked(asked.query[some], (asked.rows[0][some], asked.rows[1][some]))
        change[some] = (_difference(sides, measure, now, label) - start)[now.query] / len(start)
    docids = [side.candidates.document_ids() for side in sides]
    out = []
    for i in np.lexsort((asked.query, -np.abs(change))):
        if abs(change[i]) > NOTHING:
            row = [int(rows[i]) for rows in asked.rows]
            name = docids[0][row[0]] if row[0] >= 0 else docids[1][row[1]]
            one, other = (int(ranks[side][row[side]]) if row[side] >= 0 else 0 for side in (0, 1))
            out.append(ToJudge(qids[int(asked.query[i])], name, one, other, float(change[i])))
    return out


def _ranks(side: JudgedRun) -> Ints:
    """The rank of each row, from 1."""
    rows = side.candidates
    rank = np.empty(len(rows), np.int64)
    rank[order_rows(side.scores, rows.offsets, rows.docids)] = positions(rows.offsets) + 1
    return rank


def _asked(sides: Sequence[JudgedRun], tops: Sequence[NDArray[np.bool_]]) -> _Asked:
    """The unjudged documents of either run's first ranks, query by query."""
    one, other = (side.candidates for side in sides)
    found = []
    for rows, into, top in ((one, other, tops[0]), (other, one, tops[1])):
        mine = np.flatnonzero(top & np.isnan(rows.labels))
        query = rows.query_of_rows()[mine]
        limits, every = bounds(np.bincount(query, minlength=rows.queries)), np.arange(rows.queries)
        partners = match(rows.document_ids().take(mine), limits, into.document_ids(), into.offsets, every)
        found.append((query, mine, partners))
    (query, first, second), (later, after, before) = found
    new = (before < 0) | ~tops[0][before]
    queries = np.concatenate([query, later[new]])
    order = np.argsort(queries, kind="stable")
    rows_of = np.concatenate([first, before[new]])[order], np.concatenate([second, after[new]])[order]
    return _Asked(queries[order], rows_of)


def _difference(
    sides: Sequence[JudgedRun], measure: Measure, asked: _Asked | None = None, label: float = 1.0
) -> Floats:
    """The second run's measure less the first's, by query, with one document more judged relevant in some queries."""
    values = []
    for number, side in enumerate(sides):
        rows = side.candidates
        if asked is not None:
            there, labels = asked.rows[number] >= 0, rows.labels.copy()
            labels[asked.rows[number][there]] = label
            rows = _relabelled(rows, labels, asked.query[~there], label)
        values.append(measure.per_query(side.scores, rows))
    return np.nan_to_num(measure.sign * (values[1] - values[0]))


def _relabelled(rows: Candidates, labels: Floats, missed: Ints, label: float) -> Candidates:
    """The rows with these labels, and one more relevant document that is not among them in the queries `missed`."""
    owner = np.concatenate([np.repeat(np.arange(rows.queries), np.diff(rows.missed_offsets)), missed])
    values = np.concatenate([rows.missed_labels, np.full(len(missed), label)])
    limits = bounds(np.bincount(owner, minlength=rows.queries))
    order = np.argsort(owner, kind="stable")
    return replace(rows, labels=labels, missed_offsets=limits, missed_labels=values[order])
