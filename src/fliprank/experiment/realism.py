"""Is a generated collection like a real one? The same figures of several collections, side by side.

Of rows with term statistics: how long fields are, how often query terms occur in them, in how many, how much more often
in relevant documents, how labels are spread, how scores and static features go with them, and how well BM25F ranks as
it is. MSLR has features instead of term statistics; where they say the same, they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.measures import parse_measure
from fliprank.models import BM25F

__all__ = ["mslr_profile", "profile"]

MSLR_FIELDS = ("body", "anchor", "title", "url")
COVERED, LENGTH, MEAN_TF, BM25_WHOLE, PAGERANK = 6, 11, 36, 110, 130
"""The first (of url, title, ... the four fields') column of MSLR: ratio of covered terms, length, mean tf; others."""
NDCG = "nDCG(dcg='exp-log2')@10"


def profile(rows: Candidates, fields: tuple[str, ...] = ("url", "title", "body", "anchor")) -> dict[str, float]:
    """Figures by name, of rows with term statistics."""
    terms = rows.terms
    assert terms is not None
    count = np.diff(terms.starts)
    tf = {f: np.add.reduceat(terms.tf[:, terms.fields.index(f)], terms.starts[:-1]) / count for f in fields}
    held = {f: np.add.reduceat(terms.tf[:, terms.fields.index(f)] > 0, terms.starts[:-1]) / count for f in fields}
    lengths = {f: terms.length[:, terms.fields.index(f)].astype(np.float64) for f in fields}
    score = BM25F().prepared(rows, 0).score(rows)
    static = None if rows.features is None else np.log(np.maximum(rows.features[:, 0].astype(np.float64), 1e-9))
    return _figures(rows, lengths, tf, held, score, static)


def mslr_profile(rows: Candidates) -> dict[str, float]:
    """The same of rows of MSLR, from its columns; BM25 of the whole document stands in for BM25F."""
    assert rows.features is not None
    columns = {int(name): rows.features[:, i].astype(np.float64) for i, name in enumerate(rows.feature_names)}
    held, lengths, tf = (
        {f: columns[first + i] for i, f in enumerate(MSLR_FIELDS)} for first in (COVERED, LENGTH, MEAN_TF)
    )
    return _figures(rows, lengths, tf, held, columns[BM25_WHOLE], np.log1p(columns[PAGERANK]))


def _figures(
    rows: Candidates,
    lengths: Mapping[str, Floats],
    tf: Mapping[str, Floats],
    held: Mapping[str, Floats],
    score: Floats,
    static: Floats | None,
) -> dict[str, float]:
    """The figures; tf, lengths and the rest are of rated rows, as far as they go with labels."""
    rated = ~np.isnan(rows.labels)
    good, bad = rated & (rows.labels >= 2), rated & (rows.labels <= 0)
    found = {"queries": float(rows.queries), "rows per query": len(rows) / rows.queries}
    grades = np.clip(np.ceil(rows.labels[rated]), 0, 4)
    found["rated per query"] = rated.sum() / rows.queries
    found |= {f"share of label {level}": float((grades == level).mean()) for level in range(5)}
    for name in ("url", "title", "body", "anchor"):
        length = lengths[name][rated]
        found[f"{name}: median length"] = float(np.median(length[length > 0]))
        found[f"{name}: empty"] = float((length == 0).mean())
        found[f"{name}: tf per query term"] = float(tf[name][rated].mean())
        found[f"{name}: query terms held"] = float(held[name][rated].mean())
        found[f"{name}: tf, label 2 to 4 over 0"] = float(tf[name][good].mean() / tf[name][bad].mean())
        found[f"{name}: log tf with label"] = _correlation(np.log1p(tf[name]), rows, rated)
    found["BM25F with label"] = _correlation(score, rows, rated)
    if static is not None:
        found["PageRank with label"] = _correlation(static, rows, rated)
    few = rows.take(rated)
    measure = parse_measure(NDCG)
    found["nDCG@10 of BM25F, rated rows"] = measure.value(score[rated], few)
    found["nDCG@10 of BM25F, all rows"] = measure.value(score, rows)
    found["nDCG@10 of chance, rated rows"] = measure.value(np.random.default_rng(0).random(len(few)), few)
    return found


def _correlation(values: Floats, rows: Candidates, rated: Any) -> float:
    """Of values and labels within queries: of what both have more than their query's mean."""
    owner = rows.query_of_rows()[rated]
    count = np.maximum(np.bincount(owner, minlength=rows.queries), 1)
    centred = []
    for column in (values[rated], rows.labels[rated]):
        centred.append(column - (np.bincount(owner, column, rows.queries) / count)[owner])
    return float(np.corrcoef(*centred)[0, 1])
