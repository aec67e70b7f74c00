"""What a fusion does query by query: every query before and after, and the documents that moved in the first ranks.

Before is the best of what there was, after the tuned fusion: on test queries, or as fits ranked queries that they did
not see. A document that moved comes with its label and its rank in each of the lists: which retriever brought it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import positions
from fliprank.data.csv_cells import safe_cell
from fliprank.data.ids import match
from fliprank.data.order import order_rows
from fliprank.data.trec import Run
from fliprank.experiment.diff import diff_of_runs
from fliprank.experiment.evaluation import Evaluation
from fliprank.experiment.paired_runs import qrels_of_rows, run_over
from fliprank.experiment.query_diff import QueryDiff
from fliprank.experiment.tuning_moves import MOST, TuningMoves
from fliprank.measures import Measure

__all__ = ["csv_text", "moved_documents", "moves_of_fusion", "query_figures"]

TOP = 10
"""Ranks that count where the measure has no cut-off."""

Line = Sequence[Any]


def query_figures(evaluation: Evaluation, before: str, after: str) -> Iterator[Line]:
    """A table with a header: each query, every measure before and after, and the difference of the first."""
    one, other = evaluation.values[before], evaluation.values[after]
    first = next(iter(one))
    columns = [each for name in one for each in (f"{name} before", f"{name} after")]
    yield ["query", "difference", *columns]
    values = [each for name in one for each in (one[name].tolist(), other[name].tolist())]
    difference = (other[first] - one[first]).tolist()
    yield from zip(evaluation.qids.tolist(), difference, *values, strict=True)


def moved_documents(rows: Candidates, before: Run, after: Run, measure: Measure) -> Iterator[Line]:
    """A table with a header: each document that moved into, out of or within the first ranks, query by query.

    Its rank before and after, its label (empty if nobody judged it), and its rank in each list (empty if not there).
    """
    found = rows.lists
    assert found is not None
    top = measure.depth or TOP
    old, new = _ranks(rows, before), _ranks(rows, after)
    inside = ((old > 0) & (old <= top)) | ((new > 0) & (new <= top))
    moved = np.flatnonzero(inside & (old != new))
    owner = rows.query_of_rows()[moved]
    moved = moved[np.lexsort((old[moved], np.where(new[moved] == 0, len(rows), new[moved]), owner))]
    yield ["query", "document", "rank before", "rank after", "label", *(f"rank in {name}" for name in found.names)]
    qids = [rows.qids[int(q)] for q in rows.query_of_rows()[moved]]
    docids = rows.document_ids().take(moved).tolist()
    table = np.column_stack([old[moved], new[moved], found.ranks[moved]]).tolist()
    for qid, docid, label, ranks in zip(qids, docids, rows.labels[moved].tolist(), table, strict=True):
        one, other, *own = (rank or "" for rank in ranks)
        yield [qid, docid, one, other, "" if np.isnan(label) else label, *own]


def _ranks(rows: Candidates, run: Run) -> Ints:
    """The rank of each row in a run of the same queries, from 1; 0 if it is not there."""
    place = np.empty(len(run.scores), np.int64)
    place[order_rows(run.scores, run.offsets, run.docids)] = positions(run.offsets) + 1
    at = match(rows.document_ids(), rows.offsets, run.docids, run.offsets, np.arange(rows.queries))
    return np.where(at >= 0, place[at], 0)


def moves_of_fusion(
    rows: Candidates, before: Run, after: Run, values: tuple[Floats, Floats], on: str, measure: Measure
) -> TuningMoves:
    """The queries that were helped and hurt most, with what moved in them; `values` are the measure's before and after.

    Beside a document stand its ranks in the lists.
    """
    gains = measure.sign * (values[1] - values[0])
    order = np.argsort(-gains, kind="stable")
    helped = [_query(rows, before, after, int(q), measure) for q in order[:MOST] if gains[q] > 0]
    hurt = [_query(rows, before, after, int(q), measure) for q in order[::-1][:MOST] if gains[q] < 0]
    notes = ["After a document: its rank in each list."] if helped or hurt else []
    return TuningMoves(measure, on, helped, hurt, notes)


def _query(rows: Candidates, before: Run, after: Run, query: int, measure: Measure) -> QueryDiff:
    few, lists = rows.select([query]), rows.lists
    assert few.lists is not None
    assert lists is not None
    ranks = few.lists.ranks.tolist()
    names = few.document_ids().tolist()
    told = {
        name: ", ".join(f"{each} {rank or '-'}" for each, rank in zip(lists.names, own, strict=True))
        for name, own in zip(names, ranks, strict=True)
    }

    def titles(wanted: Iterable[str]) -> dict[str, str]:
        return {name: told[name] for name in wanted if name in told}

    one, other = (run_over(run, few.qids) for run in (before, after))
    top = min(measure.depth or TOP, TOP)
    found = diff_of_runs(one, other, qrels_of_rows(few), measure=measure, top=top, tested=False, read_titles=titles)
    return found[0]


def csv_text(lines: Iterable[Line]) -> str:
    """The table as CSV that a spreadsheet shows and does not run."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([safe_cell(cell) for cell in line] for line in lines)
    return out.getvalue()
