"""What other retrievers found for the queries, as documents of the index: more rows, and the lists beside them.

Documents that the index does not have can't be rows, since nothing is known of their terms: they are left out of the
lists, counted and noted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds, positions, span_indices
from fliprank.data.fusion_rows import RunLike, named_runs
from fliprank.data.ids import Ids, locate
from fliprank.data.order import order_rows
from fliprank.data.query_doc_table import examples
from fliprank.data.ranked_lists import RankedLists
from fliprank.data.trec import Run
from fliprank.errors import InputError
from fliprank.text.search.collection import Collection

__all__ = ["RunDocuments"]


@dataclass(frozen=True, eq=False)
class RunDocuments:
    """Of all runs together: the query, the number of the document, its score and the number of its run."""

    names: tuple[str, ...]
    owner: Ints
    document: Ints
    scores: Floats
    run: Ints
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        index: Collection,
        qids: Ids,
        runs: Mapping[str, RunLike] | Sequence[RunLike],
        depth: int | None = None,
    ) -> RunDocuments:
        """The first `depth` documents of each query in each run; raises if a run has none of the queries."""
        named, notes = named_runs(runs), list[str]()
        parts = [_found(index, qids, name, run, depth, notes) for name, run in named.items()]
        owner, document, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
        which = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
        return cls(tuple(named), owner, document, scores, which, tuple(notes))

    def beside(self, rows: Candidates, documents: Ints, size: int) -> Candidates:
        """The rows, which hold all of these, with the lists; `documents` are the numbers of the rows, of `size`."""
        key = rows.query_of_rows() * size + documents
        order = np.argsort(key)
        scores = np.full((len(rows), len(self.names)), np.nan)
        scores[order[np.searchsorted(key, self.owner * size + self.document, sorter=order)], self.run] = self.scores
        return replace(rows, lists=RankedLists.of(self.names, scores, rows.offsets, rows.docids))


def _found(
    index: Collection, qids: Ids, name: str, run: Run, depth: int | None, notes: list[str]
) -> tuple[Ints, Ints, Floats]:
    """(queries, documents, scores) of one run, as far as the index has them."""
    partner = locate(qids, run.qids)
    there = np.flatnonzero(partner >= 0)
    if not len(there):
        hint = f"the queries are {examples(qids)}; the list has {examples(run.qids)}"
        raise InputError(f"the list {name} has none of the queries", hint=hint)
    rows, sizes = span_indices(run.offsets, partner[there]), np.diff(run.offsets)[partner[there]]
    owner, docids, scores = np.repeat(there, sizes), run.docids.take(rows), run.scores[rows]
    document = index.numbers_of(docids)
    known = document >= 0
    if not known.any():
        hint = (
            f"the list has {examples(docids)}; the index {examples(index.ids_of(np.arange(min(3, index.documents))))}"
        )
        raise InputError(f"no document of the list {name} is in the index", hint=hint)
    if not known.all():
        absent = docids.take(np.flatnonzero(~known))
        told = f"{len(absent):,} of {len(docids):,} documents of {name} are not in the index, and left out"
        notes.append(f"{told}: {examples(absent)}")
    owner, document, scores = owner[known], document[known], scores[known]
    held = np.bincount(owner, minlength=len(qids))
    if (held == 0).any():
        lacking = qids.take(np.flatnonzero(held == 0))
        notes.append(f"{name} has nothing for {len(lacking):,} of {len(qids):,} queries: {examples(lacking)}")
    offsets = bounds(held)
    first = order_rows(scores, offsets, index.ids_of(document))
    if depth is not None:
        first = first[positions(offsets) < depth]
    return owner[first], document[first], scores[first]
