"""From the runs of several retrievers to rows that a fusion ranks, and back to a run.

Rows of a query are the union of its documents in all runs, in order of appearance. Labels come from the qrels, as in
`judge`; scores and ranks of each run are one column of `Candidates.lists`.

>>> bm25, dense = Run.of({"q1": {"a": 9.0, "b": 5.0}}), Run.of({"q1": {"c": 0.6, "b": 0.8}})
>>> rows = fusion_rows({"bm25": bm25, "dense": dense}, Qrels.of({"q1": {"b": 1, "z": 2}}))
>>> rows.docids.tolist(), rows.labels.tolist(), rows.missed_labels.tolist(), rows.lists.ranks.tolist()
(['a', 'b', 'c'], [nan, 1.0, nan], [2.0], [[1, 0], [2, 1], [0, 2]])
>>> fused_run(rows, [0.1, 0.7, 0.2], depth=2).to_dict()
{'q1': {'b': 0.7, 'c': 0.2}}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Ints
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds, positions, span_indices
from fliprank.data.ids import Ids, factorize, first_equal, locate
from fliprank.data.order import order_rows
from fliprank.data.query_doc_table import examples
from fliprank.data.ranked_lists import RankedLists, statistics_of
from fliprank.data.trec import Qrels, Run, judge, read_qrels, read_run
from fliprank.errors import InputError, UsageError

__all__ = ["RunLike", "fused_run", "fusion_rows", "named_runs"]

RunLike = Run | str | PathLike[str] | Mapping[Any, Mapping[Any, float]]
"""A run, its file, or {query id: {document id: score}}."""


@checked
def fusion_rows(
    runs: Mapping[str, RunLike] | Sequence[RunLike],
    qrels: Qrels | str | PathLike[str] | Mapping[Any, Mapping[Any, float]] | None = None,
    *,
    queries: Iterable[Any] | None = None,
    depth: int | None = None,
    ascending: Iterable[str] = (),
    ties: Literal["docid", "given"] = "docid",
) -> Candidates:
    """Rows for a `Fusion`: the union of the runs' documents per query, with `lists` of scores and ranks.

    `runs` by name, or a sequence that is named by its files or tags. Queries are those of the qrels, in their order;
    one that no run has stays, without rows. Without qrels they are those of all runs and nothing is judged. `queries`
    keeps just some. `depth` keeps the best of each run, before anything is normalised, as an engine's window does. In
    the runs named `ascending` small scores are good (distances). Equal scores are ranked by document id, descending,
    or with `ties="given"` in the order in which the run has them.
    """
    named = named_runs(runs)
    turned = set(ascending)
    if wrong := turned - named.keys():
        raise UsageError(f"ascending: no run is called {min(wrong)!r}; there are {', '.join(named)}")
    if depth is not None and depth < 1:
        raise UsageError(f"depth is a number of documents from 1, not {depth}")
    if ties not in ("docid", "given"):
        raise UsageError(f"ties go by 'docid' or as 'given', not by {ties!r}")
    judged = _judgements(qrels, named, queries)
    entries = [_entries(run, judged.qids, depth, name in turned, ties) for name, run in named.items()]
    if not any(len(each.docids) for each in entries):
        hint = f"the judgements have {examples(judged.qids)}, the runs {examples(next(iter(named.values())).qids)}"
        raise InputError("the judgements and the runs have no query in common", hint=hint)
    return _joined(tuple(named), entries, judged)


class _Entries(NamedTuple):
    """What one run has for the queries asked for: grouped by their number, best first."""

    query: Ints
    docids: Ids
    scores: Floats
    ranks: Ints


def named_runs(runs: Mapping[str, RunLike] | Sequence[RunLike]) -> dict[str, Run]:
    """Runs by name: as given, or by their files or tags; files are read."""
    if isinstance(runs, Mapping):
        named = {str(name): _run(run) for name, run in runs.items()}
    else:
        named = {}
        for i, each in enumerate(runs):
            run = _run(each)
            name = Path(each).name.split(".")[0] if isinstance(each, str | PathLike) else run.name or f"list{i + 1}"
            if name in named:
                raise UsageError(f"two runs are called {name!r}: name them, as in {{'bm25': run, 'dense': other}}")
            named[name] = run
    if not named:
        raise UsageError("there are no runs to fuse")
    return named


def _run(given: RunLike) -> Run:
    if isinstance(given, Run):
        return given
    return Run.of(given) if isinstance(given, Mapping) else read_run(given)


def _judgements(
    qrels: Qrels | str | PathLike[str] | Mapping[Any, Mapping[Any, float]] | None,
    runs: Mapping[str, Run],
    queries: Iterable[Any] | None,
) -> Qrels:
    """The judgements of the queries asked for; without qrels there are none."""
    if qrels is None:
        every = Ids.concat([run.qids for run in runs.values()])
        qids = every.take(factorize(every)[1])
        found = Qrels(np.zeros(len(qids) + 1, np.int64), qids, Ids.of([]), np.empty(0))
    elif isinstance(qrels, Qrels):
        found = qrels
    else:
        found = Qrels.of(qrels) if isinstance(qrels, Mapping) else read_qrels(qrels)
    if queries is None:
        return found
    asked = Ids.of(queries)
    places = locate(asked, found.qids)
    if (places < 0).any():
        first = asked[int((places < 0).argmax())]
        raise InputError(f"query {first} is not among the judgements", hint=f"they have {examples(found.qids)}")
    mask = np.zeros(len(found.qids), bool)
    mask[places] = True
    return found.select(mask)


def _entries(run: Run, qids: Ids, depth: int | None, ascending: bool, ties: str) -> _Entries:
    partner = locate(qids, run.qids)
    found = np.flatnonzero(partner >= 0)
    rows, sizes = span_indices(run.offsets, partner[found]), np.diff(run.offsets)[partner[found]]
    docids, scores, offsets = run.docids.take(rows), run.scores[rows], bounds(sizes)
    order = order_rows(-scores if ascending else scores, offsets, docids if ties == "docid" else None)
    ranks = positions(offsets) + 1
    query = np.repeat(found, sizes)
    if depth is not None:
        kept = ranks <= depth
        order, ranks, query = order[kept], ranks[kept], query[kept]
    return _Entries(query, docids.take(order), scores[order], ranks)


def _joined(names: tuple[str, ...], entries: Sequence[_Entries], judged: Qrels) -> Candidates:
    query = np.concatenate([each.query for each in entries])
    order = np.argsort(query, kind="stable")  # by query, and within it by list and rank
    docids = Ids.concat([each.docids for each in entries]).take(order)
    offsets = bounds(np.bincount(query, minlength=len(judged.qids)))
    first = first_equal(docids, offsets)
    new = first == np.arange(len(first))
    row = (np.cumsum(new) - 1)[first]
    scores, ranks = np.full((int(new.sum()), len(names)), np.nan), np.zeros((int(new.sum()), len(names)), np.int32)
    column = np.repeat(np.arange(len(names)), [len(each.docids) for each in entries])[order]
    scores[row, column] = np.concatenate([each.scores for each in entries])[order]
    ranks[row, column] = np.concatenate([each.ranks for each in entries])[order]
    limits = np.concatenate([[0], np.cumsum(new)])[offsets]
    union = Run(limits, judged.qids, docids.take(np.flatnonzero(new)), np.zeros(len(scores)))
    lists = RankedLists(names, scores, ranks, statistics_of(scores, limits))
    return replace(judge(judged, union).candidates, lists=lists)


@checked
def fused_run(rows: Candidates, scores: ArrayLike, name: str = "fused", depth: int | None = None) -> Run:
    """The run of these scores, for `write_run`: all rows, or the best `depth` of each query."""
    values = np.asarray(scores, np.float64)
    if values.shape != rows.labels.shape:
        raise UsageError(f"expected a score for each of {len(rows)} rows, got shape {values.shape}")
    if depth is None:
        return Run(rows.offsets, rows.qids, rows.document_ids(), values, name)
    order = order_rows(values, rows.offsets, rows.docids)
    kept = order[positions(rows.offsets) < depth]
    return Run(bounds(np.minimum(rows.sizes, depth)), rows.qids, rows.document_ids().take(kept), values[kept], name)
