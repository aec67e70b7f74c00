"""Two runs over the same queries, list beside list: who entered, who left, and how much the lists have in common.

>>> runs = pair_runs(Run.of({"q": {"a": 3, "b": 2, "c": 1}}), Run.of({"q": {"b": 9, "a": 8, "d": 7}}))
>>> runs.ranked(0), runs.entered_and_left(3)
((['a', 'b', 'c'], ['b', 'a', 'd']), (1, 1))
>>> runs.overlaps().round(4).tolist()
[0.63]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds, positions, span_indices
from fliprank.data.ids import Ids, find_duplicates, locate, match
from fliprank.data.order import order_rows
from fliprank.data.query_doc_table import examples
from fliprank.data.trec import Qrels, Run
from fliprank.errors import InputError

__all__ = ["PERSISTENCE", "PairedRuns", "pair_runs", "qrels_of_rows", "rank_biased_overlap", "run_of_rows", "run_over"]

PERSISTENCE = 0.9
"""The chance that the reader of rank-biased overlap goes on to the next rank: 86% of its weight is on the first ten."""


@dataclass(frozen=True, eq=False)
class PairedRuns:
    """Two runs with the same queries in the same order, every list best first.

    `partner` is, for each row of `before`, the row of `after` with the same document, or -1.
    """

    before: Run
    after: Run
    partner: Ints

    @property
    def qids(self) -> Ids:
        return self.before.qids

    def __len__(self) -> int:
        return len(self.qids)

    def ranked(self, q: int) -> tuple[list[str], list[str]]:
        """The documents of both lists of a query, best first."""
        before, after = (run.docids.take(np.arange(*run.offsets[q : q + 2])).tolist() for run in self.runs)
        return before, after

    @property
    def runs(self) -> tuple[Run, Run]:
        return self.before, self.after

    def scores(self, q: int) -> tuple[Floats, Floats]:
        """The scores that belong to `ranked`."""
        before, after = (run.scores[slice(*run.offsets[q : q + 2])] for run in self.runs)
        return before, after

    def entered_and_left(self, top: int) -> tuple[int, int]:
        """How many documents entered the first `top` ranks, and how many left them, over all queries."""
        before, after = (positions(run.offsets) for run in self.runs)
        met = self.partner >= 0
        stayed = int(np.count_nonzero((before[met] < top) & (after[self.partner[met]] < top)))
        return int(np.count_nonzero(after < top)) - stayed, int(np.count_nonzero(before < top)) - stayed

    def overlaps(self, p: float = PERSISTENCE) -> Floats:
        """The rank-biased overlap of both lists of each query."""
        before, after = (positions(run.offsets) for run in self.runs)
        depth = np.maximum(before, np.where(self.partner >= 0, after[self.partner] if len(after) else 0, -1))
        out = np.empty(len(self))
        for q in range(len(self)):
            span = slice(*self.before.offsets[q : q + 2])
            sizes = (span.stop - span.start, int(np.diff(self.after.offsets[q : q + 2])[0]))
            out[q] = rank_biased_overlap(depth[span][self.partner[span] >= 0], *sizes, p)
        return out

    def same(self, top: int) -> int:
        """Of how many queries the first `top` ranks are the same."""
        before, after = (positions(run.offsets) for run in self.runs)
        kept = (self.partner >= 0) & (before < top)
        kept[kept] = after[self.partner[kept]] == before[kept]
        owner = np.repeat(np.arange(len(self)), np.diff(self.before.offsets))
        agreed = np.bincount(owner[kept], minlength=len(self))
        sizes = [np.minimum(np.diff(run.offsets), top) for run in self.runs]
        return int(np.count_nonzero((agreed == sizes[0]) & (agreed == sizes[1])))


def pair_runs(before: Run, after: Run, qids: Ids | None = None) -> PairedRuns:
    """Both runs over the queries `qids`; by default over all that either has. A query that a run lacks is empty there.

    Raises if they have no query in common, or a list has a document twice.
    """
    for run in (before, after):
        _check_unique(run)
    if not (locate(before.qids, after.qids) >= 0).any():
        hint = f"the first has {examples(before.qids)}, the second {examples(after.qids)}"
        raise InputError("the runs have no query in common", hint=hint)
    if qids is None:
        qids = Ids.of(dict.fromkeys([*before.qids.tolist(), *after.qids.tolist()]))
    one, other = run_over(before, qids), run_over(after, qids)
    partner = match(one.docids, one.offsets, other.docids, other.offsets, np.arange(len(qids)))
    return PairedRuns(one, other, partner)


def run_over(run: Run, qids: Ids) -> Run:
    """The run with these queries in this order, every list best first; a query that it lacks has an empty one."""
    place = locate(qids, run.qids)
    found = place >= 0
    sizes = np.where(found, np.diff(run.offsets)[place] if len(run.qids) else 0, 0)
    rows, offsets = span_indices(run.offsets, place[found]), bounds(sizes)
    rows = rows[order_rows(run.scores[rows], offsets, run.docids.take(rows))]
    return Run(offsets, qids, run.docids.take(rows), run.scores[rows], run.name)


def _check_unique(run: Run) -> None:
    name = f"run {run.name!r}: " if run.name else ""
    if (twice := int(find_duplicates(run.qids, np.array([0, len(run.qids)]))[0])) >= 0:
        raise InputError(f"{name}the query occurs twice", query=run.qids[twice])
    twice_in = find_duplicates(run.docids, run.offsets)
    if (twice_in >= 0).any():
        query = int((twice_in >= 0).argmax())
        raise InputError(f"{name}document {run.docids[int(twice_in[query])]} occurs twice", query=run.qids[query])
    if np.isnan(run.scores).any():
        row = int(np.isnan(run.scores).argmax())
        query = int(np.searchsorted(run.offsets, row, "right")) - 1
        raise InputError(f"{name}the score of document {run.docids[row]} is not a number", query=run.qids[query])


def rank_biased_overlap(depth: Ints, first: int, second: int, p: float = PERSISTENCE) -> float:
    """Rank-biased overlap, extrapolated to lists without end (Webber, Moffat and Zobel 2010, equation 32).

    `depth` is, for each document that both lists have, the larger of its ranks (from 0); `first` and `second` are the
    lengths of the lists. 1: the same list; 0: nothing in common. Two empty lists are the same.
    """
    short, long = sorted((first, second))
    if short == 0:
        return 1.0 if long == 0 else 0.0
    shared = np.cumsum(np.bincount(depth, minlength=long)).astype(np.float64)
    ranks = np.arange(1.0, long + 1)
    beyond = np.maximum(ranks - short, 0.0)
    agreed = (shared + shared[short - 1] * beyond / short) / ranks
    at_end = (shared[-1] - shared[short - 1]) / long + shared[short - 1] / short
    return float((1 - p) / p * (agreed * p**ranks).sum() + at_end * p**long)


def qrels_of_rows(rows: Candidates) -> Qrels:
    """The labels of rows as judgements; judged documents that are not among the rows get names of their own."""
    judged = np.flatnonzero(~np.isnan(rows.labels))
    missed = np.repeat(np.arange(rows.queries), np.diff(rows.missed_offsets))
    owner = np.concatenate([rows.query_of_rows()[judged], missed])
    order = np.argsort(owner, kind="stable")
    names = Ids.of([f"not among the rows {i + 1}" for i in range(len(missed))])
    docids = Ids.concat([rows.document_ids().take(judged), names]).take(order)
    labels = np.concatenate([rows.labels[judged], rows.missed_labels])[order]
    return Qrels(bounds(np.bincount(owner, minlength=rows.queries)), rows.qids, docids, labels)


def run_of_rows(rows: Candidates, scores: ArrayLike, name: str = "") -> Run:
    """The ranking of rows by scores, as a run; documents without names are row1, row2, ...

    Names would settle ties that go by the order of rows: the scores of such rows are parted by the last bit.
    """
    values = np.array(scores, np.float64)
    if rows.docids is None:
        order, first = order_rows(values, rows.offsets), (positions(rows.offsets) == 0).tolist()
        ranked = values[order]
        if (np.diff(ranked) == 0).any():
            for i in range(1, len(ranked)):
                if not first[i] and ranked[i] >= ranked[i - 1]:
                    ranked[i] = np.nextafter(ranked[i - 1], -np.inf)
            values[order] = ranked
    return Run(rows.offsets, rows.qids, rows.document_ids(), values, name)
