"""What a document is worth: its label, its gain, and the best that a ranking of the query could collect.

>>> gain_of(np.array([0.0, 1.0, 3.0]), "exp")
array([0., 1., 7.])
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.kernels import parallel_kernel, prange
from fliprank.measures.dcg import exponential_gain

__all__ = ["GAINS", "gain_of", "ideal_gains", "informative", "labels_of"]

GAINS: dict[str, Callable[[Floats], Floats]] = {
    "exp": exponential_gain,
    "linear": lambda label: label,
    "exp0": lambda label: exponential_gain(label) + 1,
}
"""2^l - 1; the label itself; and SoftRank's 2^l (section 2.1), by which an irrelevant document gains 1."""


def labels_of(candidates: Candidates) -> Floats:
    """The label of each row, 0 if it is unjudged."""
    if "objective labels" not in candidates.memo:
        candidates.memo["objective labels"] = frozen(np.nan_to_num(candidates.labels, nan=0.0), np.float64)
    labels: Floats = candidates.memo["objective labels"]
    return labels


def gain_of(labels: Floats, kind: str) -> Floats:
    """The gain of each label; labels below 0 count as 0."""
    return GAINS[kind](np.maximum(labels, 0.0))


def informative(values: Floats, offsets: Ints) -> Floats:
    """1 for each query whose rows differ in `values`, else 0: only there does the order of rows matter."""
    return _informative(frozen(values, np.float64), offsets)


@parallel_kernel
def _informative(values: Floats, offsets: Ints) -> Floats:
    out = np.zeros(len(offsets) - 1)
    for q in prange(len(offsets) - 1):
        for i in range(offsets[q] + 1, offsets[q + 1]):
            if values[i] != values[offsets[q]]:
                out[q] = 1.0
                break
    return out


def ideal_gains(candidates: Candidates, gain: Callable[[Floats], Floats]) -> tuple[Floats, Ints, Ints]:
    """(gains, query, rank from 0) of every document of each query, best first, also of those not among the rows."""
    missed = np.repeat(np.arange(candidates.queries), np.diff(candidates.missed_offsets))
    owner = np.concatenate([candidates.query_of_rows(), missed])
    gains = gain(np.concatenate([labels_of(candidates), candidates.missed_labels]))
    best_first = np.lexsort((-gains, owner))
    starts = np.searchsorted(owner[best_first], np.arange(candidates.queries))
    return gains[best_first], owner[best_first], np.arange(len(gains)) - starts[owner[best_first]]
