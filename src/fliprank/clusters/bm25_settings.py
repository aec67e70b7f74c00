"""k1, b and the average length of a field, read off the scores of single terms: for engines that do not tell them.

A term's score is s = I tf (k + 1) / (tf + A + B L) with A = k (1 - b), B = k b / average, idf I and length L, so that
A + B L - (k + 1) I tf / s = -tf: linear in A, B and k + 1. Where all tf are alike k can't be told from A and B, and is
taken to be 1.2: any k would then give the same scores.

>>> tf, length, idf = np.array([1, 2, 1, 3.0]), np.array([5, 9, 14, 30.0]), np.array([2, 1, 2, 0.5])
>>> score = idf * tf * 1.9 / (tf + 0.9 * (0.6 + 0.4 * length / 12))
>>> settings_of_scores(tf, length, idf, score)
BM25Settings(k=0.9, b=0.4, average=12.0)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats

__all__ = ["BM25Settings", "settings_of_scores"]

USUAL = 1.2, 0.75
SMALL = 1e-6
DIGITS = 6
"""As many are told; scores come from a network in decimals."""


class BM25Settings(NamedTuple):
    """What a field is scored by."""

    k: float
    b: float
    average: float


def settings_of_scores(tf: Floats, length: Floats, idf: Floats, score: Floats) -> BM25Settings:
    """The settings that give these scores; the usual ones, with the mean of these lengths, where none do."""
    usable = (score > 0) & (tf > 0) & (idf > 0)
    tf, length, idf, score = (each[usable] for each in (tf, length, idf, score))
    usual = BM25Settings(*USUAL, float(length.mean()) if len(length) else 0.0)
    if len(tf) < 2:
        return usual
    columns = np.stack([np.ones(len(tf)), length, -idf * tf / score], axis=1)
    if np.linalg.matrix_rank(columns / np.linalg.norm(columns, axis=0), SMALL) == 3:
        constant, slope, factor = np.linalg.lstsq(columns, -tf, rcond=None)[0]
    else:
        factor = USUAL[0] + 1.0
        found, _, rank, _ = np.linalg.lstsq(columns[:, :2], -tf - factor * columns[:, 2], rcond=SMALL)
        if rank < 2:
            return usual
        constant, slope = found
    k = factor - 1.0
    if not k > SMALL:
        return usual
    b = 1.0 - constant / k
    if not -1e-3 <= b <= 1.0 + 1e-3:
        return usual
    b = float(np.clip(b, 0.0, 1.0))
    average = k * b / slope if b > SMALL and slope > 0 else usual.average
    return BM25Settings(*(round(float(each), DIGITS) for each in (k, b, average)))
