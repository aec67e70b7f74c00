"""A weight per query, where that is shown to be better than one weight for all queries.

The fusion whose weights depend on the query (`AdaptiveFusion`) is tuned as the plain one is, variant by variant, on the
same folds. It is taken where, on queries that neither has seen, it is better by more than chance gives. The same choice
is made again without each fold, by the other folds, and each fold is ranked by what was chosen without it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.csv_cells import safe_cell
from fliprank.data.files import StrPath, atomic_write
from fliprank.data.list_traits import with_traits
from fliprank.errors import InputError, UsageError
from fliprank.experiment.model_choice import choose_among
from fliprank.experiment.significance import p_value, randomisation
from fliprank.experiment.splits import folds_of
from fliprank.experiment.verdict import SURE
from fliprank.measures import Measure
from fliprank.models.base import Model
from fliprank.models.fusion import AdaptiveFusion, Fusion
from fliprank.optimize.fit import Fit
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index
from fliprank.text.search.queries import QueriesLike, analyse, read_queries
from fliprank.text.words import cut_texts

__all__ = ["PerQuery", "choose_per_query", "with_query_traits", "write_weights"]


@checked
def with_query_traits(
    rows: Candidates, queries: QueriesLike | None = None, index: Index | StrPath | None = None
) -> Candidates:
    """The rows of lists with the traits of their queries, which an `AdaptiveFusion` weighs lists by.

    Lists tell `agreement`, `spread` and `gap` (`data/list_traits.py`). Texts of the queries add `terms`, the logarithm
    of 1 + the number of words; an index of the documents adds `idf`, the mean over the words of the query.
    """
    if index is not None and queries is None:
        raise UsageError("idf is that of the words of queries: give their texts (queries) beside the index")
    if queries is None:
        return with_traits(rows)
    every, asked = read_queries(queries), rows.qids.tolist()
    if missing := [qid for qid in asked if qid not in every]:
        raise InputError(f"{len(missing):,} of {len(asked):,} queries have no text", query=missing[0])
    texts = {qid: every[qid] for qid in asked}
    if index is None:
        [chunk], _, _ = cut_texts(texts.values(), Analyzer())
        return with_traits(rows, terms=np.log1p(chunk.counts))
    opened = index if isinstance(index, Index) else Index.open(index)
    found = analyse(opened, texts)
    count = np.diff(found.word_offsets)
    owner = np.repeat(np.arange(len(found)), count)
    total = np.bincount(owner, found.idf[found.offsets[owner] + found.sequence], len(found))
    return with_traits(rows, terms=np.log1p(count), idf=total / np.maximum(count, 1))


@dataclass(frozen=True, eq=False)
class PerQuery:
    """What came of a weight per query: its fit, how it compares with one weight for all, and whether it is taken.

    `weights` has those of the queries that are shown, by query id.
    """

    fit: Fit
    measure: str
    queries: int
    difference: float
    p: float
    adopted: bool
    weights: dict[str, list[float]] = field(default_factory=dict)

    def on(self, rows: Candidates) -> PerQuery:
        """With the weights of each of these queries, as they are set in the engine; none if it is not adopted."""
        model = self.fit.model
        assert isinstance(model, AdaptiveFusion)
        if not self.adopted:
            return self
        weights = model.canonical().query_weights(rows)
        if model.rule.scale_free:
            weights = weights / weights.sum(axis=1, keepdims=True)
        return replace(self, weights=dict(zip(rows.qids.tolist(), weights.tolist(), strict=True)))

    @property
    def sentence(self) -> str:
        """The verdict on it."""
        told = f"{self.measure} {self.difference:+.4f} on {self.queries} held-out queries, p = {p_value(self.p)}"
        if self.adopted:
            return f"A weight per query is better than one for all ({told}): it is used."
        how = "not better" if self.difference <= 0 else "not shown to be better"
        return f"A weight per query is {how} than one for all ({told}): one weight is used."

    def content(self) -> dict[str, Any]:
        """For programs."""
        model = self.fit.model
        params = dict(zip(model.params.names, model.params.values.tolist(), strict=True))
        told = {"adopted": self.adopted, "sentence": self.sentence, "difference": self.difference, "p": self.p}
        return {**told, "queries": self.queries, "params": params}


def write_weights(path: Path, lists: Sequence[str], found: PerQuery | None) -> None:
    """Write the weights of each query; where there are none, nothing of an older run is left."""
    if found is None or not found.weights:
        path.unlink(missing_ok=True)
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(["query", *map(safe_cell, lists)])
    writer.writerows([safe_cell(query), *weights] for query, weights in found.weights.items())
    with atomic_write(path) as file:
        file.write(text.getvalue().encode())


def choose_per_query(
    plain: Fit,
    variants: Mapping[str, Fusion],
    baseline: Model,
    rows: Candidates,
    measure: Measure,
    folds: int,
    seed: int = 0,
    **options: Any,
) -> tuple[Fit, PerQuery]:
    """The plain fit or that of a weight per query, whichever is proven; `held_out` is corrected for the choice."""
    weighed = {name: AdaptiveFusion.like(model) for name, model in variants.items() if model.rule.weights != "none"}
    if not weighed:
        raise UsageError("a weight per query needs weights, and this engine has none with these settings")
    fit = choose_among(weighed, baseline, rows, measure, folds, seed, **options)
    assert plain.held_out is not None
    assert fit.held_out is not None
    gap = _values(fit.held_out, rows, measure) - _values(plain.held_out, rows, measure)
    scores, owner = np.empty(len(rows)), rows.query_of_rows()
    for part in folds_of(rows.queries, min(folds, rows.queries), seed):
        inside = np.isin(owner, part)
        chosen = fit if _proven(np.delete(gap, part)) else plain
        assert chosen.held_out is not None
        scores[inside] = chosen.held_out[inside]
    known = gap[~np.isnan(gap)]
    difference, p = float(known.mean()) if len(known) else 0.0, randomisation(known) if len(known) else 1.0
    found = PerQuery(fit, str(measure), len(known), measure.sign * difference, p, _proven(gap))
    return replace(fit if found.adopted else plain, held_out=scores), found


def _values(scores: Floats, rows: Candidates, measure: Measure) -> Floats:
    """The measure of each query; larger is better."""
    return measure.sign * measure.paired(measure.per_query(scores, rows))


def _proven(gap: Floats) -> bool:
    """Whether these differences of queries are above 0 by more than chance gives."""
    known = gap[~np.isnan(gap)]
    return len(known) > 1 and bool(known.mean() > 0) and randomisation(known) < SURE
