"""Random lines of scores over judged rows, in general position or full of coincidences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from fliprank.data.candidates import Candidates


@dataclass
class Line:
    base: np.ndarray
    slope: np.ndarray
    rows: Candidates


def line(
    rng: np.random.Generator, sizes: list[int], coincident: bool, levels: int = 3, ids: bool = True, every: bool = False
) -> Line:
    """`coincident`: whole numbers from a small range, so that documents tie, and cross many at a time.

    `every`: all rows are judged, and all judged are rows.
    """
    count = sum(sizes)
    labels = rng.integers(0, levels, count).astype(float)
    if not every:
        labels[rng.random(count) < rng.choice([0.0, 0.3, 0.8])] = np.nan
    if coincident:
        base, slope = rng.integers(-4, 5, count).astype(float), rng.integers(-2, 3, count).astype(float)
    else:
        base, slope = rng.normal(size=count), rng.normal(size=count)
        same = rng.random(count) < 0.2  # some documents never cross each other, some are identical
        slope[same] = 0.5
        base[same & (rng.random(count) < 0.5)] = 0.25
    names = [f"d{rng.integers(0, 10**6)}-{i}" for i in range(count)]
    plain = Candidates.of(labels, group=sizes, docids=names if ids else None)
    missed = [0 if every else int(rng.integers(0, 3)) for _ in sizes]
    rows = Candidates(
        plain.offsets,
        plain.labels,
        plain.qids,
        plain.docids,
        missed_offsets=np.concatenate([[0], np.cumsum(missed)]),
        missed_labels=rng.integers(0, levels, sum(missed)).astype(float),
    )
    return Line(base, slope, rows)


@st.composite
def lines(draw: st.DrawFn, coincident: bool | None = None, longest: int = 14) -> Line:
    sizes = draw(st.lists(st.integers(0, longest), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    crowded = draw(st.booleans()) if coincident is None else coincident
    return line(rng, sizes, crowded, draw(st.integers(2, 4)), draw(st.booleans()))


def crossings(line: Line) -> np.ndarray:
    """Every x where two documents of one query cross, by brute force."""
    found = set()
    for low, high in zip(line.rows.offsets, line.rows.offsets[1:], strict=False):
        for i in range(low, high):
            for j in range(i + 1, high):
                if line.slope[i] != line.slope[j]:
                    found.add((line.base[i] - line.base[j]) / (line.slope[j] - line.slope[i]))
    return np.array(sorted(found))


def between(crossings: np.ndarray, low: float = -np.inf, high: float = np.inf) -> np.ndarray:
    """A point in each stretch between crossings that is wide enough for scores to be told apart."""
    inside = crossings[(crossings > low) & (crossings < high)]
    left = low if np.isfinite(low) else (inside.min() if len(inside) else 0.0) - 2.0
    right = high if np.isfinite(high) else (inside.max() if len(inside) else 0.0) + 2.0
    edges = np.concatenate([[left], inside, [right]])
    return ((edges[1:] + edges[:-1]) / 2)[np.diff(edges) > 1e-7]
