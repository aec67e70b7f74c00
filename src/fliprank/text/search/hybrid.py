"""Hybrid retrieval over the whole index: the first of the text model and of each other list, fused.

It is what an engine does: each retriever gives its first `window` documents, whoever is among them gets a fused score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from fliprank.data.fusion_rows import RunLike, fused_run
from fliprank.data.trec import Run
from fliprank.errors import UsageError
from fliprank.models.hybrid import Hybrid
from fliprank.text.index_arrays import IndexArrays
from fliprank.text.search.candidates import pool
from fliprank.text.search.collection import Collection
from fliprank.text.search.queries import QueriesLike
from fliprank.text.search.retrieve import Scorer

__all__ = ["search_hybrid"]


def search_hybrid(
    index: IndexArrays | Collection,
    queries: QueriesLike,
    model: Scorer | None,
    runs: Mapping[str, RunLike] | Sequence[RunLike] | None,
    *,
    depth: int = 1000,
    match: Literal["or", "and"] = "or",
) -> Run:
    """See `Index.search`; raises if a hybrid comes without runs, or runs with another model."""
    if not isinstance(model, Hybrid):
        raise UsageError(f"other lists (runs) are for a hybrid, not for {getattr(model, 'kind', 'bm25')}")
    if runs is None:
        names = ", ".join(model.fusion.lists[1:]) or "at least one"
        raise UsageError(f"this hybrid fuses text with other lists: give them by --run (runs=): {names}")
    if match != "or" or depth < 1:
        raise UsageError(f"a hybrid matches documents that have some term (or), to a depth from 1: {match!r}, {depth}")
    rows = pool(index, queries, depth=model.window, ranker=model, runs=runs).candidates
    scores = np.asarray(model.score(rows), np.float64)
    return fused_run(rows, scores, model.kind, depth)
