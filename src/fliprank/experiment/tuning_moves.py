"""What a tuning moved: the queries that it helped and hurt most, the documents that moved in them, and why.

On test queries where there are any, else on training queries as fits ranked them that did not see them. These fits
differ from fold to fold; why a document moved is then told by the function that was tuned on all queries, where that
moves it the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.csr import span_indices
from fliprank.data.ids import Ids, locate
from fliprank.data.trec import Run
from fliprank.errors import FliprankError
from fliprank.experiment.diff import Diff, diff_of_runs
from fliprank.experiment.diff_records import query_record
from fliprank.experiment.move_reasons import Explainer, rows_of_candidates, rows_of_index
from fliprank.experiment.paired_runs import qrels_of_rows, run_of_rows, run_over
from fliprank.experiment.query_diff import QueryDiff
from fliprank.experiment.task import Queries, Task
from fliprank.measures import Measure
from fliprank.optimize.fit import Fit
from fliprank.text.index import Index
from fliprank.text.titles import titles_by_index

if TYPE_CHECKING:
    from fliprank.experiment.results import Proof

__all__ = ["BY_ALL", "MOST", "ON", "TuningMoves", "lists_of_tuning", "moves_of_tuning", "titles_of"]

MOST, SHOWN = 3, 3
"""Queries of each kind; documents of each that are written down."""
TOP = 10
ON = {
    "test": "test queries, which tuning did not see",
    "cross_validated": "training queries, ranked by fits that did not see them",
    "train": "training queries, which tuning did see",
}
BY_ALL = (
    "Why documents moved is told by the function that was tuned on all queries, where that moves them the same way."
)


@dataclass(frozen=True, eq=False)
class TuningMoves:
    """Queries that were helped and hurt most, the most first; `on` is a key of `ON`."""

    measure: Measure
    on: str
    helped: Sequence[QueryDiff]
    hurt: Sequence[QueryDiff]
    notes: Sequence[str] = ()

    @property
    def title(self) -> str:
        """What the queries are."""
        return f"Most helped and most hurt, {self.measure} ({ON[self.on]})"

    def content(self) -> dict[str, Any]:
        """For programs; of each query the documents that moved most."""
        helped, hurt = ([_short(each) for each in some] for some in (self.helped, self.hurt))
        return {"on": self.on, "helped": helped, "hurt": hurt, "notes": list(self.notes)}


def _short(query: QueryDiff) -> dict[str, Any]:
    kept = {each.docid for each in query.moved[:SHOWN]}
    record = query_record(query)
    del record["flips"]
    return record | {"documents": [each for each in record["documents"] if each["document"] in kept]}


def moves_of_tuning(
    task: Task, fit: Fit, runs: Mapping[str, Run], proofs: Mapping[str, Proof], measure: Measure
) -> TuningMoves | None:
    """The queries that were helped and hurt most by the first of the proofs, with what moved in them."""
    on = next(iter(proofs), "train")
    shown = task.test if on == "test" and task.test is not None else task.train
    before, after = _values(task, fit, shown, on, proofs, measure)
    gains = measure.sign * (after - before)
    order = np.argsort(-gains, kind="stable")
    chosen = [q for q in order[:MOST] if gains[q] > 0] + [q for q in order[::-1][:MOST] if gains[q] < 0]
    if not chosen:
        return TuningMoves(measure, on, (), ())
    found = lists_of_tuning(task, fit, shown, np.array(sorted(chosen), np.int64), runs, on, measure)
    helped, hurt, notes = found.helped(MOST), found.hurt(MOST), found.notes
    if on == "cross_validated" and any(each.because for query in (*helped, *hurt) for each in query.documents):
        notes.append(BY_ALL)
    return TuningMoves(measure, on, helped, hurt, notes)


def _values(
    task: Task, fit: Fit, shown: Queries, on: str, proofs: Mapping[str, Proof], measure: Measure
) -> tuple[Floats, Floats]:
    """The measure of each of the shown rows' queries before and after; 0 for queries that the proof does not have."""
    if on == "train":
        assert fit.start is not None
        rows = shown.rows
        return measure.per_query(fit.start.score(rows), rows), measure.per_query(fit.model.score(rows), rows)
    proof = proofs[on]
    place = locate(shown.rows.qids, proof.evaluation.qids)
    name = proof.comparisons[0].measure
    before, after = (proof.evaluation.values[run][name] for run in ("default", "tuned"))
    return np.where(place >= 0, before[place], 0.0), np.where(place >= 0, after[place], 0.0)


def lists_of_tuning(
    task: Task, fit: Fit, shown: Queries, chosen: Ints, runs: Mapping[str, Run], on: str, measure: Measure
) -> Diff:
    """The lists of some queries: by full retrieval where the proof is by that, else of the rows."""
    assert fit.start is not None
    known: dict[str, Any] = {"texts": shown.texts, "read_titles": titles_of(task)}
    few = shown.rows.select(chosen)
    if on == "test" and task.index is not None and shown.qrels is not None:
        wanted = set(few.qids.tolist())
        qrels = shown.qrels.select([qid in wanted for qid in shown.qrels.qids.tolist()])
        explainer = Explainer(fit.start, fit.model, rows_of_index(task.index, shown.texts))
        both = [run_over(runs[name], qrels.qids) for name in ("default", "tuned")]
    else:
        held, places = fit.held_out if on == "cross_validated" else None, span_indices(shown.rows.offsets, chosen)
        after = fit.model.score(few) if held is None else held[places]
        both = [run_of_rows(few, scores) for scores in (fit.start.score(few), after)]
        if few.docids is None:  # named as in the runs that are written: by their places among all rows
            names = Ids.of([f"row{row + 1}" for row in places])
            few, both = replace(few, docids=names), [replace(run, docids=names) for run in both]
        qrels = qrels_of_rows(few)
        explainer = Explainer(fit.start, fit.model, rows_of_candidates(few), exact=held is None)
    known["explainer"] = explainer
    return diff_of_runs(both[0], both[1], qrels, measure=measure, top=TOP, tested=False, **known)


def titles_of(task: Task) -> Any:
    """What reads titles, where the documents are known; none where they can't be read any more."""
    if not isinstance(task.index, Index) or "docs" not in task.sources:
        return None
    read = partial(titles_by_index, task.sources["docs"], task.index)

    def titles(wanted: Any) -> dict[str, str]:
        try:
            return read(wanted)
        except FliprankError:
            return {}

    return titles
