"""Random judged rankings for property tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from fliprank.data.candidates import Candidates


@dataclass
class Problem:
    """Scores and candidates, and the same by query: labels in ranked order (None = unjudged), and missed labels."""

    scores: np.ndarray
    candidates: Candidates
    ranked: list[list[float | None]]
    missed: list[list[float]]


def problem(
    rng: np.random.Generator, sizes: list[int], levels: int = 5, ties: bool = False, ids: bool = True
) -> Problem:
    rows = sum(sizes)
    labels = rng.integers(0, levels, rows).astype(float)
    labels[rng.random(rows) < rng.choice([0.0, 0.3, 0.9])] = np.nan
    scores = rng.integers(0, 4, rows).astype(float) if ties else rng.permutation(rows) / 7.0
    names = [f"d{rng.integers(0, 10**6)}-{i}" for i in range(rows)]
    missed = [rng.integers(0, levels, rng.integers(0, 4)).astype(float).tolist() for _ in sizes]
    plain = Candidates.of(labels, group=sizes, docids=names if ids else None)
    candidates = Candidates(
        plain.offsets,
        plain.labels,
        plain.qids,
        plain.docids,
        missed_offsets=np.concatenate([[0], np.cumsum([len(m) for m in missed])]),
        missed_labels=np.array([label for m in missed for label in m]),
    )
    ranked = []
    for low, high in zip(plain.offsets, plain.offsets[1:], strict=False):
        rows_of = sorted(range(low, high), key=lambda i: names[i].encode() if ids else -i, reverse=True)
        rows_of.sort(key=lambda i: -scores[i])
        ranked.append([None if np.isnan(labels[i]) else float(labels[i]) for i in rows_of])
    return Problem(scores, candidates, ranked, missed)


@st.composite
def problems(draw: st.DrawFn, ties: bool | None = None, longest: int = 30) -> Problem:
    sizes = draw(st.lists(st.integers(0, longest), min_size=1, max_size=5))
    tied = draw(st.booleans()) if ties is None else ties
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return problem(rng, sizes, draw(st.integers(2, 5)), tied, draw(st.booleans()))
